# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Maps: audit/examples/fused_engine.py watched by its map, dumps with foreign names; run by python_inside.py."""
import inspect
import json
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "shared"), str(ROOT / "audit" / "examples")]
import numpy as np  # noqa: E402
import sinkproof  # noqa: E402
import torch  # noqa: E402
from fused_engine import Engine  # noqa: E402
from sinkproof.adapters.dump import Dump  # noqa: E402
from tap import Tap  # noqa: E402

MAP = ROOT / "audit" / "examples" / "fused_engine.map"
TINY = "synthetic:tiny"
N = 40


def watched(engine, *lengths, map=MAP, tokens=None):
    """The trace of so many tokens at a time."""
    tokens, first = torch.arange(N) if tokens is None else tokens, 0
    with torch.no_grad(), sinkproof.trace(engine, map=map, checkpoint=TINY) as trace:
        for n in lengths or (N,):
            engine(tokens[first:first + n], torch.arange(first, first + n))
            first += n
    return trace


def judged(trace, **options):
    return sinkproof.judge(TINY, trace, "f32", local=True, hint=False, **options)


def refusal(act):
    try:
        act()
    except sinkproof.Error as error:
        return str(error)
    return ""


def edited(name, old, new, file="edited.map"):
    """The map with one line changed."""
    text = MAP.read_text(encoding="utf-8")
    assert old in text, name
    pathlib.Path(file).write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


def check_engine(tap, engine):
    whole = judged(watched(engine))
    tap.report(whole.ok and len(whole.points) == 4 * 18 + 3 and not whole.undecided,
               "an engine with fused products and one rotation is honest by its map", str(whole).splitlines())
    pieces = watched(engine, 25, 1, 1, 13)
    found = judged(pieces)
    tap.report(found.ok and len(found.points) == len(whole.points) and len(pieces["tokens"]) == N,
               "pieces and single tokens through its cache are one trace", str(found).splitlines())
    two = watched(engine, 9)
    with torch.no_grad(), sinkproof.trace(engine, map=MAP, checkpoint=TINY) as two:
        for n in (9, 12):
            engine(torch.arange(n), torch.arange(n))
    tap.report([len(one["tokens"]) for one in two.sequences] == [9, 12] and all(judged(one).ok for one in two.sequences),
               "each start at position 0 is another sequence")
    for mistake, lengths in (("window one too wide", (N,)), ("sink dropped in prefill", (N,)),
                             ("sink dropped in decode", (30, 1, 1, 8)), ("sink dropped in decode", (N,))):
        found = judged(watched(Engine(TINY, (mistake,)), *lengths))
        right = found.ok if "decode" in mistake and lengths == (N,) else found.first == "00.A11"
        others = {point.point for point in found.points if point.verdict == "bug"}
        tap.report(right and others <= {"A11"}, f"{mistake}, {len(lengths)} pieces: A11 and nothing else, where it runs",
                   [found.first, others])
    after = [module for module in engine.modules() if module._forward_hooks or module._forward_pre_hooks]
    tap.report(not after, "nothing of the watcher remains", after[:3])


def check_command(tap, engine):
    words = [sys.executable, "-m", "sinkproof.trace", "module", f"{ROOT}/audit/examples/fused_engine.py:engine",
             "--map", str(MAP), "--checkpoint", TINY, "--tokens", ",".join(map(str, range(N))), "--chunk", "16"]
    done = subprocess.run([*words, "--out", "module.safetensors"], capture_output=True, text=True, check=False)
    made = done.returncode == 0 and sinkproof.Trace.load("module.safetensors", TINY)
    whole = watched(engine, 16, 16, 8)
    tap.report(made and set(made) == set(whole) and all(made[name].tobytes() == whole[name].tobytes() for name in made),
               "sinkproof-trace module writes what is watched in a program, bit for bit",
               [done.stderr, made and (set(made) ^ set(whole), [n for n in made if made[n].tobytes() != whole[n].tobytes()])])
    done = subprocess.run([*words[:4], "absent.py:engine", *words[5:], "--out", "no.safetensors"], capture_output=True,
                          text=True, check=False)
    tap.report(done.returncode == 3 and len(done.stderr.splitlines()) == 1 and not pathlib.Path("no.safetensors").exists(),
               "what is not there is one sentence and exit 3", [done.stderr])


def check_sentences(tap, engine):
    cases = (
        ("an unknown point", "A12            =", "A99            =", "line 10: 'A99' is not a point"),
        ("a module that is not there", "layers.{L}.attention\n", "layers.{L}.attn\n", "no module layers.0.attn"),
        ("parts that do not add up", "split 1 heads*head_dim kv_heads*head_dim", "split 1 heads*head_dim heads*head_dim",
         "is split 1 160 160 32, which does not fit layers.0.qkv: found float32 [40, 224]"),
        ("too few parts", "A2.q A2.k A2.v =", "A2.q A2.k      =", "expected 2 tensors for A2.q A2.k, found 3"),
        ("an unknown step", "| interleave", "| shuffle", "'shuffle' is not a step: known are reshape SIZES"),
        ("an unknown size", "heads*head_dim", "width*head_dim", "expected sizes of numbers and heads, kv_heads"),
        ("another point's tensor", "layers.{L}.experts.act\n", "layers.{L}.experts.down\n",
         "00.M8: expected shape [40, 3, 128] of 40 tokens, found [40, 3, 96]"),
        ("an output that is no tensor", "layers.{L}.rotary:out[1]", "layers.{L}.rotary:out[2]",
         "expected a tensor at layers.0.rotary:out[2], found NoneType"),
        ("a source that is none", "layers.{L}.rotary:out[1]", "layers.{L}.rotary:of[1]", "expected PATH, PATH:out[1]"),
        ("no layer", "layers.{L}.attention\n", "layers.0.attention\n", "expected {L} for the layer of A11"),
        ("a layer of an end", "F1             = norm", "F1             = norm{L}", "F1 is of no layer"),
        ("a point named twice", "M12            =", "A13            =", "A13 is named twice in layer 0"),
        ("no tokens", "tokens         =", "#", "the map says nothing of tokens"),
        ("tokens that are none", ".:in[0]", "layers.0:in[1]", "tokens: expected whole numbers [n], found float32"),
        ("no equals sign", "F2             =", "F2", "expected POINT = SOURCE | STEP, found 'F2 head'"),
    )
    for name, old, new, part in cases:
        said = refusal(lambda: watched(engine, map=edited(name, old, new)))
        tap.report(part in said and "\n" not in said, f"refused: {name}", [said])
    said = refusal(lambda: watched(engine, map="absent.map"))
    tap.report(said == "absent.map: No such file or directory", "refused: a map that is not there", [said])
    with torch.no_grad():
        engine(torch.arange(5), torch.arange(5))
    with torch.no_grad(), sinkproof.trace(engine, map=MAP, checkpoint=TINY) as later:
        engine(torch.arange(3), torch.arange(5, 8))
    found = sinkproof.judge(TINY, later, "f32", local=True, hint=False)
    tap.report(later["positions"][0] == 5 and found.verdict not in ("bug", "suspicious") and not found["00.A2.q"].undecided,
               "a sequence that began before is a trace from its position on", str(found).splitlines())



def check_arguments(tap, engine):
    """An input is the parameter that the map names, however it was given; positions are read whole."""
    def call(**given):
        return lambda: engine(**given) if given else engine(torch.arange(N), torch.arange(N))

    def run(act, map=MAP):
        with torch.no_grad(), sinkproof.trace(engine, map=map, checkpoint=TINY) as trace:
            act()
        return trace

    parameters = list(inspect.signature(engine.forward).parameters)
    tokens, places = torch.arange(N), torch.arange(N)
    by_name = edited("positions by name", ".:in[1]", f".:in({parameters[1]})", "by_name.map")
    for text, map, act in (
            ("by name, in the other order", MAP, call(**{parameters[1]: places, parameters[0]: tokens * 3})),
            ("by place, where the map says a name", by_name, lambda: engine(tokens * 3, places))):
        trace = run(act, map)
        tap.report(trace["tokens"].tolist() == (tokens * 3).tolist() and judged(trace).ok,
                   f"tokens and positions {text}: the parameters that the map means", [trace])
    alone = edited("no positions", "positions      =", "#", "alone.map")
    tap.report(judged(run(call(), alone)).ok, "one call needs no positions")
    packed = torch.cat([torch.arange(3), torch.arange(5)])
    for text, part, act, map in (
            ("a second call, without positions", "whether a second call goes on with the sequence or begins another is not known",
             lambda: (call()(), call()()), alone),
            ("sequences packed into one call", "positions: expected 8 that follow one another from 0 on, found [0, 1, 2, 0, 1, 2, 3, 4] [8]",
             lambda: engine(torch.arange(8), packed), MAP),
            ("positions of fewer tokens", "expected 8 that follow one another from 0 on, found [0, 1, 2] [3]",
             lambda: engine(torch.arange(8), torch.arange(3)), MAP),
            ("an argument that is not there", "the call of Engine: expected arguments (", lambda: engine(), MAP)):
        said = refusal(lambda: run(act, map))
        tap.report(part in said and "\n" not in said, f"refused: {text}", [said])


# ------------------------------------------------------------------------------------------
# Dumps


DUMP_MAP = """
tokens    = ids
A2.q A2.k = blk.{LL}.qk | split 1 heads*head_dim kv_heads*head_dim
A6        = blk.{LL}.scores | reshape heads n n
A11       = attention_of_all_layers | at 0 {L} | transpose 1 0 2
M6        = blk.{L}.gate & blk.{L}.up | interleave
F2        = logits   # with a batch of one
"""


def foreign(trace):
    """The trace's arrays as another engine might name and lay them out."""
    found = {"ids": trace["tokens"].astype(np.int64)[None], "logits": trace["F2"][None],
             "attention_of_all_layers": np.stack([trace[f"0{L}.A11"].transpose(1, 0, 2) for L in range(4)])}
    for L in range(4):
        q, k = trace[f"0{L}.A2.q"], trace[f"0{L}.A2.k"]
        found[f"blk.0{L}.qk"] = np.concatenate([q.reshape(len(q), -1), k.reshape(len(k), -1)], axis=1)
        found[f"blk.0{L}.scores"] = trace[f"0{L}.A6"].reshape(-1)
        found[f"blk.{L}.gate"], found[f"blk.{L}.up"] = trace[f"0{L}.M6"][..., 0::2], trace[f"0{L}.M6"][..., 1::2]
    return found


def same(made, trace):
    kept = {name for name in trace if name.split(".", 1)[-1] in ("A2.q", "A2.k", "A6", "A11", "M6", "F2", "tokens",
                                                                  "positions")}
    return set(made) == kept and all(made[name].dtype == trace[name].dtype
                                     and made[name].tobytes() == trace[name].tobytes() for name in kept)


def check_dumps(tap):
    from safetensors.numpy import save_file
    trace = sinkproof.run(TINY, range(12), policy="bf16")
    as_written = {name: array.view(np.int16) if array.dtype.name == "bfloat16" else array
                  for name, array in foreign(trace).items()}
    pathlib.Path("dump.map").write_text(DUMP_MAP, encoding="utf-8")
    with_bits = DUMP_MAP.replace("\nF2        = logits", "\nF2        = logits | as bfloat16")
    for step in (" | split", " | reshape", " | at", " | interleave"):
        with_bits = with_bits.replace(step, " | as bfloat16" + step)
    pathlib.Path("bits.map").write_text(with_bits, encoding="utf-8")
    wide = {name: array.astype(np.float32) for name, array in foreign(trace).items() if name != "ids"}
    save_file({"ids": foreign(trace)["ids"], **{name: np.ascontiguousarray(array) for name, array in wide.items()}},
              "wide.safetensors")
    np.savez("dump.npz", **as_written)
    np.savez("raw.npz", **foreign(trace))
    trace.save("own.safetensors")
    for file in ("dump.npz", "raw.npz"):
        made = sinkproof.from_dump(file, "bits.map", TINY)
        tap.report(same(made, trace), f"{file}: bits named bfloat16 are the trace's, bit for bit", sorted(made))
    made = sinkproof.from_dump("wide.safetensors", "dump.map", TINY)
    narrow = {name: array.astype(trace[name].dtype) for name, array in made.items()}
    tap.report(same(narrow, trace) and made["00.A11"].dtype == np.float32, "a .safetensors in float32 too", sorted(made))
    done = subprocess.run([sys.executable, "-m", "sinkproof.trace", "dump", "wide.safetensors", "--map", "dump.map",
                           "--checkpoint", TINY, "--out", "made.safetensors"], capture_output=True, text=True, check=False)
    again = done.returncode == 0 and sinkproof.Trace.load("made.safetensors", TINY)
    tap.report(again and set(again) == set(made) and again.metadata["engine"] == "wide.safetensors",
               "sinkproof-trace dump writes it, tokens from the dump", [done.stderr])
    np.savez("placed.npz", **foreign(trace), places=np.arange(12)[None], later=np.arange(4, 16), gap=[*range(4, 15), 16],
             packed=np.concatenate([np.arange(6), np.arange(6)]))
    with_places = with_bits + "positions = places\n"
    pathlib.Path("places.map").write_text(with_places, encoding="utf-8")
    tap.report(same(sinkproof.from_dump("placed.npz", "places.map", TINY), trace), "positions 0, 1, ... of a dump are held")
    pathlib.Path("later.map").write_text(with_bits + "positions = later\n", encoding="utf-8")
    later = sinkproof.from_dump("placed.npz", "later.map", TINY)
    tap.report(later["positions"].tolist() == list(range(4, 16)), "positions of a dump may begin later", later)
    for name, file, map, part in (
            ("positions with a gap", "placed.npz", with_places.replace("= places", "= gap"),
             "expected 12 positions that follow each other, found [4, 5, 6"),
            ("a dump of packed sequences", "placed.npz", with_places.replace("= places", "= packed"),
             "expected 12 positions that follow each other, found [0, 1, 2, 3, 4, 5, 0, 1, 2]"),
            ("an array that is not there", "wide.safetensors", DUMP_MAP.replace("= logits", "= lm_head"),
             "line 7: wide.safetensors has no array lm_head: it has attention_of_all_layers, blk.0.gate"),
            ("bits without a name", "raw.npz", DUMP_MAP, "expected an array of bfloat16"),
            ("arrays that do not lie side by side", "wide.safetensors", DUMP_MAP.replace("& blk.{L}.up", "& blk.{LL}.qk"),
             "expected tensors that lie side by side, found float32 [12, 3, 128] and float32 [12, 192]"),
            ("tokens beside a point", "wide.safetensors", DUMP_MAP.replace("tokens  ", "A13 tokens"), "stand alone on a line"),
            ("another kind of file", "dump.map", DUMP_MAP, "expected a file .npz or .safetensors"),
            ("no file", "absent.npz", DUMP_MAP, "absent.npz: No such file or directory")):
        pathlib.Path("case.map").write_text(map, encoding="utf-8")
        said = refusal(lambda: sinkproof.from_dump(file, "case.map", TINY))
        tap.report(part in said and "\n" not in said, f"refused: {name}", [said])


def hostile():
    """Headers of .safetensors that lie, as (what, bytes)."""
    def file(header, data=b"\0" * 64):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + data
    of = {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}
    yield "an empty file", b""
    yield "a header longer than the file", (2**63).to_bytes(8, "little") + b"{}"
    yield "a header that is a list", file([1])
    yield "a header without end", file(b"[" * 100000)
    for what, change in (("an end past the file", {"data_offsets": [0, 1000]}), ("a size below zero", {"shape": [-16]}),
                         ("an offset below zero", {"data_offsets": [-64, 0]}), ("a size without bound", {"shape": [2**70]}),
                         ("a size that is no number", {"shape": [1e400]}), ("an unknown dtype", {"dtype": "F8"}),
                         ("no shape", {"shape": None}), ("nothing of much", {"shape": [0, 2**80], "data_offsets": [0, 0]}),
                         ("eighty dimensions", {"shape": [16] + [1] * 80})):
        yield what, file({"logits": {**of, **change}})


def wounded(text, generator):
    """A map with words lost, doubled or exchanged, or a character changed."""
    words = text.replace("\n", " \n ").split(" ")
    for _ in range(generator.choice((1, 2, 6))):
        a, b = generator.randrange(len(words)), generator.randrange(len(words))
        change = generator.randrange(5)
        if change == 0:
            words[a] = ""
        elif change == 1:
            words.insert(a, words[b])
        elif change == 2:
            words[a], words[b] = words[b], words[a]
        elif change == 3:
            words[a] = generator.choice(("-1", "0", "99999999999999999999", "{L}", "{L+9}", "|", "&", "=", "n*n", "*", "\0", "1e9"))
        elif words[a]:
            at = generator.randrange(len(words[a]))
            words[a] = words[a][:at] + chr(generator.randrange(32, 1000)) + words[a][at + 1:]
    return " ".join(words)


def check_hostile_maps(tap, generator, tries):
    ends = {"read": 0, "refused": 0}
    for _ in range(tries):
        pathlib.Path("mutant.map").write_text(wounded(DUMP_MAP, generator), encoding="utf-8")
        try:
            sinkproof.from_dump("wide.safetensors", "mutant.map", TINY)
            ends["read"] += 1
        except sinkproof.Error as error:
            ends["refused"] += "\n" not in str(error)
    tap.report(sum(ends.values()) == tries and min(ends.values()) > 0,
               f"{tries} maps with words changed are read or refused in a sentence", [ends])


def check_hostile(tap, tries=int(os.environ.get("TRIES", "300"))):
    pathlib.Path("one.map").write_text("F2 = logits\n", encoding="utf-8")
    for what, data in hostile():
        pathlib.Path("lies.safetensors").write_bytes(data)
        said = refusal(lambda: sinkproof.from_dump("lies.safetensors", "one.map", TINY, [1]))
        tap.report("lies.safetensors" in said and "\n" not in said, f"refused: {what}", [said])
    np.savez("object.npz", logits=np.array([{}], dtype=object))
    said = refusal(lambda: sinkproof.from_dump("object.npz", "one.map", TINY, [1]))
    tap.report("logits" in said and "allow_pickle" in said, "refused: an array of objects", [said])
    generator, model = random.Random(5), sinkproof.Model(TINY)
    from sinkproof.adapters._map import Map
    lines, ends = Map("dump.map", model), {"read": 0, "refused": 0}
    for number in range(tries):
        name = ("dump.npz", "wide.safetensors")[number % 2]
        data = bytearray(pathlib.Path(name).read_bytes())
        reach = len(data) if number % 4 < 2 else 2000  # headers are at the beginning of one, all over the other
        for _ in range(generator.choice((1, 4, 30))):
            data[generator.randrange(reach)] = generator.randrange(256)
        name = "mutant" + pathlib.Path(name).suffix
        pathlib.Path(name).write_bytes(data[:generator.choice((len(data), generator.randrange(len(data))))])
        try:
            dump = Dump(name, lines)
            for line in lines.lines:
                for source in line.sources:
                    dump.array(source, line)
            ends["read"] += 1
        except sinkproof.Error:
            ends["refused"] += 1
    tap.report(sum(ends.values()) == tries and min(ends.values()) > 0,
               f"{tries} dumps with bytes changed are read or refused in a sentence", [ends])
    check_hostile_maps(tap, generator, tries // 2)


def main():
    tap, engine = Tap(), Engine(TINY)
    check_engine(tap, engine)
    check_command(tap, engine)
    check_sentences(tap, engine)
    check_arguments(tap, engine)
    check_dumps(tap)
    check_hostile(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
