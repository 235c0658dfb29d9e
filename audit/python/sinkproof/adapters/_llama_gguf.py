# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A model as a GGUF file, its weights in the types that llama.cpp has kernels for.

f32 holds every bfloat16 and MXFP4 weight exactly, bf16 and f16 those that are numbers of theirs, and
a weight that is not is refused; q8_0 makes another set of weights. Experts are MXFP4 again, exactly,
or dense. As llama.cpp's own converter has it, router, norms, biases and sinks are f32.
"""
from __future__ import annotations

import ml_dtypes
import numpy as np

from sinkproof._model import Model
from sinkproof._trace import Array, TraceError

DENSE = ("f32", "bf16", "f16", "q8_0")
EXPERTS = ("mxfp4", *DENSE)
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def encoded_mxfp4(weights: Array) -> Array:
    """Blocks of ggml, 17 bytes for 32 weights: the scale, then 16 bytes with code i low and code i + 16 high.

    The largest weight of a block gets a code of 4 or 6: what was MXFP4 at any scale is so exactly.
    """
    blocks = weights.reshape(*weights.shape[:-1], -1, 32)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    exponent = np.clip(np.frexp(np.where(largest > 0, largest, 1))[1] - 3, -127, 127)
    magnitudes = np.ldexp(np.abs(blocks), -exponent)
    codes = np.minimum(np.searchsorted(FP4, magnitudes), len(FP4) - 1)
    if not np.array_equal(FP4[codes], magnitudes):
        raise TraceError("expected experts in MXFP4, found weights that are no numbers of it: use --experts")
    codes = codes + 8 * np.signbit(blocks)
    both = codes[..., :16] | codes[..., 16:] << 4
    raw = np.concatenate([exponent + 127, both], axis=-1).astype(np.uint8)
    return raw.reshape(*weights.shape[:-1], -1)


class Writer:
    """A GGUF file in the making: `model`'s numbers and weights under llama.cpp's names."""

    def __init__(self, path: str, model: Model) -> None:
        import gguf

        self.gguf, self.out, self.model = gguf, gguf.GGUFWriter(path, "gpt-oss"), model

    def number(self, name: str) -> int:
        return int(self.model.number(name))

    def write_keys(self) -> None:
        out, number = self.out, self.model.number
        for add, name in ((out.add_embedding_length, "hidden"), (out.add_block_count, "n_layers"),
                          (out.add_feed_forward_length, "inter"), (out.add_expert_feed_forward_length, "inter"),
                          (out.add_head_count, "n_heads"), (out.add_head_count_kv, "n_kv_heads"),
                          (out.add_key_length, "head_dim"), (out.add_value_length, "head_dim"),
                          (out.add_rope_dimension_count, "head_dim"), (out.add_expert_count, "n_experts"),
                          (out.add_expert_used_count, "n_chosen"), (out.add_sliding_window, "window"),
                          (out.add_vocab_size, "vocab"), (out.add_context_length, "max_context"),
                          (out.add_rope_scaling_orig_ctx_len, "yarn_original_context")):
            add(self.number(name))
        out.add_layer_norm_rms_eps(number("rms_eps"))
        out.add_rope_freq_base(number("rope_theta"))
        out.add_rope_scaling_type(self.gguf.RopeScalingType.YARN)
        out.add_rope_scaling_factor(number("yarn_factor"))
        out.add_rope_scaling_yarn_beta_fast(number("yarn_beta_fast"))
        out.add_rope_scaling_yarn_beta_slow(number("yarn_beta_slow"))
        out.add_tokenizer_model("none")

    def put(self, name: str, weights: Array, kind: str = "f32") -> None:
        """One tensor; `weights` are exact in float64."""
        exact = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(kind)
        if exact is not None and not np.array_equal(weights.astype(exact).astype(np.float64), weights):
            raise TraceError(f"{name}: a weight is no number of {kind}, and would be another in the file")
        if kind in ("f32", "f16"):
            self.out.add_tensor(name, np.ascontiguousarray(weights, exact))
            return
        number = self.gguf.GGMLQuantizationType[kind.upper()]
        raw = encoded_mxfp4(weights) if kind == "mxfp4" else self.gguf.quants.quantize(
            np.ascontiguousarray(weights, np.float32), number)
        self.out.add_tensor(name, raw, raw_dtype=number)

    def put_vector(self, name: str, ours: str, layer: int = 0) -> None:
        self.put(name, self.model.weight(ours, layer)[0])

    def put_layer(self, layer: int, dense: str, experts: str) -> None:
        block = f"blk.{layer}."
        for name, ours in (("attn_norm.weight", "attn_norm"), ("post_attention_norm.weight", "mlp_norm"),
                           ("attn_sinks.weight", "sinks"), ("attn_q.bias", "b_q"), ("attn_k.bias", "b_k"),
                           ("attn_v.bias", "b_v"), ("attn_output.bias", "b_o"), ("ffn_gate_inp.bias", "b_router")):
            self.put_vector(block + name, ours, layer)
        for name, ours in (("attn_q", "w_q"), ("attn_k", "w_k"), ("attn_v", "w_v"), ("attn_output", "w_o")):
            self.put(f"{block}{name}.weight", self.model.weight(ours, layer), dense)
        self.put(f"{block}ffn_gate_inp.weight", self.model.weight("w_router", layer))
        w_up, b_up, w_down, b_down = (np.stack([self.model.weight(ours, layer, e) for e in range(
            self.number("n_experts"))]) for ours in ("w_up", "b_up", "w_down", "b_down"))
        for name, weights, bias in (("gate", w_up[:, ::2], b_up[:, 0, ::2]), ("up", w_up[:, 1::2], b_up[:, 0, 1::2]),
                                    ("down", w_down, b_down[:, 0])):
            self.put(f"{block}ffn_{name}_exps.weight", weights, experts)
            self.put(f"{block}ffn_{name}_exps.bias", bias)

    def close(self) -> None:
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


def write_gguf(model: Model, path: str, dense: str, experts: str) -> None:
    """The whole model, dense weights and experts each in a type."""
    writer = Writer(path, model)
    writer.write_keys()
    writer.put("token_embd.weight", model.weight("embedding"), dense)
    writer.put_vector("output_norm.weight", "final_norm")
    writer.put("output.weight", model.weight("unembedding"), dense)
    for layer in range(writer.number("n_layers")):
        writer.put_layer(layer, dense, experts)
    writer.close()
