# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Attention maps, states, queries, keys and values of a transformers model of any kind, as a trace for `sinkproof sinks`.

    python -m sinkproof.observe DIRECTORY --tokens random:64 --out trace.safetensors
    sinkproof sinks --trace trace.safetensors

The model need be none that sinkproof can run: `observe` hooks its decoder layers and its eager attention, and asks for
attentions, hidden states and the cache. A point that the model does not show is left out, and the metrics that need it
are dashes. A trace of a model that sinkproof cannot run is measured, and not judged.
"""
from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sinkproof._library import Error
from sinkproof._trace import Trace, TraceError
from sinkproof.adapters._tokens import parse_tokens

EAGER = "eager_attention_forward"


def observe(model: Any, tokens: Any) -> Trace:
    """The trace of one call of the model with `tokens`, a list of ids or a tensor of one row."""
    import torch
    ids = torch.as_tensor(tokens, device=next(model.parameters()).device).reshape(1, -1)
    said = getattr(model.config, "_attn_implementation", "eager")
    if said != "eager":
        raise Error(f'expected attn_implementation="eager", whose weights can be seen, found {said!r}')
    calls: list[dict[str, Any]] = []
    states: dict[int, Any] = {}
    with torch.no_grad(), watched_attention(model, calls), watched_layers(model, states):
        training = model.training
        model.eval()
        out = model(input_ids=ids, output_attentions=True, output_hidden_states=True, use_cache=True)
        model.train(training)
    points = dict(points_of(calls, states, out, ids.shape[1]))
    if not any(name.endswith(".A9") for name in points):
        raise Error(f"{type(model).__name__} shows no attention weights")
    arrays = {name: value.detach().to("cpu", torch.float32).contiguous().numpy() for name, value in points.items()}
    arrays["tokens"] = ids[0].to("cpu", torch.int32).numpy()
    arrays["positions"] = np.arange(ids.shape[1], dtype=np.int32)
    return Trace(arrays, {"format": "sinkproof-trace-1", "engine": "transformers, observed", "observed": type(model).__name__})


@contextmanager
def watched_attention(model: Any, calls: list[dict[str, Any]]) -> Iterator[None]:
    """Every call of a modeling file's eager attention, in order: queries, keys and values as they are multiplied."""
    modules = {sys.modules[type(part).__module__] for part in model.modules()}
    found = [(module, getattr(module, EAGER)) for module in modules if hasattr(module, EAGER)]

    def traced(forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def call(part: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            output, weights = forward(part, query, key, value, *args, **kwargs)
            calls.append({"A4.q": query, "A4.k": key, "A2.v": value, "A9": weights, "sinks": getattr(part, "sinks", None)})
            return output, weights
        return call
    try:
        for module, forward in found:
            setattr(module, EAGER, traced(forward))
        yield
    finally:
        for module, forward in found:
            setattr(module, EAGER, forward)


@contextmanager
def watched_layers(model: Any, states: dict[int, Any]) -> Iterator[None]:
    """The input of the first decoder layer, under -1, and the output of each."""
    import torch
    config = model.config.get_text_config(decoder=True)
    stacks = [part for part in model.modules() if isinstance(part, torch.nn.ModuleList) and len(part) == config.num_hidden_layers]
    layers = stacks[0] if stacks else []

    def keep(index: int) -> Callable[..., None]:
        def hook(part: Any, args: Any, output: Any) -> None:
            states[index] = output[0] if isinstance(output, tuple) else output
        return hook

    def keep_input(part: Any, args: Any, kwargs: Any) -> None:
        states[-1] = args[0] if args else kwargs["hidden_states"]
    hooks = [layer.register_forward_hook(keep(index)) for index, layer in enumerate(layers)]
    hooks += [layer.register_forward_pre_hook(keep_input, with_kwargs=True) for layer in list(layers)[:1]]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def points_of(calls: list[dict[str, Any]], states: dict[int, Any], out: Any, n: int) -> Iterator[tuple[str, Any]]:
    """Names and tensors, a token a row; of heads by queries, a head first."""
    import torch
    layers = len(out.attentions or calls)
    whole = len(calls) == layers  # one call for each layer, in their order
    cache = getattr(getattr(out, "past_key_values", None), "layers", None)
    for layer in range(layers):
        seen = calls[layer] if whole else {}
        weights = seen["A9"] if whole else out.attentions[layer]
        if weights is not None and weights.shape[-2:] == (n, n):
            sink = 1 - weights[0].sum(-1, keepdim=True) if seen.get("sinks") is not None else torch.zeros_like(weights[0, :, :, :1])
            yield f"{layer:02}.A9", torch.cat([weights[0], sink], -1)
        held = {name: seen[name] for name in ("A4.q", "A4.k", "A2.v")} if whole else {}
        if not whole and cache is not None:
            held = {"A4.k": cache[layer].keys, "A2.v": cache[layer].values}
        for name, tensor in held.items():
            if tensor.dim() == 4 and tensor.shape[2] == n:
                yield f"{layer:02}.{name}", tensor[0].transpose(0, 1)
        if layer in states:
            yield f"{layer:02}.M12", states[layer][0]
    if -1 in states:
        yield "T0", states[-1][0]
    if out.hidden_states:
        yield "F1", out.hidden_states[-1][0]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sinkproof.observe", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a directory that AutoModelForCausalLM reads")
    parser.add_argument("--tokens", required=True, help="1,2,3, @FILE, random:N[,seed=S] or repeat:N[,seed=S]")
    parser.add_argument("--out", required=True, help="the trace, a safetensors file")
    asked = parser.parse_args(words)
    try:
        if not os.path.isdir(asked.model):
            raise Error(f"{asked.model}: expected a directory")
        from transformers import AutoModelForCausalLM
        model = AutoModelForCausalLM.from_pretrained(asked.model, attn_implementation="eager", local_files_only=True)
        observe(model, parse_tokens(asked.tokens, model.config.get_text_config(decoder=True).vocab_size)).save(asked.out)
    except (Error, TraceError, OSError, ValueError) as error:
        print(f"sinkproof.observe: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
