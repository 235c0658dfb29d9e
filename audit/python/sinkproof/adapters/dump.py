# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A dump of any engine, .npz or .safetensors with names of its own, read with a map: chapter 19 of the book.

A source is the name of an array in the file. `tokens` may be one of them, or an argument.
"""
from __future__ import annotations

import argparse
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sinkproof._model import Model, opened
from sinkproof._trace import CACHED, DTYPES, Array, Trace, TraceError, as_tokens
from sinkproof.adapters import Adapter, Record
from sinkproof.adapters._map import Line, Map


def read_npz(path: str) -> dict[str, Callable[[], Array]]:
    """The arrays of a .npz, each read on demand; objects are refused."""
    file = np.load(path, allow_pickle=False)
    if not hasattr(file, "files"):
        raise ValueError("expected arrays by name, found a single one")
    return {name: functools.partial(file.__getitem__, name) for name in file.files}


def read_safetensors(path: str) -> dict[str, Callable[[], Array]]:
    """The arrays of a .safetensors; its header is checked against the file's size."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ValueError(f"expected a header within {size} bytes, found a length of {length}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("expected a header of tensors by name")
    header.pop("__metadata__", None)
    return {name: functools.partial(tensor_at, path, name, said, 8 + length, size) for name, said in header.items()}


def tensor_at(path: str, name: str, said: Any, start: int, size: int) -> Array:
    try:
        dtype, shape, (begin, end) = DTYPES[said["dtype"]], [int(d) for d in said["shape"]], said["data_offsets"]
        size_said = int(np.prod(shape, dtype=object)) * dtype.itemsize
        good = min([begin, *shape], default=0) >= 0 and size_said == end - begin
    except (KeyError, TypeError, ValueError, OverflowError):
        good = False
    if not good or start + end > size:
        raise TraceError(f"{path}: {name}: expected dtype, shape and offsets that fit each other and the file of {size} "
                         f"bytes, found {json.dumps(said)[:200]}")
    with open(path, "rb") as file:
        file.seek(start + begin)
        return np.frombuffer(file.read(end - begin), dtype).reshape(shape)


READERS = {".npz": read_npz, ".safetensors": read_safetensors}


def said_of(error: Exception) -> str:
    """The exception as one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


class Dump:
    """A file of arrays, and the map that turns them into points."""

    def __init__(self, path: str, map: Map) -> None:
        self.path, self.map = path, map
        reader = READERS.get(os.path.splitext(path)[1])
        if reader is None:
            raise TraceError(f"{path}: expected a file {' or '.join(READERS)}")
        try:
            self.arrays = reader(path)
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror or error}") from None
        except Exception as error:  # any exception of numpy or json on an untrusted file
            raise TraceError(f"{path}: {said_of(error)}") from None

    def array(self, name: str, line: Line) -> Array:
        if name not in self.arrays:
            known = ", ".join(sorted(self.arrays)[:8]) + (", ..." if len(self.arrays) > 8 else "")
            raise TraceError(f"{line.where}: {self.path} has no array {name}: it has {known}")
        try:
            return self.arrays[name]()  # unchanged: a step may reinterpret its bits
        except TraceError:
            raise
        except Exception as error:
            raise TraceError(f"{self.path}: {name}: {said_of(error)}") from None

    def tokens(self) -> Sequence[int]:
        line = self.map.beside.get("tokens")
        if line is None:
            raise TraceError(f"{self.path}: expected --tokens, or a line tokens = NAME in the map")
        found = self.map.points(line, [self.array(name, line) for name in line.sources], -1)[0][1]
        tokens: list[int] = as_tokens(found).tolist()
        return tokens

    def first_position(self, n: int) -> int:
        """The position of the first token, by the positions that the map names: those of one sequence."""
        line = self.map.beside.get("positions")
        if line is None:
            return 0
        found = self.map.points(line, [self.array(name, line) for name in line.sources], n)[0][1]
        first = int(found.reshape(-1)[0]) if found.size and found.dtype.kind in "iu" else 0
        if first < 0 or not np.array_equal(found, np.arange(first, first + n)):
            raise TraceError(f"{line.where}: a trace holds one sequence: expected {n} positions that follow each other, "
                             f"found {found.reshape(-1).tolist()[:9]} {list(found.shape)}")
        return first

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        """Keys and values may have more rows than tokens: those of the positions before the first."""
        n = len(tokens)
        record.before = self.first_position(n)
        record.begin(tokens)
        for line in self.map.lines:
            arrays = [self.array(name, line) for name in line.sources]
            for point, values in self.map.points(line, arrays, n):
                if line.layer is not None and point in CACHED and n < len(values) <= record.before + n:
                    record.keep_cached(point, values[:-n], line.layer)
                    values = values[-n:]
                record.keep(point, values, line.layer)


def from_dump(path: str | os.PathLike[str], map: str | os.PathLike[str], checkpoint: Model | str | os.PathLike[str],
              tokens: Sequence[int] | None = None, *, metadata: Mapping[str, str] | None = None) -> Trace:
    """The trace in a .npz or .safetensors file with other names: chapter 19 describes the map.

    `tokens` are those of the file if the map names them. `metadata` is as in Trace. Raises Error, one
    sentence with the line of the map, on anything that does not fit.
    """
    model = opened(checkpoint)
    dump, record = Dump(os.fspath(path), Map(os.fspath(map), model)), Record(model)
    dump.feed(list(tokens) if tokens is not None else dump.tokens(), record)
    return record.trace({"engine": os.path.basename(path), **(metadata or {})})


class Engine(Adapter):
    title = "a dump of any engine, by a map"
    in_pieces = False
    wants_tokens = False
    wants_checkpoint = True

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--map", required=True, metavar="MAP", help="which array is which point")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        self.dump = Dump(model, Map(options.map, Model(options.checkpoint)))

    def tokens(self) -> Sequence[int]:
        return self.dump.tokens()

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        self.dump.feed(tokens, record)

    def metadata(self) -> dict[str, str]:
        return {"engine": os.path.basename(self.dump.path)}
