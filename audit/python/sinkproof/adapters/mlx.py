# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""mlx-lm's gpt_oss model on MLX, by watching the calls of its modules.

    python -m sinkproof.trace mlx MODEL --tokens 5,1,7 --dtype bfloat16 --out trace.safetensors

Every operation runs once, where mlx-lm runs it. The sources of the points:

  T0 A1 A2.q A2.k A2.v A12 M1 M2 M10 M11 M12 F1 F2   outputs of modules
  A4.q A4.k         outputs of the rotation, queries first
  A11               output of the fused attention
  A13               input of the second norm
  M3 M4             outputs of the module's top k and softmax
  M6 M8             the two projections side by side, and the input of the down-projection; from 64
                    chosen experts on MLX sorts the rows by expert, and its own inverse order undoes it

A6, A9 and A10 exist only inside the fused attention. mlx-lm reads Hugging Face's layout; experts stay
in MXFP4 there, whatever --dtype says about the rest.
"""
from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sinkproof.adapters import Adapter, Record, TraceError
from sinkproof.adapters._calls import Call, signature_of


def as_numpy(array: Any) -> Any:
    """The same bits; numpy has no bfloat16 of its own."""
    import mlx.core as mx
    array = mx.contiguous(array)
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    found = np.array(array)
    return found.astype(np.int32) if found.dtype == np.uint32 else found


def watch(module: Any, see: Callable[[Sequence[Any], Any], None]) -> None:
    """From now on `see` gets the arguments, by place, and the result of every call of the module."""
    kind, signature = type(module), signature_of(module.__call__)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = kind.__call__(self, *args, **kwargs)
        see(Call(signature, args, kwargs, kind.__name__).places, result)
        return result

    module.__class__ = type(kind.__name__, (kind,), {"__call__": called})


class Watched:
    """A Python module with some watched functions; everything else is the module's own."""

    def __init__(self, module: Any, **seen: Callable[..., Any]) -> None:
        self.__module, self.__seen = module, seen

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__module, name)
        if name not in self.__seen:
            return found

        def called(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            self.__seen[name](args, result)
            return result

        return called


class Engine(Adapter):
    title = "mlx-lm"
    install = "pip install mlx-lm 'mlx[cpu]'"
    tried = ("mlx-lm 0.32.2", "mlx 0.32.4")
    packages = ("mlx-lm", "mlx")
    dtypes = ("checkpoint", "float32", "bfloat16", "float16")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--cache", choices=["own", "plain", "none"], default="own",
                            help="own: what the model makes, rotating where it slides; plain: every key kept; none")
        parser.add_argument("--kv-bits", type=int, choices=[4, 8], help="quantize the cache of full layers")
        parser.add_argument("--experts", choices=["mxfp4", "plain"], default="mxfp4",
                            help="plain: experts dequantized into --dtype when they are loaded")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        import pathlib

        import mlx.core as mx
        from mlx_lm.utils import load_model
        mx.set_default_device(mx.cpu)
        self.network, config = load_model(pathlib.Path(model))
        if config.get("model_type") != "gpt_oss":
            raise TraceError(f'{model}: model_type is "{config.get("model_type")}", expected "gpt_oss"')
        if options.experts == "plain":
            self.dequantize()
        if options.dtype != "checkpoint":
            self.network.set_dtype(getattr(mx, options.dtype))
        self.caches = self.make_caches()
        self.undo = contextlib.ExitStack()
        self.fed = 0  # tokens so far
        self.layer, self.inverse, self.kept = 0, None, list[tuple[str, int | None, Any]]()
        self.watch_all()

    # -- the engine

    def dequantize(self) -> None:
        """Converts packed experts to plain ones with mlx-lm's own function, as for training."""
        import mlx.core as mx
        from mlx_lm.models.switch_layers import SwitchLinear
        for layer in self.network.layers:
            experts = layer.mlp.experts
            for name in ("gate_proj", "up_proj", "down_proj"):
                packed = getattr(experts, name)
                plain = SwitchLinear(packed.input_dims, packed.output_dims, packed.num_experts, bias=True)
                plain.weight = mx.dequantize(packed.weight, packed.scales, group_size=packed.group_size,
                                             bits=packed.bits, mode=packed.mode)
                plain.bias = packed.bias
                setattr(experts, name, plain)

    def make_caches(self) -> Any:
        from mlx_lm.models.cache import KVCache
        if self.options.cache == "none" and self.options.chunk:
            raise TraceError("--cache none: no cache that --chunk could feed")
        if self.options.cache == "none":
            return None
        caches = self.network.make_cache() if self.options.cache == "own" else [KVCache() for _ in self.network.layers]
        if self.options.kv_bits:
            caches = [cache.to_quantized(bits=self.options.kv_bits) if isinstance(cache, KVCache) else cache
                      for cache in caches]
        return caches

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        import mlx.core as mx
        record.begin(tokens)
        self.layer, self.kept = -1, []
        logits = self.network(mx.array([list(tokens)]), cache=self.caches)
        self.fed += len(tokens)
        self.check_caches()
        mx.eval(logits, [array for _, _, array in self.kept])
        for point, layer, array in self.kept:
            record.keep(point, as_numpy(array), layer)

    def check_caches(self) -> None:
        """Refuses a model that ignores its cache: each piece would begin another sequence."""
        held = sorted({int(cache.offset) for cache in self.caches or ()} - {self.fed})
        if held:
            raise TraceError(f"expected {self.fed} tokens in each layer's cache, found {held}: the model did not use it")

    def close(self) -> None:
        self.undo.close()

    def metadata(self) -> dict[str, str]:
        import mlx.core as mx
        return {"cache": self.options.cache, "experts": self.options.experts, "device": str(mx.default_device()),
                "kv_bits": str(self.options.kv_bits or "")}

    # -- watching

    def keep(self, point: str, array: Any, layer: int | None) -> None:
        """Keeps a point of one sequence, [1, n, ...], unevaluated until the end."""
        self.kept.append((point, layer, array[0]))

    def out(self, module: Any, point: str, layer: int | None = None) -> None:
        watch(module, lambda args, result: self.keep(point, result, layer))

    def watch_all(self) -> None:
        from mlx_lm.models import gpt_oss, switch_layers
        self.out(self.network.model.embed_tokens, "T0")
        for number, layer in enumerate(self.network.layers):
            self.watch_layer(number, layer)
        self.out(self.network.model.norm, "F1")
        self.out(self.network.lm_head, "F2")
        self.replace(gpt_oss, "scaled_dot_product_attention", 
                     lambda args, result: self.keep("A11", result.swapaxes(1, 2), self.layer))
        self.replace(gpt_oss, "mlx_topk", lambda args, result: self.keep("M3", result[1], self.layer))
        self.replace(switch_layers, "_gather_sort", self.see_sort)
        mx = gpt_oss.mx
        gpt_oss.mx = Watched(mx, softmax=lambda args, result: self.keep("M4", result, self.layer))
        self.undo.callback(setattr, gpt_oss, "mx", mx)

    def watch_layer(self, number: int, layer: Any) -> None:
        attention, experts = layer.self_attn, layer.mlp.experts

        def enter(args: Any, result: Any) -> None:
            self.layer, self.inverse = number, None
            self.keep("A1", result, number)

        def second_norm(args: Any, result: Any) -> None:
            self.keep("A13", args[0], number)
            self.keep("M1", result, number)

        def rotated(args: Any, result: Any) -> None:
            # Queries first, then keys: [1, heads, n, head_dim].
            done = any(point == "A4.q" and at == number for point, at, _ in self.kept)
            self.keep("A4.k" if done else "A4.q", result.swapaxes(1, 2), number)

        watch(layer.input_layernorm, enter)
        for name in "qkv":
            self.out(getattr(attention, f"{name}_proj"), f"A2.{name}", number)
        watch(attention.rope, rotated)
        self.out(attention.o_proj, "A12", number)
        watch(layer.post_attention_layernorm, second_norm)
        self.out(layer.mlp.router, "M2", number)
        self.watch_experts(number, experts)
        self.out(experts, "M10", number)
        self.out(layer.mlp, "M11", number)
        self.out(layer, "M12", number)

    def watch_experts(self, number: int, experts: Any) -> None:
        """Interleaves the columns of the gate and of the other half to M6; the gate is computed second."""
        import mlx.core as mx
        up: list[Any] = []

        def gate(args: Any, result: Any) -> None:
            both = mx.stack([result, up.pop()], axis=-1).flatten(-2)
            self.keep("M6", self.in_order(both), number)

        watch(experts.up_proj, lambda args, result: up.append(result))
        watch(experts.gate_proj, gate)
        watch(experts.down_proj, lambda args, result: self.keep("M8", self.in_order(args[0]), number))

    def in_order(self, rows: Any) -> Any:
        """[1, n, k, width] from rows that may be sorted by expert."""
        if self.inverse is not None:
            rows = rows[self.inverse]
        k = self.network.args.num_experts_per_tok
        return rows.reshape(1, -1, k, rows.shape[-1])

    def see_sort(self, args: Any, result: Any) -> None:
        self.inverse = result[2]

    def replace(self, module: Any, name: str, see: Callable[[tuple[Any, ...], Any], None]) -> None:
        """Replaces a function that is looked up by name at every call by a watched one, until the end."""
        function = getattr(module, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            see(args, result)
            return result

        setattr(module, name, called)
        self.undo.callback(setattr, module, name, function)
