# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A trace: the named points of one forward pass, as arrays in the engine's dtypes."""
from __future__ import annotations

import ctypes
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from sinkproof._library import Error, Handle, View, attempt, call, encoded, made, text
from sinkproof._model import Model, opened
from sinkproof._points import is_gradient, kinds, of_gradient, without_layer

Array = npt.NDArray[Any]
FORMAT = "sinkproof-trace-1"
DTYPES: dict[str, np.dtype[Any]] = {
    "BF16": np.dtype(ml_dtypes.bfloat16), "F16": np.dtype("<f2"), "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"), "I32": np.dtype("<i4"), "I64": np.dtype("<i8")}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# arrays of a trace that are not points
BESIDE = ("tokens", "positions", "cu_seqlens", "cu_seqlens_k", "prefix", "cu_seqlens_prefix", "attention_mask")
CACHED = ("A4.k", "A2.k", "A2.v")  # what later tokens read of earlier ones


class TraceError(Error):
    """One sentence on why something cannot be traced."""


def as_array(name: str, value: Any) -> Array:
    """A dense little-endian array of a dtype that traces allow; a torch tensor's bits are kept.

    An array on a device is copied from it once.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":
            import torch
            value = value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        else:
            value = value.numpy()
    elif hasattr(value, "get") and hasattr(value, "__cuda_array_interface__"):
        value = value.get()  # CuPy's
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        value = from_dlpack(name, value)
    array = np.asarray(value)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)
    if array.dtype not in NAMES:
        raise Error(f"{name}: expected an array of bfloat16, float16, float32, float64, int32 or int64, found "
                    f"{array.dtype}")
    return array


def from_dlpack(name: str, value: Any) -> Array:
    """The numbers of an array that only DLPack reads: NumPy from 2.1 on lets it bring them from a device."""
    try:
        return np.from_dlpack(value, device="cpu") if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise Error(f"{name}: its array cannot be brought to the processor: {error}") from None


class Trace(Mapping[str, Array]):
    """The arrays of a trace by name: `trace["03.A11"]` is [n, heads, head_dim].

    Names and shapes are in chapter 11 of the book. `tokens` is int32 [n]. `positions` follow each
    other, and are 0 .. n - 1 if they are not given; a trace that begins later may have the keys and
    values before it as further rows of A4.k and A2.v, or name all tokens before it, `prefix`, of which
    the judge then computes keys and values. With `cu_seqlens` [m + 1] the rows are those of m sequences
    end to end, each with positions of its own; with `cu_seqlens_k` [m + 1] each has keys and values of
    earlier positions too, in front of its own, and A6, A9 and A10 have their columns. Then `prefix` has
    the tokens before all sequences, one after the other; `cu_seqlens_prefix` [m + 1] says which have none.
    With `tokens` [b, n] and `attention_mask` [b, n] all points have the dimension of the batch in front,
    and padding is not looked at; a mask [b, m], m > n, is one over cached keys and tokens. `metadata` may
    say "lse", "with-sink" or "without-sink", of a log-sum-exp A9.lse. Any subset of the points is a
    trace. `metadata` holds texts: "engine" is your engine's name in the report. A gradient has the name of its point or
    weight behind a d: "03.dA11", "03.dsink", "03.dW.q" (chapter 34). `metadata` may say "loss", what the loss reads:
    "cross-entropy", the mean of the next tokens', or points, as in "F2,03.A9.lse".

    Arrays are bfloat16 (ml_dtypes), float16, float32 or float64, M3 int32 or int64; torch tensors
    are accepted too. Names and shapes are checked against the model when the trace is judged.
    """

    def __init__(self, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None,
                 path: str | None = None) -> None:
        self.path = path  # the file that it was read from
        self.fill(arrays, metadata or {})

    def fill(self, arrays: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
        """Replaces its arrays and metadata by these."""
        self._arrays = {str(name): as_array(str(name), value) for name, value in arrays.items()}
        self.metadata: dict[str, str] = {"format": FORMAT, **metadata}

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        n = len(self._arrays.get("tokens", ()))
        points = sum(name not in BESIDE and not is_gradient(name) for name in self)
        gradients = sum(map(is_gradient, self))
        return f"<sinkproof.Trace of {n} tokens, {points} points{f', {gradients} gradients' if gradients else ''}, engine {self.metadata.get('engine', 'not named')!r}>"

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Model | str | os.PathLike[str], *,
             any_model: bool = False) -> Trace:
        """Reads a file in the format sinkproof-trace-1 and checks it against the model; raises Error if it is
        invalid.

        Metadata with the fingerprint of another model are an Error too, unless `any_model` is set.
        """
        trace = open_trace(opened(model), path, any_model)
        return read_trace(trace, path=os.fspath(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a safetensors file, completely or not at all; raises Error if it cannot be written."""
        path = os.fspath(path)
        try:
            write_whole(path, self.parts())
        except OSError as error:
            raise Error(f"{path}: {error.strerror}") from None

    def parts(self) -> list[bytes | memoryview]:
        """The bytes of its file."""
        header: dict[str, Any] = {"__metadata__": self.metadata}
        tensors = dict(self._arrays)
        if not is_batch(tensors):
            tensors["tokens"] = read_tokens(self)
            tensors["positions"] = read_positions(self, len(tensors["tokens"]))
        # so that each starts at a multiple of its element size
        tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].itemsize))
        end = 0
        for name, array in tensors.items():
            header[name] = {"dtype": NAMES[array.dtype], "shape": array.shape,
                            "data_offsets": [end, end + array.nbytes]}
            end += array.nbytes
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        return [len(head).to_bytes(8, "little"), head, *(array.reshape(-1).view(np.uint8).data for array in tensors.values())]


def is_batch(arrays: Mapping[str, Any]) -> bool:
    """Whether it is a padded batch."""
    return "attention_mask" in arrays and "tokens" in arrays and np.ndim(arrays["tokens"]) == 2


def write_whole(path: str, parts: list[bytes | memoryview]) -> None:
    """Writes a file under a temporary name and renames it when it is complete."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".trace-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# ------------------------------------------------------------------------------------------
# To and from the library


def open_trace(model: Model, path: str | os.PathLike[str], any_model: bool = False) -> Handle:
    return made(lambda place: attempt("trace_open_of", encoded(path), model.handle.pointer, any_model, place),
                "trace_close", model.handle)


def read_trace(trace: Handle, path: str | None = None) -> Trace:
    """A copy of the library's trace."""
    view, arrays = View(), {}
    for i in range(call("trace_count", trace.pointer)):
        call("trace_at", trace.pointer, i, ctypes.byref(view))
        data = ctypes.string_at(view.data, view.bytes) if view.bytes else b""
        dtype = DTYPES[text(view.dtype)]
        arrays[text(view.name)] = np.frombuffer(data, dtype).reshape(view.shape[: view.rank]).copy()
    said = {key: call("trace_metadata", trace.pointer, key.encode())
            for key in ("engine", "policy", "version", "model", "lse", "lse_layout", "loss", "calls", "adapter")}
    return Trace(arrays, {key: text(value) for key, value in said.items() if value is not None}, path)


def read_tokens(arrays: Mapping[str, Any]) -> npt.NDArray[np.int32]:
    """`tokens`, [n]; also checks `positions`, if they are given."""
    if "tokens" not in arrays:
        raise Error("expected an array tokens [n] in the trace, found none")
    tokens = as_tokens(arrays["tokens"])
    read_positions(arrays, len(tokens))
    return tokens


def read_ends(arrays: Mapping[str, Any], n: int) -> list[int]:
    """Where the sequences begin, and n: `cu_seqlens`, or one sequence."""
    if "cu_seqlens" not in arrays:
        return [0, n]
    ends = np.asarray(as_array("cu_seqlens", arrays["cu_seqlens"]))
    if ends.ndim != 1 or len(ends) < 2 or ends.dtype.kind != "i" or ends[0] or ends[-1] != n or np.diff(ends).min() < 0:
        raise Error(f"cu_seqlens: expected whole numbers [sequences + 1] that ascend from 0 to {n}")
    return [int(end) for end in np.unique(ends)]


def of_each(arrays: Mapping[str, Any], name: str, of: str, n: int) -> list[int] | None:
    """How many keys, or tokens before it, each sequence has, as an array `name` says."""
    if name not in arrays:
        return None
    ends, others = (np.asarray(as_array(each, arrays.get(each, [0, n]))) for each in ("cu_seqlens", name))
    read_ends(arrays, n)
    if others.shape != ends.shape or others.dtype.kind != "i" or others[0] or np.diff(others).min() < 0:
        raise Error(f"{name}: expected whole numbers {list(ends.shape)} that ascend from 0")
    if np.diff(others)[np.diff(ends) == 0].any():
        raise Error(f"{name}: expected no {of} of a sequence without rows")
    return [int(each) for each in np.diff(others)[np.diff(ends) > 0]]


def read_cached(arrays: Mapping[str, Any], n: int) -> list[int] | None:
    return of_each(arrays, "cu_seqlens_k", "keys", n)


def read_named(arrays: Mapping[str, Any], n: int) -> list[int] | None:
    return of_each(arrays, "cu_seqlens_prefix", "prefix", n)


def read_positions(arrays: Mapping[str, Any], n: int) -> npt.NDArray[np.int32]:
    """`positions`, [n], which follow each other in each sequence; from 0 on where none are given."""
    ends = read_ends(arrays, n)
    if "positions" not in arrays:
        return np.concatenate([np.arange(end - begin, dtype=np.int32) for begin, end in zip(ends, ends[1:])])
    said = as_array("positions", arrays["positions"])
    good = said.shape == (n,) and said.dtype.kind == "i" and said.min() >= 0 and said.max() < 2**31
    if not good or any((np.diff(said[begin:end]) != 1).any() for begin, end in zip(ends, ends[1:])):
        raise Error(f"positions: expected {n} that follow each other{' in each sequence' if len(ends) > 2 else ''}, from 0 "
                    "or later on")
    return said.astype(np.int32)


def as_tokens(value: Any) -> npt.NDArray[np.int32]:
    tokens = np.asarray(value)
    if tokens.ndim != 1 or len(tokens) == 0 or tokens.dtype.kind not in "iu":
        batch = ": a trace holds one sequence, without the dimension of a batch" if tokens.ndim == 2 else ""
        raise Error(f"tokens: expected whole numbers [n], n from 1 on, found {tokens.dtype} {list(tokens.shape)}{batch}")
    if tokens.min() < 0 or tokens.max() >= 2**31:
        raise Error("tokens: expected numbers from 0 on that fit in int32")
    return np.ascontiguousarray(tokens, dtype=np.int32)


def pointer_to(tokens: npt.NDArray[np.int32]) -> Any:
    return tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))


def expected_shape(model: Model, name: str, first: int, n: int, rows: int) -> tuple[int, ...]:
    """The shape of a point in a trace of n tokens and `first` keys more; keys and values may have more `rows`, and the
    log-sum-exp may have the tokens first."""
    shape, point = model.shape(name, n), of_gradient(name) or without_layer(name)
    if is_gradient(name):
        return (*shape[:-1], shape[-1] + first) if point in kinds() and kinds()[point].by_head else shape
    if kinds()[point].a_number and rows == n:
        return n, shape[0]
    if kinds()[point].by_head:
        return (*shape[:-1], shape[-1] + first)
    return (rows, *shape[1:]) if point in CACHED and n < rows <= first + n else shape


def add_point(builder: Handle, model: Model, name: str, value: Any, first: int, n: int) -> None:
    array = as_array(name, value)
    expected = expected_shape(model, name, first, n, len(array) if array.ndim else 0)
    if array.shape != expected:
        batch = ": it has the dimension of a batch in front" if array.shape[1:] == expected else ""
        raise Error(f"{name}: expected shape {list(expected)}, found {list(array.shape)}{batch}")
    shape = (ctypes.c_size_t * array.ndim)(*array.shape)
    attempt("trace_builder_add", builder.pointer, encoded(name), NAMES[array.dtype].encode(), array.ndim, shape,
            array.ctypes.data)


def built_trace(model: Model, arrays: Mapping[str, Any]) -> Handle:
    """Makes the library's trace from arrays by name, which are checked."""
    said = arrays.metadata if isinstance(arrays, Trace) else {}
    if is_batch(arrays):  # the library takes the padding out
        data = b"".join((arrays if isinstance(arrays, Trace) else Trace(arrays)).parts())
        return made(lambda place: attempt("trace_from_bytes", data, len(data), model.handle.pointer, place), "trace_close",
                    model.handle)
    tokens = read_tokens(arrays)
    builder = made(lambda place: attempt("trace_builder_new", model.handle.pointer,
                                         encoded(said.get("engine", "not named")), encoded(said.get("policy", "")),
                                         len(tokens), pointer_to(tokens), place),
                   "trace_builder_free", model.handle)
    if "model" in said:  # the model of the arrays' file
        attempt("trace_builder_of", builder.pointer, encoded(said["model"]))
    positions, ends = read_positions(arrays, len(tokens)), read_ends(arrays, len(tokens))
    first = int(positions[0]) if len(ends) == 2 else 0
    if "lse" in said or "lse_layout" in said:
        words = (encoded(said[word]) if word in said else None for word in ("lse", "lse_layout"))
        attempt("trace_builder_lse", builder.pointer, *words)
    if "loss" in said:
        attempt("trace_builder_loss", builder.pointer, encoded(said["loss"]))
    if "calls" in said:
        attempt("trace_builder_calls", builder.pointer, encoded(said["calls"]))
    keys, sizes = read_cached(arrays, len(tokens)), ctypes.c_size_t * (len(ends) - 1)
    if len(ends) > 2 or first > 0 or keys is not None:
        attempt("trace_builder_place", builder.pointer, len(ends) - 1, sizes(*np.diff(ends)),
                sizes(*positions[ends[:-1]]))
    if keys is not None:
        attempt("trace_builder_cached", builder.pointer, sizes(*keys))
        first = sum(keys) - len(tokens)
    if "prefix" in arrays:
        before, named = as_tokens(arrays["prefix"]), read_named(arrays, len(tokens))
        attempt("trace_builder_prefixes", builder.pointer, None if named is None else sizes(*named), len(before),
                pointer_to(before))
        if keys is None and len(ends) > 2:
            first = len(before)
    for name, value in arrays.items():
        if name not in BESIDE:
            add_point(builder, model, name, value, first, len(tokens))
    return made(lambda place: attempt("trace_builder_finish", builder.pointer, place), "trace_close", model.handle)
