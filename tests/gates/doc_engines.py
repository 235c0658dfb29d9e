# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The tables of the chapter on engines, from what is kept of their runs in doc/engines; for doc_pages.py.

`<!-- engines NAME -->` shows doc/engines/NAME.json, a row for each run, `<!-- engines all -->` a row for
each engine. tests/audit/engines.py makes the runs, keeps them and asks them again.
"""
import json
import re

MARKER = re.compile(r"^<!-- engines ([a-z0-9_]+) -->$")
SAID = {"holds": "holds", "bug": "a bug", "suspicious": "suspicious", "refused": "refused"}


def kept(root):
    """{name: what doc/engines/NAME.json says}, of the files that hold runs."""
    files = sorted((root / "doc/engines").glob("*.json"))
    told = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}
    told = {name: each for name, each in told.items() if each.get("format") == "sinkproof-engines-1"}
    for each in told.values():
        each["runs"] = [run for run in each["runs"] if "exit" in run]  # the others were not run yet
    return told


def cell(text):
    return text.replace("|", "\\|") or "—"


def code(text):
    """In backticks, in which a table's bar must be told from its columns."""
    return f"`{text}`".replace("|", "\\|") if text else "—"


def what(run):
    """The points outside with their counts, or what the engine or its adapter said."""
    if run.get("said"):
        said = run["said"].replace("sinkproof-trace: ", "", 1).replace("model: ", "", 1)
        return cell(said if len(said) < 130 else said[:130].rsplit(" ", 1)[0] + " …")
    parts = [f"`{point}` {outside:,} of {elements:,}" for point, (outside, elements) in run["outside"].items()]
    parts += [f"`{point}` suspicious" for point in run["suspicious"]]
    return ", ".join(parts) or "—"


def cleared(run):
    """What clears it, each with the exit it was seen to give."""
    parts = [f"{code(run['override'])}{' on the model as it computes it' if run.get('as') else ''}: "
             f"exit {run['override_exit']}"] if run.get("override") else []
    if run.get("instead"):
        options = " ".join(word for word in run["instead"] if "{model}" not in word and word not in ("--ir", "--graph"))
        parts.append(f"options {code(options)}: exit {run['instead_exit']}")
    return "; ".join(parts) or "—"


def shown_model(run):
    edits = " ".join(re.sub(r"=\{.*\}", "=…", word) for word in run.get("edit", []))
    if run.get("dense"):
        edits = f"--dense {run['dense']}{' --dequantize' if run.get('dequantize') else ''}"
    return code(run["model"].replace("synthetic:", "").replace("doc/engines/", "").replace(".json", "")) + (
        f", {code(edits)}" if edits else "")


def rows_of(told):
    rows = ["", "| run | model, tokens, options | policy | verdict: where | cause | cleared by |",
            "|---|---|---|---|---|---|"]
    for run in told["runs"]:
        options = " ".join(word for word in run["options"] if "{model}" not in word and word not in ("--ir", "--graph"))
        how = ", ".join(part for part in (shown_model(run), code(run["tokens"]), code(options)) if part != "—")
        verdict = f"**{SAID[run['verdict']]}** ({run['exit']}): {what(run)}".replace(": —", "")
        rows.append(f"| {run['name']} | {how} | {code(run['policy'])} | {verdict} | {cell(run['cause'])} | "
                    f"{cleared(run)} |")
    return rows


def clears(run):
    return run.get("override_exit") == 0 or run.get("instead_exit") == 0


def summary(all_told):
    rows = ["", "| engine | version | runs | hold | a bug | of these cleared | suspicious | refused |",
            "|---|---|---|---|---|---|---|---|"]
    sums = [0] * 6
    for told in all_told.values():
        runs = told["runs"]
        version = max((run.get("version", "") for run in runs), key=len)
        counts = [len(runs), *(sum(run["verdict"] == verdict for run in runs) for verdict in ("holds", "bug")),
                  sum(run["verdict"] == "bug" and clears(run) for run in runs),
                  *(sum(run["verdict"] == verdict for run in runs) for verdict in ("suspicious", "refused"))]
        sums = [a + b for a, b in zip(sums, counts)]
        rows.append(f"| {told['engine']} | {version} | " + " | ".join(map(str, counts)) + " |")
    return [*rows, f"| {len(all_told)} engines | | " + " | ".join(map(str, sums)) + " |"]


def table(root, name):
    """The lines below a marker, or None when there is nothing kept under that name."""
    told = kept(root)
    if name == "all":
        return summary(told) if told else None
    return rows_of(told[name]) if name in told else None
