# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Engines of a deployment that the reference is not: ranks in any order, split products, a matrix unit with several
sums, experts on ranks, parts of the keys that are merged, quotients that are off. Each computes one point of a trace anew, from the engine's
own inputs there. A slip is a mistake beside the freedom.
"""
import math
import struct

FLOAT, HALF = struct.Struct("<f"), struct.Struct("<e")
STORED = {"BF16": "bf16", "F16": "f16", "F32": "f32"}


def to(form, x):
    """The nearest number of the format to a float32 number."""
    single = FLOAT.pack(x)
    if form == "f32":
        return FLOAT.unpack(single)[0]
    if form == "f16":
        return HALF.unpack(HALF.pack(FLOAT.unpack(single)[0]))[0]
    bits = struct.unpack("<I", single)[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return FLOAT.unpack(struct.pack("<I", bits))[0]


def packed(dtype, numbers):
    """The bytes of a tensor."""
    if dtype == "BF16":
        return b"".join(FLOAT.pack(x)[2:] for x in numbers)
    return struct.pack(f"<{len(numbers)}{'e' if dtype == 'F16' else 'f'}", *numbers)


def in_lanes(terms, lanes):
    """Their sum in float32, in as many running sums as there are lanes; each product is not rounded."""
    sums = [0.0] * lanes
    for k, x in enumerate(terms):
        sums[k % lanes] = to("f32", sums[k % lanes] + x)
    return reduced(sums, "f32", False, 0)


def reduced(parts, form, tree, turn):
    """The sum of parts, each addition rounded to the format: a chain from the part `turn` on, or a tree."""
    parts = parts[turn:] + parts[:turn]
    while tree and len(parts) > 1:
        parts = [to(form, to("f32", sum(parts[i:i + 2]))) for i in range(0, len(parts), 2)]
    total = parts[0]
    for part in parts[1:]:
        total = to(form, to("f32", total + part))
    return total


# ---- sums in parts -------------------------------------------------------------------------------

class Split:
    """How a product is split: into parts of neighbouring columns, each rounded; their order differs from one
    stretch of the output to the next, as in an all-reduce that runs around a ring."""

    def __init__(self, draw, cols, width, form, ranks, slip):
        self.parts = [list(range(c, min(c + width, cols))) for c in range(0, cols, width)]
        for part in self.parts:
            draw.shuffle(part)
        self.form, self.added = form, draw.choice((form, "f32")) if ranks else "f32"
        self.lanes, self.tree, self.ring = draw.choice((1, 2, 4)), draw.random() < 0.5, draw.choice((0, 1, 8))
        self.last = draw.random() < 0.5 if ranks and self.added == form else False
        self.bias_first = ranks and draw.random() < 0.5
        self.slip = slip

    def product(self, x, w, bias, out):
        first = [to("f32", in_lanes([x[c] * w[c] for c in part], self.lanes)) for part in self.parts]
        each = self.bias_first or self.slip == "bias by every rank"
        for p in range(len(first)):
            if each and (p == 0 or self.slip == "bias by every rank"):
                first[p] = to("f32", first[p] + bias)
        sums = [to(self.form, part) for part in first]
        if self.slip == "a rank left out":
            sums.pop()
        total = reduced(sums, self.added, self.tree, out // self.ring % len(sums) if self.ring else 0)
        total = to(self.form, total) if self.last else total
        return total if each else to("f32", total + bias)


class Core:
    """A matrix unit: blocks of the columns in a drawn order, in one running sum or several."""

    def __init__(self, draw, cols, bits, block, sums, slip):
        order = list(range(cols))
        draw.shuffle(order)
        self.blocks = [order[c:c + block] for c in range(0, cols, block)]
        self.bits, self.sums = bits - 3 * (slip == "cut eight times as far"), sums

    def block(self, total, terms):
        """Products and the sum so far, cut toward zero at one place; what comes of it is cut once more."""
        largest = max([abs(total), *map(abs, terms)])
        if largest == 0:
            return 0.0
        place = math.frexp(largest)[1] - 1 - self.bits
        cut = sum(math.trunc(math.ldexp(x, -place)) for x in [total, *terms])
        if cut == 0:
            return 0.0
        total = math.ldexp(cut, place)
        last = math.frexp(total)[1] - 1 - min(self.bits, 23)
        return math.ldexp(math.trunc(math.ldexp(total, -last)), last)

    def product(self, x, w, bias, _):
        sums = [0.0] * self.sums
        for k, block in enumerate(self.blocks):
            sums[k % self.sums] = self.block(sums[k % self.sums], [x[c] * w[c] for c in block])
        total = reduced(sums, "f32", False, 0)
        return to("f32", total + bias) if bias else total


def rows(numbers, width):
    return [numbers[i:i + width] for i in range(0, len(numbers), width)]


def projected(how, inputs, weight, bias, cols, form):
    """Every row of inputs times every row of the weight."""
    matrix = rows(weight, cols)
    return [to(form, how.product(x, w, bias[c] if bias else 0.0, c))
            for x in rows(inputs, cols) for c, w in enumerate(matrix)]


# ---- experts on ranks ----------------------------------------------------------------------------

def experts_on_ranks(draw, ids, weights, outputs, sizes, ranks, form, stored, slip):
    """M11: experts lie on ranks in ascending order, at drawn places."""
    chosen, hidden, experts = sizes
    ends = sorted(draw.randrange(experts + 1) for _ in range(ranks - 1)) + [experts]
    each, added = draw.random() < 0.5, draw.choice((form, "f32"))
    tree, ring = draw.random() < 0.5, draw.choice((0, 1, 8))
    mixed = []
    for t, (its, at) in enumerate(zip(rows(ids, chosen), rows(weights, chosen))):
        order = sorted(range(chosen), key=lambda k: its[k])
        rank_of = [sum(its[k] >= end for end in ends) for k in range(chosen)]
        for c in range(hidden):
            sums = [0.0] * ranks
            for k in order:
                term = at[k] * outputs[(t * chosen + k) * hidden + c]
                so_far = to("f32", sums[rank_of[k]] + term)
                sums[rank_of[k]] = to(form, so_far) if each else so_far
                if slip == "an expert twice" and k == order[-1]:
                    sums[rank_of[k]] = to("f32", sums[rank_of[k]] + term)
            total = reduced([to(form, s) for s in sums], added, tree, c // ring % ranks if ring else 0)
            mixed.append(to(stored, total))
    return mixed


def sliced_experts(how, ids, weights, x, down, bias, sizes, form):
    """M11 of experts whose down-projections are in slices on ranks: each rank mixes what its slice gives, rounds that,
    and an all-reduce adds the ranks. The first rank has the biases, or each has an equal share of them."""
    chosen, hidden, inter = sizes
    ranks, mixed = len(how.parts), []

    def share(p, b):
        if how.slip == "bias by every rank" or how.bias_first:
            return b if p == 0 or how.slip == "bias by every rank" else 0.0
        return to(form if how.last else "f32", b / ranks)
    for its, at, z in zip(rows(ids, chosen), rows(weights, chosen), rows(x, chosen * inter)):
        for c in range(hidden):
            sums = []
            for p, part in enumerate(how.parts):
                total = 0.0
                for k in sorted(range(chosen), key=lambda k: its[k]):
                    e = its[k]
                    one = in_lanes([z[k * inter + f] * down[(e * inter + f) * hidden + c] for f in part], how.lanes)
                    one = to("f32", one + share(p, bias[e * hidden + c]))
                    one = to(form, one) if how.last else one
                    total = to("f32", total + at[k] * one)
                sums.append(to(form, total))
            if how.slip == "a rank left out":
                sums.pop()
            mixed.append(to(form, reduced(sums, how.added, how.tree, c // how.ring % len(sums) if how.ring else 0)))
    return mixed


# ---- parts of the keys ---------------------------------------------------------------------------

class Merged:
    """Attention to parts of the keys, whose outputs are rounded and merged; the sink is in a part or joins last."""

    def __init__(self, draw, form, slip):
        self.form, self.parts, self.slip = form, draw.randint(2, 5), slip
        self.kept = draw.random() < 0.5  # exponentials rounded before they meet the values
        self.sink_in_part, self.at_once = draw.random() < 0.5, draw.random() < 0.5
        # a cascade rounds what it has merged, too: an output of each part, and the sink's
        self.levels = self.parts + 1 if not self.at_once and draw.random() < 0.5 else 1
        self.draw = draw

    def part(self, scores, values, sink):
        """(output, LSE) of some keys."""
        top = max(scores + ([sink] if sink is not None else []))
        e = [to("f32", math.exp(s - top)) for s in scores]
        total = in_lanes(e + ([to("f32", math.exp(sink - top))] if sink is not None else []), 2)
        e = [to(self.form, x) for x in e] if self.kept else e
        out = [to("f32", in_lanes([x * v[c] for x, v in zip(e, values)], 1) / total) for c in range(len(values[0]))]
        return [to(self.form, x) for x in out], to("f32", top + to("f32", math.log(total)))

    def merge(self, parts):
        top = max(lse for _, lse in parts)
        w = [to("f32", math.exp(to("f32", lse - top))) for _, lse in parts]
        total = in_lanes(w, 1)
        shares, outputs = [to("f32", x / total) for x in w], zip(*(o for o, _ in parts))
        out = [in_lanes([a * x for a, x in zip(shares, of_c)], 1) for of_c in outputs]
        return out, to("f32", top + to("f32", math.log(total)))

    def row(self, scores, values, sink):
        n = len(scores)
        ends = sorted({*(self.draw.randint(1, n) for _ in range(self.parts - 1)), n})
        cuts = list(zip([0, *ends], ends))
        holds = self.draw.randrange(len(cuts)) if self.sink_in_part else None
        parts = [self.part(scores[a:b], values[a:b], sink if p == holds else None) for p, (a, b) in enumerate(cuts)]
        if self.slip == "LSE off by ln 2":
            parts[0] = parts[0][0], to("f32", parts[0][1] + math.log(2))
        if holds is None:
            parts.append(([0.0] * len(values[0]), sink))
        self.draw.shuffle(parts)
        while not self.at_once and len(parts) > 2:
            out, lse = self.merge(parts[:2])
            parts = [([to(self.form, x) for x in out] if self.levels > 1 else out, lse), *parts[2:]]
        return self.merge(parts)[0]


class Divided:
    """Attention in one pass. Its one quotient, or the reciprocal that it multiplies by, errs by as much as is declared:
    always to one side, or to a drawn one."""

    def __init__(self, draw, ulps, inverts, slip):
        self.draw, self.inverts, self.side = draw, inverts, draw.choice((1, -1, 0))
        self.ulps = 4 * ulps if slip == "a quotient four times as far" else ulps

    def off(self, x):
        """The float32 number that is farthest from x on one side."""
        side = self.side or self.draw.uniform(-1, 1)
        reach = side * self.ulps * math.ldexp(1, max(math.frexp(x)[1] - 1, -126) - 23)
        y = to("f32", x + reach)
        return y if abs(y - x) <= abs(reach) else to("f32", y - math.copysign(abs(y) * 2**-24 * 1.01, reach))

    def row(self, scores, values, sink):
        top = max([*scores, sink])
        e = [to("f32", math.exp(s - top)) for s in scores]
        total = in_lanes([*e, to("f32", math.exp(sink - top))], 2)
        out = [in_lanes([x * v[c] for x, v in zip(e, values)], 1) for c in range(len(values[0]))]
        if self.inverts:
            inverse = self.off(1 / total)
            return [to("f32", x * inverse) for x in out]
        return [self.off(x / total) for x in out]


def attended(how, q, k, v, sinks, sizes, stored):
    """A11 of every token and head, from rotated queries and keys, and values."""
    n, heads, kv_heads, dim, window = sizes
    scale, out = to("f32", 1 / math.sqrt(dim)), []
    at = [[x[(t * kv_heads + h) * dim:(t * kv_heads + h + 1) * dim] for x in (k, v)]
          for t in range(n) for h in range(kv_heads)]
    for i in range(n):
        for h in range(heads):
            query = q[(i * heads + h) * dim:(i * heads + h + 1) * dim]
            seen = [at[j * kv_heads + h * kv_heads // heads] for j in range(max(0, i - window + 1), i + 1)]
            scores = [to("f32", in_lanes([a * b for a, b in zip(query, key)], 2) * scale) for key, _ in seen]
            out += [to(stored, x) for x in how.row(scores, [value for _, value in seen], sinks[h])]
    return out
