# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Holds a student's answer to an exercise of the book against what the solution prints.

    python3 tests/doc/exercise.py [--show] [N [ANSWER]]     N is CHAPTER.QUESTION, as 6.2

Without N: the exercises. Without ANSWER: the question, and the form in which its solution prints, its
numbers left out. ANSWER is a C program, which is compiled against rooms.a, or for an exercise of
commands a shell script. It is right (exit 0) when it prints the solution's lines: the same words, and
numbers that are the solution's when they are rounded to the digits that it prints. Otherwise the answer
is another (exit 1). --show prints the expected lines. What is no exercise is exit 2; a program that does not
compile or run, exit 3. Where the solution's numbers are not the question's (exercise_numbers.py) nothing is
graded: exit 4.

An exercise may ask for a proof: its page shows a file of Coq up to "Proof.", and ANSWER is the whole
file. It is right when coqc accepts it, its lemma is the one that was asked, and that rests on nothing but
the axioms of Coq's real numbers. Where there is no coqc nothing is decided: exit 4.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from decimal import Decimal

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gates"))
import check_formal  # noqa: E402
import exercise_numbers  # noqa: E402

BUILD = ROOT / os.environ.get("SINKPROOF_BUILD", "build/release")
COMMAND = ROOT / os.environ.get("SINKPROOF", BUILD / "sinkproof")
SECONDS = 60
QUESTION = re.compile(r"^(\d+)\. (★{1,3}) (.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^<!-- exercise ([a-z0-9-]+) -->\n```(c|sh|coq)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = r"^<!-- output %s -->\n```text\n(.*?)^```$"
LEMMA = re.compile(r"^Lemma (\w+) :(.*?)\.\nProof\.", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)")
LIBRARIES = ["-lflint", "-lmpfr", "-lgmp", "-lopenblas", "-ljansson", "-lm"]
Exercise = namedtuple("Exercise", "number page grade question name language solution expected")


def exercises(root):
    """Every question of the book, in order; name, language and expected lines are those of its program."""
    for page in sorted((root / "doc").glob("[0-9]*.md")):
        _, _, section = page.read_text(encoding="utf-8").partition("\n## Exercises\n")
        for asked in QUESTION.finditer(section):
            program = PROGRAM.search(asked[3])
            printed = re.search(OUTPUT % program[1], asked[3], re.MULTILINE | re.DOTALL) if program else None
            yield Exercise(f"{int(page.name[:2])}.{asked[1]}", f"doc/{page.name}", asked[2],
                           asked[3].split("<details>")[0].strip(), *(program.groups() if program else ("", "", "")),
                           printed[1].splitlines() if printed else [])


def asked_proof(solution):
    """Of a file of Coq that ends in a proof: what stands before "Proof.", and the lemma's name."""
    return solution[:solution.index("\nProof.") + 1], LEMMA.search(solution)[1]


def prove(file, folder):
    """None, or the lines in which coqc objects; what a file there requires is compiled before it."""
    ran = subprocess.run(["coqc", *check_formal.COQ[:3], "-R", ".", "Exercise", file], cwd=folder, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=check_formal.environment())
    (folder / "said").write_text(ran.stdout, encoding="utf-8")
    return ran.stdout.splitlines() if ran.returncode else None


def grade_proof(exercise, answer, folder):
    """Whether a file of Coq proves what was asked: the lemma is compared with the page's, in a file of its own."""
    if shutil.which("coqc") is None:
        print("Not checked here: there is no coqc (sh tests/install.sh --with formal).")
        return 4
    head, lemma = asked_proof(exercise.solution)
    (folder / "Answer.v").write_text(answer.read_text(encoding="utf-8"), encoding="utf-8")
    faults = prove("Answer.v", folder)
    if faults is not None:
        print("\n".join([*faults, f"{answer} does not compile"]))
        return 3
    asked = head.replace(f"Lemma {lemma} :", f"Definition {lemma} : Prop :=")
    (folder / "Asked.v").write_text(f"From Exercise Require Answer.\n{asked}Definition held : {lemma} := Answer.{lemma}.\n"
                                    "Print Assumptions held.\n", encoding="utf-8")
    if prove("Asked.v", folder) is not None:
        print(f"Exercise {exercise.number} asks for another lemma than the {lemma} of {answer}.")
        return 1
    rests = check_formal.axioms_of((folder / "said").read_text(encoding="utf-8").splitlines())
    unproved = rests - check_formal.AXIOMS - {""} if "" in rests else {"what coqc did not say"}
    print(f"Exercise {exercise.number} is not proved: {lemma} rests on {', '.join(sorted(unproved))}." if unproved else
          f"Right: exercise {exercise.number}, proved.")
    return 1 if unproved else 0


def links(flags, libraries):
    return subprocess.run([*flags, "-xc", "-", "-o", os.devnull, *libraries], input="int main(void) {}\n",
                          text=True, stderr=subprocess.DEVNULL).returncode == 0


def compiler():
    """How this build compiles a program: the command, and the libraries that follow its files."""
    flags = (BUILD / "flags").read_text(encoding="utf-8").split(";")[0].split()  # then those of fast/
    return flags, (["-lflint-arb"] if links(flags, ["-lflint-arb"]) else []) + LIBRARIES


def compiled(command, source, program):
    """None, or the lines in which the compiler objects."""
    flags, libraries = command
    built = subprocess.run([*flags, str(source), str(BUILD / "rooms.a"), "-o", str(program), *libraries],
                           text=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return built.stdout.splitlines() if built.returncode else None


def executed(command, folder):
    """Runs in an empty folder, with `sinkproof` on the PATH: the status and what was printed."""
    bin = folder.parent / "bin"
    bin.mkdir(exist_ok=True)
    if not (bin / "sinkproof").exists():
        (bin / "sinkproof").symlink_to(COMMAND)
    folder.mkdir()
    own = {"PATH": f"{bin}:{os.environ['PATH']}",  # a page's program gives nothing back before it ends
           "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}
    try:
        ran = subprocess.run(command, cwd=folder, env=os.environ | own, text=True,
                             errors="replace", timeout=SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return 124, [f"no end within {SECONDS} seconds"]
    return ran.returncode, ran.stdout.splitlines()


def form(line):
    """What a line looks like, its numbers, its yes or no and its points of the model left out."""
    return re.sub(r"\b(?:yes|no|[AMF]\d+)\b", "_", NUMBER.sub("_", line))


def has_form(exercise):
    """Whether a solution chooses the words of its lines; of commands the words are the answer, but where Python prints."""
    return exercise.language == "c" or "python3" in exercise.solution


def words(line):
    """A line's words, each number a gap: how they are spaced does not matter."""
    return NUMBER.sub(" _ ", line).casefold().split()


def rounds_to(found, expected):
    """Whether a number is the expected one when it is rounded to the digits that the latter has."""
    step = Decimal((0, (1,), Decimal(expected).as_tuple().exponent))
    return 2 * abs(Decimal(found) - Decimal(expected)) <= step


def agree(found, expected):
    numbers, wanted = NUMBER.findall(found), NUMBER.findall(expected)
    return words(found) == words(expected) and all(map(rounds_to, numbers, wanted))


def graded(exercise, printed):
    """How many of the expected lines were printed in their place, and whether that is all there is."""
    printed = [line for line in printed if line.strip()]
    expected = [line for line in exercise.expected if line.strip()]
    same = [agree(*pair) for pair in zip(printed, expected)]
    return same, len(expected), len(printed) == len(expected) == sum(same)


def answered(exercise, answer, folder):
    """The exit status, and the lines that an answer printed."""
    if exercise.language == "sh":
        status, printed = executed(["sh", "-u", str(answer.resolve())], folder / "run")
    else:
        flags, libraries = compiler()
        faults = compiled(([f for f in flags if f != "-Werror"], libraries), answer.resolve(), folder / "answer")
        if faults is not None:
            return 3, [*faults, f"{answer} does not compile"]
        status, printed = executed([str(folder / "answer")], folder / "run")
    return (3, [*printed, f"{answer} exits with {status}"]) if status else (0, printed)


def grade(exercise, answer):
    wrong = exercise_numbers.disagreements(exercise.question, exercise.solution) if exercise.language != "coq" else []
    if wrong:
        print("\n".join([*wrong, f"Exercise {exercise.number} is not graded: its solution has other numbers than its question."]))
        return 4
    with tempfile.TemporaryDirectory() as folder:
        if exercise.language == "coq":
            return grade_proof(exercise, answer, pathlib.Path(folder))
        status, printed = answered(exercise, answer, pathlib.Path(folder))
    print("\n".join(printed))
    if status:
        return status
    same, lines, right = graded(exercise, printed)
    if right:
        print(f"Right: exercise {exercise.number}, {count(exercise.expected)}.")
        return 0
    differs = next((k for k, good in enumerate(same, 1) if not good), min(lines, len(same)) + 1)
    print(f"Another answer than the solution's to exercise {exercise.number}: {sum(same)} of its {count(exercise.expected)}, "
          f"the first that differs is line {differs}.")
    return 1


def count(lines):
    return f"{len(lines)} line" + ("" if len(lines) == 1 else "s")


def ask(exercise):
    print(f"{exercise.number} {exercise.grade} {exercise.page}\n\n{exercise.question}\n")
    if exercise.language == "coq":
        print("The answer is that file of Coq with its proof.")
        return
    kind = "commands that print" if exercise.language == "sh" else "a C program that prints"
    print(f"The answer is {kind} {count(exercise.expected)}" +
          (":" if has_form(exercise) else "."))
    if has_form(exercise):
        print("\n".join(f"    {form(line)}" for line in exercise.expected))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--show", action="store_true", help="print the lines that are expected")
    arguments.add_argument("number", nargs="?", default="")
    arguments.add_argument("answer", nargs="?", type=pathlib.Path)
    options = arguments.parse_args()
    every = {e.number: e for e in exercises(ROOT)}
    if not options.number:
        print("\n".join(f"{e.number:5} {e.grade:3} {e.question.splitlines()[0]}" for e in every.values()))
        return 0
    exercise = every.get(options.number)
    if exercise is None:
        print(f"exercise {options.number}: there is none; without N they are listed")
        return 2
    status = 0
    if options.answer is None:
        ask(exercise)
    elif not options.answer.is_file():
        print(f"{options.answer}: expected a file, found none")
        status = 3
    else:
        status = grade(exercise, options.answer)
    if options.show:
        lines = exercise.expected or exercise.solution.splitlines()
        print("\n".join(["Expected:", *(f"    {line}" for line in lines)]))
    return status


if __name__ == "__main__":
    sys.exit(main())
