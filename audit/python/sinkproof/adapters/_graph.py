# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Shared by adapters of exported graphs: tensors inside a graph become outputs and are read call by call.

A checkpoint is exported into a folder, which may be kept; the tensors between its operations are made
outputs, and a runtime computes them with the logits, with keys and values cached from call to call.
"""
from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from sinkproof.adapters import Adapter, Record, TraceError

Place = tuple[str, "int | None"]  # a point, and its layer


def refuse_input(name: str, known: Sequence[str]) -> None:
    """Refuses an unknown input of a graph: filled with arbitrary values it could start another sequence."""
    raise TraceError(f"the graph's input {name} is not understood: expected one of {', '.join(known)}")


class GraphAdapter(Adapter):
    """A subclass defines `export`, `infer`, and `keep` if a tensor's rows are not tokens."""

    def __init__(self, model: str, options: argparse.Namespace) -> None:
        super().__init__(model, options)
        self.work = tempfile.TemporaryDirectory()
        self.seen = 0  # tokens that were fed

    def config(self, key: str) -> Any:
        with open(os.path.join(self.model, "config.json"), encoding="utf-8") as file:
            return json.load(file)[key]

    def exported(self, kept: str | None, name: str) -> str:
        """The path of the graph: the stored one in a folder, or a new one."""
        folder = kept or os.path.join(self.work.name, "graph")
        if not os.path.isfile(os.path.join(folder, name)):
            self.export(folder)
        return os.path.join(folder, name)

    def export(self, folder: str) -> None:
        """Writes the checkpoint's graph to the folder."""
        raise NotImplementedError

    def infer(self, given: dict[str, Any]) -> dict[Place, Any]:
        """One call of the runtime with its inputs by name; returns its values by place."""
        raise NotImplementedError

    def feed(self, tokens: Sequence[int], record: Record) -> None:
        record.begin(tokens)
        end = self.seen + len(tokens)
        values = self.infer({"input_ids": np.array([list(tokens)], np.int64),
                             "attention_mask": np.ones((1, end), np.int64),
                             "position_ids": np.arange(self.seen, end)[None]})
        self.seen = end
        for place in values:
            self.keep(record, place, values, len(tokens))

    def keep(self, record: Record, place: Place, values: dict[Place, Any], n: int) -> None:
        """Keeps the rows of n tokens."""
        rows = values[place].reshape(n, -1)
        record.keep(place[0], rows.astype(np.int32) if place[0] == "M3" else rows, place[1])

    def close(self) -> None:
        self.work.cleanup()
