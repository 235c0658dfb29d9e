# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The page and the pictures of `sinks MODEL`: each number that is drawn is the JSON's, a map's shades are
those of the traced weights, what is not known has no number's colour; a stranger's name stays text, and
what cannot be written leaves nothing.
"""
import html
import json
import math
import pathlib
import re
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("shared", "audit", "gates")]
import checkpoints  # noqa: E402
import inventory  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from test_report import Page, faults  # noqa: E402

MODEL = "synthetic:tiny"
FIGURES = {"sink-weight", "first-key", "sink-bars", "mass", "intensity", "massive", "spikes", "values", "keys", "cosines", "coordinate", "norms"}


def measured(work, *words, name="page", exits=0):
    """The page's text and the JSON's results."""
    html, out = work / f"{name}.html", work / f"{name}.json"
    status, _, wrong = sinkproof("sinks", *words, "--html", str(html), "--json", str(out))
    if status != exits:
        raise SystemExit(f"sinks {' '.join(words)}: exit {status}: {wrong}")
    return html.read_text(encoding="utf-8"), json.loads(out.read_text())["results"]


def figure(text, title):
    """The titles inside of the figure under this heading, and its words."""
    part = re.search(rf"<h3>{re.escape(title)}</h3>\n<figure>(.*?)</figure>", text, re.S)[1]
    return re.findall(r"<title>(.*?)</title>", part), re.sub(r"<svg.*?</svg>", "", part, flags=re.S)


def shown(x, form="%.4g"):
    return "not known" if x is None else form % x


def mean(numbers):
    total = 0.0
    for x in numbers:
        if x is None:
            return None
        total += x
    return total / len(numbers)


def expected(result):
    """{heading: titles}, from the JSON alone."""
    layers = result["layers"]

    def grid(value):
        return [f"{l}.{h}: {shown(value(head))}" for l, layer in enumerate(layers) for h, head in enumerate(layer["heads"])]

    def lines(names, places):
        return sorted(f"{place}: {name} {x:.3g}" for place, values in places for name, x in zip(names, values)
                      if x is not None and x > 0)

    def curves(names, places):
        return [t for k, name in enumerate(names) for t in
                [name, *(f"layer {at:.4g}: {name} {values[k]:.4g}" for at, values in places if values[k] is not None)]]
    states = [("T0", result["T0"])] + [(f"{l:02d}.{p}", layer[p]) for l, layer in enumerate(layers) for p in ("A13", "M12")]
    drains = {key: [(l, [mean([g[part] for g in layer[key]]) for part in ("first", "mean", "median")])
                    for l, layer in enumerate(layers)] for key in ("values", "keys")}
    shares = [*result["sink"][:10], result["sink_star"]]
    heads = result["heads"]
    return {
        "Sink weight by layer and head": grid(lambda head: head["sink"]["mean"]),
        "Weight of the first token": grid(lambda head: head["alpha"] and head["alpha"][0]),
        "Value-bias intensity": grid(lambda head: head["intensity"]),
        "Heads with a sink": [f"Sink_{k}: {round(x * heads)} of {heads} heads"
                              for k, x in zip([*range(1, len(shares)), "*"], shares)],
        "Mass of the keys against position": [
            f"layer {l}{', window' if layer['window'] else ''}: {layer['mass_by_position'][0]:.4g} to "
            f"{layer['mass_by_position'][-1]:.4g}" for l, layer in enumerate(layers)],
        "Massive activations": lines(("largest", "median", "norm of token 1"),
                                     [(name, (s["largest"], s["median"], s["first_norm"])) for name, s in states]),
        "The massive coordinate along the stream": [
            f"{l:02d}.M12, token {s['token']}, coordinate {s['coordinate']}: {name} {x:.3g}" for k, name in
            enumerate(("the massive token", "median token", "median of all")) for l, s, x in
            [(l, layer["M12"], (layer["M12"]["largest"], statistics.median(
                x for i, x in enumerate(layer["spike_by_position"]) if i != layer["M12"]["token"]), layer["M12"]["median"])[k])
             for l, layer in enumerate(layers) if layer["M12"]] if x > 0],
        "Norms of the states by position": [
            f"layer {l}: {layer['norm_by_position'][0]:.4g} at the first token, {layer['norm_by_position'][-1]:.4g} at the last"
            for l, layer in enumerate(layers)],
        "Spikes through the norms": curves(("before the norm", "after the norm"),
                                           [(l + half / 2, (n["before"], n["after"])) for l, layer in enumerate(layers)
                                            for half, n in enumerate((layer["A1"], layer["M1"]))]),
        "Value drains": curves(("the first", "mean of the others", "median of the others"), drains["values"]),
        "Norms of the keys": curves(("the first", "mean of the others", "median of the others"), drains["keys"]),
        "Key geometry": curves(("with the first key", "with the others"), [
            (l, [mean([h[k] for h in layer["heads"]]) for k in ("cosine_1", "cosine_others")]) for l, layer in enumerate(layers)]),
    }


def compared(text, result):
    wrong = []
    for heading, titles in expected(result).items():
        have, words = figure(text, heading)
        if not re.search(r" Defined by <code>[a-z]+\.[a-z-]+</code>\.<", words):
            wrong.append(f"{heading}: no definition")
        have = sorted(have) if ": largest" in "".join(titles) else have
        wrong += [f"{heading}: {a!r} where the JSON says {b!r}" for a, b in zip(have, titles) if a != b][:3]
        if len(have) != len(titles):
            wrong.append(f"{heading}: {len(have)} titles of {len(titles)}")
    return wrong


def numbers(work):
    """Each number that is drawn beside the JSON's, of a run and of a trace."""
    for what, words in (("a run", (MODEL, "--tokens", "random:40")), ("a longer one", (MODEL, "--tokens", "random:140"))):
        text, results = measured(work, *words)
        page = Page(text)
        wrong = faults(page) + compared(text, results[0])
        report(not wrong, f"sinks.page {what}: figures={len(expected(results[0]))} numbers={text.count('<title>') - 1} bytes={len(text)}", wrong)
    changed = re.sub(r"<title>2\.3: [\d.e+-]+<", "<title>2.3: 0.1234<", text, count=1)
    report(changed != text and len(compared(changed, results[0])) == 1, "sinks.page a number of another run is seen")
    stated = inventory.read_statements(ROOT, inventory.Problems())
    unknown = [id for id in re.findall(r"Defined by <code>(.*?)</code>", text) if id not in stated]
    report(not unknown, "sinks.page every definition that it names is stated", unknown)


def tensor(path, name):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:8 + size])[name]
    first, last = entry["data_offsets"]
    return entry["shape"], struct.unpack(f"<{(last - first) // 4}f", data[8 + size + first:8 + size + last])


def level(x):
    return max(-1, min(11, 11 + math.floor(math.log2(x)))) if x > 0 else -1


def cells_of(weights, shape, head, cell):
    """{(column of the picture, row): level} of a head's map whose cells are so many tokens wide."""
    _, n, width = shape
    at = lambda q, k: weights[(head * n + q) * width + k]  # noqa: E731
    side, cells = -(-n // cell), {}
    for r in range(side):
        queries = range(r * cell, min(n, (r + 1) * cell))
        cells[0, r] = level(sum(at(q, n) for q in queries) / len(queries))
        for c in range(r + 1):
            pairs = [at(q, k) for q in queries for k in range(c * cell, min(n, (c + 1) * cell)) if k <= q]
            cells[c + 3, r] = level(sum(pairs) / len(pairs))
    return {place: l for place, l in cells.items() if l >= 0}


def maps(work):
    """The shades of chosen heads beside the weights that the run traced."""
    trace = work / "t.safetensors"
    for n, cell in ((30, 1), (90, 2)):
        sinkproof("run", MODEL, "--tokens", f"random:{n}", "--policy", "f32", "--trace", str(trace), "--points", "A9")
        text, _ = measured(work, MODEL, str(trace), "--maps", "1.3,2.0", name="maps")
        pictures = re.findall(r'<svg[^>]*aria-label="attention weights".*?</svg>', text, re.S)
        wrong = []
        for picture, (layer, head) in zip(pictures, ((1, 3), (2, 0))):
            paths = re.findall(r'class="heat" stroke-opacity="([\d.]+)" d="(.*?)"', picture)
            drawn = {(int(x), int(y)): round(float(o) * 12) - 1 for o, d in paths
                     for x, y in re.findall(r"M(\d+) (\d+)\.5h1", d)}
            shape, weights = tensor(trace, f"{layer:02d}.A9")
            true = cells_of(weights, shape, head, cell)
            wrong += [f"{layer}.{head} at {p}: {drawn.get(p)}, not {true.get(p)}" for p in drawn | true if drawn.get(p) != true.get(p)]
        wrong += [] if "what is less than 2^-11 is not drawn" in text else ["what is not drawn is not said"]
        said = f"A cell is the mean over {cell} queries and {cell} keys" in text
        report(len(pictures) == 2 and not wrong and said == (cell > 1),
               f"sinks.map of {n} tokens, cells of {cell}: every shade is the traced weight's", wrong[:5])
    text, results = measured(work, MODEL, "--tokens", "random:20")
    sinks = {(l, h): head["sink"]["mean"] for l, layer in enumerate(results[0]["layers"]) for h, head in enumerate(layer["heads"])}
    ends = [max(sinks, key=sinks.get), min(sinks, key=sinks.get)]
    captions = [(int(l), int(h)) for l, h in re.findall(r"<figcaption>Layer (\d+), head (\d+)", text)]
    report(captions == ends, f"sinks.map by default the strongest and the weakest sink: {captions}", [str(ends)])


def unknown(work):
    """A trace that shows the weights of two layers: the others are not known, and not drawn as numbers."""
    trace = work / "t.safetensors"
    sinkproof("run", MODEL, "--tokens", "random:20", "--policy", "f32", "--trace", str(trace), "--points", "00.A9,02.A9,01.M12,03.M12")
    text, results = measured(work, MODEL, str(trace), "--maps", "0.1,1.1", name="part")
    part = re.search(r"<h3>Sink weight by layer and head</h3>.*?</svg>", text, re.S)[0]
    cells = re.findall(r'<rect class="(\w+)"[^>]*?( fill-opacity="[\d.]+")?><title>(\d+)\.\d+: (.*?)</title>', part)
    wrong = [str(c) for c in cells if (c[3] == "not known") != (c[2] in "13") or (c[0] == "unknown") != (c[3] == "not known")
             or bool(c[1]) != (c[0] == "cell")]
    report(len(cells) == 40 and not wrong, "sinks.page what is not known is no number and has no colour of one", wrong[:4])
    pictures = re.findall(r'<svg[^>]*aria-label="attention weights".*?</svg>', text, re.S)
    marks = [len(re.findall(r"h1", re.search(r'class="unknown" d="(.*?)"', p)[1])) for p in pictures]
    shades = [sum(len(re.findall(r"h1", d)) for d in re.findall(r'class="heat"[^>]* d="(.*?)"', p)) for p in pictures]
    report(marks == [0, 20 + 210] and shades[0] > 0 and shades[1] == 0, f"sinks.map of an untraced layer: unknown={marks}", [str(shades)])
    words, ends = figure(text, "Massive activations")[1], [layer["M12"] for layer in results[0]["layers"]]
    best = max((l for l in range(4) if ends[l]), key=lambda l: ends[l]["ratio"])
    report(ends[0] is None and f"of layer {best}'s end is {ends[best]['largest']:.4g}, {ends[best]['ratio']:.4g} times" in words,
           "sinks.page the largest of the known layers is named", [words])
    words = figure(text, "Value drains")[1]
    said = figure(text, "Mass of the keys against position")[0]
    report([t.endswith("not known") for t in said] == [False, True, False, True], f"sinks.page curves: {said[1]}", said)
    report("Not drawn: the points" in words and not re.search(r"\bnan\b", text, re.I),
           "sinks.page a figure whose points are missing says so", [words])


def strangers(work):
    """Markup in the names of a trace and of its engine."""
    trace = work / "<script>alert(1)<"
    sinkproof("run", MODEL, "--tokens", "random:9", "--policy", "f32", "--trace", str(trace), "--points", "A9,M12")
    data = trace.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + size])
    head["__metadata__"]["engine"] = "<img src=x onerror=alert(2)>&\"'"
    new = json.dumps(head).encode()
    trace.write_bytes(len(new).to_bytes(8, "little") + new + data[8 + size:])
    text, _ = measured(work, MODEL, str(trace), name="s")
    page = Page(text)
    report(not faults(page) and "alert(1)" in page.text and "alert(2)" in page.text and "<script" not in text,
           "sinks.page names are shown and never run", faults(page))


def pictures(work):
    """Each figure as a file: well-formed, by itself, the page's own picture."""
    folder = work / "svg"
    text, _ = measured(work, MODEL, "--tokens", "random:30", "--svg", str(folder), "--maps", "0.0", "--decompose")
    files, wrong = {p.stem: p.read_text(encoding="utf-8") for p in folder.iterdir()}, []
    inline = [re.sub(r"^<svg[^>]*>", "", s) for s in re.findall(r"<svg.*?</svg>", text, re.S)]
    for name, svg in files.items():
        root = tree.fromstring(svg)
        body = re.sub(r"^<svg[^>]*><style>.*?</style><title>[^<]+\([a-z.-]+\)</title><desc>.*?</desc>", "", svg[svg.index("<svg"):], flags=re.S).strip()
        if root.tag != "{http://www.w3.org/2000/svg}svg" or body not in inline or "prefers-color-scheme:dark" not in svg \
                or re.search(r"(?:href|src)=|url\(|@import", svg):
            wrong.append(name)
    terms = {f"terms-{name}" for name in ("content", "query", "key", "constant")}
    report(set(files) == FIGURES | {"map-0.0"} | terms and not wrong and len(files) == len(inline),
           f"sinks.svg files={len(files)}, each stands alone, and no figure of the page is left out", wrong)
    status, _, said = sinkproof("sinks", MODEL, "--tokens", "1,2,3", "--tokens", "4,5", "--svg", str(work / "two"))
    names = {p.name for p in (work / "two").iterdir()}
    report(status == 0 and {"1-mass.svg", "2-mass.svg"} <= names and len(names) >= 22, f"sinks.svg two inputs: files={len(names)}", [said])


def policies(work):
    """A policy is named whole, however long it is: cut, it would be another."""
    points = "A2.product A4.cos A4.prod A5 A8 A12.product M2.product M4 M6.product M8.alpha M8.scaled M8.sigmoid M8.swish M8.up"
    policy = "openai-bf16" + "".join(f",{p}=f32,{p}=bf16" for p in points.split())
    page, wrong = work / "policy.html", []
    for words in (("sinks", MODEL), ("gpt2", "synthetic:tiny-gpt2")):
        status, said, told = sinkproof(*words, "--tokens", "1,2,3", "--policy", policy, "--html", str(page))
        if status != 0 or f"policy {policy}" not in said or f"olicy {policy};" not in page.read_text(encoding="utf-8"):
            wrong += [words, status, said[:400], told]
    status, said, told = sinkproof("audit", MODEL, "--tokens", "1,2,3", "--policy", policy, "--no-budget")
    if status != 0 or not re.search(f"^{re.escape(policy)} +[0-9]", said, re.M):
        wrong += ["audit", status, said[:600], told]
    report(not wrong, f"sinks.page a policy of {len(policy)} characters is named whole, in text and page", wrong)


def tables(work):
    """What a part without figures prints stands on the page, word for word."""
    asked = ("--perturb", "3:17", "--strategies", "4,8", "--quantise", "--window")
    status, said, wrong = sinkproof("sinks", MODEL, "--tokens", "random:20", *asked, "--html", str(work / "t.html"))
    page = (work / "t.html").read_text(encoding="utf-8")
    names = [name for name in asked if name.startswith("--")]
    shown = re.findall(r"<h2>(--[a-z]+)</h2>\n<p>[^<]+</p>\n<pre>(.*?)</pre>", page, re.S)
    missing = [name for name, table in shown if html.unescape(table) not in said]
    report(status == 0 and sorted(names) == sorted(name for name, _ in shown) and not missing and not faults(Page(page)),
           f"sinks.page the tables of {len(shown)} parts, as they are printed", [wrong, *missing])


def words(work):
    """A map stands between the words of the text, where a tokenizer is beside the model, and else between positions."""
    folder, said = work / "worded", "hi,ok<b>"
    sinkproof("synth", MODEL, "--out", str(folder))
    for file in (ROOT / "tests/vectors/text").glob("*.json"):
        shutil.copy(file, folder)
    shutil.copy(ROOT / "tests/vectors/text/merges.txt", folder)
    ids = sinkproof("tokens", str(folder), "--text", said)[1].strip()
    text, _ = measured(work, str(folder), "--tokens", f"text:{said}", name="words")
    label = r'<text class="word" (?:x|transform)="[^>]*>([^<]*)</text>'
    shown = [[html.unescape(x) for x in re.findall(label, p)] for p in re.findall(r'<svg[^>]*aria-label="attention weights".*?</svg>', text, re.S)]
    pieces = [json.loads(sinkproof("tokens", str(folder), "--decode", i)[1]) for i in ids.split(",")]
    report(len(shown) == 2 and all(x == [*pieces, "sink", *pieces] for x in shown) and "".join(pieces) == said,
           f"sinks.map the words of the text beside rows and columns: {pieces}", [str(shown), str(pieces)])
    text, _ = measured(work, MODEL, "--tokens", "random:20", name="positions")
    shown = [re.findall(label, p) for p in re.findall(r'<svg[^>]*aria-label="attention weights".*?</svg>', text, re.S)]
    report(all(x == ["1", "9", "17", "sink", "1", "9", "17"] for x in shown) and len(shown) == 2, "sinks.map and without a tokenizer positions", [str(shown)])
    part = re.search(r"<h3>Weight of the first token</h3>.*?</svg>", text, re.S)[0]
    tips = re.findall(r'<g class="tip" tabindex="0"><rect[^>]*><title>(\d+)\.(\d+): ([^<]*)</title></rect><text[^>]*>layer (\d+), head (\d+): ([^<]*)</text></g>', part)
    report(len(tips) == 40 and all(t[:3] == t[3:] for t in tips), f"sinks.page each of {len(tips)} cells shows its number to the keyboard too")
    text, _ = measured(work, "synthetic:tiny,sink=none", "--tokens", "random:20", name="none")
    report(text.count("Not drawn: every number of it is 0.") == 1 and "gives the first token most" in text and "<text class=\"word\" x=\"98\"" in text
           and ">sink</text>" not in text, "sinks.page of a model without sinks: no empty grid, no empty column")


def refused(work):
    (work / "file").write_text("x")
    run = (MODEL, "--tokens", "1,2,3")
    leaves_nothing("sinks.refused", work, "sinks", (MODEL, "--tokens", "random:60"), (
        ("a page in a folder that is not there", 3, (*run, "--html", str(work / "no" / "page.html"))),
        ("pictures where a file is", 3, (*run, "--svg", str(work / "file"))),
        ("a head that the model has not", 3, (*run, "--html", str(work / "page.html"), "--maps", "0.99")),
        ("a map that is no head", 3, (*run, "--svg", str(work / "page"), "--maps", "1,2")),
        ("maps that nobody would see", 2, (*run, "--maps", "0.0"))))


def leaves_nothing(what, work, command, run, cases):
    """Each case ends with its exit code, in a sentence, and no file is left; nor of a run that has no room."""
    there = set(work.iterdir())

    def left():
        return [p.name for p in set(work.iterdir()) - there]
    for case, exits, words in cases:
        status, _, wrong = sinkproof(command, *words)
        report(status == exits and not left() and (exits == 2 or wrong.strip().count("\n") == 0),
               f"{what} {case}: exit {status}, nothing left", [wrong, *left()])
    for option in ("--html", "--svg"):
        done = subprocess.run([checkpoints.PROGRAM, command, *run, option, str(work / "out")],
                              capture_output=True, text=True, preexec_fn=no_room, check=False)
        report(done.returncode == 3 and not left() and "File too large" in done.stderr,
               f"{what} {option} where there is no room: exit {done.returncode}, nothing left", [done.stderr, *left()])


def no_room():
    """No file may exceed 4 KiB: as a full disk, an error and no signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


if __name__ == "__main__":
    sys.exit(checkpoints.run(numbers, maps, unknown, strangers, pictures, policies, tables, words, refused))
