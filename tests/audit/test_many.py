# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Many traces and prompts in one command: files, directories and lists; one that is missing or malformed has its own
row and sentence, the others their results; every row says whose it is; the exit code is the gravest.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

TINY = "synthetic:tiny"
FAST = ("--policy", "f32", "--local", "--no-hint", "--no-diagnosis")


def traced(path, seed, policy="f32", points="T0,A13,M8,M6"):
    sinkproof("run", TINY, "--tokens", f"random:5,seed={seed}", "--policy", policy, "--points", points, "--trace", str(path))
    return path


def rows_of(path):
    return json.loads(path.read_text())["results"]


def traces(work):
    """A directory, a list, a file and what is missing, in one command."""
    folder = work / "folder"
    folder.mkdir()
    for seed in (1, 2):
        traced(folder / f"{seed}.safetensors", seed)
    (folder / "3.safetensors").write_bytes((folder / "1.safetensors").read_bytes()[:99])
    (folder / "notes.txt").write_text("no trace")
    bug, good = traced(work / "bug", 3, "f32,M8.alpha=bf16"), traced(work / "good", 4)
    names = work / "list.jsonl"
    names.write_text(f'{{"trace": "{bug}"}}\n\n  {good}  \n{{"file": 1}}\n{{"trace": \n', encoding="utf-8")
    expected = [(folder / "1.safetensors", 0), (folder / "2.safetensors", 0), (folder / "3.safetensors", 3), (bug, 1), (good, 0),
                (f"{names}:4", 3), (f"{names}:5", 3), (work / "none", 3)]
    words = [str(folder), str(names), str(work / "none")]
    status, said, wrong = sinkproof("judge", TINY, *words, *FAST, "--json", str(work / "j"), "--html", str(work / "h"))
    rows = rows_of(work / "j")
    found = [(r["trace"], r["exit"]) for r in rows if "exit" in r]
    report(status == 1 and found == [(str(p), e) for p, e in expected],
           f"many.traces exit={status} rows={len(found)}, of a directory, a list, a file", [str(found), said])
    report(all("trace" in r for r in rows) and len(rows) > 4 * len(found), f"many.traces each of {len(rows)} rows of the JSON names its trace", [])
    bad = [r for r in rows if r["id"] == "input"]
    report(len(bad) == 4 and all(f"sinkproof judge: {r['error']}" in wrong and r["error"] in said for r in bad),
           f"many.traces {len(bad)} of them have no result: a sentence each, on the standard error and in the table", [wrong])
    table = said[said.index("\nexit  trace: result"):].splitlines()
    report(all(any(line.startswith(f"{e:4}  {p}: ") for line in table) for p, e in expected) and
           table[-1] == "The gravest of them (1, then 3, 4, 0) is 1.", "many.traces the table has a line for each", table)
    page = (work / "h").read_text(encoding="utf-8")
    report(page.count("<h1") == 8 and page.count("No result: ") == 4 and all(f"<td>{p}</td>" in page for p, _ in expected)
           and page.count("<html") == 1, "many.traces the page has a part for each and a table of all", [])
    alone = sinkproof("judge", TINY, str(bug), *FAST)[1].rstrip("\n")
    report(alone in said and "gravest" not in alone, "many.traces each has the report that it has alone", [])
    status, said, _ = sinkproof("judge", TINY, f"@{names}", *FAST, "--json", "-")
    report(status == 1 and [r["trace"] for r in json.loads(said)["results"] if r["id"] == "judgement"] == [str(bug), str(good)],
           "many.traces @FILE is a list too, and --json - leaves the reports out", [said[:200]])


def gravest(work):
    """1, then 3, 4, 0."""
    good, bug = traced(work / "good", 4), traced(work / "bug", 3, "f32,M8.alpha=bf16")
    open_, none = traced(work / "open", 5, points="F2"), work / "none"
    for expected, paths in ((0, [good, good]), (4, [good, open_]), (3, [open_, none, good]), (1, [none, bug, open_])):
        status, said, _ = sinkproof("judge", TINY, *map(str, paths), *FAST)
        report(status == expected, f"many.gravest {[p.name for p in paths]}: exit {status}", [said])


def refused(work):
    """What names no trace."""
    (work / "empty").mkdir()
    (work / "blank.jsonl").write_text("\n \n")
    (work / "zero.jsonl").write_bytes(b"a\0b\n")
    for word, sentence in (("empty", "expected a .safetensors file in this directory, found none"),
                           ("blank.jsonl", "expected a line or more, found none"),
                           ("zero.jsonl", "expected lines of text, found a zero byte"), ("no.jsonl", "cannot open")):
        status, _, wrong = sinkproof("judge", TINY, str(work / word), *FAST, "--json", str(work / "j"))
        report(status == 3 and sentence in wrong and len(wrong.splitlines()) == 1 and not (work / "j").exists(),
               f"many.refused {word}: exit {status}, a sentence", [wrong])
    status, _, wrong = sinkproof("judge", TINY, "tests/vectors/openai-torch/small", *FAST)
    report(status == 3 and "MODEL comes first" in wrong, "many.refused a directory with a model is no directory of traces", [wrong])


def prompts(work):
    """truth and audit over a list, a directory and a file."""
    names, folder = work / "p.jsonl", work / "ids"
    folder.mkdir()
    (folder / "a").write_text("1 2 3\n")
    (folder / "b").write_text("none\n")
    names.write_text('{"tokens": [4, 5], "name": "two"}\n{"tokens": [4, 99999]}\n{"tokens": [1.5]}\n{"text": "t", "tokens": [1]}\n[1]\n'
                     '{"text": "t"}\n', encoding="utf-8")
    expected = [("two", 0), *((f"{names}:{line}", 3) for line in range(2, 7)), (str(folder / "a"), 0), (str(folder / "b"), 3)]
    for command, words in (("truth", ()), ("audit", ("--no-budget", "--policy", "f32", "--html", str(work / "h")))):
        status, said, wrong = sinkproof(command, TINY, "--prompts", str(names), "--prompts", str(folder), *words, "--json", str(work / "j"))
        rows = rows_of(work / "j")
        heads = [(r["prompt"], r["exit"]) for r in rows if r["id"] == "input"]
        report(status == 3 and heads == expected and all("prompt" in r for r in rows),
               f"many.prompts {command}: {len(heads)} prompts, {len(rows)} rows, each with its prompt", [str(heads), wrong])
        report(all(f"sinkproof {command}: {name}" in wrong for name, code in expected if code) and len(wrong.splitlines()) == 6 and
               all(f"{code:4}  {name}" in said for name, code in expected), f"many.prompts {command}: every sentence names its prompt", [wrong])
        status, _, _ = sinkproof(command, TINY, "--tokens", "4,5", *words[:3], "--json", str(work / "one"))
        lone = rows_of(work / "one")
        same = [{k: v for k, v in r.items() if k != "prompt"} for r in rows if r["prompt"] == "two"][1:]
        report(status == 0 and lone == same, f"many.prompts {command}: the rows of a prompt are those of it alone", [])
    report((work / "h").read_text(encoding="utf-8").count("<h1") == 8, "many.prompts the page has a part for each", [])
    for command in ("truth", "audit"):
        status, _, _ = sinkproof(command, TINY, "--prompts", str(names), "--tokens", "1")
        report(status == 2, f"many.prompts {command}: either --tokens or --prompts", [])


if __name__ == "__main__":
    sys.exit(checkpoints.run(traces, gravest, refused, prompts))
