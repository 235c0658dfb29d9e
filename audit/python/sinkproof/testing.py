# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Assertions for tests of an engine, worded like those of torch.testing."""
from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sinkproof._drill import Drill, Kernel, drill
from sinkproof._judgement import Judgement, Point, Verdict, judge
from sinkproof._library import Error, call, encoded, text
from sinkproof._model import Model
from sinkproof._points import names_point
from sinkproof._shares import beside_limit, percent
from sinkproof._trace import Trace


def subject(point: Point) -> str:
    """The subject of a sentence: "Attention weights (03.A9) are", "Residual after attention (03.A13) is"."""
    meaning = text(call("point_meaning", encoded(point.name)))
    head = re.split(" with | before | after | of ", meaning)[0]
    plural = head.endswith("s") or " and " in head
    return f"{meaning[0].upper()}{meaning[1:]} ({point.name}) {'are' if plural else 'is'}"


def chosen(judgement: Judgement, points: Iterable[str] | None) -> list[Point]:
    """The requested points; each word must name one of the trace."""
    if points is None:
        return list(judgement.points)
    words = [points] if isinstance(points, str) else list(points)
    for word in words:
        if not any(names_point(word, point.name) for point in judgement.points):
            raise Error(f"the trace has no point {word}: it has {', '.join(p.name for p in judgement.points)}")
    return [point for point in judgement.points if any(names_point(word, point.name) for word in words)]


def share(count: int, elements: int) -> str:
    return f"{count} / {elements} ({percent(count, elements)})"


def sentence_of_bug(point: Point, judgement: Judgement) -> str:
    """A message like torch.testing.assert_close's, with a set in place of a tolerance."""
    low, high = point.worst_set
    lines = [f"{subject(point)} not honest!",
             "",
             f"Mismatched elements: {share(point.outside, point.elements)}"]
    if point.nans:
        lines.append(f"Not a number: {share(point.nans, point.elements)}")
    if point.infinities:
        lines.append(f"Infinite: {share(point.infinities, point.elements)}")
    lines += [f"Greatest distance outside of the honest set: {point.excess_ulp:.3g} ulp at index {point.worst_index} "
              f"({point.worst_value:.9g}, set [{low:.9g}, {high:.9g}])",
              f"Policy: {judgement.policy}"]
    if judgement.explained_by:
        lines.append(f"Explained by: {judgement.explained_by}")
    diagnosis = judgement.diagnosis_of(point.name)
    if diagnosis is not None:
        lines.append(f"Diagnosis: {diagnosis}")
    return "\n".join(lines)


def sentence_of_doubt(point: Point, judgement: Judgement) -> str:
    lines = [f"{subject(point)} suspicious: possible, but not likely.",
             "",
             f"Elements outside of the likely set: {share(point.unlikely, point.elements)}",
             f"Drift: {beside_limit(point.drift, point.drift_limit)}"]
    if point.layers_together:
        together = beside_limit(point.drift_together, point.drift_together_limit)
        lines.append(f"Drift of {point.layers_together} layers together: {together}")
    return "\n".join(lines + [f"Policy: {judgement.policy}"])


def sentence_of_undecided(points: list[Point], judgement: Judgement) -> str:
    said = "\n".join(f"  {subject(point)} undecided in {share(point.undecided, point.elements)} elements"
                     for point in points)
    return (f"The trace cannot decide {len(points)} of {len(judgement.points)} points: an engine that left the "
            f"operation out might pass.\n\n{said}\n\nTrace what they are computed from (A13, M3 and M12 of each layer "
            f"come first), or allow it: allow_undecided=True\nPolicy: {judgement.policy}")


def assert_honest(model: Model | str | os.PathLike[str], trace: Trace | Mapping[str, Any] | str | os.PathLike[str],
                  policy: str = "auto", points: Iterable[str] | None = None, *, allow_undecided: bool = False,
                  allow_suspicious: bool = False, **options: Any) -> Judgement:
    """Asserts that an honest engine may compute every point; returns the judgement.

    Arguments and `options` as in sinkproof.judge. `points` restricts the assertion, not the judgement:
    "A9" in every layer, "03.A9" in one; a point that the trace lacks is an Error.

    Raises AssertionError about the first bug in the order of the forward pass, or else the first
    suspicious point, or else the points that this trace cannot decide. The message about a bug ends
    with its diagnosis: the named cause, or the nearest; `diagnosis=False` skips it.
    """
    __tracebackhide__ = True  # pytest shows the caller instead
    judgement = judge(model, trace, policy, **options)
    asked = chosen(judgement, points)
    found = {verdict: [point for point in asked if point.verdict is verdict] for verdict in Verdict}
    if found[Verdict.BUG]:
        raise AssertionError(sentence_of_bug(found[Verdict.BUG][0], judgement))
    if found[Verdict.SUSPICIOUS] and not allow_suspicious:
        raise AssertionError(sentence_of_doubt(found[Verdict.SUSPICIOUS][0], judgement))
    if found[Verdict.UNDECIDED] and not allow_undecided:
        raise AssertionError(sentence_of_undecided(found[Verdict.UNDECIDED], judgement))
    return judgement


def assert_kernel(kernel: Kernel, stage: str = "attention", policy: str = "bf16", **options: Any) -> Drill:
    """Asserts that a drill of the kernel finds nothing; returns it.

    Arguments and `options` as in sinkproof.drill. The AssertionError has the smallest call that fails, its first
    wrong element and the honest set there, and ends with the cause: the known mistake that explains the failing calls.
    """
    __tracebackhide__ = True
    return drill(kernel, stage, policy, **options).check()
