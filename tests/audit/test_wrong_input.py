# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What people give by mistake, and the sentence that must come: misspelt words, other files in the place
of a model or a trace, files that are cut short, a batch. And what holds for all sentences: a count agrees
with its noun, progress is for terminals, --help names every policy and every container.
"""
import gzip
import io
import os
import pathlib
import re
import struct
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shared"))
import checkpoints  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402

TINY = "synthetic:tiny,layers=1"
RUN = ["run", TINY, "--tokens", "1"]

# Words, exit code, what the one sentence says.
MISSPELT = [
    (["judg", "x"], 2, "unknown command 'judg': the nearest known is judge;"),
    ([*RUN, "--policy", "f23"], 2, "unknown policy 'f23': the nearest known is f32; known are real-f64, f32,"),
    ([*RUN, "--policy", "BF16"], 2, "the nearest known is bf16;"),
    ([*RUN, "--policy", "bfloat16"], 2, "the nearest known is bf16;"),
    ([*RUN, "--policy", "openai_bf16"], 2, "the nearest known is openai-bf16;"),
    (["judge", TINY, "x", "--policy", "f23"], 2, "the nearest known is f32;"),
    (["audit", TINY, "--policy", "f32,openai-bf61"], 2, "the nearest known is openai-bf16;"),
    ([*RUN, "--policy", "f32,M8.alpa=bf16"], 2, "unknown override 'M8.alpa' of a policy: the nearest known is M8.alpha;"),
    ([*RUN, "--policy", "f32,A9=bf61"], 2, "unknown format 'bf61' for A9: the nearest known is bf16;"),
    ([*RUN, "--policy", "f32,A9.form=base2"], 2, "unknown form 'base2' for A9.form: the nearest known is base-2;"),
    ([*RUN, "--policy", "f32,unrounded=T00"], 2, "the nearest known is T0;"),
    ([*RUN, "--engine", "fats"], 2, "unknown engine 'fats': the nearest known is fast;"),
    ([*RUN, "--engine", "fast", "--isa", "axv2"], 2, "\"axv2\" is unknown: the nearest known is avx2;"),
    (["run", "synthetic:tinny", "--tokens", "1"], 3, "the nearest known is tiny; expected tiny, gpt-oss-20b,"),
    (["run", "synthetic:tiny,sink=keyy", "--tokens", "1"], 3, "the nearest known is key;"),
    (["run", "synthetic:tiny,layer=1", "--tokens", "1"], 3, "the nearest known is layers=N;"),
    ([*RUN, "--trace", "{left}", "--points", "A99"], 3, "no point of a trace is named 'A99' (1 layer): the nearest known is A9"),
    ([*RUN, "--trace", "{left}", "--points", "00.a13"], 3, "the nearest known is 00.A13"),
    (["judge", "--plugin", "builtin:fast", "--stages", "atention"], 2, "no stage 'atention': the nearest known is attention;"),
    (["judge", "--plugin", "builtin:fast", "--case", "rmsnrm:n=1"], 2, "no stage 'rmsnrm': the nearest known is rmsnorm;"),
    (["verify", "sink.mas"], 2, "no statement 'sink.mas'; the nearest are sink.mass,"),
    (["next", TINY, "--policy", "bf61"], 2, "the nearest known is bf16;"),
    (["curve", "sink.alpha-snk"], 2, "no curve of \"sink.alpha-snk\": the nearest known is sink.alpha-sink;"),
    (["synth", TINY, "--layout", "gguff", "--out", "{left}"], 2, "the nearest known is gguf; expected layout"),
    (["synth", TINY, "--layout", "gguf", "--dense", "q80", "--out", "{left}"], 2, "the nearest known is q8_0;"),
    (["sinks", "--judge", "{design}"], 3, "the nearest known is sigmoid; expected a design"),
    (["judge", "{trace}", TINY], 3, "{trace}: expected a MODEL, found a trace: MODEL comes first, TRACE after it"),
    (["judge", TINY, "synthetic:tiny"], 3, "expected a TRACE, found the name of a MODEL: MODEL comes first, TRACE after it"),
    (["judge", TINY, "{hf}"], 3, "{hf}: expected a TRACE, found a directory: MODEL comes first, TRACE after it"),
    (["judge", TINY, "{hf}/model.safetensors"], 3, "and no tokens: it is no trace (weights, perhaps:"),
    (["judge", TINY, "{gguf}"], 3, "found a GGUF file, which is a MODEL"),
    (["judge", TINY, "{design}"], 3, "found sinkproof-design-1: `sinkproof sinks --judge` reads it"),
    (["info", "{hf}/model.safetensors"], 3, "found a safetensors file: give its directory, which has config.json in it"),
    (["info", "{hf}/config.json"], 3, "found JSON: give the directory that a config.json is in"),
    (["info", "{adapter}"], 3, "{adapter}: expected a MODEL, found an adapter of PEFT alone: merge it into its model"),
    (["info", "{nothing}"], 3, "{nothing}: No such file or directory: expected a directory, a .gguf file or synthetic:NAME"),
    (["info", "{gguf.llama}"], 3, "key general.architecture: expected \"gpt-oss\", \"llama\", \"qwen2\" or \"qwen3\", which are all that is read, found \"phi3\""),
    (["judge", TINY, "{cut}"], 3, ": the file is cut short"),
    (["judge", TINY, "{cut-head}"], 3, "{cut-head}: the file is cut short: its header has "),
    (["judge", TINY, "{cut-one}"], 3, "{cut-one}: expected a safetensors file, found 1 byte: it is cut short"),
    (["info", "{cut.gguf}"], 3, "cut short"),
    (["info", "{cut-head.gguf}"], 3, "the file is cut short, or damaged there"),
    (["judge", TINY, "{batch}"], 3, "tensor tokens: expected shape [n], found [1, 5]: it has the dimension of a batch in front;"),
    (["judge", TINY, "{batch-point}"], 3, "tensor F2: expected shape [5, 211], found [1, 5, 211]: it has the dimension of a batch"),
    (["run", TINY, "--tokens", "hello world"], 3, "'hello world' is not a token id: for a text say \"text:hello world\""),
    (["judge", TINY, "--tokens", "hello", "--bisect", "true"], 3, "for a text say \"text:hello\""),
]

# Files of other kinds: their beginning, and what they are called.
KINDS = [
    ("npz", None, "a zip archive (NumPy's .npz, torch.save)"), ("npy", b"\x93NUMPY\1\0", "an array of NumPy's (.npy)"),
    ("h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file"), ("gz", gzip.compress(b"{}"), "a file that gzip compressed"),
    ("zst", b"\x28\xb5\x2f\xfd", "a file that zstd compressed"), ("xz", b"\xfd7zXZ\0", "a file that xz compressed"),
    ("bz2", b"BZh9", "a file that bzip2 compressed"), ("tar", b"\0" * 257 + b"ustar", "a tar archive"),
    ("pt", b"\x80\2\x8a\n", "a pickle of Python's (torch.save)"), ("so", b"\x7fELF", "a program or a shared object"),
    ("lfs", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of git-lfs in place of the file (`git lfs pull`)"),
    ("html", b"<!DOCTYPE html>", "a page of HTML"), ("json", b'{"a": 1}', "JSON"), ("empty", b"", "an empty file"),
]


def files(work):
    """What the table names."""
    at = {name: work / name for name in ("left", "adapter", "nothing", "trace", "hf", "design", "cut", "cut-head", "cut-one", "batch",
                                         "batch-point", "cut.gguf", "cut-head.gguf")}
    at |= {"gguf": work / "m.gguf", "gguf.llama": work / "llama.gguf"}
    sinkproof("run", TINY, "--tokens", "1,2,3,4,5", "--policy", "f32", "--trace", str(at["trace"]))
    sinkproof("synth", TINY, "--layout", "hf", "--out", str(at["hf"]))
    at["adapter"].mkdir()
    (at["adapter"] / "adapter_config.json").write_text("{}", encoding="utf-8")
    sinkproof("synth", TINY, "--layout", "gguf", "--out", str(at["gguf"]))
    whole, gguf = at["trace"].read_bytes(), at["gguf"].read_bytes()
    for name, data in (("cut", whole[:len(whole) * 3 // 4]), ("cut-head", whole[:200]), ("cut-one", whole[:1]),
                       ("cut.gguf", gguf[:len(gguf) - 1000]), ("cut-head.gguf", gguf[:300]),
                       ("gguf.llama", llama(gguf))):
        at[name].write_bytes(data)
    tensors, meta = checkpoints.read(at["trace"])
    for name, tensor in (("batch", "tokens"), ("batch-point", "F2")):
        dtype, shape, data = tensors[tensor]
        at[name].write_bytes(checkpoints.safetensors(tensors | {tensor: (dtype, [1, *shape], data)}, meta))
    at["design"].write_bytes(checkpoints.safetensors({"00.s": ("F32", [1, 1, 1], b"\0" * 4)},
                                                     {"format": "sinkproof-design-1", "design": "sigmoyd"}))
    return at


def llama(gguf):
    """The file as of another architecture, with tensors in a type that is not read: Q4_K."""
    data = gguf.replace(struct.pack("<Q", 7) + b"gpt-oss", struct.pack("<Q", 4) + b"phi3", 1)
    name = b"token_embd.weight"
    end = data.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)
    rank = struct.unpack("<I", data[end:end + 4])[0]
    place = end + 4 + 8 * rank
    return data[:place] + struct.pack("<I", 12) + data[place + 4:]


def sentences(work):
    """The table."""
    at = files(work)
    for words, code, said in MISSPELT:
        words = [re.sub(r"\{([a-z.-]+)\}", lambda m: str(at[m[1]]), word) for word in words]
        said = re.sub(r"\{([a-z.-]+)\}", lambda m: str(at[m[1]]), said)
        status, out, told = sinkproof(*words)
        report(status == code and said in told.replace("\n", " ") and not at["left"].exists() and out == "",
               f"{' '.join(words[-3:])[-60:]}: exit {status}, {said[-60:]}", [told])


def kinds(work):
    """Other files in the place of a trace, of a model and of a model's weights."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY")
    sinkproof("synth", TINY, "--layout", "hf", "--out", str(work / "hf"))
    for name, data, said in KINDS:
        file = work / f"a.{name}"
        file.write_bytes(packed.getvalue() if data is None else data)
        (work / "hf" / "model.safetensors").write_bytes(file.read_bytes())
        found = []
        for words in (["judge", TINY, file], ["truth", TINY, "--local", file], ["sinks", TINY, file], ["compare", file, file],
                      ["sinks", "--judge", file], ["info", work / "hf"]):
            status, _, told = sinkproof(*map(str, words))
            found.append(status == 3 and f"expected a safetensors file, found {said}" in told)
        status, _, told = sinkproof("info", str(file))
        found.append(status == 3 and f"expected a MODEL (a directory, a .gguf file, synthetic:NAME), found {said}" in told)
        named = work / f"{name}.gguf"
        named.write_bytes(file.read_bytes())
        status, _, told = sinkproof("info", str(named))
        found.append(status == 3 and (said in told or name == "empty"))
        report(all(found), f"{name} is called {said}", [found, told])


# ---- what holds for all ----------------------------------------------------------------------

# Words that end with s and are no plural behind a number.
SINGULAR = {"is", "has", "holds", "as", "exceeds", "chooses", "breaks", "its", "explains", "was", "this", "draws", "s", "stands", "gives"}


def plurals(_):
    """No sentence of the program counts a noun by itself: sinkproof_counted does, "1 token"."""
    wrong = []
    for room in ("audit", "ref", "fast", "proofs"):
        for path in sorted(pathlib.Path(room).rglob("*.c")):
            text = re.sub(r'"\s*\n\s*"', "", path.read_text(encoding="utf-8"))
            for found in re.finditer(r"%(?:zu|llu|lu|u) ((?:[a-z]+[ /-]){0,2}?)([a-z]+s)\b", text):
                words = found[1].split() + [found[2]]
                if words[-1] not in SINGULAR and not set(found[1].split()) & (SINGULAR | {"to", "of", "in", "and", "at", "or", "on", "for", "without", "equal"}):
                    wrong.append(f"{path}: {found[0]}")
    report(not wrong, "counts are made with sinkproof_counted", wrong)


def one_of_each(work):
    """A model and a prompt of which there is one of everything: nothing says "1 tokens"."""
    config = checkpoints.STATED | checkpoints.SMALL | {
        "num_hidden_layers": 1, "num_local_experts": 1, "num_experts_per_tok": 1, "num_attention_heads": 1,
        "num_key_value_heads": 1}
    model = checkpoints.write(work / "one", checkpoints.weights(config), config)
    trace, other = str(work / "trace"), str(work / "other")
    sinkproof("run", model, "--tokens", "3", "--policy", "f32", "--trace", trace)
    sinkproof("run", model, "--tokens", "3", "--policy", "bf16", "--trace", other, "--points", "T0,00.A1")
    page = str(work / "page.html")
    said = []
    for words in (["info", model], ["run", model, "--tokens", "3"], ["judge", model, trace, "--html", page], ["verify", "sink.mass"],
                  ["judge", model, other, "--policy", "f32"], ["truth", model, "--tokens", "3"], ["truth", model, "--local", trace],
                  ["sinks", model, "--tokens", "3", "--html", page], ["sinks", model, trace], ["compare", trace, other],
                  ["compare", trace, trace, "--model", model], ["audit", model, "--tokens", "3", "--no-budget", "--html", page],
                  ["run", model, "--tokens", "3", "--points", "A99", "--trace", page], ["synth", model, "--layout", "gguf", "--out", page],
                  ["gpt2", "synthetic:tiny-gpt2,layers=1", "--tokens", "1", "--html", page]):
        _, out, told = sinkproof(*words)
        text = out + "\n" + told + "\n" + (pathlib.Path(page).read_text("utf-8", "replace") if "--html" in words else "")
        said += [f"{words[0]}: {m[0]}" for m in re.finditer(r"(?<![\w.,^/-])1 ([a-z]+ )?(token|point|element|layer|head|expert|key|"
                                                           r"row|statement|value|sink|choice|run|input|position|byte|querie)s\b", text)]
    report(not said, "of one, nothing is said in the plural", said)


def progress(_):
    """Every line that rewrites itself stands behind a look whether it is on a terminal."""
    wrong, seen = [], 0
    for path in sorted(pathlib.Path("audit").rglob("*.c")):
        for function in re.split(r"\n}\n", path.read_text(encoding="utf-8")):
            if "\\r\\033" in function:
                seen += 1
                if "isatty(STDERR_FILENO)" not in function:
                    wrong.append(f"{path}: {function[-300:]}")
    report(seen > 2 and not wrong, f"progress is for terminals: {seen} places", wrong)
    program = [os.environ.get("SINKPROOF", "build/release/sinkproof"), "truth", "synthetic:tiny", "--tokens", "random:3", "--bits", "64"]
    piped = subprocess.run(program, capture_output=True, text=True, check=False)
    report(piped.returncode in (0, 4) and piped.stderr == "", "nothing of it enters a pipe", [piped.stderr])
    shown = "and a terminal shows it"
    try:
        main, side = os.openpty()
    except OSError as error:  # a root without /dev/pts
        checkpoints.TAP.skip(shown, f"no terminal can be opened: {error.strerror}")
        return
    subprocess.run(program, stdout=subprocess.DEVNULL, stderr=side, check=False)
    os.close(side)
    told = os.read(main, 10000).decode()
    os.close(main)
    report("truth: layer 2 of 4" in told, shown, [told])


def kept_names(work):
    """What is written to a pipe or through a link leaves the pipe and the link where they are, as /dev/null must stay."""
    pipe, link, file = work / "pipe", work / "link", work / "behind.json"
    os.mkfifo(pipe)
    file.write_text("old")
    link.symlink_to(file.name)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        if sinkproof(*RUN, "--json", pipe)[0] != 0 or not pipe.is_fifo():
            reader.kill()
        read = reader.communicate()[0]
    report(pipe.is_fifo() and '"command"' in read, "a pipe is written to, and stays a pipe", [read[:200]])
    status, _, told = sinkproof(*RUN, "--json", link)
    report(status == 0 and link.is_symlink() and '"command"' in file.read_text(), "a link stays, and the file behind it is new", [told])
    report(sorted(p.name for p in work.iterdir() if p.name.startswith(("pipe", "link", "behind"))) == ["behind.json", "link", "pipe"],
           "and nothing else is left beside them")


def helps(_):
    """--help knows every policy, and every container that a MODEL may be."""
    status, _, told = sinkproof("run", TINY, "--tokens", "1", "--policy", "?")
    policies = re.search(r"known are (.*), or @FILE", told)[1].split(", ")
    report(len(policies) >= 12 and "mlx" in policies and status == 2, f"{len(policies)} policies are known")
    for command in ("run", "judge", "sinks", "audit", "next", "gpt2"):
        words = set(re.split(r"[^\w-]+", sinkproof(command, "--help")[1]))
        report(set(policies) <= words, f"{command} --help names every policy", [set(policies) - words])
    for command in ("run", "judge", "sinks", "audit", "next", "truth", "compare", "info", "synth", "bench"):
        text = " ".join(sinkproof(command, "--help")[1].split())
        report("MODEL is a directory (Hugging Face or OpenAI layout), a .gguf file or synthetic:NAME" in text,
               f"{command} --help says what a MODEL is")


if __name__ == "__main__":
    sys.exit(checkpoints.run(sentences, kinds, plurals, one_of_each, progress, kept_names, helps))
