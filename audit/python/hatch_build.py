# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Puts libsinkproof into the wheel, and its source into the sdist.

A wheel carries the file that $SINKPROOF_LIBRARY names, else what `make library` builds now, in the checkout or in the
sdist. Where it cannot be built, the installation ends with a sentence. The licences in the folder that
$SINKPROOF_LICENSES names go along (audit/install/wheel.sh).
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "source"  # the folder of the sdist that has what follows, of the checkout
FILES = ("Makefile", "LICENSE", "make/*.mk", "tests/install.sh")
ROOMS = ("base", "model", "ref", "fast", "proofs", "audit")
KINDS = (".c", ".h", ".inc")
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of an ELF file


def source(tree: pathlib.Path) -> list[pathlib.Path]:
    """What `make library` reads, below `tree`."""
    named = [path for pattern in FILES for path in tree.glob(pattern)]
    rooms = [path for room in ROOMS for path in (tree / room).rglob("*") if path.suffix in KINDS]
    return sorted(path.relative_to(tree) for path in named + rooms)


def built(tree: pathlib.Path, name: str) -> pathlib.Path:
    """The library of this tree, made now."""
    env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    try:
        ran = subprocess.run(["make", "CC=gcc", "VARIANT=release", "library"], cwd=tree, env=env, text=True, check=False,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        sys.exit("sinkproof: make is missing here: make and gcc compile the library, which needs OpenBLAS and Jansson")
    if ran.returncode:
        lacks = re.search(r"\*\*\* (sinkproof: .*?)\.  Stop\.", ran.stdout)  # the sentence of tests/install.sh
        sys.exit(lacks[1] if lacks else f"{ran.stdout}sinkproof: `make library` fails in {tree}: see above")
    return tree / "build" / "release" / "library" / name


def machine(library: pathlib.Path) -> str:
    """The processor that an ELF file is for."""
    head = library.read_bytes()[:20]
    found = int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else None
    if found not in MACHINES:
        sys.exit(f"{library}: expected a shared library of x86-64 or aarch64, found "
                 f"{'another file' if found is None else f'ELF machine {found}'}")
    return MACHINES[found]


class Carry(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root, include = pathlib.Path(self.root), build_data["force_include"]
        tree = root / SOURCE if (root / SOURCE).is_dir() else root.parents[1]
        if self.target_name == "sdist":
            include.update({str(tree / path): f"{SOURCE}/{path}" for path in source(tree)})
            return
        named = os.environ.get("SINKPROOF_LIBRARY")
        if named and not os.path.isfile(named):
            sys.exit(f"{named}: SINKPROOF_LIBRARY names no file")
        release = self.metadata.version
        path = pathlib.Path(named) if named else built(tree, f"libsinkproof.so.{release}")
        if version == "editable":
            return  # the package in its checkout finds the checkout's build
        licenses = os.environ.get("SINKPROOF_LICENSES")
        texts = sorted(pathlib.Path(licenses).iterdir()) if licenses else [tree / "LICENSE"]
        include[str(path.resolve())] = "sinkproof/libsinkproof.so"
        include.update({str(text): f"sinkproof-{release}.dist-info/licenses/{text.name}" for text in texts})
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{machine(path)}"
