# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What the reader of formulas and theorems (doc_formula.py) notices: each printed formula that has a
dictionary in doc/PROVED.txt is what its theorem says, and is not when one sign, number, relation or name
in it is another. What is no mistake, another order of terms or another typography, is none."""
import os
import pathlib
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import doc_formula  # noqa: E402
import doc_proved  # noqa: E402
from inventory import Problems, read_regions, read_statements  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a slip of the pen may make of a part of a formula.
SLIPS = [(r"\+", "-"), (r"(?<!\^\{)-", "+"), (r"(?<!\\tfrac)1", "2"), (r"\\le(?![a-z])", r"\\ge "), (r"\\pm", r"\\mp "),
         (r"\\mp", r"\\pm "), (r"\\frac(?=\{)", r"\\frac{1}"), (r"(?<![\\a-z])u(?![a-z])", "v u"),
         (r"\\eta", r"\\xi "), (r"e\^", "e e^"), (r"\|", "2 |")]
count = 0


def ok(passed, text):
    global count
    count += 1
    print(f"{'' if passed else 'not '}ok {count} - {text}")
    return passed


def slips(formula):
    """Every formula with one slip in it."""
    for pattern, instead in SLIPS:
        for match in re.finditer(pattern, formula):
            yield formula[:match.start()] + match.expand(instead) + formula[match.end():]


def reads(formula, theorem, dictionary, unread):
    found = doc_formula.unproved(formula, theorem, dictionary)
    return all(any(text.startswith(u) for u in unread) for text, _ in found)


def of_the_book():
    problems = Problems()
    regions, stated = read_regions(ROOT, problems), read_statements(ROOT, problems)
    rows = doc_proved.read_table(ROOT / doc_proved.TABLE, problems)
    ok(not problems, f"the table is read: {problems[:1]}")
    read = relations = 0
    for id, (*_, dictionary, unread, _) in rows.items():
        if not dictionary:
            continue
        formula, theorem = doc_proved.formula_of(stated[id].text), doc_proved.theorem_of(regions[id])
        printed = doc_formula.printed(formula)
        seen = [p for p in printed if not any(p.startswith(u) for u in unread)]
        read, relations = read + 1, relations + len(seen)
        made, missed = 0, []
        for slip in slips("\0".join(seen)):
            made += 1
            if reads(slip.replace("\0", r"\\"), theorem, dictionary, []):
                missed.append(slip)
        ok(seen and reads(formula, theorem, dictionary, unread), f"{len(seen)} of {len(printed)} relations read: {id}")
        ok(made > 0 and not missed, f"{made} slips, {len(missed)} unnoticed: {id}")
        for slip in missed[:3]:
            print("#", slip.replace("\0", "  "))
    ok(read > 0 and relations > 0, f"{read} statements, {relations} relations")


def hypotheses():
    """What narrows a theorem stands in the text below its formula; a text without it, a row without it and a
    row of something that no theorem asks are noticed."""
    problems = Problems()
    regions, stated = read_regions(ROOT, problems), read_statements(ROOT, problems)
    rows = doc_proved.read_table(ROOT / doc_proved.TABLE, problems)
    asked = 0
    for id, row in rows.items():
        theorem, chapter = doc_proved.theorem_of(regions[id]), stated[id].chapter
        page = (ROOT / "doc" / chapter).read_text(encoding="utf-8")

        def said(page=page, theorem=theorem, **changed):
            found = Problems()
            doc_proved.check_narrowing(id, chapter, page, theorem, [*row[:6], changed.get("row", row[6])], found)
            return found
        for coq, latex in row[6].items():
            asked += 1
            rest = {c: l for c, l in row[6].items() if c != coq}
            start = page.index(f"eq[{id}]")
            unsaid = page[:start] + page[start:].replace(latex, "\\dots")
            ok(not said() and any("does not say" in s for s in said(page=unsaid)) and
               any("say so below" in s for s in said(row=rest)) and
               any("without the hypothesis" in s for s in said(row={**row[6], "7 * u < 1": latex})),
               f"{id} is proved where {coq}, and says so")
    ok(asked >= 19, f"{asked} hypotheses that narrow a theorem")


THEOREM = """
Theorem t (x y a b u : R) (l : list R) : 0 <= u -> let g := gamma 2 u in
  Rabs (x - (a + b)) <= g * (Rabs a + Rabs b) + ∑ k ∈ l, k * u /\\ 0 <= y.
"""


def of_its_own():
    dictionary = {r"\hat x": "x", r"\sum_k": "∑ k ∈ l", "x_k": "k", r"\gamma_2": "gamma 2 u"}
    for formula, right, what in [
            (r"|\hat x - b - a| \le \gamma_2 (|b| + |a|) + \sum_k u x_k", True, "another order"),
            (r"\big|\hat x - (a + b)\big| \;\le\; \gamma_2 |a| + |b|\,\gamma_2 + \sum_k x_k u", True, "multiplied out"),
            (r"|\hat x - (a + b)| \le \gamma_2 |a| + |b| + \sum_k x_k u", False, "a factor that is gone"),
            (r"|\hat x - (a + b)| \le \gamma_2 (|a| + |b|)", False, "a term that is gone"),
            (r"|\hat x - (a + b)| < \gamma_2 (|a| + |b|) + \sum_k x_k u", False, "another relation"),
            (r"|\hat x - (a + b)| \le \gamma_2 (|a + b|) + \sum_k x_k u", False, "the size of a sum"),
            (r"|\hat x - (a + b)| \le \gamma_2 (|a| + |b|) + u", False, "no sum"),
            (r"0 \le y, \qquad 0 \le u", True, "two relations"), (r"0 \le a", False, "a relation of nothing"),
            (r"|\hat z| \le u", False, "what stands for nothing")]:
        ok(reads(formula, THEOREM, dictionary, []) == right, f"{what}: {'read' if right else 'refused'}")


of_its_own()
of_the_book()
hypotheses()
print(f"1..{count}")
