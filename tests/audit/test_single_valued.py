# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Chapter 13's table of single-valued sets, against what the commands above it print: each figure of
the small model's column is the share that was found, to the places that are written.

The other column is the same commands on a released width, half a minute each: not run here.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from tap import Tap  # noqa: E402

PROGRAM = os.environ.get("SINKPROOF", "build/release/sinkproof")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "doc/13-bounds.md"
SHOWN = re.compile(r"```sh\n([^`]*)```\n\n<!-- single-valued synthetic:tiny -->\n\n((?:\|.*\n)+)\n([^\n]*)")
ROW = re.compile(r"^\| `([A-Z0-9.a-z]+)`[^|]*\| (over )?([0-9.]+) % \|", re.MULTILINE)
TAP = Tap()


def judged(commands, folder):
    """The results of the page's commands, the last one's as JSON."""
    for line in commands.strip().splitlines():
        words = line.replace("build/release/sinkproof", PROGRAM).replace("build/tiny", f"{folder}/tiny").split()
        words += ["--json", "-"] if words[1] == "judge" else []
        ran = subprocess.run(words, capture_output=True, text=True)
        TAP.report(ran.returncode == 0, f"the page's command: {' '.join(words[1:])}")
    return [r for r in json.loads(ran.stdout)["results"] if "several" in r]


def share(results, point):
    here = [r for r in results if r["id"].split(".", 1)[-1] == point or r["id"] == point]
    several, elements = sum(r["several"] for r in here), sum(r["elements"] for r in here)
    return 100 * (1 - several / elements) if elements else -1


def main():
    commands, table, below = SHOWN.search(PAGE.read_text(encoding="utf-8")).groups()
    with tempfile.TemporaryDirectory() as folder:
        results = judged(commands, folder)
    for point, over, stated in ROW.findall(table):
        places, found = len(stated.partition(".")[2]), share(results, point)
        same = found > float(stated) if over else f"{found:.{places}f}" == stated
        TAP.report(same, f"{point}: {over}{stated} % stated, {found:.4f} % found")
    for point in re.findall(r"`([A-Z0-9]+)`", below.split("have a single value")[0]):
        names = ("A4.q", "A4.k") if point == "A4" else (point,)
        for name in names:
            TAP.report(share(results, name) == 100, f"{name}: a single value everywhere")
    wide = [r["id"] for r in results if r["power_single_ulp"] != 0]
    TAP.report(not wide, f"the median likely set is one value at all {len(results)} points {wide}")
    return TAP.done() or TAP.count < 20


if __name__ == "__main__":
    sys.exit(main())
