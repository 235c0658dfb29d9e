# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Judges a trace: may an honest engine compute every point from the same inputs?"""
from __future__ import annotations

import ctypes
import dataclasses
import enum
import html
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from sinkproof._library import (PROGRESS, Error, Finding, Handle, TrialOptions, attempt, call, encoded, made, raising,
                                 text)
from sinkproof._model import Model, opened
from sinkproof._trace import Trace, built_trace, open_trace


class Verdict(str, enum.Enum):
    """The verdicts; each one's text is its name."""

    ABSENT = "absent"          # not in the trace: bridged
    EXACT = "exact"            # every set is a single value, and the engine has it
    WITHIN = "within"          # inside the honest set: rounding explains it
    UNDECIDED = "undecided"    # an engine without the operation might pass too
    SUSPICIOUS = "suspicious"  # possible, but unlikely
    BUG = "bug"                # outside the honest set: no order of summation explains it

    def __str__(self) -> str:
        return self.value


@dataclasses.dataclass(frozen=True)
class Point:
    """The finding about one tensor. `worst_set` is the set of honest values at `worst_index`."""

    name: str                      # "03.A11"
    layer: int                     # 0 for T0, F1, F2
    verdict: Verdict
    bridged: bool                  # an input of the operation is not in the trace: the set is wider
    shape: tuple[int, ...]
    elements: int
    several: int                   # elements whose set has more than one value
    outside: int                   # elements outside their set: proved wrong under the policy
    unlikely: int                  # elements outside the likely set
    undecided: int                 # elements in rows whose sets are as wide as the values
    nans: int                      # elements where the engine has NaN
    worst_index: tuple[int, ...]
    worst_value: float             # the engine's value
    worst_set: tuple[float, float]
    worst_emulation: float         # the emulated policy's value
    worst_inputs: str              # its inputs in hex floats; of a gradient its cause, or what is missing; may be ""
    excess_ulp: float              # distance outside the set, in ulp of the dtype
    share_worst: float             # |engine - emulation| over the half-width of the set
    share_median: float
    drift: float                   # lean of the signed errors
    drift_limit: float             # limit of chance
    spread: float
    spread_limit: float
    error: float                   # against the truth end to end, relative in the 2-norm; NaN: not asked
    local: float
    inherited: float
    infinities: int                # elements where the engine has an infinity
    layers_together: int           # layers of the point whose drift was judged together; 0: not asked
    drift_together: float          # lean of their signed errors
    drift_together_limit: float    # limit of chance for all of them

    @property
    def point(self) -> str:
        """The name without its layer: "A11"."""
        return self.name.split(".", 1)[1] if self.name[0].isdigit() else self.name


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of points that are outside: the known mistakes that explain every element."""

    points: tuple[str, ...]        # "03.A11"
    # "explained", "unknown", "undecided" or "not looked into"; "isolated": one element, or a few without a pattern,
    # that no single mistake explains; "follows": outside only where one of these is read
    status: str
    mistakes: tuple[str, ...]      # that explain it together: "sink-dropped"; () if none does
    because: tuple[str, ...]       # the same as sentences
    indistinguishable: tuple[tuple[str, ...], ...]  # other mistakes that explain it too
    positions: tuple[int, int] | None  # the first and the last at which they act; None: at all
    next: tuple[str, ...]          # the nearest mistakes that do not explain it
    next_bounds: float             # their distance to the set, in half-widths
    suppositions: int              # for unexplained points: mistakes that reach the points,
    searched: int                  # and those of them that were tried
    pattern: str                   # where the outside elements are, in words

    def __str__(self) -> str:
        """One line with the named cause, or why there is none and which mistake is nearest."""
        if self.mistakes:
            said = " and ".join(f"{why} [{mistake}]" for mistake, why in zip(self.mistakes, self.because))
            others = " or ".join(" and ".join(also) for also in self.indistinguishable)
            return f"{self.status}{self.place}: {said}" + (f"; this trace does not tell it from {others}" if others else "")
        words = {"unknown": "unknown: no known mistake explains it, and no pair",
                 "undecided": f"undecided: searched {self.searched} of {self.suppositions} suppositions, none explains it"}
        near = f"nearest, {bounds_away(self.next_bounds)}: {' and '.join(self.next)}" if self.next else ""
        return "; ".join(part for part in (words.get(self.status, self.status), self.pattern, near) if part)

    @property
    def place(self) -> str:
        """A phrase such as " at positions 37 to 39"; "" if the mistakes act at all positions."""
        if self.positions is None:
            return ""
        first, last = self.positions
        return f" at position {first}" if first == last else f" at positions {first} to {last}"


def bounds_away(bounds: float) -> str:
    return f"{bounds:.2g} bounds away" if math.isfinite(bounds) else "infinitely far away"


@dataclasses.dataclass(frozen=True, repr=False)
class Judgement:
    """The verdict on a trace, and its reasons. `str()` is the report of `sinkproof judge`.

    It has no truth value, since a trace may be neither honest nor wrong: use `.ok` or `.verdict`.
    """

    verdict: Verdict          # the worst of the decided points; UNDECIDED if there are none
    policy: str               # the policy under which it was judged
    points: tuple[Point, ...]  # in the order of the forward pass
    first: str | None         # the first bug, "03.A11"
    explained_by: str | None  # the overrides or other policy that explain all failing points
    diagnosis: tuple[Diagnosis, ...]  # of the points outside, in the order of the forward pass
    exit_code: int            # of `sinkproof judge`
    report: str
    json: str

    @property
    def ok(self) -> bool:
        """Exact or within: all decided points are honest. Other points may be undecided."""
        return self.verdict in (Verdict.EXACT, Verdict.WITHIN)

    @property
    def undecided(self) -> tuple[Point, ...]:
        """The points that this trace cannot decide."""
        return tuple(point for point in self.points if point.verdict is Verdict.UNDECIDED)

    def __getitem__(self, name: str) -> Point:
        """The finding about "03.A11"."""
        for point in self.points:
            if point.name == name:
                return point
        raise KeyError(name)

    def __bool__(self) -> bool:
        raise TypeError("the truth of a Judgement is ambiguous: it may be undecided or suspicious. Ask .ok or .verdict")

    def __str__(self) -> str:
        return self.report

    def __repr__(self) -> str:
        """Short enough for a failed `assert judgement.ok` to show it whole, with every cause."""
        return (f"<sinkproof.Judgement {self.verdict} under {self.policy!r}, {len(self.points)} points"
                + (f", first {self.first}" if self.first else "")
                + (f", explained by {self.explained_by}" if self.explained_by else "")
                + "".join(f"; {named(each)}" for each in self.diagnosis) + ">")

    def diagnosis_of(self, name: str) -> Diagnosis | None:
        """The diagnosis of "03.A11"; None if it was not asked for or the point is not outside."""
        return next((each for each in self.diagnosis if name in each.points), None)

    def to_json(self) -> str:
        """A JSON array, as `sinkproof judge --json` writes it under "results": the judgement, then its points."""
        return self.json

    def _repr_html_(self) -> str:
        """A table for notebooks: a row for each point that is not within, then one row for the others."""
        shown = [point for point in self.points if point.verdict not in (Verdict.EXACT, Verdict.WITHIN)]
        rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells_of(point))}</tr>"
                       for point in shown)
        rest = len(self.points) - len(shown)
        return (f"<div><p><b>{html.escape(str(self.verdict))}</b> under <code>{html.escape(self.policy)}</code>: "
                f"{rest} of {len(self.points)} points are exact or within</p>"
                + "".join(f"<p>{html.escape(named(each))}</p>" for each in self.diagnosis)
                + (f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in HEADS)}</tr></thead>"
                   f"<tbody>{rows}</tbody></table>" if shown else "")
                + f"<details><summary>report</summary><pre>{html.escape(self.report)}</pre></details></div>")


def named(diagnosis: Diagnosis) -> str:
    """A diagnosis after its points: "00.A11, 01.A11: explained: the sink is left out [sink-dropped]"."""
    more = len(diagnosis.points) - 3
    return f"{', '.join(diagnosis.points[:3])}{f' and {more} more' if more > 0 else ''}: {diagnosis}"


HEADS = ("point", "verdict", "outside", "undecided", "elements", "worst at", "engine", "honest set", "inputs")


def cells_of(point: Point) -> tuple[str, ...]:
    low, high = point.worst_set
    return (point.name, str(point.verdict), str(point.outside), str(point.undecided), str(point.elements),
            str(point.worst_index), f"{point.worst_value:.9g}", f"[{low:.9g}, {high:.9g}]", point.worst_inputs)


# ------------------------------------------------------------------------------------------
# From the library


def verdict_of(number: int) -> Verdict:
    return Verdict(text(call("verdict_name", number)))


def point_of(found: Finding) -> Point:
    """A finding, with its sets and indices as tuples."""
    same = {field.name: getattr(found, field.name) for field in dataclasses.fields(Point)
            if field.name not in ("worst_set", "name", "worst_inputs", "verdict", "shape", "worst_index")}
    return Point(name=text(found.name), verdict=verdict_of(found.verdict), shape=tuple(found.shape[: found.rank]),
                 worst_index=tuple(found.worst_index[: found.rank]), worst_inputs=text(found.worst_inputs),
                 worst_set=(found.worst_low, found.worst_high), **same)


def said(function: str, ruling: Handle) -> str:
    return text(call(function, ruling.pointer))


def diagnosis_of(found: Mapping[str, Any]) -> Diagnosis:
    """A diagnosis from the library's JSON, where unknown members are null."""
    bounds = found["next_bounds"]
    return Diagnosis(points=tuple(found["points"]), status=found["status"], mistakes=tuple(found["mistakes"] or ()),
                     because=tuple(found["because"] or ()),
                     indistinguishable=tuple(tuple(also) for also in found["indistinguishable"]),
                     positions=None if found["positions"] is None else (found["positions"][0], found["positions"][1]),
                     next=tuple(found["next"] or ()), next_bounds=math.inf if bounds is None else bounds,
                     suppositions=found["suppositions"], searched=found["searched"], pattern=found["pattern"] or "")


def judgement_of(ruling: Handle) -> Judgement:
    """A copy of the library's ruling."""
    found, points = Finding(), []
    for i in range(call("ruling_count", ruling.pointer)):
        call("ruling_at", ruling.pointer, i, ctypes.byref(found))
        points.append(point_of(found))
    written = said("ruling_json", ruling)
    return Judgement(verdict=verdict_of(call("ruling_verdict", ruling.pointer)),
                     policy=said("ruling_policy", ruling), points=tuple(points),
                     first=said("ruling_first", ruling) or None,
                     explained_by=said("ruling_explained_by", ruling) or None,
                     exit_code=call("ruling_exit", ruling.pointer), report=said("ruling_text", ruling),
                     diagnosis=tuple(map(diagnosis_of, json.loads(written)[0]["diagnosis"])), json=written)


Progress = Callable[[str, float], object]


def callback_of(progress: Progress | None, raised: list[BaseException]) -> Any:
    """The library's callback; it stores the first exception of `progress`, which is then not called again."""
    def enter(context: Any, what: bytes, share: float) -> None:
        try:
            if progress is not None and not raised:
                progress(text(what), share)
        except BaseException as exception:  # judge() raises it
            raised.append(exception)
    return PROGRESS(enter) if progress is not None else PROGRESS()


def judge(model: Model | str | os.PathLike[str], trace: Trace | Mapping[str, Any] | str | os.PathLike[str],
          policy: str = "auto", *, name: str | None = None, rate: float = 0.0, strict: bool = False,
          local: bool = False, hint: bool = True, diagnosis: bool = True, forms: bool = False,
          all_layers: bool = False, any_model: bool = False, truth: str | os.PathLike[str] | None = None,
          truth_alone: bool = False, adapter: str | os.PathLike[str] | None = None,
          progress: Progress | None = None) -> Judgement:
    """Judges every point of a trace from the trace's own inputs to it.

    `model` is a Model, or the argument for one. `trace` is a Trace, the path of a file, or arrays by
    name, {"tokens": [n], "03.A11": [n, heads, head_dim], ...}: names and shapes as in chapter 11.
    `policy` is the engine's ("f32", "bf16,A8=f32"); "auto" takes the narrowest known one that fits,
    or else the nearest.

    `name` is the trace's name in the report. `rate` is the rate of false alarms per tensor, for the
    likely set, drift and spread, and for the drift of a point's layers together; 0: 1e-9.
    `strict` gives a suspicious trace exit code 1. `local` skips the end-to-end comparison with the
    truth, `hint=False` the search for overrides that explain a bug, `diagnosis=False` that for known
    mistakes; `forms` names the form of each stage that the trace fits; `all_layers` gives the report
    a line per layer. `any_model` accepts a trace whose metadata name the fingerprint of another model,
    which is otherwise an Error. `truth` is a trace that `sinkproof truth --trace` wrote of the same model
    and tokens: the report and the JSON compare the trace with it end to end; with `truth_alone` nothing else is done. `adapter` is the directory of a LoRA of PEFT that the engine has
    beside the weights of `model`, not merged into them; nothing is compared end to end then. `progress` is called with
    (what, share done).

    Raises Error on a model, trace or policy that cannot be judged. A NaN in the trace is not an error
    but a finding.
    """
    opened_model = opened(model)
    if isinstance(trace, (str, os.PathLike)):
        given = open_trace(opened_model, trace, any_model)
    elif isinstance(trace, Mapping):
        if adapter is None and isinstance(trace, Trace) and trace.metadata.get("adapter") == "beside":
            raise Error("an adapter was beside the weights of this trace, not merged: expected its directory, adapter=")
        given = built_trace(opened_model, trace)
        name = name or (trace.path if isinstance(trace, Trace) else None)
    else:
        raise Error(f"expected a Trace, a path or arrays by name, found {type(trace).__name__}")
    raised: list[BaseException] = []
    options = TrialOptions(policy=encoded(policy), name=None if name is None else encoded(name), rate=rate,
                           strict=strict, all=all_layers, local=local, no_hint=not hint, forms=forms,
                           no_diagnosis=not diagnosis, any_model=any_model,
                           truth=None if truth is None else encoded(truth), truth_alone=truth_alone,
                           adapter=None if adapter is None else encoded(adapter),
                           progress=callback_of(progress, raised))
    with raising(raised):
        ruling = made(lambda place: attempt("judge_trace", opened_model.handle.pointer, given.pointer,
                                            ctypes.byref(options), place), "ruling_free", opened_model.handle, given)
    return judgement_of(ruling)
