# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Looks at a built book in a real browser, every page, wide and narrow; prints TAP.

    python3 tests/doc/book_screenshots.py [BOOK [PICTURES]]      BOOK is build/book

A page fails when the console shows an error, a file is missing, anything is asked from outside the book,
a font or a figure does not show, or the text is wider than the screen. With PICTURES, some pages are
kept there as PNG. Skipped, by name, without Chromium. FEW=1 looks at every chapter in one of the widths,
of the pages that show a file at one in eighteen, at others in each width, and not at the page that holds the
whole book, which takes a minute to lay out and print.
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import browser  # noqa: E402
from tap import Tap  # noqa: E402

SCREENS = {"large": (1920, 1080, False), "wide": (1280, 900, False), "phone": (390, 844, True)}
FEW = bool(os.environ.get("FEW"))
SHEETS = {"slides.html": (1122, 631), **({} if FEW else {"all.html": (673, 950)})}  # a slide, A4 less its margins: CSS points
FOOT = '<span class="pageNumber"></span>'
CUT_ON_PAPER = """[...document.querySelectorAll("main *")].filter(e => !e.closest("svg, .katex-mathml, .katex-html") &&
  e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).slice(0, 5)
  .map(e => `cut on paper: ${e.outerHTML.slice(0, 90)}`)"""
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
  for (const e of document.querySelectorAll("main .scroll > table"))
    if (e.parentElement.scrollWidth > e.parentElement.clientWidth + 1) wrong.push(`a table cut at the edge: ${e.innerText.slice(0, 60)}`);
  const chapter = document.querySelector("nav.side .here"), shown = chapter?.getBoundingClientRect();
  if (shown?.width && (shown.top < 0 || shown.top > innerHeight)) wrong.push("the contents do not show the chapter");
  for (const face of document.fonts) if (face.status === "error") wrong.push(`font not loaded: ${face.family}`);
  for (const e of document.querySelectorAll(".katex-error")) wrong.push(`bad formula: ${e.textContent}`);
  for (const e of document.querySelectorAll("figure svg"))
    if (e.getBoundingClientRect().width < 100 || (!e.querySelector("path") && e.querySelectorAll("rect").length < 3))
      wrong.push("an empty figure");
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


def some_of(pages, screen):
    """What FEW=1 looks at; all.html has the chapters again."""
    kinds = {}
    for page in pages:
        if "/" in page:
            kinds.setdefault(pathlib.PurePath(page[:-5]).suffix, []).append(page)
    shown = [page for kind in kinds.values() for page in kind[min(screen, len(kind) - 1)::18]]
    chapters = [page for page in pages if "/" not in page and page != "all.html"]
    return chapters[screen::len(SCREENS)] + shown


def check(engine, book, report):
    for number, (name, (width, height, phone)) in enumerate(SCREENS.items()):
        engine.screen(width, height, phone)
        bad = []
        pages = pages_of(book)
        if FEW:
            pages = some_of(pages, number)
        for page in pages:
            bad += [f"{page}: {what}" for what in look(engine, book, page)]
        report(not bad, f"book.{name} pages={len(pages)} width={width} faults={len(bad)}", bad)
    for page, (width, height) in SHEETS.items():
        engine.screen(width, height, media="print")
        cut = look(engine, book, page) + engine.value(CUT_ON_PAPER)
        pdf = engine.pdf(FOOT) if page == "all.html" else engine.pdf()
        sheets, boxes = len(re.findall(rb"/Type\s*/Page\b", pdf)), set(re.findall(rb"/MediaBox\s*\[([^\]]*)\]", pdf))
        slides = engine.value("document.querySelectorAll('.slide').length")
        cut += [] if (sheets == slides if slides else sheets > 1) and len(boxes) == 1 and b"/Outlines" in pdf else [f"{sheets} sheets, {boxes}"]
        report(not cut, f"book.print {page} sheets={sheets} cut={len(cut)}", cut)
    reading(engine, book, report)


def reading(engine, book, report):
    """What the script adds works, and without scripts a page loses nothing else."""
    engine.screen(1280, 900)
    page = next(p for p in pages_of(book) if "/" not in p and p[0].isdigit()
                and all(mark in (book / p).read_text(encoding="utf-8") for mark in ("<pre", 'class="cite"')))
    engine.open((book / page).as_uri())
    ask = """(async () => { const field = document.querySelector("nav.side input"); await sections();
      field.value = %s; field.dispatchEvent(new Event("input")); await new Promise(r => setTimeout(r, 300));
      return [...document.querySelectorAll("nav.side .found a")].map(a => a.getAttribute("href")); })()"""
    found = engine.value(ask % '"sink.mass"')
    nothing = engine.value(ask % '"xqzwvk"')
    report(bool(found) and found[0].endswith("#eq-sink.mass") and not nothing,
           f"book.search found={len(found)} first={found[:1]} of nonsense={len(nothing)}", [])
    shown = engine.value("""(async () => { const link = [...document.querySelectorAll('main a.cite')][0];
      if (!link) return "no citation"; link.focus(); for (let k = 0; k < 40 && card.hidden; k++) await new Promise(r => setTimeout(r, 50));
      const seen = !card.hidden && !!card.querySelector(".katex"); link.blur();
      return [seen && card.hidden, [...document.scripts].map(s => s.getAttribute("src")).filter(s => /previews/.test(s))]; })()""")
    seen, fetched = shown if isinstance(shown, list) else (False, [])
    report(seen and len(fetched) == 1, f"book.preview: a cited statement shows when its link has the focus, and goes; "
           f"fetched {sum((book / name).stat().st_size for name in fetched)} bytes", [str(shown)])
    copies = engine.value("[document.querySelectorAll('main pre').length, document.querySelectorAll('button.copy').length]")
    report(copies[0] == copies[1] > 0, f"book.copy blocks={copies[0]} buttons={copies[1]}", [])
    text = "document.querySelector('main').innerText.replace(/^Copy$/gm, '').replace(/\\s+/g, ' ')"
    full = engine.value(text)
    engine.scripts(False)
    engine.open((book / page).as_uri())
    plain = engine.value(text)
    engine.scripts(True)
    report(plain == full and len(plain) > 100, f"book.plain: without scripts the same words, characters={len(plain)}", [])


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
    book, tap = pathlib.Path(words[0] if words else "build/book").resolve(), Tap()
    if not (book / "index.html").is_file():
        print(f"not ok 1 - no book in {book}: make book", "1..1", sep="\n")
        return 1
    program = browser.find()
    if program is None:
        print("1..0 # SKIP no chromium: the pages of the book are not looked at")
        return 0
    with browser.Browser(program) as engine:
        check(engine, book, tap.report)
        if len(words) > 1:
            keep_pictures(engine, book, pathlib.Path(words[1]))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
