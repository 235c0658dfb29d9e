# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof compare A B`: what differs, beside what Python finds in the same two files; who is nearer the
truth, beside the judge; the baseline; and files that are no pair of traces.
"""
import json
import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import changed, report, sinkproof  # noqa: E402

MODEL = "synthetic:tiny"
TOKENS = "random:12"
CHOSEN = {"M4", "M5", "M6", "M8", "M9", "M10"}


def traced(work, name, policy, *words):
    path = work / name
    sinkproof("run", MODEL, "--tokens", TOKENS, "--policy", policy, "--trace", str(path), *words)
    return path


def read(path):
    """{name: (dtype, shape, [numbers])}; bfloat16 as float32."""
    return {name: (dtype, shape, checkpoints.numbers_of(dtype, raw))
            for name, (dtype, shape, raw) in checkpoints.read(path)[0].items()}


def compared(a, b, *words):
    status, said, wrong = sinkproof("compare", str(a), str(b), *words, "--json", "-")
    return status, json.loads(said)["results"] if said else wrong


def room(n):
    """How far two evaluations of the relative distance of n elements may be apart, of one of them: the difference, its
    square and the sum over n are n + 2 roundings under a root, the squares of the sizes n, the roots and the quotient
    three more. So each is off by gamma_k at most, k = n + 4, and 2 gamma_k / (1 - gamma_k) = 2 k u / (1 - 2 k u)."""
    k = (n + 4) * 2.0 ** -53
    return 2 * k / (1 - 2 * k)


def whole(work):
    """Every figure of every point, of two policies whose experts differ somewhere."""
    a, b = traced(work, "a", "f32"), traced(work, "b", "openai-bf16")
    x, y = read(a), read(b)
    status, results = compared(a, b)
    k = x["00.M3"][1][1]
    rerouted = {name[:2]: {i for i in range(12) if x[name][2][k * i:k * i + k] != y[name][2][k * i:k * i + k]}
                for name in x if name.endswith(".M3")}
    wrong, order = [], [r["id"] for r in results]
    for r in results:
        p, q = x[r["id"]], y[r["id"]]
        row = len(p[2]) // p[1][0]
        out = rerouted[r["id"][:2]] if r["id"][3:] in CHOSEN else set()
        pairs = [(s, t) for i, (s, t) in enumerate(zip(p[2], q[2])) if i // row not in out]
        finite = [(s, t) for s, t in pairs if math.isfinite(s) and math.isfinite(t)]
        far = max((abs(s - t) for s, t in finite), default=0)
        relative = math.sqrt(sum((s - t) * (s - t) for s, t in finite)) / math.sqrt(sum(s * s for s, _ in finite))
        if r["id"].endswith("M3"):
            relative = sum(s != t for s, t in pairs) / len(pairs)
        if (r["elements"], r["differing"], r["largest"]) != (len(pairs), sum(s != t for s, t in pairs), far) \
                or not abs(r["relative"] - relative) <= room(len(finite)) * relative:
            wrong.append(f"{r['id']}: {r}, expected {len(pairs)}, {far}, {relative}")
    points = [(line + " -").split()[0] for line in sinkproof("judge", MODEL, str(a), "--policy", "f32", "--local", "--all")[1].splitlines()]
    forward = [n for n in points if n in x]
    report(status == 1 and not wrong and order == forward and sum(map(len, rerouted.values())) > 0,
           f"compare.points as Python finds them: points={len(results)} rerouted={sum(map(len, rerouted.values()))}",
           wrong + [f"exit {status}"])
    _, near = compared(a, b, "--model", MODEL)
    _, judged, _ = sinkproof("judge", MODEL, str(b), "--policy", "openai-bf16", "--json", "-")
    known = {r["id"]: r["error"] for r in json.loads(judged)["results"] if "error" in r}
    off = [r["id"] for r in near if known.get(r["id"]) != r["error_b"]]
    nearer = sum(r["error_a"] < r["error_b"] for r in near if r["error_a"] is not None)
    report(not off and nearer > 80, f"compare.truth the errors that the judge finds; f32 is nearer at {nearer} points", off)
    status, said, _ = sinkproof("compare", str(a), str(b), "--model", MODEL)
    lines = {line.split()[0]: line.split() for line in said.splitlines() if len(line.split()) == 9}
    bad = [r["id"] for r in near if r["id"] in lines and r["error_a"] is not None and r["error_a"] != r["error_b"]
           and lines[r["id"]][8] != ("A" if r["error_a"] < r["error_b"] else "B")]
    report(len(lines) > 80 and not bad and all(len(line) <= 100 for line in said.splitlines()),
           f"compare.text who is nearer, line by line, in 100 columns: lines={len(lines)}", bad)


def one(work):
    """One element: where it is, how many ulp; NaN beside a number; equality."""
    a = traced(work, "a", "f32")
    _, (_, width), x = read(a)["01.A13"]
    step = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", x[width + 7]))[0] + 3))[0]
    b = changed(a, "01.A13", width + 7, step, work / "b")
    status, said, _ = sinkproof("compare", str(a), str(b))
    results = compared(a, b)[1]
    only = [r for r in results if not r["ok"]]
    report(status == 1 and [r["id"] for r in only] == ["01.A13"] and only[0]["ulp"] == 3 and only[0]["differing"] == 1
           and "First difference: 01.A13 at (1, 7)" in said,
           f"compare.first one element, three ulp: {only[0]['ulp'] if only else None}", [said])
    _, results = compared(a, changed(a, "01.A13", 77, math.nan, work / "n"))
    only = [r for r in results if not r["ok"]]
    report(len(only) == 1 and only[0]["largest"] is None and only[0]["differing"] == 1,
           "compare.nan beside a number is a difference beyond every number", [str(only)])
    n = work / "n"
    status, said, _ = sinkproof("compare", str(n), str(n))
    report(status == 0 and "Equal at all" in said, "compare.equal a file and itself, NaN and all", [said])
    few = traced(work, "few", "f32", "--points", "T0,F2")
    status, said, _ = sinkproof("compare", str(a), str(few))
    report(status == 0 and "Equal at all 2 points" in said and "are in A alone, 0 in B alone" in said,
           "compare.equal what one trace lacks is not compared, and said", [said])


def baseline(work):
    """Known differences pass, larger ones do not, nor points that the baseline lacks."""
    a = traced(work, "a", "f32")
    x = read(a)["01.A13"][2][77]
    near, far = changed(a, "01.A13", 77, x * (1 + 1e-5), work / "near"), changed(a, "01.A13", 77, x * (1 + 1e-4), work / "far")
    other, nan = changed(a, "01.M12", 5, 1e3, work / "other"), changed(a, "01.A13", 77, math.nan, work / "nan")
    sinkproof("compare", str(a), str(near), "--json", str(work / "base"))
    for what, b, exits in (("the same difference", near, 0), ("none", a, 0), ("a larger one", far, 1), ("another point", other, 1),
                           ("a NaN", nan, 1)):
        status, said, _ = sinkproof("compare", str(a), str(b), "--baseline", str(work / "base"))
        report(status == exits and ("Nowhere further" in said) == (exits == 0), f"compare.baseline {what}: exit {status}", [said])
    sinkproof("compare", str(a), str(nan), "--json", str(work / "base"))
    status, said, _ = sinkproof("compare", str(a), str(nan), "--baseline", str(work / "base"))
    report(status == 0, "compare.baseline a NaN that was there before: exit 0", [said])


def refused(work):
    a, longer = traced(work, "a", "f32"), work / "longer"
    sinkproof("run", MODEL, "--tokens", "random:13", "--policy", "f32", "--trace", str(longer))
    other = work / "other"
    sinkproof("run", MODEL, "--tokens", "random:12,seed=2", "--policy", "f32", "--trace", str(other))
    wide, config, ids = work / "wide", work / "wide.json", read(a)["tokens"][2]
    config.write_text(json.dumps(checkpoints.STATED | checkpoints.SMALL | {"hidden_size": 64, "vocab_size": max(ids) + 1}))
    sinkproof("run", f"synthetic:{config}", "--tokens", ",".join(map(str, ids)), "--policy", "f32", "--points", "T0",
              "--trace", str(wide))
    (work / "no.json").write_text("{}")
    for what, exits, words in (("more tokens", 3, (a, longer)), ("other tokens", 3, (a, other)), ("another width", 3, (a, wide)),
                               ("a file that is no trace", 3, (a, work / "no.json")), ("no file", 3, (a, work / "none")),
                               ("one trace", 2, (a,)), ("a model of another shape", 3, (a, a, "--model", f"synthetic:{config}")),
                               ("a baseline that is none", 3, (a, a, "--baseline", work / "no.json"))):
        status, said, wrong = sinkproof("compare", *map(str, words))
        report(status == exits and wrong.startswith("sinkproof compare:") and said == "",
               f"compare.refused {what}: exit {status}, {wrong.splitlines()[0][:100]}", [said])


if __name__ == "__main__":
    sys.exit(checkpoints.run(whole, one, baseline, refused))
