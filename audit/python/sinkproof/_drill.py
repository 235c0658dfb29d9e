# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Drills a kernel: makes the calls of `sinkproof judge --plugin` in this process, and judges what it returns."""
from __future__ import annotations

import ctypes
import dataclasses
import inspect
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sinkproof._arrays import ALL, MAKERS, NARROW, SHORT, library_of, read_numbers
from sinkproof._backward_drill import differentiated, is_differentiated
from sinkproof._caches import Cache, cache_of
from sinkproof._judgement import Verdict
from sinkproof._layouts import LAYOUTS, Layout
from sinkproof._library import (
    RUN_STAGE,
    DrillCall,
    DrillOptions,
    Error,
    Plugin,
    PluginEntry,
    Sentence,
    attempt,
    call,
    encoded,
    made,
    raising,
    text,
)
from sinkproof._shares import percent

Kernel = Callable[..., Any]
NOT_SERVED, FAILED = 1, 2
NUMBERS = ("n", "first", "window", "heads", "kv_heads", "head_dim", "hidden", "inter", "experts", "chosen", "rms_eps",
           "swiglu_alpha", "swiglu_limit", "rope_theta", "yarn_factor", "yarn_beta_fast", "yarn_beta_slow",
           "yarn_original_context", "yarn_truncate")
INDICES = ("M3",)
KINDS_OF_LSE = ("with-sink", "without-sink")
LAYOUTS_OF_LSE = ("heads,tokens", "tokens,heads")
CACHED = ("A4.k", "A2.v", "k", "v", "k_cache", "v_cache")


@dataclasses.dataclass(frozen=True)
class Drill:
    """What came of a drill; str() is the report, in the words of `sinkproof judge --plugin`.

    `calls` were served and judged; `not_served` are those for which the kernel raised NotImplementedError. Of the
    smallest call that fails, `case` is its text (for `only`), `why` its wrong element and its set. `cause` is a
    sentence, the known mistakes that explain the failing calls. `exception` is the first that the kernel raised. `lse`
    is what A9.lse was judged as, "with-sink" or "without-sink"; None: the kernel returns none.
    """

    stage: str
    policy: str
    verdict: Verdict
    calls: int
    failing: int
    suspicious: int
    undecided: int
    not_served: int
    case: str | None
    why: str | None
    cause: str | None
    report: str
    exit_code: int
    exception: BaseException | None = None
    lse: str | None = None

    @property
    def ok(self) -> bool:
        """No call is outside of what honest rounding can do, none is suspicious, and some were decided."""
        return self.exit_code == 0

    def __str__(self) -> str:
        return self.report

    def __bool__(self) -> bool:
        raise TypeError("the truth value of a drill is ambiguous: use .ok, or .check()")

    def check(self) -> Drill:
        """Returns the drill if it is `ok`; else raises an AssertionError, which ends with the cause."""
        __tracebackhide__ = True  # pytest shows the caller instead
        if not self.ok:
            raise AssertionError(self.sentence()) from self.exception
        return self

    def sentence(self) -> str:
        """What check() says."""
        if self.calls == 0:
            return f"The kernel serves none of the {self.not_served} calls of {self.stage}"
        if not self.failing and not self.suspicious:
            return f"None of the {self.calls} calls of {self.stage} is decided\nPolicy: {self.policy}"
        what, count = ("not honest!", self.failing) if self.failing else ("suspicious: possible, but not likely.",
                                                                          self.suspicious)
        lines = [f"The kernel's {self.stage} is {what}", "",
                 f"{'Failing' if self.failing else 'Suspicious'} calls: {count} / {self.calls} "
                 f"({percent(count, self.calls)}), {self.not_served} not served",
                 f"{'The smallest that fails' if self.failing else 'One of them'}: {self.case}", f"  {self.why}"]
        lines += [f"A{line.strip()[1:]}" for line in re.findall(r"^    all \d.*$", self.report, re.MULTILINE)]
        lines.append(f"Policy: {self.policy}")
        if self.cause:
            lines.append(f"Cause: {self.cause}")
        return "\n".join(lines)


# ------------------------------------------------------------------------------------------
# A call


def given_to(kernel: Kernel, known: Iterable[str]) -> list[str]:
    """The parameters of a kernel that are filled; each without a default must be known."""
    try:
        parameters = inspect.signature(kernel).parameters.values()
    except (TypeError, ValueError):
        raise Error(f"{kernel!r} does not tell its parameters: wrap it, as in "
                    "lambda q, k, v, sinks, window, first: ...") from None
    found, known = [], list(known)
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if p.kind is p.POSITIONAL_ONLY or (p.default is p.empty and p.name not in known):
            raise Error(f"parameter {p.name} of the kernel: expected one of {', '.join(known)}")
        if p.name in known:
            found.append(p.name)
    return found


class Caller:
    """A kernel as a stage of a plug-in. Its exceptions are counted as failing calls; what is no Exception, and what
    this package refuses, ends the drill."""

    def __init__(self, kernel: Kernel, like: Any, dtype: str | None, device: Any,
                 make: Callable[[npt.NDArray[Any]], Any] | None, signature: str | None, page: int, lse: LogSumExp,
                 cache: Cache | None) -> None:
        if signature is not None and signature not in LAYOUTS:
            raise Error(f"signature: expected {' or '.join(LAYOUTS)}, found {signature!r}")
        if page < 1:
            raise Error(f"expected pages of 1 key or more, found {page}")
        self.signature, self.page, self.lse, self.cache = signature, page, lse, cache
        if dtype is not None and dtype not in SHORT and dtype.upper() not in NARROW:
            raise Error(f"dtype: expected bf16, f16 or f32, found {dtype!r}")
        self.kernel, self.device, self.make = kernel, device, make
        self.dtype = None if dtype is None else SHORT.get(dtype, dtype.upper())
        self.maker = MAKERS[library_of(kernel, like)]
        self.raised: list[BaseException] = []
        self.exception: BaseException | None = None
        self.said, self.stop = Sentence(), ctypes.c_bool(False)
        self.function = RUN_STAGE(self.enter)

    def enter(self, context: Any, struct: Any) -> int:
        try:
            self.serve(struct.contents)
            return 0
        except NotImplementedError:
            return NOT_SERVED
        except BaseException as exception:  # may not unwind the library's frames
            self.said.text = f"it raised {type(exception).__name__}: {exception}".encode("utf-8", "replace")[:600]
            if isinstance(exception, Wrong):
                self.said.text = str(exception).encode()[:600]
            elif isinstance(exception, Error) or not isinstance(exception, Exception):
                self.raised.append(exception)
                self.stop.value = True
            elif self.exception is None:
                self.exception = exception
            return FAILED

    def array(self, name: str, x: npt.NDArray[Any], dtype: str) -> Any:
        if self.cache is not None and name in (*CACHED, "k_scale", "v_scale"):
            kind = "F32" if name.endswith("_scale") else self.cache.code
            return self.make(x.astype(ALL[kind])) if self.make is not None else self.maker(x, kind, self.device)
        if name in INDICES or x.dtype == np.int32:
            kind, x = "I64" if name in INDICES else "I32", x.astype(np.int32)  # torch's indices are of 64 bits
            return self.make(x) if self.make is not None else self.maker(x, kind, self.device)
        if name.endswith("A9.lse"):  # a kernel stores it in float32
            return self.make(x) if self.make is not None else self.maker(x, "F32", self.device)
        narrow = x.astype(NARROW[dtype])
        if not np.array_equal(narrow.astype(np.float32), x):
            if self.dtype is not None:
                raise Error(f"{name}: the policy's numbers are not all in dtype {dtype}: leave `dtype` out, or take a "
                            "policy that stores it so")
            dtype, narrow = "F32", x  # a sink that float16 does not hold
        return self.make(narrow) if self.make is not None else self.maker(x, dtype, self.device)

    def serve(self, drill: DrillCall) -> None:
        dtype = self.dtype or text(drill.dtype)
        arrays: dict[str, npt.NDArray[Any]] = {
            text(drill.inputs[i].name): numbers_at(drill.inputs[i]) for i in range(drill.n_inputs)}
        if self.cache is not None or self.signature is not None:
            attended(text(drill.stage))
        scales = self.quantise(drill, arrays)
        layout = self.laid(arrays, scales)
        numbers = {name: getattr(drill, name) for name in NUMBERS}
        numbers.update(layout.numbers if layout is not None else {}, scale=1 / math.sqrt(drill.head_dim))
        if layout is not None:
            arrays = {**layout.arrays, "sinks": arrays["sinks"]}
            words = {name: name for name in arrays}
        else:
            words = {**words_of(arrays), **{name: name for name in scales}}
            arrays.update(scales)
        given = given_to(self.kernel, {**numbers, **words})
        arguments = {word: self.array(words[word], arrays[words[word]].copy(), dtype) if word in words else numbers[word]
                     for word in given}
        outputs = [text(drill.outputs[i].name) for i in range(drill.n_outputs)]
        if is_differentiated(outputs, (words.get(word, "") for word in given)):
            back = {name: self.array(name, arrays[name].copy(), dtype) for name in arrays if name.startswith("d")}
            with_lse = self.lse.word is not None
            self.keep(drill, differentiated(self.kernel, arguments, words, outputs, back, with_lse), None)
            return
        self.keep(drill, self.kernel(**arguments), layout)

    def quantise(self, drill: DrillCall, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Replaces keys and values by their codes; returns the scales."""
        scales: dict[str, npt.NDArray[Any]] = {}
        if self.cache is None:
            return scales
        for name, word, largest in (("A4.k", "k_scale", drill.k_largest), ("A2.v", "v_scale", drill.v_largest)):
            sizes = np.ctypeslib.as_array(largest, (drill.kv_heads,))
            arrays[name], scales[word] = self.cache.quantised(arrays[name], sizes)
        return scales

    def laid(self, arrays: Mapping[str, npt.NDArray[Any]], scales: Mapping[str, npt.NDArray[Any]]) -> Layout | None:
        if self.signature is None:
            return None
        cached = {"k": arrays["A4.k"], "v": arrays["A2.v"], **scales}
        return LAYOUTS[self.signature](arrays["A4.q"], cached, len(arrays["A4.k"]), self.page)

    def keep(self, drill: DrillCall, result: Any, layout: Layout | None) -> None:
        """Copies what the kernel returned to the outputs of the call."""
        results = result if isinstance(result, (tuple, list)) else (result,)
        names = [text(drill.outputs[i].name) for i in range(drill.n_outputs)]
        if len(results) != len(names):
            raise Wrong(f"expected {', '.join(names)} of the kernel, found {len(results)} results")
        for i, (name, value) in enumerate(zip(names, results)):
            place = numbers_at(drill.outputs[i])
            try:
                array = read_numbers(name, value)
            except Error as error:
                raise Wrong(str(error)) from None
            if name == "A9.lse":
                array = self.lse.by_head(array, len(place), place.shape[1] if layout is None else layout.rows)
                place[...] = array if layout is None else array[:, layout.begin:layout.begin + place.shape[1]]
                continue
            expected = place.shape if layout is None else (layout.rows, *place.shape[1:])
            if array.shape != expected:
                raise Wrong(f"{name}: expected shape {list(expected)}, found {list(array.shape)}")
            place[...] = array if layout is None else array[layout.begin:layout.begin + len(place)]


def words_of(arrays: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that stand for an input: "A4_q" and "q" for A4.q, "x" for the first one."""
    words = {"x": next(iter(arrays))}
    for name in arrays:
        short = [f"d{part}" if name.startswith("d") else part for part in name.split(".")[1:]]
        words.update({word: name for word in (name.replace(".", "_"), *short)})
    if "dA11" in arrays and "A11" in arrays:
        words.update({"o": "A11", "do": "dA11"})
    results = [name for name in arrays if name.startswith("d") and name != "dA9.lse"]
    words.update({"dy": name for name in results[:1]})  # of the stages with one result
    return words


def attended(stage: str) -> None:
    if stage != "attention":
        raise Error(f"a signature and a cache are those of the stage attention, found {stage}")


class LogSumExp:
    """What a kernel returns beside its output, and in which layout: said, or as the first call tells whose two sizes
    differ."""

    def __init__(self, said: str | bool | None, layout: str | None) -> None:
        if said not in (None, False, True, *KINDS_OF_LSE):
            raise Error(f"lse: expected True, {' or '.join(KINDS_OF_LSE)}, found {said!r}")
        if layout not in (None, *LAYOUTS_OF_LSE):
            raise Error(f"lse_layout: expected {' or '.join(LAYOUTS_OF_LSE)}, found {layout!r}")
        self.word = "either" if said is True else said or None
        self.layout = layout

    def by_head(self, array: npt.NDArray[Any], heads: int, rows: int) -> npt.NDArray[Any]:
        """[heads, rows] of either layout."""
        shapes = dict(zip(LAYOUTS_OF_LSE, ((heads, rows), (rows, heads))))
        fits = [layout for layout in LAYOUTS_OF_LSE if array.shape == shapes[layout]]
        if self.layout is None and len(fits) == 1:
            self.layout = fits[0]
        if self.layout is None and fits and heads > 1:
            raise Error(f"A9.lse of shape {list(array.shape)} is in either layout: say which one (lse_layout="
                        f"\"{LAYOUTS_OF_LSE[0]}\" or \"{LAYOUTS_OF_LSE[1]}\")")
        if not fits or self.layout not in (None, *fits):
            expected = [list(shapes[layout]) for layout in ([self.layout] if self.layout else LAYOUTS_OF_LSE)]
            raise Wrong(f"A9.lse: expected shape {' or '.join(map(str, expected))}, found {list(array.shape)}")
        return array.T if self.layout == LAYOUTS_OF_LSE[1] else array


class Wrong(Exception):
    """One sentence on a result that is no output of its stage: a failing call."""


def numbers_at(array: Any) -> npt.NDArray[np.float32]:
    return np.ctypeslib.as_array(array.values, tuple(array.shape[: array.rank]))


# ------------------------------------------------------------------------------------------
# The drill


def drill(kernel: Kernel, stage: str = "attention", policy: str = "bf16", *, limit: int | None = None,
          only: str | None = None, like: Any = None, dtype: str | None = None, device: Any = None,
          make: Callable[[npt.NDArray[Any]], Any] | None = None, signature: str | None = None, page: int = 16,
          lse: bool | str = False, lse_layout: str | None = None, cache: str | None = None,
          scales: str | float | None = None, model: str | os.PathLike[str] | None = None, name: str | None = None,
          rate: float = 1e-9, seed: int = 1, strict: bool = False, first: bool = False, cause: bool = True) -> Drill:
    """Calls a kernel with prompts, chunks and single tokens over a growing cache, and judges what it returns.

    The parameters of the kernel name what it is given: the inputs of the stage ("A4_q" for A4.q, or "q", "k", "v";
    weights by their names: "sinks"), and numbers of the call ("window": keys that a query sees, 0 for all; "first": the
    position of the first row; "scale"; "heads", "kv_heads", "head_dim" ...). Queries are [n, heads, head_dim], keys and
    values [first + n, kv_heads, head_dim]: row r is at position first + r. It returns the output, or a tuple of them.

        def attention(q, k, v, sinks, window, first): ...   # -> [n, heads, head_dim]
        sinkproof.drill(attention, policy="flash-bf16").check()

    It raises NotImplementedError for a call that it does not serve. Any other exception, and a wrong shape, is a
    failing call.

    Arrays are those of the library that the parameters' annotations name (numpy, torch, jax, cupy, mlx), or `like` (a
    name, a module or an array); numpy's else. They are in the dtype in which the policy stores them, or in `dtype`
    ("bf16", "f16", "f32"), on `device`. `make` makes the kernel's array of one of numpy's, in place of all that.

    `signature` lays out attention as serving does. "varlen": q, k and v are packed between two other sequences, with
    "cu_seqlens_q", "cu_seqlens_k" [4], "max_seqlen_q", "max_seqlen_k", and the output has the rows of all three; the
    judged sequence is the second. "paged": "k_cache", "v_cache" [pages, page_size, kv_heads, head_dim], "block_table"
    [1, pages of the sequence], "seqused_k" [1], with pages of `page` keys in no order and others' keys between.
    `lse`: attention returns A9.lse beside the output, the natural log-sum-exp of a row's scores, which is judged too.
    It is "with-sink", "without-sink", or True: not said; the one that fits is found, one for all calls, and `lse` of
    the result says it. Its layout is [heads, rows] or [rows, heads], as its shapes tell, or as `lse_layout` says
    ("heads,tokens", "tokens,heads") where rows and heads are as many.

    `stage` may go back: "attention_backward" is given q, k, v, sinks, o and lse of a forward pass, "do" and "dlse", and
    returns dq, dk, dv and dsink; "swiglu_backward", "rmsnorm_backward" and "linear_backward" are given "x" and "dy".
    A kernel of torch that is given no gradient is the forward kernel, which autograd differentiates. With `lse` half of
    the losses read the log-sum-exp.

    `cache` makes keys and values codes of eight bits ("e4m3", "e5m2", "int8"), made by the drill, with `scales`:
    "tensor", "head", "token-head", a number, or none, which is 1. The kernel is given "k_scale" and "v_scale" in float32:
    [1], [kv_heads], or for each token and head [keys, kv_heads], laid out as the keys are. A number is the code times its
    scale. The policy then declares A5.k and A11.v so, and `policy` of the result says it.

    `limit` is the most calls, spread over all of them; `only` is one call, as a report prints it. `model` gives the
    sizes. `cause=False` skips the search for the known mistake that explains failing calls. `first` leaves off at the
    first failing calls; `strict`: suspicious is a failure in the exit code.
    """
    eight_bits = cache_of(cache, scales)
    if eight_bits is not None:
        policy = eight_bits.declared(policy)
    beside = LogSumExp(lse, lse_layout)
    if beside.word is not None and stage not in ("attention", "attention_backward"):
        raise Error(f"a log-sum-exp is an output of the stage attention, or read by attention_backward: found {stage}")
    caller = Caller(kernel, like, dtype, device, make, signature, page, beside, eight_bits)
    if limit is not None and limit < 1:
        raise Error(f"expected a limit from 1 on, found {limit}")
    title = name if name is not None else str(getattr(kernel, "__qualname__", type(kernel).__name__))
    entry = PluginEntry(stage=encoded(stage), run=caller.function)
    plugin = Plugin(name=encoded(title), n_stages=1, stages=ctypes.pointer(entry), policy=encoded(policy),
                    lse=None if beside.word is None else encoded(beside.word))
    options = DrillOptions(only=None if only is None else encoded(only),
                           model=None if model is None else encoded(model), limit=limit or 0, rate=rate, seed=seed,
                           strict=strict, first=first, no_cause=not cause, said=ctypes.pointer(caller.said),
                           stop=ctypes.pointer(caller.stop))
    with raising(caller.raised):
        ruling = made(lambda place: attempt("drill_plugin", ctypes.byref(plugin), ctypes.byref(options), place),
                      "drill_ruling_free")
    report = text(call("drill_ruling_text", ruling.pointer))
    row = json.loads(text(call("drill_ruling_json", ruling.pointer)))[0]
    told = re.search(r"^    Cause: (.*)$", report, re.MULTILINE)
    return Drill(stage, policy, Verdict(row["verdict"]), row["calls"], row["failing"], row["suspicious"],
                 row["undecided"], row["not_served"], row.get("case"), row.get("why"), told[1] if told else None,
                 report, call("drill_ruling_exit", ruling.pointer), caller.exception, row.get("lse", {}).get("kind"))
