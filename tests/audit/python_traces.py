# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Traces of what serving does, for python_inside.py: behind a prefix, packed, with a log-sum-exp."""
import pathlib
import tempfile

import numpy as np
import sinkproof

TOKENS, FAST = list(range(3, 43)), {"local": True, "hint": False}


def saved(room, trace):
    """The trace, written and read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.safetensors"
        trace.save(path)
        return sinkproof.Trace.load(path, room.model)


def check_later(room):
    """A trace that begins after position 0, with keys and values before it and without."""
    by_head, first = ("A6", "A9", "A10"), 24
    cut = {name: value[:, first:] if name.endswith(by_head) else value[first:] for name, value in room.trace.items()}
    found = sinkproof.judge(room.model, cut, "f32", **FAST)
    undecided = [point.name for point in found.points if point.verdict == "undecided"]
    room.ok(found.ok and undecided == ["01.A6", "01.A11", "03.A6", "03.A11"] and "before 24" in str(found),
            "the last tokens alone: what reads earlier keys and values is undecided", undecided, found)
    cached = {name: value for name, value in room.trace.items() if name.endswith(("A4.k", "A2.v"))}
    found = sinkproof.judge(room.model, {**cut, **cached}, "f32", **FAST)
    room.ok(found.ok and not any(point.undecided for point in found.points if point.layer),
            "with the cache all is decided", found)
    again = saved(room, sinkproof.Trace({**cut, **cached}))
    room.ok(again["positions"][0] == first and len(again["00.A4.k"]) == 40, "it is saved and read", again)
    wrong = {**cut, "positions": cut["positions"] + 1, **{name: cut[name] for name in cached}}
    found = sinkproof.judge(room.model, {name: value for name, value in wrong.items() if not name.endswith(by_head)},
                            "f32", **FAST)
    room.ok(found.first == "00.A4.q", "a position that is one too large is convicted", found.first)
    room.refused("weights of too few keys", "00.A6: expected shape [10, 40, 41], found [10, 40, 40]",
                 lambda: sinkproof.judge(room.model, {**room.trace, "positions": np.arange(1, 41)}, "f32"))


def check_packed(room):
    """Several sequences in one trace, end to end."""
    parts = [dict(sinkproof.run(room.model, tokens, policy="f32")) for tokens in (TOKENS[:7], TOKENS[9:20], TOKENS[3:6])]
    packed = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]
              if not name.endswith(("A6", "A9", "A10"))}
    packed["cu_seqlens"] = np.array([0, 7, 18, 18, 21], np.int32)
    found = sinkproof.judge(room.model, packed, "f32", hint=False)
    room.ok(found.ok and found["03.A11"].elements == 21 * 160 and "holds 3 sequences" in str(found)
            and "Against the truth" in str(found), "three sequences end to end are judged each as its own", found)
    again = saved(room, sinkproof.Trace(packed))
    room.ok(again["positions"].tolist() == [*range(7), *range(11), *range(3)] and len(again["cu_seqlens"]) == 5,
            "they are saved and read", again)
    alone = dict(sinkproof.run(room.model, packed["tokens"], policy="f32"))
    values = {name: array for name, array in alone.items() if name.endswith(("A11", "A2.v", "A12"))}
    found = sinkproof.judge(room.model, {**packed, **values}, "f32", **FAST)
    room.ok(found.verdict == "bug" and ", sequence " in str(found), "attention across a boundary is convicted, with the "
            "sequence", found)
    room.refused("ends that are not the tokens'", "cu_seqlens: expected whole numbers [sequences + 1] that ascend from 0 to 21",
                 lambda: sinkproof.judge(room.model, {**packed, "cu_seqlens": np.array([0, 7])}, "f32"))


def check_lse(room):
    """The log-sum-exp of an engine, in either convention and layout."""
    def lse(layer, sinks):
        z = room.trace[f"{layer:02d}.A6"].astype(np.float64)
        i, j = np.indices(z.shape[1:])
        z = np.where((j > i) | (room.model.slides(layer) & (i - j >= room.model.number("window"))), -np.inf, z)
        if sinks:
            b = room.model.weight("sinks", layer).reshape(-1, 1, 1)
            z = np.concatenate([z, np.broadcast_to(b, (*z.shape[:2], 1))], axis=2)
        return np.log(np.exp(z).sum(axis=2)).astype(np.float32)

    some = {name: value for name, value in room.trace.items() if name == "tokens" or name.endswith(("A4.q", "A4.k"))}
    for sinks, words in ((True, "fits with the sink, and not without it"), (False, "fits without the sink, and not with it")):
        for turned in (False, True):
            found = sinkproof.judge(room.model, {**some, **{f"{layer:02d}.A9.lse": lse(layer, sinks).T if turned
                                                            else lse(layer, sinks) for layer in range(2)}}, "f32", **FAST)
            room.ok(found["00.A9.lse"].verdict == "within" and found["01.A9.lse"].verdict == "within"
                    and words in str(found), f"a log-sum-exp {words}, {'[n, heads]' if turned else '[heads, n]'}", found)
    binary = sinkproof.Trace({**some, "00.A9.lse": lse(0, False) / np.float32(np.log(2))}, {"lse": "without-sink"})
    found = sinkproof.judge(room.model, binary, "f32", local=True)
    room.ok(found.first == "00.A9.lse" and "the same in base 2: " in str(found), "in base 2 it is convicted", found)
    room.ok(saved(room, binary).metadata["lse"] == "without-sink", "what is said is kept")
    room.refused("a convention that is none", "metadata lse: expected with-sink or without-sink, found maybe",
                 lambda: sinkproof.judge(room.model, sinkproof.Trace({**some, "00.A9.lse": lse(0, True)}, {"lse": "maybe"})))
    few = {name: value[:10] for name, value in some.items()}
    few["00.A9.lse"] = lse(0, True)[:, :10]
    room.refused("as many tokens as heads", "says not which is the head", lambda: sinkproof.judge(room.model, few, "f32"))
