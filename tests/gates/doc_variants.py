# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The book's tables of the designs of attention and of the edges between them, from the C tables that hold
them (ref/variants/designs.c, proofs/truth/edges.c); for doc_pages.py. The tables of the lecture's claims name
designs and nothing else; for check_doc.py."""
import re

DESIGN = re.compile(r'^ +\{"([^"]+)",\s*"([^"]+)",\s*"([^"]+)",\s*"([^"]+)"', re.MULTILINE)
EDGE = re.compile(r'^ +(HOLDS|VALUES|FALSE)\("([^"]+)",\s*"([^"]+)",\s*"([^"]+)",\s*"([^"]+)"|'
                  r'^ +\{"([^"]+)",\s*"([^"]+)",\s*"([^"]+)",\s*"([^"]+)",\s*true', re.MULTILINE)
FILES = {"designs": "ref/variants/designs.c", "edges": "proofs/truth/edges.c", "false-edges": "proofs/truth/edges.c"}

LECTURE = "doc/28-lecture.md"


def check(root, problems):
    """Every name in backticks in a table of the lecture's claims is a design. A design need not be the lecture's."""
    page = root / LECTURE
    if not page.is_file():
        return
    designs = {match[0] for match in DESIGN.findall((root / FILES["designs"]).read_text(encoding="utf-8"))}
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        here = set(re.findall(r"`([^`]+)`", line)) if line.startswith("|") else set()
        for name in sorted(here - designs):
            problems.add(f"{LECTURE}:{number}", f"names {name}, which is no design")


def cell(text):
    return text.replace("|", r"\|").replace("*", r"\*").replace("_", r"\_").replace("<", r"\<").replace(">", r"\>")


def edges(text):
    """(holds, from, to, when, id) in the order of the table."""
    found = []
    for match in EDGE.finditer(text):
        kind, *first = match.groups()[:5]
        found.append((kind != "FALSE", *(first if kind else match.groups()[5:])))
    return found


def table(root, name):
    """The lines of a table, or None when it is not one of these."""
    if name not in FILES:
        return None
    text = (root / FILES[name]).read_text(encoding="utf-8")
    if name == "designs":
        rows = [f"| `{design}` | {cell(what)} | eq[{id}] |" for design, what, _, id in DESIGN.findall(text)]
        return ["", "| design | what it is | statement |", "|---|---|---|", *rows]
    holds = name == "edges"
    rows = [f"| `{a}` | `{b}` | {cell(when)} | eq[{id}] |" for true, a, b, when, id in edges(text) if true == holds]
    head = "| design | is | when | proved by |" if holds else "| design | is not | though it is said that | what is true |"
    return ["", head, "|---|---|---|---|", *rows]
