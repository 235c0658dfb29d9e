# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`truth`, `sinks` and `compare --model` of a trace of several sequences, packed or padded: each sequence has the numbers of
its own trace, character by character, and every row says whose it is.
"""
import json
import os
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
from checkpoints import CODES, numbers_of, read, report, run, safetensors, sinkproof  # noqa: E402

MODEL, TOKENS = "synthetic:tiny,layers=2", ("1,2,3,4,5", "7,8,9,4,5,6,3")


def ints(values, shape=None):
    return ("I32", shape or [len(values)], struct.pack(f"<{len(values)}i", *values))


def rows_of(tensor, heads):
    """The lines of each head, or the rows, as bytes; and the bytes of one number."""
    _, shape, raw = tensor
    count = shape[0] * shape[1] if heads else shape[0]
    return [raw[len(raw) // count * i:len(raw) // count * (i + 1)] for i in range(count)]


def number_size(tensor):
    elements = 1
    for d in tensor[1]:
        elements *= d
    return len(tensor[2]) // elements


def by_head(name):
    return name.endswith((".A6", ".A9", ".A10"))


def packed(parts):
    """The sequences end to end."""
    lengths = [part["tokens"][1][0] for part in parts]
    n, at, made = sum(lengths), [sum(lengths[:s]) for s in range(len(parts) + 1)], {}
    for name, (dtype, shape, _) in parts[0].items():
        if not by_head(name):
            made[name] = (dtype, [n, *shape[1:]], b"".join(part[name][2] for part in parts))
            continue
        size, sink, lines = number_size(parts[0][name]), name.endswith("A9"), []
        for h in range(shape[0]):
            for s, part in enumerate(parts):
                for line in rows_of(part[name], True)[h * lengths[s]:(h + 1) * lengths[s]]:
                    keys, last = line[:lengths[s] * size], line[lengths[s] * size:]
                    lines.append(b"\0" * at[s] * size + keys + b"\0" * (n - at[s + 1]) * size + last)
        made[name] = (dtype, [shape[0], n, n + sink], b"".join(lines))
    made["cu_seqlens"] = ints(at)
    return made


def padded(parts):
    """The sequences as a batch, padded on the left; without scores and weights."""
    lengths = [part["tokens"][1][0] for part in parts]
    n, made = max(lengths), {}
    for name, tensor in parts[0].items():
        dtype, shape, raw = tensor
        if by_head(name) or name == "positions":
            continue
        each = len(raw) // shape[0]
        made[name] = (dtype, [len(parts), n, *shape[1:]],
                      b"".join(b"\0" * each * (n - length) + part[name][2] for part, length in zip(parts, lengths)))
    made["attention_mask"] = ints([int(i >= n - length) for length in lengths for i in range(n)], [len(parts), n])
    return made


def traced(work, policy):
    """A trace for each sequence; the paths and tensors."""
    paths = [work / f"{policy}-{s}.safetensors" for s in range(len(TOKENS))]
    for path, tokens in zip(paths, TOKENS):
        sinkproof("run", MODEL, "--policy", policy, "--tokens", tokens, "--trace", str(path))
    return paths, [read(path) for path in paths]


def write(path, tensors, metadata):
    path.write_bytes(safetensors(tensors, {key: value for key, value in metadata.items() if key != "tokens"}))
    return str(path)


def several(work):
    paths, parts = traced(work, "f32")
    few = [{name: tensor for name, tensor in part[0].items() if not by_head(name)} for part in parts]
    for path, part, metadata in zip(paths, few, parts):
        write(work / f"few-{path.name}", part, metadata[1])
    forms = (("packed", write(work / "packed", packed([part for part, _ in parts]), parts[0][1]), paths),
             ("padded", write(work / "padded", padded(few), parts[0][1]), [work / f"few-{path.name}" for path in paths]))
    for form, path, alone in forms:
        of_truth(form, path, alone)
        of_sinks(form, path, alone)
    others, of_others = traced(work, "bf16")
    of_compare((forms[0][1], write(work / "other", packed([part for part, _ in of_others]), of_others[0][1])), list(zip(paths, others)), work)
    refused(work, parts, forms[0][1])


def blocks(said, names):
    """What is said of each sequence, behind its name."""
    found = [said.index(f"{name}\n") for name in names]
    return [said[at + len(name) + 1:end].strip("\n") for at, end, name in zip(found, [*found[1:], said.find("\nexit  prompt: result")], names)]


def of_truth(form, path, alone):
    names = [f"{path}, sequence {s}" for s in range(len(alone))]
    for option in ("--local", "--route"):
        status, said, _ = sinkproof("truth", MODEL, option, path, "--json", path + ".json")
        own = [sinkproof("truth", MODEL, option, str(one))[1].strip("\n") for one in alone]
        report(status == 0 and blocks(said, names) == own, f"truth {option}, {form}: each sequence has the text of its own trace", [said])
        rows = json.loads(open(path + ".json", encoding="utf-8").read())["results"]
        report({row["prompt"] for row in rows} == set(names), f"truth {option}, {form}: each of {len(rows)} rows names its sequence")


def of_sinks(form, path, alone):
    _, said, _ = sinkproof("sinks", MODEL, path, "--json", path + ".json")
    good = True
    for s, one in enumerate(alone):
        own = sinkproof("sinks", MODEL, str(one))[1].splitlines()
        line = next(line for line in own if line.startswith(str(one)[:34]))[34:]
        mine = next(line for line in said.splitlines() if line.startswith(f"sequence {s} of {path}"[:34]))[34:]
        table = own[next(i for i, each in enumerate(own) if each.startswith("weights  ")):]
        good = good and line == mine and "\n".join(table).strip() in said
    report(good, f"sinks, {form}: each sequence has the numbers of its own trace", [said])
    text = open(path + ".json", encoding="utf-8").read()
    report(all(f"sequence {s} of {path}" in text for s in range(len(alone))), f"sinks, {form}: its rows name the sequences")


def of_compare(paths, alone, work):
    status, said, _ = sinkproof("compare", *paths, "--model", MODEL, "--json", str(work / "j"))
    own = ""
    for s, pair in enumerate(alone):
        text = sinkproof("compare", *map(str, pair), "--model", MODEL)[1]
        for path, one in zip(paths, pair):
            text = text.replace(str(one), f"{path}, sequence {s}")
        own += ("\n" if s else "") + text
    report(status == 1 and said == own, "compare --model, packed: each sequence has the text of its own traces", [said, own])
    rows = json.loads((work / "j").read_text())["results"]
    report([row["sequence"] for row in rows] == sorted(row["sequence"] for row in rows) and {row["sequence"] for row in rows} == {0, 1},
           "compare --model: every row says its sequence")
    status, said, _ = sinkproof("compare", *paths, "--model", MODEL, "--baseline", str(work / "j"))
    report(status == 0 and said.count("Nowhere further apart") == 2, "compare --model: a baseline has the rows of each sequence", [said])


def of_weight(name):
    return re.search(r"d[Wb]\.|dsink", name)


def gradients(work):
    """A padded batch with gradients is judged as its sequences end to end; those of weights are sums over all of them."""
    parts = []
    for s, tokens in enumerate(TOKENS):
        sinkproof("run", MODEL, "--policy", "f32", "--tokens", tokens, "--backward", "--trace", str(work / str(s)))
        tensors, metadata = read(work / str(s))
        parts.append({name: tensor for name, tensor in tensors.items() if not re.search(r"\.d?A(6|9|10)$", name)})
    sums = {}
    for name in filter(of_weight, parts[0]):
        dtype, shape, raw = parts[0][name]
        numbers = [numbers_of(dtype, part[name][2]) for part in parts]
        sums[name] = (dtype, shape, struct.pack(f"<{len(numbers[0])}{CODES[dtype]}", *map(sum, zip(*numbers))))
    rows = [{name: tensor for name, tensor in part.items() if not of_weight(name)} for part in parts]
    said = {}
    metadata["loss"] = "F2"
    for form, whole in (("packed", packed(rows)), ("padded", padded(rows))):
        path = write(work / form, {**whole, **sums}, metadata)
        status, out, told = sinkproof("judge", MODEL, path, "--policy", "f32", "--local")
        said[form] = (status, out.replace(path, ""), told)
    report(said["packed"][0] == 0 and "dW.q" in said["packed"][1] and said["padded"] == said["packed"],
           "a padded batch with gradients is judged as its sequences end to end", [str(said)])
    wrong = {**padded(rows), **sums}
    dtype, shape, raw = wrong["01.dW.q"]
    wrong["01.dW.q"] = (dtype, shape, parts[0]["01.dW.q"][2])  # of one sequence alone
    status, out, told = sinkproof("judge", MODEL, write(work / "wrong", wrong, metadata), "--policy", "f32", "--local")
    report(status == 1 and "01.dW.q" in out, "a gradient of a weight that leaves out a sequence is a bug", [out, told])
    wrong = {**padded(rows), **sums}
    dtype, shape, raw = wrong["00.dA11"]
    wrong["00.dA11"] = (dtype, shape, struct.pack("<f", 0.5) + raw[4:])
    status, out, told = sinkproof("judge", MODEL, write(work / "wrong", wrong, metadata), "--policy", "f32", "--local")
    report(status == 3 and "tensor 00.dA11: expected 0 in the padding, found another gradient at row 0 of the batch, column 0" in told,
           "a gradient in the padding is refused", [told])


def refused(work, parts, path):
    """What needs one sequence from its start."""
    status, _, told = sinkproof("truth", MODEL, "--local", path, "--trace", str(work / "t"))
    report(status == 3 and "expected a trace of one sequence beside --tokens, --trace and --work, found 2" in told and not (work / "t").exists(),
           "truth --trace refuses several sequences", [told])
    later = {name: tensor for name, tensor in packed([part for part, _ in parts]).items() if not re.search(r"A6|A9|A10", name)}
    later["positions"] = ints([*range(5), *range(3, 10)])
    write(work / "later", later, parts[0][1])
    for words in (("truth", MODEL, "--local", str(work / "later")), ("sinks", MODEL, str(work / "later"))):
        status, _, told = sinkproof(*words)
        report(status == 3 and f"{work / 'later'}, sequence 1: expected a trace from position 0 on, found one from 3" in told,
               f"{words[0]} names the sequence that begins later", [told])


sys.exit(run(several, gradients))
