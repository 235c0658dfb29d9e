# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The book's table of points names those of ref/points.h, all of them, in order; for check_doc.py. What a
product or a sum does inside, the same in several stages, stands behind them, a row for each kind."""
import re

HEADER, PAGE, HEADING = "ref/points.h", "doc/01-model.md", "## The points"
POINT = re.compile(r'^\s*P\(\w+,\s*"([\w.]+)"', re.MULTILINE)
PARTS = re.compile(r"\.[qkv]$")  # A2.q, A2.k and A2.v stand as A2
INSIDE = re.compile(r"\.(in|term|acc|product|weights|[qkv])$")


def names(root):
    """Rounding points and what only a trace has, in the order of the forward pass."""
    rounding, traced = (POINT.findall(part) for part in
                        (root / HEADER).read_text(encoding="utf-8").split("SINKPROOF_TRACED_POINTS(P)"))
    found = list(rounding)
    before = None
    for name in (PARTS.sub("", name) for name in traced):
        if name not in found:  # behind the point that a trace holds before it
            found.insert(found.index(before) + 1, name)
        before = name
    return found


def check(root, problems):
    if not (root / HEADER).is_file():
        return
    section = (root / PAGE).read_text(encoding="utf-8").split(HEADING, 1)[-1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    shown, wanted = re.findall(r"`([\w.]+)`", " ".join(rows)), names(root)
    for name in sorted(set(shown) ^ set(wanted)):
        problems.add(PAGE, f"{name} is {'no point of' if name in shown else 'missing: it is a point of'} {HEADER}")
    if sorted(shown) != sorted(wanted):
        return
    steps = [name for name in wanted if not INSIDE.search(name)]
    told = [re.findall(r"`([\w.]+)`", row) for row in rows]
    kinds = [row for row in told if INSIDE.search(row[0])]
    found = [name for row in told if row not in kinds for name in row]
    for expected, given in [(steps, found), *((sorted(row, key=wanted.index), row) for row in kinds)]:
        at = next((i for i, (x, y) in enumerate(zip(given, expected)) if x != y), None)
        if at is not None:
            problems.add(PAGE, f"{given[at]} stands where {HEADER} has {expected[at]}")
    if told[len(told) - len(kinds):] != kinds:
        problems.add(PAGE, "a row of what is inside of products stands between the stages")
