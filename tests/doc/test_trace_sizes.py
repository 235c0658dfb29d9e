# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The bytes that chapter 14 says of each point of a trace, and of sets of points, are those of the released shapes."""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.path.join(ROOT, "tests", "shared"))
from tap import Tap  # noqa: E402

HIDDEN, INTER, HEADS, KV, DIM, CHOSEN, VOCAB, LAYERS, TOKENS = 2880, 2880, 64, 8, 64, 4, 201088, 36, 4096  # ref's 120b
SQUARE = ("A6", "A9", "A10")


def numbers(experts):
    """Of a token in a layer."""
    q, kv = HEADS * DIM, KV * DIM
    return {"A1": HIDDEN, "A2.q": q, "A2.k": kv, "A2.v": kv, "A4.q": q, "A4.k": kv, "A11": q, "A12": HIDDEN, "A13": HIDDEN, "M1": HIDDEN,
            "M2": experts, "M4": CHOSEN, "M5": 2 * CHOSEN * INTER, "M6": 2 * CHOSEN * INTER, "M8": CHOSEN * INTER, "M9": CHOSEN * HIDDEN,
            "M10": CHOSEN * HIDDEN, "M11": HIDDEN, "M12": HIDDEN}


def size(point, experts=128):
    return 4 * CHOSEN if point == "M3" else 2 * numbers(experts)[point]


def main():
    tap = Tap()
    text = (ROOT / "doc" / "14-judging.md").read_text(encoding="utf-8")
    flat = " ".join(text.split())
    table = text[text.index("<!-- bytes of points -->"):].split("\n\n")[0].splitlines()[3:]
    seen, wrong = set(), []
    for row in table:
        points, said = (cell.strip() for cell in row.split("|")[1:3])
        points = re.findall(r"`([^`]+)`", points)
        seen |= set(points)
        for point in points:
            own = (f"{2 * HEADS} n" + (f" + {2 * HEADS}" if point == "A9" else "") if point in SQUARE else
                   f"{size(point, 32)} (20b), {size(point)} (120b)" if point == "M2" else f"{size(point):,}") + " each" * (len(points) > 1)
            if said != own:
                wrong.append(f"{point}: {said}, expected {own}")
    tap.report(not wrong and seen == set(numbers(1)) | {"M3", *SQUARE}, f"trace-sizes {len(seen)} points of the table", wrong or [str(seen)])
    all_points = sum(size(p) for p in [*numbers(1), "M3"])
    least = sum(size(p) for p in ("A13", "M3", "M12"))
    attention = least + sum(size(p) for p in ("A4.q", "A4.k", "A2.v", "A11"))
    experts = attention + sum(size(p) for p in ("M4", "M6", "M8"))
    ends = 2 * (HIDDEN + VOCAB) * TOKENS
    square = 2 * HEADS * (3 * TOKENS + 1)
    sums = {"least": (least, 0), "attention": (attention, 0), "experts": (experts, 0), "all": (all_points, ends)}
    for name, (each, more) in sums.items():
        total = each * LAYERS * TOKENS + more
        tap.report(f"{each:,} bytes" in flat and f"{total / 1e9:.1f} GB" in flat, f"trace-sizes {name}: {each:,} bytes, {total / 1e9:.1f} GB", [])
    whole = (all_points + square) * LAYERS * TOKENS + ends
    tap.report(f"1.7 to {whole / 1e9:.0f} GB" in flat and f"add seven times that, {square * LAYERS * TOKENS / 1e9:.0f} GB" in flat and
               6.5 < square / all_points < 7.5, f"trace-sizes with the square ones: {whole / 1e9:.0f} GB", [str(square / all_points)])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
