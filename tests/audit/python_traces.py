# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Traces of what serving does, for python_inside.py: behind a prefix, packed, with a log-sum-exp."""
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import sinkproof
from drilled_kernels import attended
from sinkproof.adapters._record import Record

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


def check_prefix(room):
    """A trace behind a prefix that is given as tokens: what reads it in the first layer is decided, and nothing honest is
    convicted or suspicious."""
    by_head = ("A6", "A9", "A10")
    for policy, first in (("f32", 24), ("f32", 1), ("openai-bf16", 24), ("bf16", 39)):
        whole = room.trace if policy == "f32" else sinkproof.run(room.model, TOKENS, policy=policy)
        cut = {name: value[:, first:] if name.endswith(by_head) else value[first:] for name, value in whole.items()}
        some = {name: value for name, value in cut.items() if name in ("tokens", "positions") or name.endswith(("A4.q", "A4.k", "A2.v", "A11"))}
        for of, arrays in (("all points", cut), ("attention alone", some)):
            found = sinkproof.judge(room.model, {**arrays, "prefix": TOKENS[:first]}, policy, **FAST)
            room.ok(found.ok and not found["00.A11"].undecided and (of != "all points" or not found["00.A6"].undecided),
                    f"{policy}, {of} behind {first} tokens that are named: the first layer is decided", found)
    first, layer = 24, 0
    q, k, v = (room.trace[f"{layer:02d}.{name}"] for name in ("A4.q", "A4.k", "A2.v"))
    sinks = room.model.weight("sinks", layer).reshape(-1).astype(np.float32)
    cut = {name: value[first:] for name, value in room.trace.items() if name in ("tokens", "positions", "00.A4.q", "00.A4.k", "00.A2.v")}
    for text, begin, window, bug in (("as it is", 0, int(room.model.number("window")), False), ("its window lost", 0, 0, True),
                                     ("the prefix unread", first, int(room.model.number("window")), True)):
        out = attended(q[first:], k[begin:], v[begin:], sinks, window, first - begin)
        found = sinkproof.judge(room.model, {**cut, "00.A11": out, "prefix": TOKENS[:first]}, "f32", **FAST)
        room.ok((found.first == "00.A11") == bug and not found["00.A11"].undecided, f"behind a prefix, {text}", found)
        blind = sinkproof.judge(room.model, {**cut, "00.A11": out}, "f32", **FAST)
        room.ok(blind.first is None or bug, "without it nothing more is said of what is honest", blind)
    again = saved(room, sinkproof.Trace({**cut, "prefix": TOKENS[:first]}))
    room.ok(again["prefix"].tolist() == TOKENS[:first], "it is saved and read", again)
    wrong = [9, *TOKENS[1:first]]
    rest = {name: value[:, first:] if name.endswith(by_head) else value[first:] for name, value in room.trace.items()}
    found = sinkproof.judge(room.model, {**rest, "prefix": wrong}, "f32", **FAST)
    room.ok(found.first == "01.A6", "another prefix than the one that was read is convicted", found.first)
    room.refused("too few tokens", "24 of them, found 3", lambda: sinkproof.judge(room.model, {**rest, "prefix": [1, 2, 3]}, "f32"))
    room.refused("before a trace from the start", "0 of them, found 3",
                 lambda: sinkproof.judge(room.model, {**room.trace, "prefix": [1, 2, 3]}, "f32"))


def decoded(parts, firsts, kept):
    """The last rows of each part, from `firsts` on, with the last `kept` keys and values before them."""
    made = {"cu_seqlens": np.cumsum([0, *(len(part["tokens"]) - first for part, first in zip(parts, firsts))]).astype(np.int32),
            "cu_seqlens_k": np.cumsum([0, *(len(part["tokens"]) - first + keys for part, first, keys
                                           in zip(parts, firsts, kept))]).astype(np.int32)}
    rows, columns = made["cu_seqlens"], made["cu_seqlens_k"]
    for name in parts[0]:
        if name.endswith(("A6", "A9", "A10")):
            heads, sink = len(parts[0][name]), name.endswith("A9")
            whole = np.zeros((heads, rows[-1], columns[-1] + sink), np.float32)
            for s, (part, first, keys) in enumerate(zip(parts, firsts, kept)):
                one = part[name][:, first:, first - keys:]
                whole[:, rows[s]:rows[s + 1], columns[s]:columns[s + 1]] = one[..., :-1] if sink else one
                if sink:
                    whole[:, rows[s]:rows[s + 1], -1] = one[..., -1]
            made[name] = whole
        else:
            cached = name.endswith(("A4.k", "A2.v"))
            made[name] = np.concatenate([part[name][first - keys if cached else first:] for part, first, keys in zip(parts, firsts, kept)])
    return made


def check_calls(room):
    """The lengths of calls: kept, of a padded batch too, and refused where they do not add up."""
    trace = {name: value for name, value in room.trace.items() if not name.endswith(("A6", "A9", "A10"))}
    again = saved(room, sinkproof.Trace(trace, {"calls": "16,16,8x1"}))
    room.ok(again.metadata["calls"] == "16,16,8x1" and sinkproof.judge(room.model, again, "f32", **FAST).ok, "calls are saved and read")
    parts = [dict(sinkproof.run(room.model, tokens, policy="f32")) for tokens in (TOKENS[:7], TOKENS[9:20])]
    packed = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if not name.endswith(("A6", "A9", "A10"))}
    packed["cu_seqlens"] = np.array([0, 7, 18], np.int32)
    for said in ("7;10,1", "3,4x1;11"):
        found = sinkproof.judge(room.model, sinkproof.Trace(packed, {"calls": said}), "f32", **FAST)
        room.ok(found.ok, f"calls {said} of two sequences", found)
    for said in ("16,16", "16,16,9", "39,x1", "40;", "", "0,40", "99999999999999999999999", "2x9223372036854775828", "a", "40 "):
        room.refused(f"calls {said!r}", "metadata calls: expected lengths of calls that add up to 40 tokens of sequence 0, of 1",
                     lambda: sinkproof.judge(room.model, sinkproof.Trace(trace, {"calls": said}), "f32"))  # pylint: disable=cell-var-from-loop
    room.refused("a list for one of two", "add up to 7 tokens of sequence 0, of 2",
                 lambda: sinkproof.judge(room.model, sinkproof.Trace(packed, {"calls": "7"}), "f32"))
    record = Record(room.model)
    for tokens in (range(5), range(5), [], [3], [4], [5], range(9)):
        record.begin(tokens)
    room.ok(record.trace({}).metadata["calls"] == "2x5,3x1,9", "a tracer says the lengths of its calls", record.trace({}).metadata)


def check_caches(room):
    """Rows of several sequences, each over a cache of its own."""
    parts = [dict(sinkproof.run(room.model, tokens, policy="f32")) for tokens in (TOKENS[:7], TOKENS[9:29], TOKENS[3:9])]
    firsts, options = (5, 18, 3), {**FAST, "diagnosis": False}
    trace = decoded(parts, firsts, firsts)
    found = sinkproof.judge(room.model, trace, "f32", **options)
    open_ = [point.name for point in found.points if point.undecided and point.layer]
    room.ok(found.ok and not open_ and found["01.A11"].elements == 7 * 160, "rows over caches of three sequences are judged, and decided",
            open_, found)
    again = saved(room, sinkproof.Trace(trace))
    room.ok(again["cu_seqlens_k"].tolist() == [0, 7, 27, 33] and len(again["00.A2.v"]) == 33, "they are saved and read", again)
    few = sinkproof.judge(room.model, decoded(parts, firsts, (5, 15, 0)), "f32", **options)
    undecided = sorted(point.name for point in few.points if point.undecided and point.layer == 1)
    room.ok(few.ok and undecided == ["01.A11", "01.A6", "01.A9"] and few["01.A11"].undecided == 5 * 160,
            "of a sequence with a part of its cache, and of one without, the rows that read the rest are undecided", undecided, few)

    def attention(layer, own_keys):
        """A11, by the boundaries of the queries for those of the keys, if `own_keys`."""
        rows, keys, out = trace["cu_seqlens"], trace["cu_seqlens_k"], []
        sinks = room.model.weight("sinks", layer).reshape(-1).astype(np.float32)
        window = int(room.model.number("window")) if room.model.slides(layer) else 0
        for s, first in enumerate(firsts):
            begin = keys[s] + (first if own_keys else 0)
            k, v = (trace[f"{layer:02d}.{name}"][begin:keys[s + 1]] for name in ("A4.k", "A2.v"))
            q = trace[f"{layer:02d}.A4.q"][rows[s]:rows[s + 1]]
            out.append(attended(q, k, v, sinks, window, 0 if own_keys else first))
        return np.concatenate(out)

    some = {name: value for name, value in trace.items() if name.endswith(("tokens", "cu_seqlens", "cu_seqlens_k", "A4.q", "A4.k", "A2.v"))}
    some["positions"] = trace["positions"]
    for own_keys in (False, True):
        found = sinkproof.judge(room.model, {**some, "01.A11": attention(1, own_keys)}, "f32", **options)
        room.ok(found["01.A11"].verdict == ("bug" if own_keys else "within") and (", sequence " in str(found)) == own_keys,
                f"attention {'of the own rows alone is convicted' if own_keys else 'over the caches is within'}", found)
    keys = trace["01.A4.k"].copy()
    keys[[0, 7]] = keys[[7, 0]]  # the first keys of two caches
    found = sinkproof.judge(room.model, {**trace, "01.A4.k": keys}, "f32", **options)
    room.ok(found.first == "01.A6", "the key of another sequence's cache is convicted", found.first, found)
    leak = trace["01.A10"].copy()
    leak[0, 0, 8] = 2.0 ** -30
    found = sinkproof.judge(room.model, {**trace, "01.A10": leak}, "f32", **options)
    room.ok(found.first == "01.A10" and found["01.A10"].outside == 1, "the least weight on a key of another cache is convicted", found.first)
    ends = np.array([0, 7, 28, 34], np.int32)
    for wrong, says in ((ends, "expected 2 to 20 keys of sequence 1, found 21"), (ends[:3], "cu_seqlens_k: expected whole numbers [4]")):
        room.refused("keys that no sequence has", says,
                     lambda: sinkproof.judge(room.model, {**trace, "cu_seqlens_k": wrong}, "f32"))  # pylint: disable=cell-var-from-loop


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
    room.refused("two layouts", "01.A9.lse: expected shape [10, 40], found [40, 10]",
                 lambda: sinkproof.judge(room.model, {**some, "00.A9.lse": lse(0, True), "01.A9.lse": lse(1, True).T}, "f32"))
    few = {name: value[:10] for name, value in some.items()}
    few["00.A9.lse"] = lse(0, True)[:, :10]
    room.refused("as many tokens as heads", "says not which is the head", lambda: sinkproof.judge(room.model, few, "f32"))


def check_gradients(room):
    """A trace with gradients, as the command writes it: read, built from arrays, saved and judged."""
    command = pathlib.Path(__file__).resolve().parents[2] / (os.environ.get("SINKPROOF") or "build/release/sinkproof")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.safetensors"
        subprocess.run([command, "run", "synthetic:tiny", "--tokens", "3,14,15,9", "--backward", "--trace", path],
                       check=True, capture_output=True)
        trace = sinkproof.Trace.load(path, room.model)
        said = str(sinkproof.judge(room.model, path, "real-f64", **FAST)).replace(str(path), "(memory)")
    room.ok(trace["03.dsink"].shape == (10,) and trace["00.dA11"].shape == (4, 10, 16) and "142 gradients" in repr(trace),
            "a trace's gradients are read", trace)
    again = saved(room, trace)
    room.ok(set(again) == set(trace) and all(np.array_equal(again[name], trace[name]) for name in trace),
            "they are saved and read, bit for bit", sorted(set(again) ^ set(trace)))
    found = str(sinkproof.judge(room.model, sinkproof.Trace(dict(trace), trace.metadata), "real-f64", **FAST))
    room.ok(found == said, "arrays with gradients are judged as the file is", found, said)
    room.refused("a gradient of another shape", "02.dW.q: expected shape [160, 96], found [96, 160]",
                 lambda: sinkproof.judge(room.model, {**trace, "02.dW.q": trace["02.dW.q"].T}))
    room.refused("a gradient of no weight", "no such point or weight",
                 lambda: sinkproof.judge(room.model, {**trace, "02.dW.q_norm": trace["02.dsink"]}))


def check_truth(room):
    """A trace against a file of truth, with the judgement and alone."""
    with tempfile.TemporaryDirectory() as folder:
        path, tokens = os.path.join(folder, "truth"), [3, 1, 4]
        program = pathlib.Path(__file__).resolve().parents[2] / (os.environ.get("SINKPROOF") or "build/release/sinkproof")
        subprocess.run([program, "truth", "synthetic:tiny", "--tokens", "3,1,4", "--trace", path, "--points", "layers"],
                       check=True, capture_output=True)
        trace = sinkproof.run(room.model, tokens, policy="f32")
        both = [sinkproof.judge(room.model, trace, "f32", hint=False, truth=path, truth_alone=alone) for alone in (False, True)]
        rows = [[r for r in json.loads(said.to_json()) if r["id"].endswith("truth")] for said in both]
        room.ok(both[0].ok and both[1].exit_code == 4 and not both[1].points and len(rows[0]) == len(rows[1]) == 8 and
                rows[0][-1]["rms"] == rows[1][-1]["rms"] and all("Against certified truth: " in said.report for said in both),
                "a trace against certified truth, judged and alone", both[0].report[-900:], both[1].report[-900:])
        other = sinkproof.run(room.model, [3, 1, 5], policy="f32")
        room.refused("the truth of another prompt", "is the truth of another prompt: token 2: expected 5",
                     lambda: sinkproof.judge(room.model, other, "f32", hint=False, truth=path))
