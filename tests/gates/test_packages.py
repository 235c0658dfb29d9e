# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What a machine without the packages meets: nothing may be compiled or linked before they are there.

make itself is asked, by its database: a rule whose recipe names a compiler, a linker or an archiver
must reach build/packages through its prerequisites. Then the Makefile is broken on purpose, and the
same question must name the rule that was broken.

And tests/install.sh is run beside a dpkg-query and an apt-get of this test's own, which lack
everything, refuse, or find the database locked: what a user then reads is counted line by line.
tests/gates/bare.sh asks the same of the real ones.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
from check_walls import ROOMS  # noqa: E402
from tap import Tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = re.compile(r"\$[({](CC|CXX|AR|LD|CPP|COMPILE|LINK)\b|(?<![\w./=-])(gcc|clang|cc|g\+\+|ld|ar)(?![\w-])")
RULE = re.compile(r"^([^\s#:=][^:=]*):(?!=)(.*)$")
ENV = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def database(makefile):
    """make's own list of rules: target -> (its prerequisites, its recipe)."""
    said = subprocess.run(["make", "-prn", "-f", str(makefile), "help"], cwd=ROOT, env=ENV, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    rules, targets = {}, []
    for line in said.partition("\n# Implicit Rules\n")[2].splitlines():
        found = RULE.match(line)
        if found:
            targets = found[1].split()
            for target in targets:
                rules.setdefault(target, ([], []))[0].extend(found[2].replace("|", " ").split())
        elif line.startswith("\t"):
            for target in targets:
                rules[target][1].append(line)
    return rules


def stem_of(target, pattern):
    """What % stands for in the pattern, or None where it does not match."""
    before, percent, after = pattern.partition("%")
    fits = percent and target.startswith(before) and target.endswith(after)
    return target[len(before):len(target) - len(after)] if fits else None


def prerequisites(rules, patterns, target):
    """Those that its rules name; without a recipe of its own the pattern rule with the shortest stem gives it one,
    and its prerequisites."""
    named, recipe = rules.get(target, ((), ()))
    fitting = [(len(stem), stem, wanted) for pattern, wanted in patterns
               for stem in [stem_of(target, pattern)] if stem is not None]
    if recipe or not fitting:
        return list(named)
    _, stem, wanted = min(fitting)
    return [*named, *(name.replace("%", stem) for name in wanted)]


def waits(rules, patterns, target, known):
    """Whether build/packages is made before the target is; `known` keeps the answers of one makefile."""
    seen, ahead = set(), [target]
    while ahead:
        name = ahead.pop()
        if name == "build/packages" or known.get(name):
            known[target] = True
            return True
        if name not in seen and name not in known:
            seen.add(name)
            ahead += prerequisites(rules, patterns, name)
    known.update(dict.fromkeys(seen, False))
    return False


def compiling(rules):
    return {target for target, (_, recipe) in rules.items() if any(TOOL.search(line) for line in recipe)}


def hasty(rules):
    """The rules that compile or link and do not wait for the packages."""
    patterns = [(pattern, wanted) for pattern, (wanted, _) in rules.items() if "%" in pattern]
    known = {}
    return {target for target in compiling(rules) if not waits(rules, patterns, target, known)}


def check_rules(tap, folder):
    makefile = ROOT / "Makefile"
    build = "build/release"
    rules = database(makefile)
    known = {f"{build}/%.o", f"{build}/inventory.o", f"{build}/rooms.a", f"{build}/sinkproof",
             f"{build}/tests/fast/exhaustive_exp", f"{build}/tests/fast/tsan_race"}
    found = compiling(rules)
    tap.report(known <= found, f"{len(found)} rules compile, link or archive", sorted(known - found))
    early = hasty(rules)
    tap.report(not early, f"each of them waits for the packages: {len(early)} do not", sorted(early))

    # What is broken: each text and what it becomes, the rules that must be named, all that may be.
    flags, packages, end = " $(BUILD)/flags\n", " | build/packages\n", "\n-include "
    table_o, table_c = ".o: $(BUILD)/inventory.c", "inventory.c: FORCE"
    objects, new = "$(BUILD)/%.o: %.c", f"{build}/new"
    faults = [
        ("the object of the inventory without flags and packages",
         {table_o + flags: table_o + "\n", table_c + packages: table_c + "\n"},
         {f"{build}/inventory.o"}, {f"{build}/inventory.o"}),
        ("the pattern of the objects without flags", {objects + flags: objects + "\n"},
         {f"{build}/%.o", f"{build}/rooms.a", f"{build}/tests/fast/tsan_race"}, found - {f"{build}/inventory.o"}),
        ("the flags without the packages", {"flags: FORCE | $(PACKAGES)\n": "flags: FORCE\n"}, {f"{build}/%.o"}, found),
        ("a new rule that forgets them", {end: f"\n{new}: tests/new.c\n\t$(CC) $< -o $@\n{end}"}, {new}, {new}),
    ]
    broken = pathlib.Path(folder) / "Makefile"
    for what, changes, least, most in faults:
        text = makefile.read_text(encoding="utf-8")
        once = all(text.count(old) == 1 for old in changes)
        for old, becomes in changes.items():
            text = text.replace(old, becomes)
        broken.write_text(text, encoding="utf-8")
        named = hasty(database(broken))
        tap.report(once and least <= named <= most, f"{what}: named", sorted(named)[:3])


DPKG_QUERY = """#!/bin/sh
[ ! -e $FAKE/installed ] || echo installed
"""
# Refuses `update` and `install` while the file named for it holds a number of refusals above zero.
APT_GET = """#!/bin/sh
left=$(cat $FAKE/$1 2>/dev/null || echo 0)
if [ "$left" -gt 0 ]; then
    echo $((left - 1)) >$FAKE/$1
    echo "E: Could not get lock $FAKE/lock. It is held by process 4242 (aptitude)"
    exit 100
fi
[ ! -e $FAKE/broken ] || { echo "E: Unable to locate package libgmp-dev"; exit 100; }
[ "$1" != install ] || touch $FAKE/installed
"""


def machine(folder, **files):
    """A tree without a build, on a machine whose packages are in the hands of this test."""
    tree, fake = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "fake"
    for old in (tree, fake):
        shutil.rmtree(old, ignore_errors=True)
        old.mkdir()
    for name in ("Makefile", "make", "doc", *ROOMS):
        (tree / name).symlink_to(ROOT / name)
    for name, text in {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET, "id": "#!/bin/sh\necho 0\n", **files}.items():
        (fake / name).write_text(text, encoding="utf-8")
        (fake / name).chmod(0o755)
    return tree, dict(ENV, FAKE=str(fake), PATH=f"{fake}:{ENV['PATH']}")


def says(tree, env, *command):
    """The exit status, and the lines of standard error and output together."""
    ran = subprocess.run(command, cwd=tree, env=env, text=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ran.returncode, ran.stdout.splitlines()


def check_refusals(tap, folder):
    by_hand = 'as root, run "apt-get update && apt-get install -y --no-install-recommends '
    for jobs in ("-j1", "-j8"):
        tree, env = machine(folder)
        status, lines = says(tree, env, "make", jobs, "all")
        tap.report(status == 2 and len(lines) == 1 and by_hand in lines[0],
                   f"make {jobs} all without the packages: one line, with the command", lines)
        tree, env = machine(folder, id="#!/bin/sh\necho 1000\n", sudo="#!/bin/sh\nexit 1\n")
        status, lines = says(tree, env, "make", jobs, "demo")
        tap.report(status == 2 and len(lines) == 1 and by_hand in lines[0],
                   f"make {jobs} demo by a user who may not install: the same line", lines)
        tree, env = machine(folder, broken="")
        status, lines = says(tree, env, "make", jobs, "demo")
        tap.report(status == 2 and len(lines) == 2 and "installing what is missing" in lines[0]
                   and by_hand in lines[1] and "Unable to locate package libgmp-dev" in lines[1],
                   f"make {jobs} demo where apt-get refuses: one line more, with its reason", lines)
        tap.report(not any("Error" in line or "unfinished" in line for line in lines),
                   f"make {jobs} demo: no line of make's own about a failed command", lines)
        tap.report(sorted(path.name for path in (tree / "build").rglob("*")) == ["apt.log"],
                   f"make {jobs} demo: nothing was built, and the log of apt-get is all that is left")
    tree, env = machine(folder)
    status, lines = says(tree, env, "make", "library")
    tap.report(status == 2 and len(lines) == 1 and by_hand + 'gcc libc6-dev make libopenblas-dev libjansson-dev"' in lines[0],
               "make library without the packages: one line, of what the library needs", lines)
    goals = re.search(r"INSTALLING := \$\(filter (.*),\$\(MAKECMDGOALS\)\)", (ROOT / "Makefile").read_text())[1].split()
    wordy = []
    for goal in goals:
        tree, env = machine(folder, id="#!/bin/sh\necho 1000\n", sudo="#!/bin/sh\nexit 1\n")
        status, lines = says(tree, env, "make", "-j8", goal)
        if status != 2 or len(lines) != 1 or by_hand not in lines[0]:
            wordy += [goal, *lines]
    tap.report(len(goals) > 9 and not wordy, f"each of {', '.join(goals)} ends with that one line", wordy)
    for flag in ("-n", "-q"):
        tree, env = machine(folder)
        status, lines = says(tree, env, "make", flag, "demo")
        tap.report(not (tree / "build").exists(), f"make {flag} demo installs nothing", lines)


def check_locks(tap, folder):
    install = ("sh", "tests/install.sh", "build")
    waits_for = "locked by process 4242 (aptitude): waiting for it"
    for what in ("update", "install"):
        tree, env = machine(folder, **{what: "2"})
        status, lines = says(tree, env, *install)
        tap.report(status == 0 and sum(waits_for in line for line in lines) == 1 and len(lines) == 2,
                   f"a lock that refuses {what} twice is waited for, and said once", lines)
    tree, env = machine(folder, install="9")
    status, lines = says(tree, dict(env, SINKPROOF_LOCK_SECONDS="1"), *install)
    tap.report(status == 3 and len(lines) == 3 and "process 4242 (aptitude) has kept" in lines[2],
               "a lock that stays is named with its holder", lines)
    tree, env = machine(folder, installed="")
    status, lines = says(tree, env, *install)
    tap.report(status == 0 and not lines, "where nothing is missing nothing is said", lines)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        check_rules(tap, folder)
        check_refusals(tap, folder)
        check_locks(tap, folder)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
