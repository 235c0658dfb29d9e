# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Other people's engines, judged again as doc/engines/NAME.json says; what interop_NAME.py share.

    python3 tests/audit/engines.py NAME [RUN...]            run them and print what differs from the file
    python3 tests/audit/engines.py --write NAME [RUN...]    run them and keep what was found in the file

A file holds an engine's configurations (what was run: options, model, tokens, policy, cause, override)
and what the judge said of each (exit, points outside). A run that is asked for again must say the same:
the same exit, the same points convicted; and under the override that names the cause, exit 0. Counts of
elements depend on the processor and are kept for the reader. The engine runs in build/engines/NAME; one
that is not installed there is skipped.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shared"))
from tap import Tap  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF", "build/release/sinkproof")
FORMAT = "sinkproof-engines-1"
VERDICTS = {0: "holds", 1: "bug", 3: "refused", 4: "suspicious"}


def kept(name):
    """What doc/engines/NAME.json says."""
    told = json.loads((ROOT / f"doc/engines/{name}.json").read_text(encoding="utf-8"))
    if told["format"] != FORMAT:
        raise ValueError(f'doc/engines/{name}.json: format "{told["format"]}", expected "{FORMAT}"')
    return told


def python_of(name):
    """The interpreter of the engine's environment, or None where it is not installed."""
    place = ROOT / "build/engines" / name
    return f"build/engines/{name}/bin/python" if (place / ".stamp").is_file() else None


def command(words, **more):
    env = {**os.environ, "PYTHONPATH": "audit/python", **more}
    return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                          check=False)


def synth_words(run, directory):
    return [SINKPROOF, "synth", run["model"], "--out", directory, "--layout", run.get("layout", "hf"),
            *(["--dequantize"] if run.get("dequantize") else [])]


def trace_words(told, run, directory, out):
    return [python_of(told["name"]) or "python", "-m", "sinkproof.trace", told["name"].replace("_", "-"), directory,
            "--tokens", run["tokens"], "--out", out, *run["options"]]


def judge_words(directory, trace, policy):
    return [SINKPROOF, "judge", directory, trace, "--policy", policy, "--local"]


def shown(told, run):
    """The three commands that reproduce a run, as a reader types them."""
    trace = trace_words(told, run, "model", "trace.safetensors")
    trace[0] = f"PYTHONPATH=audit/python build/engines/{told['name']}/bin/python"
    words = [synth_words(run, "model"), trace, judge_words("model", "trace.safetensors", run["policy"])]
    env = "".join(f"{key}={value} " for key, value in run.get("environment", {}).items())
    lines = [" ".join(line).replace(SINKPROOF, "build/release/sinkproof") for line in words]
    return [lines[0], env + lines[1], lines[2]]


def points_of(report):
    """{"A4.q": [outside, elements]} over all layers, of the points that have an element outside."""
    counts = {}
    for result in report.get("results", [])[1:]:
        point = re.sub(r"^\d+\.", "", result["id"])
        if isinstance(result.get("elements"), int):
            outside, elements = counts.get(point, (0, 0))
            counts[point] = (outside + result["outside"], elements + result["elements"])
    return {point: list(count) for point, count in counts.items() if count[0]}


def doubted(report):
    """The points that are suspicious, in the order of the report, each once."""
    names = (re.sub(r"^\d+\.", "", r["id"]) for r in report.get("results", [])[1:] if r.get("verdict") == "suspicious")
    return list(dict.fromkeys(names))


def judged(directory, trace, policy):
    """(exit, report) of one judgement."""
    process = command([*judge_words(directory, trace, policy), "--no-hint", "--json", "-"])
    try:
        return process.returncode, json.loads(process.stdout)
    except ValueError:
        return process.returncode, {"said": process.stderr.strip()}


def version(trace):
    """What the head of a trace says of the engine and of what runs below it: "0.32.2, mlx 0.32.4"."""
    with open(trace, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(size)).get("__metadata__", {})
    below = [f"{key} {value}" for key, value in sorted(head.items())
             if key not in ("version", "format") and re.fullmatch(r"\d+(\.\w+)+(\+\w+)?", value)]
    return ", ".join([head.get("version", ""), *below])


def observe(told, run, work, directories):
    """What the engine and the judge say now, in the words of the file."""
    key = " ".join(synth_words(run, ""))
    if key not in directories:
        directory = os.path.join(work, f"model-{len(directories)}")
        made = command(synth_words(run, directory))
        if made.returncode:
            return {"exit": made.returncode, "said": made.stderr.strip()}
        directories[key] = directory
    directory, trace = directories[key], os.path.join(work, "trace.safetensors")
    ran = command(trace_words(told, run, directory, trace), **run.get("environment", {}))
    if ran.returncode:
        return {"exit": 3, "said": (ran.stderr.strip().splitlines() or ["(nothing said)"])[-1].replace(directory, "model")}
    code, report = judged(directory, trace, run["policy"])
    found = {"version": version(trace), "exit": code, "verdict": VERDICTS.get(code, "?"),
             "outside": points_of(report), "suspicious": doubted(report)}
    first = next((r.get("first_divergence") for r in report.get("results", [])[:1]), None)
    found["first"] = first
    if run.get("override"):
        found["override_exit"] = judged(directory, trace, run["override"])[0]
    os.unlink(trace)
    return found


def differences(run, found):
    """What a reader of the file would be told wrongly; [] when it is so."""
    wrong = [f"{key}: the file says {run.get(key)}, found {found.get(key)}"
             for key in ("exit", "said", "first", "override_exit") if run.get(key) != found.get(key)]
    if sorted(run.get("outside", {})) != sorted(found.get("outside", {})):
        wrong.append(f"outside: the file says {run.get('outside')}, found {found.get('outside')}")
    if run["exit"] == 1 and run.get("override") and found.get("override_exit") != 0:
        wrong.append(f"{run['override']} does not clear it: exit {found.get('override_exit')}")
    return wrong


def missing(run):
    """The instruction sets that a run is about and that this processor lacks."""
    cpu = pathlib.Path("/proc/cpuinfo")
    words = set(re.findall(r"\w+", cpu.read_text())) if cpu.is_file() else set()
    return [name for name in run.get("needs", []) if name not in words]


def interop(name, more=None, only=()):
    """One test for each run of the file, then `more(tap, python, work)`; the exit status."""
    tap, told = Tap(), kept(name)
    if python_of(name) is None:
        tap.skip(f"{told['engine']}", f"not installed in build/engines/{name}")
        return tap.done()
    with tempfile.TemporaryDirectory() as work:
        directories = {}
        for run in told["runs"]:
            if only and run["name"] not in only:
                continue
            text = f"{told['engine']} {run['name']} --policy {run['policy']}: exit {run['exit']}"
            text += f", {run['override']}: exit {run['override_exit']}" if run.get("override") else ""
            if missing(run):
                tap.skip(text, f"this processor has no {' '.join(missing(run))}")
                continue
            tap.report(not (wrong := differences(run, observe(told, run, work, directories))), text, wrong)
        if more and not only:
            more(tap, python_of(name), work)
    return tap.done()


def write(name, only):
    """Runs what the file asks and keeps what was found."""
    told = kept(name)
    with tempfile.TemporaryDirectory() as work:
        directories = {}
        for run in told["runs"]:
            if (only and run["name"] not in only) or missing(run):
                continue
            found = observe(told, run, work, directories)
            for key in ("version", "exit", "verdict", "said", "outside", "suspicious", "first", "override_exit", "command"):
                run.pop(key, None)
            run.update(found, command=shown(told, run))
            print(f"{name} {run['name']}:", json.dumps(found), flush=True)
    text = json.dumps(told, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\n\s+(\d+),\n\s+(\d+)\n\s+\]", r"[\1, \2]", text)  # a count of elements on one line
    (ROOT / f"doc/engines/{name}.json").write_text(text + "\n", encoding="utf-8")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--write", action="store_true", help="keep what was found")
    options.add_argument("engine")
    options.add_argument("run", nargs="*")
    asked = options.parse_args()
    if asked.write:
        return write(asked.engine, asked.run)
    return interop(asked.engine, only=asked.run)


if __name__ == "__main__":
    sys.exit(main())
