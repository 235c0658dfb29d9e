# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The mistakes that interop_hf_planted.py plants in transformers, by name; interop_hf_bugs.py has their code."""
import math

import torch
from interop_hf_bugs import (activation, at_positions, attention, attribute, Bug, by_definition, by_parts, by_sigmoid,
                             cached_keys_narrow, changed, complex_turn, eps, exchanged_norms, experts_of_the_input,
                             first_head_alone, FULL, function, gone, gone_in_prefill, gone_in_steps, halves,
                             heads_by_modulus, kernel, layer_as, layers, mixture, narrow_sums, neighbours, norm,
                             oldest_hidden_in_steps, oldest_slot_overwritten, padding_seen, plain_rope, renormalised,
                             result, rotary, rotary_attribute, rounded, seen, shares, sink_has_value,
                             sink_on_every_score, sink_unshifted, sinks, together, weights, window, yarn)

A9, QK, NORMS = ("A9",), ("A4.q", "A4.k"), ("A1", "M1")
BRAIN = torch.bfloat16


def scaled(factor):
    return lambda data, *_: data * factor


def of_next_layer(data, every, layer):
    return every[(layer + 1) % len(every)]


def dropped(data, *_):
    return torch.zeros_like(data)


def bug(name, plant, points, *named, **more):
    """Called by its own name in the catalogue where it has no other, or by a composed one."""
    return name, Bug(plant, points, named or (name,), **more)


def unnamed(name, plant, points, **more):
    return name, Bug(plant, points, **more)


MASKS = [
    bug("window-wide", window(lambda w: w + 1), A9),
    bug("window-narrow", window(lambda w: w - 1), A9),
    bug("window-double", window(lambda w: 2 * w), A9),
    bug("window-half", window(lambda w: w // 2), A9),
    bug("window-off", seen(lambda i, j, w, slides: j <= i), A9),
    bug("window-everywhere", seen(lambda i, j, w, slides: (j <= i) & (j > i - w)), A9),
    bug("window-parity", seen(lambda i, j, w, slides: (j <= i) & (slides | (j > i - w))), A9),
    bug("mask-off", seen(lambda i, j, w, slides: j == j), A9, "mask-off", "window-off-later-keys=47"),  # of 48 tokens
    bug("next-key-seen", seen(lambda i, j, w, slides: (j <= i + 1) & (~torch.tensor(slides) | (j > i - w))), A9, "later-keys=1"),
    bug("window-from-the-start", seen(lambda i, j, w, slides: (j <= i) & (~torch.tensor(slides) | (j // w == i // w))), A9, "window-of-row-tile=8-last"),
]
SINKS = [
    bug("sink-dropped", sinks(gone), A9),
    bug("sink-on-every-score", attention(sink_on_every_score), A9, "sink-dropped"),
    bug("sink-zero", sinks(lambda b, *_: torch.zeros_like(b)), A9),
    bug("sink-scaled", sinks(lambda b, module, q: b * module.scaling), A9),
    bug("sink-prescaled", sinks(lambda b, module, q: b / module.scaling), A9),
    bug("sink-log2e", sinks(lambda b, *_: b * math.log2(math.e)), A9),
    bug("sink-doubled", sinks(lambda b, *_: 2 * b), A9),
    bug("sink-negated", sinks(lambda b, *_: -b), A9),
    bug("sink-next-head", sinks(lambda b, *_: b.roll(-1)), A9),
    bug("sink-previous-head", sinks(lambda b, *_: b.roll(1)), A9),
    bug("sink-by-group", sinks(lambda b, module, q: b[torch.arange(len(b)) // module.num_key_value_groups]), A9),
    bug("sink-next-layer", weights("self_attn", "sinks", of_next_layer), A9),
    bug("sink-renormalised", kernel(renormalised), ("A11",), under=FULL),
    bug("sink-has-value", attention(sink_has_value), ("A11",), under=FULL),
    bug("sink-per-part-16", kernel(lambda scores, b: by_parts(scores, b, 16, True)), ("A11",), under=FULL),
    bug("sink-unshifted", kernel(sink_unshifted), ("A11",), under=FULL),
    bug("sink-of-first-heads-alone", sinks(first_head_alone), A9, "sink-dropped@head=5-9"),
    bug("sink-gone-in-steps", sinks(gone_in_steps), A9, "sink-dropped", run="steps"),
    bug("sink-gone-in-prefill", sinks(gone_in_prefill), A9, "sink-dropped", run="steps"),
]
SCORES = [
    bug("score-unscaled", attribute("self_attn", "scaling", 1.0), ("A6",)),
    bug("score-scaled-twice", attribute("self_attn", "scaling", 1 / 16), ("A6",)),
    bug("heads-by-modulus", function("repeat_kv", heads_by_modulus), ("A6",)),
    bug("A9-bf16", kernel(lambda scores, b: by_definition(scores, b).bfloat16().to(scores.dtype)), ("A11",), under=FULL),
    bug("A11-f16", attention(lambda right, *rest, **more: (lambda out, a: (out.half().to(out.dtype), a))(*right(*rest, **more))),
        ("A11",), under=FULL),
    bug("values-summed-in-bf16", attention(narrow_sums), ("A11",), "A11.acc-bf16"),
]
ROTATIONS = [
    bug("rope-neighbours", rotary(neighbours), QK),
    bug("rope-neighbours-k", rotary(neighbours, "k"), ("A4.k",)),
    bug("rope-backwards", rotary(lambda x, c, s: halves(x, c, -s)), QK),
    bug("rope-missing", rotary(lambda x, c, s: x), QK),
    bug("positions-late", at_positions(lambda p: p + 1), QK),
    bug("positions-early-q", at_positions(lambda p: p - 1, "q"), ("A4.q",)),
    bug("positions-late-k", at_positions(lambda p: p + 1, "k"), ("A4.k",)),
    bug("yarn-truncate", yarn(truncate=True), QK),
    bug("yarn-missing", plain_rope, QK),
    bug("yarn-factor-16", yarn(factor=16.0), QK),
    bug("yarn-inverted", yarn(beta_fast=1.0, beta_slow=32.0), QK),
    bug("context-8192", yarn(original_max_position_embeddings=8192), QK),
    bug("theta-10000", yarn(rope_theta=10000.0), QK),
    bug("concentration-missing", rotary_attribute("attention_scaling", lambda c: 1.0), QK),
    bug("concentration-missing-k", rotary(lambda x, c, s: halves(x, c / (0.1 * math.log(32) + 1), s / (0.1 * math.log(32) + 1)),
                                          "k"), ("A4.k",), under=FULL),
    bug("concentration-twice", rotary_attribute("attention_scaling", lambda c: c * c), QK),
    bug("frequencies-in-bf16", rotary_attribute("inv_freq", lambda f: f.bfloat16().float()), QK, "frequencies-bf16"),
    bug("positions-late-in-steps", at_positions(lambda p: p + (p.shape[1] == 1)), QK, "positions-late", run="steps"),
    bug("positions-restart-in-steps", at_positions(lambda p: p - p * (p.shape[1] == 1)), QK, "positions-end-at-0@position=40-47", run="steps"),
]
CACHES = [
    bug("ring-one-slot-short", attention(oldest_slot_overwritten), ("A6",), "kv-ring=7@position=40", run="steps"),
    bug("one-key-too-many-evicted", attention(oldest_hidden_in_steps), A9, "window-narrow", run="steps"),
    bug("cache-of-eight-bits", attention(cached_keys_narrow), ("A6",), "cached-kv-e4m3@position=40", run="steps"),
    bug("padding-seen", padding_seen, A9, "A9-foreign-keys", run="padded"),
]
PROJECTIONS = [
    *(bug(f"bias-dropped-{x}", weights(f"self_attn.{x}_proj", "bias", dropped), (point,))
      for x, point in (("q", "A2.q"), ("k", "A2.k"), ("v", "A2.v"), ("o", "A12"))),
    bug("bias-twice-o", weights("self_attn.o_proj", "bias", scaled(2)), ("A12",)),
    bug("weights-next-layer-v", lambda model: together(weights("self_attn.v_proj", "weight", of_next_layer)(model),
                                                       weights("self_attn.v_proj", "bias", of_next_layer)(model)), ("A2.v",)),
]
NORMS_AND_RESIDUALS = [
    bug("eps-1e-6", eps(1e-6), NORMS),
    bug("eps-1e-3", eps(1e-3), NORMS),
    bug("eps-0", eps(0.0), NORMS),
    bug("eps-outside", norm(lambda x, e: x / (x.pow(2).mean(-1, keepdim=True).sqrt() + e)), NORMS),
    bug("norm-centred", norm(lambda x, e: (y := x - x.mean(-1, keepdim=True)) * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + e)),
        NORMS),
    bug("norm-plus-one", lambda model: together(*(changed(m.weight, "data", m.weight.data + 1) for m in model.modules()
                                                  if hasattr(m, "variance_epsilon"))), NORMS),
    bug("norms-exchanged", exchanged_norms, NORMS),
    bug("A1-bf16", result("input_layernorm", rounded(BRAIN)), ("A1",), under=FULL),
    bug("residual-dropped-attention", layer_as(attention_keeps=0), ("A13",)),
    bug("residual-twice-experts", layer_as(experts_add=2), ("M12",)),
    unnamed("experts-beside-attention", layers(experts_of_the_input), ("A13",)),
]
ROUTERS = [
    bug("bias-dropped-router", weights("mlp.router", "bias", dropped), ("M2",)),
    bug("shares-softmax-before", shares(lambda w, top, logits, chosen: torch.softmax(logits, 1).gather(1, chosen)), ("M4",)),
    bug("shares-sigmoid", shares(lambda w, top, *_: torch.sigmoid(top)), ("M4",)),
    bug("shares-even", shares(lambda w, *_: torch.full_like(w, 1 / w.shape[1])), ("M4",)),
    bug("mixture-backwards", mixture(lambda w: w.flip(1)), ("M11",)),
    bug("mixture-ones", mixture(torch.ones_like), ("M11",)),
    bug("mixture-twice", mixture(lambda w: 2 * w), ("M11",)),
]
EXPERTS = [
    bug("alpha-1", attribute("mlp.experts", "alpha", 1.0), ("M8",)),
    bug("alpha-1.7", attribute("mlp.experts", "alpha", 1.7), ("M8",)),
    bug("alpha-bf16", attribute("mlp.experts", "alpha", 1.703125), ("M8",)),
    bug("limit-off", attribute("mlp.experts", "limit", math.inf), ("M8",)),
    bug("limit-6", attribute("mlp.experts", "limit", 6.0), ("M8",)),
    bug("limit-0", attribute("mlp.experts", "limit", 0.0), ("M8",)),
    bug("gate-both", activation(gate=lambda g, limit: g.clamp(-limit, limit)), ("M8",)),
    bug("gate-free", activation(gate=lambda g, limit: g), ("M8",)),
    bug("up-above", activation(up=lambda u, limit: u.clamp(max=limit)), ("M8",)),
    bug("up-free", activation(up=lambda u, limit: u), ("M8",)),
    bug("up-plus-missing", activation(one=0), ("M8",)),
    bug("pairs-swapped", activation(split=lambda both: (both[..., 1::2], both[..., ::2])), ("M8",)),
    bug("pairs-halves", activation(split=lambda both: both.chunk(2, dim=-1)), ("M8",)),
    bug("bias-dropped-up", weights("mlp.experts", "gate_up_proj_bias", dropped), ("M6",)),
    bug("bias-dropped-down", weights("mlp.experts", "down_proj_bias", dropped), ("M10",)),
    bug("scales-double-up", weights("mlp.experts", "gate_up_proj", scaled(2)), ("M5",)),
]
ENDS = [
    bug("embedding-shifted", lambda model: changed(model.model.embed_tokens.weight, "data",
                                                   model.model.embed_tokens.weight.data.roll(-1, 0)), ("T0",)),
    bug("unembedding-tied", lambda model: changed(model.lm_head.weight, "data", model.model.embed_tokens.weight.data), ("F2",)),
]
BUGS = dict(MASKS + SINKS + SCORES + ROTATIONS + CACHES + PROJECTIONS + NORMS_AND_RESIDUALS + ROUTERS + EXPERTS + ENDS)


def pair(one, other):
    """Two mistakes together, each where it acts first."""
    a, b = BUGS[one], BUGS[other]
    return f"{one}+{other}", Bug(lambda model: together(a.plant(model), b.plant(model)), a.points + b.points, a.named + b.named)


PAIRS = dict([
    pair("alpha-bf16", "limit-off"), pair("alpha-1.7", "up-plus-missing"), pair("yarn-truncate", "rope-neighbours"),
    pair("theta-10000", "concentration-missing"), pair("score-unscaled", "window-wide"), pair("yarn-factor-16", "alpha-1"),
    pair("bias-dropped-q", "positions-late-k"), pair("eps-1e-3", "bias-dropped-router"),
    pair("residual-twice-experts", "up-above"), pair("shares-sigmoid", "mixture-twice"),
])

# The same function, computed in another way or order: never to be flagged.
EQUIVALENT = {
    "sink-behind-a-finished-softmax": Bug(kernel(by_sigmoid), (), under=FULL),
    "keys-in-parts-of-16": Bug(kernel(by_parts), (), under=FULL),
    "softmax-without-a-maximum": Bug(kernel(by_definition), (), under=FULL),
    "rotation-by-complex-numbers": Bug(rotary(complex_turn), (), under=FULL),
    "norm-by-division": Bug(norm(lambda x, e: x / (x.pow(2).mean(-1, keepdim=True) + e).sqrt()), (), under=FULL),
    "softmax-over-all-then-renormalised": Bug(shares(lambda w, top, logits, chosen: (
        p := torch.softmax(logits, 1).gather(1, chosen)) / p.sum(1, keepdim=True)), (), under=FULL),
    "heads-expanded": Bug(function("repeat_kv", lambda right, x, n: x.repeat_interleave(n, dim=1)), ()),
    "masked-by-minus-infinity": Bug(attention(lambda right, module, q, k, v, mask, **more: right(
        module, q, k, v, mask.masked_fill(mask != 0, -math.inf), **more)), ()),
    "window-of-a-short-prompt": Bug(window(lambda w: w + 1), (), run="short"),
    "one-token-at-a-time": Bug(lambda model: together(), (), run="single"),
    "activation-again": Bug(activation(), ()),
    "layer-again": Bug(layer_as(), ()),
}
