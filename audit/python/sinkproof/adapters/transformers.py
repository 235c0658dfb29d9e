# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Hugging Face transformers' GptOssForCausalLM.

    with sinkproof.trace(model) as trace:
        model(input_ids=tokens)
    judgement = sinkproof.judge(directory, trace)

The sources of the points; transformers is not edited, and nothing is computed twice:

  T0 A1 A2.q A2.k A2.v A12 M1 M11 M12 F1 F2   outputs of modules: forward hooks
  A13                                         input of the second norm: forward pre-hook
  A4.q A4.k, A10 A11                          arguments and results of the wrapped attention
  A6 A9, M2 M3 M4, M5 M6 M8 M9 M10            operations inside attention, router and experts:
                                              a TorchFunctionMode; experts' rows are scattered
                                              to [n, k, width] in the router's order

Any number of calls is allowed: prompts in pieces and single tokens through a dynamic or a static
cache, batches with padding on either side, `generate`. Every row of a batch is a sequence of its own;
a row whose positions restart holds several, packed end to end, and is one trace with `cu_seqlens`.
Attention that is not eager has no A6, A9 and A10.

Arguments are bound by the signature of the model's own forward, and a cache is recognised under any
name, and also in the model's output.

It refuses to guess. These are errors of one sentence: a checkpoint with missing or surplus tensors, an
operation that was not seen, an argument that is not understood, a sequence that began before the block,
a cache whose rows were reordered, an expert's row that cannot be assigned to its token. `Engine.tried`
lists the tested releases.
"""
from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters import Adapter, Record
from sinkproof.adapters._adapted import without_adapter
from sinkproof.adapters._batches import PACKED, Batch, Batches, packed_ends
from sinkproof.adapters._backward import Backward
from sinkproof.adapters._calls import Call, method_signature
from sinkproof.adapters._torch import DTYPES, Hooks, Module, Tensor, device_text, watch
from sinkproof.adapters._transformers_ops import (CACHED, ExpertOps, RouterOps, compiling, eager_forward,
                                                  other_forward)

# methods that move a cache's rows or slots
MOVES = ("reorder_cache", "batch_select_indices", "batch_repeat_interleave", "crop")
CACHES = ("cache", "past_key_values")  # forward's name for it since 5.24, and before
READ = ("input_ids", "attention_mask", "position_ids", "cache_position")
# arguments that change no point of the fed tokens
BESIDE = ("labels", "logits_to_keep", "num_logits_to_keep", "num_items_in_batch", "max_length_q", "max_length_k",
          "seq_idx")


def watches(model: Module) -> bool:
    """Whether the Watcher below supports the model."""
    return "GptOssForCausalLM" in {parent.__name__ for parent in type(uncompiled(model)).__mro__}


def uncompiled(model: Module) -> Module:
    """The module that torch.compile wrapped, or the module itself."""
    return getattr(model, "_orig_mod", model)


def is_compiled(model: Module) -> bool:
    return uncompiled(model) is not model or getattr(model, "_compiled_call_impl", None) is not None


def experts_implementation(model: Module) -> str:
    """"eager", "grouped_mm", ...; "eager" for versions without a choice."""
    return getattr(model.config, "_experts_implementation", None) or "eager"


def attention_implementation(model: Module) -> str:
    return getattr(model.config, "_attn_implementation", None) or "eager"


def metadata_of(model: Module) -> dict[str, str]:
    dtype = str(model.dtype).replace("torch.", "")
    return {"dtype": DTYPES.get(dtype, dtype), "attention": attention_implementation(model),
            **({"experts": experts_implementation(model)} if hasattr(model.config, "num_local_experts") else {}),
            **({"compiled": "torch.compile"} if is_compiled(model) else {})}


# ------------------------------------------------------------------------------------------
# One model, watched


class Watcher(Hooks):
    """Hooks a loaded model during a `with` block; `batches` has the results."""

    cached = ("A4.k", "A2.v")  # the points of cached keys and values
    attention: tuple[str, ...] = ("A4.q", "A4.k", "A6", "A9", "A10", "A11")  # what the wrapped attention shows

    def __init__(self, model: Module, batches: Batches, backward: Backward | None = None) -> None:
        super().__init__()
        self.outer, self.model, self.batches, self.backward = model, uncompiled(model), batches, backward
        self.batch: Batch | None = None  # of the current call
        self.chosen_nk: Tensor = None    # the router's choice, for the experts after it

    def __enter__(self) -> Watcher:
        base = self.model.model
        if self.backward is not None:
            if is_compiled(self.outer):
                raise TraceError("the gradients of a compiled model are not traced: its backward pass is compiled too")
            self.backward.enter(self.model, self.undo)
        if is_compiled(self.outer):  # code compiled earlier has no hooks, and none may remain after the block
            forget_compiled()
            self.undo.callback(forget_compiled)
        self.enter(self.outer, self.begin, self.model)
        self.leave(self.outer, self.end)
        self.after(base.embed_tokens, lambda out: self.keep("T0", out))
        self.after(base.norm, lambda out: self.keep("F1", out))
        self.after(self.model.lm_head, self.keep_logits)
        for index, layer in enumerate(base.layers):
            self.hook_layer(index, layer)
        self.wrap_attention(sys.modules[type(base.layers[0].self_attn).__module__], len(base.layers))
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.close()
        if self.backward is not None and kind is None:
            self.backward.finish()

    def follow(self, values: Tensor, keep: Callable[[Tensor], None]) -> None:
        if self.backward is not None and self.batch is not None:
            self.backward.follow(values, functools.partial(self.keep_gradient, self.batch, keep))

    def keep_gradient(self, batch: Batch, keep: Callable[[Tensor], None], gradient: Tensor) -> None:
        """Passes the gradient of a tensor to `keep`, as the tensor was, but to the record of the batch's gradients."""
        running, self.batch = self.batch, batch.of_gradients()
        try:
            keep(gradient)
            if self.backward is not None and self.batch.padding_has(gradient):
                self.backward.padded = True
        finally:
            self.batch = running

    def hook_layer(self, index: int, layer: Module) -> None:
        def keep(point: str) -> Callable[[Tensor], None]:
            return lambda out: self.keep(point, out, index)

        def keep_heads(point: str) -> Callable[[Tensor], None]:
            return lambda out: self.keep(point, out.reshape(*out.shape[:2], -1, attention.head_dim), index)

        attention = layer.self_attn
        self.after(layer.input_layernorm, keep("A1"))
        self.after(attention.q_proj, keep_heads("A2.q"))
        self.after(attention.k_proj, keep_heads("A2.k"))
        self.after(attention.v_proj, keep_heads("A2.v"))
        self.after(attention.o_proj, keep("A12"))
        self.before(layer.post_attention_layernorm, keep("A13"))
        self.after(layer.post_attention_layernorm, keep("M1"))
        self.after(layer, keep("M12"))
        self.hook_mlp(index, layer, keep)

    def hook_mlp(self, index: int, layer: Module, keep: Callable[[str], Callable[[Tensor], None]]) -> None:
        self.after(layer.mlp, keep("M11"))
        self.around(layer.mlp.router, lambda forward: self.router_forward(index, forward))
        self.around(layer.mlp.experts, lambda forward: self.experts_forward(index, forward))

    # -- the current call

    def begin(self, call: Call) -> None:
        """At a call of the model: finds the sequences that it continues, and the slots that are padding."""
        ids = call.get("input_ids")
        if ids is None or ids.dim() != 2:
            raise TraceError("expected input_ids [batch, n], found " + ("none" if ids is None else str(list(ids.shape))))
        if self.batch is not None:
            raise TraceError("the call before did not end: trace anew")
        cache = cache_of(call)
        past = 0 if cache is None else int(cache.get_seq_length())
        if self.backward is not None and past:
            raise TraceError(f"{call.what}: gradients are traced of whole sequences, found {past} cached tokens before it")
        check_slots(call.get("cache_position"), past, ids)
        real = real_slots(call.get("attention_mask"), past, ids)
        batch = self.batches.begin(ids, cache, real[:, :past])
        if cache is not None:
            self.refuse_moves(cache)
        batch.begin(ids, real[:, past:])
        ends = packed_ends(call, past, ids)
        if ends is None:
            batch.check_positions(positions_of(call.get("position_ids"), past, ids))
        if past and batch.records[0].ends is not None:
            raise TraceError("a row that was packed goes on in a cache, which has no place for each of its sequences")
        batch.records[0].ends = ends
        self.batch = batch

    def end(self, output: Any) -> None:
        """Remembers a cache that the model itself made: it may be passed in again."""
        batch, self.batch = self.batch, None
        for value in output.values() if isinstance(output, dict) else output if isinstance(output, tuple) else ():
            if is_cache(value) and batch is not None and value is not batch.cache:
                self.batches.remember(value, batch)
                self.refuse_moves(value)

    def refuse_moves(self, cache: Any) -> None:
        """Refuses a reordered or cut cache, as in beam search: it no longer holds what was seen."""
        for name in MOVES:
            if hasattr(cache, name) and name not in vars(cache):
                setattr(cache, name, refusal(name))
                self.undo.callback(vars(cache).pop, name, None)

    def keep(self, point: str, values: Tensor, layer: int | None = None) -> None:
        if self.batch is not None:
            self.batch.keep(point, values, layer)

    def keep_logits(self, values: Tensor) -> None:
        """Keeps the logits if they are those of all tokens; generation computes only the last ones."""
        if self.batch is not None and values.shape[1] == self.batch.n:
            self.batch.keep("F2", values)

    # -- the three wrapped functions; compiled ones show only their arguments and results

    def router_forward(self, index: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        see = {point: self.seen(functools.partial(self.keep_rows, point, index)) for point in ("M2", "M4", "M3")}

        def traced(*args: Any, **kwargs: Any) -> Any:
            if compiling():
                output = forward(*args, **kwargs)
                for point, values in zip(see, output):  # since 4.57 the router returns all three
                    see[point](values)
                return output
            ops = RouterOps()
            with watch(ops):
                output = forward(*args, **kwargs)
            if ops.logits is None or ops.chosen is None or ops.weights is None:
                raise TraceError("the router's linear map, top k or softmax was not seen")
            self.chosen_nk = ops.chosen
            for point, values in (("M2", ops.logits), ("M3", ops.chosen), ("M4", ops.weights)):
                see[point](values)
            return output
        return traced

    def experts_forward(self, index: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def traced(hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return forward(hidden_states, *args, **kwargs)
            ops = ExpertOps(self.backward is not None)
            with watch(ops):
                output = forward(hidden_states, *args, **kwargs)
            tokens_nh = hidden_states.detach().reshape(-1, hidden_states.shape[-1])
            implementation = experts_implementation(self.model)
            for point, values in ops.gather(self.chosen_nk, tokens_nh, implementation).items():
                self.keep_rows(point, index, values)
            if self.backward is not None and self.batch is not None:
                self.backward.later.append(functools.partial(self.keep_expert_gradients, self.batch, index, ops))
            return output
        return traced

    def keep_expert_gradients(self, batch: Batch, index: int, ops: ExpertOps) -> None:
        for point, gradient in ops.gathered_gradients().items():
            self.keep_gradient(batch, functools.partial(self.keep_rows, point, index), gradient)

    def keep_rows(self, point: str, layer: int, values: Tensor) -> None:
        """Keeps rows that are the tokens of all sequences, one sequence after the other."""
        if self.batch is not None:
            values = values.int() if point == "M3" else values
            self.keep(point, values.reshape(len(self.batch.records), -1, *values.shape[1:]), layer)

    def wrap_attention(self, modeling: Any, n_layers: int) -> None:
        """Attention is looked up by name at every call: registers a traced one under a new name."""
        see = [{point: self.seen(functools.partial(self.keep_attention, point, layer))
                for point in (*self.attention, *CACHED)} for layer in range(n_layers)]
        name = attention_implementation(self.model)
        if name == "eager":
            self.replace(modeling, "eager_attention_forward",
                         eager_forward(modeling.eager_attention_forward, see, self.follow_in_attention))
            return
        functions = modeling.ALL_ATTENTION_FUNCTIONS
        own, kept = functions._local_mapping, dict(functions._local_mapping)
        functions[name] = other_forward(functions[name], see)
        self.undo.callback(lambda: (own.clear(), own.update(kept)))

    def follow_in_attention(self, layer: int, point: str, values: Tensor) -> None:
        self.follow(values, functools.partial(self.keep_attention, point, layer))

    def keep_attention(self, point: str, layer: int, values: Tensor) -> None:
        if self.batch is None:
            return
        if point in ("A6", "A9", "A10"):
            self.batch.keep_by_head(point, values, layer, sink=point == "A9")
        elif point in CACHED:
            self.batch.keep_cached(self.cached[CACHED.index(point)], values, layer)
        elif point == "A4.k":
            self.keep(point, self.batch.new_keys(values), layer)
        else:
            self.keep(point, values.transpose(1, 2) if point == "A4.q" else values, layer)


def forget_compiled() -> None:
    import torch
    torch._dynamo.reset()


def refusal(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise TraceError(f"the cache was asked to {name}: its rows are no longer the sequences that were traced")
    return refuse


def is_cache(value: Any) -> bool:
    return callable(getattr(value, "get_seq_length", None))


def cache_of(call: Call) -> Any:
    """The cache among the arguments, under any name; refuses what is not understood."""
    caches = {name: value for name, value in call.given.items() if is_cache(value)}
    if len({id(value) for value in caches.values()}) > 1:
        raise TraceError(f"{call.what}: expected one cache, found {' and '.join(caches)}")
    call.refuse_others((*READ, *PACKED, *caches, *BESIDE))
    return next(iter(caches.values()), None)


def check_slots(said: Any, past: int, ids: Tensor) -> None:
    """Checks the slots that a call is told to write: they must follow its past."""
    n = ids.shape[1]
    if said is not None and said.flatten().tolist() != list(range(past, past + n)):
        raise TraceError(f"expected cache_position {past} to {past + n - 1}, found {said.flatten().tolist()[:9]}")


def positions_of(said: Any, past: int, ids: Tensor) -> Tensor:
    """The given positions, or else the slots."""
    import torch
    n = ids.shape[1]
    return said if said is not None else torch.arange(past, past + n, device=ids.device)[None]


def real_slots(mask: Any, past: int, ids: Tensor) -> Tensor:
    """The slots that are not padding by the call's mask, those of its tokens last, [batch, past + n].

    A mask is [batch, slots] with a 0 for padding; or, if it was made already, one for each kind
    of layer, [batch, 1, n, slots]: padding is a slot that no query sees.
    """
    import torch
    n = ids.shape[1]
    if isinstance(mask, dict):
        if "full_attention" not in mask:
            raise TraceError(f"expected a mask of full_attention, found {', '.join(map(str, mask))}")
        mask = mask["full_attention"]
    if mask is None:
        return torch.ones(len(ids), past + n, dtype=torch.bool, device=ids.device)
    if not isinstance(mask, torch.Tensor) or mask.dim() not in (2, 4) or mask.shape[-1] < past + n:
        raise TraceError(f"expected an attention mask of {past + n} slots, found {type(mask).__name__} "
                         f"{list(getattr(mask, 'shape', []))}")
    if mask.dim() == 2:
        return mask[:, :past + n].bool().expand(len(ids), past + n)
    seen = mask if mask.dtype == torch.bool else mask == 0
    return seen[:, 0].any(dim=1)[:, :past + n].expand(len(ids), past + n)


# ------------------------------------------------------------------------------------------
# A model from a directory


def checkpoint_config(directory: str, *kinds: str) -> Any:
    """The configuration of a directory's model, which must be of one of those kinds."""
    if not os.path.isfile(os.path.join(directory, "config.json")):
        raise TraceError(f"{directory}: no config.json there")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(directory)
    if config.model_type not in kinds:
        expected = " or ".join(f'"{kind}"' for kind in kinds)
        raise TraceError(f'{directory}: model_type is "{config.model_type}", expected {expected}')
    return config


def complete(directory: str, model: Module, info: dict[str, Any]) -> Module:
    """A loaded model without missing or surplus weights."""
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(what):
            first = sorted(map(str, info[what]))[0]
            raise TraceError(f"{directory}: {len(info[what])} {what.replace('_', ' ')}: {first}")
    return model.eval()


def load_model(directory: str, dtype: str, experts: str = "default", attention: str = "eager") -> Module:
    """GptOssForCausalLM from a directory: MXFP4 dequantized, on the CPU."""
    config = checkpoint_config(directory, "gpt_oss")
    import torch
    import transformers

    options: dict[str, Any] = {"attn_implementation": attention, "output_loading_info": True}
    if getattr(config, "quantization_config", None):
        options["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    if experts != "default":
        options["experts_implementation"] = experts
    old = tuple(int(part) for part in transformers.__version__.split(".")[:2]) < (4, 56)
    options["torch_dtype" if old else "dtype"] = getattr(torch, dtype)
    return complete(directory, *transformers.GptOssForCausalLM.from_pretrained(directory, **options))


def load_dense(directory: str, dtype: str, attention: str, **classes: str) -> Module:
    """The model of a directory by the class of its model_type, on the CPU."""
    config = checkpoint_config(directory, *classes)
    import torch
    import transformers

    return complete(directory, *getattr(transformers, classes[config.model_type]).from_pretrained(
        directory, attn_implementation=attention, output_loading_info=True, dtype=getattr(torch, dtype)))


def cache_word(model: Module) -> str:
    """The name of forward's cache argument."""
    parameters = method_signature(uncompiled(model)).parameters
    for word in CACHES:
        if word in parameters:
            return word
    raise TraceError(f"{type(uncompiled(model)).__name__}: expected forward to take a cache as {' or '.join(CACHES)}, found "
                     f"{', '.join(parameters)}")


def new_cache(config: Any, kind: str = "dynamic", room: int = 0) -> Any:
    """An empty cache of transformers; a static one has `room` slots."""
    from transformers import DynamicCache, StaticCache

    if kind == "static":
        return StaticCache(config=config, max_cache_len=room)
    try:
        return DynamicCache(config=config)
    except TypeError:  # before 4.56 a cache had no configuration and kept every key
        return DynamicCache()


class Engine(Adapter):
    title = "transformers GptOssForCausalLM"
    install = "pip install torch transformers safetensors"
    tried = ("transformers 5.23.0", "transformers 5.24.0", "torch 2.13.0")
    packages = ("transformers", "torch")
    dtypes = ("bfloat16", "float32", "float16")
    watcher = Watcher

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        if cls is Engine:
            parser.add_argument("--experts", default="default", metavar="NAME",
                                help="default (what transformers chooses), eager, grouped_mm, batched_mm")
        parser.add_argument("--attention", default="eager", metavar="NAME", help="eager, flex_attention, ...")
        parser.add_argument("--cache", choices=("dynamic", "static"), default="dynamic",
                            help="the cache that pieces go through (dynamic)")
        parser.add_argument("--compile", action="store_true", help="through torch.compile")
        parser.add_argument("--device", default="cpu", metavar="NAME", help="torch's name of the device: cuda, cuda:1 (cpu)")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        self.module = without_adapter(self.load().to(options.device))
        if options.compile:
            import torch
            self.module = torch.compile(self.module)
        self.cache: Any = None
        self.batches: Batches | None = None

    def load(self) -> Module:
        return load_model(self.model, self.options.dtype, self.options.experts, self.options.attention)

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        import torch
        if self.batches is None:
            self.batches = Batches(lambda: record)
            room = self.module.config.max_position_embeddings
            self.cache = new_cache(self.module.config, self.options.cache, room) if self.options.chunk else None
        with torch.no_grad(), self.watcher(self.module, self.batches):
            self.module(input_ids=torch.tensor([list(tokens)], device=self.options.device),
                        use_cache=self.cache is not None, **{cache_word(self.module): self.cache})

    def metadata(self) -> dict[str, str]:
        return {**metadata_of(self.module), "device": device_text(self.options.device)}
