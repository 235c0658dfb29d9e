# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Looks at a built book in a real browser, every page, wide and narrow; prints TAP.

    python3 tests/book_screenshots.py [BOOK [PICTURES]]      BOOK is build/book

A page fails when the console shows an error, a file is missing, anything is asked from outside the book,
a font or a figure does not show, or the text is wider than the screen. With PICTURES, some pages are
kept there as PNG, and the page of everything as PDF. Skipped, by name, without Chromium.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import browser  # noqa: E402

SCREENS = {"large": (1920, 1080, False), "wide": (1280, 900, False), "phone": (390, 844, True)}
LOOK = """(() => {
  const wrong = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    const wide = [...document.querySelectorAll("main *")].find(e => e.getBoundingClientRect().right > width + 1
      && !e.closest("pre, .scroll, .katex-display, svg, .katex-mathml"));
    wrong.push(`wider than the screen: ${document.documentElement.scrollWidth} of ${width}, ` +
               (wide ? wide.outerHTML.slice(0, 120) : ""));
  }
  for (const e of document.querySelectorAll(".katex-display"))
    if (e.scrollWidth > e.clientWidth)
      wrong.push(`a formula cut at the edge: ${e.scrollWidth} of ${e.clientWidth}, ${e.querySelector("annotation").textContent}`);
  for (const face of document.fonts) if (face.status === "error") wrong.push(`font not loaded: ${face.family}`);
  for (const e of document.querySelectorAll(".katex-error")) wrong.push(`bad formula: ${e.textContent}`);
  for (const e of document.querySelectorAll("figure svg"))
    if (e.getBoundingClientRect().width < 100 || !e.querySelector("path")) wrong.push("an empty figure");
  if (document.querySelector(".katex") && ![...document.fonts].some(f => f.status === "loaded"))
    wrong.push("formulas without their fonts");
  if (!document.querySelector("h1")) wrong.push("no heading");
  return wrong;
})()"""


def look(engine, book, page):
    wrong, asked = engine.open((book / page).as_uri())
    inside = book.as_uri() + "/"
    wrong += [f"asks for {url[:80]}" for url in asked if not url.startswith((inside, "data:"))]
    return wrong + engine.value(LOOK)


def pages_of(book):
    """Every page, the chapters first."""
    return sorted((str(p.relative_to(book)) for p in book.rglob("*.html")), key=lambda p: ("/" in p, p))


def check(engine, book, report):
    for name, (width, height, phone) in SCREENS.items():
        engine.screen(width, height, phone)
        bad = []
        pages = pages_of(book)
        for page in pages:
            bad += [f"{page}: {what}" for what in look(engine, book, page)]
        report(not bad, f"book.{name} pages={len(pages)} width={width} faults={len(bad)}", bad)
    engine.open((book / "all.html").as_uri())
    pdf = engine.pdf()
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    report(pdf.startswith(b"%PDF") and sheets > 1, f"book.print sheets={sheets} bytes={len(pdf)}", [])
    return pdf


def keep_pictures(engine, book, folder):
    folder.mkdir(parents=True, exist_ok=True)
    shown = [p for p in pages_of(book) if p.count("/") == 0 and p != "all.html"]
    shown += [p for p in pages_of(book) if p.endswith(("softmax_sink.c.html", "SoftmaxSink.v.html"))]
    for name, (width, height, phone) in SCREENS.items():
        for dark in (False, True):
            engine.screen(width, height, phone, dark)
            for page in shown:
                engine.open((book / page).as_uri())
                tall = engine.value("Math.min(document.documentElement.scrollHeight, 6000)")
                engine.screen(width, max(height, tall), phone, dark)
                stem = page[:-5].replace("/", "_")
                engine.picture(folder / f"{stem}-{name}{'-dark' if dark else ''}.png")
                engine.screen(width, height, phone, dark)


def main(words):
    book, count, failed = pathlib.Path(words[0] if words else "build/book").resolve(), 0, 0

    def report(good, text, notes):
        nonlocal count, failed
        count, failed = count + 1, failed + (not good)
        print(f"{'ok' if good else 'not ok'} {count} - {text}", *(f"# {n}" for n in notes[:20]), sep="\n", flush=True)

    if not (book / "index.html").is_file():
        print(f"not ok 1 - no book in {book}: make book", "1..1", sep="\n")
        return 1
    program = browser.find()
    if program is None:
        print("1..0 # SKIP no chromium: the pages of the book are not looked at")
        return 0
    with browser.Browser(program) as engine:
        pdf = check(engine, book, report)
        if len(words) > 1:
            keep_pictures(engine, book, pathlib.Path(words[1]))
            (pathlib.Path(words[1]) / "sinkproof.pdf").write_bytes(pdf)
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
