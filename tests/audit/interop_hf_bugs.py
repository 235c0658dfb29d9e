# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Known mistakes, planted in transformers at run time and taken out again; no file is edited.

PLANTED[name](model) is a context manager around a loaded GptOssForCausalLM; BUGS, PAIRS and EQUIVALENT
say how each is run, where it can act first, and which mistakes of the catalogue name it.
"""
import collections
import contextlib
import functools
import sys

import torch

from engines import changed

# plant: model -> context manager; points: where it acts first, without the layer; named: what the diagnosis may
# call it, nothing when no catalogue has it; run: how the model is called; under: the formats it is planted in.
Bug = collections.namedtuple("Bug", "plant points named run under", defaults=((), "prompt", ("float32", "bfloat16")))
FULL = ("float32",)  # in bfloat16 the policy states that rounding itself, or another than this kernel's


@contextlib.contextmanager
def together(*contexts):
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield


def modeling_of(model):
    return sys.modules[type(model).__module__]


def modules(model, path):
    """Those at `path` of each layer."""
    return [functools.reduce(getattr, filter(None, path.split(".")), layer) for layer in model.model.layers]


# ------------------------------------------------------------------------------------------
# What is planted where


def weights(path, name, wrong):
    """Of each layer, wrong(parameter, the parameters of all layers, layer) stands for a parameter."""
    def plant(model):
        owners = modules(model, path)
        kept = [getattr(owner, name).data for owner in owners]
        return together(*(changed(getattr(owner, name), "data", wrong(kept[i], kept, i)) for i, owner in enumerate(owners)))
    return plant


def result(path, wrong):
    """wrong(result of the module, its input) stands for the result."""
    def plant(model):
        return together(*(changed(owner, "forward", lambda x, *rest, right=owner.forward: wrong(right(x, *rest), x))
                          for owner in modules(model, path)))
    return plant


def attribute(path, name, value):
    return lambda model: together(*(changed(owner, name, value) for owner in modules(model, path)))


def function(name, wrong):
    """wrong(right, ...) stands for a function of the file."""
    def plant(model):
        modeling = modeling_of(model)
        return changed(modeling, name, functools.partial(wrong, getattr(modeling, name)))
    return plant


def attention(wrong):
    """wrong(right, module, q, k, v, mask, **more) stands for eager attention."""
    return function("eager_attention_forward", wrong)


def seen(rule):
    """rule(i, j, w, slides) says which keys j query i sees; w is the window."""
    def wrong(right, module, query, key, value, mask, **more):
        n, slots = query.shape[2], key.shape[2]
        i, j = torch.arange(slots - n, slots)[:, None], torch.arange(slots)
        visible = rule(i, j, module.config.sliding_window, module.sliding_window is not None)
        mask = torch.zeros(n, slots, dtype=query.dtype).masked_fill(~visible, torch.finfo(query.dtype).min)
        return right(module, query, key, value, mask[None, None], **more)
    return attention(wrong)


def window(width):
    return seen(lambda i, j, w, slides: (j <= i) & (j > i - width(w)) if slides else j <= i)


def sinks(wrong):
    """wrong(sinks, module, query) are the sinks of a call."""
    def attend(right, module, query, *rest, **more):
        with changed(module.sinks, "data", wrong(module.sinks.data, module, query)):
            return right(module, query, *rest, **more)
    return attention(attend)


def kernel(weigh):
    """Attention of one's own: `weigh(scores with the mask, sinks)` are the weights of the keys, [.., n, keys]."""
    def attend(module, query, key, value, mask, scaling, **more):
        key, value = (x.repeat_interleave(module.num_key_value_groups, dim=1) for x in (key, value))
        scores = query.float() @ key.float().transpose(2, 3) * scaling
        shares = weigh(scores + mask.float(), module.sinks.float().reshape(1, -1, 1, 1))
        return (shares.to(value.dtype) @ value).transpose(1, 2).contiguous(), None

    def plant(model):
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask
        AttentionInterface.register("planted", attend)
        AttentionMaskInterface.register("planted", eager_mask)
        return changed(model.config, "_attn_implementation", "planted")
    return plant


def rotary(wrong, which="qk"):
    """wrong(x, cos, sin) turns queries, keys, or both."""
    def turn(right, q, k, cos, sin, **more):
        cos, sin, (right_q, right_k) = cos.unsqueeze(1), sin.unsqueeze(1), right(q, k, cos, sin, **more)
        return wrong(q, cos, sin) if "q" in which else right_q, wrong(k, cos, sin) if "k" in which else right_k
    return function("apply_rotary_pos_emb", turn)


def halves(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def neighbours(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


def complex_turn(x, cos, sin):
    a, b = x.float().chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.complex(cos.float(), sin.float())
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)


def at_positions(wrong, which="qk"):
    """wrong(positions) are those that queries, keys, or both are rotated by."""
    def plant(model):
        places, embedding, stack = [], model.model.rotary_emb, contextlib.ExitStack()
        forward = embedding.forward

        def note(x, position_ids):
            places[:] = [forward(x, wrong(position_ids))]
            return forward(x, position_ids)

        def turn(right, q, k, cos, sin, **more):
            wrong_q, wrong_k = right(q, k, *places[0], **more)
            right_q, right_k = right(q, k, cos, sin, **more)
            return wrong_q if "q" in which else right_q, wrong_k if "k" in which else right_k
        stack.enter_context(changed(embedding, "forward", note))
        stack.enter_context(function("apply_rotary_pos_emb", turn)(model))
        return stack
    return plant


def yarn(**wrong):
    """The frequencies and the concentration of another configuration."""
    def plant(model):
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
        embedding, parameters = model.model.rotary_emb, model.config.rope_parameters
        kept = dict(parameters)
        parameters.update(wrong)
        frequencies, factor = ROPE_INIT_FUNCTIONS["yarn"](model.config, embedding.inv_freq.device)
        parameters.clear()
        parameters.update(kept)
        return together(changed(embedding, "inv_freq", frequencies), changed(embedding, "attention_scaling", factor))
    return plant


def rotary_attribute(name, wrong):
    return lambda model: changed(model.model.rotary_emb, name, wrong(getattr(model.model.rotary_emb, name)))


def plain_rope(model):
    embedding = model.model.rotary_emb
    frequencies, factor = embedding.compute_default_rope_parameters(model.config)
    return together(changed(embedding, "inv_freq", frequencies), changed(embedding, "attention_scaling", factor))


def activation(gate=lambda g, limit: g.clamp(max=limit), up=lambda u, limit: u.clamp(-limit, limit), one=1,
               split=lambda both: (both[..., ::2], both[..., 1::2])):
    def plant(model):
        def wrong(self, both):
            g, u = split(both)
            g, u = gate(g, self.limit), up(u, self.limit)
            return (u + one) * (g * torch.sigmoid(g * self.alpha))
        return changed(type(model.model.layers[0].mlp.experts), "_apply_gate", wrong)
    return plant


def shares(wrong):
    """wrong(weights, chosen logits, all logits, chosen) are the experts' weights."""
    def plant(model):
        return together(*(changed(owner, "forward", lambda x, right=owner.forward: shared(*right(x), wrong))
                          for owner in modules(model, "mlp.router")))

    def shared(logits, weight, chosen, wrong):
        return logits, as_softmax(wrong(weight, logits.gather(1, chosen), logits, chosen)), chosen
    return plant


def as_softmax(values):
    """The watcher takes what softmax gives for the weights: a function of that name gives these."""
    def softmax(x):
        return x
    watched = torch.overrides._is_torch_function_mode_enabled()
    return torch.overrides.handle_torch_function(softmax, (values,), values) if watched else values


def norm(wrong):
    """wrong(x in float32, eps) times the weight is the norm."""
    def plant(model):
        kind = type(model.model.norm)
        return changed(kind, "forward", lambda self, x: (self.weight * wrong(x.float(), self.variance_epsilon)).to(x.dtype))
    return plant


def eps(value):
    return lambda model: together(*(changed(module, "variance_epsilon", value) for module in model.modules()
                                    if hasattr(module, "variance_epsilon")))


def layers(wrong):
    """wrong(layer, x, attend) is a layer."""
    def plant(model):
        def forward(self, x, **more):
            return wrong(self, x, lambda y: self.self_attn(hidden_states=y, **more)[0])
        return changed(type(model.model.layers[0]), "forward", forward)
    return plant


def layer_as(attention_keeps=1, attention_adds=1, experts_keep=1, experts_add=1):
    def wrong(self, x, attend):
        x = attention_keeps * x + attention_adds * attend(self.input_layernorm(x))
        return experts_keep * x + experts_add * self.mlp(self.post_attention_layernorm(x))[0]
    return layers(wrong)


def experts_of_the_input(self, x, attend):
    """The experts read the norm of the layer's input: attention and experts side by side."""
    return x + attend(self.input_layernorm(x)) + self.mlp(self.post_attention_layernorm(x))[0]


def rounded(format):
    return lambda out, *_: out.to(format).to(out.dtype)


def exchanged_norms(model):
    pairs = [(layer.input_layernorm.weight, layer.post_attention_layernorm.weight) for layer in model.model.layers]
    kept = [(one.data, other.data) for one, other in pairs]
    return together(*(changed(pair[i], "data", data[1 - i]) for pair, data in zip(pairs, kept) for i in (0, 1)))


def mixture(wrong):
    """The experts are given wrong(weights)."""
    def plant(model):
        return together(*(changed(owner, "forward", lambda x, e, weight, right=owner.forward: right(x, e, wrong(weight)))
                          for owner in modules(model, "mlp.experts")))
    return plant


# ------------------------------------------------------------------------------------------
# Mistakes that are more than a line


def heads_by_modulus(right, hidden, n):
    return hidden.repeat(1, n, 1, 1)


def sink_on_every_score(right, module, query, key, value, mask, **more):
    """The sink is added to the scores, which softmax forgets, and no column is left for it."""
    wide = mask + module.sinks.reshape(1, -1, 1, 1)
    with changed(module.sinks, "data", torch.full_like(module.sinks.data, -1e30)):
        return right(module, query, key, value, wide, **more)


def first_head_alone(b, *_):
    return torch.where(torch.arange(len(b)) < len(b) // 2, b, torch.full_like(b, -1e30))


def gone(b, *_):
    return torch.full_like(b, -1e30)


def gone_in_steps(b, module, query):
    return gone(b) if query.shape[2] == 1 else b


def gone_in_prefill(b, module, query):
    return gone(b) if query.shape[2] > 1 else b


def oldest_slot_overwritten(right, module, query, key, value, mask, **more):
    """The ring of a window is one slot too short: the newest key stands in the place of the oldest that is seen."""
    if query.shape[2] == 1 and module.sliding_window is not None:
        key, value = key.clone(), value.clone()
        key[:, :, 0], value[:, :, 0] = key[:, :, -1], value[:, :, -1]
    return right(module, query, key, value, mask, **more)


def oldest_hidden_in_steps(right, module, query, key, value, mask, **more):
    """One key too many is evicted before a step."""
    if query.shape[2] == 1 and module.sliding_window is not None:
        mask = mask.clone()
        mask[..., 0] = torch.finfo(query.dtype).min
    return right(module, query, key, value, mask, **more)


def cached_keys_narrow(right, module, query, key, value, mask, **more):
    """Keys and values of steps before are kept in eight bits."""
    def narrow(x):
        return torch.cat([x[:, :, :-1].to(torch.float8_e4m3fn).to(x.dtype), x[:, :, -1:]], dim=2)
    if query.shape[2] == 1:
        key, value = narrow(key), narrow(value)
    return right(module, query, key, value, mask, **more)


def padding_seen(model):
    modeling = modeling_of(model)
    def without(right):
        return lambda **more: right(**{**more, "attention_mask": None})
    return together(*(changed(modeling, name, without(getattr(modeling, name)))
                      for name in ("create_causal_mask", "create_sliding_window_causal_mask")))


def narrow_sums(right, module, query, key, value, mask, **more):
    """Values are summed in bfloat16, key after key."""
    out, shares = right(module, query, key, value, mask, **more)
    values, total = value.repeat_interleave(module.num_key_value_groups, dim=1), 0
    for j in range(values.shape[2]):
        total = (total + shares[..., j, None].float() * values[:, :, None, j].float()).bfloat16().float()
    return total.to(out.dtype).transpose(1, 2).contiguous(), shares


def sink_has_value(right, module, query, key, value, mask, scaling, **more):
    """The column of the sink stays, and stands before the value of key 0."""
    shares = right(module, query, key, value, mask, scaling, **more)[1]
    keys, values = (x.repeat_interleave(module.num_key_value_groups, dim=1) for x in (key, value))
    scores = query @ keys.transpose(2, 3) * scaling + mask
    column = module.sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    of_sink = torch.log_softmax(torch.cat([scores, column], -1), -1)[..., -1:].exp()
    return (torch.cat([shares, of_sink], -1) @ torch.cat([values, values[:, :, :1]], 2)).transpose(1, 2).contiguous(), shares


# ---- weights of attention of one's own


def by_definition(scores, b):
    e, s = torch.exp(scores), torch.exp(b)
    return e / (e.sum(-1, keepdim=True) + s)


def by_sigmoid(scores, b):
    """A finished softmax, times what the sink leaves of it."""
    lse = torch.logsumexp(scores, -1, keepdim=True)
    return torch.exp(scores - lse) * torch.sigmoid(lse - b)


def by_parts(scores, b, of=16, sink_in_each=False):
    """Parts of the keys, merged by their maxima and sums; the sink once, or wrongly in each."""
    top = torch.maximum(scores.amax(-1, keepdim=True), b)
    parts = [torch.exp(part - top) for part in scores.split(of, dim=-1)]
    total = sum(part.sum(-1, keepdim=True) for part in parts)
    times = sum((part > 0).any(-1, keepdim=True) for part in parts) if sink_in_each else 1
    return torch.cat(parts, -1) / (total + torch.exp(b - top) * times)


def sink_unshifted(scores, b):
    top = torch.maximum(scores.amax(-1, keepdim=True), b)
    e = torch.exp(scores - top)
    return e / (e.sum(-1, keepdim=True) + torch.exp(b))


def renormalised(scores, b):
    e = by_definition(scores, b)
    return e / e.sum(-1, keepdim=True)
