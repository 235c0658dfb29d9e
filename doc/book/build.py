# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Makes the book: doc/*.md as HTML pages that need no network.

    python3 doc/book/build.py --log TAP_LOG --program SINKPROOF --katex DIRECTORY ROOT OUT

Every statement gets its number and, from the regions of the sources and the log of the run, links to its
code, its proof and the tests that reported it. A formula that KaTeX refuses, a dead link inside the book,
a marker without its snippet and a figure without its equation fail the build, and OUT is left as it was.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests")]
import check_doc  # noqa: E402
import doc_pages  # noqa: E402
import evidence  # noqa: E402
import figures  # noqa: E402
import links  # noqa: E402
from markup import Chapter, blocks_of, code_block, raw, text_of  # noqa: E402

PAGE = "<!--page %s-->"
CODE_LANGUAGES = {".c": "c", ".h": "c", ".v": "coq", ".py": "python", ".sh": "bash", ".gp": "bash"}


def check_tools():
    """One sentence for what is missing, instead of a trace."""
    for tool in ("pandoc", "node", "gnuplot"):
        if shutil.which(tool) is None:
            sys.exit(f"book: {tool} is missing: sh tests/install.sh --with book")
    version = subprocess.run(["pandoc", "--version"], capture_output=True, text=True).stdout.split()[1]
    if tuple(map(int, version.split(".")[:2])) < (2, 14):
        sys.exit(f"book: pandoc {version} does not read formulas in this Markdown; 2.14 or later does")


def run(command, data, what):
    done = subprocess.run(command, input=data, capture_output=True, text=True, encoding="utf-8")
    if done.returncode or done.stderr.strip():
        sys.exit(f"book: {what}: {done.stderr.strip() or 'exit ' + str(done.returncode)}")
    return done.stdout


def to_html(pages):
    """{name: blocks} -> {name: html}, in one run of pandoc."""
    blocks = []
    for name, content in pages.items():
        blocks += [raw(PAGE % name), *content]
    document = {"pandoc-api-version": blocks_of("")["pandoc-api-version"], "meta": {}, "blocks": blocks}
    html = run(["pandoc", "-f", "json", "-t", "html5", "--wrap=preserve",
                f"--syntax-definition={HERE / 'coq.xml'}"], json.dumps(document), "pandoc")
    parts = re.split(PAGE.replace("%s", "(.*?)"), html)
    return dict(zip(parts[1::2], parts[2::2]))


def render_formulas(chapters, katex, problems):
    """Each formula, where it stands, becomes KaTeX's HTML."""
    formulas = [(chapter, node) for chapter in chapters for node in chapter.formulas]
    asked = [{"tex": node["c"][1], "display": node["c"][0]["t"] == "DisplayMath"} for _, node in formulas]
    answers = json.loads(run(["node", str(HERE / "katex.js"), str(katex)], json.dumps(asked), "katex"))
    for (chapter, node), question, answer in zip(formulas, asked, answers):
        if "error" in answer:
            problems.add(chapter.source, f"bad formula {question['tex'].strip()!r}: {answer['error']}")
        node["t"], node["c"] = "RawInline", ["html", answer.get("html", "")]


def read_chapters(book, problems):
    """The title page, the preface, the chapters in reading order and the index."""
    chapters = [Chapter(book, "index", "doc/book/title.md", None)]
    # README.md is the preface: it sorts before the numbers.
    for path in sorted((book.root / "doc").glob("*.md"), key=lambda p: (p.name != "README.md", p.name)):
        number = re.match(r"(\d+)-", path.name)
        if path.name != "INDEX.md":
            chapters.append(Chapter(book, path.stem, f"doc/{path.name}", number and str(int(number[1]))))
    chapters.append(Chapter(book, "INDEX", "doc/INDEX.md", None))
    for chapter in chapters:
        chapter.read(problems)
    return chapters


def source_pages(book):
    """{page name: blocks}: the files that the book points at, line by line."""
    pages = {}
    for name in sorted(book.shown_files):
        text = (book.root / name).read_text(encoding="utf-8", errors="replace")
        language = CODE_LANGUAGES.get(pathlib.Path(name).suffix, "")
        block = code_block(text.rstrip("\n"), [language, "numberLines", "lineAnchors"], "L")
        pages[f"src/{name}"] = [raw(evidence.source_header(book, name)), block]
    return pages


def finish_source(book, html):
    """The ids in the markers of regions lead to their statements."""
    def linked(match):
        return match[1] + re.sub(check_doc.ID, lambda m: f'<a href="{book.statement_link(m[0], "ROOT")}">{m[0]}</a>'
                                 if m[0] in book.numbers else m[0], match[2])
    return re.sub(r"((?://|\(\*)\s*&[lg]t;)((?: [a-z][\w.-]*)+)", linked, html)


def contents(chapters, current, up):
    """The list of chapters; below the current one its sections."""
    rows = []
    for chapter in chapters[1:]:
        here = chapter is current
        rows.append(f'<li{" class=here" if here else ""}><a href="{up}{chapter.name}.html">{chapter.title_html}</a>')
        if here and chapter.toc_html:
            rows.append(chapter.toc_html)
        rows.append("</li>")
    rows.append(f'<li><a href="{up}tests.html">What the tests reported</a></li>')
    return "<ul>" + "".join(rows) + "</ul>"


def write_page(book, out, name, title, body, nav, steps="", kind="chapter"):
    up = "../" * name.count("/")
    html = book.template
    for key, value in {"title": title, "body": body, "nav": nav, "steps": steps, "root": up, "kind": kind}.items():
        html = html.replace("{{%s}}" % key, value)
    path = out / f"{name}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html.replace("ROOT/", up), encoding="utf-8")


def steps(chapters, at):
    def step(word, k):
        if not 0 <= k < len(chapters):
            return "<span></span>"
        return f'<a class="{word}" rel="{word}" href="{chapters[k].name}.html">{chapters[k].title_html}</a>'
    return f'<nav class="steps">{step("prev", at - 1)}{step("next", at + 1)}</nav>'


def write_chapters(book, out, chapters, html):
    for chapter in chapters:
        chapter.title_html = re.sub(r"</?p>", "", html[f"title:{chapter.name}"]).strip()
        chapter.toc_html = html[f"toc:{chapter.name}"].strip()
    everything = []
    for at, chapter in enumerate(chapters):
        nav = contents(chapters, chapter, "")
        body = html[chapter.name]
        if chapter.name == "index":
            body = body.replace("<!--contents-->", nav).replace("<!--counts-->", evidence.counts(book))
        write_page(book, out, chapter.name, chapter.title, body, nav, steps(chapters, at),
                   {"index": "title", "INDEX": "index-page"}.get(chapter.name, "chapter"))
        everything.append(f'<section class="chapter" id="{chapter.name}">{links.prefixed(body, chapter.name)}</section>')
    names = {chapter.name for chapter in chapters}
    write_page(book, out, "all", "sinkproof: the book on one page",
               links.inward("\n".join(everything), names), contents(chapters, None, ""), kind="all")
    return contents(chapters, None, "")


def copy_assets(out, katex):
    """The style sheets, and KaTeX's fonts in the one format that every browser reads."""
    (out / "fonts").mkdir(parents=True)
    shutil.copy(HERE / "book.css", out)
    for font in sorted((katex / "dist/fonts").glob("*.woff2")):
        shutil.copy(font, out / "fonts")
    css = (katex / "dist/katex.min.css").read_text()
    css = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)', "", css)
    (out / "katex.css").write_text(css)
    shutil.copy(katex / "LICENSE", out / "fonts/LICENSE.txt")


class Book:
    """What all pages share: the statements, where their code stands, what the tests reported."""

    def __init__(self, options, problems):
        self.root, self.program = options.root.resolve(), options.program
        self.regions = check_doc.read_regions(self.root, problems)
        self.stated = check_doc.read_statements(self.root, problems)
        families = {id.split(".")[0] for id in self.stated}
        unread = check_doc.Problems()  # without a log the pages say that nothing was run
        self.run = check_doc.Run(options.log, families, problems if options.log.is_file() else unread)
        kept = self.root / "tests/exhaustive.log"  # as check_doc.py does
        self.run.printed(kept.read_text(encoding="utf-8") if kept.is_file() else "")
        doc_pages.check_shown(self.root, self.regions, self.run, False, problems)
        self.results = evidence.read_results(options.log)
        self.spans = evidence.read_spans(self.root)
        self.numbers, self.pages = {}, {}   # of an id: "6.3" and the page that states it
        self.shown_files = set()
        self.template = (HERE / "template.html").read_text(encoding="utf-8")
        self.figures = figures.read(HERE / "figures" if options.figures is None else options.figures)

    def statement_link(self, id, root=""):
        return f"{root + '/' if root else ''}{self.pages[id]}.html#eq-{id}"

    def source_link(self, file, line=None):
        """A page of the file, which is made because somebody points at it."""
        self.shown_files.add(file)
        return f"ROOT/src/{file}.html" + (f"#L-{line}" if line else "")

    def is_source(self, name):
        return bool(re.fullmatch(r"(?:ref|fast|proofs|audit|tests)/[\w./-]+\.(?:c|h|v|py|sh)", name)) and \
            ".." not in name and (self.root / name).is_file()


def build(options, out, problems):
    book = Book(options, problems)
    chapters = read_chapters(book, problems)
    for chapter in chapters:
        for id, number in chapter.numbered:
            book.numbers[id], book.pages[id] = number, chapter.name
    figures.draw(book, chapters, out, problems)
    for chapter in chapters:
        chapter.transform(problems)
    render_formulas(chapters, options.katex, problems)
    if problems:
        return
    pages = {}
    for chapter in chapters:
        pages[chapter.name] = chapter.blocks
        pages[f"title:{chapter.name}"] = [{"t": "Plain", "c": chapter.title_inlines}]
        pages[f"toc:{chapter.name}"] = chapter.toc()
    tests_page = evidence.tests_page(book)
    sources = source_pages(book)
    html = to_html({**pages, **sources})
    copy_assets(out, options.katex)
    nav = write_chapters(book, out, chapters, html)
    write_page(book, out, "tests", "What the tests reported", tests_page, nav, kind="tests")
    for name in sources:
        up = "../" * name.count("/")
        write_page(book, out, name, name[4:], finish_source(book, html[name]),
                   nav.replace('href="', f'href="{up}'), kind="source")
    links.check(out, problems)
    print(f"book: {len(chapters)} chapters, {len(book.numbers)} numbered statements, "
          f"{sum(len(c.formulas) for c in chapters)} formulas, {len(book.figures)} figures, "
          f"{len(sources)} source pages")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--log", type=pathlib.Path, required=True)
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--katex", type=pathlib.Path, required=True)
    arguments.add_argument("--figures", type=pathlib.Path)
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    options = arguments.parse_args()
    if not (options.katex / "dist/katex.min.css").is_file():
        sys.exit(f"book: no KaTeX in {options.katex}: make book installs it")
    check_tools()
    problems, fresh = check_doc.Problems(), options.out.with_name(options.out.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        build(options, fresh, problems)
        if problems:
            print("\n".join([*problems, f"book: {len(problems)} problems, nothing was written"]))
            return 1
        shutil.rmtree(options.out, ignore_errors=True)
        os.replace(fresh, options.out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    print(f"book: open {options.out}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
