# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers, judged: honest runs pass. interop_hf_planted.py plants mistakes.

    python tests/audit/interop_hf.py [--only subsets,tiny] [--work DIR]
    python tests/audit/interop_hf.py --false-alarms 100

A TAP program (`prove` runs it). transformers makes and saves random checkpoints, or loads one that
`sinkproof synth` wrote; the Python package traces its runs; `sinkproof judge` judges each trace.
The command is $SINKPROOF or build/release/sinkproof. Needs torch, transformers, safetensors, numpy,
ml_dtypes and libsinkproof (`make library`).
SUBSETS=N draws so many subsets of a trace for each policy, a multiple of 20 (200). FEW=1 leaves out the shapes of
the 20b model, on which torch alone takes minutes, and where the processor has no bfloat16 half an hour; and it asks
each length around the window in one format of each checkpoint, in the other of the next.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python")]
import sinkproof  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
import interop_hf_models as models  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF") or os.path.join(ROOT, "build", "release", "sinkproof")
LENGTHS = (1, 2, 127, 128, 129, 300)  # around the window of 128 and well past it
DTYPES = ("float32", "bfloat16")
HOLDS, BAD_INPUT = 0, 3
WORKERS = os.cpu_count() or 1
FEW = bool(os.environ.get("FEW"))


# ------------------------------------------------------------------------------------------
# TAP


class Tap:
    def __init__(self):
        self.count = self.failures = 0

    def ok(self, passed, text, notes=()):
        self.count += 1
        self.failures += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {text}", flush=True)
        for line in notes:
            print(f"# {line}", flush=True)
        return passed

    def done(self):
        print(f"1..{self.count}", flush=True)
        return 0 if self.count and not self.failures else 1


# ------------------------------------------------------------------------------------------
# The judge


class Verdict:
    """What `sinkproof judge --json -` said about one trace."""

    def __init__(self, process, seconds):
        self.exit, self.stderr, self.seconds = process.returncode, process.stderr.strip(), seconds
        try:
            self.report = json.loads(process.stdout)
        except ValueError:
            self.report = {}
        self.results = [r for r in self.report.get("results", []) if isinstance(r, dict)]

    def convicted(self):
        """The first point outside its set, "00.A9", or None."""
        return self.said("first_divergence") or self.first("bug")

    def suspected(self):
        return self.said("first_suspicion") or self.first("suspicious")

    def first(self, verdict):
        return next((r["id"] for r in self.results[1:] if r.get("verdict") == verdict), None)

    def said(self, key):
        return next((r[key] for r in [self.report, *self.results] if r.get(key)), None)

    def notes(self):
        lines = [f"exit {self.exit}, policy {self.said('policy')}, first divergence "
                 f"{self.convicted()}, suspicious {self.suspected()}, "
                 f"explained by {self.said('explained_by')}"]
        lines += [json.dumps(r)[:400] for r in self.results if r.get("ok") is False][:4]
        return lines + self.stderr.splitlines()[:4]


def command(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **options)


def judge(model_dir, trace, policy):
    start = time.monotonic()
    process = command(SINKPROOF, "judge", model_dir, trace, "--policy", policy, "--json", "-", "--local", "--no-hint",
                      "--no-diagnosis")
    return Verdict(process, time.monotonic() - start)


def policy_of(dtype, experts):
    """What transformers does: the implementations of its experts sum differently."""
    if dtype == "float32":
        return "f32"
    return "hf-bf16,M11.sum=" + ("bf16" if experts == "eager" else "real")


class Court:
    """Judges traces beside the engine's next run, reports in order, deletes each trace."""

    def __init__(self, tap, work):
        self.tap, self.work, self.cases = tap, work, []
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self.places = threading.Semaphore(WORKERS)  # traces on disk or in flight
        self.number = 0

    def hear(self, text, model_dir, trace, policies, check):
        """check(verdict, text) says whether a verdict is as it must be; one test per policy."""
        self.places.acquire()
        self.number += 1
        path = os.path.join(self.work, f"trace-{self.number}.safetensors")
        trace.save(path)

        def sit():
            try:
                return [judge(model_dir, path, policy) for policy in policies]
            finally:
                os.unlink(path)
                self.places.release()

        self.cases.append((text, policies, check, self.pool.submit(sit)))

    def adjourn(self):
        for text, policies, check, future in self.cases:
            for policy, verdict in zip(policies, future.result()):
                passed = check(verdict)
                self.tap.ok(passed, f"{text} --policy {policy} ({verdict.seconds:.1f} s)",
                            () if passed else verdict.notes())
        self.cases = []


def holds(verdict):
    return verdict.exit == HOLDS and bool(verdict.results)


# ------------------------------------------------------------------------------------------
# Runs


def tokens_of(n, seed, vocab):
    return random_tokens(n, seed, vocab)


def trace_of(model, tokens, chunk=None):
    """The trace of a prompt, at once or in pieces through a cache."""
    import torch
    cache, step = (hf.new_cache(model.config), chunk) if chunk else (None, len(tokens))
    with torch.no_grad(), sinkproof.trace(model) as trace:
        for at in range(0, len(tokens), step):
            model(input_ids=torch.tensor([tokens[at:at + step]]), use_cache=bool(chunk), **{hf.cache_word(model): cache})
    return trace


def run(court, directory, model, dtype, n, check, *, name, chunk=None, seed=1, policies=None):
    """One traced run of a loaded model, handed to the court."""
    experts = hf.experts_implementation(model)
    tokens = tokens_of(n, seed, model.config.vocab_size)
    trace = trace_of(model, tokens, chunk)
    text = f"{name} {dtype} n={n} experts={experts} seed={seed}"
    text += f" chunk={chunk}" if chunk else ""
    court.hear(text, directory, trace, policies or [policy_of(dtype, experts)], check)


def honest(court, shape, directory):
    """Every length in both precisions, a chunked prefill, the experts' other implementation."""
    for at, dtype in enumerate(DTYPES):
        model = hf.load_model(directory, dtype)
        for n in LENGTHS[at::2] if FEW else LENGTHS:
            automatic = ["auto"] if n in ((1, 2) if FEW else (129,)) and shape == "tiny" else []
            run(court, directory, model, dtype, n, holds, name=shape,
                policies=[policy_of(dtype, hf.experts_implementation(model))] + automatic)
        run(court, directory, model, dtype, 150 if FEW else 300, holds, name=shape, chunk=50 if FEW else 100)
        if hf.experts_implementation(model) != "eager":
            model = None  # two copies of the larger model would be 5 GB
            model = hf.load_model(directory, dtype, "eager")
            run(court, directory, model, dtype, 129 if shape == "tiny" and not FEW else 2, holds, name=shape)
    court.adjourn()


def mxfp4(court, tiny, work):
    """Checkpoints that sinkproof wrote; transformers dequantizes the experts when it loads them."""
    for name, model in (("mxfp4", "synthetic:tiny"),
                        ("mxfp4-window", f"synthetic:{tiny}/config.json,seed=2")):
        directory = os.path.join(work, name)
        process = command(SINKPROOF, "synth", model, "--out", directory, "--layout", "hf")
        text = f"sinkproof synth {model.replace(work, 'WORK')} --layout hf"
        if not court.tap.ok(process.returncode == 0, text, process.stderr.splitlines()[:4]):
            continue
        for at, dtype in enumerate(DTYPES):
            model = hf.load_model(directory, dtype)
            window = model.config.sliding_window
            lengths = (window - 1, window, window + 1, 2 * window + 44)
            for n in lengths[1 - at::2] if FEW else lengths:
                run(court, directory, model, dtype, n, holds, name=name)
    court.adjourn()


def subset(trace, generator):
    """Some points of some layers of a trace, and never none; tokens and positions always."""
    always = {"tokens", "positions"}
    names = sorted(set(trace) - always)
    while True:
        points = {name.split(".", 1)[-1] for name in names}
        kept = {point for point in points if generator.random() < generator.choice((0.2, 0.5, 0.9))}
        layers = {name.split(".")[0] for name in names if generator.random() < 0.1}
        some = {name for name in names if name.split(".", 1)[-1] in kept
                and (name[0].isalpha() or name.split(".")[0] in layers)}
        if some:
            return {name: trace[name] for name in some | always}


def subsets(court, directory, work, per_policy=int(os.environ.get("SUBSETS", "200"))):
    """Half a trace of an honest run: no subset of its points and layers is called a bug."""
    generator = random.Random(9)
    lengths, batch = (2, 9, 17, 40), 5
    for dtype in DTYPES:
        model = hf.load_model(directory, dtype)
        experts = hf.experts_implementation(model)
        policies = ["f32"] if dtype == "float32" else [policy_of(dtype, experts), "bf16"]
        for policy in policies:
            bugs_found, doubted, undecided, judged = [], [], 0, 0
            for n in lengths:
                trace = trace_of(model, tokens_of(n, 77, model.config.vocab_size))
                for _ in range(per_policy // len(lengths) // batch):
                    paths, kept = [], []
                    for number in range(batch):
                        paths.append(os.path.join(work, f"subset-{number}.safetensors"))
                        kept.append(subset(trace, generator))
                        sinkproof.Trace(kept[-1], trace.metadata).save(paths[-1])
                    process = command(SINKPROOF, "judge", directory, *paths, "--policy", policy, "--json",
                                      "-", "--local", "--no-hint", "--no-diagnosis")
                    results = json.loads(process.stdout or "{}").get("results", [])
                    for said in (r for r in results if r["id"] == "judgement"):
                        names = ",".join(sorted(kept[paths.index(said["trace"])]))
                        judged += 1
                        undecided += said["undecided"] > 0
                        if said["verdict"] == "bug":
                            bugs_found.append(f"n={n} {said['first_divergence']}: {names[:300]}")
                        if said["verdict"] == "suspicious":
                            doubted.append(f"n={n} {said['first_suspicion']}: {names[:300]}")
            court.tap.ok(not bugs_found and not doubted and judged == per_policy,
                         f"{judged} random subsets of honest traces {dtype} --policy {policy}: "
                         f"{len(bugs_found)} called a bug, {len(doubted)} suspicious, {undecided} with "
                         "points undecided", (bugs_found + doubted)[:8])


def adapter(tap, directory, work):
    """The adapter as a command: bad input is one sentence, exit 3, and nothing written."""
    out = os.path.join(work, "refused.safetensors")

    def refused(text, expected, *options):
        process = command(sys.executable, "-m", "sinkproof.trace", "transformers", *options, "--out", out,
                          cwd=os.path.join(ROOT, "audit", "python"))
        said = process.stderr.strip()
        left = [name for name in os.listdir(work) if name.startswith((".trace-", "refused"))]
        one_sentence = bool(said) and "Traceback" not in said
        if expected == BAD_INPUT:
            one_sentence = one_sentence and "\n" not in said
        tap.ok(process.returncode == expected and one_sentence and not left,
               f"sinkproof-trace transformers: {text}", said.splitlines()[-1:] + left)

    refused("no such directory", BAD_INPUT, os.path.join(work, "absent"), "--tokens", "1")
    refused("token outside the vocabulary", BAD_INPUT, directory, "--tokens", "1,99999999")
    refused("tokens that are not numbers", BAD_INPUT, directory, "--tokens", "one")
    refused("unknown point", BAD_INPUT, directory, "--tokens", "1", "--points", "A9,Z1")
    refused("no tokens at all", 2, directory)
    broken = os.path.join(work, "broken")
    os.makedirs(broken, exist_ok=True)
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as source, \
             open(os.path.join(broken, name), "wb") as target:
            data = source.read()
            target.write(data[: len(data) // 2] if name.endswith(".safetensors") else data)
    refused("truncated checkpoint", BAD_INPUT, broken, "--tokens", "1")


def false_alarms(court, work, n_runs):
    """Honest runs over seeds, lengths, dtypes, chunks, experts: every one must hold."""
    generator = random.Random(20260)
    directory = os.path.join(work, "alarm")
    for number in range(n_runs):
        if number % 4 == 0:
            court.adjourn()
            models.make(directory, "tiny", seed=1000 + number)
            loaded = {}
        dtype = DTYPES[number % 2]
        experts = generator.choice(("default", "default", "eager"))
        if (dtype, experts) not in loaded:
            loaded[dtype, experts] = hf.load_model(directory, dtype, experts)
        n = generator.choice((*LENGTHS, 3, 17, 64, 130, 200))
        chunk = generator.choice((None, None, max(1, n // 3)))
        name = f"alarm model={1000 + number // 4 * 4}"
        run(court, directory, loaded[dtype, experts], dtype, n, holds,
            name=name, chunk=chunk, seed=number)
    court.adjourn()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="SECTION,...",
                        help="of adapter, mxfp4, subsets, tiny, shape20b (default: all)")
    parser.add_argument("--false-alarms", type=int, metavar="N", help="N honest runs instead")
    parser.add_argument("--work", metavar="DIR",
                        help="where checkpoints and traces go (default: a temporary folder in build)")
    options = parser.parse_args()
    tap = Tap()
    with contextlib.ExitStack() as stack:
        build = os.path.join(ROOT, "build")
        os.makedirs(build, exist_ok=True)
        work = options.work or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="interop-hf-", dir=build))
        os.makedirs(work, exist_ok=True)
        court = Court(tap, work)
        if options.false_alarms:
            false_alarms(court, work, options.false_alarms)
            return tap.done()
        tiny = models.make(os.path.join(work, "tiny"), "tiny")
        sections = {
            "adapter": lambda: adapter(tap, tiny, work),
            "mxfp4": lambda: mxfp4(court, tiny, work),
            "subsets": lambda: subsets(court, tiny, work),
            "tiny": lambda: honest(court, "tiny", tiny),
            "shape20b": lambda: honest(
                court, "shape20b", models.make(os.path.join(work, "shape20b"), "shape20b")),
        }
        asked = [name for name in sections if name != "shape20b" or not FEW]
        for name in options.only.split(",") if options.only else asked:
            try:
                sections[name]()
            except sinkproof.Error as error:  # counted, and the other sections still run
                court.adjourn()
                tap.ok(False, f"{name}: {error}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
