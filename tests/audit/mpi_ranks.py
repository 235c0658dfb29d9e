# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""mpirun starts four ranks of `sinkproof judge --out`, which links no MPI: `make test-mpi`. Without mpirun it is skipped,
by name. test_kept.py has the same ranks without MPI.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import PROGRAM, TAP, report, sinkproof  # noqa: E402

TINY = "synthetic:tiny"
FAST = ("--policy", "f32", "--no-hint", "--no-diagnosis")
FOUR = ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.getuid() == 0 else []), "-n", "4"]
# Rank 2 is killed when its first result is there: its other trace is long.
DIES = r'''[ "$OMPI_COMM_WORLD_RANK" = 2 ] || exec "$@"
"$@" & while ! grep -qs '"name": "2"' out/[0-9a-f]*.json; do sleep 0.01; done; kill -9 $!; kill -9 $$'''


def traced(work, name, policy="f32", tokens=5):
    sinkproof("run", TINY, "--tokens", f"random:{tokens},seed={name}", "--policy", policy, "--points", "T0,A13,M3,M12,M6,M8,A9", "--trace",
              str(work / name))
    return name


def ran(work, *words):
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def ranks(work):
    program = os.path.abspath(PROGRAM)
    if shutil.which("mpirun") is None:
        TAP.skip("mpi.ranks", "no mpirun here: sh tests/install.sh --with mpi build")
        return
    traces = [traced(work, "0"), traced(work, "1", "f32,M8.alpha=bf16"), *(traced(work, str(i), tokens=120 if i == 6 else 5) for i in range(2, 7))]
    words = [program, "judge", TINY, *traces, *FAST]
    expected = ran(work, *words, "--json", "one.json", "--html", "one.html")
    status, said, wrong = ran(work, *FOUR, *words, "--out", "whole")
    shares = sorted(line for line in said.splitlines() if line.startswith("shard "))
    report(status == 0 and len(shares) == 4 and all(f"shard {k}/4 by OMPI_COMM_WORLD_RANK" in shares[k - 1] for k in range(1, 5)),
           f"mpi.ranks four of them: {len(shares)} shards", [said, wrong])
    merged = ran(work, program, "merge", "whole", "--json", "two.json", "--html", "two.html")
    same = all((work / f"one.{k}").read_bytes() == (work / f"two.{k}").read_bytes() for k in ("json", "html"))
    report(merged[:2] == expected[:2] and expected[0] == 1 and same, "mpi.ranks merged, they are one run, to the bit", [merged[2]])
    status, _, wrong = ran(work, *FOUR, "sh", "-c", DIES, "-", *words, "--out", "out")
    lacks = ran(work, program, "merge", "out")
    report(status != 0 and lacks[0] == 3 and "missing" in lacks[2], "mpi.ranks one is killed: merge says what lacks", [wrong, *map(str, lacks)])
    status, said, wrong = ran(work, *FOUR, *words, "--out", "out")
    taken = sum(int(line.split(" in out, ")[1].split()[0]) for line in said.splitlines() if line.startswith("shard "))
    merged = ran(work, program, "merge", "out", "--json", "three.json")
    report(status == 0 and 1 <= taken < 7 and merged[:2] == expected[:2] and (work / "three.json").read_bytes() == (work / "one.json").read_bytes(),
           f"mpi.ranks started again: {taken} of 7 results are taken, the rest are made", [said, wrong])


if __name__ == "__main__":
    sys.exit(checkpoints.run(ranks))
