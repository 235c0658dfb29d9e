# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""KerasHub's GptOssCausalLM on torch, by watching the calls of its layers.

    python -m sinkproof.trace keras-hub MODEL --tokens 5,1,7 --dtype float32 --out trace.safetensors

  T0 A1 A2.q A2.k A2.v A12 M1 M2 M11 M12 F1 F2   outputs of layers
  A4.q A4.k                                      outputs of the rotation, queries first
  A11 A13                                        inputs of the output projection and the second norm
  A6 A9 A10, M3 M4, M6 M8 M10                    operations inside attention, router and experts

Every expert is computed for every token: M6, M8 and M10 are the rows of the experts that the router
chose. With --chunk, tokens go through its cache, which has --room keys from the start.
"""
from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

from sinkproof.adapters import Adapter, Record, TraceError
from sinkproof.adapters._calls import Call, signature_of
from sinkproof.adapters._torch import ADDITIONS, watch


class Engine(Adapter):
    title = "KerasHub"
    install = "pip install torch safetensors; pip install --no-deps keras-hub; pip install keras tokenizers kagglehub"
    tried = ("keras-hub 0.32.0", "keras 3.15.0", "torch 2.13.0")
    packages = ("keras-hub", "keras", "torch")
    dtypes = ("float32", "bfloat16", "float16")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--room", type=int, default=512, metavar="N", help="keys that the cache has room for (512)")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        if not os.path.isfile(os.path.join(model, "config.json")):
            raise TraceError(f"{model}: no config.json there")
        os.environ["KERAS_BACKEND"] = "torch"
        import keras_hub
        backbone = keras_hub.models.GptOssBackbone.from_preset(model, dtype=options.dtype)
        self.network = keras_hub.models.GptOssCausalLM(backbone, preprocessor=None)
        self.record: Record | None = None
        self.seen, self.cache = 0, None
        self.watch_all(backbone)

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        import torch
        record.begin(tokens)
        self.record, ids = record, torch.tensor([list(tokens)], dtype=torch.int32)
        with torch.no_grad():
            if self.options.chunk is None:
                self.network({"token_ids": ids, "padding_mask": torch.ones_like(ids)})
            else:
                self.cache = self.network.call_with_cache(token_ids=ids, cache=self.cache_of(),
                                                          cache_update_index=self.seen)[2]
        self.record = None
        self.seen += len(tokens)

    def cache_of(self) -> Any:
        import keras
        core = self.network.backbone
        shape = [1, core.num_layers, 2, self.options.room, core.num_key_value_heads, core.head_dim]
        return keras.ops.zeros(shape, dtype=self.options.dtype) if self.cache is None else self.cache

    def metadata(self) -> dict[str, str]:
        return {"backend": "torch"}

    # -- watching

    def keep(self, point: str, value: Any, layer: int | None = None) -> None:
        """Keeps a point of one sequence, [1, n, ...]."""
        if self.record is not None:
            self.record.keep(point, value[0], layer)

    def around(self, owner: Any, name: str, see: Callable[[Sequence[Any], Any], None], ops: Any = None) -> None:
        """From now on `see` gets the arguments, by place, and the result of each call; `ops` collects the operations
        inside.
        """
        function = getattr(owner, name)
        signature, what = signature_of(function), f"{type(owner).__name__}.{name}"

        def called(*args: Any, **kwargs: Any) -> Any:
            if self.record is None:
                return function(*args, **kwargs)
            if ops is None:
                result = function(*args, **kwargs)
            else:
                with watch(ops):
                    result = function(*args, **kwargs)
            see(Call(signature, args, kwargs, what).places, result)
            return result

        object.__setattr__(owner, name, called)

    def out(self, layer: Any, point: str, number: int | None = None) -> None:
        self.around(layer, "call", lambda args, result: self.keep(point, result, number))

    def both(self, layer: Any, entering: str, leaving: str, number: int) -> None:
        """Keeps a layer's input as one point and its output as another."""
        def see(args: Any, result: Any) -> None:
            self.keep(entering, args[0], number)
            self.keep(leaving, result, number)

        self.around(layer, "call", see)

    def watch_all(self, core: Any) -> None:
        def embedded(args: Any, result: Any) -> None:
            self.keep("T0" if result.shape[-1] == core.hidden_dim and not args[0].is_floating_point() else "F2", result)

        self.around(core.token_embedding, "call", embedded)
        for number, layer in enumerate(core.transformer_layers):
            self.watch_layer(number, layer)
        self.out(core.layer_norm, "F1")

    def watch_layer(self, number: int, layer: Any) -> None:
        def ended(args: Any, result: Any) -> None:
            self.keep("M12", result[0] if isinstance(result, tuple) else result, number)  # with the cache beside it

        self.out(layer.input_layernorm, "A1", number)
        self.watch_attention(number, layer.self_attention_layer)
        self.both(layer.post_attention_layernorm, "A13", "M1", number)
        self.watch_experts(number, layer.sparse_moe_block)
        self.around(layer, "call", ended)

    def watch_attention(self, number: int, attention: Any) -> None:
        seen: list[tuple[str, Any]] = []

        def operation(name: str, args: Any, result: Any) -> None:
            seen.append((name, result))

        def rotated(args: Any, result: Any) -> None:
            self.keep(turn.pop(0), result, number)
            turn.extend([] if turn else ["A4.q", "A4.k"])

        def attended(args: Any, result: Any) -> None:
            names = [name for name, _ in seen]
            scores, weights = seen[names.index("multiply")][1], seen[names.index("softmax")][1]
            seen.clear()
            end = self.seen + scores.shape[2]
            keys = [*range(end), *[-1] * (scores.shape[3] - end)]
            for point, value in (("A6", scores), ("A9", weights), ("A10", weights[..., :-1])):
                if self.record is not None:
                    self.record.keep(point, value[0], number, keys)

        turn = ["A4.q", "A4.k"]
        for name, layer in (("q", attention.query_dense), ("k", attention.key_dense), ("v", attention.value_dense)):
            self.out(layer, f"A2.{name}", number)
        self.around(attention.rotary_embedding_layer, "call", rotated)
        self.around(attention, "_compute_attention", attended, operation)
        self.both(attention.output_dense, "A11", "A12", number)

    def watch_experts(self, number: int, block: Any) -> None:
        chosen: list[Any] = []
        inside: dict[str, Any] = {}
        products: list[Any] = []

        def routing(name: str, args: Any, result: Any) -> None:
            if name == "topk":
                chosen[:] = [result[1]]
                self.keep("M3", result[1].int()[None], number)
            elif name == "softmax":
                self.keep("M4", result[None], number)

        def computing(name: str, args: Any, result: Any) -> None:
            if name == "einsum":
                inside.update({"M8": args[1]} if products else {})
                products.append(result)
            elif name in ADDITIONS and products and args[0] is products[-1]:
                inside["M6" if len(products) == 1 else "M10"] = result

        def computed(args: Any, result: Any) -> None:
            for point, value in inside.items():  # [experts, n, width]
                rows = value.transpose(0, 1)
                self.keep(point, rows[range_of(rows), chosen[0]][None], number)
            inside.clear()
            products.clear()

        self.around(block.router.router_dense, "call", lambda args, result: self.keep("M2", result[None], number))
        self.around(block.router, "call", lambda args, result: None, routing)
        self.around(block.experts, "call", computed, computing)
        self.around(block, "call", lambda args, result: self.keep("M11", result[0], number))


def range_of(rows: Any) -> Any:
    """[n, 1]: the index of each token."""
    import torch
    return torch.arange(len(rows))[:, None]
