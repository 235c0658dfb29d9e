# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""More mistakes of attention_planted.py: of the loops of a kernel, its tiles of keys, its sum and its exponential."""
import math
import struct

from attention_planted import DIM, EACH, GROUPS, HEADS, LN2, LOG2E, N, query, setting


def keys_as(change, where=lambda head, row: True):
    """The keys that are read, (place of the key, of its value, added to its score), from those that are seen."""
    return query(setting(keys=lambda q: [change(q, k) for k in q.keys]), where)


# ---- tiles of keys

def values_of_remainder_lost(draw):
    size, at = draw.choice((3, 4, 5, 8)), draw.choice((0, draw.randrange(10, 30)))
    at += at > 0 and (at + 1) % size == 0  # a row of whole tiles loses none: the next one is the first
    return draw.randrange(2), keys_as(lambda q, k: k if k[0] < (q.row + 1) // size * size else (k[0], None, 0.0),
                                      lambda h, i: i >= at), f"value-zero-remainder-tile={size}" + (f"@position={at}" if at else "")


def last_tile_not_summed(draw):
    size = draw.choice((4, 6, 8, 16))

    def change(q):
        begin = q.row // size * size
        out, total = q.sums(q.keys)[1], q.sums([k for k in q.keys if k[0] < begin or begin == 0])[0]
        q.whole = [o / (total + math.exp(q.b)) for o in out]
    return 1, query(change), f"unsummed-last-tile={size}-not-first"


def tile_of_buffer(draw):
    """Every last tile holds the keys of the tile before."""
    size = draw.choice((6, 8, 10))
    return 1, keys_as(lambda q, k: k if k[0] < q.row // size * size or k[0] < size else (k[0] - size, k[0], 0.0)), \
        f"keys-stale-1-last-tile={size}"


def values_of_buffer(draw):
    first = draw.randrange(20, 34)
    by = draw.randrange(5, first)
    return 1, keys_as(lambda q, k: k if k[0] < first else (k[0], k[0] - by, 0.0)), f"value-from={first}-{N - 1}-{by}$"


def edge_tile_skipped(draw):
    size = draw.choice((3, 5, 6))

    def change(q):
        first = q.keys[0][0]
        kept = [k for k in q.keys if k[0] >= -(-first // size) * size]
        q.keys = kept
    return 0, query(change), f"left-out-window-tile={size}"


def values_late_in_steps(draw):
    """The values of key/value head 1 are those of the next token, the last one twice; steps from a position on."""
    at = draw.randrange(24, 40)

    def change(q):
        end = at if q.row < at else q.row + 1
        q.keys = [(j, min(j + 1, end - 1), 0.0) for j, _, _ in q.keys]
    return 1, query(change, lambda h, i: h >= EACH), rf"value-from=0-{N - 1}\+1-clamped-steps-from-{at}@head={EACH}-{2 * EACH - 1}"


def last_split_lost(draw):
    """Of equal parts of all keys up to the query the last one's result is lost."""
    count = draw.randrange(2, 5)

    def change(q):
        each = -(-(q.row + 1) // count)
        q.keys = [k for k in q.keys if k[0] // each != q.row // each]
        if not q.keys:
            q.whole = [0.0] * DIM
    return 1, query(change), f"part-lost=last-of-all-{count}"


def lane_not_summed(draw):
    """One lane's part of the sum is lost; its values are added."""
    lanes = draw.choice((3, 4, 8))
    lane = draw.randrange(lanes)

    def change(q):
        out = q.sums(q.keys)[1]
        total = q.sums([k for k in q.keys if k[0] % lanes != lane])[0] + math.exp(q.b)
        q.whole = [o / total for o in out]
    return 1, query(change), f"key-unsummed={lane}-.*/{lanes}"


def values_of_tile_in_another_order(draw):
    """A transposed load takes the halves of a tile in turn; beyond the last key there are zeros."""
    size, name = draw.choice(((8, "spread"), (4, "reversed"), (6, "reversed")))

    def place(j):
        at = j % size
        to = j - at + (size - 1 - at if name == "reversed" else at // 2 + at % 2 * size // 2)
        return to if to < N else None
    return 1, keys_as(lambda q, k: (k[0], place(k[0]), 0.0)), f"values-tiles={size}-{name}$"


def sum_without_window(draw):
    def change(q):
        out, total = q.sums(q.keys)[1], q.sums([(j, j, 0.0) for j in range(q.row + 1)])[0]
        q.whole = [o / (total + math.exp(q.b)) for o in out]
    return 0, query(change), "last-key-value-zero=8-.*window-off"


def divided_twice(draw):
    def change(q, z, top):
        e = [math.exp(x - top) for x in z]
        return e, (sum(e) + math.exp(q.b - top)) ** 2
    return draw.randrange(2), weighed(change), "sum-divides-twice$"


# ---- the sum and the exponential

def weighed(change):
    """change(q, scores, largest of scores and sink) -> (exponentials, what divides)."""
    def wrong(q):
        z = [q.score(k[0]) for k in q.keys]
        e, total = change(q, z, max([q.b, *z]))
        q.whole = [sum(x * q.value(k[1])[i] for x, k in zip(e, q.keys)) / total for i in range(DIM)]
    return query(wrong)


def exponentials(e):
    """The softmax with another function than exp."""
    return weighed(lambda q, z, top: ([e(x - top) for x in z], sum(e(x - top) for x in [*z, q.b])))


def sink_under_its_own_maximum(draw):
    def change(q, z, top):
        e = [math.exp(x - top) for x in z]
        return e, sum(e) + 1
    return draw.randrange(2), weighed(change), "sink-under-own$"


def sink_under_first_tile(draw):
    size = draw.choice((4, 6, 10))

    def change(q, z, top):
        e = [math.exp(x - top) for x in z]
        return e, sum(e) + math.exp(q.b - max([q.b, *z[:size]]))
    return 1, weighed(change), f"sink-under-first-tile={size}$"


def tail_of_tile_counted(draw):
    size, at = draw.choice((5, 6, 8, 16)), draw.choice((0, draw.randrange(20, 33)))

    def change(q, z, top):
        e, more = [math.exp(x - top) for x in z], -(q.row + 1) % size if q.row >= at else 0
        return e, sum(e) + math.exp(q.b - top) + more * math.exp(-top)
    return draw.randrange(2), weighed(change), f"empty-slots-tail={size}"


def room_of_cache_counted(draw):
    room = draw.choice((48, 64, 128, 200))

    def change(q, z, top):
        e = [math.exp(x - top) for x in z]
        return e, sum(e) + math.exp(q.b - top) + (room - q.row - 1) * math.exp(-top)
    return draw.randrange(2), weighed(change), f"empty-slots-room={room}$"


def to_bfloat16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return struct.unpack("<f", struct.pack("<I", (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000))[0]


def sum_in_bfloat16(draw):
    size = draw.choice((1, 4, 8))

    def change(q, z, top):
        e, total = [math.exp(x - top) for x in z], 0.0
        for tile in sorted({k[0] // size for k in q.keys}):
            total = to_bfloat16(total + sum(x for x, k in zip(e, q.keys) if k[0] // size == tile))
        return e, to_bfloat16(total + math.exp(q.b - top))
    return 1, weighed(change), "sum-bf16$" if size == 1 else f"sum-bf16-tiles={size}$"


def exponential_of_bits(draw):
    by = draw.choice((0.05798471, 0.0430, 0.0356))

    def e(x):
        t = x / LN2 - by
        return 2.0 ** math.floor(t) * (1 + t - math.floor(t))
    return draw.randrange(2), exponentials(e), f"exp-piecewise-linear={str(by)[:5]}"


def exponential_of_powers(draw):
    n = 2 ** draw.randrange(5, 10)
    return draw.randrange(2), exponentials(lambda x: (1 + x / n) ** n if x > -n else 0.0), f"exp-power={n}$"


def exponential_of_table(draw):
    n = draw.choice((16, 64, 100))
    return draw.randrange(2), exponentials(lambda x: math.exp(math.floor(x * n) / n)), f"exp-table-down={n}$"


def exponential_of_series(draw):
    degree = draw.randrange(2, 5)

    def e(x):
        t = x / LN2
        u = (t - math.floor(t)) * LN2
        return 2.0 ** math.floor(t) * sum(u ** k / math.factorial(k) for k in range(degree + 1))
    return draw.randrange(2), exponentials(e), f"exp-polynomial={degree}$"


# ---- a number added to the scores of some keys

def first_key_favoured(draw):
    by = draw.choice((-1.0, 0.5, 2.0))
    return 1, query(setting(keys=lambda q: [(j, v, by if j == 0 else 0.0) for j, v, _ in q.keys])), \
        rf"key-counted=0-times={str(math.exp(by))[:5]}"


def own_key_favoured(draw):
    by = draw.choice((-1.0, 0.5, 2.0))
    return draw.randrange(2), query(setting(keys=lambda q: [(j, v, by if j == q.row else 0.0) for j, v, _ in q.keys])), \
        rf"last-key-counted=0-times={str(math.exp(by))[:5]}"


# ---- scores, and rows that nothing wrote

def scale_of_padded_head(draw):
    width = draw.choice((24, 32, 80))
    return draw.randrange(2), query(setting(scale=math.sqrt(DIM / width))), f"score-times={math.sqrt(DIM / width):.7g}$"


def alibi_of_the_power_below(draw):
    slopes = [2.0 ** -(h + 1) for h in range(8)] + [2.0 ** -0.5, 2.0 ** -1.5]
    return draw.randrange(2), query(setting(keys=lambda q: [(j, v, -slopes[q.head] * (q.row - j)) for j, v, _ in q.keys])), \
        "score-slope=1-by-head-of-power$"


def last_rows_not_written(draw):
    at = draw.randrange(10, 36)
    return draw.randrange(2), query(setting(whole=[0.0] * DIM), lambda h, i: h == HEADS - 1 and i >= at), \
        f"^A11-zero@position={at}-{N - 1}@head={HEADS - 1}"


# ---- a prefix in the cache, merged with the query's own pass

def of_prefix(first, rows, merge):
    """merge(outputs, log-sum-exps, q) of the keys of earlier passes and of the query's own, without the sink."""
    def change(q):
        own = 0 if q.row < first else q.row - (q.row - first) % rows
        parts = [keys for keys in ([k for k in q.keys if k[0] < own], [k for k in q.keys if k[0] >= own]) if keys]
        sums = [q.sums(keys) for keys in parts]
        q.whole = merge([[x / total for x in out] for total, out in sums], [math.log(total) for total, _ in sums], q)
    return query(change)


def mean_by(weights, outs):
    total = sum(weights)
    return [sum(w * o[i] for w, o in zip(weights, outs)) / total for i in range(DIM)]


def prefix_in_base_two(draw):
    rows = draw.choice((12, 14, 16))

    def merge(outs, lses, q):
        gate = 1 / (1 + math.exp(q.b - math.log(sum(map(math.exp, lses)))))
        return [gate * x for x in mean_by([math.exp(LOG2E * x) for x in lses], outs)]
    return draw.randrange(2), of_prefix(rows, rows, merge), f"merge-prefix-{rows}-from-{rows}-lse-times=1.44.*-gated"


def prefix_and_own_exchanged(draw):
    first = draw.randrange(20, 34)

    def merge(outs, lses, q):
        weights = [math.exp(x) for x in reversed(lses)]
        gate = sum(weights) / (sum(weights) + math.exp(q.b))
        return [gate * x for x in mean_by(weights, outs)]
    return 1, of_prefix(first, 1, merge), f"merge-prefix-1-from-{first}-exchanged"


def sink_in_prefix_and_own(draw):
    """The sink is in the divisor and in the log-sum-exp of both, so that it counts twice."""
    first = draw.randrange(20, 34)

    def merge(outs, lses, q):
        sums = [math.exp(x) + math.exp(q.b) for x in lses]
        return mean_by(sums, [[x * math.exp(l) / s for x in o] for o, l, s in zip(outs, lses, sums)])
    return 1, of_prefix(first, 1, merge), f"sink-counted=2@position={first}|merge-prefix-1-from-{first}-sink=all/all"


# ---- scales of codes

def to_codes(x, scale):
    """Whole numbers up to 127, ties to even."""
    return [max(-127, min(127, round(y / scale))) for y in x]


def queries_by_scale_of_first_head(draw):
    """int8 codes with a scale of each head, which head 0's scale multiplies again."""
    scales = {}

    def change(q):
        if (q.run, q.layer) not in scales:
            x = q.run.q[q.layer]
            scales[q.run, q.layer] = [max(abs(y) for i in range(N) for y in x[(i * HEADS + h) * DIM:][:DIM]) / 127
                                      for h in range(HEADS)]
        own, of = scales[q.run, q.layer][q.head], scales[q.run, q.layer][0]
        at = (q.row * HEADS + q.head) * DIM
        x = [of * c for c in to_codes(q.run.q[q.layer][at:at + DIM], own)]
        q.score = lambda j: sum(a * b for a, b in zip(x, q.run.k[q.layer][(j * GROUPS + q.group) * DIM:][:DIM])) / math.sqrt(DIM)
    return draw.randrange(2), query(change), "q-int8-head-scale-of-first$"


def values_by_scale_before(draw):
    """int8 codes with a scale of each token and head, which the scale of the token before multiplies again."""
    def change(q):
        right = q.value

        def value(j):
            own, of = (max(map(abs, right(i))) / 127 for i in (j, max(j - 1, 0)))
            return [of * c for c in to_codes(right(j), own)]
        q.value = value
    return draw.randrange(2), query(change), "^v-int8-token-head-scale-of-before$"


# ---- columns of the weights

def first_column_dropped(draw):
    """Of [keys, sink] the first column is dropped: the last key of what is there has the sink's weight."""
    at = draw.choice((0, draw.randrange(24, 40)))

    def change(q):
        end = N if at == 0 else at if q.row < at else q.row + 1
        e = [math.exp(q.score(k[0])) for k in q.keys]
        total = sum(e) + math.exp(q.b)
        meets = [(k[0] - 1, x) for k, x in zip(q.keys, e) if k[0] > 0] + [(end - 1, math.exp(q.b))]
        q.whole = [sum(x * q.value(j)[i] for j, x in meets) / total for i in range(DIM)]
    return draw.randrange(2), query(change), "columns-without-first" + (f"-steps-from-{at}$" if at else "$")


KERNELS = [made for made in list(globals().values()) if callable(made) and getattr(made, "__code__", None) is not None
           and made.__code__.co_varnames[:1] == ("draw",)]
