#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`make test T=...`: which tests it means, what is built for them, where their log goes, what an unknown one is told."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "tests")]
import choose  # noqa: E402
from tap import Tap  # noqa: E402

ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
TREE = ["tests/ref/test_softmax_sink.c", "tests/proofs/test_bounds_softmax_sink.c", "tests/proofs/test_softmax_formula.c",
        "tests/audit/test_sinks.sh", "tests/audit/test_trace.c", "tests/model/test_gguf.c", "tests/model/test_gguf.py"]
MEANT = [("softmax_sink", [0, 1], "a stem: the tests of all rooms that have its words"),
         ("sink", [0, 1], "a stem of one word, which is no part of another"),
         ("softmax", [0, 1, 2], "a stem at the beginning of several names"),
         ("softmax_formula", [2], "a stem whose words stand apart elsewhere"),
         ("gguf", [5, 6], "programs and scripts alike"),
         ("ref/", [0], "a room"),
         ("proofs/softmax", [1, 2], "a stem in one room"),
         ("audit/test_trace", [4], "a test with its room"),
         ("tests/audit/test_trace.c", [4], "a path"),
         ("test_gguf.py", [6], "a name with its ending"),
         ("test_softmax_sink", [0], "a whole name, and not those that have its words"),
         ("trace ref/ softmax_sink", [4, 0, 1], "several, each test once")]
UNKNOWN = [("softmax_sinc", "softmax_sink"), ("reff/", "ref/"), ("audit/test_trase", "audit/trace"), ("ink", "sinks"),
           ("fast/softmax_sink", "ref/softmax_sink")]


def make(*words):
    ran = subprocess.run(["make", "--no-print-directory", "-n", "CC=gcc", *words], cwd=ROOT, env=ENVIRONMENT, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ran.returncode, ran.stdout


def said(t, sources):
    ran = subprocess.run([sys.executable, ROOT / "tests/choose.py", t, *sources], text=True, stdout=subprocess.PIPE)
    return ran.returncode, ran.stdout.strip()


def main():
    tap = Tap()
    for t, numbers, what in MEANT:
        status, found = said(t, TREE)
        tap.report((status, found.split()) == (0, [TREE[k] for k in numbers]), f"T={t}: {what}", [found])
    for t, nearest in UNKNOWN:
        status, found = said(t, TREE)
        tap.report((status, found) == (2, f"T={t}: no test has that name; the nearest is {nearest}"),
                   f"T={t} is told of {nearest}", [found])
    status, found = said("", TREE)
    tap.report(status == 2 and "expected a stem" in found, "T= is told what was expected", [found])

    status, found = make("test", "T=softmax_sinc")
    tap.report(status == 2 and "the nearest is softmax_sink" in found and len(found.splitlines()) == 1,
               "make ends with the sentence", [found])
    status, found = make("test", "T=ref/softmax_sink", "VARIANT=none")
    linked = re.findall(r'"  link build/none/(\S+)"', found)
    tap.report(status == 0 and linked == ["tests/ref/test_softmax_sink"] and "--logs build/none/chosen build/none build/none/"
               "tests/ref/test_softmax_sink\n" in found, "of one program nothing else is linked, and its log is apart", linked)
    status, found = make("test", "T=audit/test_sinks.sh", "VARIANT=none")
    linked = re.findall(r'"  link build/none/(\S+)"', found)
    tap.report(status == 0 and linked == ["sinkproof"] and "build/none tests/audit/test_sinks.sh\n" in found,
               "of a script the command is", linked)
    status, found = make("test", "VARIANT=none", "CC=clang")
    tap.report(status == 0 and "--logs" not in found and found.count('"  link ') > 150, "without T all are", [found[-300:]])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
