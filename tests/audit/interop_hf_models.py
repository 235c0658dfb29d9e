# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Random GPT-OSS checkpoints, made and saved by Hugging Face transformers itself.

The weights are alive: scores spread over several units, sinks anywhere in -10..10, every bias and
norm weight matters, some gates reach the clamp at 7, routing is neither uniform nor frozen. The
usual initialisation (0.02 everywhere, biases zero) would hide most mistakes.
"""
import math

# `tiny` is sinkproof's synthetic:tiny with a window of 128: no two widths are equal, so that a
# transposed, swapped or mis-shared view shows. `shape20b` is gpt-oss-20b with fewer experts.
SHAPES = {
    "tiny": dict(num_hidden_layers=4, hidden_size=96, intermediate_size=128,
                 num_attention_heads=10, num_key_value_heads=2, head_dim=16,
                 num_local_experts=7, num_experts_per_tok=3, vocab_size=211),
    "shape20b": dict(num_hidden_layers=4, hidden_size=2880, intermediate_size=2880,
                     num_attention_heads=64, num_key_value_heads=8, head_dim=64,
                     num_local_experts=5, num_experts_per_tok=4, vocab_size=515),
}


def config_of(shape, **changes):
    from transformers import GptOssConfig

    fields = dict(SHAPES[shape], sliding_window=128,
                  pad_token_id=None, bos_token_id=None, eos_token_id=None)
    return GptOssConfig(**{**fields, **changes})


def fill(model, seed):
    """Draws every parameter; the values depend on the seed and the shape alone."""
    import torch

    generator = torch.Generator().manual_seed(seed)

    def normal(shape, std, mean=0.0):
        return torch.randn(shape, generator=generator) * std + mean

    def uniform(shape, low, high):
        return torch.rand(shape, generator=generator) * (high - low) + low

    def value(name, shape):
        last = name.rsplit(".", 2)
        if name.endswith("sinks"):
            return uniform(shape, -10, 10)
        if "norm" in name:
            return uniform(shape, 0.5, 1.5)
        if "bias" in name:
            return normal(shape, 0.5)
        if "embed_tokens" in name:
            return normal(shape, 1.0)
        if "router" in last:
            return normal(shape, 1.0 / math.sqrt(shape[1]))
        if "gate_up_proj" in name:  # [experts, hidden, 2 inter]
            return normal(shape, 2.0 / math.sqrt(shape[1]))
        if "down_proj" in name:  # [experts, inter, hidden]
            return normal(shape, 0.3 / math.sqrt(shape[1]))
        return normal(shape, 1.0 / math.sqrt(shape[1]))  # linear maps, [out, in]

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(value(name, tuple(parameter.shape)))


def make(directory, shape, seed=1, **changes):
    """Saves a bfloat16 checkpoint with save_pretrained; returns its directory."""
    import torch
    import transformers

    config = config_of(shape, **changes)
    config.dtype = torch.bfloat16
    with torch.device("meta"):
        model = transformers.GptOssForCausalLM(config)
    model = model.to(torch.bfloat16).to_empty(device="cpu")
    fill(model, seed)
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(directory)
    return directory
