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

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters import Adapter, Record
from sinkproof.adapters import transformers as gpt_oss
from sinkproof.adapters._batches import Batches
from sinkproof.adapters._torch import Module, Tensor
from sinkproof.adapters._transformers_ops import AttentionOps
from sinkproof.adapters._torch import watch


def watches(model: Module) -> bool:
    """Whether the Watcher below supports the model."""
    return "GPT2LMHeadModel" in {parent.__name__ for parent in type(gpt_oss.uncompiled(model)).__mro__}


def metadata_of(model: Module) -> dict[str, str]:
    said = gpt_oss.metadata_of(model)
    said.pop("experts")
    return said


class Watcher(gpt_oss.Watcher):
    """Hooks a loaded model during a `with` block; `batches` has the results."""

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
            see: gpt_oss.Seers = [{point: functools.partial(self.keep_attention, point, layer) for point in ("A6", "A10", "A11")}
                   for layer in range(len(base.h))]
            modeling = sys.modules[type(base.h[0].attn).__module__]
            self.replace(modeling, "eager_attention_forward", eager_forward(modeling.eager_attention_forward, see))
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


def eager_forward(eager: Callable[..., Any], see: gpt_oss.Seers) -> Callable[..., Any]:
    """Eager attention that shows its scaled scores and its results."""
    def traced(module: Module, *args: Any, **kwargs: Any) -> Any:
        ops = AttentionOps()
        with watch(ops):
            output, weights = eager(module, *args, **kwargs)
        if ops.scores is None:
            raise TraceError("scaled scores were not seen in the attention")
        for point, values in (("A6", ops.scores), ("A10", weights), ("A11", output)):
            see[module.layer_idx][point](values)
        return output, weights
    return traced


def load_model(directory: str, dtype: str, attention: str = "eager") -> Module:
    """GPT2LMHeadModel from a directory, on the CPU."""
    gpt_oss.checkpoint_config(directory, "gpt2")
    import torch
    import transformers

    return gpt_oss.complete(directory, *transformers.GPT2LMHeadModel.from_pretrained(
        directory, attn_implementation=attention, output_loading_info=True, dtype=getattr(torch, dtype)))


class Engine(Adapter):
    title = "transformers GPT2LMHeadModel"
    install = "pip install torch transformers safetensors"
    tried = ("transformers 5.23.0", "transformers 5.24.0", "torch 2.13.0")
    packages = ("transformers", "torch")
    dtypes = ("bfloat16", "float32", "float16")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--attention", default="eager", metavar="NAME", help="eager, sdpa, ...")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        self.module = load_model(model, options.dtype, options.attention)
        self.cache: Any = None
        self.batches: Batches | None = None

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        import torch
        if self.batches is None:
            self.batches = Batches(lambda: record)
            self.cache = gpt_oss.new_cache(self.module.config) if self.options.chunk else None
        with torch.no_grad(), Watcher(self.module, self.batches):
            self.module(input_ids=torch.tensor([list(tokens)]), use_cache=self.cache is not None,
                        **{gpt_oss.cache_word(self.module): self.cache})

    def metadata(self) -> dict[str, str]:
        return metadata_of(self.module)
