# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The points of a trace, as the library's table has them: which are a layer's, and what their rows are."""
from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable

from sinkproof._library import Error, names
from sinkproof._model import Model


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a point's tensor is, whatever the model."""

    layered: bool  # its name carries a layer, "03.A9"
    by_head: bool  # [heads, n, keys]; else, unless it is a number per head, [n, ...] with a row per token
    sink: bool     # one more column after the keys: the sink's
    a_number: bool = False  # [heads, n]: one of each head and token


def has_layer(model: Model, point: str) -> bool:
    try:
        return bool(model.shape(f"00.{point}", 1))
    except Error:
        return False


@functools.lru_cache(maxsize=None)
def kinds() -> dict[str, Kind]:
    """Every point without its layer, in the order of the forward pass; read from the smallest models that have all."""
    found = {}
    with Model("synthetic:tiny") as routed, Model("synthetic:tiny-qwen3,layers=1") as normed:
        # different from every width
        n = 1 + max(int(model.number(name)) for name in ("n_heads", "hidden", "vocab") for model in (routed, normed))
        for point in names("point_names"):
            model = normed if point.startswith("A3.") else routed
            shape = model.shape(point, n)
            heads = shape[0] != n
            found[point] = Kind(has_layer(model, point), heads and len(shape) == 3, heads and shape[-1] == n + 1,
                                heads and len(shape) == 2)
    return found


def without_layer(name: str) -> str:
    """The name without its layer: "A9" for "03.A9"."""
    return re.sub(r"^[0-9]+\.", "", name)


def gradient_name(name: str) -> str:
    """The name of the gradient of a point: "03.dA9" for "03.A9"."""
    layer, dot, point = name.partition(".") if name[0].isdigit() else ("", "", name)
    return f"{layer}{dot}d{point}"


def of_gradient(name: str) -> str | None:
    """The point whose gradient has this name, without its layer: "A9" for "03.dA9"; None if it is of no point."""
    point = without_layer(name)
    return point[1:] if point.startswith("d") and point[1:] in kinds() else None


def is_gradient(name: str) -> bool:
    """Whether a name is that of a gradient, of a point or of a weight."""
    return without_layer(name).startswith("d")


def names_point(word: str, name: str) -> bool:
    """Whether a word of a list of points names this one: "A9" in every layer, "03.A9" in one, "A4" for A4.q."""
    return any(known == word or known.startswith(word + ".") for known in (name, without_layer(name)))


def chosen_words(points: Iterable[str]) -> tuple[str, ...]:
    """The words of a list of points; raises Error if one names no point."""
    words = tuple(points)
    for word in words:
        if not any(names_point(without_layer(word), point) for point in kinds()):
            raise Error(f'unknown point "{word}": known are {", ".join(kinds())}, and each with its layer, "03.A9"')
    return words
