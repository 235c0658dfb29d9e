# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes of a cache whose keys and values are codes of few bits, with drawn numbers (test_attention_causes.py)."""
import struct

from attention_planted import GROUPS
from attention_planted_more import key_row, reads, value_row


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def asymmetric(levels, back, less=0):
    """Codes from 0 to `levels`; `back` times the zero point is added, `less` subtracted from a code."""
    def made(row):
        low, step = min(row), single((max(row) - min(row)) / levels)
        return [(round(single((x - low) / step)) - less) * step + back * low for x in row]
    return made


def whole(levels, row, scale=None):
    own = single(max(map(abs, row)) / levels)
    return [round(single(x / own)) * (own if scale is None else scale) for x in row]


def e4m3(x):
    """The nearest number of e4m3, of 1 sign, 4 and 3 bits."""
    if x == 0:
        return 0.0
    power = max(len(bin(int(abs(x) * 2 ** 40))) - 3 - 40, -6)
    step = 2.0 ** (power - 3)
    return max(-448.0, min(448.0, round(x / step) * step))


def cached(of, made, at):
    """Keys, values or both of the passes before row `at`, and of single tokens from there on, are `made`."""
    def read(q, j, row):
        return row if j == q.row else made(q, j, row)
    return reads(key=read if "k" in of else None, value=read if "v" in of else None, where=lambda h, i: i >= at)


def zero_point_lost(draw):
    at, of, (bits, levels) = draw.randrange(20, 34), draw.choice("kv"), draw.choice(((8, 255), (4, 15)))
    back, word = draw.choice(((0, "lost"), (2, "twice"), (-1, "negated")))
    made = asymmetric(levels, back)
    return 1, cached(of, lambda q, j, row: made(row), at), f"cached-{of}-uint{bits}-zero-point-{word}@position={at}"


def codes_read_as_signed(draw):
    at, of = draw.randrange(20, 34), draw.choice("kv")
    made = asymmetric(255, 1, 128)
    return 1, cached(of, lambda q, j, row: made(row), at), f"cached-{of}-uint8-signed@position={at}"


def codes_without_scale(draw):
    at, of, (bits, levels) = draw.randrange(20, 34), draw.choice("kv"), draw.choice(((8, 127), (4, 7)))
    return 1, cached(of, lambda q, j, row: whole(levels, row, 1.0), at), f"cached-{of}-int{bits}-scale-lost@position={at}"


def doubled_codes(draw):
    at, times = draw.randrange(20, 34), draw.choice((2, 0.5))
    return 1, cached("kv", lambda q, j, row: [e4m3(x) * times for x in row], at), f"cached-kv-e4m3-times={times:g}@position={at}"


def pages_of_passes(draw):
    """In passes, pages are written [token, head] and read [head, token]; a pass's own keys are not read from the cache."""
    size, begin = draw.choice((4, 8)), draw.choice((16, 24))

    def elsewhere(row_of):
        def made(q, j, row):
            b = 0 if q.row < begin else begin
            page = j - j % size
            if j >= b or page + size > b:
                return row
            at = q.group * size + j % size
            return row_of(q.run, q.layer, page + at // GROUPS, at % GROUPS)
        return made
    return 1, reads(key=elsewhere(key_row), value=elsewhere(value_row)), f"cached-kv-layout=.*-pages-of-{size}@passes={begin}"


def cached_codes_in_passes(draw):
    begin = draw.choice((15, 22))
    made = asymmetric(255, 0)
    return 1, reads(key=lambda q, j, row: made(row) if q.row // begin > j // begin else row), f"cached-k-uint8-zero-point-lost@passes={begin}"


def rounded_in_passes(draw):
    begin, of = draw.choice((15, 22)), draw.choice(("k", "v", "kv"))

    def made(q, j, row):
        return [e4m3(x) for x in row] if q.row // begin > j // begin else row
    return 1, reads(key=made if "k" in of else None, value=made if "v" in of else None), f"^cached-{of}-e4m3@passes={begin}"


CODES = [made for made in list(globals().values()) if callable(made) and getattr(made, "__code__", None) is not None
         and made.__code__.co_varnames[:1] == ("draw",)]
