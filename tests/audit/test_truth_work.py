# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The work file of `truth`: a run that is killed goes on behind its last whole layer and ends with the same
bits; the work of another run, of damaged bytes or of another process is refused; nothing stays behind. And the
memory that --plan states is not exceeded.
"""
import json
import math
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from tap import Tap  # noqa: E402

SINKPROOF = os.environ["SINKPROOF"]
MODEL, TOKENS = "synthetic:tiny,layers=12", "random:6"
KILLS = 3
# Sanitizers keep memory of their own beside each allocation, and what is freed: then the words alone are asked.
WATCHED = "-fsanitize=" in (pathlib.Path(os.environ["SINKPROOF_BUILD"]) / "flags").read_text(encoding="utf-8")


def truth(*words):
    done = subprocess.run([SINKPROOF, "truth", *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def layers_of(work):
    """The layers that a work file has behind it: the fifth word after the lines."""
    try:
        words = work.read_bytes().split(b"\n\n", 1)[1]
    except FileNotFoundError:
        return 0
    return int.from_bytes(words[32:40], "little")


def kill_behind(work, layers, *words):
    """Kills a run once its work file has so many layers; whether it was still running."""
    with subprocess.Popen([SINKPROOF, "truth", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while run.poll() is None and layers_of(work) < layers:
            time.sleep(0.0005)
        run.kill()
    return run.returncode == -9


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def killed(tap, folder):
    """One run killed three times, beside one that was left alone: the same file and the same words."""
    cases = {"end to end": ("--tokens", TOKENS, "--check", 2), "raised": ("--tokens", "random:9", "--certified", 237),
             "some points": ("--tokens", TOKENS, "--points", "T0,M3,A9,03.M8")}
    for what, words in cases.items():
        whole, broken = folder / "whole", folder / "broken"
        code, text, _ = truth(MODEL, *words, "--trace", whole)
        work, kills, told = folder / "broken.work", 0, []
        for k in range(KILLS):
            kills += kill_behind(work, 3 * k + 2, MODEL, *words, "--trace", broken)
        (folder / "broken.work.new").write_bytes(b"what a killed process left of a state")
        with open(folder / "broken.work.points", "ab") as points:
            points.write(b"of a layer that was not whole")
        done, again, told = truth(MODEL, *words, "--trace", broken)
        again = again.replace(str(broken), str(whole))
        behind = re.fullmatch(r"sinkproof truth: \S+/broken\.work: goes on behind layer (\d+), at (\d+) bits\n", told)
        last = [line for line in text.splitlines() if "bits" not in line] == [line for line in again.splitlines() if "bits" not in line]
        tap.report(kills == KILLS and done == code == 0 and behind and int(behind[1]) >= 3 * KILLS - 2 and
                   whole.read_bytes() == broken.read_bytes() and last and (what == "raised" or text == again),
                   f"model.forward {what}: killed {KILLS} times, gone on behind layer {behind and behind[1]}, the same bits",
                   [kills, code, done, told, text, again])
        tap.report(names(folder) == ["broken", "whole"], f"{what}: nothing else stays", names(folder))
        whole.unlink()
        broken.unlink()


def no_trace(tap, folder):
    """--work alone, operation by operation: a run without a file of its own."""
    trace, work = folder / "t", folder / "w"
    subprocess.run([SINKPROOF, "run", MODEL, "--tokens", TOKENS, "--policy", "f32", "--engine", "ref", "--trace", trace],
                   capture_output=True, check=True)
    words = (MODEL, "--local", trace, "--work", work)
    text = truth(MODEL, "--local", trace)[1]
    kill = kill_behind(work, 2, *words)
    bytes_ = bytearray(trace.read_bytes())
    bytes_[-1] ^= 1
    trace.write_bytes(bytes_)
    other = truth(*words)
    bytes_[-1] ^= 1
    trace.write_bytes(bytes_)
    code, again, told = truth(*words)
    tap.report(kill and code == 0 and text == again and "goes on behind layer" in told and names(folder) == ["t"],
               "--local with --work: the same distances", [kill, code, told, text, again, names(folder)])
    tap.report(other[0] == 3 and 'expected "local of a trace, sum ' in other[2], "the work of another trace is refused", other)
    trace.unlink()


def refused(tap, folder):
    """Other runs, damaged bytes, another process: exit 3 with the reason, and the work stays."""
    work, out = folder / "a.work", folder / "a"
    points = folder / "a.work.points"
    words = ("--tokens", TOKENS, "--trace", out)
    kill = kill_behind(work, 4, MODEL, *words)
    tap.report(kill and names(folder) == ["a.work", "a.work.points"], "a killed run leaves its work", names(folder))
    state, kept = work.read_bytes(), points.read_bytes()
    others = {"of another model": ("synthetic:tiny,layers=12,seed=3", *words), "of other tokens": (MODEL, "--tokens", "1,2", "--trace", out),
              "of another precision": (MODEL, *words, "--bits", 512), "of other options": (MODEL, *words, "--check", 3),
              "of other points": (MODEL, *words, "--points", "A9"),
              "that keeps points": (MODEL, "--tokens", TOKENS, "--work", work)}
    found = {"of another model": "model ", "of other tokens": "tokens 2, sum ", "of another precision": "bits 512",
             "of other options": "checked results of a product 3", "of other points": "points kept: A9",
             "that keeps points": "points kept: none"}
    for what, line in others.items():
        code, _, told = truth(*line)
        tap.report(code == 3 and f'a.work: the work of another run: expected "{found[what]}' in told and
                   told.endswith("; remove it or name another file\n") and work.read_bytes() == state and points.read_bytes() == kept,
                   f"the work of a run {what} is refused", [code, told])
    damage = {"its sum is not that of its bytes": state[:-20] + bytes([state[-20] ^ 4]) + state[-19:],
              "a damaged work file": state[:-9], 'expected "sinkproof-truth-work-1", found "': b"x" * len(state),
              'found ""': b""}
    for what, data in damage.items():
        work.write_bytes(data)
        code, _, told = truth(MODEL, *words)
        tap.report(code == 3 and what in told, f"damaged: {what}", [code, told])
    work.write_bytes(state)
    for what, data in {"fewer": kept[:1000], "others": bytes([kept[0] ^ 1]) + kept[1:]}.items():
        points.write_bytes(data)
        code, _, told = truth(MODEL, *words)
        tap.report(code == 3 and "a.work tells of, found others" in told, f"points that are {what} are refused", [code, told])
    points.unlink()
    code, _, told = truth(MODEL, *words)
    tap.report(code == 3 and "found others" in told and names(folder) == ["a.work"], "missing points are refused", [code, told, names(folder)])
    points.write_bytes(kept)
    with subprocess.Popen([SINKPROOF, "truth", MODEL, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while work.read_bytes() == state:
            time.sleep(0.0005)
        code, _, told = truth(MODEL, *words)
        run.wait()
    tap.report(code == 3 and "another process is at this work" in told and run.returncode == 0 and names(folder) == ["a"],
               "the work of a process that runs is refused", [code, told, run.returncode, names(folder)])
    out.unlink()


def full(tap, folder):
    """A file that may not grow: what was stored stays, and the run goes on from there."""
    out = folder / "f"
    words = [SINKPROOF, "truth", MODEL, "--tokens", TOKENS, "--trace", str(out)]
    whole = folder / "whole"
    truth(MODEL, "--tokens", TOKENS, "--trace", whole)
    limit = whole.stat().st_size // 2
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=lambda: (
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
    tap.report(done.returncode == 3 and "cannot write: File too large; the run can go on from the layer before" in done.stderr and
               names(folder) == ["f.work", "f.work.points", "whole"], "no room: the work stays", [done.returncode, done.stderr, names(folder)])
    code, _, told = truth(MODEL, "--tokens", TOKENS, "--trace", out)
    tap.report(code == 0 and "goes on behind layer" in told and out.read_bytes() == whole.read_bytes(), "with room the run goes on", [code, told])
    code = truth(MODEL, "--tokens", TOKENS, "--trace", folder / "none" / "x")[0]
    tap.report(code == 3 and names(folder) == ["f", "whole"], "no place to write: nothing stays", [code, names(folder)])
    for path in (out, whole):
        path.unlink()


def progress(tap):
    """The line on a terminal: the layer, the bits that are left, the time."""
    own, other = pty.openpty()
    with subprocess.Popen([SINKPROOF, "truth", MODEL, "--tokens", TOKENS], stdout=subprocess.DEVNULL, stderr=other) as run:
        os.close(other)
        shown = b""
        try:
            while piece := os.read(own, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
    os.close(own)
    lines = re.findall(r"truth: (layer (\d+) of 12|logits), (\d+) bits left, \d+ s left", shown.decode())
    bits = [int(line[2]) for line in lines]
    measured = json.loads(truth(MODEL, "--tokens", TOKENS, "--json", "-")[1])["results"]
    lost = next(r for r in measured if r.get("what") == "bits lost on the way")
    tap.report([line[1] for line in lines] == [*map(str, range(2, 13)), ""] and bits == sorted(bits, reverse=True) and
               0 < bits[-1] - (lost["bits"] - lost["measured"]) < 12 and shown.endswith(b"\r\x1b[K"),
               f"progress: {bits[0]} bits left behind the first layer, {bits[-1]} behind the last", [shown, lost])


def peak(*words):
    """The largest resident memory of a run, in bytes. What wait4 tells would have that of this script in it."""
    most = 0
    with subprocess.Popen([SINKPROOF, *map(str, words)], stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            told = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{run.pid}/status").read_text(encoding="utf-8"))
            most = max(most, int(told[1]) * 1024 if told else 0)
            time.sleep(0.001)
    return most


def memory(tap):
    own = peak("truth", "synthetic:tiny", "--tokens", "1")  # the program, its libraries and its threads
    for model, tokens in (("synthetic:tiny", "random:90"), ("synthetic:tiny-gpt2", "random:64"), ("synthetic:gpt2,layers=1", "random:12")):
        words = ("truth", model, "--tokens", tokens)
        row = json.loads(truth(*words[1:], "--plan", "--json", "-")[1])["results"][-1]
        text = truth(*words[1:], "--plan")[1].splitlines()[-1]
        held = peak(*words) - own
        fits = row["bytes"] / 3 < held <= row["bytes"] or WATCHED
        tap.report(row["what"] == "memory of a run" and fits and
                   text == f"{row['tokens']} tokens: {math.ceil(row['bytes'] / 2 ** 30 * 100) / 100:.2f} GiB or less at once, most at {row['point']}, beside the model and the program (estimated)",
                   f"{model}, {tokens}: memory worst={held} bound={row['bytes']:.0f}", [row, held, text])


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        killed(tap, folder)
        no_trace(tap, folder)
        refused(tap, folder)
        full(tap, folder)
    progress(tap)
    memory(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
