#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs of make and of the tests do not get in each other's way, and no test takes another's log.

Several makes build the same files of a variant of their own at once; two runs of tests share a folder; two tests in
two rooms have one name. What the runner says of itself is so.
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
import naming  # noqa: E402
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
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "Makefile", *sorted((ROOT / "make").glob("*.mk"))))
    direct = [line.strip() for line in text.splitlines() if re.search(r"(?:-o|>|rcsD) ?\$@(?!\.)", line)]
    tap.report("-o $(PART)" in text and not direct, "no rule writes to the name that another make reads", direct)


def names(tap):
    with tempfile.TemporaryDirectory() as work:
        tests = [pathlib.Path(work) / room / "test_same.sh" for room in ("ref", "proofs")]
        for test in tests:
            test.parent.mkdir()
            test.write_text(f"echo '1..1'; echo 'ok 1 - of {test.parent.name}'\n", encoding="utf-8")
        (said, status), = ends([start(sys.executable, "tests/run.py", "--logs", f"{work}/apart", f"{work}/build", *map(str, tests))])
        logs = [(pathlib.Path(work) / f"apart/tap/{room}/test_same.sh.tap").read_text(encoding="utf-8") for room in ("ref", "proofs")]
        tap.report(status == 0 and [log.splitlines()[-1] for log in logs] == ["ok 1 - of ref", "ok 1 - of proofs"]
                   and not (pathlib.Path(work) / "build/tap.log").exists(),
                   "two tests of one name have a log each, in the folder that is asked for", [said, *logs])
    tree = {"ref": ["test_a.c", "test_b.sh"], "proofs": ["test_a.c", "test_c.c"]}
    with tempfile.TemporaryDirectory() as work:
        for room, files in tree.items():
            (pathlib.Path(work) / "tests" / room).mkdir(parents=True)
            for file in files:
                (pathlib.Path(work) / "tests" / room / file).touch()
        called = [naming.called(work, path) for path in ("build/tests/ref/test_a", "build/tests/proofs/test_a",
                                                             "build/tests/proofs/test_c", "tests/ref/test_b.sh")]
        back = [naming.full(work, name) for name in called]
    tap.report(called == ["ref/test_a", "proofs/test_a", "test_c", "test_b.sh"]
               and back == ["ref/test_a", "proofs/test_a", "proofs/test_c", "ref/test_b.sh"],
               "where two rooms have one name, a test is called by its room too", [called, back])


def shared_log(tap):
    with tempfile.TemporaryDirectory() as work:
        test = pathlib.Path(work) / "test_slow.sh"
        test.write_text("echo '1..1'; sleep 1; echo 'ok 1 - slow'\n", encoding="utf-8")
        said = ends([start(sys.executable, "tests/run.py", f"{work}/build", str(test)) for _ in range(2)])
        good = all(status == 0 and "1 passed, 0 failed" in text for text, status in said)
        tap.report(good and sum("another run of tests writes there" in text for text, _ in said) == 1,
                   "of two runs of tests in one folder the second says that it waits, and both are whole", said)


def figures(tap):
    """The processor seconds of the rooms, the temporary files, and whom "python3" calls."""
    with tempfile.TemporaryDirectory() as work:
        busy, idle = (pathlib.Path(work) / room / "test_it.sh" for room in ("ref", "proofs"))
        for test in (busy, idle):
            test.parent.mkdir()
        busy.write_text("python3 -c 'import sys, time\nwhile time.process_time() < 0.5: pass\nprint(sys.executable)' > "
                        f"{work}/python\necho $TMPDIR > {work}/folder; mktemp > {work}/file\n"
                        "echo '1..1'; echo 'ok 1 - busy'\n", encoding="utf-8")
        idle.write_text("sleep 0.6; echo '1..1'; echo 'ok 1 - idle'\n", encoding="utf-8")
        (said, status), = ends([start(sys.executable, "tests/run.py", "--small", f"{work}/build", str(busy), str(idle))])
        told = re.search(r"^CPU seconds: \d+; by room: ref ([\d.]+), proofs ([\d.]+)$", said, re.M)
        tap.report(status == 0 and told is not None and float(told[1]) >= 0.5 and float(told[2]) < 0.3
                   and re.search(r"^CPU seconds, the most: ref/test_it.sh \d", said, re.M) is not None,
                   "the processor seconds are those of each room's programs, not the time that passes", said)
        python, folder, file = ((pathlib.Path(work) / name).read_text(encoding="utf-8").strip()
                                for name in ("python", "folder", "file"))
        tap.report(python == sys.executable, "python3 in a test is the interpreter that runs the tests", [python, sys.executable])
        tap.report(file.startswith(folder + "/") and not pathlib.Path(folder).exists(),
                   "the tests' temporary files lie in one folder, which goes with them", [folder, file])


def main():
    tap = Tap()
    at_once(tap)
    names(tap)
    shared_log(tap)
    figures(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
