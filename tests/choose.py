# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tests that `make test T=...` runs.

    python3 tests/choose.py T SOURCE...

T is one or more of these, with spaces between them:
  softmax_sink            every test of any room whose name has these words in this order, C and scripts
  ref/softmax_sink        those of one room
  audit/test_trace        one test; its ending may stand behind it
  fast/                   all tests of a room
Prints their sources. Where nothing has such a name it prints one sentence with the nearest one, and exits 2.
"""
import difflib
import pathlib
import sys


def has_words(name, stem):
    """Whether the words of the stem stand in the name side by side."""
    words, wanted = name.split("_"), stem.split("_")
    return any(words[at:at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


def found(t, sources):
    """The sources that one word of T means."""
    room, _, name = t.rpartition("/")
    room, name = pathlib.PurePath(room).name, name.removesuffix(".c")
    here = [path for path in map(pathlib.PurePath, sources) if room in ("", path.parent.name)]
    if room and not name:
        return [str(path) for path in here]
    whole = [path for path in here if name in (path.name, path.stem) and name.startswith("test_")]
    return [str(path) for path in whole or [path for path in here if name and has_words(path.stem, name)]]


def nearest(t, sources):
    """The room, the name or its stem that looks most like T."""
    paths = [pathlib.PurePath(source) for source in sources]
    if "/" in t:
        words = [f"{path.parent.name}/{path.stem.removeprefix('test_')}" for path in paths] + [f"{path.parent.name}/" for path in paths]
    else:
        words = [path.stem.removeprefix("test_") for path in paths]
    return difflib.get_close_matches(t.replace("test_", ""), sorted(set(words)), 1, 0)[0]


def main(t, sources):
    chosen = []
    for word in t.split():
        these = found(word, sources)
        if not these:
            print(f"T={word}: no test has that name; the nearest is {nearest(word, sources)}")
            return 2
        chosen += [source for source in these if source not in chosen]
    if not chosen:
        print("T= names no test: expected a stem, ROOM/NAME or ROOM/")
        return 2
    print(" ".join(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
