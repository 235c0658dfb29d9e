# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The numbers of every question are those of its solution, to the letter, and of programs in what they print too: each
number that is given is changed by itself, and the program has to print another answer. A question and a solution that differ are
named, and nothing is graded by them.
"""
import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import exercise  # noqa: E402
import exercise_numbers  # noqa: E402
from tap import Tap  # noqa: E402

TAP = Tap()
SECONDS = 5
INCLUDE = re.compile(r'^#include (?:<.*>|".*\.h")$', re.MULTILINE)
CODE = re.compile(r'^#include "(.*\.c)"$', re.MULTILINE)  # of the reference, compiled once more
NAMED = re.compile(r"^(?:static |const |struct |enum |typedef |extern |float |double |int |size_t )+.*$", re.MULTILINE)


def names(program):
    """What a program names outside of its functions, and the code that it includes."""
    found = {name for pair in re.findall(r"^extern __typeof__\(\w+\) (\w+);|^#define \w+ +([a-z]\w*)$", program, re.MULTILINE)
             for name in pair if name}
    found |= {name for file in CODE.findall(program) for name in names((exercise.ROOT / file).read_text(encoding="utf-8"))}
    for line in NAMED.findall(program):
        line = re.sub(r"\{.*?\}(?! *(?:;|\w))|=[^,;{]*|\[[^\]]*\]", "", line.split("//")[0])
        found |= {name for name in re.findall(r"(\w+)\s*(?=[,;(}]|\{)", line.split("(")[0] + "(" if "(" in line else line)}
    return found - {"main", "__typeof__", "enum", "struct", "int", "float", "double", "void"}


MAIN = """
int main(void) {
    static int (*const programs[])(void) = {%s};
    for (int k = 0; k < (int)(sizeof programs / sizeof *programs); k++) {
        char name[32];
        int status = fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            snprintf(name, sizeof name, "%%d.out", k);
            struct rlimit most = {%d, %d}; // seconds of the processor
            if (setrlimit(RLIMIT_CPU, &most) != 0 || freopen(name, "w", stdout) == NULL) exit(255);
            programs[k]();
            exit(0); // what a function named main ends with by itself
        }
        if (child < 0 || waitpid(child, &status, 0) != child) return 1;
        printf("%%d\\n", status);
    }
}
"""


def answers(programs, folder):
    """(whether it came to its end, what it printed) of each program, all of them compiled as one and each a process of its own; or the
    compiler's faults."""
    heads, bodies = ["#include <stdlib.h>", "#include <sys/resource.h>", "#include <sys/wait.h>", "#include <unistd.h>"], []
    for k, program in enumerate(programs):
        included = [(exercise.ROOT / file).read_text(encoding="utf-8") for file in CODE.findall(program)]
        heads += [head for text in (program, *included) for head in INCLUDE.findall(text)]
        own, macros = ["main", *sorted(names(program))], re.findall(r"^#define (\w+)", program, re.MULTILINE)
        bodies += [*(f"#define {name} {name}_{k}" for name in own), INCLUDE.sub("", program),
                   *(f"#undef {name}" for name in (*own, *macros))]
    source = folder / "all.c"
    source.write_text("\n".join([*dict.fromkeys(heads), *bodies,
                                 MAIN % (", ".join(f"main_{k}" for k in range(len(programs))), SECONDS, SECONDS)]), encoding="utf-8")
    flags, libraries = exercise.compiler()
    flags = [{"-O2": "-O0"}.get(flag, flag) for flag in flags if flag not in ("-Werror", "-g")] + ["-w"]
    faults = exercise.compiled((flags, libraries), source, folder / "all")
    if faults is not None:
        return faults
    ended = subprocess.run([folder / "all"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                           env=os.environ | {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"})
    return [(int(status), (folder / f"{k}.out").read_bytes()) for k, status in enumerate(ended.stdout.split())]


def without(number, matters):
    return f"{exercise_numbers.shown(number)} of the question has {'no' if matters else 'an'} effect on the answer"


def effects(exercises, folder):
    """Of each number that is given: whether the answer changes with it, as it should. Three changes are tried, and of
    a number that should have no effect one."""
    told = [(e, *variant) for e in exercises for variant in exercise_numbers.variants(e.solution)]
    right, open_, wrong = {}, told, {e.number: [] for e in exercises}
    for attempt in range(3):
        found = answers([e.solution for e in exercises] + [changed[attempt] for *_, changed in open_], folder)
        if isinstance(found[0], str):
            TAP.report(False, "the solutions compile with other numbers", found)
            return
        right = dict(zip([e.number for e in exercises], found))
        same = [entry for entry, answer in zip(open_, found[len(exercises):]) if answer == right[entry[0].number]]
        if attempt == 0:
            for e, matters, number, _ in told:
                if not matters and not any(e is x[0] and number == x[2] and not x[1] for x in same):
                    wrong[e.number].append(without(number, matters))
        open_ = [entry for entry in same if entry[1]]
    for e, matters, number, _ in open_:
        wrong[e.number].append(without(number, matters))
    for e in exercises:
        TAP.report(not wrong[e.number] and right[e.number][0] == 0,
                   f"{e.number}: numbers that it takes from its question: {sum(x[0] is e for x in told)}", wrong[e.number])


def planted(every, number, *changes):
    """What is said of an exercise after replacements, each (question, old, new) or (solution, old, new)."""
    e = every[number]
    for field, old, new in changes:
        if old not in getattr(e, field):
            return e, [f"the {field} of {number} has no {old!r} to replace"]
        e = e._replace(**{field: getattr(e, field).replace(old, new)})
    return e, exercise_numbers.disagreements(e.question, e.solution)


def faults(every, folder):
    for what, wanted, *plan in (
            ("another number in the solution", "the question says 0 and the solution takes 0, 1", "6.2",
             ("solution", "sink = 0;", "sink = 1;")),
            ("the same in words", "the question says 4 and the solution takes 5", "6.1", ("solution", "keys = 4", "keys = 5")),
            ("another number in the question", "the question does not have it", "6.2", ("question", "position 200", "position 201")),
            ("another sign", "the question says -8, 0 and the solution takes 8, 0", "6.1", ("solution", "score = -8", "score = 8")),
            ("two numbers exchanged", "the question says 128, 200 and the solution takes 200, 128", "6.2",
             ("solution", "window = 128, position = 200", "window = 200, position = 128")),
            ("a number that the question keeps to itself", "the question does not state 1: ", "6.2",
             ("solution", "&row, &sink, s", "&row, (double[]){1}, s")),
            ("a zero that it keeps to itself", "the question does not state 0: ", "15.2",
             ("solution", "own: 0; 100", "own: 100")),
            ("a number that the solution leaves alone", "takes nothing from the question's 3", "6.2",
             ("question", "The last", "Of 3 layers the last")),
            ("the same, written out", "takes nothing from the question's 3", "6.2", ("question", "The last", "In three layers the last")),
            ("a number of commands", "the question says 5 and the solution takes 6", "10.1",
             ("solution", "tokens=random:5", "tokens=random:6"))):
        _, told = planted(every, *plan)
        TAP.report(any(wanted in line for line in told), f"refused: {what}", told or ["nothing was said"])
    unused, told = planted(every, "6.2", ("solution", "&row, &sink, s", "&row, &score, s"))
    given = list(exercise_numbers.variants(unused.solution))
    right, *found = answers([unused.solution, *(changed[0] for *_, changed in given)], folder)
    TAP.report(not told and found[0] != right and found[3] == right,  # the window, the sink
               "a number that is given and not used is seen when it changes", [told, right, found])
    other, printed = every["6.2"].solution.replace("sink = 0;", "sink = 1;"), io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = exercise.grade(every["6.2"]._replace(solution=other), folder / "all.c")
    TAP.report(status == 4 and "is not graded" in printed.getvalue(), "nothing is graded by such a solution",
               [status, *printed.getvalue().splitlines()])


def main():
    every = {e.number: e for e in exercise.exercises(exercise.ROOT) if e.language in ("c", "sh")}
    wrong = [f"{e.number}: {line}" for e in every.values() for line in exercise_numbers.disagreements(e.question, e.solution)]
    TAP.report(every and not wrong, f"{len(every)} questions and their solutions have the same numbers", wrong)
    with tempfile.TemporaryDirectory() as folder:
        effects([e for e in every.values() if e.language == "c"], pathlib.Path(folder))
        faults(every, pathlib.Path(folder))
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
