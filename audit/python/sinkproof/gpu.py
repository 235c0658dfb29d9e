# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Attention kernels on a GPU, judged: `make gpu` installs them and does all of it.

    python -m sinkproof.gpu list                     the kernels, and which of them are installed
    python -m sinkproof.gpu unit                     how this card's matrix unit adds up, as a word of a policy
    python -m sinkproof.gpu run DIR [--kernels fla]  runs them on the calls in DIR/bf16, DIR/f16 and DIR/f32
    python -m sinkproof.gpu judge DIR                judges what they computed, and prints a table

`run` writes the calls with `sinkproof judge --emit` where DIR has none, and the outputs of a kernel as
DIR/FORMAT-KERNEL-PIECES.safetensors, whose tensors are named CALL/A11. `judge` needs no GPU: the outputs can be brought
to another machine. $SINKPROOF is the command (sinkproof). A call that a kernel refuses is counted as not served.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from sinkproof._library import Error
from sinkproof.adapters._torch import DTYPES, device_text
from sinkproof.kernels import KERNELS, Call, Kernel, in_pieces, kernel_named

REFUSED = 3
FORMATS = {short: name for name, short in DTYPES.items()}
FUSED = {"f32": ["f32"], "bf16": ["bf16", "bf16,acc=hopper"], "f16": ["f16", "f16,acc=hopper"]}


def said_by_sinkproof(*words: str) -> subprocess.CompletedProcess[str]:
    command = os.environ.get("SINKPROOF", "sinkproof")
    try:
        return subprocess.run([command, *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise Error(f"{command}: {error.strerror}. SINKPROOF names the command") from None


def calls_in(folder: pathlib.Path, dtype: str) -> list[dict[str, Any]]:
    """The cases of a manifest; written where there is none."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        told = said_by_sinkproof("judge", "--emit", str(folder), "--stages", "attention", "--policy", dtype)
        if told.returncode:
            raise Error(told.stderr.strip())
    cases: list[dict[str, Any]] = json.loads(manifest.read_text(encoding="utf-8"))["cases"]
    return cases


# ------------------------------------------------------------------------------------------
# Running


def card(device: str) -> str:
    """"NVIDIA H100 80GB HBM3, CUDA 13.0", or "cpu"."""
    import torch
    if not device.startswith("cuda"):
        return device
    if not torch.cuda.is_available():
        raise Error("no GPU that torch can use; --device cpu runs the kernels that have a path there")
    return f"{device_text(device)}, CUDA {torch.version.cuda}"


def call_of(path: pathlib.Path, window: int, dtype: str, device: str) -> Call:
    import torch
    from safetensors.torch import load_file
    x = {name: value.to(device, getattr(torch, FORMATS[dtype])) for name, value in load_file(path).items()}
    return Call(x["A4.q"], x["A4.k"], x["A2.v"], x["sinks"], window)


def run_kernel(kernel: Kernel, pieces: str, dtype: str, folder: pathlib.Path, options: argparse.Namespace) -> None:
    """All calls of one format through a kernel; the outputs become one file."""
    from safetensors.torch import save_file
    begun, outputs, refused, why = time.monotonic(), {}, 0, ""
    cases = calls_in(folder, dtype)[::options.every]
    for case in cases:
        if options.seconds and time.monotonic() - begun > options.seconds:
            why = why or f"stopped after {options.seconds} s"
            break
        try:
            call = call_of(folder / case["inputs"], case["window"], dtype, options.device)
            outputs[f"{case['inputs'].split('.')[0]}/A11"] = in_pieces(kernel, pieces, call).contiguous().cpu()
        except Exception as error:  # what a kernel says of a shape that it does not serve
            refused += 1
            why = why or (f"{case['case'].split(',inputs')[0]}: {type(error).__name__}: "
                          f"{' '.join(str(error).split())[:160]}")
    name = f"{dtype}-{kernel.name}-{pieces}{'-tf32' * options.tf32}"
    if outputs:
        told = {"kernel": kernel.name, "pieces": pieces, "format": dtype, "device": options.card,
                **({"tf32": "allowed"} if options.tf32 else {}), **kernel.versions()}
        save_file(outputs, str(folder.parent / f"{name}.safetensors"), metadata=told)
    print(f"{name}: {len(outputs)} of {len(cases)} calls, {refused} not served, "
          f"{time.monotonic() - begun:.0f} s{'; ' * bool(why)}{why}", flush=True)


def run(options: argparse.Namespace) -> int:
    import torch
    options.card = card(options.device)
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    for name in options.kernels.split(",") if options.kernels else [kernel.name for kernel in KERNELS]:
        kernel = kernel_named(name)
        for dtype in options.formats.split(","):
            for pieces in kernel.pieces if dtype in kernel.dtypes else ():
                run_kernel(kernel, pieces, dtype, options.dir / dtype, options)
    return 0


# ------------------------------------------------------------------------------------------
# The matrix unit

ONE = 2.0 ** 14  # the larger terms: float16 holds results down to 2^-24
MOST = 38        # fraction bits that are tried
LENGTH = 64      # terms of a sum


def sum_on(device: str, dtype: str, terms: dict[int, float]) -> float:
    """A product of two rows on the card, whose terms at these places are given and short; the others are 0."""
    import torch
    kind = getattr(torch, FORMATS[dtype])
    a, b = torch.zeros(LENGTH, LENGTH, dtype=torch.float64), torch.zeros(LENGTH, LENGTH, dtype=torch.float64)
    for place, term in terms.items():
        half = 2.0 ** (math.frexp(term)[1] // 2)  # float16 holds no small term, but both its factors
        a[:, place], b[place] = term / half, half
    return float((a.to(device, kind) @ b.to(device, kind))[0, 0])


def matrix_unit(dtype: str, device: str) -> str:
    """How products are added up: "tensor-core(25,16)", or what was found instead."""
    def beside_one(place: int, bit: int) -> float:
        return sum_on(device, dtype, {0: ONE, 1: -ONE, place: ONE * 2.0 ** -bit})

    if sum_on(device, dtype, {0: ONE, 1: ONE * 0.75 * 2.0 ** -23, LENGTH - 1: -ONE}) != 0:
        return "1 and 3/4 of an ulp of float32 are not cut to 1: sums are rounded, or not in order"
    kept = [bit for bit in range(1, MOST) if beside_one(2, bit) == ONE * 2.0 ** -bit]
    bits = len(kept)
    if kept != list(range(1, bits + 1)) or bits == MOST - 1:
        return f"of 2^-1 to 2^-{MOST - 1}, {bits} are kept beside 1: no unit that cuts at one place"
    lost = [place for place in range(2, LENGTH) if beside_one(place, bits + 5) == 0]
    if lost != list(range(2, len(lost) + 2)) or len(lost) == LENGTH - 2:
        return f"{bits} bits; beside the first two, places {lost} are cut: they are no block"
    return f"tensor-core({bits},{len(lost) + 2})" + beside_emulation(dtype, device, bits, len(lost) + 2)


def exponents(x: Any) -> Any:
    import numpy as np
    return np.where(x == 0, -2000, np.frexp(x)[1] - 1)


def cut(x: Any, quantum: Any) -> Any:
    import numpy as np
    return np.trunc(x / quantum) * quantum


def emulated(a: Any, b: Any, bits: int, block: int) -> Any:
    """Rows of a [m, k] times columns of b [k, r], as tensor-core(bits, block, 1) adds them up, in order."""
    import numpy as np
    total = np.zeros((a.shape[0], b.shape[1]))
    for at in range(0, a.shape[1], block):
        x, y = a[:, at:at + block, None], b[None, at:at + block]
        scales = np.where(x * y == 0, -2000, exponents(x) + exponents(y)).max(axis=1)
        quantum = np.ldexp(1.0, np.maximum(scales, exponents(total)) - bits)
        total = cut(x * y, quantum[:, None]).sum(axis=1) + cut(total, quantum)
        total = cut(total, np.ldexp(1.0, exponents(total) - min(bits, 23)))
    return total


def beside_emulation(dtype: str, device: str, bits: int, block: int) -> str:
    """Of random products of 64 x 64 elements, how many are equal to the emulation bit for bit, by length."""
    import torch
    said = []
    for length in (64, 512, 2880):
        made = torch.Generator().manual_seed(length)
        kind = getattr(torch, FORMATS[dtype])
        a, b = (torch.randn(shape, generator=made).to(kind) for shape in ((64, length), (length, 64)))
        if dtype == "f32":  # as TF32 holds them, so that no operand is rounded
            a, b = ((x.view(torch.int32) & ~0x1fff).view(torch.float32) for x in (a, b))
        wide = {} if dtype == "f32" else {"out_dtype": torch.float32}
        found = torch.mm(a.to(device), b.to(device), **wide).double().cpu().numpy()
        equal = int((found == emulated(a.double().numpy(), b.double().numpy(), bits, block)).sum())
        said.append(f"{equal} of {found.size} at {length}")
    return f"; equal to the emulation of one sum bit for bit: {', '.join(said)} terms"


def unit(options: argparse.Namespace) -> int:
    import torch
    print(card(options.device))
    for dtype in FORMATS:
        torch.backends.cuda.matmul.allow_tf32 = True  # float32 has a matrix unit as TF32 alone
        print(f"{dtype:5} {matrix_unit(dtype, options.device)}", flush=True)
    return 0


# ------------------------------------------------------------------------------------------
# Judging


def outputs_of(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, str]]:
    """{call: A11 in float32}, and the file's metadata."""
    import torch
    from safetensors import safe_open
    with safe_open(str(path), framework="pt") as file:
        return ({name.split("/")[0]: file.get_tensor(name).to(torch.float32) for name in file.keys()},
                dict(file.metadata() or {}))


def judged(folder: pathlib.Path, outputs: dict[str, Any], policy: str) -> dict[str, Any]:
    """The verdict of `judge --collect` on the outputs of some of the calls."""
    from safetensors.torch import save_file
    with tempfile.TemporaryDirectory() as laid:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        # the pieces of a kernel are its own, not those of the manifest
        manifest["cases"] = [{**case, "case": re.sub(",chunk=[0-9]+,", ",chunk=0,", case["case"])}
                             for case in manifest["cases"] if case["inputs"].split(".")[0] in outputs]
        pathlib.Path(laid, "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        for call, values in outputs.items():
            save_file({"A11": values.contiguous()}, f"{laid}/{call}.out.safetensors")
        told = said_by_sinkproof("judge", "--collect", laid, "--policy", policy, "--json", "-")
    if not told.stdout:
        raise Error(told.stderr.strip())
    row: dict[str, Any] = json.loads(told.stdout)["results"][0]
    return row


def rows_of(path: pathlib.Path, policies: Sequence[str]) -> Iterator[str]:
    outputs, told = outputs_of(path)
    versions = ", ".join(f"{key} {value}" for key, value in told.items()
                         if key not in ("kernel", "pieces", "format", "device", "torch", "triton"))
    for policy in policies or FUSED[told["format"]]:
        found = judged(path.parent / told["format"], outputs, policy)
        yield (f"| {told['kernel']} ({versions or 'no version'}) | {told['pieces']} | {told['format']} | `{policy}` "
               f"| {found['calls']} | {found['failing']} | {found['suspicious']} | {found['undecided']} "
               f"| {found.get('why', '') if found['failing'] else ''} |")


def judge(options: argparse.Namespace) -> int:
    paths = sorted(path for path in options.dir.glob("*.safetensors"))
    if not paths:
        raise Error(f"{options.dir}: expected outputs FORMAT-KERNEL-PIECES.safetensors, found none")
    told = outputs_of(paths[0])[1]
    print(f"{told.get('device', 'no device')}, torch {told.get('torch', '?')}, Triton {told.get('triton', '?')}\n")
    print("| kernel | pieces | format | policy | calls | fail | suspicious | undecided | smallest call that fails |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in paths:
        for row in rows_of(path, options.policy or ()):
            print(row, flush=True)
    return 0


def list_kernels(_: argparse.Namespace) -> int:
    for kernel in KERNELS:
        found = [f"{name} {version}" for name, version in kernel.versions().items() if name in kernel.packages]
        print(f"{kernel.name:15} {kernel.title}; {', '.join(kernel.pieces)}: {', '.join(found) or 'not installed'}")
    return 0


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sinkproof.gpu", allow_abbrev=False,
                                     description="Runs published attention kernels on a GPU, and judges them.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="the kernels, and which are installed").set_defaults(does=list_kernels)
    units = commands.add_parser("unit", help="how this card's matrix unit adds up, as a word of a policy")
    units.set_defaults(does=unit)
    running = commands.add_parser("run", help="run kernels on the calls of `sinkproof judge --emit`")
    running.set_defaults(does=run)
    running.add_argument("--kernels", metavar="NAMES", help="with commas between them (all)")
    running.add_argument("--formats", default="bf16,f16,f32", metavar="FORMATS", help="bf16,f16,f32")
    running.add_argument("--every", type=int, default=1, metavar="K", help="every Kth call alone")
    running.add_argument("--seconds", type=int, metavar="N", help="leave a kernel after this time")
    judging = commands.add_parser("judge", help="judge outputs; needs no GPU")
    judging.set_defaults(does=judge)
    judging.add_argument("--policy", action="append", metavar="POLICY", help="may be repeated (what fused kernels do)")
    running.add_argument("--tf32", action="store_true", help="torch may round float32 operands to TF32")
    for own in (running, judging):
        own.add_argument("dir", type=pathlib.Path, metavar="DIR", help="of the calls and the outputs")
    for own in (units, running):
        own.add_argument("--device", default="cuda", help="torch's name of it (cuda)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parsed(argv)
    try:
        returned: int = options.does(options)
        return returned
    except (Error, KeyError) as error:
        print(f"sinkproof.gpu: {error.args[0]}", file=sys.stderr)
    except ImportError as error:
        print(f"sinkproof.gpu: a Python package is missing: {error}", file=sys.stderr)
    return REFUSED


if __name__ == "__main__":
    sys.exit(main())
