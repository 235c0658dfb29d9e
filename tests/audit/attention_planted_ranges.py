# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""More mistakes of attention_planted.py: of a range of keys, of cached codes with a lost scale, and outputs of 0."""
import math

from attention_planted import DIM, HEADS, N, query, setting
from attention_planted_more import reads


def keys_not_filled_again(draw):
    at = draw.randrange(16, 34)
    by = draw.randrange(2, at)
    return 1, query(setting(keys=lambda q: [(j - by if j >= at else j, j, 0.0) for j, _, _ in q.keys])), \
        f"^key-from={at}-{N - 1}-{by}$"


def values_times_from_a_key(draw):
    at, c = draw.randrange(16, 34), draw.choice((0.3, 1.7, 3))
    return 1, reads(value=lambda q, j, v: [x * c for x in v] if j >= at else v), f"^v-times={c:g}@key={at}-{N - 1}$"


def keys_of_a_page_negated(draw):
    size = draw.choice((4, 8))
    first = size * draw.randrange(1, 4)
    return draw.randrange(2), reads(key=lambda q, j, k: [-x for x in k] if first <= j < first + size else k), \
        f"^k-times=-1@key={first}-{first + size - 1}$"


def e4m3(x):
    """The nearest number of three bits behind the first; none here is as small as 2^-6 times a scale."""
    step = 2.0 ** (math.frexp(x)[1] - 4)
    return round(x / step) * step


def cached_codes_of_another_scale(draw):
    at, c = draw.randrange(20, 34), draw.choice((0.8, 1.3))

    def value(q, j, v):
        scale = max(map(abs, q.run.v[q.layer])) / 448
        return v if j == q.row else [e4m3(x / scale) * scale * c for x in v]
    return 1, reads(value=value, where=lambda h, i: i >= at), f"^cached-v-e4m3-tensor-times={c:g}@position={at}$"


def rows_not_written(draw):
    at, h = draw.randrange(10, 34), draw.randrange(1, HEADS - 1)

    def change(q):
        q.whole = [0.0] * DIM
    return draw.randrange(2), query(change, lambda head, i: head == h and i >= at), f"^A11-zero@position={at}-{N - 1}@head={h}$"


RANGES = [keys_not_filled_again, values_times_from_a_key, keys_of_a_page_negated, cached_codes_of_another_scale, rows_not_written]
