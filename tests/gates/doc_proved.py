# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Whether the formula that a page prints is what its theorem says; for check_doc.py.

A person reads a formula and its theorem, once per statement, and writes down in doc/PROVED.txt what
both say, in one notation, with the hashes of what was read: the formula, the theorem, and every
definition and notation of proofs/formal that the theorem's words stand for, wherever it is.

    sink.mass 3f2a1b0c9d8e 7c6b5a493827 95c0e8a7b1d4
        sum_j alpha_j = 1 - alpha_s

A formula, a theorem or a definition that changes has another hash, and the row no longer counts until
somebody has read all again and written the row anew; nothing refreshes it. Below some rows stands a
dictionary, and a program reads both too (doc_formula.py): what the page prints must be what a theorem
says, whatever the person wrote. A relation that it cannot read is named, with the reason:

      : \\hat\\sigma := σ'
      ! \\gamma_n the definition of gamma

A theorem that holds only while something is small enough (m u < 1), or while a sum is positive, has that as
a hypothesis. The statement's own text must say it, in the formula or in the lines below; a row says how:

      ? INR m * u < 1 := m u < 1

The page of each such statement shows the theorem, and every hypothesis of the section that the
theorem stands in.
"""
import hashlib
import re

import doc_formula
import doc_pages

TABLE = "doc/PROVED.txt"
ROW = re.compile(rf"^({doc_pages.ID}) ([0-9a-f]{{12}}) ([0-9a-f]{{12}}) ([0-9a-f]{{12}})$")
READ = ("formula", "theorem", "meaning of the words")
SENTENCE = re.compile(r"(?:[^.]|\.(?!\s|\Z))+\.(?=\s|\Z)")
DEFINES = re.compile(r"^(?:Local |Global )?(?:Definition|Fixpoint|Inductive|Record|Let|(Notation|Infix))\s+([\w']+|\")")
# Hypotheses that narrow what a theorem says, where "0 <= u" or "e < 1" only tell what an error is.
NARROWS = re.compile(r"(?!Rabs|0 <=? [\w' ]+ < 1).+ < 1(?: / \d+)?|κ < 1|0 < \(?(?:Sum|∑) .+")
REQUIRES = re.compile(r"^From Sinkproof Require (?:Import |Export )?(.*)\.$")


def digest(text):
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def without_comments(text):
    kept, depth = [], 0
    for token in re.split(r"(\(\*|\*\))", text):
        depth += {"(*": 1, "*)": -1}.get(token, 0)
        if depth == 0 and token != "*)":
            kept.append(token)
    return "".join(kept)


def formula_of(text):
    """The $$ block of a statement, as check_doc.py collects it."""
    return text[text.index("$$"):]


def theorem_of(regions):
    """What the Coq regions of an id state: no proof, no comment."""
    files = sorted(f for f in regions if f.endswith(".v"))
    return "\n".join(without_comments(doc_pages.without_proofs(regions[f])) for f in files)


class Meaning:
    """What the words of theorems stand for: the definitions of their file and of all that it requires."""

    def __init__(self, folder):
        self.defined, self.requires = {}, {}
        for path in folder.glob("*.v"):
            own = self.defined[path.stem] = {}
            self.requires[path.stem] = set()
            for sentence in SENTENCE.findall(without_comments(path.read_text(encoding="utf-8"))):
                sentence = " ".join(sentence.split())
                if match := REQUIRES.match(sentence):
                    self.requires[path.stem] |= set(match[1].split())
                elif match := DEFINES.match(sentence):
                    # A notation of symbols has no name to be found by: it is of every theorem.
                    own.setdefault("" if match[2] == '"' else match[2], []).append(sentence)

    def files(self, name):
        found, ahead = [], [name]
        while ahead:
            if (one := ahead.pop()) not in found and one in self.defined:
                found.append(one)
                ahead += self.requires[one]
        return sorted(found)

    def of(self, name, text):
        files, found, ahead = self.files(name), set(), [text, ""]
        while ahead:
            for word in {"", *re.findall(r"[\w']+", ahead.pop())}:
                for sentence in (s for f in files for s in self.defined[f].get(word, ())):
                    if sentence not in found:
                        found.add(sentence)
                        ahead.append(sentence)
        return "\n".join(sorted(found))


def read_table(path, problems):
    """{id: [formula, theorem, meaning, what both say, {LaTeX: Coq}, [how a relation begins that is not read],
    {hypothesis: LaTeX}]}"""
    rows, id = {}, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.is_file() else [], 1):
        match = ROW.match(line)
        if match:
            id = match[1]
            if id in rows:
                problems.add(f"{TABLE}:{number}", f"{id} has a second row")
            rows[id] = [match[2], match[3], match[4], "", {}, [], {}]
        elif id and line.startswith("  : ") and " := " in line:
            latex, coq = line[4:].split(" := ", 1)
            rows[id][4][latex] = coq
        elif id and line.startswith("  ? ") and " := " in line:
            coq, latex = line[4:].split(" := ", 1)
            rows[id][6][coq] = latex
        elif id and line.startswith("  ! ") and len(line.split()) > 2:
            rows[id][5].append(line.split()[1])
        elif line.startswith("    ") and id:
            rows[id][3] += line.strip() + " "
        elif line.strip() and not line.startswith("#"):
            problems.add(f"{TABLE}:{number}", f"malformed: {line!r}, expected ID FORMULA THEOREM MEANING")
    return rows


def hypotheses(root, file):
    """[(line, hypothesis)] that sections of a Coq file put before the line of each region's start:
    {id: set of hypotheses in force}."""
    open_sections, force, code = [], {}, (root / file).read_text(encoding="utf-8")
    for line in code.splitlines():
        if re.match(r"^\s*Section\b", line):
            open_sections.append([])
        elif re.match(r"^\s*End\b", line) and open_sections:
            open_sections.pop()
        elif match := re.match(r"^\s*Hypothes[ie]s\s+(.*)", line):
            if open_sections:
                open_sections[-1].append(" ".join(match[1].split()))
        elif match := re.match(r"^\s*\(\*<((?: \S+)+) \*\)$", line):
            for id in match[1].split():
                force.setdefault(id, set()).update(h for s in open_sections for h in s)
    return force


def check_read(id, statement, theorem, row, problems):
    """What a program reads of a formula and a theorem that have a dictionary."""
    dictionary, unread = row[4:6]
    if not dictionary:
        return
    unproved = doc_formula.unproved(formula_of(statement.text), theorem, dictionary)
    for text, why in unproved:
        if not any(text.startswith(u) for u in unread):
            problems.add(f"doc/{statement.chapter}", f"{id} prints {text!r}: {why}")
    for u in unread:
        if not any(text.startswith(u) for text, _ in unproved):
            problems.add(TABLE, f"{id} prints no relation that begins {u!r} and is not read")


def narrowing(theorem):
    """The hypotheses of a region's theorems that narrow what they say."""
    found = set()
    for one in re.split(r"^\s*(?:Theorem|Corollary)\s+[\w']+", theorem, flags=re.MULTILINE)[1:]:
        *before, _ = re.split(r"->(?!.*->)", one.strip(), flags=re.DOTALL)
        for piece in doc_formula.pieces_of("".join(before)):
            piece = " ".join(doc_formula.split_outside(piece, re.compile(r":(?!=)"))[-1].split())
            if ":=" not in piece and NARROWS.fullmatch(piece):
                found.add(piece)
    return found


def text_below(page, id):
    """A statement's own text: from its heading to the next, without shown code, as the formulas are compared."""
    text = re.split(r"^#+ ", page[re.search(rf"^(?:#+ )?eq\[{re.escape(id)}\]", page, re.MULTILINE).end():], maxsplit=1,
                    flags=re.MULTILINE)[0]
    return "".join(doc_formula.plain(re.sub(r"```.*?```", "", text, flags=re.DOTALL)).split())


def check_narrowing(id, chapter, page, theorem, row, problems):
    """A page says of each narrowing hypothesis of its theorems that it is one."""
    wanted, text = narrowing(theorem), text_below(page, id)
    for coq in sorted(wanted - set(row[6])):
        problems.add(f"doc/{chapter}", f"{id} is proved where {coq}: say so below its formula, and how in {TABLE}: "
                     f"'  ? {coq} := LATEX'")
    for coq, latex in row[6].items():
        if coq not in wanted:
            problems.add(TABLE, f"{id} is proved without the hypothesis {coq}")
        if "".join(doc_formula.plain(latex).split()) not in text:
            problems.add(f"doc/{chapter}", f"{id} is proved where {coq}, and its text does not say {latex}")


def check(root, stated, regions, problems):
    if not (root / TABLE).is_file() and not any("C" in s.kinds for s in stated.values()):
        return
    rows = read_table(root / TABLE, problems)
    shown = {(m[2], m[3]) for page in doc_pages.pages(root) for m in
             map(doc_pages.SHOWN.match, page.read_text(encoding="utf-8").splitlines()) if m}
    in_force, meaning = {}, Meaning(root / "proofs/formal")
    for id, statement in stated.items():
        files = [f for f in regions.get(id, {}) if f.endswith(".v")]
        if "C" not in statement.kinds or not files:
            continue
        place, theorem = f"doc/{statement.chapter}", theorem_of(regions[id])
        for file in files:
            if (file, id) not in shown:
                problems.add(place, f"{id} is proved in {file}, and no page shows the theorem")
            if file not in in_force:
                in_force[file] = hypotheses(root, file)
            for hypothesis in sorted(in_force[file].get(id, ())):
                if hypothesis not in " ".join(regions[id][file].split()):
                    problems.add(place, f"{id} is proved under a hypothesis that its region leaves out: {hypothesis}")
        words = "\n".join(meaning.of(file.rpartition("/")[2][:-2], theorem) for file in sorted(files))
        want = (digest(formula_of(statement.text)), digest(theorem), digest(words))
        row = " ".join([id, *want])
        if id not in rows:
            problems.add(TABLE, f"{id} has no row: read formula and theorem, then write '{row}' and what both say")
            continue
        changed = [what for what, a, b in zip(READ, rows[id], want) if a != b]
        if changed:
            problems.add(TABLE, f"the {' and the '.join(changed)} of {id} changed since somebody read both: read them "
                         f"again, then write '{row}' and what both say")
        elif not rows[id][3].strip():
            problems.add(TABLE, f"{id} does not say what both say")
        check_read(id, statement, theorem, rows[id], problems)
        check_narrowing(id, statement.chapter, (root / place).read_text(encoding="utf-8"), theorem, rows[id], problems)
    for id in sorted(set(rows) - {i for i, s in stated.items() if "C" in s.kinds}):
        problems.add(TABLE, f"{id} is no statement that asks for C")
