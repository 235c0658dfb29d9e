# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Prose that an editor can show: no line of Markdown is longer than it must be; for check_doc.py.

Code, formulas, tables, pictures, headings and what is written by a program may be of any length, and
so may what has no space to break at: a formula, code or a link within a line.
"""
import re

import doc_pages

WIDTH = 120
WHOLE = re.compile(r"\$[^$\n]+\$|`+[^`\n]*`+|\[[^\]\n]*\]\([^)\n]*\)|eq\[[^\]\n]*\]|<[^>\n]+>")
FREE = ("#", "|", "![", "eq[", "<", "$$", "Measured:", "    ")
BLOCK = re.compile(r" (?=(?:[-+*:~=]|#+|\d+[.)])(?: |$)|[>|<]|eq\[|!\[|\$\$|Measured:|\[\^)")  # what would open a block of its own


def too_long(line):
    """Whether a line of prose has a space to break at."""
    if len(line) <= WIDTH or line.startswith(FREE) or line.lstrip().startswith(("|", "```")):
        return False
    solid = WHOLE.sub(lambda match: "x" * len(match[0]), BLOCK.sub("x", line))
    prefix = re.match(r"\s*(?:[-*] |\d+\. |> )?", line).end()
    return " " in solid[prefix:WIDTH + 1]


def check(root, problems):
    for page in doc_pages.pages(root):
        code = formula = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            formula ^= line.strip() == "$$"
            if not code and not formula and too_long(line):
                problems.add(f"{page.relative_to(root)}:{number}", f"{len(line)} columns of prose, at most {WIDTH}")
