# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The inputs of a call of attention as serving lays them out: packed among other sequences, or in pages.

Whatever lies beside the judged sequence are finite numbers of the same kind, its own rows in reverse order, so that a
kernel that reads across a boundary computes something else.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int32]
Cached = dict[str, Numbers]  # "k" and "v" [keys, kv_heads, dim]; scales [1], [kv_heads] or [keys, kv_heads]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The arrays of a call by the words of its signature; the judged rows are `begin` .. of `rows` in the output."""

    arrays: dict[str, Numbers | Whole]
    numbers: dict[str, int]
    begin: int
    rows: int


def whole(*numbers: int) -> Whole:
    return np.array(numbers, np.int32)


def packed(q: Numbers, cached: Cached, keys: int, page: int) -> Layout:
    """The second of three sequences of equal lengths, end to end."""
    n = len(q)
    three = {name: np.concatenate([x[::-1], x, x[::-1]]) if x.ndim > 1 else x for name, x in cached.items()}
    return Layout({"q": np.concatenate([q[::-1], q, q[::-1]]), **three, "cu_seqlens_q": whole(0, n, 2 * n, 3 * n),
                   "cu_seqlens_k": whole(0, keys, 2 * keys, 3 * keys), "seqused_k": whole(keys, keys, keys)},
                  {"max_seqlen_q": n, "max_seqlen_k": keys}, n, 3 * n)


def in_pages(x: Numbers, page: int) -> Numbers:
    """[2 pages, page, ...]: the odd pages hold the keys from the last page to the first; the even ones, and the rest of
    the last page, hold others'."""
    pages = -(-len(x) // page)
    own = np.resize(x[::-1], (pages * page, *x.shape[1:]))
    cache = np.empty((2 * pages, page, *x.shape[1:]), np.float32)
    cache[::2] = own.reshape(pages, page, *x.shape[1:])
    own[: len(x)] = x
    cache[1::2] = own.reshape(pages, page, *x.shape[1:])[::-1]
    return cache


def paged(q: Numbers, cached: Cached, keys: int, page: int) -> Layout:
    """Keys and values in a cache of pages that are in no order."""
    n, pages = len(q), -(-keys // page)
    table = whole(*range(2 * pages - 1, 0, -2))[None]
    named = {{"k": "k_cache", "v": "v_cache"}.get(name, name): x for name, x in cached.items()}
    return Layout({"q": q, **{name: in_pages(x, page) if x.ndim > 1 else x for name, x in named.items()},
                   "block_table": table, "seqused_k": whole(keys), "cu_seqlens_q": whole(0, n)},
                  {"max_seqlen_q": n, "max_seqlen_k": keys, "page_size": page}, 0, n)


LAYOUTS: dict[str, Callable[[Numbers, Cached, int, int], Layout]] = {"varlen": packed, "paged": paged}
