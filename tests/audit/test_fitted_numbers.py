# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Numbers that a diagnosis fits, of a fused kernel in bfloat16 and in float32: the planted number is within the range
that the report tells, and a cause that acts alone is told alone.

    WHOLE=1 python3 tests/audit/test_fitted_numbers.py [SEED]   of more draws
"""
import datetime
import json
import math
import os
import pathlib
import random
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
from attention_planted import DIM, HEADS, Query, Run, query, setting  # noqa: E402
from attention_planted_kernels import to_bfloat16  # noqa: E402
from checkpoints import report, run, sinkproof  # noqa: E402

POLICIES = ("flash-bf16", "f32")


def temperature(c):
    def change(q):
        q.b, q.scale = q.b * c, c
    return change


def slope(c):
    def change(q):
        q.keys = [(k, v, plus - c * (q.row - k)) for k, v, plus in q.keys]
    return change


def cap(c):
    def change(q):
        scores = {k: q.score(k) for k, _, _ in q.keys}
        q.keys = [(k, v, plus + c * math.tanh(scores[k] / c) - scores[k]) for k, v, plus in q.keys]
    return change


def eager(change):
    """What an engine gives that stores every number of attention in bfloat16: `change` of a score and its distance; the sink has none."""
    def wrong(run, layer, head, row):
        q = Query(run, layer, head, row)
        keys = [k for k, _, _ in q.keys]
        z = [change(to_bfloat16(to_bfloat16(q.score(k) * math.sqrt(DIM)) / math.sqrt(DIM)), row - k) for k in keys]
        z.append(change(q.b, None))
        e = [math.exp(to_bfloat16(x - max(z))) for x in z]
        weights = [to_bfloat16(x / sum(e)) for x in e[:-1]]
        return [to_bfloat16(sum(w * q.value(k)[i] for w, k in zip(weights, keys))) for i in range(DIM)]
    return wrong


# What an engine does that stores each of its steps.
STEPS = {"sinks plus": lambda c: lambda z, distance: to_bfloat16(z + to_bfloat16(math.log(c))) if distance is None else z,
         "scores": lambda c: lambda z, distance: z if distance is None else to_bfloat16(z * c),
         "temperature": lambda c: lambda z, distance: to_bfloat16(z * c),
         "slope": lambda c: lambda z, distance: z if distance is None else to_bfloat16(z - to_bfloat16(math.log(c) * distance)),
         "cap": lambda c: lambda z, distance: z if distance is None else to_bfloat16(c * to_bfloat16(math.tanh(to_bfloat16(z / c))))}
# Drawn once, and kept: the range of many is not much wider than it must be. A landing takes one, by the day.
STORED = (("scores", 0.944652286, 1), ("slope", 0.54369057, 0), ("slope", 0.907846754, 0), ("temperature", 1.476369, 1), ("sinks plus", 0.8207234, 1))

# The name in the report, the number as it is told, and what is planted.
KINDS = {"sinks times": (lambda c: {"sink-times": c}, lambda c: setting(b=lambda q: q.b * c)),
         "sinks plus": (lambda c: {"sink-plus": math.log(c), "sink-counted": c}, lambda c: setting(b=lambda q: q.b + math.log(c))),
         "scores": (lambda c: {"score-times": c}, lambda c: setting(scale=c)),
         "values": (lambda c: {"values-times": c, "A11-times-": c}, lambda c: setting(factor=c)),
         "temperature": (lambda c: {"logits-times": c}, temperature),
         "slope": (lambda c: {"score-slope": math.log(c)}, lambda c: slope(math.log(c))),
         "cap": (lambda c: {"score-softcap": c}, cap)}


def told_of(path, policy):
    """(exit, the causes: name and sentence)"""
    status, _, _ = sinkproof("judge", "synthetic:tiny,layers=2", str(path), "--policy", policy, "--local", "--no-hint", "--json", str(path) + ".json")
    found = json.loads(pathlib.Path(str(path) + ".json").read_text())["results"][0]["diagnosis"]
    return status, [(f["mistakes"] or [], f["because"] or []) for f in found]


def range_of(sentence, name, among):
    """(the number's name, low, high), of one that is told with a range; (name, None, None): it is said to be estimated."""
    kind = next((k for k in among if name.startswith(k)), None)
    number = re.match(r"[=]?(?:about-)?(-?[\d.e-]*\d)", name[len(kind):]) if kind else None
    percent = re.search(r"\(within ([\d.]+) %\)", sentence)
    if number is None:
        return None
    if percent is None:
        return (kind, None, None) if "estimated" in sentence else (kind, float(number[1]), float(number[1]))
    reach = abs(float(number[1])) * float(percent[1]) / 100
    return kind, float(number[1]) - reach, float(number[1]) + reach


def drawn_number(draw, kind):
    if kind == "cap":
        return draw.uniform(0.5, 5)
    return math.exp(draw.choice((-1, 1)) * draw.choice((0.1, 0.5, 1)) * draw.uniform(0.5, 1))


def judged(path, policy, kind, c, how):
    status, causes = told_of(path, policy)
    truth = KINDS[kind][0](c)
    told = [range_of(why[0], names[0], truth) if len(names) == 1 else None for names, why in causes]
    right = len(told) == 1 and told[0] is not None and "+" not in causes[0][0][0].split("@")[0]
    right = right and (told[0][1] is None or told[0][1] <= truth[told[0][0]] <= told[0][2])
    report(status == 1 and right, f"{kind} by {c:.9g} {how}, {policy}: {truth} within {told}, of {causes}")


def fused(work):
    draw = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    runs = {policy: Run(work, 7, policy) for policy in ("flash-bf16", "f32")}
    runs["flash-bf16"].sinks = runs["f32"].sinks
    path = work / "t.safetensors"
    for at in range(40 if "WHOLE" in os.environ else 4):
        policy = "f32" if at % 4 == 3 else "flash-bf16"
        kind = list(KINDS)[at % len(KINDS)]
        layer, c = draw.randrange(2), drawn_number(draw, kind)
        heads = draw.sample(range(HEADS), 3) if at % 3 == 0 else range(HEADS)
        wrong = query(KINDS[kind][1](c), lambda head, row: head in heads)
        rounded = to_bfloat16 if policy == "flash-bf16" else float
        runs[policy].trace(path, layer, lambda *of: [rounded(x) for x in wrong(*of)])
        judged(path, policy, kind, c, f"in layer {layer}, heads {list(heads)}")


def stored(work):
    draw = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    narrow = Run(work, 7, "hf-bf16")
    narrow.sinks = Run(work, 7).sinks
    path = work / "t.safetensors"
    more = [(draw.choice(list(STEPS)), drawn_number(draw, "cap"), draw.randrange(2)) for _ in range(24 if "WHOLE" in os.environ else 0)]
    kept = STORED if "WHOLE" in os.environ else STORED[datetime.date.today().toordinal() % len(STORED):][:1]
    for kind, c, layer in (*kept, *more):
        if kind == "slope":
            c = math.exp(to_bfloat16(math.log(c)))
        narrow.trace(path, layer, eager(STEPS[kind](c)))
        judged(path, "hf-bf16", kind, c, f"in layer {layer}, each step stored")


# What is said of a number that a rule of the engine gives, with its range; of one that is near it and outside the range, no rule is.
RULES = (("scores", math.sqrt(DIM / 96), "f32", rf"multiplied by 0\.4082483: queries, keys or the scale, which is 1/sqrt\(96\) in the place of 1/sqrt\({DIM}\) \(within [\d.]+ %\)$"),
         ("scores", math.sqrt(DIM / 96), "flash-bf16", r", which is 1/sqrt\(96\) in the place of 1/sqrt\(16\) \(within [\d.]+ %\)$"),
         ("scores", 0.4082, "f32", r"multiplied by 0\.4082: queries, keys or the scale \(within [\d.]+ %\)$"),
         ("temperature", 1 / math.log(2), "flash-bf16", r"multiplied by log2\(e\) before the softmax \(within [\d.]+ %\)$"))


def rules(work):
    runs = {policy: Run(work, 7, policy) for policy in POLICIES}
    runs["flash-bf16"].sinks = runs["f32"].sinks
    path = work / "t.safetensors"
    for kind, c, policy, said in RULES:
        wrong, rounded = query(KINDS[kind][1](c)), to_bfloat16 if policy == "flash-bf16" else float
        runs[policy].trace(path, 1, lambda *of: [rounded(x) for x in wrong(*of)])
        status, causes = told_of(path, policy)
        report(status == 1 and len(causes) == 1 and re.search(said, causes[0][1][0]), f"{kind} by {c:.9g}, {policy}: {said} of {causes}")


if __name__ == "__main__":
    sys.exit(run(fused, stored, rules))
