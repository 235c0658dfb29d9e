# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""An engine that rounds where its policy does not say so, or does not round where it does, is told which rounding it
is, and the policy that declares it, under which the same trace holds. Some by name; of all points, formats and
policies some are drawn, more with an argument: test_roundings.py [N [SEED]], and N=all takes each. 20 CPU seconds.
"""
import collections
import json
import os
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "shared"), str(HERE)]
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof, widened  # noqa: E402
from test_drawn_policies import DEFINITION, NAMES, READ, points  # noqa: E402

LAYERS = 2
MODEL, TOKENS = f"synthetic:tiny,seed=5,layers={LAYERS}", "random:16,seed=2"
# Lines of the catalogue that say it in words of their own.
WORDS = {"M8.alpha=bf16": "alpha-bf16", "M8.alpha=f16": "alpha-f16", "M11.sum=bf16": "M11.sum-bf16"}
Told = collections.namedtuple("Told", "status findings by undecided")


def traced(work, policy, model=MODEL, select=()):
    """A trace saved in float32, whatever its formats were: a narrow format says by itself what was rounded."""
    path = work / "trace"
    status, _, told = sinkproof("run", model, "--tokens", TOKENS, "--policy", policy, *select, "--trace", str(path))
    assert status == 0, told
    widened(path, "F32")
    return str(path)


def judged(trace, policy, model=MODEL, *words):
    status, said, told = sinkproof("judge", model, trace, "--policy", policy, "--local", "--json", "-", *words,
                                   OMP_NUM_THREADS="1")
    assert status in (0, 1, 4), told
    head = json.loads(said)["results"][0]
    return Told(status, head["diagnosis"] or [], head["explained_by"], head["undecided"])


def text_of(trace, policy, model=MODEL):
    return " ".join(sinkproof("judge", model, trace, "--policy", policy, "--local", OMP_NUM_THREADS="1")[1].split())


def names(finding):
    """Every explanation of it, as sets of mistakes."""
    told = [] if finding["mistakes"] is None else [finding["mistakes"], *finding["indistinguishable"]]
    return [set(ids) for ids in told]


def named(work, declared, *overrides):
    """An engine with the overrides: each point that is outside is explained by one of them, and the policy holds."""
    trace = traced(work, ",".join([declared, *overrides]))
    said = judged(trace, declared)
    want = [{WORDS.get(o, o.replace("=", "-"))} for o in overrides]
    good = said.status == 1 and len(said.findings) > 0
    good = good and all(any(w in names(f) for w in want) for f in said.findings)
    good = good and all(any(w in names(f) for f in said.findings) for w in want)
    twice = {o.replace("=", "-") for o in WORDS} - set(WORDS.values())
    good = good and not any(w & twice for f in said.findings for w in names(f))
    stated = said.by is not None and "=" in said.by  # overrides, and not another policy
    holds = stated and judged(trace, f"{declared},{said.by}", MODEL, "--no-diagnosis").status == 0
    return good and holds, [f"{declared} {overrides}", f"explained by {said.by}",
                            *(f"{f['status']} {f['points'][:3]} {names(f)}" for f in said.findings)]


def in_words(work):
    for overrides, line in ((("A11=f32",), "One override explains all of it (2 points): --policy openai-bf16,A11=f32 "
                                           "(A11 is kept in float32: weighted values)."),
                            (("A11=f32", "A1=f32"), "2 overrides together explain all of it (4 points): --policy "
                             "openai-bf16,A1=f32,A11=f32 (A1 is kept in float32: RMSNorm before attention; "
                             "A11 is kept in float32: weighted values).")):
        text = text_of(traced(work, ",".join(["openai-bf16", *overrides])), "openai-bf16")
        report(line in text, f"the text says: {line}", [text[:600]])


def by_name(work):
    for declared, *overrides in (
            ("f32", "A5.k=f16"), ("f32", "A5.k=bf16", "A11.v=bf16"), ("f32", "M5.in=q8_0", "M9.in=q8_0"),
            ("openai-bf16", "A11=f32"), ("openai-bf16", "A1=f32", "A11=f32", "M12=f32"),
            ("openai-bf16", "A11.acc=bf16"), ("openai-bf16", "M8.alpha=bf16"), ("onnxruntime", "F1=f32"),
            ("bf16", "A1=f32", "M1=f32"), ("llama-cpp", "F2.in=f16"), ("real-f64", "M6=bf16"), ("real-f64", "M5=f32"),
            ("openai-bf16", "M5=f32"),  # bf16 holds too, and says less
            ("f32", "M11.sum=bf16")):
        good, notes = named(work, declared, *overrides)
        report(good, f"{declared} with {', '.join(overrides)}: named, and declared it holds", notes)


def no_override(work):
    """What no override states is not put into a policy; and what explains only some of it neither."""
    config = checkpoints.STATED | checkpoints.SMALL | {"hidden_size": 64, "intermediate_size": 64, "head_dim": 16}
    gone = lambda name, _, numbers: [float("-inf")] * len(numbers) if name.endswith("sinks") else numbers  # noqa: E731
    meant = checkpoints.write(work / "meant", checkpoints.weights(config), config)
    without = checkpoints.write(work / "without", checkpoints.weights(config, 1, gone), config)
    said = judged(traced(work, "openai-bf16", without), "openai-bf16", meant, "--any-model")
    report(said.status == 1 and said.by is None and
           all({"sink-dropped"} in names(f) for f in said.findings),
           "the sink left out: explained, by no override", [said.by, said.findings])
    both = judged(traced(work, "openai-bf16,A13=f32", without), "openai-bf16", meant, "--any-model")
    report(both.status == 1 and both.by is None and
           all(any({m} in names(f) for f in both.findings) for m in ("A13-f32", "sink-dropped")),
           "with A13 kept in float32 too: both are named, and no policy is offered", [both.by, both.findings])
    trace = traced(work, "openai-bf16,A11=f32")
    hints = [judged(trace, "openai-bf16", MODEL, *words).by for words in ((), ("--no-hint",), ("--no-diagnosis",))]
    report(hints == ["A11=f32", None, None], f"without a hint or a diagnosis none is offered: {hints}")


def each_product(work):
    """Rounded products of a sum leave so much open that they are not supposed: no name is given, and no false one."""
    found, model = {}, "synthetic:tiny,seed=5,layers=1"
    for point in ("A11.term", "M9.term", *(("A2.term", "F2.term") if "WHOLE" in os.environ else ())):
        said = judged(traced(work, f"openai-bf16,{point}=bf16", model), "openai-bf16", model)
        found[point] = said.status, said.by, sum((names(f) for f in said.findings), [])
    report(all(f == (1, None, []) for f in found.values()), "rounded products are convicted and unknown", [found])


def of_some_rows(work):
    """A rounding of the last positions alone is explained there, and no policy states it."""
    trace = pathlib.Path(traced(work, "f32", select=("--points", ",".join(f"{layer:02}.{p}" for layer in range(LAYERS)
                                                                          for p in ("A2.v", "A9", "A11")))))
    tensors, metadata = checkpoints.read(trace)
    for name, (dtype, shape, raw) in tensors.items():
        if name.endswith("A11"):
            at = len(raw) // 16 * 8
            kept = b"".join(raw[i:i + 4] if i < at else b"\0\0" + nearest(raw[i:i + 4]) for i in range(0, len(raw), 4))
            tensors[name] = dtype, shape, kept
    trace.write_bytes(checkpoints.safetensors(tensors, metadata))
    said = judged(str(trace), "f32")
    report(said.status == 1 and said.by is None and
           all(f["positions"] == [8, 15] and {"A11-bf16"} in names(f) for f in said.findings),
           "a rounding from position 8 on is explained, and no policy is offered", [said.by, said.findings])


def nearest(raw):
    """The upper half of the bfloat16 number nearest to a float32, ties to even."""
    bits = int.from_bytes(raw, "little")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).to_bytes(2, "little")


def alone(work):
    """Where a point's own inputs leave more open than the whole trace, nothing is explained by what is too wide."""
    select = ("--points", ",".join(f"{layer:02}.{p}" for layer in range(LAYERS)
                                   for p in ("A1", "A12", "A13", "M1", "M12")))
    trace, declared = traced(work, "f16,A1=f32,M1=f32", select=select), "f16,unrounded=A13|M12"
    said, text = judged(trace, declared), text_of(trace, declared)
    report(said.status == 1 and said.by is None and "not looked into" in {f["status"] for f in said.findings} and
           "not looked into; fewer elements are outside where the point is judged by itself" in text,
           "points that are outside by their neighbours alone are not looked into", [said.findings])


def drawn(work):
    # A gate by LSE in float32 is another form of the weights, which the catalogue does not suppose.
    every = [(p, x, f) for p in NAMES for x in points() if not x.endswith(".term")
             for f in ("bf16", "f16", "f32", *(("q8_0",) if x in READ else ()))
             if (x, f) not in (("A9.lse", "f32"), ("A9.gate", "f32"))]
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 20261126)
    asked = sys.argv[1] if len(sys.argv) > 1 else "10"
    bad, outside, open_, cases = [], 0, 0, every if asked == "all" else draw.sample(every, int(asked))
    for policy, point, form in cases:
        declared = ",".join([policy, *([DEFINITION[policy]] if policy in DEFINITION else [])])
        engine = f"{declared},{point}={form}"
        trace = traced(work, engine)
        if judged(trace, declared, MODEL, "--no-diagnosis", "--no-hint").status != 1:
            continue
        good, notes = named(work, declared, f"{point}={form}")
        true = judged(trace, engine, MODEL, "--no-diagnosis")
        outside, open_ = outside + 1, open_ + (true.undecided > 0)
        bad += [] if good or true.undecided > 0 else notes
    report(outside > len(cases) // 4 and open_ <= len(cases) // 16 and not bad,
           f"of {len(cases)} drawn roundings {outside} are seen, each is named and holds when it is declared "
           f"(of {open_} the operation leaves too much open)", bad)


if __name__ == "__main__":
    sys.exit(checkpoints.run(by_name, in_words, no_override, each_product, of_some_rows, alone, drawn))
