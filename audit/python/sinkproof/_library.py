# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Finds libsinkproof and declares the functions of audit/sinkproof.h in ctypes.

The library is the first of these that exists:

  1. the file that $SINKPROOF_LIBRARY names;
  2. libsinkproof.so in this package: a wheel that was built beside the library contains it;
  3. build/release/library/ of the checkout that contains this package;
  4. the system loader's libsinkproof.so.0, as after `make install`.

It is loaded on first use: `import sinkproof` succeeds without it.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pathlib
import weakref
from collections.abc import Callable, Iterator
from ctypes import POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint64, c_void_p
from typing import Any

VERSION = "0.1.0"  # of this package, and of the library that it needs
RANK = 8           # most dimensions of a tensor
FILE = "libsinkproof.so"
SHAPE = c_size_t * RANK


class Error(Exception):
    """One sentence on a refused call: the input, what was expected, what was found."""


# ------------------------------------------------------------------------------------------
# The structs of the header; `size` tells the library how much of one the caller knows


class Sentence(Structure):
    _fields_ = [("text", c_char * 1024)]


class Sized(Structure):
    """A struct that begins with its size."""

    def __init__(self, **members: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **members)


class View(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("dtype", c_char_p), ("rank", c_size_t),
                ("shape", SHAPE), ("data", c_void_p), ("bytes", c_size_t)]


class RunOptions(Sized):
    _fields_ = [("size", c_size_t), ("threads", c_int), ("chunk", c_size_t)]


class Call(Structure):
    _fields_ = [("name", c_char_p), ("layer", c_size_t), ("n", c_size_t), ("first", c_size_t),
                ("keys", c_size_t), ("window", c_size_t), ("rank", c_size_t),
                ("shape", POINTER(c_size_t)), ("tokens", POINTER(c_int32)), ("model", c_void_p),
                ("seen", c_void_p)]


PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_double)
STAGE = ctypes.CFUNCTYPE(c_bool, c_void_p, POINTER(Call), POINTER(c_double), POINTER(Sentence))


class TrialOptions(Sized):
    _fields_ = [("size", c_size_t), ("policy", c_char_p), ("name", c_char_p), ("rate", c_double),
                ("strict", c_bool), ("all", c_bool), ("local", c_bool), ("no_hint", c_bool),
                ("forms", c_bool), ("progress", PROGRESS), ("context", c_void_p), ("no_diagnosis", c_bool), ("any_model", c_size_t),
                ("first_layer", c_size_t), ("end_layer", c_size_t), ("truth", c_char_p), ("truth_alone", c_bool),
                ("adapter", c_char_p)]


class Finding(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("layer", c_size_t), ("verdict", c_int),
                ("bridged", c_bool), ("elements", c_size_t), ("several", c_size_t),
                ("outside", c_size_t), ("unlikely", c_size_t), ("undecided", c_size_t),
                ("nans", c_size_t), ("rank", c_size_t), ("shape", SHAPE), ("worst_index", SHAPE),
                ("worst_value", c_double), ("worst_low", c_double), ("worst_emulation", c_double),
                ("worst_high", c_double), ("worst_inputs", c_char_p), ("excess_ulp", c_double),
                ("share_worst", c_double), ("share_median", c_double), ("drift", c_double),
                ("drift_limit", c_double), ("spread", c_double), ("spread_limit", c_double),
                ("error", c_double), ("local", c_double), ("inherited", c_double),
                ("infinities", c_size_t), ("layers_together", c_size_t), ("drift_together", c_double),
                ("drift_together_limit", c_double)]


class DrillArray(Structure):
    _fields_ = [("name", c_char_p), ("rank", c_size_t), ("shape", SHAPE), ("values", POINTER(c_float))]


class DrillCall(Structure):
    _fields_ = [("size", c_size_t), ("stage", c_char_p), ("n_inputs", c_size_t), ("n_outputs", c_size_t),
                ("inputs", POINTER(DrillArray)), ("outputs", POINTER(DrillArray)),
                *((name, c_size_t) for name in ("n", "first", "window", "heads", "kv_heads", "head_dim", "hidden",
                                                "inter", "experts", "chosen")),
                *((name, c_double) for name in ("rms_eps", "swiglu_alpha", "swiglu_limit", "rope_theta",
                                                "yarn_factor", "yarn_beta_fast", "yarn_beta_slow")),
                ("yarn_original_context", c_size_t), ("yarn_truncate", c_bool), ("dtype", c_char_p),
                ("k_largest", POINTER(c_float)), ("v_largest", POINTER(c_float))]


RUN_STAGE = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(DrillCall))


class PluginEntry(Structure):
    _fields_ = [("stage", c_char_p), ("run", RUN_STAGE)]


class Plugin(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("n_stages", c_size_t), ("stages", POINTER(PluginEntry)),
                ("policy", c_char_p), ("context", c_void_p), ("lse", c_char_p)]


class DrillOptions(Sized):
    _fields_ = [("size", c_size_t), ("stages", c_char_p), ("only", c_char_p), ("policy", c_char_p),
                ("model", c_char_p), ("limit", c_size_t), ("rate", c_double), ("seed", c_uint64), ("strict", c_bool),
                ("first", c_bool), ("no_cause", c_bool), ("progress", PROGRESS), ("context", c_void_p),
                ("said", POINTER(Sentence)), ("stop", POINTER(c_bool))]


# ------------------------------------------------------------------------------------------
# The functions: result, then arguments. A handle is a void pointer, OUT a pointer to one.

OUT, TEXTS, SIZES, TOKENS = POINTER(c_void_p), POINTER(c_char_p), POINTER(c_size_t), POINTER(c_int32)
NUMBERS, ERROR = POINTER(c_double), POINTER(Sentence)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (c_char_p,),
    "model_open": (c_bool, c_char_p, OUT, ERROR),
    "model_close": (None, c_void_p),
    "model_spec": (c_char_p, c_void_p),
    "model_layout": (c_char_p, c_void_p),
    "model_fingerprint": (c_bool, c_void_p, POINTER(c_uint64), ERROR),
    "model_config": (c_void_p, c_void_p),
    "model_weight": (c_bool, c_void_p, c_char_p, c_size_t, c_size_t, SIZES, NUMBERS, ERROR),
    "config_number": (c_bool, c_void_p, c_char_p, NUMBERS, ERROR),
    "config_slides": (c_bool, c_void_p, c_size_t),
    "policy_names": (TEXTS,),
    "engine_names": (TEXTS,),
    "point_names": (TEXTS,),
    "point_meaning": (c_char_p, c_char_p),
    "point_shape": (c_bool, c_void_p, c_char_p, c_size_t, SIZES, SIZES, ERROR),
    "trace_open": (c_bool, c_char_p, c_void_p, OUT, ERROR),
    "trace_open_of": (c_bool, c_char_p, c_void_p, c_bool, OUT, ERROR),
    "trace_from_bytes": (c_bool, c_char_p, c_size_t, c_void_p, OUT, ERROR),
    "trace_close": (None, c_void_p),
    "trace_metadata": (c_char_p, c_void_p, c_char_p),
    "trace_count": (c_size_t, c_void_p),
    "trace_at": (c_bool, c_void_p, c_size_t, POINTER(View)),
    "trace_builder_new": (c_bool, c_void_p, c_char_p, c_char_p, c_size_t, TOKENS, OUT, ERROR),
    "trace_builder_add": (c_bool, c_void_p, c_char_p, c_char_p, c_size_t, SIZES, c_void_p, ERROR),
    "trace_builder_place": (c_bool, c_void_p, c_size_t, SIZES, SIZES, ERROR),
    "trace_builder_cached": (c_bool, c_void_p, SIZES, ERROR),
    "trace_builder_prefixes": (c_bool, c_void_p, SIZES, c_size_t, TOKENS, ERROR),
    "trace_builder_lse": (c_bool, c_void_p, c_char_p, c_char_p, ERROR),
    "trace_builder_loss": (c_bool, c_void_p, c_char_p, ERROR),
    "trace_builder_calls": (c_bool, c_void_p, c_char_p, ERROR),
    "trace_builder_of": (c_bool, c_void_p, c_char_p, ERROR),
    "trace_builder_finish": (c_bool, c_void_p, OUT, ERROR),
    "trace_builder_free": (None, c_void_p),
    "run_new": (c_bool, c_void_p, c_char_p, c_char_p, POINTER(RunOptions), OUT, ERROR),
    "run_free": (None, c_void_p),
    "call_input": (NUMBERS, POINTER(Call), c_char_p),
    "run_replace": (c_bool, c_void_p, c_char_p, c_char_p, STAGE, c_void_p, ERROR),
    "run_trace": (c_bool, c_void_p, c_size_t, TOKENS, c_char_p, c_char_p, OUT, ERROR),
    "drill_plugin": (c_bool, POINTER(Plugin), POINTER(DrillOptions), OUT, ERROR),
    "drill_ruling_free": (None, c_void_p),
    "drill_ruling_exit": (c_int, c_void_p),
    "drill_ruling_text": (c_char_p, c_void_p),
    "drill_ruling_json": (c_char_p, c_void_p),
    "judge_trace": (c_bool, c_void_p, c_void_p, POINTER(TrialOptions), OUT, ERROR),
    "ruling_free": (None, c_void_p),
    "verdict_name": (c_char_p, c_int),
    "ruling_verdict": (c_int, c_void_p),
    "ruling_exit": (c_int, c_void_p),
    "ruling_policy": (c_char_p, c_void_p),
    "ruling_explained_by": (c_char_p, c_void_p),
    "ruling_first": (c_char_p, c_void_p),
    "ruling_text": (c_char_p, c_void_p),
    "ruling_json": (c_char_p, c_void_p),
    "ruling_count": (c_size_t, c_void_p),
    "ruling_at": (c_bool, c_void_p, c_size_t, POINTER(Finding)),
}


def places() -> Iterator[str]:
    """The places where the library may be, in order: see above."""
    named = os.environ.get("SINKPROOF_LIBRARY")
    if named:
        yield named
        return
    package = pathlib.Path(__file__).resolve().parent
    checkout = package.parent.parent.parent / "build" / "release" / "library" / f"{FILE}.{VERSION}"
    yield from (str(path) for path in (package / FILE, checkout) if path.is_file())
    yield f"{FILE}.{VERSION.split('.')[0]}"


def loaded_from(path: str) -> ctypes.CDLL:
    """Its idle threads sleep, unless the environment says how OpenMP waits: a thread that waits in a loop costs a
    short judgement more processor time than its work."""
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        return ctypes.CDLL(path)
    os.environ["OMP_WAIT_POLICY"] = "passive"  # read once, when OpenMP is loaded
    try:
        return ctypes.CDLL(path)
    finally:
        del os.environ["OMP_WAIT_POLICY"]


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, which is loaded once."""
    path = next(places())
    try:
        loaded = loaded_from(path)
    except OSError as error:
        raise Error(f"no libsinkproof: {error}. Build it (`make library`), install it (`make install`), or let "
                    "SINKPROOF_LIBRARY name it") from None
    for name, (result, *arguments) in FUNCTIONS.items():
        try:
            function = getattr(loaded, f"sinkproof_{name}")
        except AttributeError:
            raise Error(f"{path}: it has no sinkproof_{name}: expected libsinkproof {VERSION}") from None
        function.restype, function.argtypes = result, arguments
    found = text(loaded.sinkproof_version())
    if found != VERSION:
        raise Error(f"{path}: expected libsinkproof {VERSION}, found {found}")
    return loaded


# ------------------------------------------------------------------------------------------
# Calls


def text(said: bytes | None) -> str:
    return (said or b"").decode("utf-8", "replace")


def encoded(given: str | os.PathLike[str]) -> bytes:
    """A text or path for C, which ends at its first 0."""
    found = os.fsencode(given)
    if b"\0" in found:
        raise Error(f"expected a text without a zero character, found {given!r}")
    return found


def call(name: str, *arguments: Any) -> Any:
    """Calls sinkproof_NAME(arguments), a function that cannot fail."""
    return getattr(library(), f"sinkproof_{name}")(*arguments)


def attempt(name: str, *arguments: Any) -> None:
    """Calls sinkproof_NAME(arguments, error) and raises its error."""
    error = Sentence()
    if not call(name, *arguments, ctypes.byref(error)):
        raise Error(text(error.text))


@contextlib.contextmanager
def raising(raised: list[BaseException]) -> Iterator[None]:
    """Raises at the end of the block the exception that a callback raised inside it, instead of the library's error."""
    try:
        yield
    except Error:
        if not raised:
            raise
    if raised:
        raise raised.pop(0)  # its traceback holds the callback, which must not hold the exception


def names(function: str) -> tuple[str, ...]:
    """The names in a list that ends with NULL."""
    found = call(function)
    listed: list[str] = []
    while found[len(listed)] is not None:
        listed.append(text(found[len(listed)]))
    return tuple(listed)


class Handle:
    """An object of the library, freed with its last reference.

    It keeps the handles that it depends on: a model outlives its runs and traces, whatever is
    closed first.
    """

    def __init__(self, free: str, pointer: c_void_p, *needs: Handle) -> None:
        self.pointer, self.needs = pointer, needs
        weakref.finalize(self, getattr(library(), f"sinkproof_{free}"), pointer)


def made(make: Callable[[Any], None], free: str, *needs: Handle) -> Handle:
    """The handle that make(place) writes to `place`."""
    pointer = c_void_p()
    make(ctypes.byref(pointer))
    return Handle(free, pointer, *needs)
