# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes planted in complete engines: what was found of each, kept in doc/engines/planted/NAME.json.

A row says of one mistake under one policy how many elements of the trace it changed, where the judge
convicted it, and what the diagnosis called it:

    exactly     one explanation, and it is the mistake that was planted
    among equals   of several that this trace cannot tell apart, it is one
    described   nothing known explains it; the pattern is described instead
    otherwise   other mistakes explain it here, and not the one that was planted

"first" is where it is convicted, or suspected first: no element outside, and more lean than chance has.
A row with verdict "within" or "exact" is a mistake that no bound shows in this trace: every element lies in its
honest set.
"""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMAT = "sinkproof-planted-1"
SEEN = ("exactly", "among equals")
# What a run that is made again must say as the file does; the other numbers depend on the processor.
HELD = ("verdict", "first", "named")


def place(engine):
    return ROOT / f"doc/engines/planted/{engine}.json"


def kept(engine):
    told = json.loads(place(engine).read_text(encoding="utf-8"))
    if told["format"] != FORMAT:
        raise ValueError(f'{place(engine)}: format "{told["format"]}", expected "{FORMAT}"')
    return told


def explanations(finding):
    """Each as a set of mistakes of the catalogue; [] where it is unknown."""
    first = finding.get("mistakes")
    return [frozenset(first), *map(frozenset, finding["indistinguishable"])] if first else []


def naming(diagnosis, first, names):
    """(how the mistake is named, how many explanations are alike, the next best, bounds away, the pattern)

    `names` has for each mistake that was planted what the catalogue may call it. Several at different points are found
    one by one, so each is looked for in all that was found; of one, what is said of the first point outside.
    """
    found = [f for f in diagnosis if first in f["points"]] if len(names) == 1 else diagnosis
    at_first = next((f for f in diagnosis if first in f["points"]), {})
    said = explanations(at_first)
    ids = {id for f in found for explanation in explanations(f) for id in explanation}
    if not said:
        how = "described" if at_first.get("pattern") else "otherwise"
    elif names and all(ids & set(each) for each in names):
        how = "exactly" if len(said) == 1 else "among equals"
    else:
        how = "otherwise"
    return {"named": how, "as": " or ".join("+".join(sorted(e)) for e in said), "alike": len(said),
            "next": "+".join(at_first.get("next") or []), "bounds": at_first.get("next_bounds"),
            "pattern": at_first.get("pattern")}


def row(name, policy, results, names, changed, **more):
    """What was found of one trace, from `sinkproof judge --json`. A mistake that is convicted has what names it."""
    whole, *points = results
    outside = [p for p in points if p["verdict"] == "bug"]
    first = {"bug": whole.get("first_divergence"), "suspicious": whole.get("first_suspicion")}.get(whole["verdict"])
    found = {"mistake": name, "policy": policy, **more, "changed": changed, "verdict": whole["verdict"], "first": first,
             "points": len(outside), "ulp": max((p.get("excess_ulp") or 0 for p in outside), default=0)}
    asked = whole["verdict"] == "bug" and whole.get("diagnosis")
    return {**found, **(naming(whole["diagnosis"], first, names) if asked else {"named": None})}


def differing(honest, wrong):
    """How many elements of all points are other bits than those of the honest run."""
    return sum(int((a.view("u1") != b.view("u1")).reshape(a.size, -1).any(axis=1).sum()) for name in wrong
               if name in honest for a, b in [(honest[name], wrong[name])] if a.shape == b.shape)


def is_right(found, points):
    """Convicted or suspected at one of its points first, or inside its honest sets at every one."""
    if found["verdict"] in ("bug", "suspicious"):
        return re.sub(r"^\d+\.", "", found["first"]) in points
    return found["verdict"] in ("within", "exact")


def differences(engine, rows):
    """What a reader of the file would be told wrongly of these rows."""
    told = {(r["mistake"], r["policy"]): r for r in kept(engine)["rows"]}
    wrong = []
    for found in rows:
        said = told.get((found["mistake"], found["policy"]), {})
        wrong += [f"{found['mistake']} {found['policy']} {key}: the file says {said.get(key)}, found {found.get(key)}"
                  for key in HELD if said.get(key) != found.get(key)]
    return wrong


def write(engine, title, version, rows, **more):
    told = {"format": FORMAT, "engine": title, "version": version, **more}
    body = ",\n".join(" " + json.dumps(r, ensure_ascii=False) for r in rows)
    place(engine).parent.mkdir(exist_ok=True)
    place(engine).write_text(json.dumps(told, ensure_ascii=False)[:-1] + f', "rows": [\n{body}\n]}}\n', encoding="utf-8")
