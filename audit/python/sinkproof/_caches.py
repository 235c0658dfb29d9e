# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Caches of eight bits: keys and values as codes and scales, and the policy that declares them (bound.scaled)."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from sinkproof._arrays import CODES
from sinkproof._library import Error

Numbers = npt.NDArray[np.float32]
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "int8": 127.0}
SCALES = ("tensor", "head", "token-head")
SMALLEST = np.float32(2.0 ** -126)  # a scale below it has no quotient


@dataclasses.dataclass(frozen=True)
class Cache:
    """Codes, and what scales them: "tensor", "head", "token-head", a number, or None: no scale, that is 1."""

    code: str
    scales: str | float | None

    def declared(self, policy: str) -> str:
        """The policy of an engine with this cache."""
        scales = self.scales
        said = f"({scales if isinstance(scales, str) else str(np.float32(scales))})" if scales is not None else ""
        return f"{policy},A5.k={self.code}{said},A11.v={self.code}{said}"

    def scale_of(self, x: Numbers, largest: Numbers) -> Numbers:
        """[1], [heads], or [keys, heads] for a scale of each token and head; `largest` is [heads], of all passes."""
        if self.scales is None or not isinstance(self.scales, str):
            return np.full(1, self.scales or 1, np.float32)
        if self.scales == "token-head":
            largest = np.abs(x).max(axis=2)
        size = largest.max(keepdims=True) if self.scales == "tensor" else largest
        scale = size / np.float32(LARGEST[self.code])
        if ((size > 0) & (scale < SMALLEST)).any():
            raise NotImplementedError  # no engine has such a scale
        return np.where(size > 0, scale, np.float32(1)).astype(np.float32)

    def quantised(self, x: Numbers, largest: Numbers) -> tuple[Numbers, Numbers]:
        """The codes as numbers [keys, heads, dim], and their scales."""
        scale, most = self.scale_of(x, largest), np.float32(LARGEST[self.code])
        by: Any = scale if scale.shape == (1,) else scale[..., None]
        codes = np.clip(x / by, -most, most)
        if self.code == "int8":
            codes = np.rint(codes) + np.float32(0)  # an integer has no -0
        return codes.astype(CODES[self.code]).astype(np.float32), scale


def cache_of(code: str | None, scales: str | float | None) -> Cache | None:
    """Of the arguments of a drill."""
    if code is None:
        if scales is not None:
            raise Error(f"scales={scales!r} asks for a cache of eight bits: cache=\"e4m3\"")
        return None
    if code not in LARGEST:
        raise Error(f"cache: expected {', '.join(LARGEST)}, found {code!r}")
    if code == "int8" and scales is None:
        raise Error(f"a cache in int8 has scales: expected {', '.join(SCALES)} or a number, found None")
    if isinstance(scales, str) and scales not in SCALES:
        raise Error(f"scales: expected {', '.join(SCALES)} or a number, found {scales!r}")
    if not isinstance(scales, (str, type(None))):
        scales = float(np.float32(scales))
        if not 2.0 ** -126 <= scales <= 2.0 ** 100:
            raise Error(f"scales: expected a number from 2^-126 to 2^100, found {scales!r}")
    return Cache(code, scales)
