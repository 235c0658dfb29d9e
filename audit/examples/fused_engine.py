# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""GPT-OSS as serving engines lay it out: flat tokens with positions, q, k and v of one product, a
rotation that all layers share, residuals added inside the norms, gate and up side by side, a kernel
for prompts and one for single tokens beside a cache. Weights are those of any model that sinkproof
opens. `mistakes` plants what such engines got wrong.
"""
import math

import numpy as np
import sinkproof
import torch
from torch import nn


def parameter(values):
    return nn.Parameter(torch.tensor(np.array(values, np.float32)).squeeze(0), requires_grad=False)


class Linear(nn.Module):
    def __init__(self, weight, bias=None):
        super().__init__()
        self.weight, self.bias = parameter(weight), None if bias is None else parameter(bias)

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)


class AddNorm(nn.Module):
    """The residual takes in x and is normed: (normed, residual)."""

    def __init__(self, weight, eps):
        super().__init__()
        self.weight, self.eps = parameter(weight), eps

    def forward(self, x, residual=None):
        residual = x if residual is None else residual + x
        return residual * torch.rsqrt(residual.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight, residual


class Rotary(nn.Module):
    """YaRN, for queries and keys at once."""

    def __init__(self, number):
        super().__init__()
        dim, base, factor = int(number("head_dim")), number("rope_theta"), number("yarn_factor")
        ends = [dim * math.log(number("yarn_original_context") / (beta * 2 * math.pi)) / (2 * math.log(base))
                for beta in (number("yarn_beta_fast"), number("yarn_beta_slow"))]
        frequency = base ** -(torch.arange(0, dim, 2, dtype=torch.float32) / dim)
        ramp = ((torch.arange(dim // 2) - ends[0]) / (ends[1] - ends[0])).clamp(0, 1)
        self.frequency = frequency / factor * ramp + frequency * (1 - ramp)
        self.concentration = 0.1 * math.log(factor) + 1

    def forward(self, positions, q, k):
        angle = positions[:, None, None] * self.frequency
        cos, sin = angle.cos() * self.concentration, angle.sin() * self.concentration

        def turned(x):
            a, b = x.chunk(2, dim=-1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
        return turned(q), turned(k)


class Attention(nn.Module):
    """Two kernels over a cache; the sink is in the denominator and has no value."""

    def __init__(self, sinks, window, mistakes):
        super().__init__()
        self.sinks, self.window, self.mistakes = parameter(sinks), window, mistakes
        self.k = self.v = None

    def forward(self, q, k, v, first):
        self.k = k if first == 0 else torch.cat([self.k, k])
        self.v = v if first == 0 else torch.cat([self.v, v])
        return self.decode(q) if len(q) == 1 else self.prefill(q, first)

    def prefill(self, q, first):
        return self.attend(q, first, "sink dropped in prefill" not in self.mistakes)

    def decode(self, q):
        return self.attend(q, len(self.k) - 1, "sink dropped in decode" not in self.mistakes)

    def attend(self, q, first, with_sink):
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (self.k, self.v))
        scores = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2])
        i, j = torch.arange(first, first + len(q))[:, None], torch.arange(len(k))
        reach = self.window + ("window one too wide" in self.mistakes)
        unseen = (j > i) | ((j <= i - reach) if self.window else torch.tensor(False))
        scores = scores.masked_fill(unseen, -math.inf)
        sink = self.sinks[:, None, None].expand(-1, len(q), 1)
        weights = torch.softmax(torch.cat([scores, sink], dim=-1) if with_sink else scores, dim=-1)
        return torch.einsum("hij,jhd->ihd", weights[..., :len(k)], v)


class ExpertLinear(nn.Module):
    """A product of each token with the matrices of its experts: [n, k, in] to [n, k, out]."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = parameter(weight), parameter(bias)

    def forward(self, x, chosen):
        return torch.einsum("nkoi,nki->nko", self.weight[chosen], x) + self.bias[chosen]


class Activation(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, dim=-1)
        gate, up = gate.clamp(max=7), up.clamp(-7, 7)
        return gate * torch.sigmoid(1.702 * gate) * (up + 1)


class Router(nn.Module):
    """(logits, chosen experts, their weights)."""

    def __init__(self, weight, bias, k):
        super().__init__()
        self.gate, self.k = Linear(weight, bias), k

    def forward(self, x):
        logits = self.gate(x)
        best = torch.topk(logits, self.k, dim=-1)
        return logits, best.indices, torch.softmax(best.values, dim=-1)


class Experts(nn.Module):
    def __init__(self, number, weight):
        super().__init__()
        self.router = Router(weight("w_router"), weight("b_router"), int(number("n_chosen")))
        side_by_side = [list(range(i, int(2 * number("inter")), 2)) for i in (0, 1)]  # stored even and odd
        order = sum(side_by_side, [])
        every = range(int(number("n_experts")))
        self.up = ExpertLinear([weight("w_up", e)[order] for e in every], [weight("b_up", e)[0, order] for e in every])
        self.act = Activation()
        self.down = ExpertLinear([weight("w_down", e) for e in every], [weight("b_down", e)[0] for e in every])

    def forward(self, x):
        logits, chosen, weights = self.router(x)
        up = self.up(x[:, None].expand(-1, chosen.shape[1], -1), chosen)
        return (self.down(self.act(up), chosen) * weights[..., None]).sum(dim=1)


class Layer(nn.Module):
    def __init__(self, model, layer, rotary, mistakes):
        super().__init__()

        def weight(name, expert=0):
            return model.weight(name, layer, expert)

        number = model.number
        self.sizes = [int(number(name) * number("head_dim")) for name in ("n_heads", "n_kv_heads", "n_kv_heads")]
        self.dim, self.rotary = int(number("head_dim")), rotary
        self.input_norm = AddNorm(weight("attn_norm"), number("rms_eps"))
        self.qkv = Linear(np.concatenate([weight(f"w_{x}") for x in "qkv"]),
                          np.concatenate([weight(f"b_{x}") for x in "qkv"], axis=1))
        self.attention = Attention(weight("sinks"), int(number("window")) if model.slides(layer) else 0, mistakes)
        self.out = Linear(weight("w_o"), weight("b_o"))
        self.post_norm = AddNorm(weight("mlp_norm"), number("rms_eps"))
        self.experts = Experts(number, weight)

    def forward(self, positions, x, residual):
        x, residual = self.input_norm(x, residual)
        q, k, v = (part.unflatten(-1, (-1, self.dim)) for part in self.qkv(x).split(self.sizes, dim=-1))
        q, k = self.rotary(positions, q, k)
        x = self.out(self.attention(q, k, v, int(positions[0])).flatten(1))
        x, residual = self.post_norm(x, residual)
        return self.experts(x), residual


class Engine(nn.Module):
    def __init__(self, checkpoint, mistakes=()):
        super().__init__()
        model = sinkproof.Model(checkpoint)
        rotary = Rotary(model.number)
        self.embed = nn.Embedding.from_pretrained(parameter(model.weight("embedding")))
        self.layers = nn.ModuleList(Layer(model, i, rotary, mistakes) for i in range(int(model.number("n_layers"))))
        self.norm = AddNorm(model.weight("final_norm"), model.number("rms_eps"))
        self.head = Linear(model.weight("unembedding"))

    def forward(self, tokens, positions):
        x, residual = self.embed(tokens), None
        for layer in self.layers:
            x, residual = layer(positions, x, residual)
        return self.head(self.norm(x, residual)[0])


def engine(checkpoint):
    """For `sinkproof-trace module`: the module, and what runs it on the tokens that follow."""
    module, held = Engine(checkpoint), []

    def run(tokens):
        with torch.no_grad():
            module(torch.tensor(tokens), torch.arange(len(held), len(held) + len(tokens)))
        held.extend(tokens)
    return module, run
