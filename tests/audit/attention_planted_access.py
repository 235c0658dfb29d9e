# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Masks and caches that no one range of keys tells, with drawn numbers (test_attention_causes.py)."""
import math

from attention_planted import HEADS, N, WINDOW, query, setting
from attention_planted_passes import drawn_passes, masked, pass_of, passes, sees


def seeing(sees_too):
    """The keys that a query sees: a function of (query, key)."""
    return query(setting(keys=lambda q: [(j, j, 0.0) for j in range(N) if sees_too(q, j)]))


def packed_documents(draw):
    cuts = [9 + draw.randrange(3), 20 + draw.randrange(3), 33 + draw.randrange(2)]
    def document(row):
        return sum(row >= cut for cut in cuts)
    return draw.randrange(2), seeing(lambda q, j: sees(q.layer, q.row, j) and document(j) == document(q.row)), \
        "documents-from=" + r"\+".join(map(str, cuts)) + "$"


def stretch_both_ways(draw):
    begin, size = draw.randrange(9, 24), draw.randrange(5, 8)
    def same(i, j):
        return begin <= i < begin + size and begin <= j < begin + size
    return draw.randrange(2), seeing(lambda q, j: sees(q.layer, q.row, j) or same(q.row, j)), f"two-way={begin}-{begin + size - 1}$"


def keys_of_a_prompt_evicted(draw):
    lost = sorted(draw.sample(range(0, 28, 3), 4))
    return 1, seeing(lambda q, j: sees(1, q.row, j) and (q.row < 30 or j not in lost)), \
        "keys-left-out=" + r"\+".join(map(str, lost)) + "@position=30"


def every_second_key_of_a_prompt(draw):
    first = draw.randrange(2)
    return 1, seeing(lambda q, j: sees(1, q.row, j) and (q.row < 30 or j >= 30 or j % 2 == first)), rf"keys-left-out={1 - first}-2\d/2@position=30"


def window_counted_in_a_pass(draw):
    cut = drawn_passes(draw)
    def seen(q, b, e, j):
        return j <= q.row and j > q.row - b - WINDOW
    return 0, masked(cut, seen, seen), "pass-mask-local-window@"


def window_of_the_first_query(draw):
    """The call's first query and its window serve the whole call; the lengths have no common measure."""
    cut = passes(20, 12, 32)
    def seen(q, b, e, j):
        return b - WINDOW < j <= q.row
    return 0, masked(cut, seen, seen), r"^pass-mask-cached-of-first-own-no-window@passes=20\+12\+1-from-32$"


def blocks_for_a_window(draw):
    size = draw.choice((6, 8, 10))
    return 0, seeing(lambda q, j: j <= q.row and j // size == q.row // size), f"^window-blocks={size}$"


def window_of_tile_and_block(draw):
    tile = draw.choice((16,))
    return 0, seeing(lambda q, j: j <= q.row and j >= max(0, q.row // tile * tile - WINDOW + 1) // 6 * 6), f"window-of-row-tile={tile}-unit=\\d"


def ring_behind_the_first_pass(draw):
    size, cut = draw.randrange(5, 7), passes(18, 9, 27)
    def keys(q):
        e, first = pass_of(cut, q.row)[1], q.row < 18
        seen = range(max(0, q.row - WINDOW + 1), q.row + 1)
        return [(k, k, 0.0) for j in seen for k in [j if first else j + (e - 1 - j) // size * size]]
    return 0, query(setting(keys=keys)), f"slots-ring={size}-first-direct@"


def ring_of_one_call(draw):
    size = draw.choice((8, 9))
    def keys(q):
        return [(k, k, 0.0) for j in range(max(0, q.row - WINDOW + 1), q.row + 1) for k in [j + (N - 1 - j) // size * size]]
    return 0, query(setting(keys=keys)), f"slots-ring={size}@passes={N}$"


def zeros_behind_the_first_pass(draw):
    """Zeros in four keys behind the first pass: pages of six of later passes would read the same."""
    begin = draw.choice((12, 20))
    lost = range(begin - 4, begin)
    def change(q):
        score, value = q.score, q.value
        zero = set(lost) if q.row >= begin else set()
        q.score = lambda j: 0.0 if j in zero else score(j)
        q.value = lambda j: [0.0] * len(value(j)) if j in zero else value(j)
    return 1, query(change), f"^key-zero={lost[0]}-{lost[-1]}@position={begin}$"


def second_steps_see_themselves(draw):
    """Every second or third query from one on reads its own key alone; its number is in the place."""
    first, step = draw.randrange(24, 28), draw.choice((2, 3))
    def seen(q, j):
        return j == q.row if q.row >= first and (q.row - first) % step == 0 else sees(q.layer, q.row, j)
    return 1, seeing(seen), rf"^from-key=\d+@position={first}(-\d+)?-by-{step}$"


def second_steps_lose_a_key(draw):
    """The key before is lost at every third query."""
    first = draw.randrange(24, 28)
    def seen(q, j):
        return sees(q.layer, q.row, j) and not (q.row >= first and (q.row - first) % 3 == 0 and j == q.row - 1)
    return 1, seeing(seen), rf"^last-key-left-out=1@position={first}(-\d+)?-by-3$"


def second_slots_lost(draw):
    """Keys of every second step are never written."""
    first = draw.randrange(24, 28)
    def seen(q, j):
        return sees(q.layer, q.row, j) and (j == q.row or j < first or (j - first) % 2 != 0)
    return 1, seeing(seen), rf"^key-left-out={first}-\d+/2-but-own$"


def of_their_distance(draw):
    by = draw.uniform(0.2, 0.5)
    return draw.randrange(2), query(setting(keys=lambda q: [(j, v, -by * math.sqrt(q.row - j)) for j, v, _ in q.keys])), \
        "^A11-(root|bias)-by-distance$"


def sinks_of_their_own(draw):
    more = [draw.uniform(-1, 1) for _ in range(HEADS)]
    return draw.randrange(2), query(setting(b=lambda q: q.b + more[q.head])), "^A11-sinks-by-head$"


def scales_of_rows(draw):
    times = [draw.uniform(0.5, 2) for _ in range(N)]
    return draw.randrange(2), query(setting(scale=lambda q: times[q.row])), "^A11-scores-by-position$"


ACCESS = [packed_documents, stretch_both_ways, keys_of_a_prompt_evicted, every_second_key_of_a_prompt, window_counted_in_a_pass,
          window_of_the_first_query, blocks_for_a_window, window_of_tile_and_block, ring_behind_the_first_pass, ring_of_one_call,
          zeros_behind_the_first_pass, second_steps_see_themselves, second_steps_lose_a_key, second_slots_lost,
          of_their_distance, sinks_of_their_own, scales_of_rows]
