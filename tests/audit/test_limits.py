# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Every size that a model may have, at its edge: below it the engines agree and the judge finds both
honest, above it the one that cannot is refused by name with exit 3, before anything is written.

Agreement: `lanes` and `fast` print the same digits, and the traces of `ref` and `fast` are judged.
"""
import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

TOKENS = ",".join(str(t % 7) for t in range(1, 14))


def run(model, engine, *words, tokens=TOKENS, policy="f32", **variables):
    return sinkproof("run", model, "--tokens", tokens, "--engine", engine, "--policy", policy, *words, **variables)


def instruction_sets():
    """Those that run here and give the bits of the emulation."""
    cpu = checkpoints.json.loads(sinkproof("info", "--cpu", "--json", "-")[1])["results"][0]
    return [s["name"] for s in cpu["sets"] if s["runs"] and s["mode"] == "lanes"]


def honest(model, what, work, tokens=TOKENS, engines=("ref", "lanes", "fast"), sets=None):
    """The engines that are named run, agree, and are honest; fast on the instruction sets, or on those that are named."""
    printed = {}
    for engine in engines:
        trace = str(work / f"{engine}.trace")
        status, printed[engine], told = run(model, engine, "--trace", trace, tokens=tokens)
        report(status == 0, f"{what}: {engine} exits with {status} {told if status else ''}")
        if engine == "lanes" or status:
            continue
        status, out, told = sinkproof("judge", model, trace, "--policy", "f32")
        report(status == 0, f"{what}: the trace of {engine} is judged with exit {status} "
                            f"{told or out[-300:] if status else ''}")
    if "fast" not in engines:
        return
    report(printed["fast"] == printed["lanes"], f"{what}: lanes and fast print the same")
    sets = SETS if sets is None else sets
    for policy in ("f32", "bf16-operands"):
        expected = run(model, "lanes", tokens=tokens, policy=policy)[1]
        wrong = [isa for isa in sets
                 if run(model, "fast", tokens=tokens, policy=policy, SINKPROOF_ISA=isa)[1] != expected]
        report(bool(sets) and not wrong,
               f"{what}: fast prints the same under {policy} on {len(sets)} instruction sets {' '.join(wrong)}")


def refused(status, told, words, what):
    report(status == 3 and all(w in told for w in words), f"model.config {what}: exit {status}, {told[-250:]}")


def made(work, name, **changes):
    config = checkpoints.STATED | checkpoints.SMALL | changes
    return checkpoints.write(work / name, checkpoints.weights(config), config)


def heads(work):
    """head_dim: fast up to 1,024, ref and lanes any; the heads of a group: any."""
    wide = {"num_attention_heads": 2, "num_key_value_heads": 1}
    honest(made(work, "narrow", head_dim=2), "head_dim 2", work)
    honest(made(work, "odd-head", head_dim=22), "head_dim 22", work)
    honest(made(work, "widest", head_dim=1024, **wide), "head_dim 1024", work)
    said = " ".join(sinkproof("run", "--help")[1].split())
    report("fast takes a head_dim up to 1024" in said, "model.config run --help says the largest head_dim of fast")
    said = " ".join(sinkproof("synth", "--help")[1].split())
    report("hf or gguf only: write MXFP4" in said and "(null)" not in said,
           "synth --help names the layouts that --dequantize takes, and nothing else")
    for dim in (1026, 2048, *((4096, 8192) if "WHOLE" in os.environ else ())):
        model, left = made(work, f"dim-{dim}", head_dim=dim, **wide), work / "left.trace"
        status, _, told = run(model, "fast", "--trace", str(left))
        refused(status, told, ["head_dim", "1024", str(dim), model], f"fast refuses head_dim {dim}")
        report(not left.exists(), f"model.config head_dim {dim}: nothing is written")
        if dim == 2048:
            honest(model, f"head_dim {dim}", work, engines=("ref", "lanes"))
    honest(made(work, "group", head_dim=4, num_attention_heads=130, num_key_value_heads=1),
           "130 heads on one key/value head", work)
    honest(made(work, "no-group", num_attention_heads=4, num_key_value_heads=4), "as many key/value heads", work)


def widths(work):
    """Widths that are no multiple of a vector, a block or a panel; and the smallest."""
    path = work / "odd.json"
    path.write_text(checkpoints.json.dumps(checkpoints.STATED | checkpoints.SMALL | {"hidden_size": 33}), encoding="utf-8")
    status, _, told = run(f"synthetic:{path}", "ref")
    refused(status, told, ["multiples of 32", "hidden 33"], "a synthetic model of width 33")
    honest(made(work, "odd", hidden_size=33, intermediate_size=35, vocab_size=19, head_dim=6,
                num_attention_heads=6), "hidden 33, inter 35, vocabulary 19, head_dim 6", work)
    honest(made(work, "one", hidden_size=1, intermediate_size=1, vocab_size=1, head_dim=2,
                num_attention_heads=1, num_key_value_heads=1, num_local_experts=1, num_experts_per_tok=1),
           "every width 1", work, tokens="0,0,0")
    honest(made(work, "windows", sliding_window=1), "a window of 1", work)
    honest(made(work, "wide-window", sliding_window=1 << 30), "a window beyond the context", work)


def experts(work):
    """Experts per token: engines take any number, the judge 64."""
    at = {"num_hidden_layers": 1, "num_local_experts": 70}
    honest(made(work, "chosen-64", num_experts_per_tok=64, **at), "64 of 70 experts", work)
    model, trace = made(work, "chosen-65", num_experts_per_tok=65, **at), str(work / "65.trace")
    printed = [run(model, engine, "--trace", trace) for engine in ("ref", "lanes", "fast")]
    report(all(p[0] == 0 for p in printed) and printed[1][1] == printed[2][1],
           "65 of 70 experts: lanes and fast print the same")
    status, _, told = sinkproof("judge", model, trace, "--policy", "f32")
    refused(status, told, [str(model), "65", "64"], "judge refuses 65 experts per token")
    many = (1 << 24) + 1
    config = checkpoints.STATED | checkpoints.SMALL | {"num_local_experts": many}
    path = work / "many.json"
    path.write_text(checkpoints.json.dumps(config), encoding="utf-8")
    status, _, told = run(f"synthetic:{path}", "fast")
    refused(status, told, ["number of experts", str(1 << 24), str(many)], "fast refuses 2^24 + 1 experts")


def layers(work):
    """Layers: names of three digits, 512 at most."""
    honest("synthetic:tiny,layers=101", "101 layers", work, tokens="1,2", sets=SETS[:1])
    status, _, told = run("synthetic:tiny,layers=512", "fast", tokens="1,2")
    report(status == 0, f"512 layers: exit {status}")
    status, _, told = run("synthetic:tiny,layers=513", "ref")
    refused(status, told, ["512 layers", "513"], "513 layers")


def context(work):
    """The context: its last position works in every engine, one further is refused."""
    model = made(work, "short", max_position_embeddings=13)
    honest(model, "a context of 13, full", work)
    for engine in ("ref", "lanes", "fast"):
        status, _, told = run(model, engine, tokens=TOKENS + ",1")
        refused(status, told, ["14 tokens", "context of 13"], f"{engine} refuses 14 tokens")
        status, _, told = run(model, engine, "--generate", "3")
        refused(status, told, ["15 tokens", "context of 13"], f"{engine} refuses to generate beyond the context")
        status, _, told = run(model, engine, "--generate", "1")
        report(status == 0, f"{engine} generates one token after the last position")
    status, _, told = run(model, "ref", tokens="17")
    refused(status, told, ["token id 17", "0 to 16"], "a token beyond the vocabulary")


def overflow(work):
    """Sums that overflow: which infinity comes first, and whether it meets the other (in a sum by FMA it
    does not, in one of rounded products it does), is a matter of the order. An honest engine may hold
    infinity or NaN there, and is not convicted of it; anywhere else NaN is outside."""
    def huge(name, shape, numbers):
        size = {"lm_head.weight": 3e38, "model.norm.weight": 4}.get(name)
        return [math.copysign(size, x) for x in numbers] if size else numbers
    config = {**checkpoints.STATED, **checkpoints.SMALL}
    model = checkpoints.write(work / "huge", checkpoints.weights(config, change=huge), config)
    for engine in ("ref", "lanes", "fast"):
        trace = work / f"{engine}.trace"
        status, _, told = run(model, engine, "--trace", str(trace))
        data = bytearray(trace.read_bytes())
        start = 8 + struct.unpack("<Q", data[:8])[0]
        places = {name: start + checkpoints.json.loads(data[8:start])[name]["data_offsets"][0] for name in ("F1", "F2")}
        logit, = struct.unpack_from("<f", data, places["F2"])
        report(status == 0 and math.isinf(logit), f"{engine} has logits that overflow, to {logit} {told if status else ''}")
        for planted, place, code, said in (("nothing planted", None, 0, "F2 undecided"),
                                           ("NaN for an infinite logit", "F2", 4, "1 element is NaN where nothing bounds"),
                                           ("NaN where nothing overflows", "F1", 1, "First divergence: F1.")):
            if place:
                struct.pack_into("<f", data, places[place], math.nan)
                trace.write_bytes(data)
            status, out, told = sinkproof("judge", model, str(trace), "--policy", "f32")
            fine = status == code and said in out
            report(fine, f"{engine}, {planted}: exit {status}, {said}{'' if fine else ': ' + (told or out[-300:])}")


SETS = instruction_sets()

if __name__ == "__main__":
    sys.exit(checkpoints.run(heads, widths, experts, layers, context, overflow))
