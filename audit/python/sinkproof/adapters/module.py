# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Any torch module, with a map that names its modules as points: chapter 19 of the book.

    with sinkproof.trace(module, map="mine.map", checkpoint=directory) as trace:
        module(tokens)

A source is the path of a module, "." for the whole, and a selector: ":out" (the default), ":out[1]",
":out[logits]", ":in", ":in[1]", ":in(positions)". `tokens` is an input and begins a piece; with
`positions` beside it a piece may continue the previous sequence. Inputs are bound by the module's own
signature: ":in" is its first parameter, ":in[1]" its second, ":in(positions)" the one of that name,
however they were passed. A module that several layers share belongs to them in the order of its calls.
"""
from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sinkproof._model import Model
from sinkproof._trace import Array, TraceError, as_array
from sinkproof.adapters import Adapter, Record
from sinkproof.adapters._calls import Call
from sinkproof.adapters._map import Line, Map
from sinkproof.adapters._torch import Hooks, Module

SOURCE = re.compile(r"(?P<path>[^:]+)(?::(?P<side>in|out)(?:\[(?P<index>\w+)\]|\((?P<keyword>\w+)\))?)?")


class Source:
    """A module, and the selected part of its call."""

    def __init__(self, text: str, line: Line, root: Module) -> None:
        found = SOURCE.fullmatch(text)
        if not found or (found["keyword"] and found["side"] != "in"):
            raise TraceError(f"{line.where}: expected PATH, PATH:out[1], PATH:in, PATH:in[1] or PATH:in(name), found "
                             f"'{text}'")
        self.text, self.line, self.is_input = text, line, found["side"] == "in"
        self.index, self.keyword = found["index"], found["keyword"]
        try:
            self.module = root if found["path"] == "." else root.get_submodule(found["path"])
        except AttributeError as error:
            raise TraceError(f"{line.where}: no module {found['path']}: {error}") from None

    def taken(self, call: Call | None, output: Any) -> Array:
        """The selected tensor of one call: an argument, or part of the output."""
        value = output
        if call is not None:
            value = call.get(self.keyword) if self.keyword else (call.places if self.index else call.first())
        if self.index is not None:
            value = element(value, self.index)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        if not hasattr(value, "detach") or not hasattr(value, "shape"):
            raise TraceError(f"{self.line.where}: expected a tensor at {self.text}, found {type(value).__name__}")
        return as_array(self.text, value)


def element(value: Any, index: str) -> Any:
    """An element of a tuple by number, of a dict or an object by name; None if it does not exist."""
    if index.isdecimal():
        return value[int(index)] if isinstance(value, (tuple, list)) and int(index) < len(value) else None
    return value.get(index) if isinstance(value, dict) else getattr(value, index, None)


class Watcher(Hooks):
    """Hooks the modules that a map names during a `with` block; `records` has one record per sequence."""

    def __init__(self, root: Module, map: Map, new_record: Callable[[], Record]) -> None:
        super().__init__()
        self.root, self.map, self.new_record = root, map, new_record
        self.records: list[Record] = []
        self.running: Record | None = None
        self.waiting: dict[int, list[Array | None]] = {}         # arrays of lines with several sources
        # lines of shared modules, by module, source and line of the map
        self.shared: dict[tuple[int, str, str], list[Line]] = {}
        self.calls: dict[tuple[int, str, str], int] = {}          # calls of those in the current piece

    def __enter__(self) -> Watcher:
        if "tokens" not in self.map.beside:
            raise TraceError("the map says nothing of tokens: expected a line as tokens = .:in")
        self.shared.clear()
        sources = [(line, i, Source(text, line, self.root)) for line in self.map.lines
                   for i, text in enumerate(line.sources)]
        self.hook_tokens()
        for line, i, source in sources:
            self.hook(line, i, source)
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def hook_tokens(self) -> None:
        line = self.map.beside["tokens"]
        source = Source(line.sources[0], line, self.root)
        place = self.map.beside.get("positions")
        positions = Source(place.sources[0], place, source.module) if place else None
        if not source.is_input or (positions and not positions.is_input):
            raise TraceError(f"{line.where}: expected an input of a module, found {source.text}")

        def begin(call: Call) -> None:
            tokens = self.map.points(line, [source.taken(call, None)], -1)[0][1]
            if place is None or positions is None:
                if self.records:
                    raise TraceError(f"{line.where}: whether a second call goes on with the sequence or begins another is "
                                     "not known: expected a line positions = SOURCE in the map, or one call")
                self.begin(tokens, np.arange(tokens.size))
            else:
                self.begin(tokens, self.map.points(place, [positions.taken(call, None)], -1)[0][1])
        self.enter(source.module, begin)

    def begin(self, tokens: Array, positions: Array) -> None:
        """Begins a piece of a new sequence, or of the previous one; the first piece may have a past."""
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            raise TraceError(f"tokens: expected whole numbers [n], found {tokens.dtype} {list(tokens.shape)}")
        first = int(positions.reshape(-1)[0]) if positions.size else 0
        if not np.array_equal(positions, np.arange(first, first + len(tokens))):
            raise TraceError(f"positions: expected {len(tokens)} that follow one another from {first} on, found "
                             f"{positions.reshape(-1).tolist()[:9]} {list(positions.shape)}: a piece is of one sequence")
        if first == 0 or self.running is None:
            self.running = self.new_record()
            self.running.before = first
            self.records.append(self.running)
        held = self.running.before + len(self.running.tokens)
        if held != first:
            raise TraceError(f"a trace holds one sequence: expected position {held} next, found {first}")
        self.running.begin(tokens.tolist())
        self.calls.clear()
        self.waiting.clear()

    def hook(self, line: Line, i: int, source: Source) -> None:
        """Hooks one source of a line; if layers share its module, the k-th call belongs to the k-th layer."""
        key = (id(source.module), f"{i}{source.is_input}{source.index}{source.keyword}", line.where)
        self.shared.setdefault(key, []).append(line)
        if len(self.shared[key]) > 1:
            return

        def see(call: Call | None, output: Any) -> None:
            if self.running is None:
                return
            number = self.calls.get(key, 0)
            self.calls[key] = number + 1
            lines = self.shared[key]
            if number >= len(lines):
                raise TraceError(f"{line.where}: expected {len(lines)} calls of {source.text} in a piece, found more")
            self.keep(lines[number], i, source.taken(call, output))

        if source.is_input:
            self.enter(source.module, lambda call: see(call, None))
        else:
            handle = source.module.register_forward_hook(lambda module, inputs, output: see(None, output))
            self.undo.callback(handle.remove)

    def keep(self, line: Line, i: int, array: Array) -> None:
        """Stores a source of a line; with the last one, the line's points are made."""
        assert self.running is not None
        seen = self.waiting.setdefault(id(line), [None] * len(line.sources))
        seen[i] = array.copy() if len(line.sources) > 1 else array
        arrays = [one for one in seen if one is not None]
        if len(arrays) == len(seen):
            for point, values in self.map.points(line, arrays, self.running.n):
                self.running.keep(point, values, line.layer)


class Engine(Adapter):
    title = "a torch module, by a map"
    install = "pip install torch"
    tried = ("torch 2.13.0",)
    packages = ("torch",)
    wants_checkpoint = True

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--map", required=True, metavar="MAP", help="which module is which point")

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        """MODEL is FILE.py:NAME; NAME(checkpoint) returns the module and a function that runs it on tokens."""
        super().__init__(model, options)
        path, _, name = model.rpartition(":")
        spec = importlib.util.spec_from_file_location("watched", path) if path.endswith(".py") else None
        if spec is None or spec.loader is None:
            raise TraceError(f"{model}: expected FILE.py:NAME")
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            self.root, self.run = getattr(module, name)(options.checkpoint)
        except (OSError, AttributeError) as error:
            raise TraceError(f"{model}: {error}") from None
        self.map = Map(options.map, Model(options.checkpoint))
        self.watcher: Watcher | None = None

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        if self.watcher is None:
            self.watcher = Watcher(self.root, self.map, lambda: record)
        with self.watcher:
            self.run(list(tokens))
