# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`judge --policy auto` on traces that are saved wider than the engine computed: of an engine in float32 that
keeps some numbers finer all numbers are float64 then, and no format tells what it is. And on traces that show
only what an engine in bfloat16 or float16 keeps finer. Each is acquitted; a mistake in it, and one in an engine
of float64, are not."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof, widened  # noqa: E402

FINER = "f32,A5=real,M5=real,M8.sigmoid=real,M8.swish=real,M9=real"
TOKENS = ("--tokens", "random:24,seed=5")


def enlarge(path, factor):
    """The float32 numbers of a trace, times the factor."""
    tensors, metadata = checkpoints.read(path)
    for name, (dtype, shape, raw) in tensors.items():
        if dtype == "F32":
            numbers = [factor * x for x in checkpoints.numbers_of(dtype, raw)]
            tensors[name] = dtype, shape, struct.pack(f"<{len(numbers)}f", *numbers)
    path.write_bytes(checkpoints.safetensors(tensors, metadata))


def tried(work, seed, policy, *points, wider="F64", factor=None):
    """(exit code, the policies that auto tried with whether each fits) of a run under the policy, saved wider."""
    model, trace = f"synthetic:tiny,seed={seed},layers=2", work / "trace"
    status, _, told = sinkproof("run", model, *TOKENS, "--policy", policy, *points, "--trace", str(trace))
    assert status == 0, told
    if factor is not None:
        enlarge(trace, factor)
    widened(trace, wider)
    status, out, _ = sinkproof("judge", model, str(trace), "--local", "--no-hint", "--no-diagnosis")
    lines = [line.split(maxsplit=2)[1:] for line in out.splitlines() if line.startswith("auto: ")]
    return status, [(name, how == "fits") for name, how in lines]


def acquitted(work):
    got = [tried(work, seed, FINER) for seed in range(3)]
    report(all(g == (0, [("real-f64", False), ("f32", True)]) for g in got),
           f"an engine in float32 that keeps numbers finer, saved in float64: {got[0]}")
    got = [tried(work, seed, FINER, "--points", "A6,M6") for seed in range(3)]
    report(all(status == 0 for status, _ in got), f"of that engine only what it keeps finer: {got[0]}")
    got = [tried(work, seed, "real-f64") for seed in range(3)]
    report(all(g == (0, [("real-f64", True)]) for g in got), f"an engine in float64: {got[0]}")


def convicted(work):
    for policy in (f"{FINER},M8.alpha=bf16", "real-f64,M8.alpha=bf16"):
        got = [tried(work, seed, policy) for seed in range(3)]
        report(all(status == 1 and not any(fits for _, fits in names) and len(names) > 1 for status, names in got),
               f"a rounded constant, {policy}: {got[0]}")


def kept_finer(work):
    """Queries alone, which the policy leaves open: nothing shows that the rest is narrower."""
    for narrow in ("bf16", "f16"):
        for wider in ("F32", "F64"):
            got = [tried(work, seed, f"{narrow},A2=f32", "--points", "00.A2.q", wider=wider) for seed in range(3)]
            # a norm that may be rounded to bfloat16 before its weight leaves some queries of binary16 in bf16's sets
            fitting = [(narrow, True)] + [("bf16", True)] * (narrow == "f16")
            report(all(status == 0 and names[-1] in fitting and names[0][0] in ("f32", "real-f64")
                       and not any(fits for _, fits in names[:-1]) for status, names in got),
                   f"an engine in {narrow} that keeps queries in float32, saved in {wider}, and shows nothing else: "
                   f"{got[0]}")
        got = [tried(work, seed, f"{narrow},A2=f32", "--points", "00.A2.q", wider="F32", factor=1.05)
               for seed in range(3)]
        report(all(status == 1 and not any(fits for _, fits in names) and ("f16", False) in names
                   for status, names in got), f"the same, a twentieth too large: {got[0]}")


def of_llama_cpp(work):
    """llama.cpp's policies, tried of Llama's runs in float32: in Q8_0 its products read rounded activations."""
    for name, inner in (("tiny-llama", "llama-cpp"), ("tiny-llama", "f32"), ("tiny", "llama-cpp")):
        model, trace = str(work / f"{name}.gguf"), str(work / "llama")
        sinkproof("synth", f"synthetic:{name},layers=2", "--layout", "gguf", "--dense", "q8_0", "--out", model)
        status, _, told = sinkproof("run", model, *TOKENS, "--policy", inner, "--trace", trace)
        assert status == 0, told
        status, out, _ = sinkproof("judge", model, trace, "--local", "--no-hint", "--no-diagnosis")
        told = [line.split(maxsplit=2)[1:] for line in out.splitlines() if line.startswith("auto: ")]
        fitting = [policy for policy, how in told if how == "fits"]
        asked = [policy for policy, _ in told if policy.startswith("llama-cpp")]
        if name == "tiny":  # GPT-OSS: its rotation is a known mistake there
            report(status == 1 and not fitting and not asked, f"an engine of llama.cpp on GPT-OSS: {told}")
        else:
            report(status == 0 and fitting == [inner] and bool(asked) == (inner != "f32"), f"an engine of {inner} on Llama: {told}")
        if inner == "llama-cpp" and asked:
            enlarge(pathlib.Path(trace), 1 + 1 / 64)
            report(sinkproof("judge", model, trace, "--local", "--no-hint", "--no-diagnosis")[0] == 1, "the same, a 64th too large")


if __name__ == "__main__":
    sys.exit(checkpoints.run(acquitted, convicted, kept_finer, of_llama_cpp))
