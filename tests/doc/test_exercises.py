# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Builds and runs every program that the book shows as an exercise, and keeps what it printed.

In doc/*.md: "<!-- exercise NAME -->" before a fence of C. The program is compiled with the build's
own flags against rooms.a; its lines go to the log as "# output NAME| line", from where
tests/gates/check_doc.py shows them. A program that does not compile or exits with another status than 0
fails: a counterexample returns 1 when the two sides agree after all. A question has a grade, its
solution is hidden until it is asked for. A fence of sh holds commands:
the shell runs them in an empty folder with `sinkproof` on its PATH. A fence of coq is a proof of the lemma that the
question shows; tests/doc/test_exercise.py grades it. Every question has one of the three, or says why not: its answer
"is not graded".
"""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import exercise  # noqa: E402
from tap import Tap  # noqa: E402

AT_LEAST_TWO = {f"{chapter:02d}" for chapter in (*range(3, 11), *range(13, 17))}
REFERENCES = {"13-every-bound.md"}  # pages behind a chapter, which has the questions


def run(name, language, text, command, folder):
    """Whether it ran, what is to be said of it, and what it should have done."""
    source = folder / f"{name}.{language}"
    source.write_text(text, encoding="utf-8")
    faults = exercise.compiled(command, source, folder / f"{name}.out") if language == "c" else None
    if faults is not None:
        return False, faults, "compiles"
    status, lines = exercise.executed(["sh", "-u", str(source)] if language == "sh" else [str(folder / f"{name}.out")],
                                      folder / name)
    for line in lines:
        print(f"# output {name}| {line}")
    return status == 0 and bool(lines), [], f"exits with 0 (it did with {status})"


def ungraded(page):
    """The questions without a grade, the solutions in the open, and a chapter with too few questions."""
    _, _, section = page.read_text(encoding="utf-8").partition("\n## Exercises\n")
    questions = re.findall(r"^\d+\. (.*)$", section, re.MULTILINE)
    wrong = [q[:60] for q in questions if not re.match("★{1,3} ", q)]
    wrong += [f"nothing grades {q[1]} and it does not say so" for q in exercise.QUESTION.finditer(section)
              if not exercise.PROGRAM.search(q[3]) and "is not graded" not in q[3]]
    wrong += [f"the question {q[1]} does not show the lemma of its solution" for q in exercise.QUESTION.finditer(section)
              for name, language, text in exercise.PROGRAM.findall(q[3])
              if language == "coq" and f"```coq\n{exercise.asked_proof(text)[0]}```" not in q[3]]
    for marker in exercise.PROGRAM.finditer(section):
        before = section[:marker.start()]
        if before.count("<details>") != before.count("</details>") + 1:
            wrong.append(f"the solution {marker[1]} is not hidden")
    if page.name[:2] in AT_LEAST_TWO and page.name not in REFERENCES and len(questions) < 2:
        wrong.append(f"{len(questions)} exercises")
    return wrong


def main():
    command, tap, names, pages = exercise.compiler(), Tap(), set(), sorted((exercise.ROOT / "doc").glob("*.md"))
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            for name, language, text in exercise.PROGRAM.findall(page.read_text(encoding="utf-8")):
                if language == "coq":
                    continue
                passed, notes, what = run(name, language, text, command, pathlib.Path(folder))
                tap.report(passed and name not in names, f"exercise {name} of doc/{page.name} {what}", notes)
                names.add(name)
    wrong = [f"{page.name}: {what}" for page in pages for what in ungraded(page)]
    tap.report(not wrong, "every exercise has a grade and hides its solution", wrong)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
