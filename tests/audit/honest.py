# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Honest runs of engines, each judged under a policy that says what the engine does: doc/engines/honest/NAME.json.

A run is kept with its words (all that it was drawn as), so that no two are the same, and with what the judge called
it. An alarm is a run called a bug or suspicious, or refused.
"""
import json
import pathlib

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
