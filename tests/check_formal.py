# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Compiles the Coq proofs of a folder and says which equations they prove.

    python3 tests/check_formal.py FOLDER BUILD

FOLDER holds NAME.v files, compiled under BUILD (what did not change is not compiled again) in the
order of their imports. A region "(*> sink.mass *)" … "(*< sink.mass *)" proves its id when it
holds the theorem sink_mass; other theorems of the region whose names begin so belong to it. A
region that holds only definitions proves nothing and is named as such.

Prints one line per finding: "pass TEXT" or "fail TEXT". Fails when a file does not compile; on
Admitted, Axiom, Parameter and their like; on a theorem that rests on an axiom beyond those of
Coq's Reals; on a malformed, unclosed or empty region; on an id proved in two files.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ID = r"[a-z][a-z0-9]*\.[a-z0-9]+(?:-[a-z0-9]+)*"
MARKER = re.compile(rf"^\s*\(\*([<>])((?: {ID})+) \*\)$")
LIKE_A_MARKER = re.compile(r"^\s*\(\*\s?[<>]")
THEOREM = re.compile(r"^\s*(?:Theorem|Corollary|Lemma|Example|Fact|Remark|Proposition)\s+([\w']+)", re.MULTILINE)
DEFINITION = re.compile(r"^\s*(?:Definition|Fixpoint|Inductive|Record)\s+[\w']+", re.MULTILINE)
# What would let a false statement through, or leave one open.
FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Abort|Axioms?|Parameters?|Conjectures?|Admit|bypass_check|"
    r"Unset\s+(?:Guard|Positivity|Universe)\s+Checking|Declare\s+ML|Set\s+Debug|type-in-type|Load|"
    r"Undelimit|Extraction|Drop)\b")
# The axioms on which the real numbers of Coq's standard library rest.
AXIOMS = {
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
COQ = ["-q", "-w", "-ambiguous-paths,-deprecated,-notation-overridden", "-R", ".", "Sinkproof"]


def theorem_of(id):
    return id.replace(".", "_").replace("-", "_")


def without_comments(text):
    """The text with comments blanked (Coq's nest), lines kept."""
    out, depth, at = [], 0, 0
    while at < len(text):
        two = text[at:at + 2]
        if two == "(*" or (two == "*)" and depth):
            depth += 1 if two == "(*" else -1
            at += 2
            continue
        out.append(text[at] if depth == 0 or text[at] == "\n" else " ")
        at += 1
    return "".join(out)


def read_regions(name, text, fail):
    """{id: text}: the regions of one file, several of one id joined."""
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


def compile_all(folder, build, names, fail):
    """Copies what changed, and lets make compile along the imports. True when all compiled."""
    build.mkdir(parents=True, exist_ok=True)
    for stale in build.glob("*"):
        if stale.is_file() and stale.name.split(".")[0] not in names:
            stale.unlink()
    for name in names:
        source, copy = folder / f"{name}.v", build / f"{name}.v"
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            shutil.copyfile(source, copy)
    files = [f"{name}.v" for name in names]
    rules = subprocess.run(["coqdep", "-R", ".", "Sinkproof", *files], cwd=build,
                           capture_output=True, text=True)
    if rules.returncode:
        fail(f"coqdep: {rules.stderr.strip()}")
        return False
    recipe = f"all: {' '.join(f'{name}.vo' for name in names)}\n{rules.stdout}\n"
    recipe += f"%.vo: %.v\n\t@echo 'coqc $<'; coqc {' '.join(COQ)} $<\n.DELETE_ON_ERROR:\n"
    (build / "rules.mk").write_text(recipe)
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    made = subprocess.run(["make", "-s", "-k", f"-j{os.cpu_count() or 1}", "-f", "rules.mk"],
                          cwd=build, capture_output=True, text=True, env=env)
    for line in (made.stdout + made.stderr).splitlines():
        print(f"note {line}")
    if made.returncode:
        fail("a file does not compile")
    return made.returncode == 0


def print_assumptions(build, names, questions, fail):
    """{question: set of axioms}, as Coq prints them for the term of each question."""
    text = "".join(f"From Sinkproof Require {name}.\n" for name in names)
    for at, (key, term) in enumerate(questions.items()):
        text += f"Definition question_{at} := {term}.\n"
        text += f'Goal True. idtac "== {key}". exact I. Qed.\nPrint Assumptions question_{at}.\n'
    (build / "PrintAssumptions.v").write_text(text)
    run = subprocess.run(["coqc", *COQ, "PrintAssumptions.v"], cwd=build, capture_output=True, text=True)
    for leftover in [*build.glob("PrintAssumptions*"), *build.glob(".PrintAssumptions*")]:
        leftover.unlink()
    if run.returncode:
        fail(f"Print Assumptions: {run.stderr.strip()}")
    found, current = {}, set()
    for line in run.stdout.splitlines():
        if line.startswith("== "):
            current = found.setdefault(line[3:], set())
        elif line in ("Closed under the global context", "Axioms:"):
            current.add("")  # Coq did answer
        elif line and not line[0].isspace():
            current.add(line.split(":")[0].split()[0])
    return found


def read_assumptions(build, theorems, fail):
    """{(file, theorem): set of axioms}. All theorems are asked about together; one by one only
    when together they rest on something that they should not."""
    names = sorted({file for file, _ in theorems})
    every = "".join(f"(@{file}.{theorem}, " for file, theorem in theorems) + "tt" + ")" * len(theorems)
    together = print_assumptions(build, names, {"all": every}, fail).get("all", set())
    if together <= AXIOMS | {""}:
        return {t: together for t in theorems}
    found = print_assumptions(build, names, {f"{f} {t}": f"@{f}.{t}" for f, t in theorems}, fail)
    return {tuple(key.split()): axioms for key, axioms in found.items()}


def main(folder, build):
    folder, build, failed, start = pathlib.Path(folder), pathlib.Path(build), [], time.monotonic()

    def fail(text):
        failed.append(text)
        print(f"fail {text}")

    names = sorted(path.stem for path in folder.glob("*.v"))
    if not names:
        fail(f"{folder} holds no proofs")
        return 1
    proofs, theorems, defined = {}, [], []
    for name in names:
        text = (folder / f"{name}.v").read_text(encoding="utf-8")
        code = without_comments(text)
        for number, line in enumerate(code.splitlines(), 1):
            if FORBIDDEN.search(line):
                fail(f"{name}.v:{number}: {FORBIDDEN.search(line)[0]} is not a proof")
        theorems += [(name, theorem) for theorem in THEOREM.findall(code)]
        for id, region in read_regions(f"{name}.v", text, fail).items():
            wanted = theorem_of(id)
            held = [t for t in THEOREM.findall(region) if t == wanted or t.startswith(wanted + "_")]
            if wanted in held:
                if id in proofs:
                    fail(f"{name}.v: {id} is proved a second time (first in {proofs[id][0]}.v)")
                proofs[id] = (name, held)
            elif held or THEOREM.search(region):
                fail(f"{name}.v: the region {id} does not hold the theorem {wanted}")
            elif DEFINITION.search(region):
                defined.append(f"{id} ({name}.v)")
            else:
                fail(f"{name}.v: the region {id} states nothing")
    if not compile_all(folder, build, names, fail):
        return 1
    assumptions = read_assumptions(build, theorems, fail)
    used = set()
    for name, theorem in theorems:
        axioms = assumptions.get((name, theorem))
        if not axioms:
            fail(f"{name}.v: Coq did not print what {theorem} rests on")
            continue
        used |= axioms
        for axiom in sorted(axioms - AXIOMS - {""}):
            fail(f"{name}.v: {theorem} rests on {axiom}")
    for id, (name, held) in sorted(proofs.items()):
        if all(assumptions.get((name, t)) and assumptions[name, t] <= AXIOMS | {""} for t in held):
            print(f"pass {id} coq theorem={theorem_of(id)} file={name}.v theorems={len(held)}")
    for line in defined:
        print(f"note defines {line}")
    for axiom in sorted(used - {""}):
        print(f"note axiom {axiom}")
    if not proofs:
        fail("no id is proved")
    if not failed:
        print(f"pass {len(proofs)} ids, {len(theorems)} theorems and lemmas in {len(names)} files, "
              f"{len(used - {''})} axioms, all of the Reals, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
