# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Arrays on a device, here a fake one that counts what is copied from it: each once, and one at a time; and what a
short test costs. Run by python_inside.py."""
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import tracemalloc
import weakref

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
sys.path.insert(0, str(ROOT / "tests" / "audit"))
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
from drilled_kernels import attended, raised  # noqa: E402
from sinkproof.adapters import Record  # noqa: E402
from tap import Tap  # noqa: E402

COPIES, ALIVE, MOST = [], [], []


def brought(values):
    """A copy on the processor; those that are still in memory are counted."""
    copy = values.copy()
    COPIES.append(copy.nbytes)
    ALIVE.append(None)
    MOST.append(len(ALIVE))
    weakref.finalize(copy, ALIVE.pop)
    return copy


class Tensor:
    """As torch's on a device: it has no numbers until it is copied with .cpu()."""

    def __init__(self, values, device="fake"):
        self.values, self.device, self.dtype = values, device, f"torch.{values.dtype}"

    def detach(self):
        return self

    def contiguous(self):
        return self

    def cpu(self):
        return Tensor(brought(self.values), "cpu")

    def numpy(self):
        assert self.device == "cpu", "can't convert a tensor on a device: use .cpu() first"
        return self.values


class Exported:
    """As an array that only DLPack reads."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return brought(self.values).__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Elsewhere(Exported):
    def __dlpack__(self, **options):
        raise BufferError("it stays on its device")


class Cupy:
    """As CuPy's."""

    __cuda_array_interface__ = {}

    def __init__(self, values):
        self.values = values

    def get(self):
        return brought(self.values)


def most_at_once():
    return max(MOST, default=0)


def forget():
    gc.collect()
    COPIES.clear()
    MOST.clear()


def check_drill(tap):
    for kind in (Tensor, Exported, Cupy):
        given = []

        def make(x):
            given.append(x.nbytes)  # pylint: disable=cell-var-from-loop
            return kind(x)  # pylint: disable=cell-var-from-loop

        def kernel(q, k, v, sinks, window, first):
            return kind(attended(q.values, k.values, v.values, sinks.values, window, first))  # pylint: disable=cell-var-from-loop

        forget()
        found = sinkproof.drill(kernel, policy="f32", limit=30, make=make)
        tap.report(found.ok and found.calls == 30 and len(COPIES) * 4 == len(given) and most_at_once() == 1,
                   f"drill: {len(COPIES)} outputs of {kind.__name__} are copied from the device, each once, and no input", [found, most_at_once()])


def check_judge(tap):
    whole = sinkproof.run("synthetic:tiny", list(range(20)), policy="f32")
    points = [name for name in whole if name not in ("tokens", "positions")]
    for kind in (Tensor, Exported, Cupy):
        forget()
        arrays = {name: whole[name] if name in ("tokens", "positions") else kind(whole[name]) for name in whole}
        found = sinkproof.judge("synthetic:tiny", arrays, "f32", local=True)
        tap.report(found.ok and len(COPIES) == len(points) and most_at_once() == 1,
                   f"judge: {len(points)} points of {kind.__name__}, each copied once, one at a time", [len(COPIES), most_at_once()])
    refused = raised(sinkproof.Error, lambda: sinkproof.judge("synthetic:tiny", {"tokens": [1, 2], "00.A13": Elsewhere(whole["00.A13"])}))
    tap.report("00.A13: its array cannot be brought to the processor: it stays on its device" in str(refused), f"refused: {refused}")


def check_record(tap):
    """A long trace, in one piece and in several: no more than it and one point at a time are in memory."""
    n, layers = 96, 24
    rows = np.ones((n, 4096), np.float32)
    for pieces in (1, 3):
        forget()
        gc.collect()
        tracemalloc.start()
        record = Record()
        for piece in range(pieces):
            some = rows[n * piece // pieces:n * (piece + 1) // pieces]
            record.begin([1] * len(some))
            for layer in range(layers):
                record.keep("A13", Tensor(some), layer)
        trace = record.trace({})
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size = layers * rows.nbytes
        tap.report(len(trace) == layers + 2 and len(COPIES) == pieces * layers and most < 1.25 * size,
                   f"trace: {size >> 20} MiB in {pieces} pieces take {most / size:.2f} times as much memory", [len(COPIES)])


JUDGING = """
import os, sys, time
begun = time.process_time()
import sinkproof
trace = sinkproof.Trace.load(sys.argv[1], "synthetic:tiny")
sinkproof.testing.assert_honest("synthetic:tiny", trace, policy="f32")
print(time.process_time() - begun, "sinkproof.adapters" in sys.modules, "OMP_WAIT_POLICY" in os.environ)
"""


def check_cost(tap):
    """A passing assertion costs as much with idle threads as without: they sleep."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/trace.safetensors"
        sinkproof.run("synthetic:tiny", list(range(40)), policy="f32").save(path)
        spent = []
        for threads in ("1", "4"):
            variables = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
            runs = [subprocess.run([sys.executable, "-c", JUDGING, path], env={**variables, "OMP_NUM_THREADS": threads}, check=True,
                                   capture_output=True, text=True).stdout.split() for _ in range(3)]
            tap.report(all(run[1:] == ["False", "False"] for run in runs), "a judgement imports no adapter, and leaves no variable", runs)
            spent.append(min(float(run[0]) for run in runs))
    tap.report(spent[1] < 1.5 * spent[0], f"assert_honest of 40 tokens: {spent[0]:.2f} s of the processor, {spent[1]:.2f} s with 4 threads")


def main():
    tap = Tap()
    with np.errstate(all="ignore"):
        for check in (check_drill, check_judge, check_record, check_cost):
            check(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
