# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Pictures of engines against certified truth, from what `make truth-engines` kept."""
import math

import doc_truth_engines
from canvas import WIDTH, Canvas

COLOURS = {"fast": "a", "transformers-f32": "c", "fast-bf16": "a", "transformers-bf16": "c", "llama": "b", "h200": "ink"}
DASHED = ("fast-bf16", "transformers-bf16")
LEFT, TOP, HIGH = 62, 30, 270


def digits(power):
    return f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def picture(told):
    lines = {each["engine"]: doc_truth_engines.by_layer(each) for each in told["engines"]}
    titles = {each["engine"]: each["title"] for each in told["engines"]}
    errors = [x for line in lines.values() for x in line.values()]
    layers = 1 + max(layer for line in lines.values() for layer in line)
    low, high = math.floor(math.log10(min(errors))), math.ceil(math.log10(max(errors)))
    ends = "; ".join(f"{titles[name]} {line[0]:.2g} to {line[layers - 1]:.2g}" for name, line in lines.items())
    c = Canvas(TOP + HIGH + 62 + 20 * len(lines), f"Distance from certified truth after each of {layers} layers, root mean square, on a logarithmic "
               f"axis, from the first layer to the last: {ends}.")

    def at(layer, x):
        return LEFT + layer * (WIDTH - LEFT - 20) / (layers - 1), TOP + HIGH - (math.log10(x) - low) / (high - low) * HIGH
    for power in range(low, high + 1):
        x, y = at(0, 10.0 ** power)
        c.line((x, y), (WIDTH - 20, y), colour="line", width=0.7)
        c.text(x - 8, y + 5, digits(power), "faint", "end", "small")
    for layer in (*range(0, layers - 2, 4), layers - 1):
        c.text(at(layer, 1.0)[0], TOP + HIGH + 20, str(layer), "faint", "middle", "small")
    c.text(WIDTH - 20, TOP + HIGH + 38, "layer", "faint", "end", "small")
    for k, (name, line) in enumerate(lines.items()):
        colour, y = COLOURS[name], TOP + HIGH + 46 + 20 * k
        dash = "5 4" if name in DASHED else None
        if name == "h200":
            for layer, x in line.items():
                c.dot(*at(layer, x), 4, colour)
            c.dot(LEFT + 14, y - 5, 4, colour)
        else:
            c.line(*(at(layer, x) for layer, x in sorted(line.items())), colour=colour, width=2, dash=dash)
            c.line((LEFT, y - 5), (LEFT + 28, y - 5), colour=colour, width=2, dash=dash)
        c.text(LEFT + 38, y, titles[name], colour, kind="small")
    return c


def pictures(root):
    told = {name: doc_truth_engines.kept(root, name) for name in doc_truth_engines.NAMES}
    return {name: picture(each) for name, each in told.items() if each}
