# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Collects the points of one sequence, piece by piece, into a trace.

A prompt may be fed in pieces through a key/value cache, or a token at a time: rows of tokens are
appended, columns of keys go to their absolute positions. The sequence may begin behind a cache that was
filled before, whose keys and values stand before the rows of the tokens. Keys that a piece could not see (later ones,
or those that a sliding cache has dropped) are zero there, as their weight is.
"""
from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sinkproof._model import Model
from sinkproof._points import chosen_words, gradient_name, kinds, names_point
from sinkproof._trace import Array, Trace, TraceError, as_array, as_tokens


def freeing(whole: Callable[[Record, str], Array | None]) -> Callable[[Record, str], Array | None]:
    """Frees the pieces of a tensor when it is whole, so that no trace is ever held twice."""
    @functools.wraps(whole)
    def freed(record: Record, name: str) -> Array | None:
        array = whole(record, name)
        record.pieces[name] = []
        return array

    return freed


class Record:
    """The points of one sequence. `model` provides the shapes that the judge will expect.

    `points` restricts the record: "A9" in every layer, "03.A9" in one, "A4" for A4.q and A4.k.
    `before` is the position of the first token. `ends` are the bounds of several sequences that were fed end to end.
    """

    def __init__(self, model: Model | None = None, points: Iterable[str] | None = None) -> None:
        self.before = 0
        self.ends: list[int] | None = None
        self.cached: dict[str, Array] = {}  # keys and values of positions before it
        self.model = model
        self.words = None if points is None else chosen_words(points)
        self.tokens: list[int] = []  # of all pieces, including the current one
        self.first = 0               # tokens before the current piece
        self.calls: list[int] = []   # tokens of each piece
        self.pieces: dict[str, list[tuple[int, Array]]] = {}
        self.gradients: Record | None = None  # those of the points, under the points' names

    def of_gradients(self) -> Record:
        """The record of the gradients of the current piece, which is the only one."""
        if self.gradients is None:
            self.gradients = copy.copy(self)
            self.gradients.pieces, self.gradients.cached = {}, {}
        return self.gradients

    @property
    def n(self) -> int:
        """Tokens in the current piece."""
        return len(self.tokens) - self.first

    def begin(self, tokens: Sequence[int]) -> None:
        """Starts the next piece with its tokens."""
        self.first = len(self.tokens)
        self.tokens += [int(token) for token in tokens]
        if self.n > 0:
            self.calls.append(self.n)

    def wants(self, point: str, layer: int | None = None) -> bool:
        """Whether the point is requested, so that the adapter can skip work for others."""
        name = point if layer is None else f"{layer:02d}.{point}"
        return self.words is None or any(names_point(word, name) for word in self.words)

    def keep(self, point: str, values: Any, layer: int | None = None, keys: Sequence[int] | None = None) -> None:
        """Copies `values` of the current piece, an array or a torch tensor in the engine's dtype.

        Rows are its tokens, [n, ...], flat or in the point's own shape; A9.lse is [heads, n]; A6, A9 and A10 are
        [heads, n, K], with the sink's column of A9 last. The K keys are the last K positions, or those in `keys`, where -1
        marks a column that is not a key. Logits of fewer tokens than were fed, as engines compute them for
        generation, are left out.
        """
        if point not in kinds():
            raise TraceError(f'"{point}" is not a point: known are {", ".join(kinds())}')
        name = f"{layer:02d}.{point}" if kinds()[point].layered else point
        if self.n == 0:
            raise TraceError(f"{name}: it was computed before any token was fed")
        if not self.wants(point, layer if kinds()[point].layered else None):
            return
        array = as_array(name, values)
        if point == "F2" and array.ndim and len(array) < self.n:
            return
        pieces = self.pieces.setdefault(name, [])
        if pieces and pieces[-1][0] == self.first:
            raise TraceError(f"{name}: it was computed twice for the token at position {self.before + self.first}")
        shaped = (self.by_keys(name, point, array, keys) if kinds()[point].by_head else
                  self.by_heads(name, array) if kinds()[point].a_number else self.by_tokens(name, array))
        pieces.append((self.first, shaped))

    def by_tokens(self, name: str, array: Array) -> Array:
        """[n, ...] in the model's shape."""
        expected = (self.n, *self.model.shape(name, self.n)[1:]) if self.model else (self.n, *array.shape[1:])
        if array.ndim == 0 or len(array) != self.n or array.size != int(np.prod(expected)):
            raise TraceError(f"{name}: expected shape {list(expected)} of {self.n} tokens, found {list(array.shape)}")
        return array.reshape(expected).copy()

    def by_heads(self, name: str, array: Array) -> Array:
        """[heads, n]: one number of each."""
        heads = self.model.shape(name, self.n)[0] if self.model else len(array)
        if array.shape != (heads, self.n):
            raise TraceError(f"{name}: expected shape [{heads}, {self.n}], found {list(array.shape)}")
        return array.copy()

    def by_keys(self, name: str, point: str, array: Array, keys: Sequence[int] | None) -> Array:
        """[heads, n, all keys so far (+ 1)], from the columns of some of them."""
        sink, end = int(kinds()[point].sink), self.before + len(self.tokens)
        heads = self.model.shape(name, self.n)[0] if self.model else (array.shape[0] if array.ndim else 0)
        if array.ndim != 3 or array.shape[:2] != (heads, self.n) or array.shape[2] < 1 + sink:
            raise TraceError(f"{name}: expected shape [{heads}, {self.n}, keys{' + 1' if sink else ''}], found "
                             f"{list(array.shape)}")
        n_keys = array.shape[2] - sink
        at = np.arange(end - n_keys, end) if keys is None else np.asarray(keys)
        if len(at) != n_keys or at.max(initial=-1) >= end or at.min(initial=0) < -1:
            raise TraceError(f"{name}: expected columns of at most {end} keys, found {n_keys}")
        whole = np.zeros((heads, self.n, end + sink), array.dtype)
        whole[..., at[at >= 0]] = array[..., :n_keys][..., at >= 0]
        if sink:
            whole[..., end] = array[..., n_keys]
        return whole

    @freeing
    def whole(self, name: str) -> Array | None:
        """A tensor of all tokens, or None if some piece lacks it."""
        kind = kinds()[name.split(".", 1)[1] if name[0].isdigit() else name]
        arrays = [array for _, array in self.pieces[name]]
        if sum(array.shape[int(kind.by_head or kind.a_number)] for array in arrays) != len(self.tokens):
            return None
        if len({array.dtype for array in arrays}) > 1:
            raise TraceError(f"{name}: expected one dtype, found {', '.join(sorted({str(a.dtype) for a in arrays}))}")
        if not kind.by_head:
            return np.concatenate(arrays, axis=int(kind.a_number))
        n, keys, sink = len(self.tokens), self.before + len(self.tokens), int(kind.sink)
        found = np.zeros((arrays[0].shape[0], n, keys + sink), arrays[0].dtype)
        for first, array in self.pieces[name]:
            end = first + array.shape[1]
            seen = self.before + end
            found[:, first:end, :seen] = array[..., :seen]
            if sink:
                found[:, first:end, keys] = array[..., seen]
        return found

    def keep_cached(self, point: str, values: Any, layer: int) -> None:
        """Copies the keys or values of the positions just before the first token, [m, kv_heads, head_dim]."""
        name = f"{layer:02d}.{point}"
        if self.wants(point, layer):
            self.cached[name] = as_array(name, values).copy()

    def behind_cached(self, name: str, array: Array) -> Array:
        """The rows of the tokens, behind those of earlier positions if there are any."""
        before = self.cached.get(name)
        if before is None:
            return array
        if before.dtype != array.dtype or before.shape[1:] != array.shape[1:]:
            raise TraceError(f"{name}: expected a cache of {array.dtype} {list(array.shape[1:])}, found {before.dtype} "
                             f"{list(before.shape[1:])}")
        return np.concatenate([before, array])

    def trace(self, metadata: Mapping[str, str]) -> Trace:
        """All pieces as whole tensors, with tokens and positions; without tensors that some piece lacks."""
        if not self.tokens:
            raise TraceError("the model was not called: there is nothing to trace")
        found = {name: self.behind_cached(name, array) for name in self.pieces
                 if (array := self.whole(name)) is not None}
        tokens = as_tokens(np.asarray(self.tokens))
        positions = np.arange(self.before, self.before + len(tokens), dtype=np.int32)
        if self.gradients is not None:
            found.update({gradient_name(name): array for name in self.gradients.pieces
                          if (array := self.gradients.whole(name)) is not None})
        if self.ends is not None:
            found["cu_seqlens"] = np.array(self.ends, np.int32)
            positions = np.concatenate([np.arange(rows, dtype=np.int32) for rows in np.diff(self.ends)])
        return Trace({**found, "tokens": tokens, "positions": positions}, {"calls": self.said_calls(), **metadata})

    def said_calls(self) -> str:
        """The metadata `calls`: "16,16,12", "36,8x1"; of sequences end to end, in one call, a number for each."""
        if self.ends is not None:
            return ";".join(str(rows) for rows in np.diff(self.ends) if rows > 0)
        runs = [(length, len(list(each))) for length, each in itertools.groupby(self.calls)]
        return ",".join(str(length) if times == 1 else f"{times}x{length}" for length, times in runs)
