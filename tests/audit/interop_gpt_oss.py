# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""OpenAI's gpt_oss.torch, judged again as doc/engines/gpt_oss.json says; mistakes planted in it are convicted.

It goes on in the engine's environment, build/engines/gpt_oss, where there is one.
"""
import contextlib
import json
import os
import pathlib
import random
import sys

import engines
import honest
import planted
from engines import changed

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "audit" / "python"))
LENGTHS = (1, 2, 7, 8, 9, 40)  # around the window of 8


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


def another(owner, name, wrong):
    """wrong(right, ...) stands for a function of the file, or the method of a class."""
    return lambda modeling, model: (lambda right, place: changed(place, name, lambda *rest, **more: wrong(right, *rest, **more)))(
        getattr(place_of(modeling, owner), name), place_of(modeling, owner))


def place_of(modeling, owner):
    return getattr(modeling, owner) if owner else modeling


sink_of_next_head = another(None, "sdpa", lambda right, q, k, v, s, *rest: right(q, k, v, s.roll(-1), *rest))
window_off = another(None, "sdpa", lambda right, q, k, v, s, scale, window: right(q, k, v, s, scale, 0))
pairs_swapped = another(None, "swiglu", lambda right, x, limit: right(x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2), 1.702, limit))
concentration_twice = another("RotaryEmbedding", "_compute_concentration_and_inv_freq",
                              lambda right, self: (right(self)[0] ** 2, right(self)[1]))


# Of each mistake the points of which one must be the first outside its set, and its name in the catalogue.
BUGS = {"no_sink": (no_sink, ("A9",), "sink-dropped"), "window_one_wider": (window_one_wider, ("A9",), "window-wide"),
        "scale_by_width": (scale_by_width, ("A6",), "score-scaled-twice"),
        "alpha_rounded": (alpha_rounded, ("M8",), "alpha-bf16"), "limit_off": (limit_off, ("M8",), "limit-off"),
        "no_concentration": (no_concentration, ("A4.q",), "concentration-missing"),
        "half_swapped": (half_swapped, ("A4.q",), "rope-backwards"), "eps_of_one_norm": (eps, ("A1",)),
        "sink_of_next_head": (sink_of_next_head, ("A9",), "sink-next-head"),
        "window_off": (window_off, ("A9",), "window-off"), "pairs_swapped": (pairs_swapped, ("M8",), "pairs-swapped"),
        "concentration_twice": (concentration_twice, ("A4.q",), "concentration-twice")}


def refusals(tap, python, directory, folder):
    out = folder / "refused.safetensors"
    for what, words in (("a token outside the vocabulary", (directory, "--tokens", "211")),
                        ("no checkpoint", (folder / "absent", "--tokens", "1"))):
        made = engines.command([python, "-m", "sinkproof.trace", "gpt-oss", *map(str, words), "--out", str(out)])
        tap.report(made.returncode == 3 and len(made.stderr.splitlines()) == 1 and not out.exists(),
                   f"refused: {what}", [made.stderr])


def honest_runs(tap, directory, runs):
    """Prompts that are drawn, in both formats: none may be called a bug or suspicious. WRITE=1 keeps them."""
    import sinkproof
    import torch
    from gpt_oss.torch import model as modeling
    from sinkproof.adapters._tokens import random_tokens
    opened, draw, found = sinkproof.Model(directory), random.Random(1), {}
    for policy in ("openai-bf16", "f32"):
        model = modeling.Transformer.from_checkpoint(str(directory), device="cpu")
        model = model.float() if policy == "f32" else model
        while sum(one["policy"] == policy for one in found.values()) < runs:
            n, seed = draw.choice((1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65)), draw.randrange(10000)
            with torch.no_grad(), sinkproof.trace(model) as trace:
                model(torch.tensor(random_tokens(n, seed, 211)))
            said = sinkproof.judge(opened, trace, policy, local=True, hint=False, diagnosis=False)
            tap.report(said.ok, f"honest: {n} tokens of seed {seed} --policy {policy}: {said.verdict}", [said.first])
            words = f"random:{n},seed={seed}, {policy}"
            found[words] = {"run": words, "policy": policy, "verdict": str(said.verdict)}
    if os.environ.get("WRITE"):
        honest.write("gpt_oss", "gpt_oss.torch", engines.kept("gpt_oss")["runs"][0]["version"],
                     f"HONEST={runs} python tests/audit/interop_gpt_oss.py", list(found.values()))


def plant(tap, opened, modeling, model, tokens):
    """Each mistake is convicted where it acts; one in four is asked for its cause too (WHOLE=1: all, WRITE=1 keeps it)."""
    import sinkproof
    import torch
    whole, writes, rows, honest = os.environ.get("WHOLE"), os.environ.get("WRITE"), [], None
    for i, (name, (bug, points, *named)) in enumerate({"untouched": (None, ()), **BUGS}.items()):
        with bug(modeling, model) if bug else contextlib.nullcontext(), torch.no_grad(), sinkproof.trace(model) as trace:
            model(torch.tensor(tokens))
        honest, asks = honest or trace, bool(whole or writes or i % (16 if engines.FEW else 4) == 0)
        said = sinkproof.judge(opened, trace, "openai-bf16", local=True, hint=False, diagnosis=asks)
        found = planted.row(name, "openai-bf16", json.loads(said.to_json()), [named] if named else [],
                            planted.differing(honest, trace), kind="mistake" if bug else "equivalent")
        tap.report(said.ok if bug is None else planted.is_right(found, points),
                   f"{name}: {found['verdict']} {found['first']}, {found['named']}", [f"expected at {points}", found])
        rows += [found] if asks else []
    if writes:
        planted.write("gpt_oss", "gpt_oss.torch", engines.kept("gpt_oss")["runs"][0]["version"], rows, model="synthetic:tiny",
                      tokens="0 to 39")
    wrong = planted.differences("gpt_oss", rows)
    tap.report(not wrong, f"{len(rows)} of them are named as the book's kill table says", wrong)


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
    plant(tap, opened, modeling, model, tokens)
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
        honest_runs(tap, directory, int(os.environ.get("HONEST", "3")))


if __name__ == "__main__":
    own = engines.python_of("gpt_oss")
    if own and pathlib.Path(sys.prefix) != ROOT / engines.home("gpt_oss"):
        os.execv(ROOT / own, [str(ROOT / own), *sys.argv])
    sys.exit(engines.interop("gpt_oss", more))
