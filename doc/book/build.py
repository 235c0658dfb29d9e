# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Makes the book: doc/*.md as HTML pages that need no network.

    python3 doc/book/build.py --log TAP_LOG --program SINKPROOF --node DIRECTORY ROOT OUT

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
sys.path[:0] = [str(HERE.parents[1] / folder) for folder in ("tests/gates", "tests/shared", "doc/explore")]
import check_doc  # noqa: E402
import doc_pages  # noqa: E402
import evidence  # noqa: E402
import explore  # noqa: E402
import figures  # noqa: E402
import links  # noqa: E402
from markup import Chapter, blocks_of, code_block, raw  # noqa: E402

PAGE = "<!--page %s-->"
FACES = {"source-serif-4": ("400", "400-italic", "600"), "source-sans-3": ("400", "600"),
         "source-code-pro": ("400", "400-italic", "600")}
COLOURED = ("15-derivation.md", "slides.md")
TERMS = {"sink": r"(?:\\hat ?)?\\alpha_(?:s(?![a-z])|\{s,?[a-z]*\})", "weight": r"(?:\\hat ?)?\\alpha_\{ijh?\}|\\alpha_j",
         "bias": r"b\^V(?:_h)?", "out": r"b\^O"}  # what book.css colours
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


def coloured(chapter, tex):
    """The terms that go through the derivation, in every formula of its chapter."""
    return with_terms(tex) if chapter.source.endswith(COLOURED) else tex


def with_terms(tex):
    return re.sub("|".join(f"(?P<{name}>{term})" for name, term in TERMS.items()),
                  lambda m: rf"\htmlClass{{t-{m.lastgroup}}}{{{m[0]}}}", tex)


def render_formulas(chapters, packages, problems):
    """Each formula, where it stands, becomes KaTeX's HTML."""
    formulas = [(chapter, node) for chapter in chapters for node in chapter.formulas]
    asked = [{"tex": coloured(chapter, node["c"][1]), "display": node["c"][0]["t"] == "DisplayMath"}
             for chapter, node in formulas]
    answers = json.loads(run(["node", str(HERE / "katex.js"), str(packages / "katex")], json.dumps(asked), "katex"))
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
        language = CODE_LANGUAGES.get(pathlib.Path(name).suffix, "") if book.coloured else ""
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
    if explore.is_in(chapters[0].book.root):
        rows += [f'<li><a href="{up}explore/{name}.html">{title}: a page that computes</a></li>'
                 for name, (title, *_) in explore.PAGES.items()]
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


def labelled(table):
    """A table of many columns: each cell names the one that it is in, for a row that stands as a paragraph: on
    a narrow screen, and on every one where a row is long. In any table long code breaks."""
    cells = [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)
             for row in re.findall(r"<tr\b.*?</tr>", table, re.DOTALL)]
    words = [[re.sub(r"<span class=\"katex-html.*|<[^>]*>", "", cell, flags=re.DOTALL) for cell in row] for row in cells]
    widest = [max(map(len, column)) for column in zip(*words)]
    names, kinds = cells[0], ["loose"] if max(widest) > 60 else []
    if len(names) > 5:
        kinds += ["many", "long"] if sum(widest) > 160 else ["many"]

        def row(match):
            column = iter(names)
            return re.sub(r"<td\b[^>]*>(?=(.)(.)?)", lambda cell: f"<td{' class=none' if cell[1] == '—' and cell[2] == '<' else ''}>"
                          f'<span class="label">{next(column)}</span> ', match[0])
        table = re.sub(r"<tr\b.*?</tr>", row, table, flags=re.DOTALL)
    return table.replace("<table", f'<table class="{" ".join(kinds)}"', 1) if kinds else table


def write_chapters(book, out, chapters, html):
    for chapter in chapters:
        html[chapter.name] = re.sub(r"<table.*?</table>", lambda m: labelled(m[0]), html[chapter.name], flags=re.DOTALL)
        chapter.title_html = re.sub(r"</?p>", "", html[f"title:{chapter.name}"]).strip()
        chapter.toc_html = html[f"toc:{chapter.name}"].strip()
    everything = []
    for at, chapter in enumerate(chapters):
        nav = contents(chapters, chapter, "")
        body = html[chapter.name]
        if chapter.name == "index":
            body = body.replace("<!--contents-->", f'<div class="contents">{nav}</div>').replace("<!--counts-->", evidence.counts(book))
        write_page(book, out, chapter.name, chapter.title, body, nav, steps(chapters, at),
                   {"index": "title", "INDEX": "index-page"}.get(chapter.name, "chapter"))
        everything.append(f'<section class="chapter" id="{chapter.name}">{links.prefixed(body, chapter.name)}</section>')
    names = {chapter.name for chapter in chapters}
    opened = "\n".join(everything).replace("<details>", "<details open>")
    write_page(book, out, "all", "sinkproof: the book on one page",
               links.inward(opened, names), contents(chapters, None, ""), kind="all")
    return contents(chapters, None, "")


def write_slides(book, out, deck, html):
    """Each section of the second level is one slide. A link to a page that computes, alone in its paragraph, brings the
    page with it; on paper the link stands alone."""
    html = re.sub(r'<p><a href="(explore/\w+\.html)">([^<]*)</a></p>',
                  r'\g<0>\n<iframe src="\1" title="\2" loading="lazy"></iframe>', html)
    parts = re.split(r"(?=<h2\b)", html)
    body = "".join(f'<section class="slide">{part}</section>' for part in parts)
    write_page(book, out, "slides", deck.title, body, "", kind="slides")


def write_reading(out, chapters, html, node):
    """What the script asks for: the search and its sections, the statements as they are previewed."""
    shutil.copy(HERE / "book.js", out)
    shutil.copy(node / "minisearch/dist/umd/index.js", out / "minisearch.js")
    found = [section for chapter in chapters for section in chapter.sections()]
    (out / "sections.js").write_text(f"window.bookSections = {json.dumps(found)};\n", encoding="utf-8")
    (out / "previews").mkdir()  # a file for each: a look at one statement fetches one
    for chapter in chapters:
        for part in re.split(r'(?=<section id="eq-)', html[chapter.name])[1:]:
            shown = re.sub(r"<annotation.*?</annotation>", "", part.split('<dl class="evidence">')[0], flags=re.DOTALL)
            shown += "</section>"
            id, shown = re.match(r'<section id="eq-([^"]*)"', part)[1], re.sub(r'\bid="[^"]*"', "", shown)
            (out / f"previews/{id}.js").write_text(f"bookPreviews[{json.dumps(id)}] = {json.dumps(shown)};\n", encoding="utf-8")


def copy_assets(out, node):
    """The style sheets and the letters: KaTeX's, and the faces of the text, in the one format that every
    browser reads."""
    (out / "fonts").mkdir(parents=True)
    shutil.copy(HERE / "book.css", out)
    for font in sorted((node / "katex/dist/fonts").glob("*.woff2")):
        shutil.copy(font, out / "fonts")
    css = (node / "katex/dist/katex.min.css").read_text()
    css = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)', "", css)
    (out / "katex.css").write_text(css)
    shutil.copy(node / "katex/LICENSE", out / "fonts/LICENSE-KaTeX.txt")
    (out / "faces.css").write_text("".join(faces(out / "fonts", node / "@fontsource")))


def faces(fonts, packages):
    """@font-face of each cut, of the alphabets that the book writes in."""
    for family, cuts in FACES.items():
        shutil.copy(packages / family / "LICENSE", fonts / f"LICENSE-{family}.txt")
        for cut in cuts:
            for rule in re.findall(r"@font-face \{.*?\}", (packages / family / f"{cut}.css").read_text(), re.DOTALL):
                file = re.search(r"files/([^)]*\.woff2)", rule)[1]
                if re.search(r"-(latin|latin-ext|greek)-\d", file):
                    shutil.copy(packages / family / "files" / file, fonts)
                    yield re.sub(r"src:.*?;", f"src: url(fonts/{file}) format('woff2');", rule) + "\n"


class ExploreLinks:
    """Where the pages that compute lead, and their formulas."""

    def __init__(self, book, node):
        self.book, self.source, self.node = book, book.source_link, node

    def statement(self, id):
        return self.book.statement_link(id, "ROOT")

    def proof(self, id):
        """Its theorem, or else what encloses it or computes it in rationals."""
        files = sorted((file for file in self.book.spans[id] if file.startswith("proofs/")), key=lambda file: not file.endswith(".v"))
        return self.book.source_link(files[0], self.book.spans[id][files[0]][0][0])

    def tests(self, id):
        return f"ROOT/tests.html#{id}"

    def chapter(self, name):
        return f"ROOT/{name}.html"

    def formulas(self, texts):
        asked = [{"tex": with_terms(tex), "display": True} for tex in texts]
        answers = json.loads(run(["node", str(HERE / "katex.js"), str(self.node / "katex")], json.dumps(asked), "katex"))
        for tex, answer in zip(texts, answers):
            if "error" in answer:
                sys.exit(f"book: bad formula {tex!r}: {answer['error']}")
        return [answer["html"] for answer in answers]


class Book:
    """What all pages share: the statements, where their code stands, what the tests reported."""

    def __init__(self, options, problems):
        self.root, self.program = options.root.resolve(), options.program
        self.regions = check_doc.read_regions(self.root, problems)
        self.stated = check_doc.read_statements(self.root, problems)
        families = {id.split(".")[0] for id in self.stated}
        unread = check_doc.Problems()  # without a log the pages say that nothing was run here
        self.run = check_doc.Run(options.log, families, problems if options.log.is_file() else unread)
        self.run.printed(doc_pages.exhaustive_log(self.root, problems))
        doc_pages.check_shown(self.root, self.regions, self.run, False, problems)
        self.results = evidence.read_results(options.log)
        # Without a run the pages show what they keep of an earlier one, and say that they do.
        self.kept_on, self.kept = check_doc.kept_figures(self.root, self.stated, self.regions)
        self.spans = evidence.read_spans(self.root)
        self.numbers, self.pages = {}, {}   # of an id: "6.3" and the page that states it
        self.formulas = {}                  # of an id, as the chapter has it
        self.shown_files, self.coloured = set(), not options.plain_sources
        self.template = (HERE / "template.html").read_text(encoding="utf-8")
        self.figures = figures.read(HERE / "figures" if options.figures is None else options.figures)

    def statement_link(self, id, root=""):
        return f"{root + '/' if root else ''}{self.pages[id]}.html#eq-{id}"

    def source_link(self, file, line=None):
        """A page of the file, which is made because somebody points at it."""
        self.shown_files.add(file)
        return f"ROOT/src/{file}.html" + (f"#L-{line}" if line else "")

    def is_source(self, name):
        return bool(re.fullmatch(r"(?:base|model|ref|fast|proofs|audit|tests)/[\w./-]+\.(?:c|cpp|h|v|py|sh|map)", name)) and \
            ".." not in name and (self.root / name).is_file()


def build(options, out, problems):
    book = Book(options, problems)
    chapters = read_chapters(book, problems)
    for chapter in chapters:
        for id, number in chapter.numbered:
            book.numbers[id], book.pages[id] = number, chapter.name
    figures.draw(book, chapters, out, problems)
    deck = Chapter(book, "slides", "doc/book/slides.md", None)
    deck.read(problems)
    for chapter in [*chapters, deck]:
        chapter.transform(problems)
    render_formulas([*chapters, deck], options.node, problems)
    if problems:
        return
    pages = {}
    for chapter in chapters:
        pages[chapter.name] = chapter.blocks
        pages[f"title:{chapter.name}"] = [{"t": "Plain", "c": chapter.title_inlines}]
        pages[f"toc:{chapter.name}"] = chapter.toc()
    pages["slides"] = deck.blocks
    tests_page = evidence.tests_page(book)
    explored, lacking = explore.write(book.root, out / "explore", ExploreLinks(book, options.node)) if explore.is_in(book.root) else ({}, None)
    sources = source_pages(book)
    html = to_html({**pages, **sources})
    copy_assets(out, options.node)
    nav = write_chapters(book, out, chapters, html)
    write_reading(out, chapters, html, options.node)
    write_slides(book, out, deck, html["slides"])
    write_page(book, out, "tests", "What the tests reported", tests_page, nav, kind="tests")
    for name, (title, page) in explored.items():
        write_page(book, out, f"explore/{name}", title, page, nav.replace('href="', 'href="../'), kind="explore")
    for name in sources:
        up = "../" * name.count("/")
        write_page(book, out, name, name[4:], finish_source(book, html[name]),
                   nav.replace('href="', f'href="{up}'), kind="source")
    links.check(out, problems)
    print(f"book: {len(chapters)} chapters, {len(book.numbers)} numbered statements, "
          f"{sum(len(c.formulas) for c in chapters)} formulas, {len(book.figures)} figures, "
          f"{len(sources)} source pages" + (f"; {len(explored)} pages skipped, {explore.said_of(lacking)}" if lacking else ""))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--log", type=pathlib.Path, required=True)
    arguments.add_argument("--program", required=True)
    arguments.add_argument("--node", type=pathlib.Path, required=True)
    arguments.add_argument("--figures", type=pathlib.Path)
    arguments.add_argument("--plain-sources", action="store_true", help="leave the pages of sources uncoloured: "
                           "two thirds of the time")
    arguments.add_argument("root", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    options = arguments.parse_args()
    for package in ("katex", "minisearch", *(f"@fontsource/{family}" for family in FACES)):
        if not (options.node / package / "package.json").is_file():
            sys.exit(f"book: no {package} in {options.node}: make book installs it")
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
