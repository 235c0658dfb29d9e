# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The one inventory: every equation that the book states, and where its evidence is.

    python3 tests/gates/inventory.py ROOT > build/release/inventory.c

A statement is a heading of doc/*.md, "eq[sink.mass] Title {C Q B}", and the $$ block under it; the
letters are the evidence that it must have (KINDS). check_doc.py, doc/INDEX.md and the book read it
here; `sinkproof verify` as a table in C, with the files that define each id and what is known of its
formal proof (certificate.py): proved on this machine, recorded under the present hashes, or neither.
"""
import os
import pathlib
import re
import sys
from collections import defaultdict, namedtuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import certificate  # noqa: E402

ID = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
STATEMENT = re.compile(rf"^(?:#+ )?eq\[({ID})\] (\S.*?) \{{([CQBDE](?: [CQBDE])*)\}}$")
MARKER = re.compile(rf"^\s*//([<>])((?: {ID})+)\s*$")
COQ_MARKER = re.compile(rf"^\s*\(\*([<>])((?: {ID})+) \*\)\s*$")
FILE_NAME = re.compile(r"\.(c|h|v|json|safetensors|bin|txt|md|sh|py|gguf|npy)$")
# The evidence that a letter asks for: where its region must be, and which reports of a run count.
REFERENCE = ("base/", "model/", "ref/", "fast/lanes/")
KINDS = {
    "C": ("formal proof", ("proofs/formal/",), {"coq"}),
    "Q": ("exact instances", ("proofs/exact/",), {"exact"}),
    "B": ("enclosure or bound", ("proofs/truth/", "proofs/bounds/"), {"run"}),
    "D": ("definition in code", (*REFERENCE, "proofs/exact/", "proofs/bounds/", "proofs/truth/slices_lanes.inc"), {"run", "exact"}),
    "E": ("experiment", (*REFERENCE, "proofs/", "audit/"), {"run"}),
}

Statement = namedtuple("Statement", "chapter title kinds text section formula")


class Problems(list):
    def add(self, place, what):
        self.append(f"{place}: {what}")


def chapters(root):
    return [p for p in sorted((root / "doc").glob("*.md")) if p.name != "INDEX.md"]


def read_statements(root, problems):
    """{id: Statement}, in reading order. section: the headings above it; formula: its $$ block."""
    stated = {}
    for chapter in chapters(root):
        lines, fenced, above = chapter.read_text(encoding="utf-8").splitlines(), False, {}
        for at, line in enumerate(lines):
            fenced ^= line.startswith("```")
            if fenced or not line.startswith(("#", "eq[")):
                continue
            heading = re.match(r"(#+) (?!eq\[)(.*)", line)
            if heading:
                above = {k: v for k, v in above.items() if k < len(heading[1])} | {len(heading[1]): heading[2]}
            if not re.match(r"(#+ )?eq\[", line):
                continue
            place, match = f"doc/{chapter.name}:{at + 1}", STATEMENT.match(line)
            if not match:
                problems.add(place, f"malformed statement: {line!r}, expected eq[family.name] Title {{C Q B}}")
                continue
            start = next((k for k in range(at + 1, len(lines)) if lines[k].strip()), len(lines))
            if start == len(lines) or lines[start] != "$$" or "$$" not in lines[start + 1:]:
                problems.add(place, f"{match[1]} is not followed by a $$ block")
                continue
            end = lines.index("$$", start + 1)
            if not "".join(lines[start + 1:end]).strip():
                problems.add(place, f"{match[1]} states nothing: its $$ block is empty")
            if match[1] in stated:
                problems.add(place, f"{match[1]} is stated a second time (first in doc/{stated[match[1]][0]})")
                continue
            text = "\n".join([match[2], match[3], *lines[start:end + 1]])
            stated[match[1]] = Statement(chapter.name, match[2], match[3].split(), text, ", ".join(above.values()),
                                         "\n".join(lines[start + 1:end]).strip())
    return stated


def dedent(lines):
    margin = min((len(s) - len(s.lstrip()) for s in lines if s.strip()), default=0)
    return "\n".join(s[margin:].rstrip() for s in lines).strip("\n")


def read_regions(root, problems):
    """{id: {file: text}}: a file's regions of one id are joined by an empty line."""
    regions = defaultdict(lambda: defaultdict(list))
    for file in sorted(f for room in (*REFERENCE, "proofs") for f in (root / room).rglob("*.*") if f.suffix in (".c", ".h", ".inc", ".v")):
        name = str(file.relative_to(root))
        marker, begins = (COQ_MARKER, ("(*<", "(*>")) if file.suffix == ".v" else (MARKER, ("//<", "//>"))
        source = file.read_text(encoding="utf-8")
        if not any(begin in source for begin in begins):
            continue
        open_at, collected = {}, {}
        for number, line in enumerate(source.splitlines(), 1):
            place, marks = f"{name}:{number}", line.lstrip().startswith(begins)
            match = marks and marker.match(line)
            if not match:
                if marks:
                    problems.add(place, f"malformed region marker: {line.strip()!r}")
                for text in collected.values():
                    text.append(line)
                continue
            for id in match[2].split():
                if match[1] == ">":
                    if id in open_at:
                        problems.add(place, f"region {id} is opened inside itself")
                    open_at[id], collected[id] = number, []
                elif id not in open_at:
                    problems.add(place, f"region {id} is closed but was not opened")
                else:
                    if not "".join(collected[id]).strip():
                        problems.add(place, f"region {id} is empty")
                    regions[id][name].append(dedent(collected.pop(id)))
                    del open_at[id]
        for id, number in open_at.items():
            problems.add(f"{name}:{number}", f"region {id} is not closed")
    return {id: {f: "\n\n".join(t) for f, t in files.items()} for id, files in regions.items()}


def evidence(files, places):
    return {f: t for f, t in files.items() if f.startswith(tuple(places))}


def read_proofs(root, fail):
    """{id: (file, statement hash or None)} of proofs/formal; None: the region only defines."""
    found = {}
    for path in sorted((root / "proofs/formal").glob("*.v")):
        for id, region in certificate.read_regions(path.name, path.read_text(encoding="utf-8"), fail).items():
            held = certificate.theorems_of(id, region)
            found[id] = (path.name, certificate.statement_hash(region, held) if held else None)
    return found


def proof_of(id, proofs, local, record, sources):
    """What is known of the id's formal proof: (state, file, statement hash, theorems, axioms, why not)."""
    file, hash = proofs.get(id, ("", None))
    if not file:
        return "NONE", "", "", "", "", ""
    if hash is None:
        return "DEFINED", file, "", "", "", ""
    for state, held in ("PROVED", local), ("RECORDED", record):
        why = certificate.difference(held, id, hash, sources)
        if not why:
            p = held.proofs[id]
            return state, file, hash, " ".join(p.theorems), " ".join(p.axioms), ""
    return "OUTDATED", file, hash, "", "", why


def c_string(text):
    for old, new in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("??", '?""?')):
        text = text.replace(old, new)
    return f'"{text}"'


def c_table(root, stated, regions, proofs):
    local, record = certificate.read(root / certificate.LOCAL), certificate.read(root / certificate.RECORD)
    sources = certificate.hashes(root / "proofs/formal")
    rows = ["// generated by tests/gates/inventory.py from doc/ and the rooms; do not edit",
            '#include "audit/verify/verify.h"', "", "const verify_statement sinkproof_verify_inventory[] = {"]
    for id, s in stated.items():
        state, *proof = proof_of(id, proofs, local, record, sources)
        defined = " ".join(sorted(evidence(regions.get(id, {}), KINDS["D"][1]), key=lambda f: (not f.startswith(REFERENCE), f)))
        texts = [id, "".join(s.kinds), s.title.replace("$", ""), f"doc/{s.chapter}", s.section, s.formula, defined]
        rows.append(f"    {{{', '.join(map(c_string, texts))},")
        rows.append(f"     {{VERIFY_PROOF_{state}, {', '.join(map(c_string, proof))}}}}},")
    return "\n".join(rows + ["    {0},", "};"])


def main(root):
    root, problems = pathlib.Path(root), Problems()
    stated, regions = read_statements(root, problems), read_regions(root, problems)
    proofs = read_proofs(root, problems.append)
    if not stated:
        problems.add("doc", "zero equations are stated")
    if problems:
        sys.exit("\n".join(problems))
    print(c_table(root, stated, regions, proofs))


if __name__ == "__main__":
    main(sys.argv[1])
