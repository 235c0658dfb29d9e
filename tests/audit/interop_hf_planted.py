# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes planted in transformers' complete GPT-OSS, each judged and asked for its cause.

    python tests/audit/interop_hf_planted.py             one in nine, held against doc/engines/planted/transformers.json
    FEW=1 python tests/audit/interop_hf_planted.py       one in eighteen
    WHOLE=1 python tests/audit/interop_hf_planted.py     all of them
    python tests/audit/interop_hf_planted.py --write     all of them, and keep what was found
    python tests/audit/interop_hf_planted.py NAME...     these

A TAP program beside interop_hf.py, which says what it needs. One process: a model in each format, run on 48
tokens of synthetic:tiny as a prompt, in steps after a prompt, or padded in a batch.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import interop_hf_list as mistakes  # noqa: E402
import planted  # noqa: E402
import sinkproof  # noqa: E402
import torch  # noqa: E402
from interop_hf_calls import padded  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF") or os.path.join(ROOT, "build", "release", "sinkproof")
POLICIES = {"float32": "f32", "bfloat16": "hf-bf16,M11.sum=bf16"}
LENGTH, PROMPT = 48, 40
ONE_IN = 18 if os.environ.get("FEW") else 9  # of the mistakes, unless all are asked for


def called(model, run):
    """The model is called as a run says."""
    tokens = torch.tensor([random_tokens(LENGTH, 7, model.config.vocab_size)])
    if run == "padded":
        model(**padded([tokens[0].tolist(), tokens[0, :17].tolist(), tokens[0, 20:29].tolist()], "left"))
    elif run in ("steps", "single"):
        cache, prompt = hf.new_cache(model.config), 1 if run == "single" else PROMPT
        for piece in (tokens[:, :prompt], *tokens[:, prompt:].split(1, dim=1)):
            model(input_ids=piece, use_cache=True, **{hf.cache_word(model): cache})
    else:
        model(input_ids=tokens[:, :model.config.sliding_window] if run == "short" else tokens)


def traced(model, bug):
    with bug.plant(model), torch.no_grad(), sinkproof.trace(model) as trace:
        called(model, bug.run)
    return trace.sequences


class Bench:
    """A model in one format, and the honest runs to compare with."""

    def __init__(self, directory, dtype):
        self.dtype, self.policy = dtype, POLICIES[dtype]
        self.model, self.opened = hf.load_model(directory, dtype, "eager"), sinkproof.Model(directory)
        self.honest = {}

    def honest_of(self, run):
        if run not in self.honest:
            self.honest[run] = traced(self.model, mistakes.Bug(lambda model: contextlib.nullcontext(), (), run=run))
        return self.honest[run]

    def row(self, name, bug):
        """The sequence that is convicted first stands for all; the honest ones beside it must hold."""
        sequences, honest = traced(self.model, bug), self.honest_of(bug.run)
        names = [mistakes.BUGS[each].named for each in name.split("+")] if name in mistakes.PAIRS else \
            [bug.named] if bug.named else []
        asks = bool(names) or self.dtype == "float32"  # what is in no catalogue is described once
        judged = [sinkproof.judge(self.opened, one, self.policy, local=True, hint=False, diagnosis=asks) for one in sequences]
        at = next((i for i, one in enumerate(judged) if one.verdict == "bug"), 0)
        return planted.row(name, self.policy, json.loads(judged[at].to_json()), names, planted.differing(honest[at], sequences[at]),
                           run=bug.run, convicted=[i for i, one in enumerate(judged) if one.verdict == "bug"])


def chosen(names):
    every = {**mistakes.BUGS, **mistakes.PAIRS, **mistakes.EQUIVALENT}
    if names:
        return {name: every[name] for name in names}
    if os.environ.get("WHOLE"):
        return every
    return {name: bug for i, (name, bug) in enumerate(every.items()) if i % ONE_IN == 0}


def heard(tap, bench, name, bug):
    found = bench.row(name, bug)
    said = f"{name} {bench.dtype}: {found['verdict']} {found['first'] or ''} {found['named'] or ''}".rstrip()
    if name in mistakes.EQUIVALENT:
        tap.report(found["verdict"] in ("within", "exact"), f"transformers equivalent: {said}", [found])
    else:
        tap.report(planted.is_right(found, bug.points) and found["changed"] > 0, f"transformers planted: {said}",
                   [f"expected at {bug.points}", found])
    return {**found, "kind": "equivalent" if name in mistakes.EQUIVALENT else "pair" if name in mistakes.PAIRS else "mistake"}


def overrides(tap, bench, name, override):
    """The override that names the mistake is found, and under it nothing is held against the run."""
    trace = traced(bench.model, mistakes.BUGS[name])[0]
    said = sinkproof.judge(bench.opened, trace, bench.policy, local=True, diagnosis=False)
    cleared = sinkproof.judge(bench.opened, trace, f"{bench.policy},{override}", local=True, hint=False, diagnosis=False)
    tap.report(said.explained_by == override and cleared.ok, f"{name} {bench.dtype}: {override} explains and clears it",
               [said.explained_by, cleared.first])


def overflow(tap, bench):
    """A sink logit of infinity: inf - inf, and everything behind it is NaN."""
    bug = mistakes.Bug(mistakes.sinks(lambda b, *_: b.masked_fill(torch.arange(len(b)) == 0, torch.inf)), ("A9",))
    said = sinkproof.judge(bench.opened, traced(bench.model, bug)[0], bench.policy, local=True, hint=False, diagnosis=False)
    tap.report(said.first == "00.A9" and said["00.A9"].nans > 0, f"a sink of infinity {bench.dtype}: its NaN are convicted",
               [said.verdict, said.first])


def main():
    words, tap, rows = sys.argv[1:], Tap(), []
    writes = "--write" in words
    if writes:
        os.environ["WHOLE"] = "1"
    asked = chosen([word for word in words if word != "--write"])
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        directory = os.path.join(folder, "tiny")
        subprocess.run([SINKPROOF, "synth", "synthetic:tiny", "--layout", "hf", "--out", directory], check=True)
        for dtype in POLICIES:
            bench = Bench(directory, dtype)
            overrides(tap, bench, "alpha-bf16", "M8.alpha=bf16")
            overrides(tap, bench, "yarn-truncate", "yarn=truncate")
            overflow(tap, bench)
            rows += [heard(tap, bench, name, bug) for name, bug in asked.items() if dtype in bug.under]
    if writes:
        planted.write("transformers", "transformers", hf_version(), rows, model="synthetic:tiny", tokens=f"random:{LENGTH},seed=7")
    else:
        wrong = planted.differences("transformers", rows)
        tap.report(not wrong, f"{len(rows)} runs say what the book's kill table does", wrong)
    return tap.done()


def hf_version():
    import transformers
    return f"{transformers.__version__}, torch {torch.__version__}"


if __name__ == "__main__":
    sys.exit(main())
