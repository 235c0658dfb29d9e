# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes of fused attention, planted in its output with drawn numbers, while scores and weights are not shown: the
diagnosis names each with its numbers and its place, or names nothing. The attention here is of its own, in binary64.

    WHOLE=1 python3 tests/audit/test_attention_causes.py [SEED]   of all mistakes; a landing takes a sample
    ONLY=merge python3 tests/audit/test_attention_causes.py       of those whose name has it
"""
import json
import math
import os
import pathlib
import random
import re
import struct
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
from attention_planted import (DIM, GROUPS, HEADS, MISTAKES, MODEL, N, NEAR_MISSES, Query, Run, earlier_passes_unread,  # noqa: E402
                               query, setting, sink_plus)
from attention_planted_access import ACCESS  # noqa: E402
from attention_planted_codes import CODES  # noqa: E402
from attention_planted_kernels import KERNELS, last_tile_not_summed, to_bfloat16  # noqa: E402
from attention_planted_more import MORE  # noqa: E402
from attention_planted_passes import PASSES, foreign  # noqa: E402
from attention_planted_ranges import RANGES  # noqa: E402
from checkpoints import numbers_of, read, report, run, safetensors, sinkproof  # noqa: E402


# How many of each kind a landing takes.
SAMPLE = ((MISTAKES, 3), (MORE, 3), (KERNELS, 3), (PASSES, 2), (RANGES, 2), (CODES, 1), (ACCESS, 2))


def causes(path, policy="f32"):
    """(exit, ids that explain the output, seconds of the whole report)."""
    began = time.monotonic()
    status, out, told = sinkproof("judge", MODEL, str(path), "--policy", policy, "--local", "--no-hint", "--json", str(path) + ".json")
    took = time.monotonic() - began
    found = json.loads(pathlib.Path(str(path) + ".json").read_text())["results"][0]["diagnosis"]
    told = [([f["mistakes"], *f["indistinguishable"]] if f["mistakes"] else [], f["positions"]) for f in found]
    return status, [["+".join(ids) + (f"@position={rows[0]}" if rows else "") for ids in one] for one, rows in told], took


def planted(work):
    draw = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 37)
    honest = Run(work, 7)
    honest.trace(work / "t.safetensors", 1, query(lambda q: None))
    status, told, _ = causes(work / "t.safetensors")
    report(status != 1 and told == [], f"an honest output has no cause: exit {status}, {told}")
    chosen = os.environ.get("ONLY")
    every = [*MISTAKES, *MORE, *KERNELS, *PASSES, *RANGES, *CODES, *ACCESS]
    if not chosen and "WHOLE" not in os.environ:
        every = [made for kind, count in SAMPLE for made in draw.sample(kind, count)]
    for made in every:
        if chosen and not re.search(chosen, made.__name__):
            continue
        layer, wrong, name = made(draw)
        path = work / "t.safetensors"
        honest.trace(path, layer, wrong)
        status, told, took = causes(path)
        alone = len(told) == 1 and any(re.search(name, one) for one in told[0])
        report(status == 1 and alone, f"{made.__name__} in layer {layer}: {name}, named {told} in {took:.1f} s")


# ---- weights that are shown

def foreign_keys_beside_weights(work):
    """The weights of queries that read keys which the trace has none of: each query's are smaller by a factor."""
    honest, path, layer, begin = Run(work, 7), work / "t.safetensors", 1, 28
    wrong = foreign(random.Random(3), 2, begin)
    honest.trace(path, layer, wrong)
    kept, metadata = read(path)
    for point, more in (("A9", 1), ("A10", 0)):
        dtype, shape, raw = honest.tensors[f"0{layer}.{point}"]
        numbers = list(numbers_of(dtype, raw))
        for row in range(begin, N):
            for head in range(HEADS):
                right, changed = Query(honest, layer, head, row), wrong.of(honest, layer, head, row)
                own, all_of = (q.sums(q.keys)[0] + math.exp(q.b) for q in (right, changed))
                for at in range((head * N + row) * (N + more), (head * N + row + 1) * (N + more)):
                    numbers[at] *= own / all_of
        kept[f"0{layer}.{point}"] = (dtype, shape, struct.pack(f"<{len(numbers)}f", *numbers))
    dtype, shape, raw = kept[f"0{layer}.A11"]  # rows of few keys are as the engine wrote them: a product of numbers that are shown
    kept[f"0{layer}.A11"] = (dtype, shape, honest.tensors[f"0{layer}.A11"][2][:len(raw) // N * begin] + raw[len(raw) // N * begin:])
    kept[f"0{layer}.A6"] = honest.tensors[f"0{layer}.A6"]
    path.write_bytes(safetensors(kept, metadata))
    status, told, took = causes(path)
    named = sorted(one[0] for one in told if one)
    wanted = ["A11-foreign-values-2", "A9-foreign-keys"]
    report(status == 1 and all(any(name.startswith(want) for name in named) for want in wanted) and len(told) <= 3,
           f"keys that are not in the sequence, weights shown: {wanted}, named {told} in {took:.1f} s")
    text = json.dumps(json.loads(pathlib.Path(str(path) + ".json").read_text()))
    report("has two vectors added" in text and "smaller by a factor of each query" in text, "the sentences say which numbers are in which tensor")


# ---- traces of several sequences, and of a later begin

def ints(values):
    return struct.pack(f"<{len(values)}i", *values)


def packed(work, honest, path, layer, wrong, crosses=False):
    """The honest run's rows as two sequences: its own, and its first rows again."""
    short = 20
    tokens = struct.unpack(f"<{N}i", honest.tensors["tokens"][2])
    kept = {"tokens": ("I32", [N + short], ints([*tokens, *tokens[:short]])),
            "positions": ("I32", [N + short], ints([*range(N), *range(short)])),
            "cu_seqlens": ("I32", [3], ints([0, N, N + short]))}
    for point in (f"0{layer}.A4.q", f"0{layer}.A4.k", f"0{layer}.A2.v", "00.M12"):
        dtype, shape, raw = honest.tensors[point]
        kept[point] = (dtype, [N + short, *shape[1:]], raw + raw[:len(raw) // N * short])
    out = [x for row in range(N) for head in range(HEADS) for x in wrong(honest, layer, head, row)]
    if crosses:
        second = [x for row in range(short) for head in range(HEADS) for x in across(honest, layer, head, row)]
        out = [x for row in range(N) for head in range(HEADS) for x in Query(honest, layer, head, row).output()]
    else:
        second = out[:HEADS * DIM * short]
    kept[f"0{layer}.A11"] = ("F32", [N + short, HEADS, DIM], struct.pack(f"<{len(out + second)}f", *out, *second))
    path.write_bytes(safetensors(kept, {k: v for k, v in honest.metadata.items() if k != "tokens"}))


def across(run, layer, head, row):
    """A row of the second sequence that sees the first one too."""
    q = Query(run, layer, head, row)
    q.keys = [(j, j, 0.0) for j in range(N)] + [(j, j, 0.0) for j in range(row + 1)]
    return q.output()


def later(honest, path, layer, wrong, begin):
    """The rows from position `begin` on, with the keys and values of all."""
    kept = {"tokens": ("I32", [N - begin], honest.tensors["tokens"][2][4 * begin:]),
            "positions": ("I32", [N - begin], ints(range(begin, N)))}
    for point in ("A4.k", "A2.v"):
        kept[f"0{layer}.{point}"] = honest.tensors[f"0{layer}.{point}"]
    for point in (f"0{layer}.A4.q", "00.M12"):
        dtype, shape, raw = honest.tensors[point]
        kept[point] = (dtype, [N - begin, *shape[1:]], raw[len(raw) // N * begin:])
    out = [x for row in range(begin, N) for head in range(HEADS) for x in wrong(honest, layer, head, row)]
    kept[f"0{layer}.A11"] = ("F32", [N - begin, HEADS, DIM], struct.pack(f"<{len(out)}f", *out))
    path.write_bytes(safetensors(kept, honest.metadata))


def sequences(work):
    draw = random.Random(11)
    honest = Run(work, 7)
    path = work / "t.safetensors"
    for made, cut in ((sink_plus, False), (earlier_passes_unread, True)):
        layer, wrong, name = made(draw)
        if not cut:
            packed(work, honest, path, layer, wrong)
        else:
            later(honest, path, layer, wrong, 16)
        status, told, took = causes(path)
        how = "from position 16 on" if cut else "in two sequences"
        report(status == 1 and len(told) == 1 and any(re.search(name, one) for one in told[0]),
               f"{made.__name__} {how}: {name}, named {told} in {took:.1f} s")
    packed(work, honest, path, 1, lambda *_: [0.0], crosses=True)
    status, told, took = causes(path)
    report(status == 1 and told == [["mask-across-sequences"]], f"keys of the sequence before: named {told} in {took:.1f} s")


def fused(work):
    """A kernel that rounds its output alone, under a policy that rounds scores and weights to bfloat16."""
    draw = random.Random(3)
    narrow = Run(work, 7, "hf-bf16")
    narrow.sinks = Run(work, 7).sinks
    path = work / "t.safetensors"
    for layer, wrong, name in (last_tile_not_summed(draw), (1, query(lambda q: None), None)):
        narrow.trace(path, layer, lambda *at: [to_bfloat16(x) for x in wrong(*at)])
        status, told, took = causes(path, "hf-bf16")
        right = len(told) == 1 and any(re.search(name + r"\+kernel$", one) for one in told[0]) if name else \
            all(re.match(r"kernel$|A\d+[.\w]*-(bf16|f32|real)$", one) for ids in told for one in ids)
        report(status == 1 and right, f"a fused kernel under hf-bf16: {name or 'nothing wrong'}, named {told} in {took:.1f} s")


def simplest_first(work):
    """Half a sink is every key of a window counted twice, by more rules than are listed."""
    path = work / "t.safetensors"
    Run(work, 7).trace(path, 0, query(setting(count=0.5)))
    status, told, took = causes(path)
    report(status == 1 and len(told) == 1 and told[0][:1] == ["sink-counted=0.5"] and len(told[0]) == 12,
           f"half a sink comes before twelve rules of keys: named {told} in {took:.1f} s")


def columns(work):
    """Shown weights of which the wrong column was dropped: each key has that of its neighbour."""
    honest = Run(work, 7)
    path = work / "t.safetensors"
    with_sink = struct.unpack(f"<{HEADS * N * (N + 1)}f", honest.tensors["01.A9"][2])
    for name, first in (("first", 1), ("last", 0)):
        rows = [with_sink[at * (N + 1):(at + 1) * (N + 1)] for at in range(HEADS * N)]
        weights = [row[1:] if first else row[-1:] + row[:N - 1] for row in rows]
        out = [sum(w * x for w, x in zip(weights[h * N + i], honest.v[1][h // (HEADS // GROUPS) * DIM + k::GROUPS * DIM]))
               for i in range(N) for h in range(HEADS) for k in range(DIM)]
        kept = {n: t for n, t in honest.tensors.items() if not re.match(r"00\.|F|01\.(A1[0123]|M)", n)}
        kept["00.M12"] = honest.tensors["00.M12"]
        kept["01.A10"] = ("F32", [HEADS, N, N], struct.pack(f"<{HEADS * N * N}f", *(w for row in weights for w in row)))
        kept["01.A11"] = ("F32", [N, HEADS, DIM], struct.pack(f"<{len(out)}f", *out))
        path.write_bytes(safetensors(kept, honest.metadata))
        status, told, took = causes(path)
        report(status == 1 and told == [[f"columns-without-{name}"]], f"the {name} column dropped: named {told} in {took:.1f} s")


def near_misses(work):
    draw = random.Random(5)
    honest = Run(work, 7)
    for made in NEAR_MISSES if "WHOLE" in os.environ else NEAR_MISSES[1:2]:
        honest.trace(work / "t.safetensors", 1, made(draw))
        status, told, took = causes(work / "t.safetensors")
        report(status == 1 and told == [[]], f"{made.__name__}: convicted and not named, {told} in {took:.1f} s")


if __name__ == "__main__":
    sys.exit(run(fused, columns) if os.environ.get("ONLY") == "fused" else run(planted) if "ONLY" in os.environ
             else run(planted, foreign_keys_beside_weights, sequences, fused, simplest_first, columns, near_misses))
