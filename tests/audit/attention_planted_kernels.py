# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""More mistakes of attention_planted.py: of the loops of a kernel, its tiles of keys, its sum and its exponential."""
from attention_planted import EACH, N, query, setting


def keys_as(change, where=lambda head, row: True):
    """The keys that are read, (place of the key, of its value, added to its score), from those that are seen."""
    return query(setting(keys=lambda q: [change(q, k) for k in q.keys]), where)


# ---- tiles of keys

def values_of_remainder_lost(draw):
    size, at = draw.choice((3, 4, 5, 8)), draw.choice((0, draw.randrange(10, 30)))
    return draw.randrange(2), keys_as(lambda q, k: k if k[0] < (q.row + 1) // size * size else (k[0], None, 0.0),
                                      lambda h, i: i >= at), f"value-zero-remainder-tile={size}" + (f"@position={at}" if at else "")


def last_tile_not_summed(draw):
    size = draw.choice((4, 6, 8, 16))

    def change(q):
        begin = q.row // size * size
        out, total = q.sums(q.keys)[1], q.sums([k for k in q.keys if k[0] < begin or begin == 0])[0]
        q.whole = [o / (total + 2.718281828459045 ** q.b) for o in out]
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


KERNELS = [made for made in list(globals().values()) if callable(made) and getattr(made, "__code__", None) is not None
           and made.__code__.co_varnames[:1] == ("draw",)]
