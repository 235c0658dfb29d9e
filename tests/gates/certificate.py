# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What a formal proof rests on, as hashes: what the prover accepted, and whether the source is still that.

A certificate is text, a line per file and per id; check_formal.py writes one when everything compiled:

  prover Coq 8.16.1
  axiom NAME                          a number is its place among these lines
  file NAME.v HASH REQUIRED,...|-     what the file requires of this folder
  id ID NAME.v HASH AXIOMS|- THEOREM,...   the hash is of the theorems' statements; AXIOMS as numbers

The one under build/ is of this machine: what it matches was *proved* here. The one in proofs/formal/ is
committed (`make formal` writes it): what it matches is *recorded*. A file matches when its hash and those
of all that it requires, to the last, are the source's; an id, when its file and its statements do.
"""
import hashlib
import re
from collections import namedtuple

LOCAL, RECORD = "build/formal/certificate", "proofs/formal/CERTIFICATE.lock"
ID = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
MARKER = re.compile(rf"^\s*\(\*([<>])((?: {ID})+) \*\)$")
LIKE_A_MARKER = re.compile(r"^\s*\(\*\s?[<>]")
COMMENT, NO_LINE_END = re.compile(r"\(\*|\*\)"), re.compile(r"[^\n]")
KEYWORD = r"(?:Theorem|Corollary|Lemma|Example|Fact|Remark|Proposition)"
THEOREM = re.compile(rf"^\s*{KEYWORD}\s+([\w']+)", re.MULTILINE)
STATED = re.compile(rf"^\s*{KEYWORD}\s+([\w']+)(.*?)(?:\bProof\b|\Z)", re.MULTILINE | re.DOTALL)
DEFINITION = re.compile(r"^\s*(?:Definition|Fixpoint|Inductive|Record)\s+[\w']+", re.MULTILINE)

File = namedtuple("File", "hash requires")
Proof = namedtuple("Proof", "file hash axioms theorems")  # axioms by name
Certificate = namedtuple("Certificate", "prover files proofs")


def theorem_of(id):
    return id.replace(".", "_").replace("-", "_")


def without_comments(text):
    """The text with comments blanked (Coq's nest), lines kept."""
    out, depth, at = [], 0, 0
    for mark in [*COMMENT.finditer(text), None]:
        if mark and mark[0] == "*)" and depth == 0:
            continue
        piece = text[at:mark.start() if mark else len(text)]
        out.append(piece if depth == 0 else NO_LINE_END.sub(" ", piece))
        depth, at = (depth + (1 if mark[0] == "(*" else -1), mark.end()) if mark else (0, 0)
    return "".join(out)


def read_regions(name, text, fail):
    """{id: text}: the regions of one file without comments, several of one id joined."""
    regions, open_at = {}, {}
    code = without_comments(text).splitlines()
    for number, line in enumerate(text.splitlines()):
        match = MARKER.match(line)
        if not match:
            if LIKE_A_MARKER.match(line):
                fail(f"{name}:{number + 1}: malformed region marker {line.strip()!r}")
            continue
        for id in match[2].split():
            if match[1] == ">":
                if id in open_at:
                    fail(f"{name}:{number + 1}: region {id} is opened inside itself")
                open_at[id] = number
            elif id not in open_at:
                fail(f"{name}:{number + 1}: region {id} is closed but was not opened")
            else:
                body = "\n".join(code[open_at.pop(id) + 1:number])
                if not body.strip():
                    fail(f"{name}:{number + 1}: region {id} is empty")
                regions[id] = regions.get(id, "") + body + "\n"
    for id, number in open_at.items():
        fail(f"{name}:{number + 1}: region {id} is not closed")
    return regions


def theorems_of(id, region):
    """The theorem named for the id, and those of the region whose names begin so."""
    wanted = theorem_of(id)
    return [t for t in THEOREM.findall(region) if t == wanted or t.startswith(wanted + "_")]


def short(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()[:16]


def hashes(folder):
    """{NAME.v: hash} of a folder's files."""
    return {path.name: short(path.read_bytes()) for path in folder.glob("*.v")}


def statement_hash(region, theorems):
    """Of the theorems' statements alone, wherever the lines break: a new proof of the same keeps it."""
    stated = dict(STATED.findall(region))
    return short("\n".join(f"{t} {' '.join(stated.get(t, '').split())}" for t in theorems))


def write(prover, files, proofs):
    """The text of a certificate."""
    axioms = sorted({a for proof in proofs.values() for a in proof.axioms})
    rows = ["# What the prover accepted (make formal); see tests/gates/certificate.py", f"prover {prover}"]
    rows += [f"axiom {name}" for name in axioms]
    rows += [f"file {name} {f.hash} {','.join(sorted(f.requires)) or '-'}" for name, f in sorted(files.items())]
    for id, p in sorted(proofs.items()):
        rest = ",".join(str(axioms.index(a) + 1) for a in sorted(p.axioms)) or "-"
        rows.append(f"id {id} {p.file} {p.hash} {rest} {','.join(p.theorems)}")
    return "\n".join(rows) + "\n"


def read(path):
    """The certificate of a file; one without lines when there is no such file."""
    axioms, found = [], Certificate("", {}, {})
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        word, *rest = line.split()
        if word == "prover":
            found = found._replace(prover=" ".join(rest))
        elif word == "axiom":
            axioms.append(rest[0])
        elif word == "file":
            found.files[rest[0]] = File(rest[1], [] if rest[2] == "-" else rest[2].split(","))
        elif word == "id":
            rests = [] if rest[3] == "-" else [axioms[int(n) - 1] for n in rest[3].split(",")]
            found.proofs[rest[0]] = Proof(rest[1], rest[2], rests, rest[4].split(","))
    return found


def without_prover(text):
    """What two provers agree on."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("prover "))


def difference(certificate, id, hash, sources):
    """What keeps a proof from matching: "" when nothing does. sources: {file: hash} of the present tree."""
    proof = certificate.proofs.get(id)
    if proof is None:
        return "no record of it"
    if proof.hash != hash:
        return "its statement is another than the one that was checked"
    seen, ahead = set(), [proof.file]
    while ahead:
        name = ahead.pop()
        seen.add(name)
        if name not in certificate.files or sources.get(name) != certificate.files[name].hash:
            return f"{name} changed since it was checked"
        ahead += [r for r in certificate.files[name].requires if r not in seen]
    return ""
