# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Mistakes that readers of GGUF files make, planted in transformers' run of SmolLM2, each judged and asked for its cause.

    make smollm2 && build/venv/bin/python tests/audit/interop_smollm2_planted.py           held against doc/engines/reports
    build/venv/bin/python tests/audit/interop_smollm2_planted.py --write                   keep what was found
    build/venv/bin/python tests/audit/interop_smollm2_planted.py NAME...                   these, with what was said

The weights are the file's, unpacked by the package `gguf`; a mistake is in a weight or in the code, in every layer or in
one. It must be convicted where it acts first, and named by a finding in the words that belong to it where the file says
so. A TAP program beside interop_smollm2.py.
"""
import collections
import contextlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "audit" / "python"), str(ROOT / "tests" / "shared"), str(ROOT / "tests" / "audit")]
from engines import changed  # noqa: E402
from tap import Tap  # noqa: E402

MODEL = ROOT / "build" / "models" / "smollm2.gguf"
KEPT = ROOT / "doc" / "engines" / "reports" / "smollm2.json"
TOKENS, DEEP = 12, 4  # tokens; a mistake in one layer is in this one
HEADS, GROUPS, DIM = 9, 3, 64

# plant: model -> context manager; point: where it acts first; words: what the diagnosis says when it names the cause.
Mistake = collections.namedtuple("Mistake", "says plant point words")


# ------------------------------------------------------------------------------------------
# Weights


@contextlib.contextmanager
def every(model, path, make):
    """Another weight of a part of each layer: make(the weight, the layer)."""
    import torch
    with contextlib.ExitStack() as stack:
        for layer in model.model.layers:
            part = layer.get_submodule(path)
            weight = torch.nn.Parameter(make(part.weight.detach(), layer))
            stack.enter_context(changed(part, "weight", weight))
        yield


def weights(path, make):
    return lambda model: every(model, path, make)


def one_weight(path, make):
    """Another weight of a part of one layer."""
    def plant(model):
        import torch
        part = model.model.layers[DEEP].get_submodule(path)
        return changed(part, "weight", torch.nn.Parameter(make(part.weight.detach())))
    return plant


def as_in_the_file(rows, layer):
    """The rows of a head as GGUF has them: the two of a rotated pair side by side."""
    return rows.view(-1, 2, DIM // 2, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def blocks(name):
    """The blocks of a Q4_1 matrix of the file: (scales, minima, whole numbers) of [rows, blocks, 1 or 32]."""
    import gguf
    import numpy as np
    import torch
    tensor, = (t for t in gguf.GGUFReader(str(MODEL)).tensors if t.name == name)
    assert tensor.tensor_type == gguf.GGMLQuantizationType.Q4_1
    raw = np.asarray(tensor.data).reshape(tensor.shape[1], -1, 20)
    d, m = (np.ascontiguousarray(raw[..., at:at + 2]).view(np.float16).astype(np.float32) for at in (0, 2))
    q = np.concatenate([raw[..., 4:] & 15, raw[..., 4:] >> 4], axis=-1).astype(np.float32)
    return tuple(torch.from_numpy(x) for x in (d, m, q))


def decoded(name, make):
    """make(scales, minima, whole numbers) of a matrix of the layer DEEP, as its weight."""
    def wrong(weight):
        d, m, q = blocks(f"blk.{DEEP}.{name}.weight")
        return make(d, m, q).reshape(weight.shape)
    return wrong


# ------------------------------------------------------------------------------------------
# Code


def theta(base):
    def plant(model):
        import torch
        return changed(model.model.rotary_emb, "inv_freq", 1.0 / base ** (torch.arange(0, DIM, 2).float() / DIM))
    return plant


def norms(name, value):
    @contextlib.contextmanager
    def plant(model):
        with contextlib.ExitStack() as stack:
            for norm in model.modules():
                if hasattr(norm, "variance_epsilon"):
                    stack.enter_context(changed(norm, name, value))
            yield
    return plant


def each_attention(name, value):
    @contextlib.contextmanager
    def plant(model):
        with contextlib.ExitStack() as stack:
            for layer in model.model.layers:
                stack.enter_context(changed(layer.self_attn, name, value))
            yield
    return plant


@contextlib.contextmanager
def exchanged(model):
    with contextlib.ExitStack() as stack:
        for layer in model.model.layers:
            gate, up = layer.mlp.gate_proj, layer.mlp.up_proj
            old = gate.weight, up.weight
            stack.enter_context(changed(gate, "weight", old[1]))
            stack.enter_context(changed(up, "weight", old[0]))
        yield


def kernel(make):
    """The module's function that gives each query head its key/value head."""
    def plant(model):
        modeling = sys.modules[type(model).__module__]
        return changed(modeling, "repeat_kv", make(modeling.repeat_kv))
    return plant


def one_head(right):
    """Head 5 reads the keys and values of the last group; the others read their own."""
    def wrong(x, n):
        y = right(x, n).clone()
        y[:, 5] = x[:, GROUPS - 1]
        return y
    return wrong


def half_residual(model):
    """The residual after a perceptron is stored in float16 in every layer."""
    def store(module, args, out):
        return out.half().float()

    @contextlib.contextmanager
    def plant():
        handles = [layer.register_forward_hook(store, prepend=True) for layer in model.model.layers]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
    return plant()


def from_one(model):
    """The rotation's positions are one too large."""
    rotary = model.model.rotary_emb
    right = rotary.forward
    return changed(rotary, "forward", lambda x, position_ids, *more: right(x, position_ids + 1, *more))


@contextlib.contextmanager
def plus_one(model):
    import torch
    with contextlib.ExitStack() as stack:
        for norm in model.modules():
            if hasattr(norm, "variance_epsilon"):
                stack.enter_context(changed(norm, "weight", torch.nn.Parameter(norm.weight.detach() + 1)))
        yield


def untied(model):
    """The head keeps what it was initialised with."""
    import torch
    torch.manual_seed(1)
    return changed(model.lm_head, "weight", torch.nn.Parameter(torch.randn_like(model.lm_head.weight) * 0.02))


MISTAKES = {
    "query-rows-of-the-file": Mistake("the rows of the queries are left as GGUF has them", weights("self_attn.q_proj", as_in_the_file),
                                      "A2.q", r"rows of the queries.*halves to neighbours"),
    "key-rows-of-the-file": Mistake("the rows of the keys are left as GGUF has them", weights("self_attn.k_proj", as_in_the_file),
                                    "A2.k", r"rows of the keys.*halves to neighbours"),
    "head-not-tied": Mistake("the unembedding is drawn, and not the embedding", untied, "F2", r"the unembedding is drawn"),
    "base-10000": Mistake("the rotation's base is 10000 in place of 100000", theta(10000.0), "A4.q", r"base of RoPE is 10000"),
    "epsilon-1e-6": Mistake("the norms' epsilon is 1e-6 in place of 1e-5", norms("variance_epsilon", 1e-6), "A1", r"epsilon of the norms is 1e-6"),
    "scores-not-scaled": Mistake("scores are not divided by the root of head_dim", each_attention("scaling", 1.0), "A6",
                                 r"scores are not scaled"),
    "gate-and-up-exchanged": Mistake("the weights of gate and up are exchanged", exchanged, "M6", r"rows of gate and up are exchanged"),
    "heads-by-modulus": Mistake("head h reads group h modulo 3, not h / 3",
                                kernel(lambda right: lambda x, n: x.repeat(1, n, 1, 1)), "A6", r"head h mod groups"),
    "one-head-of-another-group": Mistake("head 5 reads the keys and values of another group", kernel(one_head), "A6",
                                         r"key/value head 1 after their own.*in head 5 alone"),
    "positions-from-one": Mistake("positions are counted from 1", from_one, "A4.q", r"positions begin at 1"),
    "norms-of-weight-plus-one": Mistake("a norm's weight is one more than stored, as Gemma's is", plus_one, "A1",
                                        r"1 is added to the scales of the norms"),
    "minimum-left-out": Mistake("the minima of one Q4_1 matrix are left out",
                                one_weight("self_attn.v_proj", decoded("attn_v", lambda d, m, q: d * q)), "A2.v", r"without the minima of their blocks"),
    "scale-of-the-next-block": Mistake("a block of one Q4_1 matrix takes the scale of the next",
                                       one_weight("self_attn.o_proj", decoded("attn_output", lambda d, m, q: d.roll(-1, 1) * q + m)),
                                       "A12", r"the scale of the next block"),
    "nibbles-in-turn": Mistake("the nibbles of one Q4_1 matrix are read in turn, not the lower ones first",
                               one_weight("self_attn.v_proj", decoded("attn_v", lambda d, m, q: d * q.unflatten(-1, (2, 16)).transpose(
                                   -1, -2).flatten(-2) + m)), "A2.v", r"nibbles of each byte side by side"),
    "residual-in-float16": Mistake("the residual behind each perceptron is stored in float16", half_residual, "M12", r"M12 is rounded to binary16"),
}


def first_bug(judgement):
    return next((point.name for point in judgement.points if str(point.verdict) == "bug"), None)


def table_row(name, found):
    """The line of chapter 21's table."""
    said = found["as"].split(" [")[0] if found["named"] == "named" else "no known mistake"
    return f"| {MISTAKES[name].says} | `{found['first']}` | {said} |"


def row(model, opened, ids, name):
    import sinkproof
    import torch
    mistake = MISTAKES[name]
    with mistake.plant(model), torch.no_grad(), sinkproof.trace(model) as trace:
        model(torch.tensor([ids]))
    said = sinkproof.judge(opened, trace.sequences[0], "f32", local=True, hint=False, diagnosis=True)
    causes = list(dict.fromkeys(str(cause) for cause in said.diagnosis))
    told = [cause.removeprefix("explained: ") for cause in causes if cause.startswith("explained")]
    right = [cause for cause in told if re.search(mistake.words, cause)]
    how = "otherwise" if len(right) < len(told) else "named" if right else "not named"
    return {"report": name, "where": "GGUF", "policy": "f32", "verdict": str(said.verdict), "first": first_bug(said),
            "named": how, "as": " | ".join(told)}, causes


def main():
    tap, words = Tap(), sys.argv[1:]
    if not MODEL.exists():
        tap.skip("smollm2, planted", "build/models/smollm2.gguf is not there: make smollm2 brings it")
        return tap.done()
    import sinkproof
    import torch
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(str(MODEL.parent), gguf_file=MODEL.name, dtype=torch.float32,
                                                 attn_implementation="eager")
    opened, rows = sinkproof.Model(str(MODEL)), []
    ids = [1, *range(500, 500 + 7 * (TOKENS - 1), 7)]
    names = [word for word in words if word != "--write"] or list(MISTAKES)
    for name in names:
        found, causes = row(model, opened, ids, name)
        rows.append(found)
        point = re.sub(r"^\d+\.", "", found["first"] or "")
        tap.report(found["verdict"] == "bug" and point == MISTAKES[name].point and found["named"] != "otherwise",
                   f"smollm2, {name}: a bug at {found['first']}, {found['named']}", [MISTAKES[name].says, found])
        if words and "--write" not in words:
            print("#", "\n# ".join(causes))
    if "--write" in words:
        body = ",\n".join(" " + json.dumps(each, ensure_ascii=False) for each in rows)
        KEPT.write_text(f'{{"format": "sinkproof-reports-1", "model": "SmolLM2-135M-Instruct", "rows": [\n{body}\n]}}\n', encoding="utf-8")
    elif not words:
        kept = {each["report"]: each for each in json.loads(KEPT.read_text(encoding="utf-8"))["rows"]}
        wrong = [each for each in rows if each["named"] != kept.get(each["report"], {}).get("named")
                 or each["first"] != kept[each["report"]]["first"]]
        tap.report(not wrong and len(kept) == len(rows), f"smollm2: {len(rows)} mistakes are found as doc/engines/reports says", wrong)
        page = (ROOT / "doc" / "21-diagnosis.md").read_text(encoding="utf-8")
        absent = [name for name, each in kept.items() if table_row(name, each) not in page]
        tap.report(not absent, "smollm2: chapter 21 has a line of its table for each", absent)
    if "--write" in words:
        print("\n".join(table_row(each["report"], each) for each in rows))
    print(f"# {sum(each['named'] == 'named' for each in rows)} of {len(rows)} are named")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
