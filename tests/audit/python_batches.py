# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Traces of batches behind caches and prefixes, for python_inside.py: padded, packed, named and unknown."""
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import sinkproof
from drilled_kernels import attended
from python_traces import TOKENS, decoded, saved

FIRSTS, OPTIONS = (5, 18, 3), {"local": True, "hint": False, "diagnosis": False}
CACHED, BY_HEAD = ("A4.k", "A2.v"), ("A6", "A9", "A10")


def padded(parts, firsts, left):
    """The rows of each part from `firsts` on as a batch behind caches: `attention_mask` [b, m] has columns for the
    cached keys, padded on the left, and for the tokens, padded on the left or the right. NaN is in the padding."""
    lengths = [len(part["tokens"]) for part in parts]
    n, earlier = max(length - first for length, first in zip(lengths, firsts)), max(firsts)
    mask = np.zeros((len(parts), earlier + n), np.int32)
    for s, (length, first) in enumerate(zip(lengths, firsts)):
        rows = length - first
        mask[s, earlier - first:earlier] = 1
        mask[s, earlier + (n - rows if left else 0):earlier + (n if left else rows)] = 1
    own = mask[:, earlier:] != 0
    made = {"attention_mask": mask}
    for name in parts[0]:
        if name == "positions":
            continue
        of, cached = [part[name] for part in parts], name.endswith(CACHED)
        blank = 0 if of[0].dtype.kind == "i" else np.nan
        if name.endswith(BY_HEAD):
            sink = name.endswith("A9")
            whole = np.full((len(parts), len(of[0]), n, earlier + n + sink), blank, of[0].dtype)
            for s, first in enumerate(firsts):
                at = np.ix_(range(len(of[0])), np.flatnonzero(own[s]), [*np.flatnonzero(mask[s]), *[earlier + n] * sink])
                whole[s][at] = of[s][:, first:]
        else:
            whole = np.full((len(parts), (earlier if cached else 0) + n, *of[0].shape[1:]), blank, of[0].dtype)
            for s, first in enumerate(firsts):
                whole[s, (mask[s] if cached else own[s]) != 0] = of[s][0 if cached else first:]
        made[name] = whole
    return made


def end_to_end(batch, packed, positions):
    """The batch with its keys end to end, as `cu_seqlens_k` says."""
    n = batch["tokens"].shape[1]
    mask = batch["attention_mask"][:, -n:]
    made = {**batch, "attention_mask": mask, "cu_seqlens_k": packed["cu_seqlens_k"],
            "positions": np.zeros(mask.shape, np.int32)}
    made["positions"][mask != 0] = positions
    for name in packed:
        if name.endswith(CACHED):
            made[name] = packed[name]
        elif name.endswith(BY_HEAD):
            whole = np.full((len(mask), len(packed[name]), n, packed[name].shape[2]), np.nan, packed[name].dtype)
            whole.swapaxes(1, 2)[mask != 0] = packed[name].swapaxes(0, 1)
            made[name] = whole
    return made


def check_padded(room, parts):
    """A batch behind caches is judged as its sequences end to end, in each of its forms."""
    packed = decoded(parts, FIRSTS, FIRSTS)
    said = str(sinkproof.judge(room.model, packed, "f32", **OPTIONS))
    room.ok("holds 3 sequences" in said and "undecided" not in said, "rows over three caches", said)
    for left in (True, False):
        batch = padded(parts, FIRSTS, left)
        side = "left" if left else "right"
        room.ok(str(sinkproof.judge(room.model, batch, "f32", **OPTIONS)) == said,
                f"a mask over caches and tokens, padded on the {side}, is the same")
        ends = end_to_end(batch, packed, packed["positions"])
        room.ok(str(sinkproof.judge(room.model, ends, "f32", **OPTIONS)) == said,
                f"keys end to end under rows that are padded on the {side} are the same")
    room.ok(saved(room, sinkproof.Trace(batch))["cu_seqlens_k"].tolist() == [0, 7, 27, 33], "a batch is saved and read")
    own = {name: value[:, -len(batch["tokens"][0]):] if name.endswith(CACHED) else value for name, value in batch.items()
           if not name.endswith(BY_HEAD)}
    found = sinkproof.judge(room.model, own, "f32", **OPTIONS)
    room.ok(found.ok and found["00.A11"].undecided == found["00.A11"].elements and not found["00.A4.q"].undecided,
            "of a batch without its caches only what reads them is undecided", found)
    return batch, ends


def check_named(room, parts, batch):
    """Prefixes of several sequences that are named: their keys are computed, and of an unnamed one are unknown."""
    rows = {name: np.concatenate([part[name][first:] for part, first in zip(parts, FIRSTS)])
            for name in parts[0] if not name.endswith(BY_HEAD)}
    rows["cu_seqlens"] = np.cumsum([0, *(len(part["tokens"]) - first for part, first in zip(parts, FIRSTS))])
    prefixes = [part["tokens"][:first] for part, first in zip(parts, FIRSTS)]
    all_named = {**rows, "prefix": np.concatenate(prefixes)}
    some = {**rows, "prefix": np.concatenate(prefixes[:2]), "cu_seqlens_prefix": np.array([0, 5, 23, 23])}
    open_rows = []
    for trace in (all_named, some):
        found = sinkproof.judge(room.model, trace, "f32", **OPTIONS)
        open_rows.append(found["00.A11"].undecided // 160)
        room.ok(found.ok, "honest rows behind named prefixes", found)
    room.ok(open_rows == [0, 3], "of a sequence whose prefix is not named what reads it is undecided", open_rows)
    again = saved(room, sinkproof.Trace(some))
    room.ok(again["cu_seqlens_prefix"].tolist() == [0, 5, 23, 23], "the names are saved and read", again)
    n = batch["tokens"].shape[1]
    mask = batch["attention_mask"]
    before = np.zeros_like(mask[:, :-n])
    before[mask[:, :-n] != 0] = all_named["prefix"]
    own = {name: value[:, -n:] if name.endswith(CACHED) else value for name, value in batch.items() if not name.endswith(BY_HEAD)}
    said = [str(sinkproof.judge(room.model, trace, "f32", **OPTIONS)) for trace in (all_named, {**own, "prefix": before})]
    room.ok(said[0] == said[1], "a batch with the tokens before it is the same", said[1])
    tokens = np.where(mask[:, -n:] != 0, 1, 0)
    positions = np.zeros_like(tokens)
    positions[tokens != 0] = rows["positions"]
    flat = {**own, "attention_mask": tokens, "positions": positions, "prefix": some["prefix"],
            "cu_seqlens_prefix": some["cu_seqlens_prefix"]}
    said = [str(sinkproof.judge(room.model, trace, "f32", **OPTIONS)) for trace in (some, flat)]
    room.ok(said[0] == said[1], "a batch with some tokens before it, end to end, is the same", said[1])
    return all_named, own, before


def check_mistakes(room, parts, trace, batch):
    """Mistakes at the boundary of a prefix, in the layer where its keys are known best."""
    def changed(mistake):
        out, layer = [], 0
        sinks = room.model.weight("sinks", layer).reshape(-1).astype(np.float32)
        window = int(room.model.number("window")) if room.model.slides(layer) else 0
        for s, (part, first) in enumerate(zip(parts, FIRSTS)):
            q, k, v = (part[f"{layer:02d}.{name}"] for name in ("A4.q", "A4.k", "A2.v"))
            if mistake == "another" and s == 2:  # the cache of sequence 0 before its own rows
                k, v = (np.concatenate([parts[0][f"00.{name}"][:first], each[first:]]) for name, each in (("A4.k", k), ("A2.v", v)))
            begin = 1 if mistake == "short" and s == 2 else 0
            out.append(attended(q[first:], k[begin:], v[begin:], sinks, window, first - begin))
        return np.concatenate(out)

    some = {name: value for name, value in trace.items() if "." not in name or name in ("00.A4.q", "00.A4.k", "00.A2.v")}
    few = {name: value for name, value in batch.items() if name in some or name == "attention_mask"}
    n = batch["tokens"].shape[1]
    own = batch["attention_mask"][:, -n:] != 0
    for mistake, text in ((None, "attention as it is"), ("another", "the prefix of another sequence"), ("short", "a prefix that is one short")):
        out = changed(mistake)
        rows = np.zeros((*own.shape, *out.shape[1:]), out.dtype)
        rows[own] = out
        for form, arrays in (("packed", {**some, "00.A11": out}), ("padded", {**few, "00.A11": rows})):
            found = sinkproof.judge(room.model, arrays, "f32", **OPTIONS)
            room.ok((found.first == "00.A11") == (mistake is not None) and (", sequence 2" in str(found)) == (mistake is not None),
                    f"{text}, {form}", found)
    swapped = {**trace, "prefix": np.concatenate([trace["prefix"][:5], trace["prefix"][:18], trace["prefix"][-3:]])}
    found = sinkproof.judge(room.model, swapped, "f32", **OPTIONS)
    room.ok(found.verdict == "bug" and ", sequence 1" in str(found), "tokens that another sequence had are convicted", found)
    alone = [dict(sinkproof.run(room.model, part["tokens"][first:], policy="f32")) for part, first in zip(parts, FIRSTS)]
    restarted = {name: np.concatenate([part[name] for part in alone]) for name in trace if name in ("00.A4.q", "00.A4.k", "00.A2.q", "00.A2.k")}
    found = sinkproof.judge(room.model, {**trace, **restarted}, "f32", **OPTIONS)
    room.ok(found.first == "00.A4.q", "positions that restart behind a prefix are convicted", found.first)


def check_inconsistent(room, named, padding, ends):
    """Numbers that do not go together."""
    batch, own, before = padding
    wrong = (("a mask of fewer columns", {**batch, "attention_mask": batch["attention_mask"][:, -1:]}, "tensor attention_mask: expected"),
             ("keys that end too early", {**ends, "cu_seqlens_k": np.array([0, 7, 27, 32])}, "tensor 00.A2.v: expected shape [32, "),
             ("keys of another batch", {**ends, "cu_seqlens_k": np.array([0, 7, 33])}, "tensor cu_seqlens_k: expected shape [4]"),
             ("keys that descend", {**ends, "cu_seqlens_k": np.array([0, 27, 7, 33])}, "expected ascending numbers from 27 in row 1"),
             ("caches without positions", {name: value for name, value in ends.items() if name != "positions"}, "expected positions too"),
             ("more keys than positions", {**ends, "cu_seqlens_k": np.array([0, 8, 27, 33])}, "expected 2 to 7 keys of sequence 0, found 8"),
             ("a prefix of another shape", {**own, "prefix": before[:, 1:]}, "tensor prefix: expected shape [3, 18]"),
             ("no such token", {**own, "prefix": before + 10 ** 6}, "tensor prefix: element 0"),
             ("too few tokens before", {**named, "prefix": named["prefix"][1:]}, "expected the tokens before sequences"),
             ("a part of a prefix", {**named, "cu_seqlens_prefix": np.array([0, 4, 23, 26])}, "expected all 5 tokens before sequence 0 or none, found 4"))
    for text, arrays, says in wrong:
        room.refused(text, says, lambda: sinkproof.judge(room.model, arrays, "f32", **OPTIONS))  # pylint: disable=cell-var-from-loop
    command = pathlib.Path(__file__).resolve().parents[2] / (os.environ.get("SINKPROOF") or "build/release/sinkproof")
    codes = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.safetensors"
        for arrays in (batch, wrong[0][1], wrong[3][1], wrong[6][1]):
            sinkproof.Trace(arrays).save(path)
            codes.append(subprocess.run([command, "judge", "synthetic:tiny", path, "--policy", "f32", "--local"], check=False,
                                        capture_output=True).returncode)
    room.ok(codes == [0, 3, 3, 3], "the command's exit codes of a batch and of inconsistent ones", codes)


def check_batches(room):
    parts = [dict(sinkproof.run(room.model, tokens, policy="f32")) for tokens in (TOKENS[:7], TOKENS[9:29], TOKENS[3:9])]
    batch, ends = check_padded(room, parts)
    named, own, before = check_named(room, parts, batch)
    check_mistakes(room, parts, named, {**own, "prefix": before})
    check_inconsistent(room, named, (batch, own, before), ends)
