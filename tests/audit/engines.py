# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Other people's engines, judged again as doc/engines/NAME.json says; what interop_NAME.py share.

    python3 tests/audit/engines.py NAME [RUN...]            run them and print what differs from the file
    python3 tests/audit/engines.py --write NAME [RUN...]    run them and keep what was found in the file
    python3 tests/audit/engines.py --alter DIR sliding_window=9 sinks=-inf q_proj.weight=*16    change a checkpoint

A file holds an engine's configurations (what was run: options, model, tokens, policy, cause, override)
and what the judge said of each (exit, points outside). A run that is asked for again must say the same:
the same exit, the same points convicted; and under the override that names the cause, exit 0. Counts of
elements depend on the processor and are kept for the reader. "edit" changes the checkpoint before anybody
reads it; "as" makes the model that the engine did compute, which clears it where no policy can; "instead"
are the engine's own options that do. The engine runs in build/engines/NAME; one
that is not installed there is skipped. FEW=1 asks the runs that are "few" alone, what a landing can wait for.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shared"))
from tap import Tap  # noqa: E402

SINKPROOF = os.environ.get("SINKPROOF", "build/release/sinkproof")
FORMAT = "sinkproof-engines-1"
HANGS = 900  # seconds of one command; the longest takes one minute of a processor, which may be shared by ten
FEW = os.environ.get("FEW") == "1"
VERDICTS = {0: "holds", 1: "bug", 3: "refused", 4: "suspicious"}


@contextlib.contextmanager
def changed(owner, name, value):
    """An attribute has another value for the time of a block: how a mistake is planted in an engine of Python."""
    right = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, right)


def kept(name):
    """What doc/engines/NAME.json says."""
    told = json.loads((ROOT / f"doc/engines/{name}.json").read_text(encoding="utf-8"))
    if told["format"] != FORMAT:
        raise ValueError(f'doc/engines/{name}.json: format "{told["format"]}", expected "{FORMAT}"')
    return told


def home(name):
    """The engine's environment; transformers has the one of `make interop-hf`."""
    return "build/venv" if name == "transformers" else f"build/engines/{name}"


def python_of(name):
    """The interpreter of the engine's environment, or None where it is not installed."""
    return f"{home(name)}/bin/python" if (ROOT / home(name) / ".stamp").is_file() else None


def command(words, **more):
    env = {"OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": "audit/python", **more}
    try:
        return subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                              check=False, timeout=HANGS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"{words[0]}: stopped after {HANGS} s")


def synth_words(run, directory):
    return [SINKPROOF, "synth", run["model"], "--out", directory, "--layout", run.get("layout", "hf"),
            *(["--dequantize"] if run.get("dequantize") else []),
            *(["--dense", run["dense"]] if run.get("dense") else [])]


def place_of(run, name):
    """A checkpoint is a directory, of GGUF one file."""
    return name + (".gguf" if run.get("layout") == "gguf" else "")


def trace_words(told, run, directory, out, options):
    return [python_of(told["name"]) or "python", "-m", "sinkproof.trace", told["name"].replace("_", "-"), directory,
            "--tokens", run["tokens"], "--out", out, *(word.replace("{model}", directory) for word in options)]


def alter(directory, words):
    """Changes a checkpoint of one file: KEY=JSON in its configuration (null removes it), sinks=-inf, and
    PART=*N for each bfloat16 tensor whose name ends so, N a power of two."""
    folder = pathlib.Path(directory)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    data = bytearray((folder / "model.safetensors").read_bytes())
    size = int.from_bytes(data[:8], "little")
    for word in words:
        key, value = word.split("=", 1)
        if not value.startswith("*") and key != "sinks":
            config = {name: told for name, told in {**config, key: json.loads(value)}.items() if told is not None}
            continue
        for name, tensor in json.loads(data[8:8 + size]).items():
            if name == "__metadata__" or not name.endswith(key):
                continue
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            numbers = memoryview(data)[begin:end].cast("H")
            for i, number in enumerate(numbers):
                exponent = (number >> 7 & 255) + (int(value[1:]).bit_length() - 1 if key != "sinks" else 0)
                numbers[i] = 0xFF80 if key == "sinks" else number & 0x807F | (exponent << 7 if number & 0x7F80 else 0)
            numbers.release()
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(data)


def judge_words(directory, trace, policy, other=False):
    """`other`: the directory was altered after the run, and is another model than the trace names."""
    return [SINKPROOF, "judge", directory, trace, "--policy", policy, "--local", *["--any-model"] * other]


def shown(told, run):
    """The commands that reproduce a run, as a reader types them."""
    def alter_line(directory, key):
        words = [f"'{word}'" for word in run.get(key, [])]
        return [["python3", "tests/audit/engines.py", "--alter", directory, *words]] if words else []

    model = place_of(run, "model")
    trace = trace_words(told, run, model, "trace.safetensors", run["options"])
    trace[0] = f"PYTHONPATH=audit/python {home(told['name'])}/bin/python"
    trace[:0] = [f"{key}={value}" for key, value in run.get("environment", {}).items()]
    words = [synth_words(run, model), *alter_line(model, "edit"), trace,
             judge_words(model, "trace.safetensors", f"'{run['policy']}'")]
    if run.get("as"):
        words += [["cp -r", model, "computed"], *alter_line("computed", "as")]
    if run.get("override"):
        words.append(judge_words("computed" if run.get("as") else model, "trace.safetensors", f"'{run['override']}'",
                                 bool(run.get("as"))))
    return [" ".join(line).replace(SINKPROOF, "build/release/sinkproof") for line in words]


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


def judged(directory, trace, policy, other=False):
    """(exit, report) of one judgement."""
    process = command([*judge_words(directory, trace, policy, other), "--no-hint", "--no-diagnosis", "--json", "-"])
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


def checkpoint(run, work, directories):
    """The directory of a run's model, made once; ValueError with the sentence of what could not make it."""
    key = json.dumps([synth_words(run, ""), run.get("edit")])
    if key not in directories:
        directory = place_of(run, os.path.join(work, f"model-{len(directories)}"))
        made = command(synth_words(run, directory))
        if made.returncode:
            raise ValueError(made.stderr.strip())
        if run.get("edit"):
            alter(directory, run["edit"])
        directories[key] = directory
    return directories[key]


def clearing(told, run, directory, trace, work):
    """The exit under the override, and that of the engine under the options that clear it."""
    found, computed = {}, directory
    if run.get("as"):
        computed = os.path.join(work, "computed")
        shutil.rmtree(computed, ignore_errors=True)
        shutil.copytree(directory, computed)
        alter(computed, run["as"])
    if run.get("override"):
        found["override_exit"] = judged(computed, trace, run["override"], computed != directory)[0]
    if run.get("instead"):
        ran = command(trace_words(told, run, directory, trace, run["instead"]), **run.get("environment", {}))
        found["instead_exit"] = ran.returncode or judged(directory, trace, run["policy"])[0]
    return found


def observe(told, run, work, directories):
    """What the engine and the judge say now, in the words of the file."""
    directory, trace = checkpoint(run, work, directories), os.path.join(work, "trace.safetensors")
    ran = command(trace_words(told, run, directory, trace, run["options"]), **run.get("environment", {}))
    if ran.returncode:
        said = (ran.stderr.strip().splitlines() or ["(nothing said)"])[-1].replace(directory, "model")
        return {"exit": 3, "verdict": VERDICTS[3], "said": re.sub(r"/\S*/", "…/", said)}
    code, report = judged(directory, trace, run["policy"])
    first = next((r.get("first_divergence") for r in report.get("results", [])[:1]), None)
    return {"version": version(trace), "exit": code, "verdict": VERDICTS.get(code, "?"), "outside": points_of(report),
            "suspicious": doubted(report), "first": first, **clearing(told, run, directory, trace, work)}


def differences(run, found):
    """What a reader of the file would be told wrongly; [] when it is so."""
    wrong = [f"{key}: the file says {run.get(key)}, found {found.get(key)}"
             for key in ("exit", "said", "first", "override_exit", "instead_exit") if run.get(key) != found.get(key)]
    if sorted(run.get("outside", {})) != sorted(found.get("outside", {})):
        wrong.append(f"outside: the file says {run.get('outside')}, found {found.get('outside')}")
    wrong += [f"{run[key]} does not clear it: exit {found.get(key + '_exit')}" for key in ("override", "instead")
              if run.get(key) and found.get(key + "_exit") != 0]
    return wrong


def missing(run):
    """The instruction sets that a run is about and that this processor lacks."""
    cpu = pathlib.Path("/proc/cpuinfo")
    words = set(re.findall(r"\w+", cpu.read_text())) if cpu.is_file() else set()
    return [name for name in run.get("needs", []) if name not in words]


BOOK = "doc/20-engines-judged.md"
REPRODUCER = re.compile(r"^<!-- reproducer (\w+) ([\w-]+) -->\n```python\n(.*?)^```\n\n```text\n(.*?)^```$",
                        re.MULTILINE | re.DOTALL)


def reproducers(name, tap, work):
    """The chapter's small programs about an engine: each prints what the book says, to the letter."""
    for engine, title, program, prints in REPRODUCER.findall((ROOT / BOOK).read_text(encoding="utf-8")):
        if engine == name:
            ran = subprocess.run([str(ROOT / python_of(name)), "-W", "ignore", "-c", program], capture_output=True,
                                 text=True, cwd=work, stdin=subprocess.DEVNULL, check=False)
            tap.report(ran.stdout == prints, f"{name} {title}: the reproducer prints what {BOOK} shows",
                       [*ran.stdout.splitlines(), *ran.stderr.splitlines()[-3:]])


def refusal(name, tap, work):
    """What is not there is one sentence and exit 3, with no file left behind."""
    out = os.path.join(work, "refused.safetensors")
    run = {"tokens": "1,2,3", "options": []}
    ran = command(trace_words({"name": name}, run, os.path.join(work, "absent"), out, []))
    tap.report(ran.returncode == 3 and len(ran.stderr.strip().splitlines()) == 1 and not os.path.exists(out),
               f"{name}: a model that is not there is refused in one sentence", ran.stderr.splitlines()[-3:])


def interop(name, more=None, only=()):
    """One test for each run of the file, then `more(tap, python, work)`; the exit status."""
    tap, told = Tap(), kept(name)
    if python_of(name) is None:
        tap.skip(f"{told['engine']}", f"not installed in {home(name)}")
        return tap.done()
    with tempfile.TemporaryDirectory() as work:
        directories = {}
        for run in told["runs"]:
            if run["name"] not in only if only else FEW and not run.get("few"):
                continue
            text = f"{told['engine']} {run['name']} --policy {run['policy']}: exit {run['exit']}"
            text += f", {run['override']}: exit {run.get('override_exit')}" if run.get("override") else ""
            text += f", {' '.join(run['instead'])}: exit {run.get('instead_exit')}" if run.get("instead") else ""
            if missing(run):
                tap.skip(text, f"this processor has no {' '.join(missing(run))}")
                continue
            tap.report(not (wrong := differences(run, observe(told, run, work, directories))), text, wrong)
        if not only:
            refusal(name, tap, work)
            if more:
                more(tap, python_of(name), work)
            reproducers(name, tap, work)
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
            for key in ("version", "exit", "verdict", "said", "outside", "suspicious", "first", "override_exit",
                        "instead_exit", "command"):
                run.pop(key, None)
            run.update(found, command=shown(told, run))
            print(f"{name} {run['name']}:", json.dumps(found), flush=True)
    text = json.dumps(told, indent=1, ensure_ascii=False)
    text = re.sub(r"\[\n\s+(\d+),\n\s+(\d+)\n\s+\]", r"[\1, \2]", text)  # a count of elements on one line
    (ROOT / f"doc/engines/{name}.json").write_text(text + "\n", encoding="utf-8")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--write", action="store_true", help="keep what was found")
    options.add_argument("--alter", action="store_true", help="ENGINE is a checkpoint, RUN are changes to it")
    options.add_argument("engine")
    options.add_argument("run", nargs="*")
    asked = options.parse_args()
    if asked.alter:
        return alter(asked.engine, asked.run)
    if asked.write:
        return write(asked.engine, asked.run)
    return interop(asked.engine, only=asked.run)


if __name__ == "__main__":
    sys.exit(main())
