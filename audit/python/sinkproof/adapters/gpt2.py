# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers' GPT2LMHeadModel, watched in the same way as GptOssForCausalLM.

  T0                                     output of the dropout after the sum of both embeddings
  A1 A2.q A2.k A2.v A12 M1 M6 M8 M10     outputs of modules: c_attn's is cut into three
  M12 F1 F2
  A13                                    input of the second norm
  A6, A10 A11                            the wrapped attention, if it is eager

There is no A9: its last column is a sink's, and these weights have none.
"""
from __future__ import annotations

import sys
from collections.abc import Callable

from sinkproof._trace import TraceError
from sinkproof.adapters import transformers as gpt_oss
from sinkproof.adapters._torch import Module, Tensor

metadata_of = gpt_oss.metadata_of


def watches(model: Module) -> bool:
    """Whether the Watcher below supports the model."""
    return "GPT2LMHeadModel" in {parent.__name__ for parent in type(gpt_oss.uncompiled(model)).__mro__}


class Watcher(gpt_oss.Watcher):
    """Hooks a loaded model during a `with` block; `batches` has the results."""

    cached = ("A2.k", "A2.v")
    attention = ("A6", "A10", "A11")

    def __enter__(self) -> Watcher:
        base = self.model.transformer
        if gpt_oss.is_compiled(self.outer):
            raise TraceError("expected a GPT2LMHeadModel that is not compiled")
        self.enter(self.outer, self.begin, self.model)
        self.leave(self.outer, self.end)
        self.after(base.drop, lambda out: self.keep("T0", out))
        self.after(base.ln_f, lambda out: self.keep("F1", out))
        self.after(self.model.lm_head, self.keep_logits)
        for index, layer in enumerate(base.h):
            self.hook_layer(index, layer)
        if gpt_oss.attention_implementation(self.model) == "eager":
            self.wrap_attention(sys.modules[type(base.h[0].attn).__module__], len(base.h))
        return self

    def hook_layer(self, index: int, layer: Module) -> None:
        def keep(point: str) -> Callable[[Tensor], None]:
            return lambda out: self.keep(point, out, index)

        def keep_projections(out: Tensor) -> None:
            for point, part in zip(("A2.q", "A2.k", "A2.v"), out.chunk(3, dim=-1)):
                self.keep(point, part.reshape(*part.shape[:2], layer.attn.num_heads, -1), index)

        self.after(layer.ln_1, keep("A1"))
        self.after(layer.attn.c_attn, keep_projections)
        self.after(layer.attn.c_proj, keep("A12"))
        self.before(layer.ln_2, keep("A13"))
        self.after(layer.ln_2, keep("M1"))
        self.after(layer.mlp.c_fc, keep("M6"))
        self.after(layer.mlp.act, keep("M8"))
        self.after(layer.mlp.c_proj, keep("M10"))
        self.after(layer, keep("M12"))


def load_model(directory: str, dtype: str, attention: str = "eager") -> Module:
    """GPT2LMHeadModel from a directory, on the CPU."""
    return gpt_oss.load_dense(directory, dtype, attention, gpt2="GPT2LMHeadModel")


class Engine(gpt_oss.Engine):
    title = "transformers GPT2LMHeadModel"
    install = "pip install torch transformers safetensors"
    tried = ("transformers 5.23.0", "transformers 5.24.0", "torch 2.13.0")
    watcher = Watcher

    def load(self) -> Module:
        return load_model(self.model, self.options.dtype, self.options.attention)
