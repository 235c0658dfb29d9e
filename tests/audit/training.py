# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A decoder small enough to train in seconds, whose attention is one of the designs of doc/24 by name, and the
task on which it is trained: what doc/27 measures. tests/audit/training_study.py lists the runs and keeps them.

Seeds are trained side by side: every tensor of a model begins with the seed's axis. Letters of shapes: s seed,
b sequence, h head, i query, j key, t place of the text, c coordinate of a layer, d of a head.
"""
import dataclasses
import math

import numpy
import torch

# ---- the designs, by the choices that ref/variants/designs.c makes; what a row does not say is softmax's

DESIGNS = {
    "softmax": {},
    "sink-token": {"star": "token"},
    "kv-bias": {"star": "key", "star_value": "learned"},
    "k-bias": {"star": "key"},
    "v-bias": {"value_bias": True},
    "off-by-one": {"star": "zero"},
    "score-bias": {"star": "score"},
    "value-even-5": {"star": "key", "star_value": 5},
    "value-even-20": {"star": "key", "star_value": 20},
    "scaled-2": {"divisor": "scaled", "by": 2},
    "scaled-0.1": {"divisor": "scaled", "by": 0.1},
    "sigmoid": {"similarity": "sigmoid", "divisor": "one"},
    "sigmoid-norm": {"similarity": "sigmoid"},
    "elu": {"similarity": "elu", "divisor": "one"},
    "identity": {"similarity": "score", "divisor": "one"},
    "window-32": {"window": 32},
    "prefix-5": {"prefix": 5},
    "gated": {"gate": "element"},
    "gated-head": {"gate": "head"},
}
CHOICES = {"star": None, "star_value": None, "value_bias": False, "similarity": "exp", "divisor": "sum", "by": 1,
           "window": None, "prefix": 0, "gate": None}


@dataclasses.dataclass(frozen=True)
class Config:
    """One run: a design, the model, the task, the optimiser and the measurement."""
    design: str
    window: int = 0  # in place of the design's
    seeds: tuple = (1, 2, 3)
    # the model
    layers: int = 1
    heads: int = 2
    width: int = 32
    # the task
    letters: int = 32
    triggers: int = 3
    trigger_share: float = 0.2
    length: int = 64
    start: str = "fixed"  # the first token: one that occurs nowhere else, or "drawn" like the others
    # the optimiser: AdamW
    steps: int = 500
    batch: int = 64
    rate: float = 6e-3
    warmup: int = 50
    decay: float = 0.1
    clip: float = 1.0
    betas: tuple = (0.9, 0.95)
    # the measurement
    sequences: int = 64
    every: int = 50

    @property
    def choices(self):
        chosen = {**CHOICES, **DESIGNS[self.design]}
        if self.window:
            chosen["window"] = self.window
        return chosen

    @property
    def dim(self):
        return self.width // self.heads


# ---- the task: a chain of letters in which a trigger is followed by the letter before it

def chain(config):
    """p(next | letter), the same for every run: [letters, letters]. The first letters are the triggers."""
    rng = numpy.random.default_rng(20241017)
    odds = numpy.exp(2 * rng.standard_normal((config.letters, config.letters)))
    odds /= odds.sum(axis=1, keepdims=True)
    trigger = numpy.arange(config.letters) < config.triggers
    for share, some in ((config.trigger_share, trigger), (1 - config.trigger_share, ~trigger)):
        odds[:, some] *= share / odds[:, some].sum(axis=1, keepdims=True)
    return odds


def draw(config, rng, count):
    """Sequences [count, length + 1], the probability that the process gave each letter, and whether it was copied."""
    letters, places = config.letters, config.length + 1
    odds = numpy.vstack([chain(config), numpy.full(letters, 1 / letters)])  # after the start any letter
    upto = odds.cumsum(axis=1)
    tokens = numpy.empty((count, places), dtype=numpy.int64)
    given = numpy.ones((count, places))
    copied = numpy.zeros((count, places), dtype=bool)
    tokens[:, 0] = letters if config.start == "fixed" else rng.integers(letters, size=count)
    for t in range(1, places):
        last = tokens[:, t - 1]
        chance = rng.random(count)
        drawn = numpy.minimum((chance[:, None] >= upto[last]).sum(axis=1), letters - 1)
        if t >= 2:
            copied[:, t] = (last < config.triggers) & (tokens[:, t - 2] < letters)
        before = tokens[:, t - 2] if t >= 2 else last
        tokens[:, t] = numpy.where(copied[:, t], before, drawn)
        given[:, t] = numpy.where(copied[:, t], 1, odds[last, tokens[:, t]])
    return tokens, given, copied


# ---- the model

def parameters(config):
    """What a model learns, each drawn by its seed alone: {name: [s, ...]}."""
    chosen, c, d, h = config.choices, config.width, config.dim, config.heads
    inner, vocabulary = 2 * c, config.letters + 1
    shapes = {"embed": ((vocabulary, c), 1), "unembed": ((c, vocabulary), c**-0.5), "norm": ((c,), None)}
    if chosen["star"] == "token":
        shapes["star"] = ((c,), 1)
    for layer in range(config.layers):
        own = {"norm": ((c,), None), "mlp.norm": ((c,), None),
               "q": ((h, c, d), c**-0.5), "k": ((h, c, d), c**-0.5), "v": ((h, c, d), c**-0.5),
               "o": ((h, d, c), (2 * config.layers * c)**-0.5),
               "mlp.up": ((c, 2 * inner), c**-0.5), "mlp.down": ((inner, c), (2 * config.layers * inner)**-0.5)}
        if chosen["star"] == "key":
            own["key"] = ((h, d), 0.02)
        if chosen["star_value"] == "learned" or chosen["value_bias"]:
            own["value"] = ((h, d), 0.02)
        if chosen["star"] == "score":
            own["logit"] = ((h,), 0)
        if chosen["gate"]:
            own["gate"] = ((h, c, d if chosen["gate"] == "element" else 1), c**-0.5)
        shapes |= {f"{layer}.{name}": shape for name, shape in own.items()}
    draws = [torch.Generator().manual_seed(seed) for seed in config.seeds]
    made = {}
    for name, (shape, spread) in shapes.items():
        each = [torch.ones(shape) if spread is None else spread * torch.randn(shape, generator=g) for g in draws]
        made[name] = torch.stack(each).requires_grad_()
    return made


def normed(x_sbtc, gain_sc):
    return x_sbtc * torch.rsqrt((x_sbtc * x_sbtc).mean(-1, keepdim=True) + 1e-5) * gain_sc[:, None, None]


def turned(x, angles):
    """Rotary positions: coordinate k turns with coordinate k + dim / 2."""
    cos, sin = angles
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def angles_of(config, rows):
    half = config.dim // 2
    each = torch.arange(rows, dtype=torch.float64)[:, None] * 10000.0**(-torch.arange(half) / half)
    return each.cos().float(), each.sin().float()


def seen_by(config, rows):
    """Whether row i sees key j: [i, j]."""
    i, j = torch.arange(rows)[:, None], torch.arange(rows)[None]
    chosen = config.choices
    seen = (j <= i) | (j < chosen["prefix"])
    return seen & (i - j < chosen["window"]) if chosen["window"] else seen


def similar(kind, s):
    if kind == "sigmoid":
        return torch.sigmoid(s)
    return torch.where(s < 0, s.clamp(max=0).exp(), s + 1) if kind == "elu" else s


def weights(chosen, s, seen):
    """alpha [..., i, j] of scores whose last column, if they have one more than `seen`, is the star's."""
    if s.shape[-1] > seen.shape[-1]:
        seen = torch.cat([seen, torch.ones_like(seen[:, :1])], dim=1)
    if chosen["similarity"] == "exp":
        return chosen["by"] * torch.softmax(s.masked_fill(~seen, -math.inf), dim=-1)
    sim = similar(chosen["similarity"], s) * seen
    return sim if chosen["divisor"] == "one" else sim / sim.sum(-1, keepdim=True)


def attend(config, own, x_sbtc, angles, seen):
    """One layer's attention, and what it did: q, k (turned), v, s, alpha, o before the gate."""
    chosen, d = config.choices, config.dim
    q, k, v = (torch.einsum("sbtc,shcd->sbhtd", x_sbtc, own[name]) for name in "qkv")
    q, k = turned(q, angles), turned(k, angles)
    s = q @ k.transpose(-1, -2) * d**-0.5
    star = None
    if chosen["star"] == "key":
        star = torch.einsum("sbhtd,shd->sbht", q, own["key"]) * d**-0.5
    elif chosen["star"] == "score":
        star = own["logit"][:, None, :, None].expand(s.shape[:-1])
    elif chosen["star"] == "zero":
        star = torch.zeros(s.shape[:-1])
    if star is not None:
        s = torch.cat([s, star[..., None]], dim=-1)
    alpha = weights(chosen, s, seen)
    o = alpha[..., :v.shape[-2]] @ v
    if chosen["star_value"] == "learned":
        o = o + alpha[..., -1:] * own["value"][:, None, :, None]
    elif chosen["star_value"]:
        o = o + alpha[..., -1:] * (chosen["star_value"] * d**-0.5)
    if chosen["value_bias"]:
        o = o + own["value"][:, None, :, None]
    did = {"x": x_sbtc, "q": q, "k": k, "v": v, "s": s, "alpha": alpha, "o": o}
    if chosen["gate"]:
        o = o * torch.sigmoid(torch.einsum("sbtc,shcd->sbhtd", x_sbtc, own["gate"]))
    return torch.einsum("sbhtd,shdc->sbtc", o, own["o"]), did


def forward(config, learned, tokens_sbt, watch=None):
    """Logits [s, b, t, v]; watch(layer, what the attention did, the layer's result) sees every layer."""
    h = learned["embed"][torch.arange(len(config.seeds))[:, None, None], tokens_sbt]
    if "star" in learned:
        h = torch.cat([learned["star"][:, None, None].expand(-1, h.shape[1], 1, -1), h], dim=2)
    angles, seen = angles_of(config, h.shape[2]), seen_by(config, h.shape[2])
    for layer in range(config.layers):
        own = {name.split(".", 1)[1]: p for name, p in learned.items() if name.startswith(f"{layer}.")}
        added, did = attend(config, own, normed(h, own["norm"]), angles, seen)
        h = h + added
        up, gate = torch.einsum("sbtc,scd->sbtd", normed(h, own["mlp.norm"]), own["mlp.up"]).chunk(2, dim=-1)
        h = h + torch.einsum("sbtc,scd->sbtd", up * torch.nn.functional.silu(gate), own["mlp.down"])
        if watch:
            watch(layer, did, h)
    h = h[:, :, 1:] if "star" in learned else h  # the star predicts nothing
    return torch.einsum("sbtc,scv->sbtv", normed(h, learned["norm"]), learned["unembed"])


# ---- training

def losses(config, learned, tokens_sbt, watch=None):
    """-log p of each token after the first: [s, b, t]."""
    logits = forward(config, learned, tokens_sbt[..., :-1], watch)
    return -torch.log_softmax(logits, dim=-1).gather(-1, tokens_sbt[..., 1:, None])[..., 0]


def step(config, learned, moments, number, rngs):
    """One step of AdamW; the rate rises for `warmup` steps and stays."""
    tokens = torch.from_numpy(numpy.stack([draw(config, rng, config.batch)[0] for rng in rngs]))
    counted = losses(config, learned, tokens)[..., max(config.choices["prefix"] - 1, 0):]
    counted.mean(dim=(1, 2)).sum().backward()
    rate = config.rate * min(1, number / config.warmup)
    first, second = config.betas
    with torch.no_grad():
        square = sum((p.grad**2).flatten(1).sum(1) for p in learned.values())
        shrink = (config.clip / (square.sqrt() + 1e-6)).clamp(max=1)
        for name, p in learned.items():
            g = p.grad * shrink.view(-1, *[1] * (p.dim() - 1))
            m, v = moments[name]
            m.lerp_(g, 1 - first)
            v.lerp_(g * g, 1 - second)
            p.mul_(1 - rate * config.decay)
            p.sub_(rate * (m / (1 - first**number)) / ((v / (1 - second**number)).sqrt() + 1e-8))
            p.grad = None


def train(config, see=lambda number, learned: None):
    """The trained parameters; see(number of steps done, parameters) before the first and every `every` steps."""
    torch.set_num_threads(1)
    learned = parameters(config)
    moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in learned.items()}
    rngs = [numpy.random.default_rng(seed) for seed in config.seeds]
    see(0, learned)
    for number in range(1, config.steps + 1):
        step(config, learned, moments, number, rngs)
        if number % config.every == 0 or number == config.steps:
            see(number, learned)
    return learned


# ---- measuring

def shares(chosen, alpha):
    """Weights as shares of their row: themselves where they sum to 1; |a| / sum |a| elsewhere, and 0 in a row of 0."""
    if chosen["similarity"] == "exp" and chosen["divisor"] == "sum":
        return alpha
    total = alpha.abs().sum(-1, keepdim=True)
    return torch.where(total > 0, alpha.abs() / total, torch.zeros_like(alpha))


def means(config, alpha):
    """alpha_k [s, b, h, t], the mean of key k's share over rows i >= k, and that of the star [s, b, h] or None."""
    star = None
    if config.choices["star"] == "token":
        star, alpha = alpha[..., 1:, 0].mean(-1), alpha[..., 1:, 1:]
    elif alpha.shape[-1] > alpha.shape[-2]:
        star, alpha = alpha[..., -1].mean(-1), alpha[..., :-1]
    return alpha.tril().sum(-2) / torch.arange(alpha.shape[-2], 0, -1), star


def passing(alpha, epsilon):
    """Sink in percent: the share of heads whose alpha [s, b, h, ...] is above, sequence by sequence, then the mean."""
    return 100 * (alpha > epsilon).double().mean(dim=(1, 2))


def massive(h):
    """Of states [s, b, t, c]: the largest |h| over the median of all in its sequence, and whether it is the first
    token's."""
    size = h.abs().flatten(2)
    ordered, count = size.sort(dim=-1).values, size.shape[-1]
    median = (ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2
    return (ordered[..., -1] / median).mean(1), 100 * (size.argmax(-1) < h.shape[-1]).double().mean(1)


def measure(config, learned, epsilon=0.3):
    """What is seen on sequences that no run is trained on, for each quantity a list over the seeds."""
    tokens, given, copied = draw(config, numpy.random.default_rng(0), config.sequences)
    did, states = [], []
    with torch.no_grad():
        loss = losses(config, learned, torch.from_numpy(tokens)[None].expand(len(config.seeds), -1, -1),
                      lambda layer, its, h: (did.append(its), states.append(h)))
    start, text = max(config.choices["prefix"] - 1, 0), 1 if config.choices["star"] == "token" else 0
    alpha = torch.cat([its["alpha"].double() for its in did], dim=2)  # the layers' heads side by side
    by_share, star = means(config, shares(config.choices, alpha))
    raw, raw_star = means(config, alpha)
    each = passing(by_share, epsilon)
    size = torch.cat([its["v"].norm(dim=-1) for its in did], dim=2)[..., text:]
    ratio, at_first = massive(states[-1][:, :, text:])
    after, of_process = torch.from_numpy(copied[:, 1 + start:]), -numpy.log(given[:, 1 + start:]).mean()
    told = {
        "sink_1": each[:, 0],
        "sink_2_10": each[:, 1:10].max(1).values,
        "alpha_1": by_share[..., 0].mean(1),
        "raw_sink_1": passing(raw[..., 0], epsilon),
        "raw_alpha_1": raw[..., 0].mean(1),
        "mass": alpha.sum(-1).mean(dim=(1, 3)),
        "value_1": (size[..., 0] / size[..., 1:].mean(-1)).mean(1),
        "massive": ratio,
        "massive_first": at_first,
        "loss": loss[..., start:].mean(dim=(1, 2)),
        "copied": loss[..., start:][:, after].mean(1),
        "process": torch.full((len(config.seeds),), float(of_process)),
    }
    if star is not None:
        told |= {"sink_star": passing(star, epsilon), "alpha_star": star.mean(1)}
    return {name: [[float(f"{x:.6g}") for x in row] if row.dim() else float(f"{row:.6g}") for row in value]
            for name, value in told.items()}
