# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Shares of a whole or a limit as text, as in base/share.c: a share below 1 is never shown as 100 %, nor is one
above 1.
"""


def percent(share, places, sign=" %"):
    """"99.9 %" for 0.9999, "100.0 %" for 1 alone, "100.1 %" for 1.0001."""
    shown, step = f"{100 * share:.{places}f}", 10.0 ** -places
    if share < 1 and float(shown) >= 100:
        shown = f"{100 - step:.{places}f}"
    elif share > 1 and float(shown) <= 100:
        shown = f"{100 + step:.{places}f}"
    return shown + sign
