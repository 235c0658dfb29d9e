#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The fuzzers run in the build of clang's sanitizers, after its tests: a landing counts what both said."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/shared")]
import fuzz  # noqa: E402
import tap_log  # noqa: E402
from tap import Tap  # noqa: E402

FUZZER = "#!/bin/sh\necho 'stat::number_of_executed_units: 5'\n"
tap = Tap()
fuzz.print = lambda *_, **__: None  # its results are no results of this test

counted = re.search(r"^for log in (build/\S+tap\.log build/\S+tap\.log); do$", (ROOT / ".ci/run").read_text(), re.M)
removed = re.search(r"^rm -f (build/.*)$", (ROOT / ".ci/run").read_text(), re.M)
tap.report(counted and removed and counted[1] == removed[1], "a landing removes the logs that it counts, before it runs")

with tempfile.TemporaryDirectory() as work:
    build = pathlib.Path(work) / "build/asan-clang"
    build.mkdir(parents=True)
    (build / "tap.log").write_text("# FILE test\nok 1 - a\nok 2 - b\n1..2\n")
    fuzzer = pathlib.Path(work) / "room" / "fuzz_any"
    fuzzer.parent.mkdir()
    fuzzer.write_text(FUZZER)
    fuzzer.chmod(0o755)
    status = fuzz.main(build, "1", [str(fuzzer)])
    found = subprocess.run(["bash", "-c", f"cat {counted[1]} 2>/dev/null"], cwd=work, stdout=subprocess.PIPE, text=True, check=False).stdout
    passed, failed, skipped = tap_log.count(tap_log.parse(found))
    tap.report((status, passed, failed, skipped) == (0, 3, [], []), "two results of tests and one of a fuzzer are counted",
               [status, found])
    fuzzer.write_text(FUZZER + "exit 77\n")
    status = fuzz.main(build, "1", [str(fuzzer)])
    found = (build / "fuzz/tap.log").read_text()
    tap.report(status == 1 and "\nnot ok 1 - room-fuzz_any: 5 inputs in 1 s, exit 77\n" in found, "a crash is a failure there",
               [status, found])
sys.exit(tap.done())
