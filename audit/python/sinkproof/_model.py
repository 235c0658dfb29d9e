# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A checkpoint, or a synthetic model that needs no disk."""
from __future__ import annotations

import copy
import ctypes
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from sinkproof._library import RANK, SHAPE, Error, Handle, attempt, call, encoded, made, text


def read_weight(model: Any, name: str, layer: int, expert: int) -> npt.NDArray[np.float64]:
    """A weight of the model at the pointer, [rows, cols]."""
    if layer < 0 or expert < 0:
        raise Error(f"{name}: expected a layer and an expert from 0 on, found {layer} and {expert}")
    shape = (ctypes.c_size_t * 2)()
    attempt("model_weight", model, encoded(name), layer, expert, shape, None)
    values = np.empty(tuple(shape), dtype=np.float64)
    attempt("model_weight", model, encoded(name), layer, expert, shape,
            values.ctypes.data_as(ctypes.POINTER(ctypes.c_double)))
    return values


class Model:
    """An open model: `Model("synthetic:tiny")`, `Model("path/of/a/checkpoint")`.

    `spec` is a directory in Hugging Face's or OpenAI's layout, a file NAME.gguf, or
    "synthetic:NAME[,seed=N][,layers=N]" with NAME one of tiny, gpt-oss-20b, gpt-oss-120b, tiny-gpt2, gpt2,
    tiny-llama, tiny-qwen3, gpt2-circuit, gpt2-null or the path of a config.json. Raises Error if a tensor is
    missing, has the wrong shape, or is not finite.

    A model never changes, and any thread may use it. `close`, the end of a `with` block or the end of the
    last reference frees it.
    """

    def __init__(self, spec: str | os.PathLike[str]) -> None:
        self._handle: Handle | None = None
        self._handle = made(lambda place: attempt("model_open", encoded(spec), place), "model_close")

    @property
    def handle(self) -> Handle:
        """The library's handle; raises Error once the model is closed."""
        if self._handle is None:
            raise Error("the model is closed")
        return self._handle

    def close(self) -> None:
        """Frees it, at once or after the last judgement or run that needs it."""
        self._handle = None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sinkproof.Model {self.spec!r}>" if self._handle else "<sinkproof.Model, closed>"

    @property
    def spec(self) -> str:
        """The argument with which it was opened."""
        return text(call("model_spec", self.handle.pointer))

    @property
    def layout(self) -> str:
        """"synthetic", "hf-mxfp4", ..."""
        return text(call("model_layout", self.handle.pointer))

    @property
    def fingerprint(self) -> int:
        """A 64-bit hash of configuration and weights: the same in every container."""
        found = ctypes.c_uint64()
        attempt("model_fingerprint", self.handle.pointer, ctypes.byref(found))
        return found.value

    @property
    def config(self) -> Any:
        """The pointer to its configuration, which the model owns."""
        return call("model_config", self.handle.pointer)

    def number(self, name: str) -> float:
        """One number of the configuration: "n_heads", "head_dim", "rope_theta", ...

        An unknown name raises an Error that lists all names.
        """
        found = ctypes.c_double()
        attempt("config_number", self.config, encoded(name), ctypes.byref(found))
        return found.value

    def slides(self, layer: int) -> bool:
        """Whether the layer sees only the last `window` keys."""
        return layer >= 0 and bool(call("config_slides", self.config, layer))

    def weight(self, name: str, layer: int = 0, expert: int = 0) -> npt.NDArray[np.float64]:
        """One weight as stored, exact in float64: [rows, cols]; a vector has one row.

        Names: attn_norm, w_q, w_k, w_v, b_q, b_k, b_v, sinks, w_o, b_o, mlp_norm, w_router,
        b_router; for each expert w_up, b_up, w_down, b_down (gate rows even, up rows odd);
        embedding, final_norm, unembedding.
        """
        return read_weight(self.handle.pointer, name, layer, expert)

    def shape(self, point: str, n: int) -> tuple[int, ...]:
        """The shape of a point, "A11" or "03.A11", in a trace of n tokens."""
        rank, shape = ctypes.c_size_t(), SHAPE()
        attempt("point_shape", self.config, encoded(point), n, ctypes.byref(rank), shape)
        assert rank.value <= RANK
        return tuple(shape[: rank.value])


def opened(model: Model | str | os.PathLike[str]) -> Model:
    """A model for the callee: opens it, or takes the open one, which stays open when the result is closed."""
    if not isinstance(model, Model):
        return Model(model)
    model.handle  # raises Error if it is closed
    return copy.copy(model)
