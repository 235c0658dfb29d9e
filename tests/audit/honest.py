# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Honest runs of engines, each judged under a policy that says what the engine does: doc/engines/honest/NAME.json.

A run is kept with its words (all that it was drawn as), so that no two are the same, and with what the judge called
it. An alarm is a run called a bug or suspicious, or refused.
"""
import json
import os
import pathlib
import random
import sys
import tempfile

import engines

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMAT = "sinkproof-honest-1"
ALARMS = ("bug", "suspicious", "refused")


def place(engine):
    return ROOT / f"doc/engines/honest/{engine}.json"


def write(engine, title, version, command, runs):
    """`runs`: {"run": its words, "policy": …, "verdict": …} each, and "engine" where a file holds several."""
    words = [(r.get("engine"), r["run"], r["policy"]) for r in runs]
    if len(set(words)) != len(words):
        raise ValueError(f"{engine}: {len(words) - len(set(words))} runs are others again")
    told = {"format": FORMAT, "engine": title, "version": version, "command": command}
    body = ",\n".join(" " + json.dumps(r, ensure_ascii=False) for r in runs)
    place(engine).parent.mkdir(parents=True, exist_ok=True)
    place(engine).write_text(json.dumps(told, ensure_ascii=False)[:-1] + f', "runs": [\n{body}\n]}}\n', encoding="utf-8")


def drawn(told, draw):
    """One of the file's runs that the judge clears, with another prompt and other weights; under the policy that clears it."""
    fits = [(run, run["policy"] if run["exit"] == 0 else run["override"]) for run in told["runs"] if not run.get("as")
            and not run.get("edit") and "exit" in run and 0 in (run["exit"], run.get("override_exit"))]
    run, policy = draw.choice(fits)
    tokens = f"random:{draw.choice((2, 7, 8, 9, 16, 17, 31, 32, 33, 40))},seed={draw.randrange(10000)}"
    return {**run, "tokens": tokens, "model": f"{run['model']},seed={draw.randrange(2)}"}, policy


def outcome(told, run, policy, work, directories):
    directory, trace = engines.checkpoint(run, work, directories), f"{work}/trace.safetensors"
    ran = engines.command(engines.trace_words(told, run, directory, trace, run["options"]), **run.get("environment", {}))
    code, report = (3, {}) if ran.returncode else engines.judged(directory, trace, policy)
    said = report["results"][0]["verdict"] if report.get("results") else "refused"
    print(f"{'# ' if said in ALARMS else ''}{run['name']} {run['model']} {run['tokens']} {policy}: {said} {ran.stderr[-300:]}", flush=True)
    words = " ".join([run["name"], run["model"], "--tokens", run["tokens"], *run["options"]])
    return {"run": words, "policy": policy, "verdict": said}, engines.version(trace) if not ran.returncode else ""


def main():
    """RUNS=12 SEED=1 python3 tests/audit/honest.py NAME: runs of an engine that doc/engines/NAME.json tells of, kept."""
    name, runs, seed = sys.argv[1], int(os.environ.get("RUNS", "12")), int(os.environ.get("SEED", "1"))
    told, draw, found, directories = engines.kept(name), random.Random(seed), {}, {}
    with tempfile.TemporaryDirectory() as work:
        while len(found) < runs:
            run, policy = drawn(told, draw)
            row, version = outcome(told, run, policy, work, directories)
            found[row["run"], policy] = row
            write(name, told["engine"], version, f"RUNS={len(found)} SEED={seed} python3 tests/audit/honest.py {name}",
                  list(found.values()))


if __name__ == "__main__":
    main()
