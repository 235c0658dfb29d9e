# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs this project's engines on a model, with the caller's functions in place of some stages."""
from __future__ import annotations

import ctypes
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sinkproof._library import STAGE, Error, RunOptions, attempt, call, encoded, made, raising, text
from sinkproof._model import Model, opened, read_weight
from sinkproof._trace import Trace, as_tokens, pointer_to, read_trace

Stage = Callable[..., Any]
Numbers = npt.NDArray[np.float64]


class Call:
    """The arguments of a stage: a pass of `n` tokens, the first of them at position `first`.

    Its methods work until the stage returns.
    """

    def __init__(self, struct: Any, values: Numbers) -> None:
        call = struct.contents
        self.name: str = text(call.name)     # the point to compute, "03.A11"
        self.layer: int = call.layer         # 0 for T0, F1 and F2
        self.n: int = call.n                 # tokens in this pass
        self.first: int = call.first         # position of the first token
        self.keys: int = call.keys           # first + n
        self.window: int = call.window       # keys that a query sees, itself included; 0: all
        self.values = values                 # a copy of the engine's result
        self.tokens = np.ctypeslib.as_array(call.tokens, (call.n,)).copy()
        self._struct = struct

    def weight(self, name: str, expert: int = 0) -> Numbers:
        """A weight of this layer as the policy stores it, [rows, cols]; names as in Model.weight."""
        return read_weight(self._struct.contents.model, name, self.layer, expert)

    def input(self, name: str, shape: tuple[int, ...]) -> Numbers:
        """A copy of an input of the stage, [tokens, ...]; keys and values are those of all tokens so far."""
        found = call("call_input", self._struct, name.encode())
        if not found:
            raise Error(f"{self.name}: {name} is not an input of this stage")
        values: Numbers = np.ctypeslib.as_array(found, shape).copy()
        return values


def inputs_of(stage: Stage) -> tuple[list[str], bool]:
    """The points that the parameters of a stage name, and whether it has a parameter `call`."""
    parameters = inspect.signature(stage).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters):
        raise Error(f"expected a stage whose parameters are named for points, as in f(A4_q, A4_k, A2_v), found "
                    f"{getattr(stage, '__name__', stage)}{inspect.signature(stage)}")
    named = [p.name for p in parameters if p.default is p.empty and p.name != "call"]
    return [name.replace("_", ".") for name in named], "call" in inspect.signature(stage).parameters


class Callback:
    """A Python function as a stage of the library. Its exceptions are stored in `raised`."""

    def __init__(self, model: Model, stage: Stage, raised: list[BaseException]) -> None:
        self.model, self.stage, self.raised = model, stage, raised
        self.inputs, self.takes_call = inputs_of(stage)
        self.function = STAGE(self.enter)

    def enter(self, context: Any, struct: Any, values: Any, error: Any) -> bool:
        try:
            shape = tuple(struct.contents.shape[: struct.contents.rank])
            place = np.ctypeslib.as_array(values, shape)
            place[...] = self.result(Call(struct, place.copy()), shape)
            return True
        except BaseException as exception:  # may not unwind the library's frames: run() raises it
            self.raised.append(exception)
            error.contents.text = f"{type(exception).__name__}: {exception}".encode()[:900]
            return False

    def result(self, call: Call, shape: tuple[int, ...]) -> Numbers:
        given: dict[str, Any] = {name.replace(".", "_"): call.input(name, self.shape_of(name, call))
                                 for name in self.inputs}
        if self.takes_call:
            given["call"] = call
        made = self.stage(**given)
        array = np.asarray(made.detach().cpu().double().numpy() if hasattr(made, "detach") else made)
        if array.shape != shape or array.dtype.kind not in "fiuV" or not np.can_cast(array.dtype, np.float64):
            raise Error(f"{call.name}: expected numbers {list(shape)} of the stage, found {array.dtype} "
                        f"{list(array.shape)}")
        return array.astype(np.float64)

    def shape_of(self, name: str, call: Call) -> tuple[int, ...]:
        """The shape of an input in this pass: keys and values of all keys, scores [heads, n, keys]."""
        point = "A13" if name == "RESIDUAL" else name
        of_pass, of_keys = self.model.shape(point, call.n), self.model.shape(point, call.keys)
        return of_keys if name in ("A4.k", "A2.v") else of_pass[:2] + of_keys[2:]


def run(model: Model | str | os.PathLike[str], tokens: Sequence[int] | npt.NDArray[Any], engine: str = "ref",
        policy: str | None = None, replace: Mapping[str, Stage] | None = None, *,
        points: Iterable[str] | None = None, name: str | None = None, chunk: int = 0, threads: int = 0) -> Trace:
    """Runs a forward pass over `tokens` [n] on one of this project's engines; returns its trace.

    `engine` is one of engines(); `policy` is its policy, None for the engine's default (real-f64 for
    ref, f32 for lanes and fast). `points` restricts the trace: "A9" for every layer, "03.A9" for one.
    `chunk` is the number of tokens per pass, 0 for all. `threads` is for fast, 0 for as many as
    processors, or as OMP_NUM_THREADS says. `name` is the engine's name in the trace.

    `replace` maps points to functions that compute them: {"A11": f} in every layer, {"03.A11": f} in
    one. The parameters of f name its inputs, with "_" for ".": they are float64 arrays [n, ...] with
    numbers of the policy's format; only A4_k and A2_v have all keys so far, [keys, kv_heads, head_dim].
    RESIDUAL is the residual stream, [n, hidden]. A parameter `call` is a Call. f returns the point, in
    numbers of the format to which the policy rounds it. The run continues from the result, and points
    in between are left out of the trace.

        def attention(A4_q, A4_k, A2_v, call): ...   # -> [n, heads, head_dim]
        trace = sinkproof.run("synthetic:tiny", range(40), policy="f32", replace={"A11": attention})

    An exception in f is raised from here, after the run has ended. Other refusals are an Error.
    """
    model, tokens = opened(model), as_tokens(np.asarray(tokens))
    if chunk < 0 or threads < 0:
        raise Error(f"expected chunk and threads from 0 on, found {chunk} and {threads}")
    options = RunOptions(threads=threads, chunk=chunk)
    held = made(lambda place: attempt("run_new", model.handle.pointer, encoded(engine),
                                      None if policy is None else encoded(policy), ctypes.byref(options), place),
                "run_free", model.handle)
    raised: list[BaseException] = []
    callbacks = [(point, Callback(model, stage, raised)) for point, stage in (replace or {}).items()]
    for point, callback in callbacks:
        attempt("run_replace", held.pointer, encoded(point), ",".join(callback.inputs).encode(), callback.function,
                None)
    listed = None if points is None else ",".join(points)
    with raising(raised):
        trace = made(lambda place: attempt("run_trace", held.pointer, len(tokens), pointer_to(tokens),
                                           None if listed is None else encoded(listed),
                                           None if name is None else encoded(name), place),
                     "trace_close", model.handle)
    return read_trace(trace)
