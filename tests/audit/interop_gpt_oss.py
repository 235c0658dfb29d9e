# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""OpenAI's gpt_oss.torch, judged again as doc/engines/gpt_oss.json says; mistakes planted in it are convicted.

It goes on in the engine's environment, build/engines/gpt_oss, where there is one.
"""
import contextlib
import os
import pathlib
import sys

import engines

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "audit" / "python"))
LENGTHS = (1, 2, 7, 8, 9, 40)  # around the window of 8


@contextlib.contextmanager
def changed(owner, name, value):
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


def no_sink(modeling, model):
    right = modeling.sdpa
    return changed(modeling, "sdpa", lambda q, k, v, s, *rest: right(q, k, v, s.new_full(s.shape, -1e30), *rest))


def window_one_wider(modeling, model):
    right = modeling.sdpa
    return changed(modeling, "sdpa", lambda q, k, v, s, scale, window: right(q, k, v, s, scale,
                                                                             window + 1 if window else 0))


def scale_by_width(modeling, model):
    right = modeling.sdpa
    return changed(modeling, "sdpa", lambda q, k, v, s, scale, window: right(q, k, v, s, scale * scale, window))


def alpha_rounded(modeling, model):
    right = modeling.swiglu
    return changed(modeling, "swiglu", lambda x, limit: right(x, 1.703125, limit))


def limit_off(modeling, model):
    right = modeling.swiglu
    return changed(modeling, "swiglu", lambda x, limit: right(x, 1.702, 1e9))


def no_concentration(modeling, model):
    right = modeling.RotaryEmbedding._compute_concentration_and_inv_freq
    return changed(modeling.RotaryEmbedding, "_compute_concentration_and_inv_freq",
                   lambda self: (1.0, right(self)[1]))


def half_swapped(modeling, model):
    right = modeling._apply_rotary_emb
    return changed(modeling, "_apply_rotary_emb", lambda x, cos, sin: right(x, cos, -sin))


def eps(modeling, model):
    return changed(model.block[1].attn.norm, "eps", 1e-1)


# Of each mistake the points of which one must be the first outside its set.
BUGS = {no_sink: ("00.A9",), window_one_wider: ("00.A9",), scale_by_width: ("00.A6",), alpha_rounded: ("00.M8",),
        limit_off: ("00.M8",), no_concentration: ("00.A4.q",), half_swapped: ("00.A4.q",), eps: ("01.A1",)}


def refusals(tap, python, directory, folder):
    out = folder / "refused.safetensors"
    for what, words in (("a token outside the vocabulary", (directory, "--tokens", "211")),
                        ("no checkpoint", (folder / "absent", "--tokens", "1"))):
        made = engines.command([python, "-m", "sinkproof.trace", "gpt-oss", *map(str, words), "--out", str(out)])
        tap.report(made.returncode == 3 and len(made.stderr.splitlines()) == 1 and not out.exists(),
                   f"refused: {what}", [made.stderr])


def in_process(tap, directory):
    """The context manager: calls are sequences; each mistake is convicted where it is, and gone after."""
    import sinkproof
    import torch
    from gpt_oss.torch import model as modeling
    model = modeling.Transformer.from_checkpoint(str(directory), device="cpu")
    opened = sinkproof.Model(directory)
    tokens = list(range(40))
    with torch.no_grad(), sinkproof.trace(model, checkpoint=opened) as trace:
        for n in LENGTHS:
            model(torch.tensor(tokens[-n:]))
    found = [sinkproof.judge(opened, one, "openai-bf16", local=True) for one in trace.sequences]
    tap.report(len(found) == len(LENGTHS) and all(each.ok and len(each.points) == 4 * 23 + 3 for each in found),
               f"calls of {LENGTHS} tokens are sequences, each honest at every point", [str(each) for each in found])
    for plant, expected in BUGS.items():
        with plant(modeling, model), torch.no_grad(), sinkproof.trace(model) as trace:
            model(torch.tensor(tokens))
        said = sinkproof.judge(opened, trace, "openai-bf16", local=True, hint=False)
        tap.report(said.verdict == "bug" and said.first in expected,
                   f"{plant.__name__} is convicted at {' or '.join(expected)}", [said.first])
    with alpha_rounded(modeling, model), torch.no_grad(), sinkproof.trace(model) as trace:
        model(torch.tensor(tokens))
    said = sinkproof.judge(opened, trace, "openai-bf16,M8.alpha=bf16", local=True)
    tap.report(said.ok, "the override that names the rounded constant clears it", [said.first])
    with torch.no_grad(), sinkproof.trace(model) as trace:
        model(torch.tensor(tokens))
    tap.report(sinkproof.judge(opened, trace, "openai-bf16", local=True).ok, "without a mistake nothing is convicted")
    left = [module for module in model.modules() if module._forward_hooks or "forward" in vars(module)]
    tap.report(not left and modeling.sdpa.__module__ == "gpt_oss.torch.model", "nothing of the watcher remains", left)


def more(tap, python, work):
    folder = pathlib.Path(work)
    directory = folder / "checkpoint"
    made = engines.command(engines.synth_words({"model": "synthetic:tiny", "layout": "openai"}, str(directory)))
    if tap.report(made.returncode == 0, "sinkproof synth --layout openai", [made.stderr]):
        refusals(tap, python, directory, folder)
        in_process(tap, directory)


if __name__ == "__main__":
    own = engines.python_of("gpt_oss")
    if own and pathlib.Path(sys.prefix) != ROOT / engines.home("gpt_oss"):
        os.execv(ROOT / own, [str(ROOT / own), *sys.argv])
    sys.exit(engines.interop("gpt_oss", more))
