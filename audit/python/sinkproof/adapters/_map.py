# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A map: which foreign tensor is which point, and how it is cut and reshaped into the point's shape.

    # a comment
    tokens         = .:in(input_ids)
    A2.q A2.k A2.v = model.layers.{L}.attn.qkv | split 1 heads*head_dim kv_heads*head_dim kv_heads*head_dim
    A13            = model.layers.{L}.mlp_norm:in
    M6             = model.layers.{L}.gate & model.layers.{L}.up | interleave

A line has points, "=", a source, and steps after "|". {L} is the layer, {LL} the layer with at least
two digits, {L+1} the next layer; a point with its layer, "03.A9", applies to that layer only and
overrides other lines. Steps take sizes, which are numbers and words of the model: n, heads, kv_heads,
group (heads of a key head), head_dim, hidden, inter, experts, chosen, vocab, and products of them.
"""
from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sinkproof._model import Model
from sinkproof._points import kinds, without_layer
from sinkproof._trace import Array, TraceError

WORDS = {"heads": "n_heads", "kv_heads": "n_kv_heads", "head_dim": "head_dim", "hidden": "hidden", "inter": "inter",
         "experts": "n_experts", "chosen": "n_chosen", "vocab": "vocab"}
BESIDE = ("tokens", "positions")
LAYER = re.compile(r"\{(LL?)([+-][0-9])?\}")  # {L}, {LL}, {L+1}
STEPS = "reshape SIZES, transpose AXES, split AXIS SIZES, at AXIS INDEX, interleave, as bfloat16"


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of a map: the points that it defines, in `layer` or in every layer."""

    points: tuple[str, ...]
    layer: int | None
    sources: tuple[str, ...]
    steps: tuple[str, ...]
    where: str  # "mine.map, line 3", for errors

    def of(self, layer: int) -> Line:
        """The line with the layer in place of {L}."""
        def filled(text: str) -> str:
            return LAYER.sub(lambda found: f"{layer + int(found[2] or 0):0{len(found[1])}d}", text)
        return dataclasses.replace(self, layer=layer, sources=tuple(map(filled, self.sources)),
                                   steps=tuple(map(filled, self.steps)))


def parsed_line(text: str, where: str) -> Line:
    left, equals, right = text.partition("=")
    sources, *steps = (part.strip() for part in right.split("|"))
    names = left.split()
    if not equals or not names or not sources or "" in steps:
        raise TraceError(f"{where}: expected POINT = SOURCE | STEP, found '{text}'")
    for name in names:
        if without_layer(name) not in kinds() and name not in BESIDE:
            raise TraceError(f"{where}: '{name}' is not a point: known are {', '.join(kinds())}, tokens and positions")
    if len(names) > 1 and not set(names).isdisjoint(BESIDE):
        raise TraceError(f"{where}: tokens and positions stand alone on a line, found {' '.join(names)}")
    layers = {int(name.split(".")[0]) if name[0].isdigit() else None for name in names}
    if len(layers) > 1:
        raise TraceError(f"{where}: expected points of one layer, found {' '.join(names)}")
    return Line(tuple(without_layer(name) for name in names), layers.pop(),
                tuple(source.strip() for source in sources.split("&")), tuple(steps), where)


class Map:
    """The lines of a map, expanded for each layer of one model."""

    def __init__(self, path: str, model: Model) -> None:
        self.model = model
        self.sizes = {word: int(model.number(name)) for word, name in WORDS.items()}
        self.sizes["group"] = self.sizes["heads"] // self.sizes["kv_heads"]
        try:
            with open(path, encoding="utf-8") as file:
                texts = [line.split("#")[0].strip() for line in file]
        except OSError as error:
            raise TraceError(f"{path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TraceError(f"{path}: expected text") from None
        lines = [parsed_line(text, f"{path}, line {i}") for i, text in enumerate(texts, 1) if text]
        self.beside = {line.points[0]: line for line in lines if line.points[0] in BESIDE}
        alone = {(point, line.layer) for line in lines for point in line.points if line.layer is not None}
        self.lines = [each for line in lines if line.points[0] not in BESIDE for each in self.spelled_out(line)
                      if line.layer is not None or not alone.intersection((point, each.layer) for point in each.points)]
        if not self.lines:
            raise TraceError(f"{path}: expected a line for some point, found none")
        names = [(point, line.layer) for line in self.lines for point in line.points]
        for point, layer in names:
            if names.count((point, layer)) > 1:
                raise TraceError(f"{path}: {point} is named twice" + ("" if layer is None else f" in layer {layer}"))

    def spelled_out(self, line: Line) -> Iterator[Line]:
        """Expands a line for each layer, for the layer that it names, or for a point outside the layers."""
        layered = {kinds()[point].layered for point in line.points}
        has_layer = any(LAYER.search(text) for text in (*line.sources, *line.steps))
        if len(layered) > 1:
            raise TraceError(f"{line.where}: expected points of layers or of the ends, found {' '.join(line.points)}")
        if not layered.pop():
            if has_layer or line.layer is not None:
                raise TraceError(f"{line.where}: {line.points[0]} is of no layer")
            yield line
        elif line.layer is not None:
            yield line.of(line.layer)
        elif has_layer:
            yield from (line.of(layer) for layer in range(int(self.model.number("n_layers"))))
        else:
            raise TraceError(f"{line.where}: expected {{L}} for the layer of {line.points[0]}, or its number before it")

    # -- from foreign tensors to points

    def points(self, line: Line, arrays: Sequence[Array], n: int) -> list[tuple[str, Array]]:
        """The points of a line, from the arrays of its sources, for a piece of n tokens."""
        array = arrays[0]
        if len(arrays) > 1:
            if len({(one.shape[:-1], one.dtype) for one in arrays}) > 1:
                found = " and ".join(f"{one.dtype} {list(one.shape)}" for one in arrays)
                raise TraceError(f"{line.where}: expected tensors that lie side by side, found {found}")
            array = np.concatenate(list(arrays), axis=-1)
        parts = [array]
        for step in line.steps:
            parts = [made for part in parts for made in self.stepped(line, step, part, n)]
        if len(parts) != len(line.points):
            raise TraceError(f"{line.where}: expected {len(line.points)} tensors for {' '.join(line.points)}, found "
                             f"{len(parts)}")
        return [(point, self.unbatched(point, part, n)) for point, part in zip(line.points, parts)]

    def unbatched(self, point: str, array: Array, n: int) -> Array:
        """Removes a leading axis of length one, as of a batch."""
        if point in BESIDE:
            return array.reshape(-1) if array.size == max(array.shape, default=0) else array
        by_head = kinds()[point].by_head
        one = array.ndim > 1 and len(array) == 1
        return array[0] if one and (array.ndim == 4 if by_head else n != 1) else array

    def stepped(self, line: Line, step: str, array: Array, n: int) -> list[Array]:
        """Applies one step to a tensor."""
        word, *texts = step.replace(",", " ").split()
        try:
            if word == "as" and texts == ["bfloat16"] and array.dtype.itemsize == 2:
                return [np.ascontiguousarray(array).view(ml_dtypes.bfloat16).reshape(array.shape)]
            if word == "interleave" and not texts and array.ndim and array.shape[-1] % 2 == 0:
                return [np.stack(np.split(array, 2, axis=-1), axis=-1).reshape(array.shape)]
            sizes = [self.size(text, n, line) for text in texts]
            if word == "reshape" and sizes:
                return [array.reshape(sizes)]
            if word == "transpose" and sizes:
                return [array.transpose(sizes)]
            if word == "at" and len(sizes) == 2:
                return [np.take(array, sizes[1], axis=sizes[0])]
            if word == "split" and len(sizes) > 2 and sum(sizes[1:]) == array.shape[sizes[0]]:
                return np.split(array, np.cumsum(sizes[1:-1]), axis=sizes[0])
        except (ValueError, IndexError):
            pass
        if word not in STEPS.replace(",", "").split():
            raise TraceError(f"{line.where}: '{step}' is not a step: known are {STEPS}")
        meant = " ".join([word, *(str(self.size(text, n, line)) for text in texts if word not in ("as", "interleave"))])
        raise TraceError(f"{line.where}: '{step}' is {meant}, which does not fit {' & '.join(line.sources)}: found "
                         f"{array.dtype} {list(array.shape)}")

    def size(self, text: str, n: int, line: Line) -> int:
        """Evaluates a size: a number, a word, or a product."""
        known = {**self.sizes, "n": n}
        for factor in text.split("*"):
            if factor not in known and not re.fullmatch("-?[0-9]{1,12}", factor):
                raise TraceError(f"{line.where}: expected sizes of numbers and {', '.join(known)}, found '{text}'")
        return math.prod(known[factor] if factor in known else int(factor) for factor in text.split("*"))
