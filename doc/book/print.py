# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Prints a page of the built book as PDF, with an outline; the book with page numbers.

    python3 doc/book/print.py BOOK all.html build/sinkproof.pdf
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/doc"))
import browser  # noqa: E402

FOOT = ('<div style="width:100%;text-align:center;font:8pt sans-serif;color:#555">'
        '<span class="pageNumber"></span></div>')


def printed(engine, page):
    engine.screen(1280, 900)
    wrong, _ = engine.open(page.as_uri())
    if wrong:
        sys.exit(f"{page}: {wrong[0]}")
    return engine.pdf(FOOT if page.name == "all.html" else None)


def main():
    book, page, paper = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3])
    program = browser.find()
    if program is None:
        sys.exit("book: no chromium to print with: sh tests/install.sh --with browser")
    with browser.Browser(program, seconds=300) as engine:
        paper.write_bytes(printed(engine, book / page))
    print(f"book: {paper}")


if __name__ == "__main__":
    main()
