# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""A trace in several files is read as one: by an index, as a series, in a directory. What overlaps, lacks or
contradicts is refused with the names of both files.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import read, report, safetensors, sinkproof  # noqa: E402

TINY = "synthetic:tiny"
FAST = ("--policy", "f32", "--local", "--no-hint", "--no-diagnosis")
SHARED = ("tokens", "positions")


def cut(work, parts=3):
    """([tensors of each part], metadata): the layers in turn, T0 and F2 in the first and the last."""
    whole = work / "whole.safetensors"
    sinkproof("run", TINY, "--tokens", "random:5", "--policy", "f32", "--trace", str(whole))
    tensors, metadata = read(whole)
    pieces = [{name: tensors[name] for name in SHARED} for _ in range(parts)]
    for name, what in tensors.items():
        if name not in SHARED:
            pieces[int(name[:2]) % parts if name[:2].isdigit() else 0 if name == "T0" else parts - 1][name] = what
    return pieces, metadata


def index_of(pieces, name):
    return json.dumps({"weight_map": {t: f"{name}{i}" for i, piece in enumerate(pieces) for t in piece if t not in SHARED or i == 0}})


def judged(work, path):
    status, _, wrong = sinkproof("judge", TINY, str(path), *FAST, "--json", str(work / "j"), "--html", str(work / "h"))
    if status == 3:
        return status, wrong
    rows = json.loads((work / "j").read_text())["results"]
    (work / "j").unlink()
    return status, [{k: v for k, v in row.items() if k != "trace"} for row in rows]


def one(work):
    """Whichever way the parts are told."""
    pieces, metadata = cut(work)
    expected = judged(work, work / "whole.safetensors")
    folder, series = work / "folder", work / "series"
    folder.mkdir()
    series.mkdir()
    for i, piece in enumerate(pieces):
        alone = piece if i == 0 else {k: v for k, v in piece.items() if k not in SHARED}
        (folder / f"part{i}").write_bytes(safetensors(alone, metadata if i == 0 else None))
        (series / f"t-{i + 1:05}-of-00003.safetensors").write_bytes(safetensors(piece, metadata))
    (folder / "t.safetensors.index.json").write_text(index_of(pieces, "part"))
    for what, path in (("an index", folder / "t.safetensors.index.json"), ("the directory of an index", folder),
                       ("the first of a series", series / "t-00001-of-00003.safetensors"),
                       ("another of a series", series / "t-00003-of-00003.safetensors"), ("the directory of a series", series)):
        found = judged(work, path)
        report(found == expected and found[0] == 0, f"trace-parts.one {what}: {len(expected[1])} rows, those of the whole", [str(found)[:300]])
    again = ["judge", TINY, str(folder), *FAST, "--out", str(work / "out")]
    sinkproof(*again)
    first = sinkproof(*again)[2]
    os.utime(folder / "part2", ns=(1, 1))
    second = sinkproof(*again)[2]
    report("1 of 1 result" in first and "from before" not in second, "trace-parts.one a part that changed makes a kept result old", [first, second])


def refused(work):
    """Parts that make no trace."""
    pieces, metadata = cut(work)

    def written(name, changed, index=None):
        folder = work / name
        folder.mkdir()
        for i, piece in enumerate(changed):
            if piece is not None:
                data = safetensors(piece[0], piece[1]) if isinstance(piece, tuple) else safetensors(piece, metadata)
                (folder / f"t-{i + 1:05}-of-00003.safetensors").write_bytes(data)
        if index is not None:
            (folder / "t.index.json").write_text(index)
        return judged(work, folder)
    names = [f"t-{i:05}-of-00003.safetensors" for i in (1, 2, 3)]
    twice = [pieces[0] | {"01.A1": pieces[1]["01.A1"]}, *pieces[1:]]
    tokens = [pieces[0], pieces[1] | {"tokens": ("I32", [5], bytes(20))}, pieces[2]]
    engine = [pieces[0], (pieces[1], metadata | {"engine": "another"}), pieces[2]]
    full = {t: names[i] for i, piece in enumerate(pieces) for t in piece if t not in SHARED or i == 0}
    cases = [("a part that lacks", [pieces[0], None, pieces[2]], None, names[1] + ": cannot open"),
             ("a tensor in two", twice, None, f"tensor 01.A1: it is in {work}/"),
             ("other tokens", tokens, None, "tensor tokens: expected what"),
             ("another engine", engine, None, 'metadata engine: expected "sinkproof'),
             ("an index without a tensor", pieces, json.dumps({"weight_map": {k: v for k, v in full.items() if k != "00.A1"}}),
              "tensor 00.A1: in a file, but not in the index"),
             ("an index with a tensor of another file", pieces, json.dumps({"weight_map": full | {"00.A1": names[1]}}),
              f"tensor 00.A1: expected in {names[1]}, found none"),
             ("an index with a path", pieces, json.dumps({"weight_map": full | {"00.A1": "../x"}}), "expected the name of a file in the same"),
             ("an index without a map", pieces, "{}", "expected a weight_map"), ("an index that is cut", pieces, '{"weight_map', "expected JSON")]
    for what, changed, index, sentence in cases:
        status, said = written(what, changed, index)
        report(status == 3 and sentence in said and len(said.splitlines()) == 1, f"trace-parts.refused {what}: exit {status}", [str(said)[:400]])


if __name__ == "__main__":
    sys.exit(checkpoints.run(one, refused))
