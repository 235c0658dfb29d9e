# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The sequences of a batch, each with a record of its own, over any number of calls of the model.

A slot is a column of the batch, as in a cache or a mask. Some slots of a row are padding; the others
are its tokens, at positions 0, 1, 2, ... A call whose arguments are all understood and that has no
past begins new sequences; a call with a cache continues the sequences of the cache. A cache that was
filled before the trace began has sequences that begin behind it.
"""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from sinkproof._trace import TraceError
from sinkproof.adapters._calls import Call
from sinkproof.adapters._record import Record
from sinkproof.adapters._torch import Tensor


PACKED = ("cu_seq_lens_q", "cu_seq_lens_k")  # of rows that are packed end to end, for kernels that take bounds


class Batch:
    """The rows of one batch: from their beginning, or behind the slots `past_bn`, marked where they are no padding."""

    def __init__(self, records: list[Record], cache: Any, past_bn: Tensor | None = None) -> None:
        self.records, self.cache = records, cache                # None: the current call has no cache
        self.positions: list[list[int]] = [[] for _ in records]  # of each slot; -1: padding
        self.real: list[list[int]] = [[] for _ in records]       # columns of the current call that are tokens
        self.n = 0                                               # columns of the current call
        for record, positions, past_n in zip(records, self.positions, past_bn if past_bn is not None else ()):
            for real in past_n.tolist():
                positions.append(record.before if real else -1)
                record.before += bool(real)

    def of_gradients(self) -> Batch:
        """The same rows, whose records keep the gradients of the current call."""
        gradients = copy.copy(self)
        gradients.records = [record.of_gradients() for record in self.records]
        return gradients

    def padding_has(self, values: Tensor) -> bool:
        """Whether rows of padding are anything but 0 in a tensor [batch, n, ...]; of other shapes it is not asked."""
        if tuple(values.shape[:2]) != (len(self.records), self.n):
            return False
        return any(bool(values[b, [i for i in range(self.n) if i not in real]].any())
                   for b, real in enumerate(self.real) if len(real) < self.n)

    @property
    def slots(self) -> int:
        return len(self.positions[0])

    def begin(self, ids_bn: Tensor, real_bn: Tensor) -> None:
        """Starts a call with its tokens; real_bn marks those that are not padding."""
        self.n = ids_bn.shape[1]
        for b, record in enumerate(self.records):
            self.real[b] = [i for i, real in enumerate(real_bn[b].tolist()) if real]
            position = record.before + len(record.tokens)
            for real in real_bn[b].tolist():
                self.positions[b].append(position if real else -1)
                position += bool(real)
            if self.real[b]:
                record.begin(ids_bn[b, self.real[b]].tolist())

    def check_positions(self, positions_bn: Tensor) -> None:
        """The positions that the model was given must count from each sequence's start."""
        if positions_bn.dim() != 2 or positions_bn.shape[0] not in (1, len(self.records)) or positions_bn.shape[1] != self.n:
            raise TraceError(f"expected position_ids [{len(self.records)}, {self.n}] or [1, {self.n}], found "
                             f"{list(positions_bn.shape)}")
        for b in range(len(self.records)):
            said = positions_bn[b if len(positions_bn) > 1 else 0].tolist()
            for i, (told, held) in enumerate(zip(said, self.positions[b][-self.n:])):
                if held >= 0 and told != held:
                    raise TraceError(f"expected position {held} of token {i} in row {b} of the batch, found {told} "
                                     "(padding on the left needs position_ids that count tokens alone)")

    def keep(self, point: str, values: Tensor, layer: int | None = None) -> None:
        """Keeps a point whose rows are tokens, [batch, n, ...]."""
        for b, record in enumerate(self.records):
            if self.real[b] and record.wants(point, layer):
                record.keep(point, values[b, self.real[b]], layer)

    def first_slot(self, n_keys: int) -> int:
        """The slot of the first of K columns of keys that a cache returns.

        A cache with room for all keys has slot j in column j, and empty columns after the keys; a sliding
        cache has the last K slots. If no cache was seen and there are more columns than slots, the past
        came in some other way.
        """
        if self.cache is None and n_keys > self.slots:
            raise TraceError(f"expected at most {self.slots} keys where no cache was seen, found {n_keys}: a past came in "
                             "a way that is not understood")
        return max(self.slots - n_keys, 0)

    def new_keys(self, keys_bgkd: Tensor) -> Tensor:
        """The current call's keys, [batch, n, kv_heads, head_dim]."""
        end = self.slots - self.first_slot(keys_bgkd.shape[2])
        return keys_bgkd[:, :, end - self.n:end].transpose(1, 2)

    def keep_cached(self, point: str, values_bgkd: Tensor, layer: int) -> None:
        """Keeps the keys or values of the slots before the trace, from the columns that a cache returns."""
        first = self.first_slot(values_bgkd.shape[2])
        for b, record in enumerate(self.records):
            columns = [i for i, position in enumerate(self.positions[b][first:]) if 0 <= position < record.before]
            if columns and record.first == 0:
                record.keep_cached(point, values_bgkd[b][:, columns].transpose(0, 1), layer)

    def keep_by_head(self, point: str, values: Tensor, layer: int, sink: bool) -> None:
        """Keeps [batch, heads, n, K], with the sink's column if there is one; the cache determines K."""
        n_keys, end = values.shape[-1] - int(sink), self.slots
        first = self.first_slot(n_keys)
        for b, record in enumerate(self.records):
            if self.real[b] and record.wants(point, layer):
                keys = self.positions[b][first:] + [-1] * (first + n_keys - end)
                record.keep(point, values[b][:, self.real[b]], layer, keys)


class Batches:
    """All sequences of a block, in the order of their first call."""

    def __init__(self, new_record: Callable[[], Record]) -> None:
        self.new_record = new_record
        self.records: list[Record] = []
        self.known: dict[int, Batch] = {}  # by the id of their cache,
        self.kept_alive: dict[int, Any] = {}  # which is unique while the cache lives

    def begin(self, ids_bn: Tensor, cache: Any, past_bn: Tensor) -> Batch:
        """The batch of a call: new rows, or those of the cache. past_bn marks the cache's slots that are no padding."""
        past = past_bn.shape[1]
        known = self.known.get(id(cache)) if past else None
        if known is None:
            rows = [self.new_record() for _ in range(len(ids_bn))]
            self.records += rows
            batch = Batch(rows, cache, past_bn)
            self.remember(cache, batch)
            return batch
        if known.slots != past or len(known.records) != len(ids_bn):
            raise TraceError(f"expected the token at position {known.slots} of the cache's sequences next, found one with "
                             f"{past} before it")
        known.cache = cache
        return known

    def remember(self, cache: Any, batch: Batch) -> None:
        """Records that a cache, passed in or returned by the model, holds the rows of this batch."""
        if cache is not None:
            self.known[id(cache)] = batch
            self.kept_alive[id(cache)] = cache


def packed_ends(call: Call, past: int, ids: Tensor) -> list[int] | None:
    """The bounds of the sequences in a row that is packed: whose positions restart, as transformers itself reads it, where
    no mask and no past is given; None: it is one sequence. Bounds that are given for a kernel must be the same."""
    said, n = call.get("position_ids"), ids.shape[1]
    told = {name: [int(end) for end in call.get(name).tolist()] for name in PACKED if call.get(name) is not None}
    ends = None
    if said is not None and said.shape == (1, n) and not past and call.get("attention_mask") is None:
        positions = said[0].tolist()
        begins = [i for i in range(n) if i == 0 or positions[i] != positions[i - 1] + 1]
        if len(begins) > 1 and not any(positions[i] for i in begins):
            ends = [*begins, n]
    for name, found in told.items():
        if found != (ends or [0, n]):
            raise TraceError(f"expected {name} {ends or [0, n]}, where the positions restart, found {found[:9]}")
    return ends
