# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What is given away of the Python package: the wheel, the sdist, an installation without the library, a developer's
desk. Part of python_package.py, which makes the environment and calls these."""
import ast
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tarfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "audit" / "python"
CLEAN = {name: value for name, value in os.environ.items() if name not in ("SINKPROOF_LIBRARY", "PYTHONPATH")}
LIBRARY = pathlib.Path(os.environ.get("WHOLE_LIBRARY") or "build/release/library/whole/libsinkproof.so")
OLDEST = (3, 10)  # of pyproject.toml's requires-python
# What every Linux has: the C library.
SYSTEM = re.compile(r"lib(c|m|pthread|dl|rt)\.so\.\d|ld-linux[-\w]*\.so\.\d")


def said_by(*words, env=CLEAN, **options):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, env=env, check=False, **options)


def made(tap, python, folder):
    """The wheel as `make wheel` makes it, or None."""
    shutil.rmtree(folder, ignore_errors=True)
    ran = said_by("sh", "audit/install/wheel.sh", python, LIBRARY, folder, cwd=ROOT)
    found = sorted(folder.glob("*.whl"))
    name = re.compile(rf"sinkproof-[\d.]+-py3-none-manylinux_2_(\d+)_{os.uname().machine}\.whl")
    good = ran.returncode == 0 and len(found) == 1 and name.fullmatch(found[0].name)
    if not tap.report(good, "a manylinux wheel of this processor is built", [*ran.stdout.splitlines()[-12:], found]):
        return None
    check_wheel(tap, found[0], int(name.fullmatch(found[0].name)[1]), folder / "unpacked")
    return found[0]


def lines_of(tool, path):
    return subprocess.run([*tool, path], capture_output=True, text=True, check=True).stdout.splitlines()


def check_wheel(tap, wheel, glibc, folder):
    """That it needs the C library alone, of no later release than its tag says; that its names hide; its licences."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = set(archive.namelist())
    tap.report({"sinkproof/libsinkproof.so", "sinkproof/py.typed"} <= names, "it carries the library and types", names)
    objects = sorted(path for path in folder.rglob("*") if ".so" in path.name)
    needed = {name for path in objects for line in lines_of(("readelf", "-d"), path)
              for name in re.findall(r"\(NEEDED\).*\[(.*)\]", line)}
    inside = {path.name for path in objects}
    missing = {name for name in needed if not SYSTEM.fullmatch(name)} - inside
    tap.report(len(objects) == 3 and not missing, "its libraries need each other and the C library alone",
               [*missing, *map(str, objects)])
    symbols = {path: lines_of(("objdump", "-T"), path) for path in objects}
    versions = {int(number) for said in symbols.values() for number in re.findall(r"GLIBC_2\.(\d+)", "\n".join(said))}
    release = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    told = {34} if {"ID=debian", 'VERSION_ID="12"'} <= set(release) else {glibc}  # chapter 14
    tap.report(max(versions) <= glibc and glibc in told,
               f"the C library's latest symbol is of 2.{max(versions)}, the tag says 2.{glibc}")
    metadata = next(folder.glob("*.dist-info/METADATA")).read_text(encoding="utf-8")
    tap.report("\n# sinkproof\n" in metadata and "Requires-Python: >=3.10" in metadata, "it describes itself", [metadata])
    own = next(said for path, said in symbols.items() if path.name == "libsinkproof.so")
    shown = {line.split()[-1] for line in own if re.search(r"\.(text|data|bss|rodata)\s", line)}
    tap.report(shown and all(name.startswith("sinkproof_") for name in shown),
               "it shows its own functions and none of OpenBLAS", sorted(shown)[:9])
    others = inside - {"libsinkproof.so"}
    tap.report(all(re.fullmatch(r"lib(gomp|jansson)-[0-9a-f]{8}\.so[.\d]+", name) for name in others),
               "the libraries beside it have names that no other has", others)
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.dist-info/licenses/*")}
    marks = {"LICENSE": "Apache License", "OpenBLAS.txt": "Redistribution and use in source and binary forms",
             "Jansson.txt": "Permission is hereby granted", "libgomp.txt": "GCC RUNTIME LIBRARY EXCEPTION",
             "GPL-3.txt": "GNU GENERAL PUBLIC LICENSE"}
    tap.report(set(texts) == set(marks) and all(mark in texts[name] for name, mark in marks.items()),
               "the licences of all that is inside go along", texts)


def check_source(tap, python, folder):
    """The sdist has what the library is compiled from; pip compiles it, or says what lacks."""
    shutil.rmtree(folder, ignore_errors=True)
    ran = said_by(python, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=PACKAGE)
    found = sorted(folder.glob("*.tar.gz"))
    if not tap.report(ran.returncode == 0 and len(found) == 1, "an sdist is built", ran.stdout.splitlines()[-9:]):
        return
    with tarfile.open(found[0]) as archive:
        archive.extractall(folder)
    root = next(path.parent for path in folder.glob("*/pyproject.toml"))
    source, texts = root / "source", {}
    for path in sorted(source.rglob("*")):
        if path.suffix in (".c", ".h", ".inc"):
            texts[path.relative_to(source)] = path.read_text(encoding="utf-8")
    include = re.compile(r'^#include "(.*)"', re.MULTILINE)
    asked = {pathlib.Path(name) for text in texts.values() for name in include.findall(text)}
    rooms = {path.parts[0] for path in texts}
    there = {path.relative_to(ROOT) for room in rooms for path in (ROOT / room).rglob("*.[ch]")}
    lacks = (asked | there) - set(texts)
    tap.report(len(texts) > 500 and not lacks, "it has every file that it includes, and every room whole", lacks)
    env = {name: value for name, value in CLEAN.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    plan = said_by("make", "-n", "library", cwd=source, env=env)
    tap.report(plan.returncode == 0 and "compile audit/judge/judge_walk.c" in plan.stdout,
               "make knows how to compile it", plan.stdout.splitlines()[-5:])

    # make and dpkg-query of this test's own: one builds, the other finds no package.
    tools = folder / "tools"
    tools.mkdir()
    wheels = folder / "wheels"

    def installed(tree, **fakes):
        for tool in tools.iterdir():
            tool.unlink()
        for name, text in fakes.items():
            (tools / name.replace("_", "-")).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (tools / name.replace("_", "-")).chmod(0o755)
        shutil.rmtree(wheels, ignore_errors=True)
        return said_by(python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, tree,
                       env=dict(env, PATH=f"{tools}:{env['PATH']}"))

    version = re.search(r'VERSION = "(.*)"', (root / "sinkproof" / "_library.py").read_text(encoding="utf-8"))[1]
    ran = installed(root, make=f'echo "$PWD $*" >{folder}/asked\nmkdir -p build/release/library\n'
                               f"cp {ROOT / LIBRARY} build/release/library/libsinkproof.so.{version}")
    asked = (folder / "asked").read_text(encoding="utf-8").split() if (folder / "asked").exists() else []
    found = [path.name for path in wheels.glob("*")]
    tap.report(found == [f"sinkproof-{version}-py3-none-linux_{os.uname().machine}.whl"] and asked[:1] == [str(source)]
               and asked[-1] == "library", "pip has `make library` run in the sdist, and takes what it makes",
               [found, asked, *ran.stdout.splitlines()[-9:]])
    ran = installed(root, dpkg_query="exit 1")
    lines = [line.strip() for line in ran.stdout.splitlines() if "sinkproof: " in line]
    tap.report(ran.returncode == 1 and len(lines) == 1 and "Traceback" not in ran.stdout
               and lines[0].startswith('sinkproof: packages are missing here: as root, run "apt-get update && apt-get ')
               and lines[0].endswith('gcc libc6-dev make libopenblas-dev libjansson-dev", then try again'),
               "without the packages the installation ends with one sentence, which names them",
               ran.stdout.splitlines()[-20:])
    ran = installed(root, make="echo it does not compile; exit 2")
    tap.report(ran.returncode == 1 and "it does not compile" in ran.stdout and "`make library` fails in" in ran.stdout
               and "Traceback" not in ran.stdout, "where the compiler refuses, the installation ends with what it said",
               ran.stdout.splitlines()[-20:])


def check_syntax(tap, python):
    """That the package needs no Python later than pyproject.toml says: its grammar, and its library by vermin."""
    says = re.search(r'requires-python = ">=(.*)"', (PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))[1]
    files, newer = sorted((PACKAGE / "sinkproof").rglob("*.py")), []
    for path in files:
        try:
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=OLDEST)
        except SyntaxError as error:
            newer.append(f"{path}: {error}")
    wanted = ".".join(map(str, OLDEST))
    ran = said_by(python.parent / "vermin", "--quiet", "--violations", f"--target={wanted}-", "--eval-annotations",
                  PACKAGE / "sinkproof")
    tap.report(says == wanted and not newer and ran.returncode == 0,
               f"Python {wanted} has all that its {len(files)} files ask", [says, *newer, *ran.stdout.splitlines()])


MAPS = """
import re, numpy, sinkproof
sinkproof.Model("synthetic:tiny").config
files = {line.split()[-1] for line in open("/proc/self/maps")}
print(*sorted(path for path in files if re.search("blas|jansson|gomp|libsinkproof", path)))
"""


def check_desk(tap, python, wheel, drill, folder):
    """From pip to a named cause: a fresh environment, the wheel, and the book's test of a kernel with a mistake."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    code, prints = drill
    (folder / "test_attention.py").write_text(code, encoding="utf-8")
    begin, here = time.monotonic(), folder / "desk" / "bin" / "python"
    pip = (here, "-m", "pip", "install", "--quiet", "--no-compile", *shlex.split(os.environ.get("PIP_ARGS", "")))
    for words in ((python, "-m", "venv", folder / "desk"), (*pip, wheel, "pytest")):
        ran = said_by(*words)
        if ran.returncode:
            tap.report(False, "the wheel is installed on a developer's desk", ran.stdout.splitlines()[-9:])
            return
    ran = said_by(here, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "test_attention.py", cwd=folder)
    seconds = time.monotonic() - begin
    tap.report(ran.returncode == 1 and prints in ran.stdout and "Cause: " in prints and seconds < 300,
               f"from pip install to the named cause of a mistake: {seconds:.0f} s, under five minutes",
               ran.stdout.splitlines()[-20:])
    maps = said_by(here, "-c", MAPS, cwd=folder).stdout.split()
    kinds = ("libsinkproof.so", "libjansson", "libgomp")
    tap.report(all(any(kind in path for path in maps) for kind in kinds)
               and all(path.startswith(f"{folder / 'desk'}/") for path in maps),
               "no BLAS, Jansson or OpenMP of the system is read there", maps)
