# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Python's sum() as in other versions: Python loads this file at its start if PYTHONPATH names the folder.

From 3.12 on sum() tracks the rounding errors of floats (Neumaier's sum); before, it adds one float after the
other. Here each Python gets the other's sum.
"""
import builtins
import sys

COMPENSATES = sys.version_info < (3, 12)


def sum(iterable, /, start=0):
    if isinstance(start, (str, bytes, bytearray)):
        return own(iterable, start)  # raises its own error
    total, lost = start, 0.0
    for x in iterable:
        added = total + x
        if COMPENSATES and type(added) is float and type(x) in (float, int) and type(total) in (float, int):
            large, small = (total, x) if abs(total) >= abs(x) else (x, total)
            lost += (large - added) + small
        total = added
    finite = lost - lost == 0  # an overflow leaves NaN or infinity there
    return total + lost if type(total) is float and lost and finite else total


own, builtins.sum = builtins.sum, sum
