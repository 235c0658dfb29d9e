# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What the book and the comments cite can be opened: the bibliography and its citations; for check_doc.py."""
import re

import doc_pages
from check_walls import ROOMS

BIBLIOGRAPHY = "99-bibliography.md"
ENTRY = re.compile(r'^- <a id="([a-z][a-z0-9-]*)"></a>', re.MULTILINE)
CITATION = re.compile(rf"{re.escape(BIBLIOGRAPHY)}#([\w-]+)")
LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
BY_TITLE = re.compile(r"\*([^*\n]+)\*,\s+(?:19|20)\d\d\b")  # a work in plain words: *Title*, 1994
UNPUBLISHED = re.compile(r"\b(SPEC|EQUATIONS|NUMERICS)\b")  # notes that no reader of the tree can open


def check(root, problems):
    """Every citation, in prose or in a comment, has its entry; every entry is cited; a work that is named
    is cited; a chapter that a comment names exists."""
    page = root / "doc" / BIBLIOGRAPHY
    entries = ENTRY.findall(page.read_text(encoding="utf-8")) if page.is_file() else []
    for key in sorted({k for k in entries if entries.count(k) > 1}):
        problems.add(f"doc/{BIBLIOGRAPHY}", f"{key} is entered twice")
    sources = {f for room in ROOMS for ending in ("c", "h", "inc", "v")
               for f in (root / room).rglob(f"*.{ending}")}
    cited = set()
    for file in [p for p in doc_pages.pages(root) if p != page] + sorted(sources):
        name = str(file.relative_to(root))
        for title in BY_TITLE.findall(LINK.sub("", file.read_text(encoding="utf-8"))) if file not in sources else ():
            problems.add(name, f"names {title!r} and no entry of doc/{BIBLIOGRAPHY}")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for key in CITATION.findall(line):
                cited.add(key)
                if key not in entries:
                    problems.add(f"{name}:{number}", f"cites {key}, which doc/{BIBLIOGRAPHY} does not enter")
            if file not in sources:
                continue
            for chapter in re.findall(r"\bdoc/[\w-]+\.md\b", line):
                if not (root / chapter).is_file():
                    problems.add(f"{name}:{number}", f"names {chapter}, which there is not")
            if UNPUBLISHED.search(line):
                problems.add(f"{name}:{number}", f"cites {UNPUBLISHED.search(line)[1]}, which nobody can open")
    for key in sorted(set(entries) - cited):
        problems.add(f"doc/{BIBLIOGRAPHY}", f"{key} is cited nowhere")
