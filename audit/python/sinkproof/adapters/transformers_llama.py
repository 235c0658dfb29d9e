# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers' LlamaForCausalLM and its relatives, watched as its GptOssForCausalLM is.

The relatives are Qwen2ForCausalLM, Qwen3ForCausalLM and MistralForCausalLM.

  T0 A1 A2.q A2.k A2.v A12 A13   as there
  M1 M12 F1 F2
  A3.q A3.k                      outputs of q_norm and k_norm, which Qwen3 has
  A4.q A4.k A11, A6 A10          the wrapped attention; A6 and A10 where it is eager
  M6                             outputs of gate_proj and up_proj, side by side: g0 u0 g1 u1 ...
  M8, M10                        what down_proj is given, and what it gives

There is no A9: its last column is a sink's, and these weights have none.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

from sinkproof.adapters import transformers as gpt_oss
from sinkproof.adapters._torch import Module, Tensor

CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
           "mistral": "MistralForCausalLM"}  # of each model_type
metadata_of = gpt_oss.metadata_of


def watches(model: Module) -> bool:
    """Whether it is a model that the Watcher below knows."""
    return not {parent.__name__ for parent in type(gpt_oss.uncompiled(model)).__mro__}.isdisjoint(CLASSES.values())


class Watcher(gpt_oss.Watcher):
    """Hooks a loaded model during a `with` block; `batches` has the results."""

    attention = ("A4.q", "A4.k", "A6", "A10", "A11")

    def hook_layer(self, index: int, layer: Module) -> None:
        super().hook_layer(index, layer)
        for letter in "qk":
            norm = getattr(layer.self_attn, f"{letter}_norm", None)
            if norm is not None:  # of [batch, tokens, heads, head_dim]
                self.after(norm, functools.partial(self.keep_normed, f"A3.{letter}", index))

    def keep_normed(self, point: str, index: int, out: Tensor) -> None:
        self.keep(point, out, index)

    def hook_mlp(self, index: int, layer: Module, keep: Callable[[str], Callable[[Tensor], None]]) -> None:
        both: dict[str, Tensor] = {}  # of the running call; which is computed first is the model's choice
        see = keep("M6")

        def keep_half(name: str, out: Tensor) -> None:
            import torch
            both[name] = out
            if len(both) == 2:
                see(torch.stack((both.pop("gate"), both.pop("up")), dim=-1).flatten(-2))

        self.after(layer.mlp.gate_proj, functools.partial(keep_half, "gate"))
        self.after(layer.mlp.up_proj, functools.partial(keep_half, "up"))
        self.before(layer.mlp.down_proj, keep("M8"))
        self.after(layer.mlp.down_proj, keep("M10"))


def load_model(directory: str, dtype: str, attention: str = "eager") -> Module:
    """The model of a directory by the class of its model_type, on the CPU."""
    return gpt_oss.load_dense(directory, dtype, attention, **CLASSES)


class Engine(gpt_oss.Engine):
    title = "transformers Llama, Qwen2, Qwen3 and Mistral"
    install = "pip install torch transformers safetensors"
    tried = ("transformers 5.23.0", "transformers 5.24.0", "torch 2.13.0")
    watcher = Watcher

    def load(self) -> Module:
        return load_model(self.model, self.options.dtype, self.options.attention)
