# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Arrays of other libraries: made from numbers in float32, on a device, and read back."""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sinkproof._library import Error
from sinkproof._trace import as_array

Array = Any  # of any library
Numbers = npt.NDArray[np.float32]
WORDS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
SHORT = {"bf16": "BF16", "f16": "F16", "f32": "F32", **{word: name for name, word in WORDS.items()}}
NARROW: dict[str, npt.DTypeLike] = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32}
CODES: dict[str, npt.DTypeLike] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "int8": np.int8}
ALL = {**NARROW, **CODES}
CODE_WORDS = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "int8": "int8"}


def numpy_array(x: npt.NDArray[Any], dtype: str, device: Any) -> Array:
    if device is not None:
        raise Error(f"numpy's arrays are on no device, found {device!r}: say whose they are (like=\"torch\")")
    return x.astype(ALL.get(dtype, x.dtype))


def torch_array(x: npt.NDArray[Any], dtype: str, device: Any) -> Array:
    import torch
    kind = getattr(torch, {**WORDS, **CODE_WORDS, "I32": "int32", "I64": "int64"}[dtype])
    return torch.from_numpy(x.copy()).to(device=device, dtype=kind)


def jax_array(x: npt.NDArray[Any], dtype: str, device: Any) -> Array:
    import jax
    return jax.device_put(x.astype(ALL.get(dtype, x.dtype)), device)


def cupy_array(x: npt.NDArray[Any], dtype: str, device: Any) -> Array:
    import cupy
    if dtype == "BF16":
        raise Error("CuPy has no arrays of bfloat16: take a policy in f16 or f32, or dtype=\"f32\"")
    if dtype in ("e4m3", "e5m2"):
        raise Error(f"CuPy has no arrays of {dtype}: take cache=\"int8\", or make the arrays yourself (make)")
    with cupy.cuda.Device(device):
        return cupy.asarray(x.astype(ALL.get(dtype, x.dtype)))


def mlx_array(x: npt.NDArray[Any], dtype: str, device: Any) -> Array:
    import mlx.core as mx
    if device is not None:
        raise Error(f"MLX's arrays are on no device of their own, found {device!r}")
    if dtype in ("e4m3", "e5m2"):
        raise Error(f"MLX has no arrays of {dtype}: take cache=\"int8\", or make the arrays yourself (make)")
    return mx.array(x).astype(getattr(mx, {**WORDS, **CODE_WORDS}.get(dtype, "int32")))


MAKERS: dict[str, Callable[[npt.NDArray[Any], str, Any], Array]] = {
    "numpy": numpy_array, "torch": torch_array, "jax": jax_array, "cupy": cupy_array, "mlx": mlx_array}
ALSO = {"jaxlib": "jax", "jnp": "jax", "cp": "cupy", "mx": "mlx", "np": "numpy", "ml_dtypes": "numpy"}


def library_named(word: str) -> str | None:
    root = word.split(".")[0].split("[")[0]
    name = ALSO.get(root, root)
    return name if name in MAKERS else None


def library_of(kernel: Callable[..., Any], like: Any) -> str:
    """Whose arrays a kernel takes: `like` (a name, a module or an array), or what its annotations name, or numpy."""
    if like is not None:
        word = like if isinstance(like, str) else getattr(like, "__name__", type(like).__module__)
        found = library_named(word)
        if found is None:
            raise Error(f"like: expected {', '.join(MAKERS)}, or a module or an array of one of them, found {like!r}")
        return found
    try:
        annotations = [p.annotation for p in inspect.signature(kernel).parameters.values()]
    except (TypeError, ValueError):
        annotations = []
    for given in annotations:
        if given is inspect.Parameter.empty:
            continue
        found = library_named(given if isinstance(given, str) else getattr(given, "__module__", ""))
        if found is not None:
            return found
    return "numpy"


def read_numbers(name: str, value: Array) -> Numbers:
    """The numbers of an array of any library, in float32."""
    if "mlx.core" in sys.modules and isinstance(value, sys.modules["mlx.core"].array):
        value = np.array(value.astype(sys.modules["mlx.core"].float32))
    return as_array(name, value).astype(np.float32)
