# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Honest deployments, drawn: ranks, split products, matrix units, formats of operands and caches, roundings that a
policy admits, and their orders. None may be convicted; a mistake beside each freedom must be.

    python3 tests/audit/test_drawn_deployments.py [N [SEED [FREEDOM]]]     more draws, of all or of one (WHOLE=1: more traces of hinted ranks)

Each line counts one freedom.

The reference computes one member of a policy. What it does not draw, the engines of deployed.py do.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared")]
import checkpoints  # noqa: E402
import deployed  # noqa: E402
from checkpoints import TAP, report, sinkproof  # noqa: E402

CONFIG = checkpoints.STATED | checkpoints.SMALL | {
    "hidden_size": 64, "intermediate_size": 32, "num_local_experts": 8, "num_experts_per_tok": 4, "vocab_size": 61,
    "num_hidden_layers": 1, "num_attention_heads": 8, "sliding_window": 16}
BASES = ("bf16", "f16", "f32", "openai-bf16", "hf-bf16", "bf16-operands", "vllm-bf16", "flash-bf16", "flash-f16")
PRODUCTS = ("A2", "A12", "M2", "M5", "M9", "F2")  # a stored weight times activations
READ = ("A2.in", "A12.in", "M2.in", "M5.in", "M9.in", "F2.in")
CACHED = ("A5.q", "A5.k", "A11.v")
NUMBERS = ("tf32", "tf32-cut", "e4m3", "e5m2")
SCALED = ("e4m3(token)", "int8(token)", "int8(0.05)", "e5m2(0.5)", "mxfp8", "mxfp8-up", "nvfp4(token)")
OF_HEADS = ("e4m3(head)", "int8(token-head)", "e5m2(tensor)", "e4m3(tensor)", "int8(head)")
ROUNDED = ("A1.norm", "M1.norm", "F1.norm", "A9.unnorm", "A11.part")
CORES = ("hopper", "tensor-core(25,8)", "tensor-core(25,16,1)", "tensor-core(24,4)", "tensor-core(13,32)")
# The tensors from which each engine computes its point: with it, all that its trace shows.
INPUTS = {"00.A2.q": ("00.A1",), "00.A12": ("00.A11",), "F2": ("F1",), "00.M11": ("00.M3", "00.M4", "00.M10"),
          "00.M10": ("00.M3", "00.M8"), "00.M11/M8": ("00.M3", "00.M4", "00.M8"),
          "00.A11": ("00.A4.q", "00.A4.k", "00.A2.v")}
WEIGHTS = {"00.A2.q": "self_attn.q_proj", "00.A12": "self_attn.o_proj", "F2": "lm_head"}

Draw = collections.namedtuple("Draw", "does declares tokens")


def stored(base):
    return "f32" if base in ("f32", "bf16-operands") else "f16" if "f16" in base and "bf16" not in base else "bf16"


# ---- draws ---------------------------------------------------------------------------------------

def core(draw):
    if draw.random() < 0.5:
        return draw.choice(CORES)
    sums = draw.choice(("", "", ",1", ",2"))
    return f"tensor-core({draw.randint(10, 28)},{draw.choice((4, 8, 16, 32))}{sums})"


def units(draw, _):
    if draw.random() < 0.3:
        return [f"acc={core(draw)}"]
    return [f"{p}.acc={core(draw)}" for p in draw.sample((*PRODUCTS, "A5", "A11"), draw.randint(1, 3))]


def split(draw, base):
    form = draw.choice((stored(base), stored(base), "bf16", "f16", "f32"))
    return [f"{p}.acc=blocks({draw.randint(4, 64)},{form})" for p in draw.sample(PRODUCTS, draw.randint(1, 3))]


def ranks(draw, base):
    if draw.random() < 0.3:
        return [f"ranks={draw.choice((2, 3, 4, 8))}"]
    words = [f"{p}.acc=ranks({draw.choice((2, 4, 8))},{draw.choice((stored(base), 'bf16', 'f16'))})"
             for p in draw.sample(PRODUCTS, draw.randint(1, 2))]
    return words + ([f"M11.sum=ranks({draw.choice((2, 4, 8))},{stored(base)})"] if draw.random() < 0.5 else [])


def formats(draw, _):
    points = draw.sample(READ + CACHED, draw.randint(1, 4))
    return [f"{p}={draw.choice(NUMBERS + SCALED + (OF_HEADS if p in CACHED else ()))}" for p in points]


def roundings(draw, base):
    form = draw.choice((stored(base), stored(base), "bf16", "f16"))
    return [f"{p}={form}" for p in draw.sample(ROUNDED, draw.randint(1, 3))]


WORDS = {"matrix units": units, "split products": split, "ranks": ranks, "formats of operands": formats,
         "roundings": roundings}


def of_reference(draw, freedom):
    """Words of one freedom, in some draws of two; some are declared optional, and then done or not."""
    base = draw.choice(BASES)
    words = WORDS[freedom](draw, base)
    words += draw.choice(list(WORDS.values()))(draw, base) if draw.random() < 0.3 else []
    does, declares, said = [base], [base], set()
    for word in words:
        point = word.split("=")[0]
        if point in said or said and {"acc", "ranks"} & {point, *said}:
            continue
        said.add(point)
        if point == "A9.unnorm":  # a kernel that rounds exponentials rounds no weights
            does, declares = [*does, "A9=real"], [*declares, "A9=real"]
        optional = draw.random() < 0.35 and "tensor-core" not in word and "hopper" not in word and point != "ranks"
        declares.append(word + "?" * optional)
        does.append(f"{point}=real" if optional and draw.random() < 0.5 else word)
    tokens = f"random:{draw.choice((1, 3, 12, 20))},seed={draw.randrange(99)}"
    return Draw(",".join(does), ",".join(declares), tokens)


def of_product(draw, point, base, slip):
    """(the words of the freedom, how the product is computed)"""
    cols, form = CONFIG["hidden_size"], draw.choice((stored(base), "bf16"))
    name = "A2" if point == "00.A2.q" else point.split(".")[-1]
    if point == "00.A2.q":
        bits, block = draw.randint(10, 28) if not slip else 24, 16 if slip else draw.choice((4, 8, 16, 32))
        sums, said = (1, ",{0}") if slip else (draw.choice((1, 2)), draw.choice(("", ",{0}")))
        return (f"{name}.acc=tensor-core({bits},{block}{said.format(sums)})",
                deployed.Core(draw, cols, bits, block, sums, slip))
    if point == "00.A12":
        many = draw.choice((2, 4, 8))
        alike = form == stored(base) and draw.random() < 0.5
        words = f"ranks={many}" if alike else f"A12.acc=ranks({many},{form})" + draw.choice(("", "?"))
        return words, deployed.Split(draw, cols, cols // many, form, True, slip)
    width = 8 if slip else draw.randint(4, 40)
    said = 16 if slip == "blocks of another size" else width
    return f"{name}.acc=blocks({said},{form})", deployed.Split(draw, cols, width, form, False, slip)


def of_slices(draw, base, weight, here, slip):
    """M10: each expert's down-projection in slices on ranks, the bias on the first or after the sum."""
    ids, x = here
    many, form = draw.choice((2, 4, 8)), stored(base)
    hidden, inter = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    how = deployed.Split(draw, inter, inter // many, form, True, slip)
    down, bias = weight("mlp.experts.down_proj"), weight("mlp.experts.down_proj_bias")
    numbers = []
    for e, row in zip(ids, deployed.rows(x, inter)):
        matrix = [down[e * inter * hidden + c:(e + 1) * inter * hidden:hidden] for c in range(hidden)]
        numbers += [deployed.to(form, how.product(row, matrix[c], bias[e * hidden + c], c)) for c in range(hidden)]
    return draw.choice((f"ranks={many}", f"M9.acc=ranks({many},{form})")), numbers


ORDERS = {"ranks in any order": "00.A12", "blocks in any order": "F2", "matrix units in any order": "00.A2.q",
          "slices of experts": "00.M10", "experts on ranks": "00.M11", "parts of the keys": "00.A11",
          "quotients": "00.A11", "slices, mixed first": "00.M11/M8"}
FREEDOMS = [*WORDS, *ORDERS]


def engine_of(draw, model, trace, freedom, base, slip, ranks=None):
    """(the words of the freedom, the point's numbers as the engine of a deployment computes them)"""
    point = ORDERS[freedom]
    here = [checkpoints.numbers_of(trace[x][0], trace[x][2]) for x in INPUTS[point]]
    form = deployed.STORED[trace[point.split("/")[0]][0]]

    def weight(name):
        tensor = model[name if name.startswith("lm_head") else f"model.layers.0.{name}"]
        return checkpoints.numbers_of(tensor[0], tensor[2])
    if point in WEIGHTS:
        words, how = of_product(draw, point, base, slip)
        w, bias = weight(f"{WEIGHTS[point]}.weight"), None if point == "F2" else weight(f"{WEIGHTS[point]}.bias")
        return words, deployed.projected(how, here[0], w, bias, CONFIG["hidden_size"], form)
    if point == "00.M10":
        return of_slices(draw, base, weight, here, slip)
    if point == "00.M11/M8":  # from M8, where no rank has a whole M10
        many = ranks or draw.choice((2, 3, 4, 8))
        sizes = CONFIG["num_experts_per_tok"], CONFIG["hidden_size"], CONFIG["intermediate_size"]
        how = deployed.Split(draw, sizes[2], -(-sizes[2] // many), form, True, slip)
        down, bias = weight("mlp.experts.down_proj"), weight("mlp.experts.down_proj_bias")
        words = draw.choice((f"ranks={many}", f"slices={many}", f"M11.part=ranks({many},{form})"))
        return words, deployed.sliced_experts(how, *here, down, bias, sizes, form)
    if point == "00.M11":
        many = ranks or draw.choice((2, 4, 8))
        sizes = CONFIG["num_experts_per_tok"], CONFIG["hidden_size"], CONFIG["num_local_experts"]
        words = draw.choice((f"ranks={many}", f"M11.sum=ranks({many},{form})"))
        return words, deployed.experts_on_ranks(draw, *here, sizes, many, form, form, slip)
    sizes = (trace["tokens"][1][0], CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"], CONFIG["head_dim"],
             CONFIG["sliding_window"])
    half = stored(base) if stored(base) != "f32" else "bf16"
    if freedom == "quotients":
        ulps, word = draw.choice((1, 2, 16, 64)) if not slip else 64, draw.choice(("div", "rcp"))
        how = deployed.Divided(draw, ulps, word == "rcp", slip)
        return f"{word}={ulps}ulp", deployed.attended(how, *here, weight("self_attn.sinks"), sizes, form)
    how = deployed.Merged(draw, half, slip)
    part = f"levels({how.levels},{half})" if how.levels > 1 else half
    return f"A9.unnorm={half}?,A11.part={part}?", deployed.attended(how, *here, weight("self_attn.sinks"), sizes, form)


# ---- a draw --------------------------------------------------------------------------------------

def judged(model, trace, policy, local):
    """(what the judge called it, notes)"""
    words = ["judge", model, str(trace), "--policy", policy, "--json", "-", "--no-diagnosis", "--no-hint"]
    status, out, told = sinkproof(*words, *(["--local"] if local else []), OMP_NUM_THREADS="1")
    if not out.startswith("{"):
        return "refused", [f"judge {policy}: exit {status}: {told}"]
    whole, *each = json.loads(out)["results"]
    bad = [f"{p['id']} {p['verdict']}, {p['outside']} of {p['elements']} outside, drift {p['drift']}"
           for p in each if p["verdict"] not in ("exact", "within")]
    return whole["verdict"], [f"judge {policy}: exit {status}", *bad]


def outcome(work, number, seed, freedom, slip=None):
    """(what the judge called it, notes) of one draw"""
    draw = random.Random(f"{seed} {number} {freedom} {slip}")
    folder = work / f"{seed} {number} {freedom} {slip}"
    tensors = checkpoints.weights(CONFIG, draw.randrange(1 << 30))
    model, trace = checkpoints.write(folder, tensors, CONFIG), folder / "trace"
    one = of_reference(draw, freedom) if freedom in WORDS else None
    base = draw.choice(("bf16", "f16", "f32")) if slip not in IN_F32 else "f32"
    n = LEANING if slip in LEAN else draw.choice((4, 8, 20)) if ORDERS.get(freedom) == "00.A11" else 6
    does, declares = (one.does, one.declares) if one else (base, base)
    if freedom in WORDS and slip:
        does, declares = BESIDE[slip]
    tokens = one.tokens if one and not slip else f"random:{n},seed={number}"
    status, _, told = sinkproof("run", model, "--policy", does, "--tokens", tokens, "--trace", str(trace),
                                OMP_NUM_THREADS="1")
    notes = [f"{freedom}, draw {number} of {seed}, {slip}: run --policy {does} --tokens {tokens}"]
    if status:
        return "refused", [*notes, f"run exits with {status}: {told}"]
    if freedom in ORDERS:
        point = ORDERS[freedom]
        shown, metadata = checkpoints.read(trace)
        words, numbers = engine_of(draw, tensors, shown, freedom, base, slip)
        kept = {x: shown[x] for x in ("tokens", "positions", *INPUTS[point])}
        point = point.split("/")[0]
        kept[point] = shown[point][0], shown[point][1], deployed.packed(shown[point][0], numbers)
        trace.write_bytes(checkpoints.safetensors(kept, metadata))
        declares += f",{words}"
    verdict, said = judged(model, trace, declares, freedom in ORDERS)
    return verdict, notes + said


# A mistake beside each freedom: of the reference (what it does, what is declared), and of the other engines.
BESIDE = {"22 bits for 24": ("f32,acc=tensor-core(22,16,1)", "f32,acc=tensor-core(24,16,1)"),
          "blocks of 8 for 16": ("bf16,F2.acc=blocks(8,bf16)", "bf16,F2.acc=blocks(16,bf16)"),
          "two ranks for four": ("bf16,A12.acc=ranks(4,bf16)", "bf16,A12.acc=ranks(2,bf16)"),
          "a scale of each token for one of each head": ("f32,A5.k=e4m3(token)", "f32,A5.k=e4m3(head)"),
          "rounded values for rounded weights": ("f32,A11.v=bf16", "f32,A9.unnorm=bf16")}
# A lean is seen over many elements.
LEAN, LEANING = ("22 bits for 24", "cut eight times as far"), 100
IN_F32 = ("cut eight times as far", "a quotient four times as far")  # bfloat16 would hide them
SLIPS = [*zip(WORDS, BESIDE), ("ranks in any order", "a rank left out"), ("ranks in any order", "bias by every rank"),
         ("blocks in any order", "blocks of another size"), ("matrix units in any order", "cut eight times as far"),
         ("slices of experts", "bias by every rank"), ("experts on ranks", "an expert twice"),
         ("slices, mixed first", "bias by every rank"), ("slices, mixed first", "a rank left out"),
         ("parts of the keys", "LSE off by ln 2"), ("quotients", "a quotient four times as far")]


# Draws that were convicted once: of seed and number, or what an engine does, what is declared, the points shown.
KEPT = [(2, 195, "slices of experts"), (2, 492, "slices of experts")]
PARTS = "T0,A1,A2,A4,A11,A12"  # no weights of attention
NAMED = [("f32,A11.part=f16", "f32,A11.part=f16?", PARTS), ("f32,A11.part=f16", "f32,A11.part=f16", PARTS),
         ("f32,A11.part=f16", "f32,A11.part=f16?", f"A9,{PARTS}"), ("f32", "f32,A11.part=f16?", f"A9,{PARTS}")]


def named(work):
    for does, declares, shown in NAMED:
        model, trace = "synthetic:tiny,layers=1", work / "named"
        status, _, told = sinkproof("run", model, "--policy", does, "--tokens", "random:20,seed=5", "--points", shown,
                                    "--trace", str(trace))
        verdict, notes = judged(model, trace, declares, False)
        report(status == 0 and verdict == "within",
               f"{does} under {declares}, shown {shown}: bound.parts-merged, {verdict}", [told, *notes])


# the deployment of a trace, what its engine shows beside M11, and what the report names under bf16
WITHIN = "All of it would be within"
HINTED = [("slices, mixed first", ("00.M3", "00.M4", "00.M8"), "bf16,slices=2"),
          ("slices, mixed first", ("00.M3", "00.M4", "00.M8", "00.M10"), "bf16,slices=2"),
          ("slices, mixed first", ("00.M3", "00.M4", "00.M10"), None),
          ("experts on ranks", ("00.M3", "00.M4", "00.M10"), "bf16,ranks=2")]


def hinted(work):
    """Two ranks, of whose deployment the policy says nothing. A trace that shows M10 alone has no slices."""
    for freedom, kept, cause in HINTED:
        found, of = collections.Counter(), 6 if "WHOLE" in os.environ else 3
        for number in range(of):
            draw = random.Random(f"hinted {number}")
            tensors = checkpoints.weights(CONFIG, number)
            model, trace = checkpoints.write(work / "hinted", tensors, CONFIG), work / "hinted" / "trace"
            sinkproof("run", model, "--policy", "bf16", "--tokens", f"random:12,seed={number}", "--trace", str(trace))
            shown, metadata = checkpoints.read(trace)
            _, numbers = engine_of(draw, tensors, shown, freedom, "bf16", None, 2)
            shown = {x: shown[x] for x in ("tokens", "positions", *kept, "00.M11")}
            shown["00.M11"] = *shown["00.M11"][:2], deployed.packed("BF16", numbers)
            trace.write_bytes(checkpoints.safetensors(shown, metadata))
            _, out, _ = sinkproof("judge", model, str(trace), "--policy", "bf16", "--local", "--no-diagnosis")
            said = next((line for line in out.splitlines() if line.startswith(WITHIN)), "")
            found[said.partition("--policy ")[2] or None] += 1
        report(2 * found[cause] > of and not set(found) - {cause, None}, f"bound.parts-mixed {freedom}, {'+'.join(kept)} shown: named {dict(found)} of {of}")


def counted(freedom, ended):
    """One line of a freedom's honest draws."""
    told = collections.Counter(verdict for verdict, _ in ended)
    bad = [notes for verdict, notes in ended if verdict not in ("exact", "within", "undecided")]
    counts = ", ".join(f"{told[v]} {v}" for v in sorted(told))
    report(bool(ended) and not bad, f"{freedom}: {len(bad)} of {len(ended)} honest draws convicted ({counts})",
           [line for notes in bad for line in notes])
    return len(bad)


def main():
    many = int(sys.argv[1]) if len(sys.argv) > 1 else len(FREEDOMS)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20261127
    freedoms = [sys.argv[3]] if len(sys.argv) > 3 else FREEDOMS
    asked = [(seed, n, freedoms[n % len(freedoms)]) for n in range(many)]
    with tempfile.TemporaryDirectory() as folder:
        work, jobs = pathlib.Path(folder), int(os.environ.get("TEST_JOBS") or os.cpu_count())
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            found = [pool.submit(outcome, work, n, of_seed, freedom) for of_seed, n, freedom in asked]
            kept = [pool.submit(outcome, work, n, of_seed, freedom) for of_seed, n, freedom in KEPT]
            caught = [pool.submit(outcome, work, n, seed, *slip) for n, slip in enumerate(SLIPS)]
            convicted = sum(counted(freedom, [f.result() for f, (_, _, of) in zip(found, asked) if of == freedom])
                            for freedom in freedoms[:many])
            counted("draws that were convicted once", [f.result() for f in kept])
            for (freedom, slip), future in zip(SLIPS, caught):
                verdict, notes = future.result()
                report(verdict in ("bug", "suspicious"), f"{freedom}, {slip}: {verdict}", notes)
        named(work)
        hinted(work)
    print(f"# {convicted} of {many} honest draws convicted, seed {seed}")
    return TAP.done()


if __name__ == "__main__":
    sys.exit(main())
