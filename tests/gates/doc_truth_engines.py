# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tables and the pictures of engines against certified truth, from what `make truth-engines` kept; for doc_pages.py.

`<!-- table truth-engines -->` shows a row for each engine of doc/book/data/truth-engines.json, `truth-smollm2` so.
"""
import json

NAMES = ("truth-engines", "truth-smollm2")


def place(name):
    return f"doc/book/data/{name}.json"


def kept(root, name):
    path = root / place(name)
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


def row(engine, shown):
    layers, argmax, experts = by_layer(engine), engine["argmax"], engine["experts"]
    return [engine["title"], *(number(layers.get(layer)) for layer in shown), number(logits(engine)),
            *([part(experts["otherwise"], experts["choices"])] if engine["routing_certified"][1] else []),
            part(argmax["agrees"], argmax["tokens"] - argmax["open"]) if argmax else "—"]


def table(root, name):
    """The lines below the marker: the first layer, the middle one, the last."""
    told = kept(root, name)
    if told is None:
        return None
    last = max(layer for each in told["engines"] for layer in by_layer(each))
    shown = (0, last // 2, last)
    experts = ["other experts"] if told["engines"][0]["routing_certified"][1] else []
    heads = ["engine", *(f"layer {layer}" for layer in shown), "logits", *experts, "argmax agrees"]
    rows = [heads, *(row(each, shown) for each in told["engines"])]
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return ["", lines[0], "|" + "---|" * len(heads), *lines[1:]]
