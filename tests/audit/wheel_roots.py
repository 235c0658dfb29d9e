# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The wheels where they are to run: in Debian roots of Python alone, without OpenBLAS; under Python 3.10 to 3.14; on
emulated aarch64. And the sdist, compiled by pip.

    python3 tests/audit/wheel_roots.py

A TAP program, run by `make test-wheel`, which makes the wheels: it needs pip, an index and Debian's mirror. What is not
to be had here is a skip. A root is packages unpacked into a folder (audit/install/unpack.sh), entered by chroot; an
interpreter of this machine reads the wheel from a folder too.
"""
import json
import os
import pathlib
import shlex
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
from python_wheel import CLEAN, said_by  # noqa: E402
from tap import Tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SINKPROOF_BUILD") or ROOT / "build" / "release" / "wheels").resolve()
PROBE = ROOT / "tests" / "audit" / "wheel_probe.py"
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", *shlex.split(os.environ.get("PIP_ARGS", "")))
GLIBC = range(17, 42)  # 2.N of the tags that a wheel of another project may have
# A Python, the Debian release that has it, and the processor; without a release: this machine's, if it has that one. One
# that neither a root nor this machine has is a skip.
PLACES = [("3.11", "bookworm", "amd64"), ("3.13", "trixie", "amd64"), ("3.14", "sid", "amd64"),
          ("3.11", "bookworm", "arm64"), *((f"3.{minor}", None, None) for minor in range(10, 15))]
CAUSES = {"forgetful": "[sink-dropped]", "uncached": "[cache-unread]"}


def site(folder, python, machine):
    """The wheel, and those of what it needs, for that Python: unpacked into a folder. What pip said, where it refuses."""
    wheels = sorted((ROOT / "build" / "wheel").glob(f"sinkproof-*manylinux*_{machine}.whl"))
    shutil.rmtree(folder, ignore_errors=True)
    platforms = [word for glibc in GLIBC for word in ("--platform", f"manylinux_2_{glibc}_{machine}")]
    ran = said_by(*PIP, "--target", folder, "--only-binary=:all:", "--no-deps", "--python-version", python, *platforms,
                  "--platform", f"manylinux2014_{machine}", *wheels, "numpy", "ml_dtypes")
    return ran.stdout if ran.returncode or len(wheels) != 1 else None


def judged(tap, what, ran, python, places):
    """What the probe's line must say, and that its BLAS, Jansson and OpenMP come from `places`; whether it ran."""
    lines = ran.stdout.splitlines()
    said = json.loads(lines[-1]) if ran.returncode == 0 and lines and lines[-1].startswith("{") else {}
    good = (said.get("python", "").startswith(f"{python}.") and said["ok"]["attention"] and said["honest"] == "within"
            and all(mark in said["causes"][name] for name, mark in CAUSES.items())
            and "the sink is left out [sink-dropped]" in said["said"] and set(said["calls"].values()) == {12})
    tap.report(good, f"{what}: honest numbers pass, three mistakes are named ({said.get('seconds', 0):.1f} s)", lines[-12:])
    kinds = ("blas", "jansson", "gomp")
    files = [path for path in said.get("files") or () if any(kind in path for kind in kinds)]
    if good and said["files"]:
        tap.report(len(files) >= 3 and all(any(path.startswith(f"{place}/") for place in places) for path in files),
                   f"{what}: BLAS, Jansson and OpenMP are the wheels' own", files)
    return bool(said)


def in_root(tap, python, release, arch, tried):
    """A root of Python alone: what Debian's python3 depends on, and the C++ library, which numpy needs."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[arch]
    what, root = f"Python {python}, {release}, {arch}", BUILD / f"{release}-{arch}"
    if machine != os.uname().machine and not (arch == "arm64" and shutil.which("qemu-aarch64")):
        tap.skip(what, "this machine neither is such a processor nor emulates it")
        return
    ran = said_by("sh", ROOT / "audit/install/unpack.sh", arch, release, root, f"python{python}", "libstdc++6")
    if ran.returncode:
        tap.skip(what, (ran.stdout.strip().splitlines() or ["apt does not say why"])[-1])
        return
    refused = site(root / "site", python, machine)
    if refused:
        tap.report(False, f"{what}: pip unpacks the wheel", refused.splitlines()[-9:])
        return
    shutil.copy(PROBE, root)
    blas = [path for path in root.rglob("*blas*.so*") if (root / "site") not in path.parents]
    tap.report(not blas, f"{what}: the root has no BLAS", blas)
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/site", "LC_ALL": "C.UTF-8"}
    if machine == os.uname().machine:
        enter = () if os.geteuid() == 0 else (shutil.which("unshare"), "--map-root-user")
        ran = said_by(*enter, shutil.which("chroot"), root, f"/usr/bin/python{python}", f"/{PROBE.name}", env=env)
    else:
        env["PYTHONPATH"] = str(root / "site")
        ran = said_by(shutil.which("qemu-aarch64"), "-L", root, root / f"usr/bin/python{python}", PROBE, env=env)
    if judged(tap, what, ran, python, [root / "site", "/site"]):
        tried.add(python)
    shutil.rmtree(root)


def here(tap, python, tried):
    """An interpreter of this machine."""
    what, folder = f"Python {python} of this machine", BUILD / f"site-{python}"
    command = f"python{python}"
    if not shutil.which(command) or said_by(command, "-c", "import ctypes").returncode:
        if python not in tried:
            tap.skip(what, f"there is no {command}")
        return
    refused = site(folder, python, os.uname().machine)
    if refused:
        tap.report(False, f"{what}: pip unpacks the wheel", refused.splitlines()[-9:])
        return
    judged(tap, what, said_by(command, PROBE, env={**CLEAN, "PYTHONPATH": str(folder)}), python, [folder])
    shutil.rmtree(folder)


def compiled(tap):
    """The sdist, compiled by pip into an environment of its own."""
    folder = BUILD / "compiled"
    shutil.rmtree(folder, ignore_errors=True)
    found = sorted((ROOT / "build" / "wheel").glob("sinkproof-*.tar.gz"))
    for words in ((sys.executable, "-m", "venv", folder), (folder / "bin/python", *PIP[1:], "--no-cache-dir", *found)):
        ran = said_by(*words)
        if not tap.report(ran.returncode == 0 and len(found) == 1, f"the sdist: python -m {words[2]}",
                          ran.stdout.splitlines()[-9:]):
            return
    ran = said_by(folder / "bin/python", PROBE)
    lines = ran.stdout.splitlines()
    said = json.loads(lines[-1]) if ran.returncode == 0 else {}
    tap.report(said.get("honest") == "within" and said["ok"] == {"attention": True, "forgetful": False, "uncached": False},
               "the sdist: what pip compiled judges", lines[-9:])
    shutil.rmtree(folder)


def main():
    tap, tried = Tap(), set()
    BUILD.mkdir(parents=True, exist_ok=True)
    for python, release, arch in PLACES:
        if release:
            in_root(tap, python, release, arch, tried)
        else:
            here(tap, python, tried)
    compiled(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
