# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The walls between the rooms, held by reading the source.

    python3 tests/gates/check_walls.py [--archive LIBRARY] [--objects BUILD] ROOT

  include   a room includes only the rooms and the foreign libraries that the table below grants it
  main      only audit/command/ and audit/examples/ (and tests/) have a main
  print     only these and audit/bench/ print
  length    300 lines in base/, model/ and ref/, 500 elsewhere
  module    no two scripts in Python below tests/ have one name: those of one room use those of another
  licence   every file opens with the two-line SPDX header
  name      what one room calls or reads of another begins with sinkproof_, and so does what audit/sinkproof.h
            declares, and nothing else; no two files define one name (with --objects). No name begins as those of
            a library that is linked (with --archive)
  cycle     no files call or read each other in a circle, but for the calls that BACK lists (with --objects)

Prints one line per breach, "FILE:LINE: RULE: what", and exits 1 when there is one.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOMS = ("base", "model", "ref", "fast", "proofs", "audit", "tests")
C = {f"{h}.h" for h in ("assert complex ctype errno fenv float inttypes iso646 limits locale math "
                        "setjmp signal stdalign stdarg stdbool stddef stdint stdio stdlib "
                        "stdnoreturn string tgmath time uchar wchar wctype").split()}
POSIX = {"dirent.h", "fcntl.h", "libgen.h", "strings.h", "unistd.h", "endian.h",
         "sys/mman.h", "sys/stat.h", "sys/statvfs.h", "sys/types.h", "sys/resource.h", "sys/utsname.h"}
JANSSON = {"jansson.h"}
PCRE2 = {"pcre2.h"}
PROVERS = re.compile(r"^(mpfr|gmp|cblas|arb|arf|mag|acb|fmpz|fmpq|arb_mat|flint)\w*\.h$|^flint/\w+\.h$")
VECTORS = re.compile(r"^(\w*intrin|cpuid|arm_neon|omp|cblas)\.h$")
DISPATCH = {"sys/auxv.h", "sys/syscall.h"}  # what the processor and the kernel say of themselves
PROCESS = {"dlfcn.h", "poll.h", "sys/prctl.h", "sys/wait.h"}
COMMAND = {"argp.h", "sched.h", "getopt.h", "malloc.h", "termios.h", "sys/ioctl.h", "sys/time.h", "sys/wait.h"}

REF = {"base", "model", "ref"}  # the reference and what it stands on
# What the studies use of the judge's instrument; and nothing but the command uses a study.
STUDIES = {"audit/engine/runner.h", "audit/trace/trace.h", "audit/trace/trace_points.h",
           "audit/report/chart.h", "audit/report/page.h", "audit/report/pictures.h"}

# room: (rooms whose headers it may include, foreign headers it may include)
MAY = {
    "base": ({"base"}, lambda h: h in C | POSIX),
    "model": ({"base", "model"}, lambda h: h in C | POSIX | JANSSON),
    "ref": (REF, lambda h: h in C | POSIX),
    "fast/lanes": (REF | {"fast/lanes"}, lambda h: h in C),
    # A kernel knows what is in its arguments; the engine alone knows sequences, caches and threads.
    "fast/kernels": (REF | {"fast/lanes", "fast/kernels"}, lambda h: h in C | POSIX | DISPATCH or VECTORS.match(h)),
    "fast": (REF | {"fast"}, lambda h: h in C | POSIX or VECTORS.match(h)),
    "proofs": (REF | {"proofs"}, lambda h: h in C | POSIX | {"pthread.h"} or PROVERS.match(h)),
    # The products of audit/: a trace knows the model alone, the judge the traces and the bounds, verify
    # both, engine and bench the fast path; the command knows them all, and none of them the command.
    "audit": (REF, lambda h: h in C),
    "audit/trace": (REF | {"audit/trace", "audit/sinkproof.h", "audit/version.h"}, lambda h: h in C | POSIX),
    "audit/engine": (REF | {"fast", "audit/engine"}, lambda h: h in C),
    "audit/face": (REF | {"audit/sinkproof.h", "audit/version.h", "audit/engine", "audit/trace", "audit/judge",
                          "audit/designs", "audit/diagnose", "audit/face"}, lambda h: h in C | JANSSON),
    "audit/diagnose": (REF | {"proofs", "audit/trace", "audit/judge", "audit/diagnose"}, lambda h: h in C | POSIX | JANSSON),
    "audit/examples": (set(), lambda h: h in C | {"sinkproof.h"}),  # programs of a user's
    "audit/judge": (REF | {"proofs", "audit/sinkproof.h", "audit/trace", "audit/judge"},
                    lambda h: h in C | POSIX | JANSSON),
    "audit/designs": (REF | {"proofs", "audit/designs"}, lambda h: h in C | JANSSON),
    "audit/compare": (REF | {"audit/compare", "audit/judge", "audit/trace"}, lambda h: h in C | POSIX),
    "audit/report": (REF | {"proofs", "audit/sinkproof.h", "audit/version.h", "audit/trace", "audit/judge", "audit/face",
                            "audit/report"}, lambda h: h in C | POSIX | {"sys/utsname.h"}),
    # A plug-in runs in a process of its own; fast/ comes in by the same door.
    "audit/plugin": (REF | {"fast", "audit/sinkproof.h", "audit/trace", "audit/judge", "audit/diagnose", "audit/plugin",
                            "audit/version.h"}, lambda h: h in C | POSIX | JANSSON | PROCESS),
    # A model as it is seen under an intervention; verify and the study of the mechanism run it.
    "audit/intervene": (REF | {"audit/intervene"}, lambda h: h in C),
    "audit/verify": (REF | {"fast/lanes", "proofs", "audit/intervene", "audit/trace", "audit/judge", "audit/verify",
                            "audit/version.h"}, lambda h: h in C | POSIX),
    # It compares the truth's products with those of the libraries below them.
    "audit/bench": (REF | {"fast", "audit/bench", "proofs/truth"},
                    lambda h: h in C | POSIX | JANSSON | COMMAND or PROVERS.match(h)),
    "audit/studies/precision": (REF | STUDIES | {"audit/studies/precision"}, lambda h: h in C | POSIX | JANSSON),
    # It asks the judge for sets, and runs engines of its own.
    "audit/studies/next": (REF | {"proofs", "audit/sinkproof.h", "audit/trace", "audit/judge", "audit/studies/next"},
                           lambda h: h in C | JANSSON),
    "audit/studies/sinks": (REF | STUDIES | {"proofs", "audit/studies/sinks"}, lambda h: h in C | POSIX | JANSSON),
    "audit/studies/mechanism": (REF | STUDIES | {"proofs", "audit/intervene", "audit/studies/sinks", "audit/studies/mechanism"},
                                lambda h: h in C | POSIX | JANSSON),
    # Text knows no model: ids are all that leaves it.
    "audit/studies/text": ({"base", "model", "audit/studies/text"}, lambda h: h in C | POSIX | JANSSON | PCRE2),
    "audit/command": (REF | {"fast", "proofs", "audit"}, lambda h: h in C | POSIX | JANSSON | COMMAND),
    "tests": (set(ROOMS), lambda h: True),
}
# Calls that close a circle of files in one folder: what the file calls there, and why. No others may, and one that
# closes no circle any more goes.
BACK = {
    "model/container.c": ("gguf_model gpt2 hf llama openai synthetic", "the list of containers"),
    "model/checkpoint.c": ("checkpoint_shards", "a directory's files, each read as one"),
    "model/gguf.c": ("gguf_config", "the architectures that are read"),
    "model/matrix.c": ("synthetic", "a drawn row is read like a stored one"),
    "model/bf16.c": ("matrix", "the size of a number"),
    "model/fields.c": ("config", "a default that is made, not written"),
    "model/sniff.c": ("safetensors", "a foreign file may be one"),
    "ref/policy.c": ("policy_parse", "a known policy that is another with overrides"),
    "fast/engine/pass.c": ("attention experts perceptron", "the sublayers of a pass"),
    "proofs/truth/identities.c": ("identities_attention identities_first identities_forms identities_mixing identities_repeat "
                                  "identities_sink identities_stages identities_terms identities_gradients", "the tables of identities"),
    "proofs/truth/circuit.c": ("circuit_planted", "what of the weights is known to be planted"),
    "proofs/bounds/linear.c": ("accumulators", "sums that run in a narrower format"),
    "proofs/bounds/rope.c": ("rope_forms", "angles that are computed in another way"),
    "audit/trace/trace.c": ("trace_model", "whether a trace is of the model"),
}
LINES = dict.fromkeys(REF, 300)
SPDX = ("SPDX-License-Identifier: Apache-2.0", "Copyright 2026 the sinkproof authors")
PRINTS = re.compile(r"\b(v?printf|puts|putchar|perror)\s*\(|\b(stdout|stderr)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>|(\S+))')
LINKED = re.compile(r"(acb|arb|arf|cblas|flint|fmp[qz]|gmp|json|mag|mp[fnqz]|mpfr|nmod|omp|openblas|pcre2)_", re.IGNORECASE)
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def bare(source):
    """The source with comments and literals blanked, line for line."""
    return NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)


def resolve(root, file, name):
    """The path from the root that an #include "name" in `file` means, or None."""
    for base in (file.parent, root):
        path = (base / name).resolve()
        if path.is_file() and root in path.parents:
            return path.relative_to(root)
    return None


def check_includes(root, file, room, source):
    folder = str(file.parent.relative_to(root))
    place = folder if folder in MAY else room
    allowed, foreign = MAY[place]
    for number, line in enumerate(source.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if match[3]:
            yield number, "include", f"a computed include hides what it includes: {match[3]}"
        elif match[2]:
            if not foreign(match[2]):
                yield number, "include", f"{place}/ may not include <{match[2]}>"
        else:
            path = resolve(root, file, match[1])
            if path is None:
                yield number, "include", f'"{match[1]}" is not a file of this tree'
            elif not any(str(path) == a or str(path).startswith(a + "/") for a in allowed):
                yield number, "include", f"{place}/ may not include {path}"


def check_file(root, file):
    room = file.relative_to(root).parts[0]
    source = file.read_text(encoding="utf-8", errors="replace")
    lines = source.splitlines()
    head = [line.lstrip("/#*(-; ").rstrip("*) ") for line in lines if not line.startswith("#!")][:2]
    if tuple(head) != SPDX:
        yield 1, "licence", "the two-line SPDX header is missing"
    limit = LINES.get(room, 500)
    if len(lines) > limit:
        yield len(lines), "length", f"{len(lines)} lines, the limit in {room}/ is {limit}"
    if file.suffix not in (".c", ".h", ".inc"):
        return
    yield from check_includes(root, file, room, source)
    if room == "tests" or file.parent in (root / "audit/command", root / "audit/bench", root / "audit/examples"):
        return
    for number, line in enumerate(bare(source).splitlines(), 1):
        if re.search(r"\bmain\s*\(", line):
            yield number, "main", f"{room}/ may not have a main"
        match = PRINTS.search(line)
        if match and not INCLUDE.match(line):
            yield number, "print", f"{room}/ may not print ({match[1] or match[2]})"


def check_modules(root, files):
    """Python finds a module by its name alone."""
    named = {}
    for file in files:
        if file.suffix == ".py" and file.relative_to(root).parts[0] == "tests":
            named.setdefault(file.name, []).append(file.relative_to(root))
    for first, *others in named.values():
        for other in others:
            yield f"{other}:1: module: {first} has that name too"


def check_names(archive):
    out = subprocess.run(["nm", "-g", "--defined-only", archive], check=True,
                         capture_output=True, text=True).stdout
    for line in out.splitlines():
        words = line.split()
        if len(words) != 3 or words[1] not in "TDBRVWC":
            continue
        if LINKED.match(words[2]):
            yield f"{archive}: name: {words[2]} begins as the names of a library that is linked"


def room_of(file):
    """The top-level folder; of audit/ the folder below it, and below studies/."""
    parts = file.parent.parts
    return "/".join(parts[:3 if parts[1:2] == ("studies",) else 2 if parts[0] == "audit" else 1])


def links(root, build):
    """{name: the file that defines it}, {file: the names that it calls or reads}, of the rooms' objects; and a breach
    for each name that two of them define."""
    defined, wanted, twice = {}, {}, []
    for room in ROOMS[:-1]:
        # Of a file that is gone the object may still be there.
        files = {str(path): file for path in sorted((build / room).rglob("*.o"))
                 if (root / (file := path.relative_to(build).with_suffix(".c"))).is_file()}
        wanted.update({file: set() for file in files.values()})
        names = subprocess.run(["nm", "-A", "-g", *files], check=True, capture_output=True, text=True).stdout if files else ""
        for line in names.splitlines():
            path, _, symbol = line.partition(":")
            (kind, name), file = symbol.split()[-2:], files[path]
            if kind == "U":
                wanted[file].add(name)
            elif kind in "TDBRCG":
                if name in defined:
                    twice.append(f"{file}: name: {name} is defined by {defined[name]} too")
                defined[name] = file
    return defined, wanted, twice


def face(root):
    """The functions that audit/sinkproof.h declares."""
    header = root / "audit/sinkproof.h"
    return set(re.findall(r"\bsinkproof_\w+(?=\()", bare(header.read_text(encoding="utf-8")))) if header.is_file() else set()


def pages(root):
    """The functions that the pages that compute call; their objects are not always built."""
    return {name for file in (root / "doc/explore").glob("*.c")
            for name in re.findall(r"\bsinkproof_\w+(?=\()", bare(file.read_text(encoding="utf-8")))}


def check_links(root, defined, wanted):
    across = {name for file, names in wanted.items() for name in names
              if name in defined and room_of(defined[name]) != room_of(file)}
    for file, names in wanted.items():
        for name in sorted(names & across):
            if room_of(defined[name]) != room_of(file) and not name.startswith("sinkproof_"):
                yield f"{defined[name]}: name: {name} is linked by {file}, and does not begin with sinkproof_"
    for name in sorted(set(defined) - across - face(root) - pages(root)):
        if name.startswith("sinkproof_"):
            yield f"{defined[name]}: name: {name} begins with sinkproof_, and no other room links it"


def uses(defined, wanted):
    """{file: files that define what it calls or reads}."""
    return {file: {defined[name] for name in names if name in defined} - {file} for file, names in wanted.items()}


def circles(graph):
    """Sets of files that reach each other (Tarjan's strongly connected components of more than one)."""
    found, number, low, stack = [], {}, {}, []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in sorted(graph[file]):
            if other not in number:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], number[other])
        if low[file] == number[file]:
            circle = stack[stack.index(file):]
            del stack[stack.index(file):]
            if len(circle) > 1:
                found.append(circle)

    for file in sorted(graph):
        if file not in number:
            visit(file)
    return found


def check_cycles(root, defined, wanted):
    graph = uses(defined, wanted)
    together = {file: at for at, circle in enumerate(circles(graph)) for file in circle}
    for name, (called, _) in BACK.items():
        file = pathlib.Path(name)
        for other in (file.with_name(f"{stem}.c") for stem in called.split()):
            if other in graph.get(file, ()) and other in together and together.get(file) == together[other]:
                graph[file] = graph[file] - {other}
            elif (root / file).is_file():
                yield f"{file}: cycle: closes no circle by {other} (any more): BACK lists it"
    for circle in circles(graph):
        who = "folders" if len({file.parent for file in circle}) > 1 else "files"
        yield f"{min(circle)}: cycle: {who} use each other through {', '.join(map(str, sorted(circle)))}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--archive")
    arguments.add_argument("--objects", type=pathlib.Path)
    arguments.add_argument("root", type=pathlib.Path)
    options = arguments.parse_args()
    root = options.root.resolve()
    files = sorted(f for room in ROOMS for f in (root / room).rglob("*")
                   if f.suffix in (".c", ".h", ".inc", ".py", ".sh", ".v"))
    if not files:
        sys.exit(f"check-walls: no source files below {root}")
    breaches = [f"{file.relative_to(root)}:{number}: {rule}: {what}"
                for file in files for number, rule, what in check_file(root, file)]
    breaches += check_modules(root, files)
    if options.archive:
        breaches += check_names(options.archive)
    if options.objects:
        defined, wanted, twice = links(root, options.objects.resolve())
        breaches += [*twice, *check_cycles(root, defined, wanted), *check_links(root, defined, wanted)]
    print("\n".join(breaches + [f"check-walls: {len(files)} files, {len(breaches)} breaches"]))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
