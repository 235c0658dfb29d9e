# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Builds and runs every program that the book shows as an exercise, and keeps what it printed.

In doc/*.md: "<!-- exercise NAME -->" before a fence of C. The program is compiled with the build's
own flags against libsinkproof.a; its lines go to the log as "# output NAME| line", from where
tests/check_doc.py shows them. A program that does not compile or exits with another status than 0
fails: a counterexample returns 1 when the two sides agree after all. A question has a grade, its
solution is hidden until it is asked for. A fence of sh holds commands:
the shell runs them in an empty folder with `sinkproof` on its PATH.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("SINKPROOF_BUILD", "build/release"))
ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = re.compile(r"^<!-- exercise ([a-z0-9-]+) -->\n```(c|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AT_LEAST_TWO = {f"{chapter:02d}" for chapter in (*range(3, 11), *range(13, 17))}
LIBRARIES = ["-lflint", "-lmpfr", "-lgmp", "-lopenblas", "-ljansson", "-lm"]


def links(flags, libraries):
    return subprocess.run([*flags, "-xc", "-", "-o", os.devnull, *libraries], input="int main(void) {}\n",
                          text=True, stderr=subprocess.DEVNULL).returncode == 0


def executed(command, name, **how):
    ran = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **how)
    lines = ran.stdout.splitlines()
    for line in lines:
        print(f"# output {name}| {line}")
    return ran.returncode == 0 and bool(lines), [], f"exits with 0 (it did with {ran.returncode})"


def run_shell(name, text, folder):
    place = folder / name
    place.mkdir()
    return executed(["sh", "-u", "-c", text], name, cwd=place, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})


def run(flags, libraries, name, text, folder):
    source, program = folder / f"{name}.c", folder / name
    source.write_text(text, encoding="utf-8")
    built = subprocess.run([*flags, str(source), str(BUILD / "libsinkproof.a"), "-o", str(program), *libraries],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode:
        return False, built.stdout.splitlines(), "compiles"
    return executed([str(program)], name)


def ungraded(page):
    """The questions without a grade, the solutions in the open, and a chapter with too few questions."""
    _, _, section = page.read_text(encoding="utf-8").partition("\n## Exercises\n")
    questions = re.findall(r"^\d+\. (.*)$", section, re.MULTILINE)
    wrong = [q[:60] for q in questions if not re.match("★{1,3} ", q)]
    for marker in PROGRAM.finditer(section):
        before = section[:marker.start()]
        if before.count("<details>") != before.count("</details>") + 1:
            wrong.append(f"the solution {marker[1]} is not hidden")
    if page.name[:2] in AT_LEAST_TWO and len(questions) < 2:
        wrong.append(f"{len(questions)} exercises")
    return wrong


def main():
    flags = (BUILD / "flags").read_text(encoding="utf-8").split(";")[0].split()  # then those of fast/
    libraries = (["-lflint-arb"] if links(flags, ["-lflint-arb"]) else []) + LIBRARIES
    number, failed, names = 0, False, set()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "sinkproof").symlink_to(pathlib.Path(os.environ.get("SINKPROOF", BUILD / "sinkproof")).resolve())
        for page in sorted((ROOT / "doc").glob("*.md")):
            for name, language, text in PROGRAM.findall(page.read_text(encoding="utf-8")):
                number += 1
                passed, notes, what = (run_shell(name, text, folder) if language == "sh" else
                                       run(flags, libraries, name, text, folder))
                passed = passed and name not in names
                names.add(name)
                print(f"{'ok' if passed else 'not ok'} {number} - exercise {name} of doc/{page.name} {what}")
                for note in notes:
                    print(f"# {note}")
                failed |= not passed
    wrong = [f"{page.name}: {what}" for page in sorted((ROOT / "doc").glob("*.md")) for what in ungraded(page)]
    number += 1
    print(f"{'not ok' if wrong else 'ok'} {number} - every exercise has a grade and hides its solution")
    for what in wrong:
        print(f"# {what}")
    failed |= bool(wrong)
    print(f"1..{number}")
    return 1 if failed or not number else 0


if __name__ == "__main__":
    sys.exit(main())
