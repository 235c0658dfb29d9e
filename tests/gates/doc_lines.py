# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Prose that an editor can show, and one meaning for the letter e in a statement; for check_doc.py.

No line of Markdown is longer than it must be.

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

# Euler's number is e with an exponent. In the same statement nothing else has the bare letter for a name.
EULER = re.compile(r"(?<![a-zA-Z\\])e\s*\^")
NOT_BARE = re.compile(r"\\(?:text|begin|end|operatorname)\{[^}]*\}|\\(?:hat|overline|underline|log_2|ln)\s*e\b|"
                      r"[_^](?:e\b|\{[^}]*\be\b[^}]*\})|(?<![a-zA-Z\\])e\s*[_^']")
STATEMENT = re.compile(r"^(?=#+ |eq\[)", re.MULTILINE)


def two_meanings_of_e(statement):
    """The formulas in which a statement names something e, where it has Euler's number too."""
    text = re.sub(r"```.*?```", "", statement, flags=re.DOTALL)
    formulas = [a or b for a, b in re.findall(r"\$\$(.*?)\$\$|\$([^$\n]+)\$", text, re.DOTALL)]
    if not any(map(EULER.search, formulas)):
        return []
    return [f for f in formulas if re.search(r"(?<![a-zA-Z\\])e(?![a-zA-Z])", NOT_BARE.sub(" ", f))]


def check(root, problems):
    for page in doc_pages.pages(root):
        for statement in STATEMENT.split(page.read_text(encoding="utf-8")):
            if re.match(r"(#+ )?eq\[", statement) and two_meanings_of_e(statement):
                problems.add(page.relative_to(root), f"Euler's number and something else are e in {statement.splitlines()[0]}")
        code = formula = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            formula ^= line.strip() == "$$"
            if not code and not formula and too_long(line):
                problems.add(f"{page.relative_to(root)}:{number}", f"{len(line)} columns of prose, at most {WIDTH}")
