# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""False alarms: honest runs by the command, judged by the command. None may be called a bug or
suspicious; undecided only where no point at all is decided.

    RUNS=300 SEED=1 python3 tests/audit/false_alarms.py     as many runs of that seed
    RUN=17 SEED=1 python3 tests/audit/false_alarms.py       one of them again
    python3 tests/audit/false_alarms.py --write             keep them in doc/engines/honest/own.json

Each run draws a model (five variants in turn), an engine with a policy that it serves, a prompt, the
points of the trace, how the prompt is split, and the policy that judges. In each variant two runs
more, whose constant 1.702 is rounded to bfloat16, must be called a bug: an alarm can be seen. The files
of an alarm stay in build/alarms, its commands are printed.

The engines here compute the weights of attention by the definition or by a running maximum; kernels of
every other form are drawn and judged in tests/audit/test_judge_forms.c.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shlex
import shutil
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
import checkpoints  # noqa: E402
import honest  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

KEPT = pathlib.Path("build/alarms")
SHAPES = ({"hidden_size": 64, "intermediate_size": 64, "head_dim": 16},
          {"hidden_size": 96, "intermediate_size": 32, "head_dim": 32, "num_attention_heads": 6},
          {"hidden_size": 33, "intermediate_size": 35, "head_dim": 6, "num_key_value_heads": 1},
          {"hidden_size": 64, "intermediate_size": 96, "head_dim": 64, "num_local_experts": 8,
           "num_experts_per_tok": 4})
NORMS = "A1.norm=bf16,M1.norm=bf16,F1.norm=bf16"
FREEDOMS = (f"{NORMS.replace('bf16', 'bf16?')},A4.form=any,A4.scaled=bf16,A4.freq.form=any,A9.unnorm=bf16?,"
            "unrounded=any,exp=3ulp+0.62|x|")
# What each engine runs under, and the policies that then hold: the declared one, wider ones, auto. A
# trace does not tell that the weights were stored in float16: auto cannot know it.
SERVED = {"ref": {"real-f64": ("auto",), "f32": ("auto",), "bf16-operands": ("auto",),
                  "openai-bf16": ("auto", "bf16", f"openai-bf16,{FREEDOMS}"), "hf-bf16": ("auto", "bf16"),
                  "bf16": ("auto", f"bf16,{FREEDOMS}"), "vllm-bf16": (),
                  f"openai-bf16,{NORMS}": (f"openai-bf16,{FREEDOMS}",), "bf16,A9=real,A9.unnorm=bf16": (),
                  "f16,A9=real,A9.unnorm=f16": (), "f32,A9.unnorm=f16": (),
                  "f16": ("auto",), "f32,weights=f16": (), "f16,weights=f16": (),
                  "bf16,weights=f16": ()},
          "lanes": {"f32": ("auto",), "bf16-operands": ("auto",), "f32,A2=bf16,A4=bf16": ()}}
SERVED["fast"] = SERVED["lanes"]
FINER = {"bf16": "f32", "f16": "f32", "f32": "real"}  # what an engine may keep where its policy leaves it open
POINTS = ("T0", "A1", "A2.q", "A2.k", "A2.v", "A4.q", "A4.k", "A6", "A11", "A12", "A13", "M1", "M2", "M3",
          "M4", "M6", "M8", "M10", "M11", "M12", "F1", "F2")
OF_REF = POINTS + ("A9", "A10", "M5", "M9")


def is_matrix_or_bias(name):
    return "norm" not in name and "sinks" not in name and "embed" not in name


def times(factor):
    return lambda name, _, numbers: [factor * x for x in numbers] if is_matrix_or_bias(name) else numbers


def far_sinks(name, _, numbers):
    """Each sink 30 or -30, by its sign."""
    return [30 if x > 0 else -30 for x in numbers] if name.endswith("sinks") else numbers


def massive(name, shape, numbers):
    """Two coordinates of every third token's embedding 1e4 times as large."""
    if "embed" not in name:
        return numbers
    return [1e4 * x if i // shape[1] % 3 == 0 and i % shape[1] in (5, 21) else x for i, x in enumerate(numbers)]


VARIANTS = {"plain": lambda name, shape, numbers: numbers, "sinks of +-30": far_sinks,
            "activations of 1e4": massive, "weights times 0.1": times(0.1), "weights times 5": times(5)}


def instruction_sets():
    """{policy: those of this machine that run it}: one whose mode is not lanes multiplies bf16 alone."""
    sets = json.loads(sinkproof("info", "--cpu", "--json", "-")[1])["results"][0]["sets"]
    runs = [s for s in sets if s["runs"]]
    lanes = [s["name"] for s in runs if s["mode"] == "lanes"]
    return {p: [s["name"] for s in runs] if p == "bf16-operands" else lanes for p in SERVED["fast"]}


def open_points():
    """{policy: the overrides that keep more precision at a point where the policy leaves it open}"""
    found = {}
    for policy in SERVED["ref"]:
        lines = ("".join(line.split("#")[0].split()) for line in sinkproof("info", "--policy", policy)[1].splitlines())
        stated = [line[:-1].split("=") for line in lines if line.endswith("?")]
        found[policy] = [f",{point}={FINER[form]}" for point, form in stated]
    return found


def prompt(draw, vocab, window):
    """Length, around the window or any up to 140; ids random, one, two in turn, or of three."""
    n = min(140, draw.choice((1, 2, window - 1, window, window + 1, 2 * window + 1, draw.randint(1, 140),
                              draw.randint(100, 140))))
    kind, ids = draw.randrange(4), [draw.randrange(vocab) for _ in range(140)]
    return [ids[t] if kind == 0 else ids[0] if kind == 1 else ids[t % 2] if kind == 2 else ids[ids[t] % 3]
            for t in range(max(1, n))]


def points(draw, engine, layers):
    """The words after run that say what the trace holds."""
    kind = draw.randrange(10)
    if kind < 2:
        return []
    if kind < 5:
        return ["--points", draw.choice(("A13,M3,M12", "A13,M3,M12", "A13,M12", "M12", "F1,F2", "F2"))]
    share, known = draw.choice((0.1, 0.3, 0.6, 0.9)), OF_REF if engine == "ref" else POINTS
    every = [p if p in ("T0", "F1", "F2") else f"{layer:02}.{p}" for layer in range(layers) for p in known]
    some = sorted(p for p in set(every) if draw.random() < share)
    return ["--points", ",".join(some or [draw.choice(every)])]


Known = collections.namedtuple("Known", "sets finer")


class Run:
    """One draw: what is run, what judges it."""

    def __init__(self, seed, number, known, control=False):
        draw = random.Random(f"{seed} {number} {control}")
        self.seed, self.number, self.control = seed, number, control
        self.variant = list(VARIANTS)[number % len(VARIANTS)]
        self.config = checkpoints.STATED | checkpoints.SMALL | draw.choice(SHAPES) | {
            "vocab_size": 61, "sliding_window": draw.choice((4, 16, 128)),
            "num_hidden_layers": draw.choice((2, 2, 3))}
        self.weights_seed = draw.randrange(1 << 30)
        self.engine = "ref" if control else draw.choice(("ref", "ref", "lanes", "fast"))
        self.policy = "f32" if control else draw.choice(list(SERVED[self.engine]))
        self.judges = (self.policy, *SERVED[self.engine][self.policy])
        self.judge = self.policy if control else draw.choice(self.judges)
        ids = prompt(draw, self.config["vocab_size"], self.config["sliding_window"])
        self.kept = "".join(o for o in known.finer[self.policy] if draw.random() < 0.5) \
            if self.engine == "ref" and not control and draw.random() < 0.5 else ""
        self.words = ["--tokens", ",".join(map(str, ids))]
        self.words += [] if control else points(draw, self.engine, self.config["num_hidden_layers"])
        self.words += ["--chunk", str(draw.randint(1, len(ids)))] if draw.random() < 0.4 else []
        self.wider = None if control else draw.choice((None, None, None, "F32", "F64"))
        self.variables = {"OMP_NUM_THREADS": "1"}
        if self.engine == "fast":
            self.variables["SINKPROOF_ISA"] = draw.choice(known.sets[self.policy])

    def row(self, verdict, reason):
        """What is kept of it."""
        isa = self.variables.get("SINKPROOF_ISA")
        ids, chunk = self.words[1].split(","), "--chunk" in self.words
        words = [f"RUN={self.number} SEED={self.seed}: {self.variant}", f"window {self.config['sliding_window']}",
                 f"{len(ids)} tokens", f"run under {self.policy}{self.kept}", *(["in chunks"] if chunk else []),
                 *(["some points"] if "--points" in self.words else []), *([f"saved in {self.wider}"] if self.wider else [])]
        return {"engine": {"ref": "the reference"}.get(self.engine, self.engine) + (f", {isa}" if isa else ""),
                "run": ", ".join(words), "policy": self.judge, "verdict": "refused" if reason and verdict == "within" else verdict}

    def commands(self, folder):
        """The two commands on the files in a folder."""
        policy = self.policy + self.kept + (",M8.alpha=bf16" if self.control else "")
        return (["run", str(folder), "--engine", self.engine, "--policy", policy, *self.words,
                 "--trace", f"{folder}/trace"],
                ["judge", str(folder), f"{folder}/trace", "--policy", self.judge, "--json", f"{folder}/json"])

    def outcome(self, work):
        """(what the judge called it, the reason if that is an alarm)"""
        folder = work / f"{'control' if self.control else 'run'}-{self.number}"
        change = VARIANTS[self.variant]
        checkpoints.write(folder, checkpoints.weights(self.config, self.weights_seed, change), self.config)
        running, judging = self.commands(folder)
        status, _, told = sinkproof(*running, **self.variables)
        if status:
            return self.ended("refused", f"run exits with {status}: {told}", folder)
        if self.wider:
            checkpoints.widened(folder / "trace", self.wider)
        status, _, told = sinkproof(*judging, **self.variables)
        if not (folder / "json").exists():
            return self.ended("refused", f"judge exits with {status}: {told}", folder)
        whole, *each = json.loads((folder / "json").read_text(encoding="utf-8"))["results"]
        verdict, open_ = whole["verdict"], all(p["verdict"] == "undecided" for p in each)
        fine = (status == 0 and verdict in ("exact", "within") and not open_
                or status == 4 and verdict == "undecided" and open_)
        bad = [f"{p['id']} {p['verdict']}" for p in each if p["verdict"] in ("suspicious", "bug")]
        reason = "" if fine and each else f"judge exits with {status}, {verdict}: {', '.join(bad)}"
        return self.ended(verdict, reason, folder)

    def ended(self, verdict, reason, folder):
        if reason and not self.control:
            kept = KEPT / folder.name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            variables = " ".join(f"{k}={v}" for k, v in self.variables.items())
            again = f"  (the trace then saved in {self.wider}: RUN={self.number} SEED={self.seed})" if self.wider else ""
            lines = [f"{variables} {shlex.join([checkpoints.PROGRAM, *c])}" for c in self.commands(kept)]
            reason = "\n#   ".join([f"run {self.number}: {reason}", lines[0] + again, lines[1]])
        shutil.rmtree(folder)
        return verdict, reason


def show(variant, runs, controls, outcomes):
    """A line of counts for the runs, one for the controls."""
    ended = [outcomes[r] for r in runs]
    alarms = [reason for _, reason in ended if reason]
    for reason in alarms:
        print(f"# {reason}")
    open_ = sum(verdict == "undecided" for verdict, _ in ended)
    by = {e: sum(r.engine == e for r in runs) for e in SERVED}
    report(bool(runs) and not alarms,
           f"{variant}: {len(alarms)} false alarms in {len(runs)} honest runs ({', '.join(f'{e} {n}' for e, n in by.items())}; "
           f"{sum('--points' in r.words for r in runs)} of some points, {sum('--chunk' in r.words for r in runs)} in chunks, "
           f"{sum(r.wider is not None for r in runs)} saved wider, "
           f"{sum(r.judge != r.policy for r in runs)} under another policy; {open_} decide nothing)")
    if controls:
        bugs = sum(outcomes[r][0] == "bug" for r in controls)
        report(bugs == len(controls), f"{variant}: {bugs} of {len(controls)} runs with 1.702 rounded are called a bug")
    return len(alarms)


def main():
    seed, known = int(os.environ.get("SEED", "1")), Known(instruction_sets(), open_points())
    one = os.environ.get("RUN")
    numbers = [int(one)] if one else range(int(os.environ.get("RUNS", "300")))
    runs = [Run(seed, n, known) for n in numbers]
    controls = [] if one else [Run(seed, n, known, control=True) for n in range(2 * len(VARIANTS))]
    print(f"# {len(runs)} runs, SEED={seed}", flush=True)
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = dict(zip(runs + controls, pool.map(lambda r: r.outcome(pathlib.Path(work)), runs + controls)))
    alarms = 0
    for variant in VARIANTS:
        mine = [r for r in runs if r.variant == variant]
        if mine:
            alarms += show(variant, mine, [r for r in controls if r.variant == variant], outcomes)
    if "--write" in sys.argv:
        version = sinkproof("--version")[1].split()[1].rstrip(",")
        honest.write("own", "our engines", version, f"RUNS={len(runs)} SEED={seed} make false-alarms",
                     [r.row(*outcomes[r]) for r in runs])
    print(f"# {alarms} false alarms in {len(runs)} honest runs, SEED={seed}")
    return checkpoints.TAP.done()


if __name__ == "__main__":
    sys.exit(main())
