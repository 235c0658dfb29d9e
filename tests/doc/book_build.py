# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The book's build: a small book comes out whole, and a copy with any one fault does not come out.

    python3 tests/doc/book_build.py      TAP; SINKPROOF names the program, NODE the folder of npm's packages
"""
import argparse
import colorsys
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("doc/book", "tests/shared", "tests/gates")]
import book_screenshots  # noqa: E402
import browser  # noqa: E402
import build as book  # noqa: E402
import check_doc  # noqa: E402
from tap import Tap  # noqa: E402

BOOK = ROOT / "doc/book"
NODE = pathlib.Path(os.environ.get("NODE", ROOT / "build/node/node_modules"))
PROGRAM = os.environ.get("SINKPROOF", str(ROOT / "build/release/sinkproof"))

CHAPTER_1 = r"""# 1. The mass

With $x_j < 1$ and one row, see [the limit](02-b.md#sink.limit) and eq[sink.limit].

### eq[sink.mass] The mass is $1 - \alpha_s$ {C Q}

$$
\sum_j \alpha_j = 1 - \alpha_s
$$

<!-- code ref/a.c sink.mass -->
```c
double mass;
```

<!-- theorem proofs/formal/A.v sink.mass -->
```coq
Theorem mass : True.
```

## A table

| name | `ref/a.c` |
|---|---|
| $\frac{1}{2}$ | `sink.limit` in `test_a` |
"""
CHAPTER_2 = r"""# 2. The limit

eq[sink.limit] The limit {Q}

$$
b \to -\infty
$$

Unnumbered: $$\begin{aligned} x &= 1 \\ y &= 2 \end{aligned}$$

![A line with two links, in words](book/figures/links.svg)
"""
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 40"><g id="here"><path d="M0 20H200"/></g>
<a href="../../01-a.md#sink.mass"><text>a</text></a><a href="links.svg#here"><text>b</text></a></svg>
"""
FIGURE = """# after: sink.mass
# curve: repeat.sink
# caption: Mass $t$ of `sink.mass`.
plot data index 0 using 1:2 with lines title "one"
"""
FILES = {
    "doc/01-a.md": CHAPTER_1,
    "doc/02-b.md": CHAPTER_2,
    "doc/INDEX.md": "<!-- generated -->\n# Index\n\n| id |\n|---|\n| `sink.mass` |\n| [limit](02-b.md#sink.limit), `exact/a.c` |\n",
    "doc/book/figures/links.svg": PICTURE,
    "ref/a.c": "//> sink.mass sink.limit\n    double mass;\n//< sink.limit sink.mass\n",
    "proofs/exact/a.c": "//> sink.mass sink.limit\ndouble exact;\n//< sink.limit sink.mass\n",
    "proofs/formal/A.v": "(*> sink.mass *)\nTheorem mass : True.\nProof. exact I. Qed.\n(*< sink.mass *)\n",
    "tests/ref/test_a.c": "// reports\n",
    "log": "# FILE test_a\nok 1 - sink.mass ref worst=0.25 bound=1\nok 2 - sink.limit exact instances=3 unequal=0\n"
           "ok 3 - sink.mass coq theorem=mass\n1..3\n",
    "figures/one.gp": FIGURE,
    "figures/two.gp": FIGURE.replace("curve: repeat.sink", "bench: --scaling batch"),
    "figures/three.gp": FIGURE.replace("curve: repeat.sink", "bench: --scaling threads"),  # not measured
    "data/two.txt": "# sinkproof bench --scaling batch: seconds per token\n1 0.5\n2 0.25\n",
}
# A fault: the file, what is replaced by what, and the sentence that must name it.
FAULTS = [
    ("a formula that KaTeX cannot read", "doc/01-a.md", r"$x_j < 1$", r"$x_j \right) < 1$", "bad formula"),
    ("a macro that KaTeX does not know", "doc/01-a.md", r"\sum_j", r"\summ_j", "bad formula"),
    ("a formula in a title that cannot be read", "doc/01-a.md", r"$1 - \alpha_s$ {", r"$1 - \alhpa_s$ {", "bad formula"),
    ("a formula in a table that cannot be read", "doc/01-a.md", r"$\frac{1}{2}$", r"$\frac{1}$", "bad formula"),
    ("a formula in a caption that cannot be read", "figures/one.gp", "Mass $t$", r"Mass $\t@t$", "bad formula"),
    ("a formula that is not closed", "doc/01-a.md", "$x_j < 1$", "$x_j < 1", "not closed"),
    ("a link to a file that is not there", "doc/01-a.md", "02-b.md", "03-c.md", "dead link"),
    ("a link to a place that is not there", "doc/01-a.md", "#sink.limit)", "#the-limits)", "no such place"),
    ("a citation of what is not stated", "doc/01-a.md", "eq[sink.limit].", "eq[sink.limits].", "sink.limits, which"),
    ("a marker whose region is not there", "doc/01-a.md", "code ref/a.c sink.mass", "code ref/b.c sink.mass", "no region"),
    ("a marker without its code", "doc/01-a.md", "```c\ndouble mass;\n```\n", "", "without its fence"),
    ("code that is not the file's", "doc/01-a.md", "```c\ndouble mass;", "```c\nfloat mass;", "differs from ref/a.c"),
    ("code of a file that changed", "ref/a.c", "double mass;", "double mass = 0;", "differs from ref/a.c"),
    ("a malformed marker", "doc/01-a.md", "<!-- code ref/a.c sink.mass -->", "<!-- code ref/a.c -->", "malformed marker"),
    ("a theorem that changed", "proofs/formal/A.v", ": True", ": False", "differs from proofs/formal/A.v"),
    ("a statement without its formula", "doc/02-b.md", "$$\nb \\to -\\infty\n$$\n", "", "not followed by"),
    ("a statement made twice", "doc/02-b.md", "eq[sink.limit]", "eq[sink.mass]", "second time"),
    ("an image from elsewhere", "doc/02-b.md", "Unnumbered:", "![x](https://example.org/x.png)", "an image"),
    ("a picture's link to no chapter", "doc/book/figures/links.svg", "01-a.md", "03-c.md", "dead link"),
    ("a picture's link to no statement", "doc/book/figures/links.svg", "#sink.mass", "#sink.none", "no such place"),
    ("a picture's link to no place of a picture", "doc/book/figures/links.svg", "#here", "#there", "no such place"),
    ("a chapter without a title", "doc/02-b.md", "# 2. The limit", "", "without a heading"),
    ("a figure of no statement", "figures/one.gp", "after: sink.mass", "after: sink.none", "no chapter states"),
    ("a figure of no curve", "figures/one.gp", "curve: repeat.sink", "curve: repeat.none", "no curve of"),
    ("a figure of another measurement", "data/two.txt", "--scaling batch", "--scaling context", "does not begin"),
    ("a figure that gnuplot cannot draw", "figures/one.gp", "plot data", "plot nothing", "gnuplot"),
    ("a slide of no statement", "slides", "sink.mass", "sink.none", "which the book has not"),
    ("a slide of no figure", "slides", "figure one", "figure none", "which the book has not"),
    ("an empty log", "log", FILES["log"], "", "the log is empty"),
]


FILES_SLIDES = "# Lecture\n\nWords.\n\n## Mass\n\n<!-- statement sink.mass -->\n\n## Figure\n\n<!-- figure one -->\n"
TAP = Tap()


def tree(folder, fault=None):
    """The small book's files, one of them with a fault; true when the fault found its place."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if fault and fault[1] == name:
            if fault[2] not in text:
                return False
            text = text.replace(fault[2], fault[3])
        path.write_text(text, encoding="utf-8")
    shutil.copy(BOOK / "title.md", folder / "doc/book")
    deck = FILES_SLIDES.replace(*fault[2:4]) if fault and fault[1] == "slides" else FILES_SLIDES
    (folder / "doc/book/slides.md").write_text(deck, encoding="utf-8")
    shutil.copy(BOOK / "figures/style.gp", folder / "figures")
    return True


def build(folder, out):
    done = subprocess.run([sys.executable, str(BOOK / "build.py"), "--log", str(folder / "log"), "--program", PROGRAM,
                           "--node", str(NODE), "--figures", str(folder / "figures"), str(folder), str(out)],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def whole(out):
    """What a reader must find in the small book."""
    first, second = ((out / f"{n}.html").read_text(encoding="utf-8") for n in ("01-a", "02-b"))
    tests, index = ((out / f"{n}.html").read_text(encoding="utf-8") for n in ("tests", "INDEX"))
    everything, source = ((out / n).read_text(encoding="utf-8") for n in ("all.html", "src/ref/a.c.html"))
    report = TAP.report
    report('id="eq-sink.mass"' in first and 'href="#eq-sink.mass">(1.1)</a>' in first and "(2.1)" in second,
           "book.numbers: statements are numbered by chapter and linked by id")
    shown = re.sub(r"<annotation.*?</annotation>", "", first, flags=re.DOTALL)
    report(first.count('class="katex"') >= 5 and "\\alpha" not in shown and "$" not in shown,
           "book.formulas: none is left as TeX")
    report('href="02-b.html#eq-sink.limit"' in first and ">(2.1)</a>" in first,
           "book.links: chapters, citations and names in code letters lead to the statement")
    report('href="src/ref/a.c.html#L-2"' in first and 'href="src/proofs/formal/A.v.html#L-2"' in first
           and 'href="tests.html#sink.mass"' in first and 'id="code-sink.mass"' in first,
           "book.evidence: a statement leads to its code, proofs and tests")
    report('href="../../01-a.html#eq-sink.mass"' in source and 'id="L-2"' in source,
           "book.sources: the file leads back, every line has an address")
    report('id="sink.mass"' in tests and "worst=0.25 bound=1" in tests and 'class="good"' in tests,
           "book.tests: what the tests printed is shown as they printed it")
    report('class="kw"' in first and 'class="dt"' in first, "book.code: C and Coq are highlighted")
    report('<figure id="fig-one"><svg' in first and "currentColor" in first and (out / "data/repeat.sink.txt").is_file(),
           "book.figures: drawn in the page from what the command printed")
    report('<figure id="fig-two"><svg' in first and (out / "data/two.txt").is_file() and "fig-three" not in first,
           "book.figures: one from a measurement that was kept; one that nobody measured is left out")
    report('<a href="01-a.html#eq-sink.mass"><text>' in second and '<a href="#here"><text>' in second
           and '<a href="#02-b:here"><text>' in everything, "book.pictures: their links lead to the pages")
    report('href="02-b.html"' in first and 'class="next"' in first and 'class="prev"' in second,
           "book.steps: from chapter to chapter")
    report('href="#02-b:eq-sink.limit"' in everything and 'href="01-a.html#eq-sink.mass"' in index
           and 'href="src/proofs/exact/a.c.html"' in index, "book.all: one page, its links inside; the index leads out")
    report(first.count("<script") == 1 and '<script src="book.js"' in first and "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", first),
           "book.offline: one script beside the page, no address outside")


def kept_lock(folder):
    """doc/TRACE.lock of the tree as it stands."""
    problems = check_doc.Problems()
    stated, regions = check_doc.read_statements(folder, problems), check_doc.read_regions(folder, problems)
    run = argparse.Namespace(machine="x86_64 test")
    (folder / "doc/TRACE.lock").write_text(check_doc.lock_text(stated, regions, run), encoding="utf-8")


def without_log(folder, out):
    """A tree that nobody tested: the figures that its chapters keep, where they are of this text and code, and
    elsewhere it says so wherever it would speak of a run."""
    kept = ("", "doc/01-a.md", "## A table", "<!-- measured sink.mass -->\nMeasured: 7 checks (`test_a`).\n\n## A table")

    def pages_of(lock):
        (folder / "log").unlink()
        lock()
        status, said = build(folder, out)
        return {n: (out / f"{n}.html").read_text(encoding="utf-8") for n in ("01-a", "tests", "index")} if status == 0 \
            else {}, said
    tree(folder, kept)
    pages, said = pages_of(lambda: None)
    good = pages and "<dd>not run</dd>" in pages["01-a"] and "Not run" in pages["tests"] \
        and "Not run" in pages["index"] and "passed" not in pages["01-a"] + pages["index"] \
        and "Measured: not run." in pages["01-a"] and "7 checks" not in pages["01-a"]
    TAP.report(good, "book.log: without one, and with nothing kept, it says not run", [] if good else said.splitlines()[-8:])
    tree(folder, kept)
    pages, said = pages_of(lambda: kept_lock(folder))
    good = pages and "<dd>kept: 7 checks (<code>test_a</code>)</dd>" in pages["01-a"] and "Kept from an earlier run" in pages["01-a"] \
        and "Kept: 7 checks" in pages["tests"] and "on x86_64 test" in pages["index"] and "Measured: not run" not in pages["01-a"]
    TAP.report(good, "book.log: without one it shows what the chapters keep, as kept", [] if good else said.splitlines()[-8:])

    def changed():
        kept_lock(folder)
        for file, old, new in (("ref/a.c", "double mass;", "double mass = 0;"), ("doc/01-a.md", "double mass;", "double mass = 0;")):
            path = folder / file
            path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    tree(folder, kept)
    pages, said = pages_of(changed)
    good = pages and "7 checks" not in pages["01-a"] + pages["tests"] and "Measured: not run." in pages["01-a"]
    TAP.report(good, "book.log: figures of other code are not shown", [] if good else said.splitlines()[-8:])
    tree(folder)
    build(folder, out)


def coloured():
    """A term has one colour in every line, and only its own."""
    lines = re.findall(r"\$\$\n(.*?)\n\$\$", (ROOT / "doc/15-derivation.md").read_text(encoding="utf-8"), re.DOTALL)
    seen, wrong = dict.fromkeys(book.TERMS, 0), []
    for tex in lines:
        shown = book.coloured(type("Chapter", (), {"source": "doc/15-derivation.md"}), tex)
        for name, term in (("weight", r"\\alpha_\{ijh\}"), ("sink", r"\\alpha_\{s,ih\}"), ("bias", r"b\^V_h"), ("out", r"b\^O")):
            bare, dyed = len(re.findall(term, tex)), len(re.findall(rf"\\htmlClass\{{t-{name}\}}\{{{term}\}}", shown))
            seen[name] += dyed
            wrong += [f"{name}: {dyed} of {bare} in {tex[:60]}"] if bare != dyed else []
    TAP.report(not wrong and min(seen.values()) > 2, f"book.terms: {seen} coloured alike in {len(lines)} formulas", wrong)


HUES = {"blue": (190, 230), "orange": (10, 40), "green": (140, 180), "purple": (270, 330)}


def legend():
    """What chapter 15 calls blue is blue, by day and in the dark."""
    page = " ".join((ROOT / "doc/15-derivation.md").read_text(encoding="utf-8").split())
    said = re.search(r"four terms keep one colour.*?\.", page)
    colours = re.findall(r"--term-(\w+): #(..)(..)(..);", (BOOK / "book.css").read_text(encoding="utf-8"))
    wrong = [] if len(colours) == 2 * len(book.TERMS) else [f"{len(colours)} colours, by day and in the dark"]
    for name, *rgb in colours:
        hue = 360 * colorsys.rgb_to_hls(*(int(part, 16) / 255 for part in rgb))[0]
        word = next((w for w, (low, high) in HUES.items() if low <= hue <= high), f"hue {hue:.0f}")
        terms = re.findall(rf"\$([^$]*)\$[^;$]*?\b{word}", said[0]) if said else []
        if not any(re.fullmatch(book.TERMS[name], term) for term in terms):
            wrong.append(f"{name} is {word}, and the legend does not say so")
    TAP.report(not wrong, "book.legend: the colours that chapter 15 names are those of its terms", wrong)


def refuses(folder, out, fault):
    what, _, _, _, sentence = fault
    before = (out / "01-a.html").read_bytes()
    found = tree(folder, fault)
    status, said = build(folder, out)
    same = (out / "01-a.html").read_bytes() == before and not out.with_name(out.name + ".new").exists()
    good = found and status != 0 and sentence in said and "Traceback" not in said and same
    TAP.report(good, f"book.refused: {what}", [] if good else said.splitlines()[-8:] + [f"exit {status}, kept {same}"])


def looked_at(out):
    """The browser finds nothing wrong, and finds what was made wrong."""
    with browser.Browser(browser.find()) as engine:
        book_screenshots.check(engine, out, TAP.report)
        for what, wound in (("an error on the console", "<script>console.error('x')</script>"),
                            ("an exception", "<script>nothing.here()</script>"),
                            ("a missing picture", '<img src="nothing.png" alt="">'),
                            ("a missing sheet", '<link rel="stylesheet" href="nothing.css">'),
                            ("an address outside", '<img src="http://127.0.0.1:9/x.png" alt="">'),
                            ("text wider than a phone", '<p style="width:2000px">x</p>'),
                            ("a formula wider than a phone", '<span class="katex-display"><span class="katex" '
                             'style="width:2000px"><annotation>x</annotation></span></span>')):
            page = out / "wounded.html"
            page.write_text((out / "01-a.html").read_text(encoding="utf-8").replace("</main>", wound + "</main>"))
            engine.screen(390, 844, True)
            wrong = book_screenshots.look(engine, out, page.name)
            page.unlink()
            TAP.report(bool(wrong), f"book.browser: {what} is found", [] if wrong else ["not found"])


def main():
    lacking = [t for t in ("pandoc", "node", "gnuplot") if shutil.which(t) is None]
    lacking += [p for p in ("katex", "minisearch") if not (NODE / p / "package.json").is_file()]
    if lacking:
        print(f"1..0 # SKIP the book is not built here: no {', no '.join(lacking)}")
        return 0
    with tempfile.TemporaryDirectory() as work:
        folder, out = pathlib.Path(work) / "tree", pathlib.Path(work) / "book"
        tree(folder)
        status, said = build(folder, out)
        TAP.report(status == 0, "book.built: a small book without a fault", said.splitlines() if status else [])
        if status == 0:
            whole(out)
            coloured()
            legend()
            without_log(folder, out)
            for fault in FAULTS:
                refuses(folder, out, fault)
            if browser.find():
                looked_at(out)
            else:
                TAP.skip("book.browser", "no chromium: the pages are not looked at")
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
