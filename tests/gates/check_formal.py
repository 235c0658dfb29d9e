# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Compiles the Coq proofs of a folder and says which equations they prove.

    python3 tests/gates/check_formal.py [--record | --as-recorded] FOLDER BUILD

FOLDER holds NAME.v files, compiled under BUILD (what did not change is not compiled again) in the
order of their imports. A region "(*> sink.mass *)" … "(*< sink.mass *)" proves its id when it
holds the theorem sink_mass; other theorems of the region whose names begin so belong to it. A
region that holds only definitions proves nothing and is named as such.

Prints one line per finding: "pass TEXT" or "fail TEXT". Fails when a file does not compile; on
Admitted, Axiom, Parameter and their like; on a theorem that rests on an axiom beyond those of
Coq's Reals; on a malformed, unclosed or empty region; on an id proved in two files. When nothing
fails, and only then, BUILD/certificate says what was proved (tests/gates/certificate.py); --record keeps
it as FOLDER/CERTIFICATE.lock, which is committed. --as-recorded compiles nothing where this prover is the record's and
every file is, byte for byte, the one that it accepted then.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import certificate  # noqa: E402

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


def environment():
    """coqc spends a third of its seconds on collecting what it loaded, and ends before that pays."""
    kept = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    return {"OCAMLRUNPARAM": "s=256k,o=1000", **kept}


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
    made = subprocess.run(["make", "-s", "-k", f"-j{os.cpu_count() or 1}", "-f", "rules.mk"],
                          cwd=build, capture_output=True, text=True, env=environment())
    for line in (made.stdout + made.stderr).splitlines():
        print(f"note {line}")
    if made.returncode:
        fail("a file does not compile")
    return made.returncode == 0


def axioms_of(lines):
    """What stands in answers to Print Assumptions; "" when Coq did answer."""
    found = set()
    for line in lines:
        if line in ("Closed under the global context", "Axioms:"):
            found.add("")
        elif line and not line[0].isspace():
            found.add(line.split(":")[0].split()[0])
    return found


def print_assumptions(build, names, questions, fail):
    """{question: set of axioms}, as Coq prints them for the term of each question."""
    text = "".join(f"From Sinkproof Require {name}.\n" for name in names)
    for at, (key, term) in enumerate(questions.items()):
        text += f"Definition question_{at} := {term}.\n"
        text += f'Goal True. idtac "== {key}". exact I. Qed.\nPrint Assumptions question_{at}.\n'
    (build / "PrintAssumptions.v").write_text(text)
    run = subprocess.run(["coqc", *COQ, "PrintAssumptions.v"], cwd=build, capture_output=True, text=True,
                         env=environment())
    for leftover in [*build.glob("PrintAssumptions*"), *build.glob(".PrintAssumptions*")]:
        leftover.unlink()
    if run.returncode:
        fail(f"Print Assumptions: {run.stderr.strip()}")
    found, current = {}, set()
    for line in run.stdout.splitlines():
        if line.startswith("== "):
            current = found.setdefault(line[3:], set())
        else:
            current |= axioms_of([line])
    return found


def read_assumptions(build, theorems, proofs, known, fail):
    """{(file, theorem): set of axioms} and {id: set of axioms}. All theorems are asked about together,
    one by one only when together they rest on something that they should not; an id by its own, which
    takes a second each, unless it is known."""
    def term(asked):  # the type of a tuple of them would hold the type of each again and again
        return "".join(f"let _ := @{file}.{theorem} in " for file, theorem in asked) + "tt"

    names = sorted({file for file, _ in theorems})
    questions = {id: term([(name, t) for t in held]) for id, (name, held) in proofs.items() if id not in known}
    found = print_assumptions(build, names, {"all": term(theorems)} | questions, fail)
    together = found.pop("all", set())
    if together <= AXIOMS | {""}:
        return {t: together for t in theorems}, known | found
    one_by_one = print_assumptions(build, names, {f"{f} {t}": f"@{f}.{t}" for f, t in theorems}, fail)
    return {tuple(key.split()): axioms for key, axioms in one_by_one.items()}, known | found


def axioms_on_record(folder, proofs, hashes):
    """{id: axioms} of the ids that are as they were when the record was made."""
    record = certificate.read(folder / os.path.basename(certificate.RECORD))
    sources = certificate.hashes(folder)
    return {id: {"", *record.proofs[id].axioms} for id, (_, held) in proofs.items()
            if not certificate.difference(record, id, hashes[id], sources) and record.proofs[id].theorems == held}


def required_by(build):
    """{NAME.v: the files of this folder that it requires}, as coqdep wrote them."""
    found = {}
    for line in (build / "rules.mk").read_text().splitlines():
        match = re.match(r"(\w+)\.vo\b[^:]*: (.*)", line)
        if match:
            found[f"{match[1]}.v"] = {f"{w[:-3]}.v" for w in match[2].split() if w.endswith(".vo") and "/" not in w}
    return found


def prover():
    version = subprocess.run(["coqc", "--version"], capture_output=True, text=True).stdout
    return "Coq " + (re.search(r"version (\S+)", version) or ["", "unknown"])[1]


def is_recorded(folder, proofs, hashes):
    """Whether the record has all of it: each file, and of each id its statements, its theorems and known axioms."""
    record = certificate.read(folder / os.path.basename(certificate.RECORD))
    files = {name: file.hash for name, file in record.files.items()}
    found = {id: (f"{name}.v", hashes[id], held) for id, (name, held) in proofs.items()}
    return (found == {id: (p.file, p.hash, p.theorems) for id, p in record.proofs.items() if AXIOMS.issuperset(p.axioms)} and
            files == certificate.hashes(folder) and record.prover == prover())


def certify(build, proofs, hashes, assumptions):
    """Writes BUILD/certificate: only what compiled, without a fault, gets there."""
    requires, compiled = required_by(build), certificate.hashes(build)
    files = {name: certificate.File(hash, requires.get(name, set())) for name, hash in compiled.items()}
    (build / "certificate").write_text(certificate.write(prover(), files, {
        id: certificate.Proof(f"{name}.v", hashes[id], sorted(assumptions[id] - {""}), held)
        for id, (name, held) in proofs.items()}))


def read_sources(folder, names, fail):
    """The ids that are proved, {id: (file, theorems)}, the hashes of their statements, all theorems as
    (file, theorem), and the ids that are only defined."""
    proofs, hashes, theorems, defined = {}, {}, [], []
    for name in names:
        text = (folder / f"{name}.v").read_text(encoding="utf-8")
        code = certificate.without_comments(text)
        for number, line in enumerate(code.splitlines(), 1):
            if FORBIDDEN.search(line):
                fail(f"{name}.v:{number}: {FORBIDDEN.search(line)[0]} is not a proof")
        theorems += [(name, theorem) for theorem in certificate.THEOREM.findall(code)]
        for id, region in certificate.read_regions(f"{name}.v", text, fail).items():
            wanted, held = certificate.theorem_of(id), certificate.theorems_of(id, region)
            if wanted in held:
                if id in proofs:
                    fail(f"{name}.v: {id} is proved a second time (first in {proofs[id][0]}.v)")
                proofs[id], hashes[id] = (name, held), certificate.statement_hash(region, held)
            elif held or certificate.THEOREM.search(region):
                fail(f"{name}.v: the region {id} does not hold the theorem {wanted}")
            elif certificate.DEFINITION.search(region):
                defined.append(f"{id} ({name}.v)")
            else:
                fail(f"{name}.v: the region {id} states nothing")
    return proofs, hashes, theorems, defined


def axioms_used(theorems, assumptions, fail):
    used = set()
    for name, theorem in theorems:
        axioms = assumptions.get((name, theorem))
        if not axioms:
            fail(f"{name}.v: Coq did not print what {theorem} rests on")
            continue
        used |= axioms
        for axiom in sorted(axioms - AXIOMS - {""}):
            fail(f"{name}.v: {theorem} rests on {axiom}")
    return sorted(used - {""})


def proved(id, name, held):
    return f"pass {id} coq theorem={certificate.theorem_of(id)} file={name}.v theorems={len(held)}"


def main(folder, build, as_recorded=False):
    folder, build, failed, start = pathlib.Path(folder), pathlib.Path(build), [], time.monotonic()

    def fail(text):
        failed.append(text)
        print(f"fail {text}")

    names = sorted(path.stem for path in folder.glob("*.v"))
    if not names:
        fail(f"{folder} holds no proofs")
        return 1
    proofs, hashes, theorems, defined = read_sources(folder, names, fail)
    if as_recorded and not failed and is_recorded(folder, proofs, hashes):
        print("\n".join(f"{proved(id, name, held)} recorded" for id, (name, held) in sorted(proofs.items())))
        print(f"pass {len(proofs)} ids, {len(theorems)} theorems and lemmas in {len(names)} files are the record's")
        return 0
    (build / "certificate").unlink(missing_ok=True)
    if not compile_all(folder, build, names, fail):
        return 1
    known = axioms_on_record(folder, proofs, hashes)
    assumptions, of_ids = read_assumptions(build, theorems, proofs, known, fail)
    used = axioms_used(theorems, assumptions, fail)
    for id, (name, held) in sorted(proofs.items()):
        if not of_ids.get(id):
            fail(f"{name}.v: Coq did not print what {id} rests on")
        elif all(assumptions.get((name, t)) and assumptions[name, t] <= AXIOMS | {""} for t in held):
            print(proved(id, name, held))
    for line in defined:
        print(f"note defines {line}")
    for axiom in used:
        print(f"note axiom {axiom}")
    if not proofs:
        fail("no id is proved")
    if not failed:
        certify(build, proofs, hashes, of_ids)
        print(f"pass {len(proofs)} ids, {len(theorems)} theorems and lemmas in {len(names)} files, "
              f"{len(used)} axioms, all of the Reals, {time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    *options, proof_folder, build_folder = sys.argv[1:]
    status = main(proof_folder, build_folder, options == ["--as-recorded"])
    if status == 0 and options == ["--record"]:
        shutil.copyfile(f"{build_folder}/certificate", f"{proof_folder}/{os.path.basename(certificate.RECORD)}")
    sys.exit(status)
