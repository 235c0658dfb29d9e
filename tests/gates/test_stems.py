#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The matrix of stages and rooms holds of this tree, and is refused of a tree that it does not describe."""
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shared"))
import doc_stems  # noqa: E402
from tap import Tap  # noqa: E402


class Said(list):
    def add(self, place, what):
        self.append(f"{place}: {what}")


def said_of(root):
    said = Said()
    doc_stems.check(root, said)
    return said


def copy(folder):
    for room, _ in doc_stems.ROOMS.values():
        shutil.copytree(ROOT / room, folder / room, dirs_exist_ok=True)
    return folder


def rename(root, file, old, new):
    path = root / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


FAULTS = [
    ("a home whose function is gone", "has no add_residual, the home of residual",
     lambda root: rename(root, "proofs/truth/forward.c", "add_residual(", "add_rest(")),
    ("a home whose file is gone, and a place without a file", "has no lanes_qkv",
     lambda root: (root / "fast/lanes/linear.c").unlink()),
    ("a stage without its file", "values has no file, no home and no reason in reference",
     lambda root: (root / "ref/values.c").unlink()),
    ("a file beside the home", "says of its stage: linear:sinkproof_truth_linear",
     lambda root: (root / "proofs/truth/qkv.c").write_text("")),
    ("a file without a place", "is named for no stage",
     lambda root: (root / "proofs/bounds/fudge.c").write_text("")),
    ("a place without a file", "ref/session.c is not there", lambda root: (root / "ref/session.c").unlink()),
]


def main():
    tap = Tap()
    said = said_of(ROOT)
    tap.report(not said, f"{len(doc_stems.STAGES)} stages in {len(doc_stems.ROOMS)} rooms stand where the matrix says",
               said)
    for what, wanted, spoil in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            root = copy(pathlib.Path(folder))
            spoil(root)
            said = said_of(root)
        tap.report(any(wanted in line for line in said), f"{what}: refused", said[:2])
    tap.report("| rope | A3 A4 | `rope.c` |" in "\n".join(doc_stems.matrix(ROOT)), "a stage has its row")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
