# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers' GPT-2, judged: honest runs pass, mistakes planted in it are convicted where they happen.

    python tests/audit/interop_hf_gpt2.py

A TAP program beside interop_hf.py, which says what it needs. `sinkproof synth` writes the small checkpoint, and
transformers another one; both are read by transformers and by the judge.
"""
import contextlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
import sinkproof  # noqa: E402
import torch  # noqa: E402
from interop_hf_planted import SINKPROOF  # noqa: E402
from sinkproof.adapters import gpt2  # noqa: E402
from sinkproof.adapters import transformers as hf  # noqa: E402
from sinkproof.adapters._tokens import random_tokens  # noqa: E402
from tap import Tap  # noqa: E402

POLICIES = {"float32": "f32", "bfloat16": "hf-bf16,A9.max=real"}


def ran(model, tokens, piece=0):
    """The trace of a run, at once or in pieces through a cache."""
    kept = hf.new_cache(model.config) if piece else None
    with torch.no_grad(), sinkproof.trace(model) as trace:
        for at in range(0, len(tokens), piece or len(tokens)):
            model(input_ids=torch.tensor([tokens[at:at + (piece or len(tokens))]]), use_cache=kept is not None,
                  **{hf.cache_word(model): kept})
    return trace


def judged(opened, trace, dtype):
    return sinkproof.judge(opened, trace, POLICIES[dtype], local=True, hint=False, diagnosis=False)


def honest(tap, name, directory):
    opened = sinkproof.Model(directory)
    for dtype in POLICIES:
        model = gpt2.load_model(directory, dtype)
        for n, piece in ((1, 0), (17, 0), (40, 0), (33, 7), (9, 1)):
            verdict = str(judged(opened, ran(model, random_tokens(n, n, model.config.vocab_size), piece), dtype).verdict)
            tap.report(verdict in ("within", "exact"), f"gpt2.forward transformers {name} {dtype}, {n} tokens"
                       f"{f' in pieces of {piece}' if piece else ''}: {verdict}")
    model = gpt2.load_model(directory, "float32", "sdpa")
    verdict = str(judged(opened, ran(model, random_tokens(20, 1, model.config.vocab_size)), "float32").verdict)
    tap.report(verdict in ("within", "exact"), f"gpt2.forward transformers {name} float32, sdpa: {verdict}")


@contextlib.contextmanager
def changed(thing, name, value):
    kept = getattr(thing, name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        setattr(thing, name, kept)


def planted(tap, directory):
    opened = sinkproof.Model(directory)
    for dtype in POLICIES:
        def mistakes(model):
            block, base = model.transformer.h[0], model.transformer
            c_attn, width = block.attn.c_attn, block.attn.embed_dim
            order = torch.cat([torch.arange(width, 2 * width), torch.arange(width), torch.arange(2 * width, 3 * width)])
            zeros = torch.nn.Parameter(torch.zeros_like(block.ln_1.bias))
            turned = torch.nn.Parameter(block.attn.c_proj.weight.T.contiguous())
            moved = torch.nn.Parameter(base.wpe.weight.roll(-1, 0))
            return {"no shift": ((block.ln_1, "bias", zeros), "00.A1"),
                    "epsilon a hundred times larger": ((block.ln_1, "eps", 1e-3), "00.A1"),
                    "the exact GELU": ((block.mlp, "act", torch.nn.GELU()), "00.M8"),
                    "query and key swapped": ((c_attn, "weight", torch.nn.Parameter(c_attn.weight[:, order])), "00.A2.q"),
                    "a matrix as it is not stored": ((block.attn.c_proj, "weight", turned), "00.A12"),
                    "scores not scaled": ((block.attn, "scaling", 1.0), "00.A6"),
                    "positions from 1 on": ((base.wpe, "weight", moved), "T0")}
        model = gpt2.load_model(directory, dtype)
        for what, ((thing, name, value), at) in mistakes(model).items():
            with changed(thing, name, value):
                judgement = judged(opened, ran(model, random_tokens(24, 5, model.config.vocab_size)), dtype)
            first = next((p.name for p in judgement.points if str(p.verdict) == "bug"), None)
            tap.report(first == at, f"gpt2.forward transformers {dtype}, {what}: a bug at {first}, expected at {at}")


def made_by_transformers(directory):
    """A checkpoint that transformers itself draws and saves: the weights of its own initialisation, made larger."""
    import transformers
    torch.manual_seed(3)
    config = transformers.GPT2Config(vocab_size=211, n_positions=64, n_embd=96, n_layer=2, n_head=6,
                                     bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.1 if parameter.dim() > 1 else 0.5)
                            + (1 if "ln_" in name and name.endswith("weight") else 0))
    model.to(torch.bfloat16).save_pretrained(directory)


def main():
    tap = Tap()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
        subprocess.run([SINKPROOF, "synth", "synthetic:tiny-gpt2,layers=2", "--out", ours], check=True)
        made_by_transformers(theirs)
        honest(tap, "synth's checkpoint", ours)
        honest(tap, "its own checkpoint", theirs)
        planted(tap, ours)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
