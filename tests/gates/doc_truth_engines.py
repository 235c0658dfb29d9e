# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The table and the picture of engines against certified truth, from what `make truth-engines` kept; for doc_pages.py.

`<!-- table truth-engines -->` shows a row for each engine of doc/book/data/truth-engines.json.
"""
import json

KEPT = "doc/book/data/truth-engines.json"
SHOWN = (0, 11, 23)


def kept(root):
    path = root / KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def by_layer(engine):
    """{layer: upper bound of the root mean square of the errors of M12}."""
    return {p["layer"]: p["rms"][1] for p in engine["points"] if p["point"] == "M12"}


def logits(engine):
    return next((p["rms"][1] for p in engine["points"] if p["point"] == "F2"), None)


def number(x):
    return "—" if x is None else f"{x:.3g}"


def part(some, all):
    return f"{some:,} of {all:,}"


def row(engine):
    layers, argmax = by_layer(engine), engine["argmax"]
    experts = engine["experts"]
    return [engine["title"], *(number(layers.get(layer)) for layer in SHOWN), number(logits(engine)),
            part(experts["otherwise"], experts["choices"]),
            part(argmax["agrees"], argmax["tokens"] - argmax["open"]) if argmax else "—"]


def table(root):
    """The lines below the marker."""
    heads = ["engine", *(f"layer {layer}" for layer in SHOWN), "logits", "other experts", "argmax agrees"]
    told = kept(root)
    rows = [heads, ["---"] * len(heads), *(row(each) for each in (told["engines"] if told else []))]
    return ["", *(f"| {' | '.join(cells)} |" if cells[0] != "---" else "|" + "---|" * len(heads) for cells in rows)]
