# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Pictures of the planted circuit: `sinkproof gpt2` under each intervention, run here."""
import json

import runs
from canvas import WIDTH, Canvas

TOKENS = 24
NAMES = {"none": "none", "zero-bq": "no query bias", "swap-epe": "swap 1:2", "move-epe": "move 1:2", "zero-bos": "first token 0",
         "zero-wk-rows": "massive rows 0", "zero-wk-random": "random rows 0"}


def measured(program, root, model, *options):
    said = runs.run(program, root, "gpt2", model, "--tokens", f"random:{TOKENS}", *options, "--json", "-")
    return json.loads(said)["results"][0]


def weights(panel, key):
    """The weight of a key in each layer, mean over the heads."""
    return [sum(head[key] for head in layer) / len(layer) for layer in panel["alpha"]]


def panels(circuit, null):
    """Positions 1 and 2 in each layer, under each intervention, and in the null model."""
    rows = [(NAMES[p["panel"]], weights(p, 0), weights(p, 1)) for p in circuit["panels"]]
    bare = [layer["alpha"] for layer in null["layers"]]
    rows.append(("the null model", [a[0] for a in bare], [a[1] for a in bare]))
    first, second = {name: a[-1] for name, a, _ in rows}, {name: b[-1] for name, _, b in rows}
    c = Canvas(78 + 32 * len(rows), "For each intervention a row of twelve layers, in each a cell for position 1 and one for position 2, the fuller the "
               f"more weight. Position 1 has {first['none']:.2f} in the last layer as the model is, {first[NAMES['zero-bq']]:.2f} without the query bias "
               f"and {first['the null model']:.2f} in the null model; with the exchange it has {first['move 1:2']:.2f}, and position 2 has "
               f"{second['move 1:2']:.2f}.")
    c.text(140, 20, "layer", "faint", "end", "small")
    for l in range(len(rows[0][1])):
        c.text(162 + 30 * l, 20, str(l + 1), "faint", "middle", "small")
    for k, (name, one, two) in enumerate(rows):
        y = 32 + 32 * k
        c.text(140, y + 18, name, None, "end", "small")
        for l, (a, b) in enumerate(zip(one, two)):
            c.rect(149 + 30 * l, y, 12, 25, "line", "a", a, 2, 0.7)
            c.rect(163 + 30 * l, y, 12, 25, "line", "b", b, 2, 0.7)
    y = 32 + 32 * len(rows)
    c.rect(149, y + 14, 12, 14, "line", "a", 1, 2, 0.7)
    c.text(168, y + 27, "position 1", kind="small")
    c.rect(263, y + 14, 12, 14, "line", "b", 1, 2, 0.7)
    c.text(282, y + 27, "position 2", kind="small")
    return c


def delta(circuit):
    """Delta of each position by layer, before the heads are split."""
    found = [layer["unsplit"]["delta"] for layer in circuit["layers"]]
    top = 160
    behind = [row[0] for row in found[1:]]
    others = max(abs(x) for row in found for x in row[1:])
    c = Canvas(300, f"Delta of every position against the layer. Position 1 is at {min(behind):.0f} to {max(behind):.0f} from the second layer on, "
               f"all others within {others:.2f} of 0.")

    def at(l, x):
        return 70 + l * (WIDTH - 100) / (len(found) - 1), 230 - x * 200 / top
    for x in (0, 50, 100, 150):
        _, y = at(0, x)
        c.line((54, y), (WIDTH - 20, y), colour="line", width=0.7)
        c.text(46, y + 5, str(x), "faint", "end", "small")
    for l, row in enumerate(found):
        c.text(at(l, 0)[0], 256, str(l + 1), "faint", "middle", "small")
        for x in row[1:]:
            c.dot(*at(l, x), r=3, colour="b")
        c.dot(*at(l, row[0]), r=5, colour="a")
    c.dot(70, 284, r=5, colour="a")
    c.text(82, 289, "position 1", kind="small")
    c.dot(186, 284, r=3, colour="b")
    c.text(198, 289, "the others", kind="small")
    c.text(WIDTH - 20, 289, "layer", "faint", "end", "small")
    return c


def pictures(program, root):
    circuit = measured(program, root, "synthetic:gpt2-circuit", "--panel")
    return {"circuit-panels": panels(circuit, measured(program, root, "synthetic:gpt2-null")), "circuit-delta": delta(circuit)}
