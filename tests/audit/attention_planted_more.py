# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""More mistakes of attention_planted.py: numbers that are read otherwise, other softmaxes, masks, rules, pairs."""
import math

from attention_planted import DIM, GROUPS, HEADS, LN2, N, WINDOW, query, setting


def key_row(run, layer, j, g):
    return run.k[layer][(j * GROUPS + g) * DIM:(j * GROUPS + g + 1) * DIM]


def value_row(run, layer, j, g):
    return run.v[layer][(j * GROUPS + g) * DIM:(j * GROUPS + g + 1) * DIM]


def reads(key=None, value=None, where=lambda head, row: True):
    """Keys and values as `key` and `value` make them of (q, j, row of the head)."""
    def change(q):
        if key:
            def score(j):
                x = q.run.q[q.layer][(q.row * HEADS + q.head) * DIM:][:DIM]
                k = key(q, j, key_row(q.run, q.layer, j, q.group))
                return sum(a * b for a, b in zip(x, k)) / math.sqrt(DIM)
            q.score = score
        if value:
            q.value = lambda j: value(q, j, value_row(q.run, q.layer, j, q.group))
    return query(change, where)


def values_in_another_order(draw):
    name, order = draw.choice((("half-turned", [(k + DIM // 2) % DIM for k in range(DIM)]),
                               ("reversed", list(reversed(range(DIM)))),
                               ("halves", [k // 2 + k % 2 * (DIM // 2) for k in range(DIM)])))
    return draw.randrange(2), reads(value=lambda q, j, v: [v[i] for i in order]), f"v-coordinates-{name}"


def cached_keys_turned_half(draw):
    at = draw.randrange(20, 36)
    half = DIM // 2
    return 1, reads(key=lambda q, j, k: k if j == q.row else k[half:] + k[:half], where=lambda h, i: i >= at), \
        f"cached-k-coordinates-half-turned@position={at}"


def values_clamped(draw):
    c = draw.choice((0.5, 1))
    return draw.randrange(2), reads(value=lambda q, j, v: [max(-c, min(c, x)) for x in v]), f"v-clamp-{c:g}"


def keys_of_length_one(draw):
    def key(q, j, k):
        length = math.sqrt(sum(x * x for x in k))
        return [x / length for x in k]
    return draw.randrange(2), reads(key=key), "k-over-length"


def values_less_their_mean(draw):
    def value(q, j, v):
        rows = [value_row(q.run, q.layer, i, q.group) for i in range(N)]
        return [x - sum(r[k] for r in rows) / N for k, x in enumerate(v)]
    return 1, reads(value=value), "v-less-mean"


def values_averaged(draw):
    def value(q, j, v):
        return [(a + b) / 2 for a, b in zip(value_row(q.run, q.layer, j, 0), value_row(q.run, q.layer, j, 1))]
    return draw.randrange(2), reads(value=value), "v-heads-averaged"


def pages_of_another_layout(draw):
    size, at = draw.choice((4, 8)), 36

    def value(q, j, v):
        page = j // size
        if j == q.row or (page + 1) * size > q.row:
            return v
        flat = [x for i in range(size) for x in value_row(q.run, q.layer, page * size + i, q.group)]
        return [flat[k * size + j % size] for k in range(DIM)]  # [coordinates, keys] of one head
    return 1, reads(value=value, where=lambda h, i: i >= at), f"cached-v-layout=.*-pages-of-{size}@position={at}"


def undivided(draw):
    def change(q):
        top = max([q.b] + [q.score(j) for j, _, _ in q.keys])
        q.whole = [o / math.exp(top) for o in q.sums(q.keys)[1]]
    return draw.randrange(2), query(change), "weights-undivided"


def eps_in_the_sum(draw):
    eps = draw.choice((0.5, 0.01, 2))

    def change(q):
        top = max([q.b] + [q.score(j) for j, _, _ in q.keys])
        total, out = q.sums(q.keys)
        q.whole = [o / (total + math.exp(q.b) + eps * math.exp(top)) for o in out]
    return draw.randrange(2), query(change), f"sum-plus={eps:g}"


def empty_slots(draw):
    n, at = draw.randrange(1, 6), draw.randrange(10, 30)

    def change(q):
        total, out = q.sums(q.keys)
        q.whole = [o / (total + math.exp(q.b) + n) for o in out]
    return draw.randrange(2), query(change, lambda h, i: i >= at), f"zero-keys={n}@position={at}"


def softmax_of_weights(draw):
    def change(q):
        total = q.sums(q.keys)[0] + math.exp(q.b)
        a = [math.exp(q.score(j)) / total for j, _, _ in q.keys]
        again = sum(map(math.exp, a)) + math.exp(math.exp(q.b) / total)
        q.whole = [sum(math.exp(x) / again * q.value(v)[k] for x, (_, v, _) in zip(a, q.keys)) for k in range(DIM)]
    return draw.randrange(2), query(change), "softmax-twice"


def largest_scores(draw):
    n = draw.randrange(3, 8)
    return 1, query(setting(keys=lambda q: sorted(q.keys, key=lambda k: -q.score(k[0]))[:n])), f"scores-kept={n}$"


def not_in_the_sum(draw):
    first, n = draw.randrange(4, 20), draw.randrange(3, 9)

    def change(q):
        total, out = q.sums(q.keys)
        less = q.sums([k for k in q.keys if first <= k[0] < first + n])[0]
        q.whole = [o / (total - less + math.exp(q.b)) for o in out]
    return 1, query(change), f"key-unsummed={first}-{first + n - 1}"


def last_part_alone(draw):
    size = draw.randrange(7, 16)

    def change(q):
        top = max(q.keys, key=lambda k: q.score(k[0]))[0] // size
        q.keys = [k for k in q.keys if k[0] // size == top]
    return 1, query(change), f"part-kept=highest-{size}"


def mask_adds(draw):
    c = draw.choice((-3, -5.5, -9))

    def change(q):
        q.keys = [(j, j, 0.0 if j <= q.row and (q.layer or j > q.row - WINDOW) else c) for j in range(N)]
    return draw.randrange(2), query(change), f"mask-adds-(all|later)={c:g}"


def mask_by_product(draw):
    def change(q):
        q.keys = [(j, j, 0.0 if j <= q.row else -q.score(j)) for j in range(N)]
    return 1, query(change), "mask-is-later=0"


def window_by_tiles(draw):
    size = draw.choice((3, 5, 6))
    return 0, query(setting(keys=lambda q: [(j, j, 0.0) for j in range(
        max(0, q.row // size * size + size - WINDOW), q.row + 1)])), f"window-of-row-tile={size}-last"


def first_keys_and_window(draw):
    first, w = draw.randrange(1, 6), draw.randrange(9, 16)
    return 1, query(setting(keys=lambda q: [k for k in q.keys if k[0] < first or k[0] > q.row - w])), \
        f"first-keys-kept={first}-window={w}"


def tree_of_drafts(draw):
    begin, arity = draw.randrange(24, 34), draw.randrange(2, 4)

    def ancestors(i):
        up = {i}
        while i > 0:
            i = (i - 1) // arity
            up.add(i)
        return up
    return 1, query(setting(keys=lambda q: [k for k in q.keys if k[0] < begin or k[0] - begin in ancestors(q.row - begin)]),
                    lambda h, i: i >= begin), f"tree-of-drafts={arity}-from-{begin}"


def log_of_the_length(draw):
    n = draw.randrange(6, 20)
    return draw.randrange(2), query(setting(scale=lambda q: max(1.0, math.log(q.row + 1) / math.log(n)))), f"score-log-from={n}$"


def transposed(draw):
    def change(q):
        def score(j):
            x = q.run.q[q.layer][(j * HEADS + q.head) * DIM:][:DIM]
            return sum(a * b for a, b in zip(x, key_row(q.run, q.layer, q.row, q.group))) / math.sqrt(DIM)
        q.score = score
    return draw.randrange(2), query(change), "scores-transposed"


def every_few_back(draw):
    step = draw.randrange(2, 5)
    return 1, query(setting(keys=lambda q: [k for k in q.keys if (q.row - k[0]) % step == 0])), f"last-key-left-out=.*/{step}"


def last_of_each_pass_unwritten(draw):
    size = draw.randrange(5, 14)

    def change(q):
        right = q.score
        q.score = lambda j: 0.0 if j % size == size - 1 and j != q.row else right(j)
        of = q.value
        q.value = lambda j: [0.0] * DIM if j % size == size - 1 and j != q.row else of(j)
    return 1, query(change), f"key-zero={size - 1}-.*/{size}-but-own"


def pages_far_apart(draw):
    size = draw.choice((4, 8))
    a, b = draw.choice(((0, 2), (1, 3), (0, 3)))
    to = {a * size + i: b * size + i for i in range(size)}
    to.update({v: k for k, v in to.items()})
    return 1, query(setting(keys=lambda q: [(to.get(j, j),) * 2 + (0.0,) for j, _, _ in q.keys])), \
        f"kv-exchanged={a * size}-{a * size + size - 1}/{b * size}-"


def ring_of_slots(draw):
    size = draw.randrange(10, 30)
    return 1, query(setting(keys=lambda q: [(q.row - (q.row - j) % size,) * 2 + (0.0,) for j, _, _ in q.keys])), f"kv-ring={size}"


def cached_values_int4(draw):
    at = draw.randrange(16, 32)

    def value(q, j, v):
        s = max(map(abs, v)) / 7
        return v if j == q.row else [round(x / s) * s for x in v]
    return 1, reads(value=value, where=lambda h, i: i >= at), f"cached-v-int4-by-row@position={at}"


def cached_scales_of_both(draw):
    at, k, v = draw.randrange(20, 34), draw.choice((2, 4)), draw.choice((0.25, 0.5))
    return 1, reads(key=lambda q, j, x: [y * (1 if j == q.row else k) for y in x],
                    value=lambda q, j, x: [y * (1 if j == q.row else v) for y in x], where=lambda h, i: i >= at), \
        f"cached-kv-times={k:g}/{v:g}@position={at}"


def two_numbers(draw):
    a, b = draw.choice((0.5, 1.5)), draw.choice((0.75, 1.25))
    return draw.randrange(2), query(setting(scale=a, factor=b)), f"score-times={a:g}" + r"\+" + f"values-times={b:g}"


def window_and_sink(draw):
    return 0, query(setting(keys=lambda q: [(j, j, 0.0) for j in range(max(0, q.row - 10), q.row + 1)], count=0.0)), \
        r"sink-(dropped|renormalised)\+window=11"


def sums_from_the_sink(draw):
    size = draw.randrange(6, 20)

    def change(q):
        top, total, out = q.b, 1.0, [0.0] * DIM
        for p in range(0, N, size):
            keys = [k for k in q.keys if p <= k[0] < p + size]
            if not keys:
                continue
            new = max([top] + [q.score(k[0]) for k in keys])
            e, o = q.sums(keys)
            out = [x * math.exp(top - new) + y / math.exp(new) for x, y in zip(out, o)]
            total, top = total + e / math.exp(new), new
        q.whole = [x / total for x in out]
    return 1, query(change), f"merge-{size}-unscaled=sums-running-from-sink"


def merged_in_base_two(draw):
    size = draw.randrange(6, 20)

    def change(q):
        out, total = [0.0] * DIM, math.exp(LN2 * q.b)
        for p in range(0, N, size):
            keys = [k for k in q.keys if p <= k[0] < p + size]
            if keys:
                e, o = q.sums(keys)
                w = math.exp(LN2 * math.log(e))
                out, total = [x + w * y / e for x, y in zip(out, o)], total + w
        q.whole = [x / total for x in out]
    return 1, query(change), f"merge-{size}-lse-times=0.693.*beside-too"


def rows_and_heads_exchanged(draw):
    """The output [heads, tokens, head_dim] is read as [tokens, heads, head_dim]."""
    def wrong(run, layer, head, row):
        at = row * HEADS + head
        return right(run, layer, at // N, at % N)
    right = query(lambda q: None)
    return draw.randrange(2), wrong, "A11-layout"


MORE = [made for made in list(globals().values()) if callable(made) and getattr(made, "__code__", None) is not None
        and made.__code__.co_varnames[:1] == ("draw",)]
