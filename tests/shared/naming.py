# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What a test is called: by its own name, with its room before it where two rooms have that name.

tests/ref/test_rope.c is test_rope, its program is BUILD/tests/ref/test_rope, its log BUILD/tap/ref/test_rope.tap; a
script keeps its ending. Were there a tests/proofs/test_rope.c, the two would be ref/test_rope and proofs/test_rope.
"""
import pathlib


def place(path):
    """ROOM/NAME of a test's program, script or source."""
    path = pathlib.PurePath(path)
    return f"{path.parent.name}/{path.stem if path.suffix == '.c' else path.name}"


def sources(root, name):
    """The sources of that name, with or without its room, below the root."""
    where = name if "/" in name else f"*/{name}"
    return sorted(pathlib.Path(root).glob(f"tests/{where}" + ("" if name.endswith((".sh", ".py")) else ".c")))


def called(root, path):
    """The name of a test, by the path of its program, script or source."""
    full = place(path)
    name = full.split("/")[1]
    return full if len(sources(root, name)) > 1 else name


def full(root, name):
    """ROOM/NAME of the test of that name, or the name where there is none."""
    found = sources(root, name)
    return place(found[0]) if found else name
