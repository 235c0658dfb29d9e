#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes planted in llama.cpp's graph while it runs, and what no trace shows of its library.

    interop_llama_bugs.py TINY.gguf DIR                a trace DIR/NAME.safetensors for each of BUGS; what they are as JSON
    interop_llama_bugs.py --facts TINY.gguf MID.gguf   facts as JSON

The files: `sinkproof synth synthetic:tiny --layout gguf --dense f32 --dequantize --out TINY.gguf`, and the
same of synthetic:doc/engines/mid.json,layers=2.

The evaluation callback may write to a node, and the graph goes on with what it finds there. A
mistake is a function of what was seen so far and of the value that it changes in place.
"""
import argparse
import ctypes
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "audit", "python"))
import planted  # noqa: E402
import sinkproof  # noqa: E402
from sinkproof.adapters import Record, llama  # noqa: E402
from sinkproof.adapters._command import parser_of_all  # noqa: E402
from sinkproof.adapters._llama_c import InitParams, Tensor  # noqa: E402
from sinkproof.adapters._tokens import parse_tokens  # noqa: E402

TOKENS = "random:50,seed=7"


class Seen:
    """The values of a run so far, as float64 by (point, layer), and the model's numbers and weights."""

    def __init__(self, model):
        self.model, self.values = model, {}
        self.heads, self.kv_heads = int(model.number("n_heads")), int(model.number("n_kv_heads"))
        self.dim = int(model.number("head_dim"))

    def rows(self, point, layer, heads=None):
        value = self.values[point, layer]
        return value.reshape(-1, *((heads, self.dim) if heads else (value.shape[-1],))).astype(np.float64)

    def weight(self, name, layer):
        return self.model.weight(name, layer)[0]


# ------------------------------------------------------------------------------------------
# Attention, computed again from what the graph has


def rotated(seen, layer, which, shift=0, concentration=True, interleaved=False, inverted=False, truncated=True):
    """A4 of A2, with YaRN as llama.cpp has it but for one thing."""
    number, dim = seen.model.number, seen.dim
    x = seen.rows(f"A2.{which}", layer, seen.heads if which == "q" else seen.kv_heads)
    pairs = np.arange(dim // 2)
    base, factor = number("rope_theta"), number("yarn_factor")
    ends = [dim * np.log(number("yarn_original_context") / (turns * 2 * np.pi)) / (2 * np.log(base))
            for turns in (number("yarn_beta_fast"), number("yarn_beta_slow"))]
    low, high = (np.floor(ends[0]), np.ceil(ends[1])) if truncated else ends
    ramp = np.clip((pairs - low) / (high - low), 0, 1)
    frequency = base ** (-2 * pairs / dim)
    frequency = frequency * (ramp / factor + 1 - ramp) if not inverted else frequency * (ramp + (1 - ramp) / factor)
    angle = (np.arange(len(x)) + shift)[:, None, None] * frequency
    size = 0.1 * np.log(factor) + 1 if concentration else 1
    c, s = np.cos(angle) * size, np.sin(angle) * size
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1)
    halves = a * c - b * s, b * c + a * s
    return np.stack(halves, -1).reshape(x.shape) if interleaved else np.concatenate(halves, -1)


def weights(seen, layer, window=0, sink=lambda b: b, modulus=False, scale=1.0, future=0, of_layer=lambda layer: layer):
    """A10 of A4: [heads, rows, keys]. `sink` makes the sinks' logits of those of the model."""
    q, k = seen.rows("A4.q", layer, seen.heads), seen.rows("A4.k", layer, seen.kv_heads)
    group = seen.heads // seen.kv_heads
    k = np.tile(k, (1, group, 1)) if modulus else np.repeat(k, group, axis=1)
    scores = np.einsum("ihd,jhd->hij", q, k) * scale / np.sqrt(seen.dim)
    i, j = np.arange(len(q))[:, None], np.arange(len(q))
    visible = j <= i + future
    if seen.model.slides(of_layer(layer)):
        visible &= j > i - int(seen.model.number("window")) - window
    scores = np.where(visible, scores, -np.inf)
    b = sink(seen.weight("sinks", layer)).reshape(-1, 1, 1)
    top = np.maximum(scores.max(axis=2, keepdims=True), b)
    exponentials = np.exp(scores - top)
    return exponentials / (exponentials.sum(axis=2, keepdims=True) + np.exp(b - top))


def put_weights(value, computed):
    value[...] = 0
    value[0, :, :, :computed.shape[2]] = computed


def attention(**wrong):
    def bug(seen, point, layer, value):
        if point == "A10":
            put_weights(value, weights(seen, layer, **wrong))
    return bug


def rotation(which="qk", **wrong):
    def bug(seen, point, layer, value):
        if point in [f"A4.{x}" for x in which]:
            value[...] = rotated(seen, layer, point[-1], **wrong).reshape(value.shape)
    return bug


# ------------------------------------------------------------------------------------------
# The other stages


def activation(alpha=1.702, limit=7.0, one_sided=False, one=1.0):
    def bug(seen, point, layer, value):
        if point == "M8":
            gate, up = (seen.values[f"M6.{half}", layer].astype(np.float64) for half in ("gate", "up"))
            gate = np.minimum(gate, limit)
            up = np.minimum(up, limit) if one_sided else np.clip(up, -limit, limit)
            value[...] = gate / (1 + np.exp(-alpha * gate)) * (up + one)
    return bug


def swapped_halves(seen, point, layer, value):
    """The gate is taken for the up-projection. llama.cpp computes the gate first, or the up."""
    if point in ("M6.gate", "M6.up"):
        other = seen.places.get(("M6.up" if point == "M6.gate" else "M6.gate", layer))
        if other is not None:
            kept = value.copy()
            value[...], other[...] = other, kept


def without_bias(point_of_bias, name):
    def bug(seen, point, layer, value):
        if point == point_of_bias:
            value -= seen.weight(name, layer).astype(np.float32).reshape(1, 1, 1, -1)
    return bug


def norms(eps):
    def bug(seen, point, layer, value):
        if point in ("A1", "M1"):
            source = ("A13", layer) if point == "M1" else ("M12", layer - 1) if layer else ("T0", 0)
            x = seen.rows(*source)
            weight = seen.weight("mlp_norm" if point == "M1" else "attn_norm", layer)
            value[0, 0] = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * weight
    return bug


def change(name, function):
    """`function` of the value of one point takes its place."""
    def bug(seen, point, layer, value):
        if point == name:
            value[...] = function(value)
    return bug


def chosen(function):
    def bug(seen, point, layer, value):
        if point == "M3":
            value[...] = function(value, seen.values["M2", layer])
    return bug


def next_best(value, logits):
    """The expert behind the chosen ones takes the last one's place."""
    order = np.argsort(-logits, axis=-1, kind="stable")
    found = value.copy()
    found[..., -1] = order[..., value.shape[-1]]
    return found


def weights_before_top_k(seen, point, layer, value):
    if point == "M4":
        logits, who = seen.values["M2", layer][0, 0].astype(np.float64), seen.values["M3", layer][0, 0]
        e = np.exp(logits - logits.max(axis=1, keepdims=True))
        value[0, :, :, 0] = np.take_along_axis(e / e.sum(axis=1, keepdims=True), who, axis=1)


def no_sink(b):
    return np.full_like(b, -np.inf)


def off_by_a_head(b):
    return np.roll(b, 1)


# name -> (the mistake, the points of which one must be the first divergence, in whichever layer it acts first,
# and what the catalogue of the diagnosis calls it; nothing where it has none)
BUGS = {
    "window-one-wider": (attention(window=1), ["A10"], "window-wide"),
    "window-one-narrower": (attention(window=-1), ["A10"], "window-narrow"),
    "window-on-odd-layers": (attention(of_layer=lambda layer: layer ^ 1), ["A10"], "window-parity"),
    "sink-dropped": (attention(sink=no_sink), ["A10"], "sink-dropped"),
    "sink-scaled": (attention(sink=lambda b: b / 4), ["A10"], "sink-scaled"),
    "sink-off-by-a-head": (attention(sink=off_by_a_head), ["A10"], "sink-previous-head"),
    "sink-twice": (attention(sink=lambda b: b + np.log(2)), ["A10"]),
    "heads-by-modulus": (attention(modulus=True), ["A10"]),  # in the scores, and not in the values
    "scores-unscaled": (attention(scale=4.0), ["A10"], "score-unscaled"),
    "future-seen": (attention(future=1), ["A10"]),
    "positions-off-by-one": (rotation(which="q", shift=1), ["A4.q"], "positions-late-q"),
    "keys-without-concentration": (rotation(which="k", concentration=False), ["A4.k"], "concentration-missing-k"),
    "rope-interleaved": (rotation(interleaved=True), ["A4.q"], "rope-neighbours"),
    "yarn-inverted": (rotation(inverted=True), ["A4.q"]),  # a ramp with whole ends, read the wrong way
    "heads-reversed": (change("A11", lambda value: value.reshape(*value.shape[:-1], -1, 16)[..., ::-1, :].reshape(
        value.shape)), ["A11"]),
    "query-without-bias": (without_bias("A2.q", "b_q"), ["A2.q"], "bias-dropped-q"),
    "value-without-bias": (without_bias("A2.v", "b_v"), ["A2.v"], "bias-dropped-v"),
    "output-without-bias": (without_bias("A12", "b_o"), ["A12"], "bias-dropped-o"),
    "router-without-bias": (without_bias("M2", "b_router"), ["M2"], "bias-dropped-router"),
    "eps-1e-6": (norms(1e-6), ["A1", "M1"], "eps-1e-6"),
    "eps-1e-4": (norms(1e-4), ["A1", "M1"], "eps-1e-4"),
    "next-best-expert": (chosen(next_best), ["M3"], "select-runner-up"),
    "softmax-before-top-k": (weights_before_top_k, ["M4"], "shares-softmax-before"),
    "gate-and-up-swapped": (swapped_halves, ["M6"]),  # behind the biases, M5 as it was
    "alpha-1.7": (activation(alpha=1.7), ["M8"], "alpha-1.7"),
    "limit-6": (activation(limit=6.0), ["M8"], "limit-6"),
    "clamp-one-sided": (activation(one_sided=True), ["M8"], "up-above"),
    "one-missing": (activation(one=0.0), ["M8"], "up-plus-missing"),
    "mixture-scaled": (change("M11", lambda value: value * np.float32(1 + 2**-10)), ["M11"]),
    "logits-scaled": (change("F2", lambda value: value * np.float32(1 + 2**-12)), ["F2"]),
}
# What computes the same thing in another way, or in another order, and must be acquitted.
EQUIVALENT = {
    "untouched": lambda seen, point, layer, value: None,
    "weights-again": attention(),
    "rotation-again": rotation(),
    "activation-again": activation(),
    "experts-in-another-order": chosen(lambda value, logits: value[..., ::-1].copy()),
}


def run(engine, model, bug):
    """One run with a mistake in it; the record."""
    record, seen = Record(model), Seen(model)
    seen.places = {}

    def hook(point, layer, value):
        bug(seen, point, layer, value)
        seen.values[point, layer], seen.places[point, layer] = value.copy(), value
    if engine.context:
        engine.context.close()
    engine.context, engine.fed, engine.hook = None, 0, hook
    engine.feed(parse_tokens(TOKENS, int(model.number("vocab"))), record)
    return record


def options_of(model, *more):
    return parser_of_all().parse_args(["llama", model, "--tokens", TOKENS, "--cache", "f32", "--out", "none", *more])


# ------------------------------------------------------------------------------------------
# Facts of the library that no trace shows


def logits(engine, tokens, watched):
    """Of the last token, with every node watched or none."""
    if engine.context:
        engine.context.close()
        engine.context = None
    parameters = llama.Context.parameters
    if not watched:
        def unwatched(self, cells):
            asked = parameters(self, cells)
            asked.cb_eval = None
            return asked
        llama.Context.parameters = unwatched
    try:
        context = llama.Context(engine.library, engine.pointer, engine.options, 256)
    finally:
        llama.Context.parameters = parameters
    batch = engine.library.c.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
    context.rows = [(0, i, token) for i, token in enumerate(tokens)]
    engine.library.c.llama_decode(context.pointer, batch)
    place = engine.library.c.llama_get_logits_ith(context.pointer, len(tokens) - 1)
    found = np.ctypeslib.as_array(place, (211,)).copy()
    context.close()
    return found


def keys_after_shifts(engine, tokens, shifts):
    """|key| of a token that no shift moves over what it was, in a layer without a window, after each shift."""
    context = llama.Context(engine.library, engine.pointer, engine.options, 256)
    context.call([(0, i, token) for i, token in enumerate(tokens[:30])], None)
    before, found = context.keys[1].value[0, 0, 0].astype(np.float64), []
    for at in range(shifts):
        context.forget(4, 1)
        context.call([(0, 29, tokens[30 + at])], None)
        after = context.keys[1].value[0, 0, 0].astype(np.float64)
        found.append(float(np.linalg.norm(after) / np.linalg.norm(before)))
    context.close()
    return found


def mean_of_ones(library, keys, queries, threads, kind=1, value=1.0):
    """Flash attention over keys of equal score, every value `value`, float32 precision asked for: their mean."""
    c, tensor = library.c, ctypes.POINTER(Tensor)
    c.ggml_new_tensor_3d.restype = c.ggml_flash_attn_ext.restype = tensor
    c.ggml_new_tensor_3d.argtypes = [ctypes.c_void_p, ctypes.c_int, *[ctypes.c_int64] * 3]
    c.ggml_flash_attn_ext.argtypes = [ctypes.c_void_p, tensor, tensor, tensor, ctypes.c_void_p, *[ctypes.c_float] * 3]
    c.ggml_flash_attn_ext_set_prec.argtypes = [tensor, ctypes.c_int]
    c.ggml_new_graph.restype, c.ggml_new_graph.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    c.ggml_build_forward_expand.argtypes = [ctypes.c_void_p, tensor]
    c.ggml_graph_compute_with_ctx.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    memory = c.ggml_init(InitParams(1 << 27, None, False))
    q = c.ggml_new_tensor_3d(memory, 0, 64, queries, 1)
    k, v = (c.ggml_new_tensor_3d(memory, kind, 64, keys, 1) for _ in range(2))
    for place, filled in ((q, 0), (k, 0), (v, value)):
        library.array(place.contents)[...] = filled
    out = c.ggml_flash_attn_ext(memory, q, k, v, None, 0.125, 0.0, 0.0)
    c.ggml_flash_attn_ext_set_prec(out, 10)  # GGML_PREC_F32
    graph = c.ggml_new_graph(memory)
    c.ggml_build_forward_expand(graph, out)
    c.ggml_graph_compute_with_ctx(memory, graph, threads)
    found = float(library.array(out.contents).flat[0])
    c.ggml_free(memory)
    return found


def narrow_kernel(q, k, v, scale, sink):
    """One query of the scalar kernel, its sums in float16: a product in float64, rounded as its FMA is, then again."""
    scores = (k.astype(np.float64) @ q.astype(np.float16).astype(np.float64)).astype(np.float32) * scale
    total, top, sums = np.float32(0), np.float32(-np.inf), np.zeros(v.shape[1], np.float16)
    for score, value in zip(scores, v):
        turned, weight = np.float32(1), np.float32(1)
        if score > top:
            turned, top = np.float32(np.exp(np.float64(top) - score)), score
            sums = (sums.astype(np.float32) * turned).astype(np.float16)
        else:
            weight = np.float32(np.exp(np.float64(score) - top))
        sums = (sums.astype(np.float64) + value.astype(np.float64) * weight).astype(np.float32).astype(np.float16)
        total = total * turned + weight
    out = sums.astype(np.float32)
    if sink > top:
        return out * np.float32(np.exp(np.float64(top) - sink)) / (total * np.float32(np.exp(top - sink)) + 1)
    return out / (total + np.float32(np.exp(sink - top)))


def narrow_sums(spec, n, layer=1):
    """Of the last token's A11 after n: the worst head's error, and what a kernel with float16 sums explains of it."""
    options = options_of(spec, "--flash", "--cache", "f16", "--prefill", str(n - 1))
    options.tokens = f"random:{n},seed=7"
    model, engine = sinkproof.Model(spec), llama.Engine(spec, options)
    record = Record(model, [f"{layer:02d}.A2", f"{layer:02d}.A4", f"{layer:02d}.A11"])
    engine.feed(parse_tokens(options.tokens, int(model.number("vocab"))), record)
    trace = record.trace({})
    q, k, v, got = (trace[f"{layer:02d}.{point}"] for point in ("A4.q", "A4.k", "A2.v", "A11"))
    group = q.shape[1] // k.shape[1]
    scale, worst, left, same = np.float32(1 / np.sqrt(np.float32(q.shape[2]))), 0.0, 0.0, 0
    for h in range(q.shape[1]):
        b, keys, values = model.weight("sinks", layer)[0, h], k[:, h // group], v[:, h // group]
        scores = keys.astype(np.float64) @ q[-1, h].astype(np.float64) * scale
        e = np.exp(scores - scores.max())
        exact = e @ values.astype(np.float64) / (e.sum() + np.exp(b - scores.max()))
        emulated = narrow_kernel(q[-1, h], keys.astype(np.float16), values.astype(np.float16), scale, np.float32(b))
        size = np.linalg.norm(exact)
        worst = max(worst, np.linalg.norm(got[-1, h] - exact) / size)
        left = max(left, np.linalg.norm(got[-1, h] - emulated) / size)
        same += int((np.abs(got[-1, h] - emulated) <= 2.0**-20 * np.abs(emulated)).sum())
    return {"error": worst, "unexplained": left, "same": same / got[-1].size}


def facts(model, wider):
    engine = llama.Engine(model, options_of(model))
    library, tokens = engine.library, parse_tokens(TOKENS, 211)
    library.c.ggml_cpu_init()
    same = np.array_equal(logits(engine, tokens, True), logits(engine, tokens, False))
    return {"same logits": bool(same), "keys after shifts": keys_after_shifts(engine, tokens, 3),
            "means": {f"{keys} keys, {queries} queries, {threads} threads, {name}":
                      mean_of_ones(library, keys, queries, threads, kind)
                      for keys in (2048, 4096, 8192, 32768) for queries, threads, name, kind in (
                          (1, 1, "f16", 1), (1, 2, "f16", 1), (8, 1, "f16", 1), (64, 1, "f16", 1), (1, 1, "bf16", 30))},
            "narrow sums": {n: narrow_sums(wider, n) for n in (50, 500, 2000)},
            "mean of 20 over 4096 keys": str(mean_of_ones(library, 4096, 1, 1, value=20.0))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--facts", action="store_true")
    parser.add_argument("model")
    parser.add_argument("other", metavar="DIR|MID.gguf")
    asked = parser.parse_args()
    if asked.facts:
        print(json.dumps(facts(asked.model, asked.other)))
        return
    plant_all(asked.model, asked.other)


def plant_all(path, folder):
    """A trace of each mistake and of each equivalent; prints where it acts, what names it, what it changed."""
    model, engine = sinkproof.Model(path), llama.Engine(path, options_of(path))
    honest, found = run(engine, model, EQUIVALENT["untouched"]).trace({}), {}
    for name, (bug, *said) in {**BUGS, **{name: (bug,) for name, bug in EQUIVALENT.items()}}.items():
        trace = run(engine, model, bug).trace({"engine": "llama.cpp", "planted": name})
        trace.save(os.path.join(folder, f"{name}.safetensors"))
        found[name] = {"points": said[0] if said else [], "named": said[1:], "equivalent": name in EQUIVALENT,
                       "changed": planted.differing(honest, trace)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
