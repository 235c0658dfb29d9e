#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tables of the lecture's claims name designs and nothing else; a page that does not is refused."""
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "tests/gates")]
import doc_variants  # noqa: E402
from inventory import Problems  # noqa: E402
from tap import Tap  # noqa: E402

FAULTS = [
    ("a name that is no design", "`kv-bias`", "`vk-bias`", "names vk-bias, which is no design"),
    ("a design under another name", "`mimo-v2-flash`", "`mimo`", "names mimo, which is no design"),
]


def said_of(old="", new=""):
    with tempfile.TemporaryDirectory() as folder:
        root, problems = pathlib.Path(folder), Problems()
        for file in (doc_variants.FILES["designs"], doc_variants.LECTURE):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, root / file)
        page = root / doc_variants.LECTURE
        page.write_text(page.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        doc_variants.check(root, problems)
        return problems


def main():
    tap, said = Tap(), said_of()
    tap.report(not said, "the lecture's tables name nothing that is no design", said)
    for what, old, new, wanted in FAULTS:
        said = said_of(old, new)
        tap.report(any(wanted in line for line in said), f"refused: {what}", said)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
