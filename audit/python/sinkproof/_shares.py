# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Formats numbers next to their limits: a number below a limit is never shown as equal to it, nor one above."""
from __future__ import annotations


def percent(part: int, whole: int, places: int = 1) -> str:
    """A share in percent; "99.9%" for all but one, however many."""
    shown = f"{100 * part / whole:.{places}f}" if whole else f"{0:.{places}f}"
    if part < whole and float(shown) >= 100:
        shown = f"{100 - 10.0 ** -places:.{places}f}"
    return f"{shown}%"


def beside_limit(x: float, limit: float) -> str:
    """Such as "2.96e-08, where chance allows 2.76e-08", with enough digits to distinguish them."""
    digits = 3
    while digits < 17 and abs(x) != limit and float(f"{abs(x):.{digits}g}") == float(f"{limit:.{digits}g}"):
        digits += 1
    return f"{x:.{digits}g}, where chance allows {limit:.{digits}g}"
