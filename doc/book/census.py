# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Pictures of a census: `sinkproof sinks` over a model of twelve layers, run here."""
import json

import runs
from canvas import WIDTH, Canvas

TOKENS = 64
INPUTS = (("random", "random tokens"), ("repeat", "one token, again and again"))


def measured(program, root):
    """{"random": the census, "repeat": the other one}"""
    words = [w for kind, _ in INPUTS for w in ("--tokens", f"{kind}:{TOKENS}")]
    said = runs.run(program, root, "sinks", "synthetic:tiny,layers=12", *words, "--json", "-")
    return dict(zip((kind for kind, _ in INPUTS), json.loads(said)["results"]))


def heads(census):
    """A cell for each head: the mean weight of its sink."""
    layers, epsilon = census["layers"], census["epsilon"]
    means = [[head["sink"]["mean"] for head in layer["heads"]] for layer in layers]
    above = sum(x > epsilon for row in means for x in row)
    c = Canvas(84 + 24 * len(means), f"A grid of {len(means)} layers and {len(means[0])} heads, each cell the fuller the more weight the head's sink has on "
               f"the mean over {TOKENS} random tokens. {above} of {census['heads']} cells, outlined, are above {epsilon:g}.")
    c.text(112, 22, "heads", "faint", kind="small")
    for l, row in enumerate(means):
        y = 32 + 24 * l
        c.text(100, y + 16, f"layer {l}", "faint", "end", "small")
        c.text(360, y + 16, "window" if layers[l]["window"] else "", "faint", kind="small")
        for h, x in enumerate(row):
            c.rect(112 + 24 * h, y, 21, 21, "b" if x > epsilon else "line", "a", x, 2, 2 if x > epsilon else 0.7)
    y = 32 + 24 * len(means)
    c.text(112, y + 22, f"the sink's mean weight; outlined above {epsilon:g}:", kind="small")
    c.text(112, y + 42, f"{above} of {census['heads']} heads", "b", kind="small")
    return c


def mean_mass(census, windowed):
    of = [layer["mass_by_position"] for layer in census["layers"] if bool(layer["window"]) == windowed]
    return [sum(column) / len(column) for column in zip(*of)]


def mass(found):
    """What the sinks leave to the keys, row by row: layers with a window and without, two inputs."""
    window = next(layer["window"] for layer in found["random"]["layers"] if layer["window"])
    ends = {(kind, w): mean_mass(found[kind], w)[-1] for kind, _ in INPUTS for w in (True, False)}
    c = Canvas(404, f"Mass of the keys against the row, means over the heads of six layers each. Without a window it goes on growing, to "
               f"{ends['random', False]:.2f} of random tokens and {ends['repeat', False]:.2f} of repeated ones; with a window of {window} it "
               f"stops when the window is full, at {ends['random', True]:.2f} and {ends['repeat', True]:.2f}.")

    def at(i, x):
        return 50 + i * (WIDTH - 70) / (TOKENS - 1), 300 - x * 270
    for k in range(5):
        x, y = at(0, k / 4)
        c.line((x, y), (WIDTH - 20, y), colour="line", width=0.7)
        c.text(x - 8, y + 5, f"{k / 4:g}", "faint", "end", "small")
    x, _ = at(window - 1, 0)
    c.line((x, 30), (x, 306), colour="line", width=1, dash="3 3")
    for i in (1, window, 16, 32, 48, TOKENS):
        c.text(at(i - 1, 0)[0], 322, str(i), "faint", "middle", "small")
    for kind, _ in INPUTS:
        for windowed, colour in ((True, "a"), (False, "b")):
            c.line(*(at(i, x) for i, x in enumerate(mean_mass(found[kind], windowed))), colour=colour, width=2,
                   dash="6 4" if kind == "repeat" else None)
    for k, (words, colour, dash) in enumerate((("no window", "b", None), (f"a window of {window}", "a", None),
                                               (INPUTS[0][1], "ink", None), (INPUTS[1][1], "ink", "6 4"))):
        x, y = 50 + 180 * (k // 2), 352 + 24 * (k % 2)
        c.line((x, y - 5), (x + 28, y - 5), colour=colour, width=2, dash=dash)
        c.text(x + 36, y, words, colour, kind="small")
    c.text(50, 398, "rows; the mass of the keys, one less the sink's weight", "faint", kind="small")
    return c


def pictures(program, root):
    found = measured(program, root)
    return {"census-heads": heads(found["random"]), "census-mass": mass(found)}
