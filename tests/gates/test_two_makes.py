#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs of make and of the tests do not get in each other's way, and no test takes another's name.

Several makes build the same files of a variant of their own at once; two runs of tests share a folder; two tests in
two rooms have one name.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shared"))
from tap import Tap  # noqa: E402

VARIANT = f"twice-{os.getpid()}"
BUILT = ("inventory.c", "inventory.o", "model/round.o", "ref/mask.o", "library/names", "flags")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def start(*command):
    return subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def make(*words):
    return start("make", "--no-print-directory", f"VARIANT={VARIANT}", "CC=gcc", *words)


def ends(processes):
    return [(p.communicate()[0], p.returncode) for p in processes]


def at_once(tap):
    folder = ROOT / "build" / VARIANT
    try:
        said = ends([make("-j2", *(f"build/{VARIANT}/{name}" for name in BUILT)) for _ in range(5)])
        bad = [text for text, status in said if status != 0]
        left = [str(path) for path in folder.rglob("*.part*")]
        rules = (folder / "model/round.d").read_text(encoding="utf-8") if not bad else ""
        tap.report(not bad and not left and all((folder / name).stat().st_size > 0 for name in BUILT)
                   and rules.startswith(f"build/{VARIANT}/model/round.o:"),
                   f"five makes at once build {len(BUILT)} files of one variant, and leave nothing beside them", [*bad, *left])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    direct = [line.strip() for line in text.splitlines() if re.search(r"(?:-o|>|rcsD) ?\$@(?!\.)", line)]
    tap.report("-o $(PART)" in text and not direct, "no rule writes to the name that another make reads", direct)


def names(tap):
    here = (ROOT / "Makefile").read_text(encoding="utf-8")
    tap.report(ends([make("-n", "help")])[0][1] == 0 and "NAMED" in here, "no two tests have one name")
    for a, b in (("tests/ref/test_rmsnorm.c", "tests/proofs/test_rmsnorm.c"), ("tests/audit/test_x.sh", "tests/doc/test_x.sh"),
                 ("tests/shared/tap.py", "tests/gates/tap.py")):
        said, status = ends([make("-n", "help", f"NAMED={a} {b} tests/model/test_round.c")])[0]
        tap.report(status != 0 and f"tests need names of their own, whatever their folder: {a} {b}" in said,
                   f"a name that is given twice ends make at once: {b}", [said])


def shared_log(tap):
    with tempfile.TemporaryDirectory() as work:
        test = pathlib.Path(work) / "test_slow.sh"
        test.write_text("echo '1..1'; sleep 1; echo 'ok 1 - slow'\n", encoding="utf-8")
        said = ends([start(sys.executable, "tests/run.py", f"{work}/build", str(test)) for _ in range(2)])
        good = all(status == 0 and "1 passed, 0 failed" in text for text, status in said)
        tap.report(good and sum("another run of tests writes there" in text for text, _ in said) == 1,
                   "of two runs of tests in one folder the second says that it waits, and both are whole", said)


def main():
    tap = Tap()
    at_once(tap)
    names(tap)
    shared_log(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
