# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes of a cache that is filled pass by pass, with drawn numbers (test_attention_causes.py). The cache is simulated:
a dictionary of slots, into which each pass is written before its queries read."""
from attention_planted import DIM, GROUPS, HEADS, N, WINDOW, query, setting


def passes(first, rows, single):
    """The passes [begin, end) of a prompt of N tokens."""
    cuts = [0, *range(first, single, rows), *range(single, N)]
    return list(zip(cuts, [*cuts[1:], N]))


def drawn_passes(draw):
    """Passes, and what the name says of them."""
    first, rows = draw.choice((11, 14, 18)), draw.choice((9, 10))
    single = draw.choice((first + rows, first + 2 * rows))
    return passes(first, rows, single)


def pass_of(cut, row):
    return next((b, e) for b, e in cut if b <= row < e)


def sees(layer, row, j):
    return j <= row and (layer == 1 or j > row - WINDOW)


def masked(cut, cached, own):
    """Keys of earlier passes by `cached`, of the query's own by `own`: functions of (query, pass begin, pass end, key)."""
    def keys(q):
        b, e = pass_of(cut, q.row)
        return [(j, j, 0.0) for j in range(e) if (cached if j < b else own)(q, b, e, j)]
    return query(setting(keys=keys))


def by_definition(q, b, e, j):
    return sees(q.layer, q.row, j)


def stored(cut, slots_of, left_out=False, direct=False):
    """slots_of(token, pass begin, pass end): the slots that it is written to; a query looks for key j in slot j."""
    def keys(q):
        b, e = pass_of(cut, q.row)
        slots = {}
        for begin, end in cut:
            for token in range(begin, end):
                if begin <= b:
                    slots.update({slot: token for slot in slots_of(token, begin, end)})
        found = [(j if direct and j >= b else slots.get(j), sees(q.layer, q.row, j)) for j in range(q.row + 1)]
        return [(j, j, 0.0) for j, seen in found if seen and not (left_out and j is None)]
    return query(setting(keys=keys))


# ---- masks

def ring_of_one_pass(draw):
    return 0, masked(drawn_passes(draw), lambda *_: False, by_definition), "pass-mask-cached-none|tiles=.*before=0"


def row_of_the_first_query(draw):
    cut = drawn_passes(draw)
    return 0, masked(cut, lambda q, b, e, j: j > b - WINDOW, by_definition), "pass-mask-cached-of-first@"


def row_of_the_last_query(draw):
    cut = passes(14, 5, draw.choice((24, 29, 44)))
    return 0, masked(cut, lambda q, b, e, j: j > e - 1 - WINDOW, by_definition), "pass-mask-cached-of-last@"


def cached_without_window(draw):
    return 0, masked(drawn_passes(draw), lambda *_: True, by_definition), "pass-mask-cached-no-window@"


def cached_by_local_number(draw):
    cut = passes(14, 10, 34)
    return 1, masked(cut, lambda q, b, e, j: j <= q.row - b, by_definition), "pass-mask-cached-local@"


def no_window_in_a_pass(draw):
    cut = passes(15, 12, draw.choice((27, 44)))
    return 0, masked(cut, by_definition, lambda q, b, e, j: j <= q.row), "pass-mask-own-no-window@"


def own_key_alone_in_passes(draw):
    cut = passes(14, 10, 44)
    return 1, masked(cut, by_definition, lambda q, b, e, j: j == q.row or (b == 0 and j <= q.row)), "pass-mask-own-own-key@"


def pass_before_unseen(draw):
    def cached(q, b, e, j):
        return j < pass_of(cut, b - 1)[0] and sees(q.layer, q.row, j)
    cut = passes(12, 8, draw.choice((20, 28, 44)))
    return 1, masked(cut, cached, by_definition), "pass-mask-cached-lag@|slots-pass-before-unwritten-left-out"


def length_of_another(draw):
    cut, at = passes(30, 1, 30), draw.randrange(17, 27)
    return 0, masked(cut, lambda q, b, e, j: sees(q.layer, at if q.row >= 30 else q.row, j),
                                     lambda q, b, e, j: q.row < 30 and by_definition(q, b, e, j)), f"pass-mask-as-row-{at}-own-none@"


# ---- slots

def ring_overwritten_by_its_own_pass(draw):
    size, cut = draw.randrange(9, 12), passes(10, 10, 44)
    return 0, query(setting(keys=lambda q: [(k, k, 0.0) for j in range(max(0, q.row - WINDOW + 1), q.row + 1)
                                            for k in [max(t for t in range(pass_of(cut, q.row)[1]) if (t - j) % size == 0)]])), \
        f"slots-ring={size}@"


def newest_in_slot(draw):
    cut, at = passes(28, 1, 28), draw.randrange(1, 20)
    return 1, stored(cut, lambda t, b, e: {t, at} if b > 0 else {t}), f"slots-newest-also-in-slot={at}@"


def same_slot(draw):
    cut = passes(24, 1, 24)
    return 1, stored(cut, lambda t, b, e: {min(t, 24)}), "slots-same-slot-from=24"


def written_later(draw):
    cut, by = passes(16, 9, 25), draw.randrange(1, 5)
    left_out = draw.choice((False, True))
    return 1, stored(cut, lambda t, b, e: {t + by} if b > 0 else {t}, left_out=left_out), \
        f"slots-written-later-by={by}" + ("|last-key-left-out=0@position=16" if left_out and by == 1 else "")  # the same keys


def written_earlier(draw):
    cut, by = passes(16, 9, 25), draw.randrange(1, 5)
    return 1, stored(cut, lambda t, b, e: {t - by} if b > 0 else {t}, left_out=True), f"slots-written-earlier-by={by}"


def written_anew(draw):
    cut = passes(20, 8, draw.choice((28, 44)))
    return 1, stored(cut, lambda t, b, e: {t - b}, left_out=True), "slots-written-anew"


def first_of_pass_unwritten(draw):
    cut = passes(14, 10, 34)
    return 1, stored(cut, lambda t, b, e: {t} if t > b else set(), direct=True), "slots-first-unwritten-own-direct@"


def whole_pages_alone(draw):
    cut, unit = passes(15, 13, 44), draw.choice((4, 8))
    return 1, stored(cut, lambda t, b, e: {t} if t < b + (e - b) // unit * unit else set(), direct=True), \
        f"slots-whole-pages-of={unit}-own-direct@|key-zero"


# ---- empty slots

def empty_page_behind(draw):
    unit, begin = draw.choice((4, 6)), draw.randrange(20, 30)
    return 1, query(setting(keys=lambda q: [*q.keys, *[(None, None, 0.0)] * (unit if (q.row + 1) % unit == 0 and q.row >= begin else 0)])), \
        f"empty-slots-next={unit}@position="


# ---- keys that are not in the sequence

def foreign(draw, count, begin, in_place=False):
    """Keys and values of tokens that the trace has none of, read by every query from `begin` on; or in the place of the
    last keys before `begin`."""
    rows = [([draw.gauss(0, 0.7) for _ in range(DIM)], [draw.gauss(0, 1) for _ in range(DIM)]) for _ in range(count * GROUPS)]

    def change(q):
        score, value = q.score, q.value
        x = q.run.q[q.layer][(q.row * HEADS + q.head) * DIM:][:DIM]
        others = {N + k: rows[k * GROUPS + q.group] for k in range(count)}
        q.score = lambda j: sum(a * b for a, b in zip(x, others[j][0])) / 4 if j in others else score(j)
        q.value = lambda j: others[j][1] if j in others else value(j)
        lost = range(begin - count, begin) if in_place else ()
        q.keys = [*(key for key in q.keys if key[0] not in lost), *[(j, j, 0.0) for j in others]]
    return query(change, lambda h, i: i >= begin)


def draft_in_place(draw):
    begin = draw.randrange(20, 34)
    return 1, foreign(draw, 1, begin, in_place=True), f"A11-foreign-key={begin - 1}$"


def drafts_kept(draw):
    count = draw.choice((1, 2))
    return draw.randrange(2), foreign(draw, count, draw.randrange(20, 34)), f"A11-foreign-values-{count}$"


PASSES = [made for made in list(globals().values()) if callable(made) and getattr(made, "__code__", None) is not None
          and made.__code__.co_varnames[:made.__code__.co_argcount] == ("draw",) and made.__name__ != "drawn_passes"]
