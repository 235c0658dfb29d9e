# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Numbers beside their limits as text: one below is never shown as the limit, nor is one above."""
from __future__ import annotations


def percent(part: int, whole: int, places: int = 1) -> str:
    """"99.9%" of all but one, however many."""
    shown = f"{100 * part / whole:.{places}f}" if whole else f"{0:.{places}f}"
    if part < whole and float(shown) >= 100:
        shown = f"{100 - 10.0 ** -places:.{places}f}"
    return f"{shown}%"


def beside_limit(x: float, limit: float) -> str:
    """"2.96e-08, where chance allows 2.76e-08", in as many digits as it takes to tell them apart."""
    digits = 3
    while digits < 17 and abs(x) != limit and float(f"{abs(x):.{digits}g}") == float(f"{limit:.{digits}g}"):
        digits += 1
    return f"{x:.{digits}g}, where chance allows {limit:.{digits}g}"
