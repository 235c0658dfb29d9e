# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes planted in traces of what serving does, which begin behind a prefix: the diagnosis names each as in a trace from
position 0, whether the trace has the keys and values before it, names their tokens, or says nothing of them.

    ONLY=window python3 tests/audit/test_serving_causes.py       of those whose name has it
    WHOLE=1 python3 tests/audit/test_serving_causes.py           in every form that tells a mistake; a landing takes one
"""
import datetime
import json
import os
import pathlib
import re
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
from attention_planted import DIM, HEADS, MODEL, N, WINDOW, Query, Run, query, setting  # noqa: E402
from checkpoints import numbers_of, read, report, run, safetensors, sinkproof  # noqa: E402

BEGIN, PAGE = 28, 4
WHOLE, DAY = "WHOLE" in os.environ or "ONLY" in os.environ, datetime.date.today().toordinal()


def ints(values):
    return ("I32", [len(values)], struct.pack(f"<{len(values)}i", *values))


def behind(tensors, begin, form):
    """The rows from position `begin` on: "cache" with the keys and values of all, "named" with the tokens before, or
    "alone"."""
    kept = {}
    for name, (dtype, shape, raw) in tensors.items():
        point = name.split(".", 1)[-1]
        if point in ("A6", "A9", "A10"):
            row = len(raw) // shape[0] // N
            raw = b"".join(raw[h * N * row + begin * row:(h + 1) * N * row] for h in range(shape[0]))
            kept[name] = (dtype, [shape[0], N - begin, *shape[2:]], raw)
        elif form == "cache" and point in ("A4.k", "A2.v"):
            kept[name] = (dtype, shape, raw)
        else:
            kept[name] = (dtype, [N - begin, *shape[1:]], raw[len(raw) // N * begin:])
    if form == "named":
        kept["prefix"] = ("I32", [begin], tensors["tokens"][2][:4 * begin])
    return kept


def judged(path, policy="f32"):
    """(exit, [(points, causes, positions)], the report)"""
    status, said, _ = sinkproof("judge", MODEL, str(path), "--policy", policy, "--local", "--no-hint", "--json", str(path) + ".json")
    found = json.loads(pathlib.Path(str(path) + ".json").read_text())["results"][0]["diagnosis"]
    return status, [(f["points"], ["+".join(ids) for ids in [f["mistakes"], *f["indistinguishable"]]] if f["mistakes"] else [],
                     f["positions"]) for f in found], said


RUNS = {}


def run_of(work, seed):
    if seed not in RUNS:
        RUNS[seed] = Run(work, seed)
    return RUNS[seed]


def chosen(name):
    return re.search(os.environ.get("ONLY", ""), name)


# ---- attention: (what is wrong, its layer, what is in the name, forms that tell it)

def keys(of):
    return query(setting(keys=lambda q: [(j, v, 0.0) for j, v in of(q)]))


def windowed(q, width):
    return [(j, j) for j in range(max(0, q.row - width + 1), q.row + 1)]


ATTENTION = {
    "the window lost": (keys(lambda q: windowed(q, N)), 0, "window-off", ("cache",)),
    "the window one key too wide": (keys(lambda q: windowed(q, WINDOW + 1)), 0, "window-wide", ("named", "alone")),
    "the cached keys unread": (keys(lambda q: [(j, j) for j in range(BEGIN, q.row + 1)]), 1, f"passes={BEGIN}|from-key={BEGIN}", ("cache",)),
    "the last page of the prefix twice": (keys(lambda q: sorted([*windowed(q, N), *((j, j) for j in range(BEGIN - PAGE, BEGIN))])), 1,
                                          f"twice={BEGIN - PAGE}-{BEGIN - 1}", ("cache",)),
    "the last page of the prefix unread": (keys(lambda q: [(j, j) for j, _ in windowed(q, N) if not BEGIN - PAGE <= j < BEGIN]), 1,
                                           f"left-out={BEGIN - PAGE}-{BEGIN - 1}|as-row-{BEGIN - PAGE - 1}@passes={BEGIN}", ("cache",)),
    "the sink once more": (query(setting(count=2.0)), 0, "sink-counted=2", ("alone",)),
    "scores without their scale": (query(setting(scale=float(DIM) ** 0.5)), 0, "score-unscaled|score-times=4", ("named",)),
    "as it is": (query(lambda q: None), 1, None, ("cache", "named", "alone")),
}
# Two that leave keys out: a landing takes one, by the day.
UNREAD = ("the cached keys unread", "the last page of the prefix unread")


def attention(work):
    honest, path = run_of(work, 7), work / "t.safetensors"
    for text, (wrong, layer, name, forms) in ATTENTION.items():
        if not chosen(text) or text == UNREAD[DAY % 2] and not WHOLE:
            continue
        honest.trace(path, layer, wrong)
        tensors, metadata = read(path)
        for form in forms if name is None or WHOLE else forms[:1]:
            path.write_bytes(safetensors(behind(tensors, BEGIN, form), metadata))
            status, told, said = judged(path)
            alone = len(told) == 1 and any(re.search(name, one) for one in told[0][1]) if name else not told
            open_ = form == "alone" and name is not None
            alone = alone and ("every element that is decided is inside" in said) == open_
            report((status == 1) == (name is not None) and alone, f"{text}, {form}: {name}, exit {status}, named {told}", [said])


def another_prefix(work):
    """Keys and values of another sequence before the trace's own: told as such, or not at all."""
    honest, other, path = run_of(work, 7), run_of(work, 8), work / "t.safetensors"
    right = [each[0] for each in (honest.k, honest.v)]
    wrong = [[*theirs[0][:BEGIN * len(ours) // N], *ours[BEGIN * len(ours) // N:]] for ours, theirs in zip(right, (other.k, other.v))]
    honest.k[0], honest.v[0] = wrong
    honest.trace(path, 0, query(lambda q: None))
    honest.k[0], honest.v[0] = right
    tensors, metadata = read(path)
    path.write_bytes(safetensors(behind(tensors, BEGIN, "cache"), metadata))
    status, told, said = judged(path)
    report(status == 1 and all("foreign" in one for _, causes, _ in told for one in causes),
           f"the prefix of another sequence is a bug of exit {status}, and has no other cause: {told}", [said])


# ---- sequences end to end, each with a cache of its own

def packed(of, begins):
    """Rows of several traces from their `begins` on, behind the keys and values of all of each."""
    kept = {"cu_seqlens": ints(sums(N - begin for begin in begins)), "cu_seqlens_k": ints(sums(N for _ in begins)),
            "positions": ints([row for begin in begins for row in range(begin, N)])}
    for name, (dtype, shape, raw) in of[0].items():
        cached = name.endswith(("A4.k", "A2.v"))
        parts = [each[name][2][0 if cached else len(raw) // N * begin:] for each, begin in zip(of, begins)]
        if name != "positions":
            kept[name] = (dtype, [sum(map(len, parts)) * shape[0] // len(raw), *shape[1:]], b"".join(parts))
    return kept


def sums(counts):
    out = [0]
    for count in counts:
        out.append(out[-1] + count)
    return out


def sequences(work):
    """What acts from a position on does so in each sequence; the causes are those of each alone. What all sequences have in
    common is told of all."""
    from_then_on = [query(setting(count=2.5), where=lambda head, row: row >= 33), "sink-counted=2.5@position=33", "from position 33 on"]
    everywhere_ = [query(setting(count=3.0)), "sink-counted=3", "[sink-counted=3]"]
    for (wrong, name, words), begins, alone in ((from_then_on, (0, 20), [0, 1]), (everywhere_, (0, 20), [None])):
        each, path = [], work / "t.safetensors"
        for seed in (7, 8):
            honest = run_of(work, seed)
            honest.trace(path, 0, wrong)
            each.append({name: tensor for name, tensor in read(path)[0].items() if re.match(r"tokens|positions|00.A(4|2.v|11)", name)})
        path.write_bytes(safetensors(packed(each, begins), {k: v for k, v in honest.metadata.items() if k != "tokens"}))
        status, told, said = judged(path)
        found = json.loads(pathlib.Path(str(path) + ".json").read_text())["results"][0]["diagnosis"]
        report(status == 1 and words in said and all(name in causes for _, causes, _ in told) and [f.get("sequence") for f in found] == alone,
               f"{name} of sequences from {begins} on: exit {status}, named {told} in {alone}", [said])


# ---- calls

def calls(work):
    """Values of the passes before a query's own, which are half of what they are: the passes are those that the trace names.
    Their lengths are not guessed from the rows that fail."""
    def begin(row):
        return 0 if row < 10 else row - (row - 10) % 14

    def halved(q):
        whole, b = q.value, begin(q.row)
        q.value = lambda j: [x / 2 for x in whole(j)] if j < b else whole(j)
    honest, path = run_of(work, 7), work / "t.safetensors"
    honest.trace(path, 1, query(halved))
    tensors, metadata = read(path)
    path.write_bytes(safetensors(tensors, {**metadata, "calls": "10,2x14,6"}))
    status, told, said = judged(path)
    report(status == 1 and [causes for _, causes, _ in told] == [["cached-v-times=0.5@passes=10+14"]],
           f"the lengths of calls: exit {status}, named {told}", [said])


# ---- what needs no prefix

def everywhere(work):
    """Positions that restart behind the prefix; a factor at a norm."""
    honest, path = run_of(work, 7), work / "t.safetensors"
    tokens = struct.unpack(f"<{N}i", honest.tensors["tokens"][2])
    status, _, told = sinkproof("run", MODEL, "--policy", "f32", "--tokens", ",".join(map(str, tokens[BEGIN:])), "--trace", str(work / "anew"))
    assert status == 0, told
    anew = read(work / "anew")[0]
    few = {name: tensor for name, tensor in honest.tensors.items() if re.match(r"tokens|positions|T0|00\.A[1-4](\.|$)", name)}
    for form in ("cache", "alone"):
        cut = behind(few, BEGIN, form)
        for name in ("00.A4.q", "00.A4.k"):
            dtype, shape, raw = cut[name]
            cut[name] = (dtype, shape, raw[:len(raw) - len(anew[name][2])] + anew[name][2])
        path.write_bytes(safetensors(cut, honest.metadata))
        status, told, said = judged(path)
        report(status == 1 and [(points[0], *causes) for points, causes, _ in told] == [("00.A4.q", "A4.q-positions-other"), ("00.A4.k", "A4.k-positions-other")]
               and f"0 to {N - BEGIN - 1} at positions {BEGIN}-{N - 1}" in said,
               f"positions that restart behind the prefix, {form}: exit {status}, named {told}", [said])
    form = "named"
    cut = behind(few, BEGIN, form)
    dtype, shape, raw = cut["00.A1"]
    cut["00.A1"] = (dtype, shape, struct.pack(f"<{len(raw) // 4}f", *(1.5 * x for x in numbers_of(dtype, raw))))
    path.write_bytes(safetensors({name: cut[name] for name in cut if not re.match(r"00\.A[234]", name)}, honest.metadata))
    status, told, said = judged(path)
    report(status == 1 and len(told) == 1 and told[0][0] == ["00.A1"] and any("1.5" in one for one in told[0][1]),
           f"a norm 1.5 times too large, {form}: exit {status}, named {told}", [said])


sys.exit(run(attention, another_prefix, sequences, calls, everywhere))
