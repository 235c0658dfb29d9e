# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Gradients of Hugging Face transformers, by torch's autograd, as `sinkproof.trace(model, backward=True)` reads them,
against those of `sinkproof run --backward`.

    python tests/audit/interop_backward.py

A TAP program beside interop_hf.py, which says what it needs. The loss is the mean cross-entropy of the next tokens. In
float64, norm and angles included, every gradient of GPT-OSS must be as near as float32 could hold it: within the unit
roundoff of float32 of the tensor's largest element. What float64 itself loses is a billionth of that, and what a mistake
moves is more. In float32, the roundings of a whole pass are in the difference: it is within the unit roundoff of
bfloat16. Of a score that the mask hides, autograd has the gradient of a weight that is 0, and the reference none.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "audit", "python"), os.path.join(ROOT, "tests", "shared")]
from tap import Tap, largest  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF", os.path.join(ROOT, "build", "release", "sinkproof"))
TOKENS = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50, 28, 84, 197]
UNIT = {"float64": 2.0 ** -24, "float32": 2.0 ** -9}  # unit roundoffs of float32 and of bfloat16
MORE = {"dA9", "dA12", "dM5", "dM9", "dM10", "dM11"}  # which the reference does not write: each is another point's


def in_float64(torch):
    """The stages that transformers computes in float32 whatever the model's format, in the model's."""
    from transformers.models.gpt_oss import modeling_gpt_oss as hf

    def norm(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    def angles(self, x, position_ids):
        import math

        rope = self.config.rope_parameters
        dim, base, factor = self.config.head_dim, rope["rope_theta"], rope["factor"]
        pairs = torch.arange(0, dim, 2, dtype=torch.float64)
        trained = 1 / base ** (pairs / dim)
        at = [dim * math.log(rope["original_max_position_embeddings"] / (turns * 2 * math.pi)) / (2 * math.log(base))
              for turns in (rope["beta_fast"], rope["beta_slow"])]
        low, high = max(at[0], 0), min(at[1], dim - 1)
        ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
        angle = position_ids[..., None].double() * (trained / factor * ramp + trained * (1 - ramp))
        concentration = 0.1 * math.log(factor) + 1
        return angle.cos() * concentration, angle.sin() * concentration

    kept = hf.GptOssRMSNorm.forward, hf.GptOssRotaryEmbedding.forward
    hf.GptOssRMSNorm.forward, hf.GptOssRotaryEmbedding.forward = norm, angles
    return lambda: (setattr(hf.GptOssRMSNorm, "forward", kept[0]), setattr(hf.GptOssRotaryEmbedding, "forward", kept[1]))


def passed(torch, model):
    """The logits of a pass forward and back, and each parameter's gradient."""
    ids = torch.tensor([TOKENS])
    logits = model(input_ids=ids, use_cache=False).logits[0]
    torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:]).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad(set_to_none=True)
    return {"logits": logits.detach(), **gradients}


def traced(tap, torch, sinkproof, directory, what, dtype, **options):
    """The trace of a pass, which is the pass without a trace to the bit."""
    import transformers

    undo = in_float64(torch) if dtype == "float64" else lambda: None
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, dtype),
                                                                  attn_implementation="eager", **options)
        alone = passed(torch, model)
        with sinkproof.trace(model, backward="cross-entropy", checkpoint=directory) as trace:
            watched = passed(torch, model)
    finally:
        undo()
    tap.report(alone.keys() == watched.keys() and all(torch.equal(alone[name], watched[name]) for name in alone),
               f"grad.chain {what} {dtype}: no bit of a pass is changed by its being traced")
    return trace


def reference(directory, work):
    from safetensors.numpy import load_file

    path = os.path.join(work, "reference.safetensors")
    subprocess.run([SINKPROOF, "run", directory, "--tokens", ",".join(map(str, TOKENS)), "--backward", "--trace", path],
                   check=True, capture_output=True)
    return load_file(path)


def compared(tap, what, dtype, trace, expected):
    """Every gradient of the trace, tensor by tensor; of a kind of tensors the worst of all layers is told."""
    gradients, mine = ({name: values[name] for name in values if name.split(".", 1)[-1 if name[0].isdigit() else 0][0] == "d"}
                       for values in (trace, expected))
    names = {name for name in gradients if name not in mine}
    tap.report(not set(mine) - set(gradients) and {name.split(".")[-1] for name in names} <= MORE,
               f"grad.chain {what} {dtype}: all {len(mine)} gradients of the reference are traced",
               [sorted(set(mine) - set(gradients)), sorted(names)])
    kinds = {}
    for name in set(mine) & set(gradients):
        want, found = mine[name].astype(float), gradients[name].astype(float)
        if name.endswith(".dA10"):
            found = found * (expected[name.replace("d", "")] > 0)
        most = abs(want).max()
        share = abs(found - want).max() / (most * UNIT[dtype]) if most > 0 else float(abs(found).max() > 0)
        kind = name.split(".", 1)[1] if name[0].isdigit() else name
        kinds[kind] = largest(kinds.get(kind, 0.0), float(share))
    for kind, share in sorted(kinds.items()):
        tap.report(share <= 1, f"grad.chain {what} {dtype} {kind}: worst={share:.3g} bound=1")


def main():
    tap = Tap()
    try:
        import interop_hf_models
        import sinkproof
        import torch
        import transformers  # noqa: F401
    except ImportError as missing:
        tap.skip("gradients of transformers", f"needs {missing.name}")
        return tap.done()
    torch.set_num_threads(1)  # of several, sums of gradients over the experts' rows would come in no fixed order
    with tempfile.TemporaryDirectory() as work:
        directory = interop_hf_models.make(os.path.join(work, "model"), "tiny", seed=5, sliding_window=8)
        mine = reference(directory, work)
        for experts, dtype in (("eager", "float64"), ("eager", "float32"), ("grouped_mm", "float32"), ("batched_mm", "float32")):
            compared(tap, experts, dtype, traced(tap, torch, sinkproof, directory, experts, dtype,
                                                 experts_implementation=experts), mine)
        for shape in ("tiny-llama", "tiny-qwen3"):
            directory = os.path.join(work, shape)
            subprocess.run([SINKPROOF, "synth", f"synthetic:{shape},layers=2", "--out", directory], check=True)
            compared(tap, shape, "float32", traced(tap, torch, sinkproof, directory, shape, "float32"), reference(directory, work))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
