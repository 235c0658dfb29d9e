# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""OpenAI's gpt_oss.torch, the published reference: a prompt at once, without a cache.

  T0 A1 A2.q A2.k A2.v A12 M1 M2 F1 F2   outputs of modules: forward hooks
  A4.q A4.k, A13 M12                     outputs of the rotation and of the two blocks
  A6 A9 A10 A11                          operations inside `sdpa`, which is wrapped: a TorchFunctionMode
  M3 M4 M5 M6 M8 M9 M10 M11              operations inside the second block, in the same way

Its parameters are bfloat16, and so are its results; `--dtype float32` widens the parameters first.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters import Adapter, Record
from sinkproof.adapters._batches import Batch, Batches
from sinkproof.adapters._calls import Call, signature_of
from sinkproof.adapters._torch import ADDITIONS, DTYPES, SCALINGS, Hooks, Module, Tensor, same_storage, watch


def watches(model: Module) -> bool:
    """Whether the Watcher below supports the model."""
    return any(parent.__module__ == "gpt_oss.torch.model" and parent.__name__ == "Transformer"
               for parent in type(model).__mro__)


class AttentionOps:
    """Watches one call of `sdpa`: the first product scaled in place, the softmax."""

    def __init__(self) -> None:
        self.product: Tensor = None
        self.scores: Tensor = None
        self.weights: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name == "einsum" and self.product is None:
            self.product = result
        elif name in SCALINGS and self.scores is None and args[0] is self.product:
            self.scores = result.clone()  # the mask is added in place
        elif name == "softmax":
            self.weights = result


class ExpertOps:
    """Watches one call of the second block: router, then up, down and mixture as three products."""

    def __init__(self) -> None:
        self.seen: dict[str, Tensor] = {}
        self.products: list[Tensor] = []

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name == "topk":
            self.seen["M3"] = result[1].int()
        elif name == "softmax":
            self.seen["M4"] = result
        elif name == "einsum":
            self.seen[("M5", "M9", "M11")[min(len(self.products), 2)]] = result.clone()  # a bias may be added in place
            self.products.append(result)
        elif name in ADDITIONS and self.products and same_storage(self.products[-1], args[0]):
            self.seen.setdefault("M6" if len(self.products) == 1 else "M10", result)

    def points(self) -> dict[str, Tensor]:
        missing = [point for point in ("M3", "M4", "M5", "M6", "M9", "M10", "M11") if point not in self.seen]
        if missing or len(self.products) != 3:
            raise TraceError(f"in the experts {', '.join(missing) or 'three products'} were not seen")
        return self.seen


class Watcher(Hooks):
    """Hooks a Transformer during a `with` block; each call is a sequence."""

    def __init__(self, model: Module, batches: Batches) -> None:
        super().__init__()
        self.model, self.batches = model, batches
        self.batch: Batch | None = None
        self.layer = 0  # the running layer, for functions that do not know theirs

    def __enter__(self) -> Watcher:
        self.enter(self.model, self.begin)
        self.after(self.model.embedding, lambda out: self.keep("T0", out))
        self.after(self.model.norm, lambda out: self.keep("F1", out))
        self.after(self.model.unembedding, lambda out: self.keep("F2", out))
        for index, block in enumerate(self.model.block):
            self.hook_attention(index, block.attn)
            self.hook_experts(index, block.mlp)
        modeling = sys.modules["gpt_oss.torch.model"]
        self.replace(modeling, "sdpa", self.sdpa(modeling.sdpa))
        self.replace(modeling, "swiglu", self.swiglu(modeling.swiglu))
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self, call: Call) -> None:
        """Starts a sequence: each call has tokens, and no argument that could hold a past."""
        import torch
        ids = call.first()
        call.refuse_others(list(call.given)[:1])
        if ids.dim() != 1:
            raise TraceError(f"expected tokens [n], found {list(ids.shape)}")
        self.batch = self.batches.begin(ids[None], None, ids[None, :0])
        self.batch.begin(ids[None], torch.ones_like(ids[None]))

    def keep(self, point: str, values: Tensor, layer: int | None = None) -> None:
        """Keeps [n, ...] of one sequence."""
        if self.batch is not None:
            self.batch.keep(point, values[None], layer)

    def hook_attention(self, index: int, attention: Module) -> None:
        def split(qkv: Tensor) -> None:
            heads = [attention.num_attention_heads, attention.num_key_value_heads, attention.num_key_value_heads]
            parts = qkv.reshape(len(qkv), -1, attention.head_dim).split(heads, dim=1)
            for point, part in zip(("A2.q", "A2.k", "A2.v"), parts):
                self.keep(point, part, index)

        def running(values: Tensor) -> None:
            self.layer = index

        def rotated(forward: Callable[..., Any]) -> Callable[..., Any]:
            def traced(*args: Any, **kwargs: Any) -> Any:
                query, key = forward(*args, **kwargs)
                self.keep("A4.q", query.reshape(len(query), -1, attention.head_dim), index)
                self.keep("A4.k", key.reshape(len(key), -1, attention.head_dim), index)
                return query, key
            return traced

        self.before(attention, running)
        self.after(attention.norm, lambda out: self.keep("A1", out, index))
        self.after(attention.qkv, split)
        self.around(attention.rope, rotated)
        self.after(attention.out, lambda out: self.keep("A12", out, index))
        self.after(attention, lambda out: self.keep("A13", out, index))

    def hook_experts(self, index: int, mlp: Module) -> None:
        def watched(forward: Callable[..., Any]) -> Callable[..., Any]:
            def traced(*args: Any, **kwargs: Any) -> Any:
                ops = ExpertOps()
                with watch(ops):
                    output = forward(*args, **kwargs)
                for point, values in ops.points().items():
                    self.keep(point, values, index)
                self.keep("M12", output, index)
                return output
            return traced

        self.after(mlp.norm, lambda out: self.keep("M1", out, index))
        self.after(mlp.gate, lambda out: self.keep("M2", out, index))
        self.around(mlp, watched)

    def sdpa(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        signature = signature_of(forward)

        def traced(*args: Any, **kwargs: Any) -> Any:
            query, ops = Call(signature, args, kwargs, "sdpa").first(), AttentionOps()
            with watch(ops):
                output = forward(*args, **kwargs)
            if ops.scores is None or ops.weights is None:
                raise TraceError("scaled scores or softmax were not seen in the attention")
            for point, values in (("A6", ops.scores), ("A9", ops.weights), ("A10", ops.weights[..., :-1])):
                if self.batch is not None:
                    self.batch.keep_by_head(point, values.flatten(0, 1)[None], self.layer, sink=point == "A9")
            self.keep("A11", output.reshape(len(output), -1, query.shape[-1]), self.layer)
            return output
        return traced

    def swiglu(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **kwargs: Any) -> Any:
            output = forward(*args, **kwargs)
            self.keep("M8", output, self.layer)
            return output
        return traced


def metadata_of(model: Module) -> dict[str, str]:
    dtype = str(model.embedding.weight.dtype).replace("torch.", "")
    return {"dtype": DTYPES.get(dtype, dtype)}


class Engine(Adapter):
    title = "OpenAI gpt_oss.torch"
    install = "pip install torch safetensors numpy; pip install --no-deps --ignore-requires-python gpt-oss"
    tried = ("gpt-oss 0.0.9", "torch 2.13.0")
    packages = ("gpt-oss", "torch")
    dtypes = ("bfloat16", "float32")
    in_pieces = False

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        if not os.path.isfile(os.path.join(model, "config.json")):
            raise TraceError(f"{model}: no config.json there")
        import torch
        from gpt_oss.torch.model import Transformer
        self.module = Transformer.from_checkpoint(model, device="cpu").to(getattr(torch, options.dtype))

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        import torch
        with torch.no_grad(), Watcher(self.module, Batches(lambda: record)):
            self.module(torch.tensor(list(tokens), dtype=torch.int32))

    def metadata(self) -> dict[str, str]:
        return metadata_of(self.module)
