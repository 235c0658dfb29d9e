#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tables of the lecture's claims name designs and nothing else, and say of the runs of doc/27 what these showed; a
page that does not is refused."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/shared"), str(ROOT / "tests/gates")]
import doc_training  # noqa: E402
import doc_variants  # noqa: E402
from inventory import Problems  # noqa: E402
from tap import Tap  # noqa: E402

FAULTS = [
    ("a name that is no design", "`kv-bias`", "`vk-bias`", "names vk-bias, which is no design"),
    ("a design under another name", "`mimo-v2-flash`", "`mimo`", "names mimo, which is no design"),
]


# What the runs showed, said otherwise; the last column: what is said of it.
UNTRUE = [
    ("seen, of what was the opposite", "more at twice the rate: **the opposite**", "more at twice the rate: seen",
     "expected once in this row"),
    ("seen, of what was not", "over their sum: **not seen**", "over their sum: seen", "expected once in this row"),
    ("seen, of what was not in every seed", "half the rate: not in every seed", "half the rate: seen", "expected once in this row"),
    ("not seen, of what was", "none at 5: seen", "none at 5: **not seen**", "expected once in this row"),
    ("a comparison left out", ", more at 0.5: **the opposite**", "", "expected once in this row"),
    ("no word of what was seen", "; trained here: less with half of the text: seen, less with an eighth: seen", "",
     "expected once in this row"),
    ("measured there", "trained here: smaller ones", "measured there; trained here: smaller ones", "says “measured there”"),
    ("a claim that no comparison bears on", "| It needs enough different data | not asked here |",
     "| It needs enough different data | [chapter 27](27-training.md) |", "has no such claim"),
    ("its words in another row", "| It needs enough different data | not asked here | cited |",
     "| It needs enough different data | not asked here | trained here: less with little: seen |", "has no such claim"),
    ("a claim in other words", "| Short windows have less of it |", "| Short windows have more of it |", "has no claim “Short"),
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


def trained(old="", new="", write=False, told=None):
    """What is said of the page when it says `new`, or when the runs showed something else; and the page afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        root, problems = pathlib.Path(folder), Problems()
        for file in (doc_training.LECTURE, doc_training.KEPT, doc_training.CODE):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, root / file)
        page = root / doc_training.LECTURE
        text = page.read_text(encoding="utf-8")
        if old not in text:
            return [f"the page has no {old!r} to replace"], text
        page.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        if told is not None:
            (root / doc_training.KEPT).write_text(json.dumps(told), encoding="utf-8")
        doc_training.check(root, write, problems)
        return problems, page.read_text(encoding="utf-8")


def eight_bits():
    """What chapter 26's table of eight bits says of the sinks, as the lecture's row has it."""
    text = (ROOT / "doc/26-mixing.md").read_text(encoding="utf-8")
    off = {(point, sinks): float(error) for point, sinks, error in
           re.findall(r"^\| (A11|A13|M12) \| (with|without) \| [\d.]+ \| ([\d.]+) \|", text, re.MULTILINE)}
    word = {point: "more" if off[point, "with"] > off[point, "without"] else "less" for point in ("A11", "A13", "M12")}
    stream = {word["A13"], word["M12"]}
    return f"measured there: with the sinks attention's output loses {word['A11']}, the stream {'/'.join(sorted(stream))};"


def main():
    tap, said = Tap(), said_of()
    tap.report(not said, "the lecture's tables name nothing that is no design", said)
    for what, old, new, wanted in FAULTS:
        said = said_of(old, new)
        tap.report(any(wanted in line for line in said), f"refused: {what}", said)
    said, page = trained()
    tap.report(not said, f"{len(doc_training.CLAIMS)} claims say what the runs showed, each comparison under one of them", said)
    for what, old, new, wanted in UNTRUE:
        said, _ = trained(old, new)
        tap.report(any(wanted in line for line in said), f"refused: {what}", said or ["nothing was said"])
    said, written = trained("more at twice the rate: **the opposite**", "more at twice the rate: seen", write=True)
    tap.report(not said and written == page, "the words are written anew from the runs", said)
    told = doc_training.kept(ROOT)
    told["rate 0.012"]["seen"][-1]["sink_1"] = [99, 99, 99]
    said, _ = trained(told=told)
    tap.report(len(said) == 1 and "more at twice the rate: seen" in said[0], "other runs: other words", said)
    rows = [line for line in page.splitlines() if "measured there" in line]
    tap.report(len(rows) == 1 and eight_bits() in rows[0], "measured there is said of chapter 26 alone, with what it measured", rows)
    text = (ROOT / "doc/26-mixing.md").read_text(encoding="utf-8")
    first, without = (float(re.search(rf"^\| `{cache}` \| with \| ([\d.]+) \|", text, re.MULTILINE)[1])
                      for cache in ("first-recent", "recent"))
    tap.report(first >= without and "keeping the first tokens does not help" in page,
               f"keeping the first tokens does not help: off {first:g}, without them {without:g}")
    names = [finding[0] for finding in doc_training.FINDINGS]
    tap.report(len(set(names)) == len(names), f"{len(names)} comparisons, each with a name of its own")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
