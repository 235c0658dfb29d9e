# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Reads TAP logs and counts results. Each skip is listed by name, and an unfulfilled plan is a failure.

    python3 tests/shared/tap_log.py LOG...     prints the skips, then the closing line
                                        "N passed, N failed, N skipped"; exit 1 on a failure

A log is TAP with a line "# FILE name" before each program's output.
"""
import re
import sys
from collections import namedtuple

Result = namedtuple("Result", "file ok number text skip todo")
LINE = re.compile(r"^(not )?ok\b(?: (\d+))?(?:\s+-)?\s*(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b\s*(.*))?", re.IGNORECASE)
RAN_ON = re.compile(r" \[(\w+): (on hardware|emulated)\]$")  # tests/shared/ran_on.h
DIRECTIVE = re.compile(r"(?:^|\s)#\s*(SKIP|TODO)\b\s*(.*)$", re.IGNORECASE)


def parse(text, file="-"):
    """Every result of a log; a file whose results do not match its plan adds one failure."""
    results, seen, plan, started = [], 0, None, False

    def close():
        if not started:
            return
        if plan is None or plan != seen:
            said = "no plan" if plan is None else f"planned {plan}"
            results.append(Result(file, False, 0, f"{said}, ran {seen}", None, False))

    for line in text.splitlines():
        if line.startswith("# FILE "):
            close()
            file, seen, plan, started = line[7:].strip(), 0, None, True
            continue
        match = PLAN.match(line)
        if match:
            plan, started = int(match[1]), True
            if match[2] is not None:
                results.append(Result(file, True, 0, "whole file", match[2].strip() or "-", False))
            continue
        match = LINE.match(line)
        if match:
            started, seen = True, seen + (match[2] != "0")  # number 0: added by the runner
            directive = DIRECTIVE.search(match[3])
            word = directive[1].upper() if directive else ""
            results.append(Result(file, not match[1], int(match[2] or seen),
                                  match[3][: directive.start()].strip() if directive else match[3],
                                  (directive[2] or "-") if word == "SKIP" else None, word == "TODO"))
    close()
    return results


def count(results):
    skipped = [r for r in results if r.skip is not None]
    failed = [r for r in results if r.skip is None and not r.ok and not r.todo]
    return len(results) - len(skipped) - len(failed), failed, skipped


def main(paths):
    results = []
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as log:
            results += parse(log.read(), path)
    passed, failed, skipped = count(results)
    for r in failed:
        print(f"failed: {r.file} {r.number} {r.text}")
    for r in skipped:
        print(f"skipped: {r.file} {r.number} {r.text} ({r.skip})")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
