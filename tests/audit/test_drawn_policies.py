# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The reference under a policy is an honest engine of that policy: run under drawn policies (what rounds where, in
which format, optionally or not, forms, weights, flushing) and judged under them, it holds. Some combinations that were
convicted once are named; the others are drawn, more of them with an argument: test_drawn_policies.py [N [SEED]].
10 CPU seconds.
"""
import os
import pathlib
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from checkpoints import TAP, report, sinkproof  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = re.search("known are (.*), or @FILE", sinkproof("info", "--policy", "?")[2])[1].split(", ")
# What the reference computes, where a policy admits another form alone.
DEFINITION = {"mlx": "A4.form=any", "llama-cpp-flash": "A9.form=any"}
READ = {"A2.in", "A12.in", "M2.in", "M5.in", "M9.in", "F2.in"}  # these may be blocks of whole numbers too
HEADS = {"A5.q", "A5.k", "A11.v"}  # these have a scale of their own for each head too
SCALED = ["tf32", "tf32-cut", "e4m3", "e5m2", "e4m3(token)", "int8(token)", "int8(0.05)", "mxfp8", "mxfp8-up",
          "nvfp4(token)"]
FORMATS = ["bf16", "bf16", "f16", "f32", "f64", "real"]
FORMS = ["A9.form=any", "A4.form=any", "A4.freq.form=any", "M4.form=any", "M8.form=any"]

# The engine's overrides, what is declared of them, model and tokens.
NAMED = [("f32,M11.sum=bf16", "", "tiny,seed=3", "random:20,seed=0"),
         ("onnxruntime,A4.freq=bf16", "", "tiny,seed=46", "random:12,seed=3"),
         ("openai-bf16,A4.freq=f16", "", "tiny,seed=47", "repeat:9,seed=6"),
         ("f16,A4.prod=bf16", "", "tiny,seed=6", "random:12,seed=7"),
         ("real-f64,A5.term=f16", "", "tiny,seed=33,sink=key", "random:12,seed=7"),
         ("llama-cpp-flash,A9.form=any,M5.in=real", "llama-cpp-flash,A9.form=any,M5.in=bf16?", "tiny,seed=4,sink=none",
          "repeat:9,seed=6"),
         ("f32,A9.unnorm=f16", "", "tiny,seed=43", "random:20,seed=3"),
         ("mlx,A4.form=any,M8.exp=f16", "mlx,A4.form=any,M8.exp=f16?", "tiny,seed=45", "repeat:9,seed=7")]


def points():
    """The names of the points that may round, of ref/points.h."""
    text = (ROOT / "ref/points.h").read_text(encoding="utf-8")
    return re.findall(r'^ +P\(\w+, +"([^"]+)"', text.split("#define SINKPROOF_POINTS(P)")[1].split("\n\n")[0], re.M)


def drawn(draw, all_points):
    """(what the engine does, what it declares)"""
    name = draw.choice(NAMES)
    does, declares = [name], [name]

    def both(word):
        does.append(word)
        declares.append(word)
    for point in draw.sample(all_points, draw.choice([0, 1, 2, 3, 6, 12])):
        form = draw.choice(FORMATS + (["q8_0", "weight"] if point in READ else []))
        if point in READ | HEADS and draw.random() < 0.5:
            form = draw.choice(SCALED + (["e4m3(head)", "int8(token-head)", "e5m2(tensor)"] if point in HEADS else []))
        open_ = draw.random() < 0.35 and form not in ("real", "q8_0", "weight")
        declares.append(f"{point}={form}{'?' if open_ else ''}")
        does.append(f"{point}={'real' if open_ and draw.random() < 0.5 else form}")
    if draw.random() < 0.2:
        both("weights=" + draw.choice(["f32", "f16", "bf16", "tf32", "tf32-cut"]))
    if draw.random() < 0.2:
        both("inside=" + draw.choice(["f32", "f64"]))
    if draw.random() < 0.15:
        both("yarn=truncate")
    if draw.random() < 0.2:
        declares.append("ftz=allowed")
    if draw.random() < 0.2:
        declares.append(draw.choice(FORMS))
    if name in DEFINITION:
        both(DEFINITION[name])
    return ",".join(does), ",".join(declares)


def held(does, declares, model, tokens, trace):
    """Notes on what did not hold."""
    status, _, wrong = sinkproof("run", f"synthetic:{model}", f"--tokens={tokens}", f"--policy={does}",
                                 f"--trace={trace}")
    if status != 0:
        return [f"run {model} {tokens} {does}: exit {status}", *wrong.splitlines()]
    status, said, wrong = sinkproof("judge", f"synthetic:{model}", trace, f"--policy={declares or does}",
                                    "--no-diagnosis")
    return [] if status == 0 else [f"{model} {tokens}", f"does {does}", f"declares {declares or does}: exit {status}",
                                   *said.splitlines()[-3:], *wrong.splitlines()]


def main():
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20261124
    draw, all_points, notes = random.Random(seed), points(), []
    with tempfile.TemporaryDirectory() as folder:
        trace = str(pathlib.Path(folder) / "trace.safetensors")
        for case in NAMED:
            wrong = held(*case, trace)
            report(not wrong, f"an honest engine of {case[1] or case[0]} holds", wrong)
        for _ in range(many):
            kind = draw.choice(["tiny", "tiny", "tiny", "tiny-gpt2"])
            sink = draw.choice(["", "", ",sink=key", ",sink=none", ",sink=logit"]) if kind == "tiny" else ""
            model = f"{kind},seed={draw.randrange(50)}{sink}"
            tokens = f"{draw.choice(['random:12', 'random:3', 'repeat:9', 'random:20', 'random:1'])},seed={draw.randrange(9)}"
            notes += held(*drawn(draw, all_points), model, tokens, trace)
    report(len(all_points) > 60 and not notes,
           f"so does the reference under {many} drawn policies of {len(all_points)} points: seed={seed}", notes)
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
