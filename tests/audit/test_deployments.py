# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What GPUs and several ranks computed, judged again (doc/33-gpu-kernels.md): honest kernels and deployments are within
under the policies that say what they do, and under no narrower one; wrong ones are outside under all of them.

tests/vectors/gpu holds outputs of attention kernels on an H200, of every third call that `judge --emit` writes, and a
traces of transformers there; tests/vectors/deployment traces of two ranks, and of a cache of eight bits.
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"
WITHIN, BUG, SUSPICIOUS = 0, 1, 4

# Operands in TF32: of attention, divided first or fused, and of stored weights.
ATTENTION = "A5.q={0},A5.k={0},A11.weights={0},A11.v={0}"
FUSED = "A5.q={0},A5.k={0},A9.unnorm={0},A11.v={0}"
STORED = "A2.in={0},A12.in={0},M2.in={0},M5.in={0},M9.in={0},F2.in={0}"

# kernel, policy, exit code, calls that fail: the generic policy holds what fused kernels do
KERNELS = [
    ("bf16", "fa3-decode", "bf16", WITHIN, 0),
    ("bf16", "fa3-decode", "bf16,acc=hopper", WITHIN, 0),
    ("bf16", "fa3-decode", "bf16,A9.unnorm=real,A11.part=real,exp=2ulp", BUG, 12),
    ("bf16", "fa3-decode", "flash-bf16", WITHIN, 0),
    ("bf16", "vllm-triton-prompt", "bf16", WITHIN, 0),
    ("bf16", "vllm-triton-prompt", "flash-bf16", WITHIN, 0),
    ("bf16", "sglang-decode", "bf16", WITHIN, 0),
    ("bf16", "sglang-decode", "flash-bf16", WITHIN, 0),
    ("bf16", "flex", "bf16", BUG, 5),
    ("bf16", "flex", "bf16,A11.part=real", BUG, 7),
    ("bf16", "gpt-oss-triton-chunks", "bf16", BUG, 18),
    ("f16", "fa3-prompt", "f16", WITHIN, 0),
    ("f16", "fa3-prompt", "flash-f16", WITHIN, 0),
    ("f32", "eager-tf32", "f32", BUG, 3),
    ("f32", "eager-tf32", f"f32,{ATTENTION.format('tf32?')}", WITHIN, 0),
    ("f32", "vllm-triton-prompt", "f32", BUG, 15),
    ("f32", "vllm-triton-prompt", f"f32,{FUSED.format('tf32-cut')}", WITHIN, 0),
    ("f32", "vllm-triton-prompt", f"f32,{FUSED.format('tf32')}", BUG, 15),
    ("f32", "vllm-triton-prompt", f"f32,{ATTENTION.format('tf32-cut')}", BUG, 15),
]
# trace, model, policy, exit code, the first point outside
MODELS = [
    ("gpu/model-tiny-bf16", "synthetic:tiny", "hf-bf16", BUG, "F2"),
    ("gpu/model-tiny-bf16", "synthetic:tiny", "hf-bf16,acc=hopper", BUG, "F2"),
    ("gpu/model-tiny-bf16", "synthetic:tiny", "hf-bf16,acc=hopper,F2.acc=blocks(8,bf16)", WITHIN, None),
    ("gpu/model-tiny-bf16", "synthetic:tiny", "hf-bf16,acc=hopper,F2.acc=blocks(16,bf16)", BUG, "F2"),
    ("gpu/model-tiny-bf16", "synthetic:tiny", "bf16,F2.acc=blocks(8,bf16)", WITHIN, None),
    ("gpu/model-tiny-bf16", "synthetic:tiny", "flash-bf16,F2.acc=blocks(8,bf16)", BUG, "00.A9"),
    ("gpu/model-tiny-tf32", "synthetic:tiny", "f32", BUG, "00.A2.q"),
    ("gpu/model-tiny-tf32", "synthetic:tiny", f"f32,{STORED.format('tf32')},acc=tensor-core(25,8)", WITHIN, None),
    ("gpu/model-tiny-tf32", "synthetic:tiny", f"f32,{STORED.format('tf32-cut')},acc=tensor-core(25,8)", BUG, "00.A2.q"),
    ("gpu/model-tiny-tf32", "synthetic:tiny", f"f32,{STORED.format('tf32')},acc=tensor-core(25,16)", SUSPICIOUS, None),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16", BUG, "00.A11"),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16,A5.k=e4m3,A11.v=e4m3", WITHIN, None),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16,A5.k=e4m3", BUG, "00.A11"),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16,A5.k=e5m2,A11.v=e5m2", BUG, "00.A11"),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16,A5.k=e4m3(head),A11.v=e4m3(head)", BUG, "00.A11"),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16,A5.k=e4m3,A11.v=e4m3(tensor)", BUG, "00.A11"),
    ("deployment/honest-fp8-kv", "synthetic:tiny,layers=2", "bf16,A5.k=e4m3,A11.v=mxfp8", BUG, "00.A11"),
    ("deployment/honest-tp2-bf16-allreduce", "synthetic:tiny,layers=2", "bf16", BUG, "00.A12"),
    ("deployment/honest-tp2-bf16-allreduce", "synthetic:tiny,layers=2", "bf16,ranks=2", WITHIN, None),
    ("deployment/honest-tp2-bf16-allreduce", "synthetic:tiny,layers=2", "bf16,A12.acc=ranks(2,bf16)", WITHIN, None),
    ("deployment/honest-tp2-bf16-allreduce", "synthetic:tiny,layers=2", "bf16,A12.acc=blocks(80,bf16)", BUG, "00.A12"),
    ("deployment/honest-ep2-bf16", "synthetic:tiny,layers=2", "bf16", BUG, "00.M11"),
    ("deployment/honest-ep2-bf16", "synthetic:tiny,layers=2", "bf16,ranks=2", WITHIN, None),
    ("deployment/ep-one-expert-wrong", "synthetic:tiny,layers=2", "f32,ranks=2", BUG, "00.M5"),
    ("deployment/lse-off-by-ln2", "synthetic:tiny,layers=2", "f32,ranks=2", BUG, "00.A11"),
]


def lay_out(folder, dtype, kernel):
    """Writes the outputs of a kernel beside the inputs that `judge --emit` wrote into the folder; the number of calls."""
    cases = {case["inputs"].split(".")[0]: case["outputs"]
             for case in json.loads((folder / "manifest.json").read_text())["cases"]}
    calls = {}
    for name, tensor in checkpoints.read(VECTORS / "gpu" / f"attention-{dtype}-{kernel}.safetensors")[0].items():
        call, output = name.split("/", 1)
        calls.setdefault(call, {})[output] = tensor
    for call, outputs in calls.items():
        (folder / cases[call]).write_bytes(checkpoints.safetensors(outputs))
    return len(calls)


def kernels(work):
    for number, (dtype, kernel, policy, exits, failing) in enumerate(KERNELS):
        folder = work / str(number)
        status, _, told = sinkproof("judge", "--emit", str(folder), "--stages", "attention", "--policy", dtype)
        if status:
            report(False, f"calls for {kernel} are written: {told}")
            continue
        calls = lay_out(folder, dtype, kernel)
        status, out, _ = sinkproof("judge", "--collect", str(folder), "--policy", policy)
        row = next((line.split() for line in out.splitlines() if line.startswith("attention")), [])
        report(status == exits and row[1:3] == [str(calls), str(failing)],
               f"bound.unnormalised bound.operands {dtype} {kernel} under {policy}: exit {status}, {row[1:6]} of {calls} calls")


def models(_):
    for trace, model, policy, exits, first in MODELS:
        status, out, told = sinkproof("judge", model, str(VECTORS / f"{trace}.safetensors"), "--policy", policy,
                                      "--local", "--no-hint")
        said = next((line for line in out.splitlines() if line.startswith("First divergence: ")), "")
        named = said.split()[2].rstrip(".") if said else None
        report(status == exits and named == first,
               f"bound.parts bound.tensor-core bound.scaled {trace} under {policy}: exit {status}, first {named} {told}")


if __name__ == "__main__":
    sys.exit(checkpoints.run(kernels, models))
