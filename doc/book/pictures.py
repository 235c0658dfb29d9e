# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Makes the pictures that stand in the Markdown: doc/book/figures/*.svg.

    python3 doc/book/pictures.py SINKPROOF ROOT OUT      `make pictures`

Drawings have no data. The others are drawn from runs of the command that are made here, or from what a
program of the book printed; from kept numbers are those of SmolLM2, which `make lecture` measured, and of engines against certified truth, which
`make truth-engines` did. tests/doc/test_pictures.py makes all again.
"""
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(HERE.parents[1] / "tests" / folder) for folder in ("gates", "shared"))]
import census  # noqa: E402
import circuit  # noqa: E402
import drawings  # noqa: E402
import lattice  # noqa: E402
import runs  # noqa: E402
import sets  # noqa: E402
import smollm2  # noqa: E402
import truth_engines  # noqa: E402


def make(program, root, out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        made = {name: draw() for name, draw in drawings.DRAWINGS.items()}
        made |= lattice.pictures(program, root)
        made |= census.pictures(program, root)
        made |= circuit.pictures(program, root)
        made |= smollm2.pictures(root)
        made |= truth_engines.pictures(root)
        made |= runs.pictures(program, root, pathlib.Path(scratch))
        made |= sets.pictures(program, root, pathlib.Path(scratch))
    for name, canvas in made.items():
        (out / f"{name}.svg").write_text(canvas.svg(), encoding="utf-8")
    return made


if __name__ == "__main__":
    make(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
