# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof judge --plugin`, false alarms: tests/audit/drawn_plugin.c computes as a policy says, in a way
that is drawn (the order of each sum, FMA, which optional roundings it does, the form of each stage, a
kernel that fuses attention), and every call of it must be acquitted.

    python3 tests/audit/test_drawn_plugins.py                   six runs, stages of each drawn, three of thirteen;
                                                                every other one at the sizes of a model; of each
                                                                stage 30 calls, spread over all of them
    python3 tests/audit/test_drawn_plugins.py RUNS [SEED]       of each stage every call
    STAGES=all python3 tests/audit/test_drawn_plugins.py 60 7   all thirteen
    POLICY=f16 python3 tests/audit/test_drawn_plugins.py 9      of one policy
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
from checkpoints import PROGRAM, report, sinkproof, TAP  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent / "drawn_plugin.c"
CC = shlex.split(os.environ.get("CC", "cc"))
STAGES = ("rmsnorm", "qkv", "rope", "scores", "softmax_sink", "values", "attention", "output", "router", "experts",
          "swiglu", "mixture", "unembed")
# Declared by themselves: q8_0 operands and sums that run in float16 are no plug-in's here.
POLICIES = ("f16", "llama-cpp", "openai-bf16", "mlx", "f32", "vllm-bf16", "bf16", "onnxruntime", "hf-bf16",
            "bf16-operands", "f32,A9=real,A9.unnorm=f16", "bf16,A9=real,A9.unnorm=bf16")
FORM = {"A9.form": {"definition": "", "base-2": "base-2", "running-max": "online"},
        "M8.form": {"sigmoid": "", "tanh": "tanh"},
        "M4.form": {"softmax-after": "", "softmax-all-renormalised": "softmax-all"},
        "A4.form": {"scaled-table": "", "scaled-first": "scaled-first"}}


def stated(policy):
    """{"A1": "bf16?", ...} of what `info --policy` writes."""
    lines = sinkproof("info", "--policy", policy)[1].splitlines()
    return dict("".join(line.split("#")[0].split()).split("=", 1) for line in lines if "=" in line.split("#")[0])


def drawn(policy, draw):
    """What the plug-in is told: ROUNDED and WAYS."""
    says = stated(policy)
    rounded = {point: form.rstrip("?") for point, form in says.items()
               if form.rstrip("?") in ("f32", "f16", "bf16") and (form[-1] != "?" or draw.random() < 0.5)}
    ways = [f"lanes={draw.choice((1, 2, 3, 4, 8, 16))}", f"block={draw.choice((1, 4, 16, 32, 64, 128))}",
            f"parts={draw.choice((1, 1, 2, 3, 7))}", f"root={draw.randrange(3)}"]
    ways += [word for word in ("pairwise", "reversed", "fused", "bias-first", "reciprocal", "sink-last")
             if draw.random() < 0.5]
    ways += ["double"] if draw.random() < 0.2 else []
    for stage, words in FORM.items():
        ways.append(words[draw.choice([f for f in says[stage].split("|") if f in words])])
    online, rounds = "running-max" in says["A9.form"], "A9" in rounded or "A9.max" in rounded
    # Where both are optional, weights are rounded once at most: before they meet the values, or after the division.
    ways += ["once"] if says["A9.unnorm"][-1] == says["A9"][-1] == "?" else []
    # A fused kernel keeps its weights in registers: no policy that rounds them has one.
    ways += ["fused-attention"] if online and not rounds else []
    ways += ["scaled-query"] if says["A5"][-1] == "?" or says["A5"] == "real" else []
    ways += ["truncate"] if says["yarn"] == "truncate" else []
    return {"POLICY": policy, "ROUNDED": " ".join(f"{p}={f}" for p, f in rounded.items()),
            "WAYS": " ".join(filter(None, ways))}


def judged(plugin, told, stages, *model):
    done = subprocess.run([PROGRAM, "judge", "--plugin", plugin, "--stages", ",".join(stages), *model],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, **told, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    lines = {m[1]: tuple(map(int, m[0].split()[1:6]))
             for m in re.finditer(r"^(\w+)(?: +\d+){5} .*$", done.stdout, re.M)}
    return done.returncode, done.stdout, lines


def main():
    runs, seed = (int(x) for x in (sys.argv[1:] + ["6", "1"][len(sys.argv) - 1:])[:2])
    some = [] if len(sys.argv) > 1 else ["--limit=30"]
    policies = [os.environ["POLICY"]] if "POLICY" in os.environ else POLICIES
    with tempfile.TemporaryDirectory() as folder:
        plugin = os.path.join(folder, "drawn.so")
        subprocess.run([*CC, "-std=c11", "-O2", "-ffp-contract=off", "-shared", "-fPIC",
                        f"-I{SOURCE.parent.parent.parent}", str(SOURCE), "-o", plugin, "-lm"], check=True)

        def run(number):
            draw = random.Random(f"{seed} {number}")
            told = drawn(policies[number % len(policies)], draw)
            stages = STAGES if os.environ.get("STAGES") == "all" else draw.sample(STAGES, 3)
            turn = number + number // len(policies)  # so that more runs ask each policy both ways
            model = ["synthetic:tiny,layers=1"] if turn % 2 == 1 and stages is not STAGES else []
            return told, stages, *judged(plugin, told, stages, *model, *some)

        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TEST_JOBS") or os.cpu_count())) as pool:
            for told, stages, status, out, lines in pool.map(run, range(runs)):
                good = status == 0 and set(lines) == set(stages) and all(
                    line[0] > 15 and line[1:3] == (0, 0) for line in lines.values())
                calls = sum(line[0] for line in lines.values())
                report(good, f"drawn plug-in, {told['POLICY']}: {', '.join(stages)} acquitted, {calls} calls",
                       [*(f"{k}={shlex.quote(v)}" for k, v in told.items()), out])
        # And an alarm can be seen: the same engine, which declares what it does not round.
        told = {**drawn("f32", random.Random(seed)), "POLICY": "openai-bf16"}
        status, out, lines = judged(plugin, told, ("rmsnorm", "swiglu"))
        report(status == 1 and lines["rmsnorm"][1] > 50 and lines["swiglu"][1] > 50,
               "drawn plug-in: float32 kernels are no openai-bf16", [out])
    return TAP.done()


sys.exit(main())
