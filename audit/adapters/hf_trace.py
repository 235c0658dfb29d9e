#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs Hugging Face transformers' GptOssForCausalLM and writes what it computed as a trace.

    hf_trace.py MODEL_DIR --tokens 5,1,7 --dtype bfloat16 --out trace.safetensors

A trace is one safetensors file with the named points of a forward pass, in the dtype that the
engine holds (format sinkproof-trace-1); `sinkproof judge MODEL_DIR trace.safetensors` reads it.

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
or an expert's row that cannot be tied to its token is an error (one sentence, exit 3, no file).
Also importable: `load_model`, `trace_model`, `write_trace`. Needs transformers 4.55 or newer.

torch and transformers are imported where they are used, so that --help answers at once.
"""
import argparse
import contextlib
import os
import random
import sys
import tempfile

FORMAT = "sinkproof-trace-1"
DTYPES = {"float32": "f32", "bfloat16": "bf16"}
PRODUCTS = {"matmul", "__matmul__", "mm", "bmm", "grouped_mm", "_grouped_mm", "grouped_mm_fallback"}
ADDITIONS = {"add", "add_", "__add__", "__iadd__"}
SCALINGS = {"mul", "__mul__", "__rmul__", "mul_"}
BY_KEYS = {"A6", "A9", "A10"}  # [heads, n, keys]: assembled by absolute position of the key


class TraceError(Exception):
    """One sentence about input that cannot be traced."""


# ------------------------------------------------------------------------------------------
# Watching operations


def watch(on_call):
    """A context in which on_call(name, args, result) sees every torch operation."""
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            on_call(getattr(func, "__name__", str(func)), args, result)
            return result

    return Watch()


def _same_storage(a, b):
    """True when b is a itself or a reshaped view of all of it."""
    return hasattr(b, "data_ptr") and a.data_ptr() == b.data_ptr() and a.numel() == b.numel()


class AttentionOps:
    """Watches one call of eager attention: A6 is the first product, scaled; A9 the softmax."""

    def __init__(self):
        self.product = self.scores = self.weights = None

    def __call__(self, name, args, result):
        if name in PRODUCTS and self.product is None:
            self.product = result
        elif name in SCALINGS and self.scores is None and args and args[0] is self.product:
            self.scores = result.clone()
        elif name == "softmax":
            self.weights = result


class RouterOps:
    """Watches one call of the router: M2 is its linear map, M3 the top k, M4 their softmax."""

    def __init__(self):
        self.logits = self.chosen = self.weights = None

    def __call__(self, name, args, result):
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

    def __init__(self):
        self.products, self.rows, self.order = [], [], None

    def __call__(self, name, args, result):
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

    def slots_by_product(self, chosen_nk, implementation):
        """Per up-product the flat slot, token * k + slot, of each row; None: dense [E, n, .]."""
        import torch
        n, k = chosen_nk.shape
        n_pairs = len(self.products) // 2
        if not self.products or len(self.products) % 2:
            raise TraceError("the experts' matrix products do not come in pairs of up and down")
        if implementation == "batched_mm":
            return [torch.arange(n * k)]
        if n_pairs == 1 and self.products[0]["product"].dim() == 3:
            return [None]
        if n_pairs == 1 and self.order is not None:
            return [self.order.reshape(-1)]
        if len(self.rows) != n_pairs:
            raise TraceError("the experts' rows were not selected once per up-projection")
        return [token * k + slot for slot, token in self.rows]

    def gather(self, chosen_nk, tokens_nh, implementation):
        """{"M5": [n, k, 2 inter], "M6", "M8": [n, k, inter], "M9": [n, k, hidden], "M10"}."""
        import torch
        n, k = chosen_nk.shape
        gathered, written = {}, torch.zeros(n * k, dtype=torch.int64)
        for at, slots in enumerate(self.slots_by_product(chosen_nk, implementation)):
            up, down = self.products[2 * at], self.products[2 * at + 1]
            if up["biased"] is None or down["biased"] is None:
                raise TraceError("the experts' bias was not seen being added")
            found = {"input": up["input"], "M5": up["product"], "M6": up["biased"],
                     "M8": down["input"], "M9": down["product"], "M10": down["biased"]}
            if slots is None:  # every expert saw every token: pick the chosen ones
                token_nk = torch.arange(n)[:, None].expand(n, k)
                found = {point: value[chosen_nk, token_nk] for point, value in found.items()}
                slots = torch.arange(n * k)
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

    def __init__(self, model, points=None):
        self.model, self.points = model, points
        self.config = model.config
        self.parts = {}  # name -> list of (first position, tensor), one per chunk
        self.begin = 0   # absolute position of the first token of the running chunk
        self.undo = contextlib.ExitStack()

    def put(self, name, tensor):
        """Keeps a copy of `tensor` (rows are tokens of the running chunk) under `name`."""
        point = name.split(".", 1)[1] if name[0].isdigit() else name
        if self.points is None or point in self.points:
            self.parts.setdefault(name, []).append((self.begin, tensor.detach().clone()))

    # -- installation

    def __enter__(self):
        base = self.model.model
        self.after(base.embed_tokens, lambda out: self.put("T0", out[0]))
        self.after(base.norm, lambda out: self.put("F1", out[0]))
        self.after(self.model.lm_head, lambda out: self.put("F2", out[0]))
        for index, layer in enumerate(base.layers):
            self.hook_layer(f"{index:02d}", layer)
        self.wrap_attention(sys.modules[type(self.model).__module__])
        return self

    def __exit__(self, *exception):
        self.undo.close()

    def after(self, module, keep):
        """keep(output) after each call; of a tuple only the first element is an activation."""
        handle = module.register_forward_hook(
            lambda module, inputs, output: keep(output[0] if isinstance(output, tuple) else output))
        self.undo.callback(handle.remove)

    def hook_layer(self, layer_name, layer):
        def keep(point, shape=None):
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

    def replace_forward(self, module, make, layer_name):
        module.forward = make(layer_name, module.forward)
        self.undo.callback(module.__dict__.pop, "forward")

    # -- the three wrapped functions

    def router_forward(self, layer_name, forward):
        def traced(*args, **kwargs):
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

    def experts_forward(self, layer_name, forward):
        def traced(hidden_states, *args, **kwargs):
            ops = ExpertOps()
            with watch(ops):
                output = forward(hidden_states, *args, **kwargs)
            tokens_nh = hidden_states.reshape(-1, hidden_states.shape[-1])
            implementation = experts_implementation(self.model)
            for point, value in ops.gather(self.chosen_nk, tokens_nh, implementation).items():
                self.put(f"{layer_name}.{point}", value)
            return output
        return traced

    def wrap_attention(self, modeling):
        """Eager attention is looked up by name at every call: name a traced one instead."""
        eager = modeling.eager_attention_forward

        def traced(module, query, key, value, *args, **kwargs):
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

    def forward(self, tokens, cache):
        """One call of the model on `tokens`, which follow the positions already in `cache`."""
        import torch
        end = self.begin + len(tokens)
        with torch.no_grad():
            self.model(input_ids=torch.tensor([tokens]),
                       position_ids=torch.arange(self.begin, end)[None],
                       past_key_values=cache, use_cache=cache is not None)
        self.begin = end

    def assemble(self):
        """The parts of all chunks as whole tensors."""
        import torch

        return {name: self.by_keys(name, parts) if name.split(".")[-1] in BY_KEYS
                else torch.cat([part for _, part in parts])
                for name, parts in self.parts.items()}

    def by_keys(self, name, parts):
        """[heads, n, keys (+ 1)]: the K columns of a chunk that ends at e are keys e-K .. e-1."""
        n, sink = self.begin, 1 if name.endswith(".A9") else 0
        whole = parts[0][1].new_zeros(parts[0][1].shape[0], n, n + sink)
        for begin, part in parts:
            end, n_keys = begin + part.shape[1], part.shape[2] - sink
            whole[:, begin:end, end - n_keys:end] = part[..., :n_keys]
            if sink:
                whole[:, begin:end, n] = part[..., n_keys]
        return whole


def experts_implementation(model):
    """"eager", "grouped_mm", ...; "eager" for versions that know no other."""
    return getattr(model.config, "_experts_implementation", None) or "eager"


def new_cache(config):
    from transformers import DynamicCache

    try:
        return DynamicCache(config=config)
    except TypeError:  # before 4.56 the cache took no configuration and kept every key
        return DynamicCache()


def trace_model(model, tokens, chunk=None, points=None):
    """Runs `tokens` (in chunks of `chunk` through a cache, when given); returns {name: tensor}."""
    import torch
    vocab = model.config.vocab_size
    for token in tokens:
        if not 0 <= token < vocab:
            raise TraceError(f"token {token} is outside the vocabulary of {vocab}")
    with Tracer(model, points) as tracer:
        cache = new_cache(model.config) if chunk else None
        step = chunk or len(tokens)
        for begin in range(0, len(tokens), step):
            tracer.forward(tokens[begin:begin + step], cache)
    trace = tracer.assemble()
    trace["tokens"] = torch.tensor(tokens, dtype=torch.int32)
    trace["positions"] = torch.arange(len(tokens), dtype=torch.int32)
    return trace


# ------------------------------------------------------------------------------------------
# In and out


def load_model(directory, dtype, experts="default"):
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
    options = {"attn_implementation": "eager", "output_loading_info": True}
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


def metadata(model, dtype, chunk, bug=None):
    import torch
    import transformers

    found = {"format": FORMAT, "engine": "transformers GptOssForCausalLM",
             "version": transformers.__version__, "torch": torch.__version__,
             "dtype": DTYPES[dtype], "attention": "eager",
             "experts": experts_implementation(model), "chunk": chunk, "planted_bug": bug}
    return {key: str(value) for key, value in found.items() if value is not None}


def write_trace(trace, path, meta):
    """Writes the file whole or not at all."""
    from safetensors.torch import save_file

    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".trace-")
    os.close(handle)
    try:
        whole = {name: tensor.contiguous() for name, tensor in trace.items()}
        save_file(whole, temporary, metadata=meta)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def parse_tokens(text):
    """"1,2,3", "@FILE" with ids between commas or white space, or ("random", N, seed)."""
    if text.startswith("random:"):
        fields = text[len("random:"):].split(",")
        seed = fields[1] if len(fields) == 2 else "seed=1"
        if len(fields) > 2 or not seed.startswith("seed=") or int(fields[0]) < 1:
            raise ValueError(f'"{text}" where random:N[,seed=S] was expected')
        return ("random", int(fields[0]), int(seed[len("seed="):]))
    if text.startswith("@"):
        with open(text[1:], encoding="ascii") as file:
            text = file.read().replace(",", " ")
    tokens = [int(word) for word in text.replace(",", " ").split()]
    if not tokens:
        raise ValueError("at least one token is needed")
    return tokens


def draw_tokens(tokens, vocab):
    """A list as it is; ("random", N, seed) drawn uniformly below `vocab`."""
    if not isinstance(tokens, tuple):
        return tokens
    _, n, seed = tokens
    generator = random.Random(seed)
    return [generator.randrange(vocab) for _ in range(n)]


def planted_bug(name, model):
    """The context of a planted bug, from tests/audit/interop_hf_bugs.py of this source tree."""
    if name is None:
        return contextlib.nullcontext()
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.normpath(os.path.join(here, "..", "..", "tests")))
    try:
        from interop_hf_bugs import BUGS
    except ImportError:
        raise TraceError(f"{sys.path[0]}: no interop_hf_bugs.py with planted bugs there") from None
    finally:
        del sys.path[0]
    if name not in BUGS:
        raise TraceError(f'no planted bug "{name}"; known: {", ".join(BUGS)}')
    return BUGS[name](model)


def arguments(argv):
    parser = argparse.ArgumentParser(prog="hf_trace.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", metavar="MODEL_DIR", help="checkpoint in the Hugging Face layout")
    parser.add_argument("--tokens", required=True, help="ids: 1,2,3 or @FILE or random:N[,seed=S]")
    parser.add_argument("--dtype", choices=list(DTYPES), default="bfloat16")
    parser.add_argument("--out", required=True, metavar="FILE", help="the trace to write")
    parser.add_argument("--chunk", type=int, metavar="N",
                        help="feed the prompt N tokens at a time, through a key/value cache")
    parser.add_argument("--experts", default="default", metavar="NAME",
                        help="default (what transformers chooses), eager, grouped_mm, batched_mm")
    parser.add_argument("--points", metavar="A9,M8", help="keep only these points")
    parser.add_argument("--bug", metavar="NAME",
                        help="plant a known mistake first (tests/audit/interop_hf_bugs.py)")
    options = parser.parse_args(argv)
    try:
        options.tokens = parse_tokens(options.tokens)
    except (ValueError, OSError) as error:
        parser.error(f"--tokens: {error}")
    if options.chunk is not None and options.chunk < 1:
        parser.error("--chunk: at least 1")
    options.points = set(options.points.split(",")) if options.points else None
    return options


def main(argv=None):
    options = arguments(argv)
    try:
        model = load_model(options.model, options.dtype, options.experts)
        tokens = draw_tokens(options.tokens, model.config.vocab_size)
        with planted_bug(options.bug, model):
            trace = trace_model(model, tokens, options.chunk, options.points)
        write_trace(trace, options.out, metadata(model, options.dtype, options.chunk, options.bug))
        return 0
    except TraceError as error:
        sentence = str(error)
    except ImportError as error:
        sentence = f"a Python package is missing: {error}"
    except Exception as error:  # whatever transformers raises on a checkpoint: one line
        sentence = f"{options.model}: {' '.join(str(error).split()) or type(error).__name__}"
    print(f"hf_trace.py: {sentence}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
