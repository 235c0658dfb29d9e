# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""`sinkproof join`: a whole trace is cut among ranks in every way and joined back to the same bits; a bias that every
rank adds is named; what does not fit together is refused; files with random bytes changed end with a sentence."""
import json
import math
import os
import pathlib
import random
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

SEEDS = int(os.environ.get("JOIN_SEEDS", "120"))
SIZE = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4, "F64": 8}
CONFIG = {**checkpoints.STATED, **checkpoints.SMALL, "num_attention_heads": 8, "num_key_value_heads": 4, "num_local_experts": 8,
          "num_experts_per_tok": 3, "vocab_size": 24}
BY_HEAD = ("A6", "A9", "A10", "A9.lse")
TENSOR = ("A2.q=heads,A2.k=heads,A2.v=heads,A4=heads,A6=heads,A9=heads,A10=heads,A11=heads,M5=coordinates,M6=coordinates,M8=coordinates,"
          "M9=partial,M10=partial,F2=coordinates")
EXPERT = "M5=experts,M6=experts,M8=experts,M9=experts,M10=experts"
WAYS = {"tensor": TENSOR, "expert": EXPERT, "context": "*=positions", "a layer": "*=whole,01.A11=heads"}


def cut_along(tensor, axis, places):
    """The parts of a tensor at lists of places along a dimension."""
    dtype, shape, data = tensor
    row = SIZE[dtype]
    for size in shape[axis + 1:]:
        row *= size
    outer = len(data) // (row * shape[axis]) if row * shape[axis] else 0
    for chosen in places:
        rows = b"".join(data[(o * shape[axis] + i) * row:(o * shape[axis] + i + 1) * row] for o in range(outer) for i in chosen)
        yield dtype, [*shape[:axis], len(chosen), *shape[axis + 1:]], rows


def shares(size, ranks):
    return [list(range(size * r // ranks, size * (r + 1) // ranks)) for r in range(ranks)]


def whole_numbers(values):
    return "I32", [len(values)], struct.pack(f"<{len(values)}i", *values)


def zigzag(n, ranks):
    """The rows of context-parallel ranks: a piece from the front and one from the back."""
    pieces = shares(n, 2 * ranks)
    return [pieces[r] + pieces[2 * ranks - 1 - r] for r in range(ranks)]


def ways_of(split):
    return dict(word.split("=") for word in split.split(","))


def how(split, name):
    words, point = ways_of(split), name.split(".", 1)[-1]
    for word in (name, point, point.split(".")[0]):
        if word in words:
            return words[word]
    return words.get("*", "whole")


def cut(tensors, metadata, ranks, split):
    """The files of all ranks: [(tensors, metadata)]."""
    n, places = tensors["tokens"][1][0], zigzag(tensors["tokens"][1][0], ranks)
    files = [({}, {**metadata, "rank": str(r), "ranks": str(ranks), "split": split}) for r in range(ranks)]
    experts = shares(CONFIG["num_local_experts"], ranks)
    scattered = "positions" in ways_of(split).values()
    for r, (_, said) in enumerate(files):
        if "experts" in split:
            said["experts"] = f"{experts[r][0]}-{experts[r][-1]}"
    for name, tensor in tensors.items():
        point, kind = name.split(".", 1)[-1], how(split, name)
        if name == "positions":
            parts = [whole_numbers(places[r] if scattered else list(range(n))) for r in range(ranks)]
        elif name == "tokens":
            parts = cut_along(tensor, 0, places) if scattered else [tensor] * ranks
        elif kind == "heads":
            axis = 0 if point in BY_HEAD else 1
            parts = cut_along(tensor, axis, shares(tensor[1][axis], ranks))
        elif kind in ("coordinates", "positions"):
            axis = len(tensor[1]) - 1 if kind == "coordinates" else int(point in BY_HEAD)
            parts = cut_along(tensor, axis, shares(tensor[1][axis], ranks) if kind == "coordinates" else places)
        elif kind == "experts":
            dtype, shape, data = tensor
            chosen = struct.unpack(f"<{shape[0] * shape[1]}i", tensors[f"{name[:2]}.M3"][2])
            row = shape[2] * SIZE[dtype]
            parts = [(dtype, shape, b"".join(data[s * row:(s + 1) * row] if e in experts[r] else b"\xff" * row
                                             for s, e in enumerate(chosen))) for r in range(ranks)]
        else:
            parts = [tensor] * ranks
        for (own, _), part in zip(files, parts):
            own[name] = part
    return files


def written(work, files):
    paths = []
    for r, (tensors, metadata) in enumerate(files):
        path = work / f"rank{r}.safetensors"
        path.write_bytes(checkpoints.safetensors(tensors, metadata))
        paths.append(str(path))
    return paths


def traced(work, name, change=lambda name, shape, numbers: numbers, tokens="5,1,7,3,11,2,9,4,0,6,8,10,12", policy="f32"):
    model = checkpoints.write(work / name, checkpoints.weights(CONFIG, change=change), CONFIG)
    status, _, told = sinkproof("run", model, "--engine", "ref", "--policy", policy, "--tokens", tokens, "--trace", str(work / f"{name}.st"))
    report(status == 0, f"a trace of {name} {told}")
    return model, checkpoints.read(work / f"{name}.st")


def joined_back(work):
    model, (tensors, metadata) = traced(work, "honest")
    del metadata["policy"]
    heads, n = CONFIG["num_attention_heads"], tensors["tokens"][1][0]
    scores, weights = (checkpoints.numbers_of(tensors[f"01.{point}"][0], tensors[f"01.{point}"][2]) for point in ("A6", "A9"))
    sums = [scores[row * n] - math.log(weights[row * (n + 1)]) for row in range(heads * n)]  # of key 0, which every query of layer 1 sees
    tensors["01.A9.lse"] = ("F32", [heads, n], struct.pack(f"<{heads * n}f", *sums))
    out = work / "joined.safetensors"
    for ranks in (1, 2, 4):
        for way, split in WAYS.items():
            paths = written(work, cut(tensors, metadata, ranks, split))
            random.Random(ranks).shuffle(paths)
            status, said, told = sinkproof("join", *paths, "--out", str(out))
            again, told_of = checkpoints.read(out) if status == 0 else ({}, {})
            kept = {name: tensor for name, tensor in tensors.items() if how(split, name) != "partial"}
            lost = len(tensors) - len(kept)
            report(status == 0 and again == kept and told_of["ranks"] == str(ranks) and told_of["model"] == metadata["model"],
                   f"{ranks} ranks, {way}: {len(kept)} tensors have the bits of the whole trace {told}")
            parted = sum(how(split, name) not in ("whole", "partial") for name in kept if name not in ("tokens", "positions"))
            report(f"{ranks} rank{'s' * (ranks > 1)}, 13 tokens: {parted} tensor" in said
                   and (f"{lost} partial sums left out" in said) == (lost > 0), f"and it says so: {said.strip()}")
        status, said, _ = sinkproof("judge", model, str(out), "--policy", "f32")
        report(status == 0, f"the joined trace of {ranks} ranks is judged: exit {status}")


def begun_later(work):
    """Positions from 7 on, and the bounds of packed sequences, are kept."""
    _, (tensors, metadata) = traced(work, "honest", tokens="5,1,7,3")
    for split in (TENSOR, "*=positions"):
        files = cut(tensors, metadata, 2, split)
        for own, _ in files:
            at = [7 + x for x in struct.unpack(f"<{own['positions'][1][0]}i", own["positions"][2])]
            own.update(positions=whole_numbers(at))
            if split == TENSOR:
                own.update(cu_seqlens=whole_numbers([0, 1, 4]))
        out = work / "joined.safetensors"
        status, _, told = sinkproof("join", *written(work, files), "--out", str(out))
        again = checkpoints.read(out)[0] if status == 0 else {}
        report(status == 0 and again["positions"] == whole_numbers([7, 8, 9, 10]) and again["00.A13"] == tensors["00.A13"] and
               again.get("cu_seqlens") == (whole_numbers([0, 1, 4]) if split == TENSOR else None), f"positions from 7 on are kept {told}")


def judged(work, name, ranks, change, policy):
    """The report on a joined trace of ranks that make a mistake."""
    honest = checkpoints.write(work / "model", checkpoints.weights(CONFIG), CONFIG)
    _, (tensors, metadata) = traced(work, name, change, policy=policy)
    del metadata["policy"], metadata["model"]
    paths = written(work, cut(tensors, metadata, ranks, TENSOR))
    out = work / "joined.safetensors"
    sinkproof("join", *paths, "--out", str(out))
    return sinkproof("judge", honest, str(out), "--policy", policy)


def on_every_rank(work):
    for ranks in (2, 4):
        folder = work / str(ranks)
        folder.mkdir()

        def added(name, _, numbers):
            return [ranks * x for x in numbers] if name.endswith("o_proj.bias") else numbers  # pylint: disable=cell-var-from-loop

        status, out, _ = judged(folder, "bias", ranks, added, "f32")
        named = {2: "the bias of the output projection is added twice", 4: ""}[ranks]
        report(status == 1 and "First divergence: 00.A12." in out and named in out,
               f"a bias that each of {ranks} ranks adds is convicted at A12, {named or 'whatever its name'}")


def refused(work):
    _, (tensors, metadata) = traced(work, "honest", tokens="5,1,7,3")
    out = str(work / "joined.safetensors")

    def attempt(says, split, change):
        files = cut(tensors, metadata, 2, split)
        change(files)
        paths = written(work, files)
        status, _, told = sinkproof("join", *paths, "--out", out)
        report(status == 3 and says in told and "safetensors" in told and "\n" not in told and not os.path.exists(out), f"refused: {told}")

    def said(which, **words):
        return lambda files: files[which][1].update(words)

    def without(rank, name):
        return lambda files: files[rank][0].pop(name)

    def placed(*values):
        return lambda files: files[1][0].update(positions=whole_numbers(values))

    attempt("rank 0, which is", TENSOR, said(1, rank="0"))
    attempt("of 3 ranks, found 2 files", TENSOR, said(1, ranks="3"))
    attempt("metadata rank: expected a number from 0 to 1, found '2'", TENSOR, said(1, rank="2"))
    attempt("metadata ranks: expected a number from 1 to 64, found 'two'", TENSOR, said(0, ranks="two"))
    attempt("metadata format: expected sinkproof-trace-1", TENSOR, said(0, format="trace"))
    attempt("metadata model: expected '", TENSOR, said(1, model="0123456789abcdef"))
    attempt("metadata split: expected '", TENSOR, said(1, split="A11=heads"))
    attempt("found 'A77=heads'", "A11=heads", lambda files: [f[1].update(split="A77=heads") for f in files])
    attempt("found 'A11=rows'", "A11=heads", lambda files: [f[1].update(split="A11=rows") for f in files])
    attempt("has no heads to be split by", "M1=whole", lambda files: [f[1].update(split="M1=heads") for f in files])
    attempt("has no coordinates to be split by", "M1=whole", lambda files: [f[1].update(split="A9=coordinates") for f in files])
    attempt("found 9 at position 2, where that has 7", TENSOR,
            lambda files: files[1][0].update(tokens=whole_numbers([5, 1, 9, 3])))
    attempt("tokens: expected the 4 of", TENSOR, lambda files: files[1][0].update(tokens=whole_numbers([5, 1]), positions=whole_numbers([0, 1])))
    attempt("positions differs from that in", TENSOR, lambda files: files[1][0].update(positions=whole_numbers([1, 2, 3, 4])))
    attempt("00.A11: expected this rank's part, split by heads, found none", TENSOR, without(1, "00.A11"))
    attempt("00.A13 differs from that in", TENSOR, lambda files: files[1][0].update({
        "00.A13": (*tensors["00.A13"][:2], b"\0\0\0\0" + tensors["00.A13"][2][4:])}))
    attempt("F2 has not the dtype or the shape", TENSOR, lambda files: files[1][0].update(F2=("F32", [3, 12], bytes(144))))
    attempt("A77 is no point of a trace", TENSOR, lambda files: files[1][0].update(A77=("F32", [1], bytes(4))))
    attempt("expected metadata experts, found none", EXPERT, lambda files: files[1][1].pop("experts"))
    attempt("metadata experts: expected FIRST-LAST, found '4-'", EXPERT, said(1, experts="4-"))
    attempt("experts 2-7, some of which are in", EXPERT, said(1, experts="2-7"))
    attempt("is on no rank", EXPERT, lambda files: [f[1].update(experts=e) for f, e in zip(files, ("100-103", "104-107"))])
    attempt("00.M3 [4, 3], in whole numbers, on some rank", EXPERT, lambda files: [f[0].pop("00.M3") for f in files])
    attempt("positions: 0 is in", "*=positions", placed(0, 1))
    attempt("positions: expected 0 to 3, the rows of all ranks, found 4", "*=positions", placed(1, 4))
    attempt("expected a tensor positions, found none", "*=positions", without(1, "positions"))
    for words, status in ((("join",), 2), (("join", "x.safetensors"), 2), (("join", "/nowhere/x.safetensors", "--out", out), 3)):
        report(sinkproof(*words)[0] == status, f"sinkproof {' '.join(words[:2])}: exit {status}")


def changed_bytes(work):
    """Headers with random bytes changed, and metadata and shapes of random numbers: a sentence, or a file that is read."""
    _, (tensors, metadata) = traced(work, "honest", tokens="5,1")
    small = {name: tensor for name, tensor in tensors.items() if name[:2] in ("to", "po", "00")}
    out, bad, ends = work / "joined.safetensors", [], {0: 0, 3: 0}
    for seed in range(SEEDS):
        draw = random.Random(seed)
        split = draw.choice(list(WAYS.values()))
        files = cut(small, metadata, 2, split)
        if seed % 3 == 0:
            files[draw.randrange(2)][1][draw.choice(["rank", "ranks", "split", "experts", "model"])] = draw.choice(
                ["", "-1", "999999999", "9999999999", "0-999999999", "*=experts", "*=partial", "A4=positions", "\u00e9", "=heads", ","])
        paths = written(work, files)
        raw = bytearray(pathlib.Path(paths[1]).read_bytes())
        length = struct.unpack("<Q", raw[:8])[0]
        if seed % 3:
            header = json.loads(raw[8:8 + length])
            name = draw.choice([key for key in header if key != "__metadata__"])
            if draw.random() < 0.5:
                shape = header[name]["shape"]
                at = draw.randrange(len(shape))
                shape[at] = draw.choice([0, 1, shape[at] + 1, 2**31, 2**62, 2**63, -1])
                text = json.dumps(header).encode()
                raw[:8 + length] = struct.pack("<Q", len(text)) + text
            else:
                raw[draw.randrange(8 + length)] = draw.randrange(256)
        pathlib.Path(paths[1]).write_bytes(raw)
        status, _, told = sinkproof("join", *paths, "--out", str(out))
        good = (status == 3 and told.startswith("sinkproof join: ") and "\n" not in told) or (status == 0 and checkpoints.read(out))
        ends[status] = ends.get(status, 0) + 1
        if not good:
            bad.append((seed, status, told[-300:]))
        out.unlink(missing_ok=True)
    report(not bad and ends[3] > SEEDS // 3, f"{SEEDS} pairs of files with changes: {ends[3]} refused with a sentence, {ends[0]} joined {bad[:3]}")


sys.exit(checkpoints.run(joined_back, begun_later, on_every_rank, refused, changed_bytes))
