# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The backward pass of Hugging Face transformers, judged: every gradient of GPT-OSS, Llama and Qwen3 by torch's autograd.

    python tests/audit/interop_backward_judged.py

A TAP program beside interop_hf.py, which says what it needs. Nothing is outside in float32 and in bfloat16, with each
implementation of the experts, with eager and with fused attention. Hooks then alter gradients of sinks and of a bias:
each is convicted and its cause is named.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
from tap import Tap  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF", os.path.join(ROOT, "build", "release", "sinkproof"))
TOKENS = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50, 28, 84, 97]
RUNS = [("gpt-oss", "float32", "f32", dict(attn_implementation="eager", experts_implementation=experts))
        for experts in ("eager", "grouped_mm", "batched_mm")]
RUNS += [("gpt-oss", "bfloat16", "hf-bf16", options) for _, _, _, options in RUNS]
RUNS += [(shape, dtype, policy, dict(attn_implementation=attention))
         for shape in ("tiny-llama", "tiny-qwen3")
         for dtype, policy, attention in (("float32", "f32", "eager"), ("float32", "f32", "sdpa"),
                                          ("bfloat16", "hf-llama-bf16", "eager"), ("bfloat16", "bf16", "sdpa"))]
ALTERED = [("the sign is wrong", "self_attn.sinks", lambda g: -g),
           ("the sink's gradient is missing: it is zero", "self_attn.sinks", lambda g: g * 0),
           ("it is counted 5 times", "self_attn.sinks", lambda g: g * 5),
           ("it is scaled by 1.7, which was fitted", "self_attn.v_proj.bias", lambda g: g * 1.7)]


def step(torch, sinkproof, directory, path, dtype, options, hook=None):
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, dtype), **options)
    if hook is not None:
        dict(model.named_parameters())["model.layers.1." + hook[0]].register_hook(hook[1])
    with sinkproof.trace(model, backward="cross-entropy", checkpoint=directory) as trace:
        ids = torch.tensor([TOKENS])
        logits = model(input_ids=ids, use_cache=False).logits[0]
        torch.nn.functional.cross_entropy(logits[:-1].float(), ids[0, 1:]).backward()
    trace.save(path)


def judged(directory, path, policy):
    done = subprocess.run([SINKPROOF, "judge", directory, path, "--policy", policy, "--local", "--json", "-"],
                          capture_output=True, text=True)
    return done.returncode, [row for row in json.loads(done.stdout)["results"] if "statement" in row]


def honest(tap, torch, sinkproof, directories, work):
    path = os.path.join(work, "step.safetensors")
    for shape, dtype, policy, options in RUNS:
        step(torch, sinkproof, directories[shape], path, dtype, options)
        code, rows = judged(directories[shape], path, policy)
        outside = [row["id"] for row in rows if row["outside"] > 0]
        undecided = [row["id"] for row in rows if row["verdict"] == "undecided"]
        tap.report(code == 0 and not outside and "dF2" not in undecided and len(rows) > 40,
                   f"grad.rounded {shape} {dtype} {' '.join(options.values())} under {policy}: gradients={len(rows)} "
                   f"elements={sum(row['elements'] for row in rows)} outside=0 undecided={len(undecided)}", [code, outside, undecided])


def altered(tap, torch, sinkproof, directory, work):
    path = os.path.join(work, "altered.safetensors")
    for cause, where, hook in ALTERED:
        step(torch, sinkproof, directory, path, "float32", RUNS[0][3], (where, hook))
        code, rows = judged(directory, path, "f32")
        found = {row["id"]: row["cause"] for row in rows if row["outside"] > 0}
        name = "01.dsink" if where.endswith("sinks") else "01.db.v"
        tap.report(code == 1 and list(found) == [name] and found[name].startswith(cause),
                   f"grad.rounded transformers with {name} altered: {cause}", [code, found])


def main():
    tap = Tap()
    try:
        import interop_hf_models
        import sinkproof
        import torch
        import transformers  # noqa: F401
    except ImportError as missing:
        tap.skip("the backward pass of transformers", f"needs {missing.name}")
        return tap.done()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        directories = {"gpt-oss": interop_hf_models.make(os.path.join(work, "model"), "tiny", seed=5, sliding_window=8)}
        for shape in ("tiny-llama", "tiny-qwen3"):
            directories[shape] = os.path.join(work, shape)
            subprocess.run([SINKPROOF, "synth", f"synthetic:{shape},layers=2", "--out", directories[shape]], check=True)
        honest(tap, torch, sinkproof, directories, work)
        altered(tap, torch, sinkproof, directories["gpt-oss"], work)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
