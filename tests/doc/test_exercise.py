# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What `make exercise` says of answers: the solutions are right, what prints other lines is another answer,
what prints nothing of its own is no answer, and to ask does not tell.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import exercise  # noqa: E402
from tap import Tap  # noqa: E402

TAP = Tap()
KEYS = "15.2"  # prints "5406 keys bring back 0.990001"
PROOF = "16.3"
WINDOW = """#include <math.h>
#include <stdio.h>
int main(void) {
    double sink = 0, all = 128 * exp(0) + exp(sink);
    printf("first key %d: %f, key %d: %f, sink %f\\n", 200 - 128 + 1, 1 / all, 200 - 128, 0.0, exp(sink) / all);
}
"""
PRINTS = '#include <stdio.h>\nint main(void) {{\n    puts("{}");\n    return {};\n}}\n'


def asked(*words):
    """The exit status and what exercise.py prints; a process of its own, but one that has its imports."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if child == 0:
            for number in (1, 2):
                os.dup2(said.fileno(), number)
            os.chdir(exercise.ROOT)
            sys.argv = ["exercise.py", *map(str, words)]
            try:
                status = exercise.main()
            except BaseException:  # no exit of main's is expected either
                traceback.print_exc()
                status = 99
            sys.stdout.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return status, said.read()


def commanded(*words):
    """The same of the command as it is typed."""
    ran = subprocess.run([sys.executable, str(exercise.ROOT / "tests/doc/exercise.py"), *map(str, words)], cwd=exercise.ROOT,
                         capture_output=True, text=True, env=os.environ | {"SINKPROOF": str(exercise.COMMAND)})
    return ran.returncode, ran.stdout + ran.stderr


def holds(what, status, said, number, answer, *options):
    found, printed = asked(*options, number, answer)
    TAP.report(found == status and said in printed, f"{what}: exit {found}, expected {status}", printed.splitlines())
    return printed


def solutions(folder):
    """Those of one chapter in C, and one in commands, are right; against another exercise they are not."""
    for page, number in (("03-rmsnorm", "3.1"), ("06-softmax-sink", "6.2"), ("10-forward", "10.1")):
        _, _, section = (exercise.ROOT / f"doc/{page}.md").read_text(encoding="utf-8").partition("\n## Exercises\n")
        _, language, text = exercise.PROGRAM.findall(section)[int(number.split(".")[1]) - 1]
        answer = folder / f"{number}.{language}"
        answer.write_text(text, encoding="utf-8")
        holds(f"the solution of {number}", 0, f"Right: exercise {number}", number, answer)
    holds("the solution of another exercise", 1, "the first that differs is line 1", "3.2", folder / "3.1.c")


def answers(folder):
    answer = folder / "answer.c"
    for what, line, status, said in (
            ("more digits and other spaces", "5406   Keys bring back 0.99000134", 0, "Right"),
            ("half a step of the last digit", "5406 keys bring back 0.9900015", 0, "Right"),
            ("more than that", "5406 keys bring back 0.99000151", 1, "0 of its 1 line"),
            ("fewer digits", "5406 keys bring back 0.99", 1, "Another answer"),
            ("another number", "5405 keys bring back 0.990001", 1, "Another answer"),
            ("the other sign", "5406 keys bring back -0.990001", 1, "Another answer"),
            ("no number", "5406 keys bring back nan", 1, "Another answer"),
            ("other words", "5406 rows bring back 0.990001", 1, "Another answer"),
            ("a line too many", "5406 keys bring back 0.990001\\nand more", 1, "1 of its 1 line, the first that differs is line 2"),
            ("nothing", "", 1, "0 of its 1 line, the first that differs is line 1")):
        answer.write_text(PRINTS.format(line, 0))
        holds(what, status, said, KEYS, answer)
    answer.write_text(WINDOW)
    holds("the window of 128 keys, by arithmetic", 0, "Right", "6.2", answer)
    answer.write_text(WINDOW.replace("sink = 0", "sink = 1"))
    holds("the same with another sink", 1, "Another answer", "6.2", answer)
    answer.write_text(PRINTS.format("5406 keys bring back 0.990001", 3))
    holds("a program that fails", 3, "exits with 3", KEYS, answer)
    answer.write_text("int main(void) { return x; }\n")
    holds("a program that does not compile", 3, "does not compile", KEYS, answer)
    holds("a file that is not there", 3, "found none", KEYS, folder / "none.c")


def questions(folder):
    every = list(exercise.exercises(exercise.ROOT))
    status, listed = asked()
    TAP.report(status == 0 and len(every) == len(listed.splitlines()) > 30, f"{len(every)} exercises are listed")
    by_hand = re.search(r"^gcc (.*) try\.c build/release/rooms\.a (.*) -o try && \./try$",
                        (exercise.ROOT / "doc/README.md").read_text(encoding="utf-8"), re.MULTILINE)
    flags, libraries = exercise.compiler()
    needed = [flag for flag in flags if flag.startswith(("-std=", "-D", "-I")) and flag != "-DSINKPROOF_WATCHED"]
    TAP.report(by_hand and by_hand[1].split() == needed and by_hand[2].split() == ["-lflint-arb", *exercise.LIBRARIES],
               "the command of the preface compiles a program as the tests do", [by_hand and by_hand[0], needed, libraries])
    mute = [e.number for e in every if e.name and e.language != "coq" and not e.expected]
    TAP.report(not mute, "what each program prints is known", mute)
    told = [e.number for e in every for line in e.expected if exercise.has_form(e) and re.search(r"\d", exercise.form(line))
            and not re.search(r"[A-Za-z]\d|\d[A-Za-z]", line)]
    TAP.report(not told, "the form of the lines has no number", told)
    for number, shown, hidden in (("25.1", "from T = _ on: _", "44"), ("22.1", "most of it _, _ %", "A1"),
                                  ("26.1", "after each: _ _ _ _ _", "yes")):
        status, printed = asked(number)
        TAP.report(status == 0 and shown in printed and hidden not in printed.split("The answer is")[1],
                   f"the form of {number}, where Python prints, without its answer", printed.splitlines())
    status, printed = asked(KEYS)
    TAP.report(status == 0 and "_ keys bring back _" in printed and "5406" not in printed, "to ask does not tell")
    answer = folder / "other.c"
    answer.write_text(PRINTS.format("1 keys bring back 1", 0))
    printed = holds("another answer is not told the right one", 1, "Another answer", KEYS, answer)
    TAP.report("5406" not in printed, "unless it asks", printed.splitlines())
    holds("with --show it is", 1, "    5406 keys bring back 0.990001", KEYS, answer, "--show")
    status, printed = commanded("6.9", answer)
    TAP.report((status, printed) == asked("6.9", answer), "the command does as its function")
    TAP.report(status == 2 and "there is none" in printed, f"6.9: {printed.strip()}")


def proofs(folder):
    """A proof is right; without its proof, and of another lemma, it is not. Without coqc nothing is decided."""
    proved = next(e for e in exercise.exercises(exercise.ROOT) if e.number == PROOF)
    head, lemma = exercise.asked_proof(proved.solution)
    status, printed = asked(PROOF)
    TAP.report(status == 0 and head.strip() in printed and "induction" not in printed, "to ask for a proof does not tell")
    answer = folder / "answer.v"
    answer.write_text(proved.solution, encoding="utf-8")
    if shutil.which("coqc") is None:
        TAP.skip(f"the proof of {PROOF}", "there is no coqc")
        holds("a proof without coqc", 4, "Not checked here", PROOF, answer)
        return
    holds("the proof in the book", 0, "proved.", PROOF, answer)
    answer.write_text(f"{head}Admitted.\n", encoding="utf-8")
    holds("a lemma that is left open", 1, f"rests on Answer.{lemma}", PROOF, answer)
    answer.write_text(f"Lemma {lemma} : True.\nProof. exact I. Qed.\n", encoding="utf-8")
    holds("another lemma", 1, "asks for another lemma", PROOF, answer)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for part in (solutions, answers, questions, proofs):
            (pathlib.Path(folder) / part.__name__).mkdir()
            part(pathlib.Path(folder) / part.__name__)
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
