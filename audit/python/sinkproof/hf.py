# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Watches Hugging Face transformers' GptOssForCausalLM and keeps what it computed as a trace.

    with sinkproof.trace(model) as trace:
        model(input_ids=tokens)
    judgement = sinkproof.judge(directory, trace)

How the points are reached, without editing transformers and without computing anything twice:

  T0 A1 A2.q A2.k A2.v A12 M1 M11 M12 F1 F2   outputs of modules: forward hooks
  A13                                         input of the second norm: forward pre-hook
  A4.q A4.k, A10 A11                          arguments and results of the wrapped attention
  A6 A9, M2 M3 M4, M5 M6 M8 M9 M10            operations inside attention, router and experts:
                                              a TorchFunctionMode; experts' rows are scattered
                                              to [n, k, width] in the router's order

The watcher only looks: every operation runs once, with the arguments that the engine gave, on the
kernel that the engine chose. A prompt fed in chunks through a key/value cache becomes one trace:
columns of keys are put at their absolute positions, and keys that a chunk could not see (still to
come, or already dropped by a sliding cache) are zero there.

It refuses to guess: a checkpoint with missing or surplus tensors, an operation that was not seen,
a second sequence, or an expert's row that cannot be tied to its token is an error of one sentence.
Needs transformers 4.55 or newer. torch and transformers are imported where they are used.
"""
from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sinkproof._library import Error
from sinkproof._trace import Trace

DTYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
PRODUCTS = {"matmul", "__matmul__", "mm", "bmm", "grouped_mm", "_grouped_mm", "grouped_mm_fallback"}
ADDITIONS = {"add", "add_", "__add__", "__iadd__"}
SCALINGS = {"mul", "__mul__", "__rmul__", "mul_"}
BY_KEYS = {"A6", "A9", "A10"}  # [heads, n, keys]: assembled by absolute position of the key

# torch is not there when types are checked: its tensors and modules are Any.
Tensor = Any
Module = Any


class TraceError(Error):
    """One sentence about input that cannot be traced."""


# ------------------------------------------------------------------------------------------
# Watching operations


def watch(on_call: Callable[[str, Any, Any], None]) -> Any:
    """A context in which on_call(name, args, result) sees every torch operation."""
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            on_call(getattr(func, "__name__", str(func)), args, result)
            return result

    return Watch()


def _same_storage(a: Tensor, b: Any) -> bool:
    """True when b is a itself or a reshaped view of all of it."""
    return bool(hasattr(b, "data_ptr") and a.data_ptr() == b.data_ptr() and a.numel() == b.numel())


class AttentionOps:
    """Watches one call of eager attention: A6 is the first product, scaled; A9 the softmax."""

    def __init__(self) -> None:
        self.product: Tensor = None
        self.scores: Tensor = None
        self.weights: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name in PRODUCTS and self.product is None:
            self.product = result
        elif name in SCALINGS and self.scores is None and args and args[0] is self.product:
            self.scores = result.clone()
        elif name == "softmax":
            self.weights = result


class RouterOps:
    """Watches one call of the router: M2 is its linear map, M3 the top k, M4 their softmax."""

    def __init__(self) -> None:
        self.logits: Tensor = None
        self.chosen: Tensor = None
        self.weights: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name == "linear":
            self.logits = result
        elif name == "topk":
            self.chosen = result[1]
        elif name == "softmax" and self.chosen is not None:
            self.weights = result


class ExpertOps:
    """Watches one call of the experts. Products alternate: up, down, up, down, ...

    `products` collects {input, product, biased} per matrix product; `where` and `sort` hold the
    index tensors from which the rows of a product are tied to (token, slot).
    """

    def __init__(self) -> None:
        self.products: list[dict[str, Tensor]] = []
        self.rows: list[tuple[Tensor, Tensor]] = []
        self.order: Tensor = None

    def __call__(self, name: str, args: Any, result: Any) -> None:
        if name in PRODUCTS:
            # The product is copied: the bias may be added to it in place.
            self.products.append({"input": args[0], "raw": result, "product": result.clone(),
                                  "biased": None})
        elif name in ADDITIONS and self.products and self.products[-1]["biased"] is None:
            if _same_storage(self.products[-1]["raw"], args[0]):
                self.products[-1]["biased"] = result
        elif name == "where" and len(args) == 1:
            self.rows.append(result)  # (slot, token) of the rows of one expert
        elif name in ("sort", "argsort"):
            self.order = result[1] if name == "sort" else result

    def slots_by_product(self, chosen_nk: Tensor, implementation: str) -> list[Tensor]:
        """Per up-product the flat slot, token * k + slot, of each row; None: dense [E, n, .]."""
        import torch
        n, k = chosen_nk.shape
        n_pairs = len(self.products) // 2
        if not self.products or len(self.products) % 2:
            raise TraceError("the experts' matrix products do not come in pairs of up and down")
        if implementation == "batched_mm":
            return [torch.arange(n * k, device=chosen_nk.device)]
        if n_pairs == 1 and self.products[0]["product"].dim() == 3:
            return [None]
        if n_pairs == 1 and self.order is not None:
            return [self.order.reshape(-1)]
        if len(self.rows) != n_pairs:
            raise TraceError("the experts' rows were not selected once per up-projection")
        return [token * k + slot for slot, token in self.rows]

    def gather(self, chosen_nk: Tensor, tokens_nh: Tensor, implementation: str) -> dict[str, Tensor]:
        """{"M5": [n, k, 2 inter], "M6", "M8": [n, k, inter], "M9": [n, k, hidden], "M10"}."""
        import torch
        n, k = chosen_nk.shape
        gathered: dict[str, Tensor] = {}
        written = torch.zeros(n * k, dtype=torch.int64, device=chosen_nk.device)
        for at, slots in enumerate(self.slots_by_product(chosen_nk, implementation)):
            up, down = self.products[2 * at], self.products[2 * at + 1]
            if up["biased"] is None or down["biased"] is None:
                raise TraceError("the experts' bias was not seen being added")
            found = {"input": up["input"], "M5": up["product"], "M6": up["biased"],
                     "M8": down["input"], "M9": down["product"], "M10": down["biased"]}
            if slots is None:  # every expert saw every token: pick the chosen ones
                token_nk = torch.arange(n, device=chosen_nk.device)[:, None].expand(n, k)
                found = {point: value[chosen_nk, token_nk] for point, value in found.items()}
                slots = torch.arange(n * k, device=chosen_nk.device)
            found = {point: value.reshape(len(slots), -1) for point, value in found.items()}
            rows, tokens = found.pop("input").contiguous(), tokens_nh[slots // k].contiguous()
            if not torch.equal(rows.view(torch.uint8), tokens.view(torch.uint8)):  # bits: NaN != NaN
                raise TraceError("the experts' rows are not the tokens that were expected there")
            written.index_add_(0, slots, torch.ones_like(slots))
            for point, value in found.items():
                if point not in gathered:
                    gathered[point] = value.new_empty(n * k, value.shape[-1])
                gathered[point][slots] = value
        if not torch.equal(written, torch.ones_like(written)):
            raise TraceError("the experts did not compute each chosen (token, expert) pair once")
        return {point: value.reshape(n, k, -1) for point, value in gathered.items()}


# ------------------------------------------------------------------------------------------
# One model, instrumented


class Tracer:
    """Hooks a loaded model for the time of a `with` block; afterwards nothing of it remains.

    `points` limits what is kept to a set of names without layer ("A9"); None keeps all.
    """

    def __init__(self, model: Module, points: Iterable[str] | None = None) -> None:
        self.model, self.points = model, None if points is None else set(points)
        self.parts: dict[str, list[tuple[int, Tensor]]] = {}  # (first position, tensor), one per chunk
        self.tokens: list[int] = []  # of the chunks that are through
        self.running: list[int] | None = None
        self.begin = 0               # absolute position of the first token of the running chunk
        self.undo = contextlib.ExitStack()

    def put(self, name: str, tensor: Tensor) -> None:
        """Keeps a copy of `tensor` (rows are tokens of the running chunk) under `name`."""
        point = name.split(".", 1)[1] if name[0].isdigit() else name
        if self.points is None or point in self.points:
            self.parts.setdefault(name, []).append((self.begin, tensor.detach().clone()))

    # -- installation

    def __enter__(self) -> Tracer:
        base = self.model.model
        implementation = getattr(self.model.config, "_attn_implementation", "eager")
        if implementation != "eager":
            raise TraceError(f'attention is "{implementation}", which shows no scores: load the model with '
                             'attn_implementation="eager"')
        entry = self.model.register_forward_pre_hook(self.enter_chunk, with_kwargs=True)
        self.undo.callback(entry.remove)
        self.after(self.model, self.leave_chunk)
        self.after(base.embed_tokens, lambda out: self.put("T0", out[0]))
        self.after(base.norm, lambda out: self.put("F1", out[0]))
        self.after(self.model.lm_head, lambda out: self.put("F2", out[0]))
        for index, layer in enumerate(base.layers):
            self.hook_layer(f"{index:02d}", layer)
        self.wrap_attention(sys.modules[type(base.layers[0].self_attn).__module__])
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo.close()

    def after(self, module: Module, keep: Callable[[Tensor], None]) -> None:
        """keep(output) after each call; of a tuple only the first element is an activation."""
        handle = module.register_forward_hook(
            lambda module, inputs, output: keep(output[0] if isinstance(output, tuple) else output))
        self.undo.callback(handle.remove)

    def hook_layer(self, layer_name: str, layer: Module) -> None:
        def keep(point: str, shape: tuple[int, ...] | None = None) -> Callable[[Tensor], None]:
            name = f"{layer_name}.{point}"
            return lambda out: self.put(name, out[0].reshape(out.shape[1], *(shape or (-1,))))

        attention, head_dim = layer.self_attn, layer.self_attn.head_dim
        self.after(layer.input_layernorm, keep("A1"))
        self.after(attention.q_proj, keep("A2.q", (-1, head_dim)))
        self.after(attention.k_proj, keep("A2.k", (-1, head_dim)))
        self.after(attention.v_proj, keep("A2.v", (-1, head_dim)))
        self.after(attention.o_proj, keep("A12"))
        residual = layer.post_attention_layernorm.register_forward_pre_hook(
            lambda module, inputs: self.put(f"{layer_name}.A13", inputs[0][0]))
        self.undo.callback(residual.remove)
        self.after(layer.post_attention_layernorm, keep("M1"))
        self.after(layer.mlp, keep("M11"))
        self.after(layer, keep("M12"))
        self.replace_forward(layer.mlp.router, self.router_forward, layer_name)
        self.replace_forward(layer.mlp.experts, self.experts_forward, layer_name)

    def replace_forward(self, module: Module, make: Callable[..., Any], layer_name: str) -> None:
        module.forward = make(layer_name, module.forward)
        self.undo.callback(module.__dict__.pop, "forward")

    # -- the three wrapped functions

    def router_forward(self, layer_name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **kwargs: Any) -> Any:
            ops = RouterOps()
            with watch(ops):
                output = forward(*args, **kwargs)
            if ops.logits is None or ops.chosen is None or ops.weights is None:
                raise TraceError("the router's linear map, top k or softmax was not seen")
            self.chosen_nk = ops.chosen
            self.put(f"{layer_name}.M2", ops.logits.reshape(-1, ops.logits.shape[-1]))
            self.put(f"{layer_name}.M3", ops.chosen.int())
            self.put(f"{layer_name}.M4", ops.weights)
            return output
        return traced

    def experts_forward(self, layer_name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
        def traced(hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
            ops = ExpertOps()
            with watch(ops):
                output = forward(hidden_states, *args, **kwargs)
            tokens_nh = hidden_states.reshape(-1, hidden_states.shape[-1])
            implementation = experts_implementation(self.model)
            for point, value in ops.gather(self.chosen_nk, tokens_nh, implementation).items():
                self.put(f"{layer_name}.{point}", value)
            return output
        return traced

    def wrap_attention(self, modeling: Any) -> None:
        """Eager attention is looked up by name at every call: name a traced one instead."""
        eager = modeling.eager_attention_forward

        def traced(module: Module, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Any:
            ops = AttentionOps()
            with watch(ops):
                output, weights = eager(module, query, key, value, *args, **kwargs)
            if ops.scores is None or ops.weights is None:
                raise TraceError("scaled scores or softmax were not seen in the attention")
            layer_name, n = f"{module.layer_idx:02d}", query.shape[2]
            self.put(f"{layer_name}.A4.q", query[0].transpose(0, 1))
            self.put(f"{layer_name}.A4.k", key[0, :, -n:].transpose(0, 1))
            self.put(f"{layer_name}.A6", ops.scores[0])
            self.put(f"{layer_name}.A9", ops.weights[0])
            self.put(f"{layer_name}.A10", weights[0])
            self.put(f"{layer_name}.A11", output[0])
            return output, weights

        modeling.eager_attention_forward = traced
        self.undo.callback(setattr, modeling, "eager_attention_forward", eager)

    # -- the run

    def enter_chunk(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The model is called: the tokens must be those that follow what was seen."""
        import torch
        ids = kwargs.get("input_ids", args[0] if args else None)
        if ids is None or ids.dim() != 2 or len(ids) != 1:
            raise TraceError("expected input_ids of one sequence, [1, n], found "
                             + ("none" if ids is None else str(list(ids.shape))))
        cache, end = kwargs.get("past_key_values"), self.begin + ids.shape[1]
        held = 0 if cache is None else int(cache.get_seq_length())
        positions, mask = kwargs.get("position_ids"), kwargs.get("attention_mask")
        if held != self.begin or (positions is not None
                                  and positions.reshape(-1).tolist() != list(range(self.begin, end))):
            raise TraceError(f"a trace holds one sequence from its start: expected the token at position {self.begin} "
                             f"next, found one with {held} before it")
        if isinstance(mask, torch.Tensor) and mask.dim() == 2 and not bool(mask.all()):
            raise TraceError("the attention mask leaves tokens out: a trace has no padding")
        if self.running is not None:
            raise TraceError("the call before did not end: trace anew")
        self.running = ids[0].tolist()

    def leave_chunk(self, output: Any) -> None:
        self.tokens += self.running or []
        self.begin, self.running = len(self.tokens), None

    def forward(self, tokens: Sequence[int], cache: Any) -> None:
        """One call of the model on `tokens`, which follow the positions already in `cache`."""
        import torch
        with torch.no_grad():
            ids = torch.tensor([list(tokens)], device=self.model.device)
            positions = torch.arange(self.begin, self.begin + len(tokens), device=self.model.device)[None]
            self.model(input_ids=ids, position_ids=positions,
                       past_key_values=cache, use_cache=cache is not None)

    def assemble(self) -> dict[str, Tensor]:
        """The parts of all chunks as whole tensors, with tokens and positions.

        Logits that were asked for of the last tokens alone, as generation does, are left out.
        """
        import torch
        if not self.tokens:
            raise TraceError("the model was not called: there is nothing to trace")
        whole = {name: self.by_keys(name, parts) if name.split(".")[-1] in BY_KEYS
                 else torch.cat([part for _, part in parts]) for name, parts in self.parts.items()}
        if len(whole.get("F2", self.tokens)) != len(self.tokens):
            del whole["F2"]
        whole["tokens"] = torch.tensor(self.tokens, dtype=torch.int32)
        whole["positions"] = torch.arange(len(self.tokens), dtype=torch.int32)
        return whole

    def by_keys(self, name: str, parts: list[tuple[int, Tensor]]) -> Tensor:
        """[heads, n, keys (+ 1)]: the K columns of a chunk that ends at e are keys e-K .. e-1."""
        n, sink = self.begin, 1 if name.endswith(".A9") else 0
        whole = parts[0][1].new_zeros(parts[0][1].shape[0], n, n + sink)
        for begin, part in parts:
            end, n_keys = begin + part.shape[1], part.shape[2] - sink
            whole[:, begin:end, end - n_keys:end] = part[..., :n_keys]
            if sink:
                whole[:, begin:end, n] = part[..., n_keys]
        return whole


def experts_implementation(model: Module) -> str:
    """"eager", "grouped_mm", ...; "eager" for versions that know no other."""
    return getattr(model.config, "_experts_implementation", None) or "eager"


def new_cache(config: Any) -> Any:
    from transformers import DynamicCache

    try:
        return DynamicCache(config=config)
    except TypeError:  # before 4.56 the cache took no configuration and kept every key
        return DynamicCache()


def trace_model(model: Module, tokens: Sequence[int], chunk: int | None = None,
                points: Iterable[str] | None = None) -> dict[str, Tensor]:
    """Runs `tokens` (in chunks of `chunk` through a cache, when given); returns {name: tensor}."""
    vocab = model.config.vocab_size
    for token in tokens:
        if not 0 <= token < vocab:
            raise TraceError(f"token {token} is outside the vocabulary of {vocab}")
    with Tracer(model, points) as tracer:
        cache = new_cache(model.config) if chunk else None
        step = chunk or len(tokens)
        for begin in range(0, len(tokens), step):
            tracer.forward(tokens[begin:begin + step], cache)
    return tracer.assemble()


@contextlib.contextmanager
def trace(model: Module, points: Iterable[str] | None = None) -> Iterator[Trace]:
    """Watches a transformers' GptOssForCausalLM for the time of a `with` block.

    Yields a Trace that is empty until the block ends, and then holds every point of the calls of
    `model` in it: one sequence from its start, [1, n], at once or in chunks through a cache.
    `points` keeps these alone, {"A9", "A13"}. The model must have eager attention.

    Raises TraceError, from the model's call, on what cannot be traced. When the block raises, the
    trace stays empty; afterwards nothing of the watcher remains in the model.
    """
    import torch
    named = {parent.__name__ for parent in type(model).__mro__}
    if "GptOssForCausalLM" not in named or not isinstance(model, torch.nn.Module):
        raise TraceError(f"expected transformers' GptOssForCausalLM, found {type(model).__name__}")
    found = Trace({})
    with Tracer(model, points) as tracer:
        yield found
    dtype = str(model.dtype).replace("torch.", "")
    found.fill(tracer.assemble(), metadata(model, dtype, None))


# ------------------------------------------------------------------------------------------
# In and out


def load_model(directory: str, dtype: str, experts: str = "default") -> Module:
    """GptOssForCausalLM from a directory: eager attention, MXFP4 dequantized, on the CPU."""
    if not os.path.isfile(os.path.join(directory, "config.json")):
        raise TraceError(f"{directory}: no config.json there")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(directory)
    if config.model_type != "gpt_oss":
        raise TraceError(f'{directory}: model_type is "{config.model_type}", expected "gpt_oss"')
    options: dict[str, Any] = {"attn_implementation": "eager", "output_loading_info": True}
    if getattr(config, "quantization_config", None):
        options["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    if experts != "default":
        options["experts_implementation"] = experts
    old = tuple(int(part) for part in transformers.__version__.split(".")[:2]) < (4, 56)
    options["torch_dtype" if old else "dtype"] = getattr(torch, dtype)
    model, info = transformers.GptOssForCausalLM.from_pretrained(directory, **options)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(what):
            first = sorted(map(str, info[what]))[0]
            raise TraceError(f"{directory}: {len(info[what])} {what.replace('_', ' ')}: {first}")
    return model.eval()


def metadata(model: Module, dtype: str, chunk: int | None, bug: str | None = None) -> dict[str, str]:
    """What a trace says of the run."""
    import torch
    import transformers

    found = {"engine": "transformers GptOssForCausalLM",
             "version": transformers.__version__, "torch": torch.__version__,
             "dtype": DTYPES.get(dtype, dtype), "attention": "eager",
             "experts": experts_implementation(model), "chunk": chunk, "planted_bug": bug}
    return {key: str(value) for key, value in found.items() if value is not None}


def write_trace(tensors: Mapping[str, Tensor], path: str, meta: Mapping[str, str]) -> None:
    """Writes the file whole or not at all."""
    Trace(tensors, meta).save(path)
