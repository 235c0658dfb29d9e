# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Links between the pages: every one leads somewhere, every id is there once, nothing is fetched."""
import collections
import html.parser
import os
import re
import urllib.parse


TAG = re.compile(r"""<[a-z](?:[^>"']|"[^"]*"|'[^']*')*>""")
LEADS = re.compile(r"\s(?:id|(?:xlink:)?href|src|data|srcset|poster)\s*=")


class Reader(html.parser.HTMLParser):
    """The ids of a page and what it points at."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.ids, self.targets, self.loaded = [], [], []

    def read(self, text):
        """Of a page's tags nearly all colour a word or set a formula: those are neither places nor links."""
        self.feed("".join(tag for tag in TAG.findall(text) if LEADS.search(tag)))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "xlink:href"):
                (self.loaded if tag == "link" else self.targets).append(value)
            elif name in ("src", "data", "srcset", "poster"):
                self.loaded.append(value)


def check(out, problems):
    pages = {}
    for path in sorted(out.rglob("*.html")):
        reader = Reader()
        reader.read(path.read_text(encoding="utf-8"))
        pages[str(path.relative_to(out))] = reader
    places = {page: set(reader.ids) for page, reader in pages.items()}
    for page, reader in pages.items():
        for id in (i for i, times in collections.Counter(reader.ids).items() if times > 1):
            problems.add(page, f"two places with the id {id}")
        for target in sorted(set(reader.targets + reader.loaded)):
            if re.match(r"[a-z]+:|//", target):
                if target in reader.loaded and not target.startswith("data:"):
                    problems.add(page, f"loads {target} from outside the book")
                continue
            path, _, fragment = target.partition("#")
            full = os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(path))) if path else page
            if full not in pages and not (out / full).is_file():
                problems.add(page, f"dead link: {target}")
            elif fragment and full in pages and urllib.parse.unquote(fragment) not in places[full]:
                problems.add(page, f"dead link: {target} (the page has no such place)")
    for sheet in sorted(out.glob("*.css")):
        for target in re.findall(r"url\(([^)]*)\)", sheet.read_text(encoding="utf-8")):
            target = target.strip("'\"")
            if not target.startswith("data:") and not (out / target).is_file():
                problems.add(sheet.name, f"missing file: {target}")


def prefixed(body, name):
    """A chapter's body as a part of one page: its ids and its links to itself get its name."""
    body = re.sub(r"""(\sid=)(["'])""", rf"\g<1>\g<2>{name}:", body)
    body = re.sub(r"""(\s(?:xlink:)?href=)(["'])#""", rf"\g<1>\g<2>#{name}:", body)
    return re.sub(r"""url\((['"]?)#""", rf"url(\g<1>#{name}:", body)


def inward(body, names):
    """On the page of everything, links between chapters stay on the page."""
    def within(match):
        if match[2] not in names:
            return match[0]
        return match[1] + "#" + match[2] + (":" + match[3][1:] if match[3] else "")
    return re.sub(r'(href=")([^"#/]+)\.html(#[^"]*)?(?=")', within, body)
