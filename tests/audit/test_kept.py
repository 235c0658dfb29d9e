# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Results kept in a directory: a second run takes what fits; shards, merged, are one run to the bit; what lacks, is
there twice or was made otherwise is refused; files from strangers; ranks by the variables that MPI and Slurm set.
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import PROGRAM, report, sinkproof  # noqa: E402

TINY = "synthetic:tiny"
FAST = ("--policy", "f32", "--no-hint", "--no-diagnosis")
RANKS = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
         "SLURM_NTASKS", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"}
ALONE = {k: v for k, v in os.environ.items() if k not in RANKS} | {"OMP_NUM_THREADS": "1"}


def traced(path, seed, policy="f32", tokens=5, points="T0,A13,M3,M12,M6,M8"):
    sinkproof("run", TINY, "--tokens", f"random:{tokens},seed={seed}", "--policy", policy, "--points", points, "--trace", str(path))
    return str(path)


def ran(*words, cwd=None, **variables):
    done = subprocess.run([os.path.abspath(PROGRAM), *words], capture_output=True, text=True, cwd=cwd, env=ALONE | variables, check=False)
    return done.returncode, done.stdout, done.stderr


def written(work, name, *words, **variables):
    """(exit, the bytes of text, JSON and page) of a command that writes all three."""
    files = [work / f"{name}.{kind}" for kind in ("json", "html")]
    status, said, wrong = ran(*words, "--json", str(files[0]), "--html", str(files[1]), **variables)
    return status, [said.encode(), *(f.read_bytes() if f.exists() else b"" for f in files)], wrong


def four(work):
    """Honest ones, a bug, one that is missing."""
    return [traced(work / "a", 1), traced(work / "b", 2, "f32,M8.alpha=bf16"), str(work / "none"), traced(work / "c", 3), traced(work / "d", 4)]


def shards(work):
    """Three shards, of traces and of layers, in any order: merged they are what one run writes."""
    traces = four(work)
    for what, words in (("traces", ()), ("layers", ("--layers-apart", "3"))):
        one, many = work / f"{what}-one", work / f"{what}-many"
        expected = written(work, f"{what}-1", "judge", TINY, *traces, *FAST, *words)
        codes = [ran("judge", TINY, *traces, *FAST, *words, "--out", str(many), "--shard", f"{k}/3")[0] for k in (3, 1, 2)]
        merged = written(work, f"{what}-2", "merge", str(many))
        files = [p.name for p in many.iterdir()]
        report(codes == [0, 0, 0] and expected[0] == 1 and merged[:2] == expected[:2] and len(files) == (11 if words else 6),
               f"kept.shards of {what}: {len(files)} files; merged, text, JSON and page are those of one run, to the bit", [str(codes), merged[2]])
        whole = written(work, f"{what}-3", "judge", TINY, *traces, *FAST, *words, "--out", str(one))
        report(whole[:2] == expected[:2], f"kept.shards of {what}: so is a run that keeps its results", [whole[2]])
    rows = json.loads((work / "layers-1.json").read_text())["results"]
    pieces = [r["layers"] for r in rows if r["id"] == "judgement" and r["trace"] == traces[0]]
    report(pieces == [[0, 2], [3, 3]] and all("layers" in r for r in rows), "kept.shards each row of a piece names its layers", [str(pieces)])
    whole = json.loads((work / "traces-1.json").read_text())["results"]

    def points(of):
        return {(r["trace"], r["id"]): {k: v for k, v in r.items() if k not in ("together", "layers", "error", "inherited", "local")}
                for r in of if r["id"] not in ("judgement", "input")}
    report(points(rows) == points(whole), f"kept.shards {len(points(rows))} points: layers apart have the numbers of the whole trace", [])


def again(work):
    """What is taken again, and what is not."""
    traces = four(work)
    words = ["judge", TINY, *traces, *FAST, "--out", str(work / "out")]

    def before(*more, **variables):
        wrong = ran(*words, *more, **variables)[2]
        line = next((x for x in wrong.splitlines() if "from before" in x), "0 of 0")
        return int(line.replace("sinkproof judge: ", "").split(" of ")[0])
    counts = [("first", before()), ("second", before())]
    os.utime(traces[0], ns=(1, 1))
    counts.append(("one trace of another time", before()))
    traced(traces[1], 2, "f32")
    counts.append(("one trace of another content", before()))
    pathlib.Path(traces[2]).write_bytes(pathlib.Path(traces[0]).read_bytes())
    counts += [("one that was missing is there", before()), ("all", before()), ("another option", before("--strict")),
               ("back again", before()), ("other layers", before("--layers", "0-1"))]
    kept = next(p for p in (work / "out").iterdir() if json.loads(p.read_text()).get("unit", {}).get("layers") == [0, 1])
    kept.write_bytes(kept.read_bytes()[:-9])
    counts.append(("one that is cut short", before("--layers", "0-1")))
    expected = [0, 4, 3, 3, 4, 5, 0, 0, 0, 4]
    # "back again": the results of other options replaced the first ones; "other layers" have files of their own
    report([c for _, c in counts] == expected, f"kept.again results taken: {dict(counts)}", [str(expected)])


def killed(work):
    """A process that is killed amid its work leaves whole results, and the next one goes on."""
    traces = [traced(work / "a", 1), traced(work / "big", 2, tokens=100, points="A13,M3,M12,A9"), traced(work / "c", 3)]
    words = ["judge", TINY, *traces, *FAST, "--out", str(work / "out")]
    with subprocess.Popen([os.path.abspath(PROGRAM), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ALONE) as process:
        while process.poll() is None and not [p for p in (work / "out").glob("*.json") if p.name != "run.json"]:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    status, _, wrong = ran("merge", str(work / "out"))
    report(process.returncode == -signal.SIGKILL and status == 3 and f"2 of 3 results are missing, the first of {traces[1]}" in wrong,
           f"kept.killed after one of 3: merge exits {status} and says what lacks", [wrong, str(process.returncode)])
    again_ = ran(*words)
    merged = ran("merge", str(work / "out"))
    report(again_[0] == 0 and "1 of 3 results" in again_[2] and merged[:2] == again_[:2], "kept.killed the next run goes on where it was", [again_[2]])


def refused(work):
    """Runs that are not whole, and files that are none."""
    traces = four(work)
    out, other = work / "out", work / "other"
    for folder, words in ((out, ()), (other, ("--strict",))):
        ran("judge", TINY, *traces, *FAST, *words, "--out", str(folder))
    results = sorted(p for p in out.iterdir() if p.name != "run.json")
    (work / "twice").mkdir()
    (work / "twice" / "x.json").write_bytes(results[0].read_bytes())
    hostile = {"no JSON": b"{", "a list": b"[1]", "another object": b'{"kept": 1}', "deep": b"[" * 100000, "no bytes": b"",
               "an exit code beyond": results[0].read_bytes().replace(b'"exit": ', b'"exit": 9', 2),
               "a control character": results[0].read_bytes().replace(b'"text": "', b'"text": "\\u001b[2J')}
    for what, data in hostile.items():
        (work / what).write_bytes(data)
    cases = [("a directory that is empty", [str(work / "twice")], "expected run.json"),
             ("one result twice", [str(out), str(work / "twice")], "two results of it"),
             ("two runs", [str(out), str(other)], "of two different runs"),
             ("a run alone", [str(out / "run.json")], "5 of 5 results are missing"),
             ("results of other options", [str(other / "run.json"), *map(str, results)], "made with other options"),
             *((what, [str(out), str(work / what)], str(work / what)) for what in hostile)]
    for what, words, sentence in cases:
        status, said, wrong = ran("merge", *words, "--json", str(work / "j"))
        report(status == 3 and sentence in wrong and len(wrong.splitlines()) == 1 and said == "" and not (work / "j").exists(),
               f"kept.refused {what}: exit {status}, a sentence", [wrong])
    status, said, _ = ran("merge", str(out / "run.json"), *map(str, reversed(results)))
    report((status, said) == ran("merge", str(out))[:2], "kept.refused not: single files, in any order", [said])
    twice = ran("judge", TINY, traces[0], traces[0], *FAST, "--out", str(work / "o"))
    report(twice[0] == 3 and "given twice" in twice[2], "kept.refused one trace twice", [twice[2]])
    for words in (["--shard", "1/2"], ["--out", str(work / "o"), "--shard", "3/2"], ["--out", str(work / "o"), "--shard", "0/2"],
                  ["--out", str(work / "o"), "--shard", "1/2", "--json", "-"], ["--out", str(work / "o"), "--layers-apart", "0"],
                  ["--layers-apart", "1", "--policy", "auto"], ["--layers", "2-1"], ["--layers", "1x"]):
        status, _, wrong = ran("judge", TINY, traces[0], *FAST, *words)
        report(status == 2, f"kept.refused {' '.join(words[-2:])}: usage", [wrong])
    status, _, wrong = ran("judge", TINY, traces[0], *FAST, "--layers", "2-9")
    report(status == 3 and "layers 2 to 9: expected some of 0 to 3" in wrong, "kept.refused layers that the model lacks", [wrong])
    (work / "file").write_text("")
    status, _, wrong = ran("judge", TINY, traces[0], *FAST, "--out", str(work / "file"))
    report(status == 3 and "expected a directory for results" in wrong, "kept.refused a file in place of the directory", [wrong])


def ranks(work):
    """Which units each process takes, by the variables that its launcher sets."""
    traces = four(work)

    def mine(name, **variables):
        status, said, wrong = ran("judge", TINY, *traces, *FAST, "--out", str(work / name), **variables)
        return status, [traces.index(p) for p in traces if f"  {p}" in said], said + wrong
    launchers = {"Open MPI": lambda k, n: {"OMPI_COMM_WORLD_RANK": str(k), "OMPI_COMM_WORLD_SIZE": str(n)},
                 "PMI": lambda k, n: {"PMI_RANK": str(k), "PMI_SIZE": str(n)},
                 "srun": lambda k, n: {"SLURM_PROCID": str(k), "SLURM_STEP_NUM_TASKS": str(n), "SLURM_NTASKS": str(n)},
                 "a Slurm array": lambda k, n: {"SLURM_ARRAY_TASK_ID": str(7 + 2 * k), "SLURM_ARRAY_TASK_COUNT": str(n),
                                                "SLURM_ARRAY_TASK_MIN": "7", "SLURM_ARRAY_TASK_STEP": "2"},
                 "an array of steps": lambda k, n: {"SLURM_ARRAY_TASK_ID": str(k // 2), "SLURM_ARRAY_TASK_COUNT": str(n // 2),
                                                    "SLURM_ARRAY_TASK_MIN": "0", "SLURM_PROCID": str(k % 2), "SLURM_STEP_NUM_TASKS": "2"}}
    for name, launch in launchers.items():
        parts = [mine(name, **launch(k, 4)) for k in range(4)]
        merged = ran("merge", str(work / name))
        report([p[1] for p in parts] == [[0, 4], [1], [2], [3]] and not any(p[0] for p in parts) and merged[0] == 1,
               f"kept.ranks {name}: four processes, {[p[1] for p in parts]}", [p[2] for p in parts])
    status, said, wrong = ran("judge", TINY, *traces, *FAST, **launchers["Open MPI"](1, 4))
    report(status == 1 and "5 results" in said, "kept.ranks without --out the rank is nothing to the command", [wrong])
    status, which, said = mine("batch", SLURM_PROCID="0", SLURM_NTASKS="4")
    report(status == 1 and "5 results" in said, "kept.ranks a batch script of Slurm, which runs once, does all", [said])
    for name, variables in (("a rank beyond", {"PMI_RANK": "4", "PMI_SIZE": "4"}), ("no number", {"PMI_RANK": "x", "PMI_SIZE": "4"}),
                            ("an uneven array", {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "1"})):
        status, _, said = mine("bad", **variables)
        report(status == 2 and "give --shard K/N" in said, f"kept.ranks {name}: exit {status}", [said])
    status, which, said = mine("own", PMI_RANK="x", PMI_SIZE="4")
    words = ("judge", TINY, *traces, *FAST, "--out", str(work / "own"), "--shard", "2/2")
    report(ran(*words, PMI_RANK="0", PMI_SIZE="4")[0] == 0, "kept.ranks --shard counts for more than the variables", [])


def parallel(work):
    """xargs -P, as the book has it; and prompts of truth and audit."""
    traces = four(work)
    (work / "list.jsonl").write_text("\n".join(traces))
    line = f"seq 4 | xargs -P 2 -I@ {os.path.abspath(PROGRAM)} judge {TINY} list.jsonl {' '.join(FAST)} --out out --shard @/4"
    done = subprocess.run(["sh", "-c", line], cwd=work, env=ALONE, capture_output=True, text=True, check=False)
    merged = ran("merge", "out", "--json", "-", cwd=work)
    heads = [r["trace"] for r in json.loads(merged[1])["results"] if "exit" in r]
    report(done.returncode == 0 and merged[0] == 1 and heads == traces, "kept.parallel xargs -P 2: four shards, one verdict", [done.stderr])
    prompts = work / "p.jsonl"
    prompts.write_text('{"tokens": [1, 2]}\n{"tokens": []}\n{"tokens": [3]}\n')
    for command, words in (("truth", []), ("audit", ["--no-budget", "--policy", "f32"])):
        whole = [command, TINY, "--prompts", str(prompts), *words]
        expected = ran(*whole, "--json", str(work / "1"))
        codes = [ran(*whole, "--out", str(work / command), "--shard", f"{k}/2")[0] for k in (1, 2)]
        merged = ran("merge", str(work / command), "--json", str(work / "2"))
        report(codes == [0, 0] and merged[:2] == expected[:2] and (work / "1").read_bytes() == (work / "2").read_bytes(),
               f"kept.parallel {command}: two shards of prompts are one run, to the bit", [merged[2]])


def planned(work):
    """--plan: the bytes are those of the files, the memory no less than sets and trace, and nothing is judged."""
    path = traced(work / "t", 1, tokens=60, points="T0,A1,A6,A9,A13,M3,M12,F1")
    bug = traced(work / "b", 2, "f32,M8.alpha=bf16")
    raw = pathlib.Path(path).read_bytes()
    header = json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")])
    size = {name: t["data_offsets"][1] - t["data_offsets"][0] for name, t in header.items() if name not in ("__metadata__", "tokens", "positions")}

    def of(first, end):
        own = sum(s for name, s in size.items() if (int(name[:2]) if name[:2].isdigit() else 0 if name == "T0" else 3) in range(first, end))
        return own + (size[f"{first - 1:02}.M12"] if first else 0)
    status, said, wrong = ran("judge", TINY, path, bug, "--plan", "--json", str(work / "j"))
    rows = json.loads((work / "j").read_text())["results"]
    good = rows[0]["bytes"] == of(0, 4) and rows[0]["points"] == len(size) and rows[0]["tokens"] == 60 and rows[0]["policy"] == "f32"
    report(status == 0 and [r["id"] for r in rows] == ["plan", "plan"] and good and "Verdict" not in said and said.count("(estimated") == 6,
           f"kept.planned {rows[0]['bytes']} bytes of {rows[0]['points']} points; nothing is judged", [said, wrong, str(of(0, 4))])
    layer = max(sum(s for name, s in size.items() if name.startswith(f"{i:02}.")) + (size[f"{i - 1:02}.M12"] if i else 0) for i in range(4))
    report(rows[0]["at_once"] == layer < rows[0]["bytes"] / 3 and rows[0]["memory"] >= rows[0]["at_once"] + rows[0]["sets"] and
           rows[0]["seconds"] > 0, f"kept.planned at once {layer} bytes, the largest layer and the stream before it", [str(rows[0])])
    status, said, _ = ran("judge", TINY, path, "--plan", "--layers-apart", "2", "--policy", "f32", "--json", str(work / "j"))
    parts = [(r["layers"], r["bytes"]) for r in json.loads((work / "j").read_text())["results"]]
    report(parts == [([0, 1], of(0, 2)), ([2, 3], of(2, 4))], f"kept.planned of layers apart: {parts}", [said])
    behind = work / "behind"  # A6 of layer 0 has columns of the 7 tokens before; nothing is judged of the zeros
    tensors = {"prefix": ("I32", [7], bytes(28)), "tokens": ("I32", [3], bytes(12)), "positions": ("I32", [3], struct.pack("<3i", 7, 8, 9)),
               "00.A6": ("F32", [10, 3, 10], bytes(1200)), "00.A13": ("F32", [3, 96], bytes(1152))}
    behind.write_bytes(checkpoints.safetensors(tensors, {"format": "sinkproof-trace-1"}))
    status, said, wrong = ran("judge", TINY, behind, "--plan", "--json", str(work / "j"))
    row = json.loads((work / "j").read_text())["results"][0]
    report(status == 0 and "\nprefix: 7 tokens before the trace, computed through all layers first" in said and row["prefix"] == 7 and
           row["prefix_sets"] % (2 * 4 * 7 * 2 * 16) == 0 and row["memory"] > row["prefix_sets"] > 0 and "prefix" not in rows[0],
           f"kept.planned a prefix: {row['prefix_sets']} bytes of sets", [said, wrong])
    for words in (["--out", str(work / "o")], ["--html", str(work / "h")]):
        report(ran("judge", TINY, path, "--plan", *words)[0] == 2, f"kept.planned {words[0]}: usage", [])


if __name__ == "__main__":
    sys.exit(checkpoints.run(shards, again, killed, refused, ranks, parallel, planned))
