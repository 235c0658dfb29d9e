# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""One chapter as pandoc's tree: statements are numbered, code is joined to its file, names become links."""
import base64
import copy
import html
import json
import os
import re
import subprocess

import check_doc
import doc_engines
import doc_pages
import doc_planted
import evidence

STATEMENT = re.compile(rf"^eq\[({check_doc.ID})\]$")
CITED = re.compile(rf"eq\[({check_doc.ID})\]")
DECK = re.compile(r"^<!-- (statement|figure) ([a-z0-9.-]+) -->$")
READER = "gfm+tex_math_dollars"


def blocks_of(text):
    done = subprocess.run(["pandoc", "-f", READER, "-t", "json"], input=text, capture_output=True,
                          text=True, encoding="utf-8", check=True)
    return json.loads(done.stdout)


def raw(text):
    return {"t": "RawBlock", "c": ["html", text]}


def raw_inline(text):
    return {"t": "RawInline", "c": ["html", text]}


def code_block(text, classes, id=""):
    return {"t": "CodeBlock", "c": [[id, [c for c in classes if c], []], text]}


def div(classes, blocks, id=""):
    return {"t": "Div", "c": [[id, classes, []], blocks]}


def link(inlines, target, classes=(), title=""):
    return {"t": "Link", "c": [["", list(classes), []], inlines, [target, title]]}


def text_of(node):
    """The words of a tree, formulas as TeX."""
    if isinstance(node, list):
        return "".join(text_of(part) for part in node)
    if not isinstance(node, dict):
        return ""
    kind, content = node.get("t"), node.get("c")
    if kind in ("Space", "SoftBreak", "LineBreak"):
        return " "
    if kind == "Str":
        return content
    if kind in ("Code", "Math"):
        return content[1]
    if kind in ("Link", "Span", "Div", "Header"):
        content = content[2] if kind == "Header" else content[1]
    return text_of(content)


class Chapter:
    def __init__(self, book, name, source, number):
        self.book, self.name, self.source, self.number = book, name, source, number
        self.text = (book.root / source).read_text(encoding="utf-8")
        self.formulas, self.numbered, self.snippets = [], [], {}
        self.headings = []  # (level, id, inlines)
        self.title, self.title_inlines, self.title_html, self.toc_html = name, [], "", ""

    def read(self, problems):
        """Parses, and numbers the statements: what other chapters need before they are transformed."""
        self.blocks = blocks_of(self.text)["blocks"]
        for block in self.blocks:
            id = self.statement_id(block)
            if id and id in self.book.stated and id not in dict(self.numbered):
                self.numbered.append((id, f"{self.number or self.name}.{len(self.numbered) + 1}"))
            if block["t"] == "Header" and block["c"][0] == 1 and not self.title_inlines:
                self.title_inlines = block["c"][2]
                self.title = html.escape(text_of(self.title_inlines))
        if not self.title_inlines:
            problems.add(self.source, "a chapter without a heading of the first level")

    @staticmethod
    def statement_id(block):
        inlines = block["c"][2] if block["t"] == "Header" else block["c"] if block["t"] == "Para" else []
        match = STATEMENT.match(inlines[0]["c"]) if inlines and inlines[0]["t"] == "Str" else None
        return match and match[1]

    # ---- blocks ----------------------------------------------------------------------------------

    def transform(self, problems):
        self.problems = problems
        out, at, blocks, waiting = [], 0, self.blocks, []
        while at < len(blocks):
            block = blocks[at]
            at += 1
            id = self.statement_id(block)
            if id or block["t"] == "Header":  # figures close what is said about their statement
                out += waiting
                waiting = self.figures_of(id)
            if id:
                at = self.statement(id, block, at, out)
            elif block["t"] == "RawBlock" and (doc_pages.NAMES.match(block["c"][1]) or DECK.match(block["c"][1].strip())):
                at = self.snippet(block["c"][1].strip(), at, out)
            else:
                out.append(self.block(block))
        self.blocks = out + waiting
        self.title_inlines = self.title_of(self.title_inlines)

    def statement(self, id, block, at, out):
        """Heading and formula become one numbered statement with its evidence; returns what comes next."""
        inlines = block["c"][2] if block["t"] == "Header" else block["c"]
        level = block["c"][0] if block["t"] == "Header" else 3
        formula = next((i for i in inlines if i["t"] == "Math" and i["c"][0]["t"] == "DisplayMath"), None)
        title = inlines[2:inlines.index(formula)] if formula else inlines[2:]
        letters = next((k for k, i in enumerate(title) if i["t"] == "Str" and i["c"].startswith("{")), len(title))
        title = title[:letters]
        while title and title[-1]["t"] in ("SoftBreak", "Space"):
            title = title[:-1]
        if formula is None and at < len(self.blocks):
            following = self.blocks[at]
            if following["t"] == "Para" and [i["t"] for i in following["c"]] == ["Math"]:
                formula, at = following["c"][0], at + 1
        if formula is None or id not in self.book.numbers:
            self.problems.add(self.source, f"statement {id} without its formula")
            return at
        self.formulas.append(formula)
        self.book.formulas[id] = copy.deepcopy(formula)
        number, anchor = self.book.numbers[id], f"eq-{id}"
        heading = self.inlines(title, linked=False)
        self.headings.append((level, anchor, heading, number))
        heading = [link([{"t": "Str", "c": number}], f"#{anchor}", ["number"]), {"t": "Space"}, *heading,
                   {"t": "Space"}, {"t": "Code", "c": [["", ["id"], []], id]}, raw_inline(evidence.letters(self.book, id))]
        out.append(div(["statement"], [
            {"t": "Header", "c": [level, ["", [], []], heading]},
            div(["formula"], [{"t": "Plain", "c": [formula]},
                              raw(f'<a class="number" href="#{anchor}">({number})</a>')]),
            raw(evidence.box(self.book, id))], anchor))
        return at

    def on_slide(self, what, name, at, out):
        """A statement or a figure of the book on a slide of the lecture."""
        figure = next((f for f in self.book.figures if f.name == name), None)
        if what == "figure":
            out.append(raw(f"<figure>{figure.svg}</figure>" if figure else ""))
        formula = self.book.formulas.get(name) if what == "statement" else None
        if formula:
            formula = copy.deepcopy(formula)
            self.formulas.append(formula)
            label = f'<a class="number" href="{self.book.statement_link(name)}">({self.book.numbers[name]})</a>'
            out.append(div(["formula"], [{"t": "Plain", "c": [formula]}, raw(label)]))
        elif what == "statement" or figure is None:
            self.problems.add(self.source, f"a slide shows the {what} {name}, which the book has not")
        return at

    def sections(self):
        """What the search finds: each section and statement with its words."""
        found = [{"at": f"{self.name}.html", "name": "", "title": text_of(self.title_inlines), "text": ""}]
        for block in self.blocks:
            content = block.get("c")
            statement = block["t"] == "Div" and "statement" in content[0][1]
            if statement or block["t"] == "Header" and content[0] > 1:
                anchor = content[0][0] if statement else content[1][0]
                heading = content[1][0]["c"][2] if statement else content[2]
                found.append({"at": f"{self.name}.html#{anchor}", "name": anchor[3:] if statement else "",
                              "title": text_of(heading), "text": ""})
            elif block["t"] != "CodeBlock":
                found[-1]["text"] += text_of(content) + " "
        return [{**section, "chapter": text_of(self.title_inlines)} for section in found]

    def figures_of(self, id):
        out = []
        for figure in self.book.figures:
            if figure.place == id:
                caption = [self.block(b) for b in blocks_of(figure.caption)["blocks"]]
                out += [raw(f'<figure id="fig-{figure.name}">{figure.svg}<figcaption>'), *caption,
                        raw(f'<p class="data">{figure.source}</p></figcaption></figure>')]
        return out

    def snippet(self, marker, at, out):
        """What a marker announces: code of a file, a whole one, an exercise, its output, what was measured."""
        match, following = doc_pages.SHOWN.match(marker), self.blocks[at] if at < len(self.blocks) else None
        if doc_pages.MEASURED.match(marker) and following is not None:
            kept = not self.book.run.ran and doc_pages.MEASURED.match(marker)[1] in self.book.kept
            said = self.block(following) if self.book.run.ran or kept else raw("<p>Measured: not run.</p>")
            out += [div(["measured"], [said, *([raw("<p>Kept from an earlier run.</p>")] if kept else [])])]
            return at + 1
        if doc_pages.TABLE.match(marker) or doc_engines.MARKER.match(marker) or \
                doc_planted.MARKER.match(marker):
            return at
        if DECK.match(marker):
            return self.on_slide(*DECK.match(marker).groups(), at, out)
        named = doc_pages.EXERCISE.match(marker) or doc_pages.OUTPUT.match(marker)
        if named and following is not None and following["t"] == "CodeBlock":
            kind = marker.split()[1]
            run = "" if kind != "output" or self.book.run.ran else ": as recorded, not run"
            shown = div(["snippet"], [raw(f'<p class="path">{kind} {named[1]}{run}</p>'), following], f"{kind}-{named[1]}")
            out.append(shown)
            return at + 1
        whole = doc_pages.PROGRAM.match(marker)
        if whole and following is not None and following["t"] == "CodeBlock" and self.book.is_source(whole[1]):
            caption = f'<p class="path"><a href="{self.book.source_link(whole[1])}">{whole[1]}</a></p>'
            out.append(div(["snippet"], [raw(caption), following]))
            return at + 1
        if not match:
            self.problems.add(self.source, f"malformed marker of shown code: {marker!r}")
            return at
        _, file, id = match.groups()
        spans = self.book.spans.get(id, {}).get(file)
        if following is None or following["t"] != "CodeBlock" or not spans:
            self.problems.add(self.source, f"missing snippet: {file} {id}")
            return at
        count = self.snippets[id] = self.snippets.get(id, 0) + 1
        anchor = f"code-{id}" + (f"-{count}" if count > 1 else "")
        language = following["c"][0][1]
        caption = evidence.snippet_caption(self.book, file, id, spans, anchor)
        out.append(div(["snippet"], [raw(caption), code_block(following["c"][1], language)], anchor))
        return at + 1

    def block(self, node):
        """Any other block, its inlines transformed."""
        kind, content = node["t"], node["c"] if "c" in node else None
        if kind == "Para" and [part["t"] for part in content] == ["Image"]:
            return self.picture(content[0])
        if kind in ("Para", "Plain"):
            return {"t": kind, "c": self.inlines(content)}
        if kind == "Header":
            level, attributes, inlines = content
            inlines = self.inlines(inlines, linked=False)
            if level > 1:
                self.headings.append((level, attributes[0], inlines, None))
            return {"t": kind, "c": [level, attributes, inlines]}
        if kind in ("BulletList",):
            return {"t": kind, "c": [[self.block(b) for b in item] for item in content]}
        if kind == "OrderedList":
            return {"t": kind, "c": [content[0], [[self.block(b) for b in item] for item in content[1]]]}
        if kind == "BlockQuote":
            return {"t": kind, "c": [self.block(b) for b in content]}
        if kind == "Table":
            return div(["scroll"], [{"t": kind, "c": self.cells(content)}])
        if kind == "RawBlock" and content[1].lstrip().startswith("<!-- generated"):
            return raw("")
        return node

    def picture(self, node):
        """An SVG that is a paragraph of its own stands in the page: it takes the page's letters. So does a photograph of
        a page that computes, as its bytes."""
        words, address = text_of(node["c"][1]), node["c"][2][0]
        path = (self.book.root / self.source).parent / address
        if not words or path.suffix not in (".svg", ".webp") or not path.is_file():
            self.problems.add(self.source, f"an image, {address!r}: expected an SVG or a WebP that is there, and words for it")
            return raw("")
        if path.suffix == ".webp":
            bits = base64.b64encode(path.read_bytes()).decode()
            return raw(f'<figure id="fig-{path.stem}"><img alt="{html.escape(words)}" src="data:image/webp;base64,{bits}"></figure>')
        svg = path.read_text(encoding="utf-8")
        svg = re.sub(r'(<a href=")([^"]*)(?=")', lambda m: m[1] + self.from_picture(address, m[2]), svg[svg.index("<svg"):])
        return raw(f'<figure id="fig-{path.stem}">{svg}</figure>')

    def from_picture(self, picture, target):
        """A link of a picture, which its file says as seen from there, as a link of this page."""
        path, _, fragment = target.partition("#")
        if path.endswith(".svg"):  # another picture of the same page
            return f"#{fragment}"
        return self.address(f"{os.path.normpath(os.path.join(os.path.dirname(picture), path))}#{fragment}")

    def cells(self, part):
        """A table's parts hold blocks somewhere below."""
        if isinstance(part, dict):
            return self.block(part) if part.get("t") in ("Plain", "Para") else part
        return [self.cells(p) for p in part] if isinstance(part, list) else part

    # ---- inlines ---------------------------------------------------------------------------------

    def inlines(self, nodes, linked=True):
        out = []
        for node in nodes:
            if node["t"] == "Str" and CITED.search(node["c"]):
                out += self.cited(node["c"], linked)
            else:
                out.append(self.inline(copy.deepcopy(node), linked))
        return out

    def cited(self, text, linked):
        """eq[ID] in prose becomes the statement's number."""
        out, parts = [], CITED.split(text)
        for k, part in enumerate(parts):
            if k % 2 == 0:
                out += [{"t": "Str", "c": part}] if part else []
            elif part not in self.book.numbers:
                self.problems.add(self.source, f"cites {part}, which no chapter states")
            else:
                number = [{"t": "Str", "c": f"({self.book.numbers[part]})"}]
                out += [link(number, self.book.statement_link(part), ["cite"], part)] if linked else number
        return out

    def inline(self, node, linked):
        kind, content = node["t"], node.get("c")
        if kind == "Math":
            self.formulas.append(node)
        elif kind == "Str" and "$" in content:
            self.problems.add(self.source, f"a formula that is not closed, near {content!r}")
        elif kind == "Code" and linked:
            target = self.target_of(content[1])
            return link([node], target) if target else node
        elif kind == "Link":
            content[1] = self.inlines(content[1], linked=False)
            content[2][0] = self.address(content[2][0])
        elif kind in ("Emph", "Strong", "Strikeout", "Superscript", "Subscript", "Underline"):
            node["c"] = self.inlines(content, linked)
        elif kind == "Image":
            self.problems.add(self.source, f"an image, {content[2][0]!r}, among words: a picture is a paragraph of its own")
        return node

    def target_of(self, name):
        """What a name in code letters stands for: an equation, a file, a test that ran."""
        book = self.book
        if name in book.numbers:
            return book.statement_link(name)
        for file in (name, f"proofs/{name}"):
            if book.is_source(file):
                return book.source_link(file)
        if name in book.results.tests:
            return f"tests.html#{name}"
        return None

    def address(self, target):
        """A link of the Markdown as a link between pages."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, fragment = target.partition("#")
        fragment = f"#eq-{fragment}" if fragment in self.book.numbers else f"#{fragment}" if fragment else ""
        if not path:
            return fragment
        full = os.path.normpath(os.path.join(os.path.dirname(self.source), path))
        if self.name == "index":  # the title page speaks of the pages that the build makes
            if path.endswith(".html"):
                return target
            full = os.path.normpath(os.path.join("doc", path))
        if full.startswith("doc/explore/") and full.endswith(".html"):  # a page that computes (doc/explore/explore.py)
            return full[4:].replace("page.html", "index.html")
        if full.startswith("doc/") and full.endswith(".md"):
            return full[4:-3] + ".html" + fragment
        if (self.book.root / full).is_file() and not full.startswith(".."):
            return self.book.source_link(full) + fragment
        self.problems.add(self.source, f"dead link: {target}")
        return target

    def title_of(self, inlines):
        return self.inlines(inlines, linked=False)

    # ---- contents --------------------------------------------------------------------------------

    def toc(self):
        """The sections and statements as a list of links, two levels deep."""
        items, top = [], 3
        for level, anchor, inlines, number in self.headings:
            inlines = copy.deepcopy(inlines)
            if number:
                inlines = [{"t": "Str", "c": number}, {"t": "Space"}, *inlines]
            entry = {"t": "Plain", "c": [link(inlines, f"{self.name}.html#{anchor}")]}
            if level <= 2 or top > 2:
                items.append([entry])
                top = level
            elif len(items[-1]) == 1:
                items[-1].append({"t": "BulletList", "c": [[entry]]})
            else:
                items[-1][1]["c"].append([entry])
        return [{"t": "BulletList", "c": items}] if items else []
