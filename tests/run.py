# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Runs TAP programs under prove, keeps what they said, and counts it.

    python3 tests/run.py [--logs FOLDER] [--small] BUILD TEST...

Each program's TAP goes to FOLDER/tap/ROOM/NAME.tap and, all together, to FOLDER/tap.log; FOLDER is BUILD unless
it is said: the log of some tests (make test T=...) is not that of all. The skips are
named, so is which instruction set the tests ran on hardware and which under an emulation, so are
the processor seconds of each room; the counts are printed, and prove's own summary ends the
output. The log opens with a line that says what the figures depend on: the processor's instruction
sets, the compiler, the C library, the processor for which OpenBLAS adds up.
With CI=true a skip fails.
TEST_RUNNER, when it is set, is the emulator that runs the compiled programs. ORDER=openblas and ORDER=python
add up in another order where a library does it (tests/shared/orders.py).
"""
import argparse
import contextlib
import fcntl
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))
import naming  # noqa: E402
import orders  # noqa: E402
import tap_log  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]

# What prove runs for each program: the program itself, its output also to a file.
TEE = """set -o pipefail
name=$(basename "$(dirname "$1")")/$(basename "$1")
mkdir -p "$TAP_DIR/${name%/*}"
case $1 in
*.py) set -- "${PYTHON:-python3}" "$@" ;;
*.sh) set -- bash "$@" ;;
*) [ -z "${TEST_RUNNER:-}" ] || set -- "$TEST_RUNNER" "$@" ;;
esac
start=$SECONDS
timeout -k 10 "${TEST_SECONDS:-900}" "$@" </dev/null | tee "$TAP_DIR/$name.tap"
status=$?
[ $status -ne 124 ] || echo "# $name: stopped after ${TEST_SECONDS:-900} s"
# A program that fails without saying so (a crash, a leak) is a failure in the log too.
[ $status -eq 0 ] || grep -q '^not ok' "$TAP_DIR/$name.tap" ||
    echo "not ok 0 - $name exited with $status" >>"$TAP_DIR/$name.tap"
times >"$TAP_DIR/$name.times"
echo "# $name: $((SECONDS - start)) s"
exit $status
"""


def machine(env):
    """What a measured figure may depend on beside the code; tests/gates/doc_pages.py compares it."""
    cpu = pathlib.Path("/proc/cpuinfo")
    words = set(re.findall(r"\w+", cpu.read_text())) if cpu.is_file() else set()
    sets = sorted(words & {"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "asimd"})
    compiler = shlex.split(os.environ.get("CC") or "gcc")
    version = subprocess.run([*compiler, "-dumpversion"], stdout=subprocess.PIPE, text=True).stdout.strip()
    order = orders.products(env.get("OPENBLAS_CORETYPE") or "")
    return " ".join([platform.machine(), *sets, f"{os.path.basename(compiler[-1])}-{version}",
                     "-".join(platform.libc_ver()), *([f"openblas-{order[0]}"] if order else [])])


def sets_ran(results):
    """"amx, emulated: 23 checks of test_amx, test_amx_engine", by how and by set."""
    ran = {}
    for r in results:
        match = tap_log.RAN_ON.search(r.text)
        if match and r.skip is None:
            ran.setdefault((match[2], match[1]), []).append(r.file)
    return [f"{isa}, {how}: {len(files)} checks of {', '.join(sorted(set(files)))}"
            for (how, isa), files in sorted(ran.items(), reverse=True)]


def processor_seconds(folder):
    """What each room's programs took of the processor, and which took most: two lines. None was run: none."""
    took = {}
    for path in folder.glob("*/*.times"):
        times = re.findall(r"(\d+)m([\d.]+)s", path.read_text())
        took[path.parent.name, path.stem] = sum(60 * int(minutes) + float(seconds) for minutes, seconds in times)
    rooms = {room: sum(s for (r, _), s in took.items() if r == room) for room, _ in took}
    if not took:
        return []
    ordered = sorted(took.items(), key=lambda one: -one[1])[:10]
    return [f"CPU seconds: {sum(took.values()):.0f}; by room: " +
            ", ".join(f"{room} {s:.1f}" for room, s in sorted(rooms.items(), key=lambda one: -one[1])),
            "CPU seconds, the most: " + ", ".join(f"{room}/{name} {s:.1f}" for (room, name), s in ordered)]


IN_MEMORY = 1 << 30  # bytes: eight times what the temporary files of `make test` take at once


@contextlib.contextmanager
def temporary_files(small):
    """A folder for the tests' temporary files, which goes with them: where TMPDIR or the system says, but small ones
    in memory, where there is room for them and programs may be run from there."""
    memory, parent = "/dev/shm", None
    if small and "TMPDIR" not in os.environ and os.access(memory, os.W_OK):
        if shutil.disk_usage(memory).free >= IN_MEMORY and not os.statvfs(memory).f_flag & os.ST_NOEXEC:
            parent = memory
    folder = tempfile.mkdtemp(prefix="sinkproof-tests-", dir=parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def alone(logs):
    """A lock on the folder's log: of two runs there the second waits for the first, and says so."""
    logs.mkdir(parents=True, exist_ok=True)
    lock = open(logs / "tap.lock", "w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"{logs}/tap: another run of tests writes there; this one waits for its end", file=sys.stderr, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def main(build, logs, tests, small):
    logs = pathlib.Path(logs)
    lock = alone(logs)
    folder = logs / "tap"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tee = folder / "tee"
    tee.write_text(TEE)
    # This interpreter for every "python3": a version manager's own costs a shell at each start.
    interpreter = folder / "bin/python3"
    interpreter.parent.mkdir()
    interpreter.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    interpreter.chmod(0o755)
    # The Makefile's jobserver is not the tests' business.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    env.update(TAP_DIR=str(folder), SINKPROOF_BUILD=str(build), LC_ALL="C.UTF-8")
    # What is measured to choose an instruction set is kept here, not at the user's.
    env["SINKPROOF_CACHE"] = str(folder.resolve() / "cache")
    # Several programs run at once: OpenBLAS alone, OpenMP with two threads that sleep while they wait.
    for name, value in (("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "2"), ("OMP_WAIT_POLICY", "passive")):
        env.setdefault(name, value)
    try:
        env.update(orders.environment(env))
    except ValueError as error:
        sys.exit(f"tests/run.py: {error}")
    env["PATH"] = f"{interpreter.parent.resolve()}{os.pathsep}{env['PATH']}"
    jobs = env.get("TEST_JOBS") or str(os.cpu_count() or 1)
    held = []
    with temporary_files(small) as env["TMPDIR"]:
        prove = subprocess.Popen(["prove", "--nocolor", "--timer", f"-j{jobs}", "--exec", f"bash {tee}",
                                  *tests], stdout=subprocess.PIPE, text=True, env=env)
        for line in prove.stdout:
            # prove's closing lines wait until the counts are printed.
            if held or line.startswith(("All tests successful", "Test Summary Report", "Files=")):
                held.append(line)
            else:
                print(line, end="", flush=True)
        status = prove.wait()

    log, kept = f"# MACHINE {machine(env)}\n", {}
    for path in sorted(folder.glob("*/*.tap"), key=lambda path: path.name):
        name = naming.called(ROOT, path.with_suffix(""))
        kept[name] = path
        log += f"# FILE {name}\n" + path.read_text(encoding="utf-8", errors="replace")
        log += "" if log.endswith("\n") else "\n"
    (logs / "tap.log").write_text(log, encoding="utf-8")
    results = tap_log.parse(log)
    passed, failed, skipped = tap_log.count(results)
    for line in sets_ran(results) + processor_seconds(folder):
        print(line)
    for r in failed:
        print(f"failed: {r.file} {r.number} {r.text}   (see {kept[r.file]})")
    for r in skipped:
        print(f"skipped: {r.file} {r.number} {r.text} ({r.skip})")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped   (log: {logs}/tap.log)")
    refused = bool(skipped) and os.environ.get("CI") == "true"
    if refused:
        print("a skip is a failure when CI=true")
        held = [line.replace("Result: PASS", "Result: FAIL") for line in held]
    print("".join(held), end="", flush=True)
    lock.close()
    return 1 if status or failed or refused or not passed else 0


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--logs", metavar="FOLDER")
    arguments.add_argument("--small", action="store_true", help="the tests' temporary files are small")
    arguments.add_argument("build", metavar="BUILD")
    arguments.add_argument("tests", metavar="TEST", nargs="*")
    options = arguments.parse_args()
    sys.exit(main(options.build, options.logs or options.build, options.tests, options.small))
