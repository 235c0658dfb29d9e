# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Shared by the Python tests: prints a line of TAP for each check, then the plan."""


def largest(*numbers):
    """The largest number, and NaN if one is NaN: max() keeps a number that precedes a NaN."""
    return next((x for x in numbers if x != x), max(numbers))


class Tap:
    def __init__(self):
        self.count, self.failed = 0, False

    def report(self, good, text, notes=()):
        self.count, self.failed = self.count + 1, self.failed or not good
        said = () if good else [f"# {note}" for note in notes][:20]
        print(f"{'ok' if good else 'not ok'} {self.count} - {text}", *said, sep="\n", flush=True)
        return good

    def skip(self, text, why):
        self.count += 1
        print(f"ok {self.count} - {text} # SKIP {why}", flush=True)

    def done(self):
        """Prints the plan; returns the test's exit status."""
        print(f"1..{self.count}")
        return 1 if self.failed or not self.count else 0
