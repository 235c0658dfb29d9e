# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Honest runs of transformers, drawn: none may be called a bug or suspicious.

    RUNS=8 SEED=1 python tests/audit/interop_hf_honest.py           so many
    RUNS=100 python tests/audit/interop_hf_honest.py --write        and keep them in doc/engines/honest/transformers.json

A TAP program beside interop_hf.py, which says what it needs. Each run draws the format, the experts'
implementation, a prompt (its length around the window of 8 and the tiles of 16, 32, 64) and the way of
calling: at once, in pieces or token by token through a dynamic or a static cache, or a padded batch. Four
checkpoints of other weights take turns. Attention is eager: transformers refuses sdpa for this model.
"""
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import honest  # noqa: E402
import sinkproof  # noqa: E402
import torch  # noqa: E402
from interop_hf_calls import padded  # noqa: E402
from interop_hf_planted import SINKPROOF, hf_version  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

LENGTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 70)
MODELS = 4


def called(model, words, tokens):
    """The model is called as the words say."""
    way, cache, piece = words["way"], words["cache"], words["piece"]
    if way == "batch":
        return model(**padded([tokens, tokens[:len(tokens) // 2 + 1], tokens[-3:]], cache))
    kept = hf.new_cache(model.config, cache, len(tokens)) if way == "pieces" else None
    step = piece if way == "pieces" else len(tokens)
    for at in range(0, len(tokens), step):
        model(input_ids=torch.tensor([tokens[at:at + step]]), use_cache=kept is not None, **{hf.cache_word(model): kept})


def drawn(draw):
    n = draw.choice(LENGTHS)
    way = draw.choice(("at once", "pieces", "pieces", "batch"))
    return {"model": draw.randrange(MODELS), "dtype": draw.choice(("float32", "bfloat16")),
            "experts": draw.choice(("eager", "grouped_mm", "batched_mm")), "tokens": n, "seed": draw.randrange(10000),
            "way": way, "piece": draw.choice((1, 3, 8, max(1, n - 4))) if way == "pieces" else 0,
            "cache": draw.choice(("dynamic", "static")) if way == "pieces" else draw.choice(("left", "right"))
            if way == "batch" else "none"}


class Models:
    """Checkpoints and loaded models, each made once."""

    def __init__(self, folder):
        self.folder, self.opened, self.loaded = folder, {}, {}

    def __call__(self, words):
        directory = os.path.join(self.folder, str(words["model"]))
        if words["model"] not in self.opened:
            subprocess.run([SINKPROOF, "synth", f"synthetic:tiny,seed={words['model']}", "--layout", "hf", "--out", directory],
                           check=True)
            self.opened[words["model"]] = sinkproof.Model(directory)
        key = words["model"], words["dtype"], words["experts"]
        if key not in self.loaded:
            self.loaded[key] = hf.load_model(directory, words["dtype"], words["experts"])
        return self.opened[words["model"]], self.loaded[key]


def outcome(models, words):
    """(policy, the worst that any sequence of the run was called)"""
    opened, model = models(words)
    policy = "f32" if words["dtype"] == "float32" else "hf-bf16,M11.sum=" + ("bf16" if words["experts"] == "eager" else "real")
    with torch.no_grad(), sinkproof.trace(model) as trace:
        called(model, words, random_tokens(words["tokens"], words["seed"], model.config.vocab_size))
    said = [str(sinkproof.judge(opened, one, policy, local=True, hint=False, diagnosis=False).verdict) for one in trace.sequences]
    return policy, next((v for v in ("bug", "suspicious", "undecided") if v in said), said[0])


def main():
    tap, seed, runs = Tap(), int(os.environ.get("SEED", "1")), int(os.environ.get("RUNS", "8"))
    torch.set_num_threads(1)
    draw, kept = random.Random(seed), {}
    with tempfile.TemporaryDirectory() as folder:
        models = Models(folder)
        while len(kept) < runs:
            words = drawn(draw)
            said = ", ".join(f"{key} {value}" for key, value in words.items())
            if said in kept:
                continue
            policy, verdict = outcome(models, words)
            kept[said] = {"run": said, "policy": policy, "verdict": verdict}
            tap.report(verdict in ("within", "exact"), f"transformers honest: {said}: {verdict}")
    if "--write" in sys.argv:
        honest.write("transformers", "transformers", hf_version(),
                     f"RUNS={runs} SEED={seed} build/venv/bin/python tests/audit/interop_hf_honest.py", list(kept.values()))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
