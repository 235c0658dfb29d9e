# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Gradients of Hugging Face transformers' GPT-OSS, by torch's autograd, against those of `sinkproof run --backward`.

    python tests/audit/interop_backward.py

A TAP program beside interop_hf.py, which says what it needs. The loss is the mean cross-entropy of the next tokens. In
float64, norm and angles included, every gradient must be as near as float32 could hold it: within the unit roundoff
of float32 of the tensor's largest element. What float64 itself loses is a billionth of that, and what a mistake moves
is more. In float32, the roundings of a whole pass are in the difference: it is within the unit roundoff of bfloat16.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "shared")]
from tap import Tap, largest  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF", os.path.join(ROOT, "build", "release", "sinkproof"))
TOKENS = [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50, 28, 84, 197]
UNIT = {"float64": 2.0 ** -24, "float32": 2.0 ** -9}  # unit roundoffs of float32 and of bfloat16


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


NAMES = {"input_layernorm.weight": "dW.attn_norm", "post_attention_layernorm.weight": "dW.mlp_norm",
         "self_attn.sinks": "dsink", "mlp.router.weight": "dW.router", "mlp.router.bias": "db.router",
         "mlp.experts.gate_up_proj": "dW.up", "mlp.experts.gate_up_proj_bias": "db.up",
         "mlp.experts.down_proj": "dW.down", "mlp.experts.down_proj_bias": "db.down",
         **{f"self_attn.{x}_proj.{kind}": f"d{letter}.{x}" for x in "qkvo" for kind, letter in (("weight", "W"), ("bias", "b"))}}
ENDS = {"model.embed_tokens.weight": "dW.embedding", "model.norm.weight": "dW.final_norm", "lm_head.weight": "dW.unembedding"}


def ours(name):
    """The name of a parameter's gradient in a trace, and whether it is transposed there."""
    if name in ENDS:
        return ENDS[name], False
    layer, rest = name.removeprefix("model.layers.").split(".", 1)
    return f"{int(layer):02d}.{NAMES[rest]}", rest in ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")


def autograd(torch, directory, dtype, tokens):
    import transformers

    undo = in_float64(torch) if dtype == "float64" else lambda: None
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, dtype),
                                                                  attn_implementation="eager", experts_implementation="eager")
        ids = torch.tensor([tokens])
        logits = model(input_ids=ids, use_cache=False).logits[0]
        loss = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:])
        loss.backward()
    finally:
        undo()
    return loss.item(), {name: p.grad for name, p in model.named_parameters()}


def compared(tap, torch, directory, shape, dtype, gradients):
    loss, theirs = autograd(torch, directory, dtype, TOKENS)
    kinds = {}
    for name, grad in theirs.items():
        name, transposed = ours(name)
        mine = gradients[name].double()
        grad = torch.zeros_like(mine) if grad is None else grad.double()
        grad = grad.transpose(-1, -2) if transposed else grad
        share = ((grad - mine).abs().max() / (mine.abs().max() * UNIT[dtype])).item() if mine.abs().max() > 0 \
            else float(grad.abs().max() > 0)
        kind = name.split(".", 1)[1] if name[0].isdigit() else name
        kinds[kind] = largest(kinds.get(kind, 0.0), share)
    for kind, share in sorted(kinds.items()):
        tap.report(share <= 1, f"grad.chain {shape} {dtype} {kind}: worst={share:.3g} bound=1")
    return loss


def main():
    tap = Tap()
    try:
        import interop_hf_models
        import torch
        from safetensors.torch import load_file
        import transformers  # noqa: F401
    except ImportError as missing:
        tap.skip("gradients of transformers", f"needs {missing.name}")
        return tap.done()
    with tempfile.TemporaryDirectory() as work:
        directory = interop_hf_models.make(os.path.join(work, "model"), "tiny", seed=5, sliding_window=8)
        trace = os.path.join(work, "trace.safetensors")
        subprocess.run([SINKPROOF, "run", directory, "--tokens", ",".join(map(str, TOKENS)), "--backward", "--trace", trace],
                       check=True, capture_output=True)
        gradients = load_file(trace)
        for dtype in UNIT:
            compared(tap, torch, directory, "tiny", dtype, gradients)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
