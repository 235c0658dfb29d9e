# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The page and the pictures of `gpt2 MODEL`: each number that is drawn is the JSON's, a map's shades are those of the
traced weights, what was not run is said to be so; what the paper prints stands beside what the JSON measured; a
stranger's name stays text, and what cannot be written leaves nothing.
"""
import html
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("shared", "audit", "gates")]
import checkpoints  # noqa: E402
import inventory  # noqa: E402
from checkpoints import report, sinkproof  # noqa: E402
from test_report import Page, faults  # noqa: E402
from test_sinks_page import figure, leaves_nothing, level, mean, shown, tensor  # noqa: E402

MODEL = "synthetic:tiny-gpt2"
PANELS = ["none", "zero-bq", "swap-epe", "move-epe", "zero-bos", "zero-wk-rows", "zero-wk-random"]
ALONE = {f"figure-{k}" for k in (1, 2, 4, 5, 6, 7)}
# By sentence: the paper's figures for what figures 1 to 4 show.
ANALOGUES = {1: (16, 17, 15, 30), 2: (19, 20, 18, 31), 3: (22, 23, 21, 32), 4: (25, 26, 24, 33), 5: (28, 29, 27, 34)}
TITLES = {1: "Delta of each position", 2: "Cosine of the query bias and a position's key",
          4: "Effective positions against what positions change", 5: "Coordinates of EPE_1",
          6: "Delta of each position, all layers", 7: "Cosines of query biases and positions' keys, all layers"}
REFERENCE = {"model_type": "gpt2", "activation_function": "gelu_new", "n_embd": 48, "n_head": 4, "n_inner": 96, "n_layer": 11,
             "n_positions": 64, "vocab_size": 50257, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}


def small(work):
    """A model with GPT-2's vocabulary and eleven layers, and no more."""
    path = work / "config.json"
    path.write_text(json.dumps(REFERENCE))
    return f"synthetic:{path}"


def measured(work, *words, name="page"):
    """The page's text, the JSON's results and what was printed."""
    page, out = work / f"{name}.html", work / f"{name}.json"
    status, said, wrong = sinkproof("gpt2", *words, "--html", str(page), "--json", str(out))
    if status:
        raise SystemExit(f"gpt2 {' '.join(words)}: exit {status}: {wrong}")
    return page.read_text(encoding="utf-8"), json.loads(out.read_text())["results"], said


def expected(result):
    """{figure: titles, those in front last}, from the JSON alone."""
    layers, epe = result["layers"], result["epe"]
    at = layers[min(10, len(layers)) - 1]["unsplit"]
    massive = [m["coordinate"] for m in epe["massive"]]

    def known(titles, numbers):
        """Without a number there is no figure."""
        return titles if any(x is not None for x in numbers) else []

    def positions(numbers):
        titles = [f"position {j + 1}: {shown(x)}" for j, x in enumerate(numbers)]
        return known(titles[1:] + titles[:1], numbers)

    def by_layer(key):
        titles = [[f"layer {l + 1}, position {j + 1}: {shown(x)}" for j, x in enumerate(layer["unsplit"][key])] for l, layer in enumerate(layers)]
        return known([t for layer in titles for t in layer[1:]] + [layer[0] for layer in titles],
                     [x for layer in layers for x in layer["unsplit"][key]])
    coordinates = [f"coordinate {c}: {abs(x):.4g}" for c, x in enumerate(epe["first"])]
    return {1: positions(at["delta"]), 2: positions(at["align"]), 4: positions(epe["check"]),
            5: [t for c, t in enumerate(coordinates) if c not in massive] + [coordinates[c] for c in massive],
            6: by_layer("delta"), 7: by_layer("align")}


def heading(number, sentence=None):
    if sentence is None:
        return f"As figure {number}: {TITLES[number]}"
    if sentence == 0:
        return f"Figure {number}: {TITLES[number]}"
    if number > 4:
        return f"As figure {number}: {TITLES[number]}"
    return f"Figure {ANALOGUES[sentence][number - 1]}, as figure {number}: {TITLES[number]}"


def compared(text, result):
    wrong = []
    for number, titles in expected(result).items():
        title = html.escape(heading(number, result.get("sentence")), quote=False)
        have, words = figure(text, title)
        if not re.search(r" Defined by <code>[a-z]+[0-9]?\.[a-z0-9-]+</code>\.<", words):
            wrong.append(f"{title}: no definition")
        wrong += [f"{title}: {a!r} where the JSON says {b!r}" for a, b in zip(have, titles) if a != b][:3]
        if len(have) != len(titles):
            wrong.append(f"{title}: {len(have)} titles of {len(titles)}")
    return wrong


def numbers(work):
    """Each number that is drawn beside the JSON's: of tokens, of a sentence, with interventions."""
    for what, words in (("tokens", (MODEL, "--tokens", "random:20")), ("sentence 3", (small(work), "--sentence", "3", "--epe", "normed")),
                        ("sentence 0", (small(work), "--sentence", "0"))):
        text, results, _ = measured(work, *words)
        wrong = faults(Page(text)) + compared(text, results[0])
        report(not wrong, f"command.gpt2 page: of {what}: figures={len(TITLES)} numbers={text.count('<title>') - 1} bytes={len(text)}", wrong)
    changed = re.sub(r"<title>position 3: [-\d.e+]+<", "<title>position 3: 0.1234<", text, count=1)
    report(changed != text and len(compared(changed, results[0])) == 1, "command.gpt2 page: a number of another run is seen")
    stated = inventory.read_statements(ROOT, inventory.Problems())
    unknown = sorted({id for id in re.findall(r"Defined by <code>(.*?)</code>", text) if id not in stated})
    report(not unknown, "command.gpt2 page: every definition that it names is stated", unknown)
    words = figure(text, heading(1, 0))[1]
    delta = results[0]["layers"][9]["unsplit"]["delta"]
    said = f"Position 1 (red): {delta[0]:.4g}; 20 others: {min(delta[1:]):.4g} to {max(delta[1:]):.4g}, {sum(delta[1:]) / 20:.4g} on the mean."
    report(said in words and "layer 10's query bias" in words, f"command.gpt2 page: figure 1: {said}", [words])
    for number, key in ((6, "delta"), (7, "align")):
        above = sum(layer["unsplit"][key][0] > max(layer["unsplit"][key][1:]) for layer in results[0]["layers"])
        words = figure(text, html.escape(heading(number, 0), quote=False))[1]
        report(f"In {above} of 11 layers position 1 (red) is above all other positions." in words, f"command.gpt2 page: figure {number}: {above} of 11 layers", [words])
    text, results, said = measured(work, MODEL, "--tokens", "random:12", "--zero-bq", "--move-epe", "1:3")
    table = html.unescape(re.search(r"<pre>(.*?)</pre>", text, re.S)[1])
    wrong = faults(Page(text)) + compared(text, results[1])
    report(not wrong and len(results) == 2 and table in said and "The figures show the run with: b_Q = 0; positions 1 and 3" in text,
           "command.gpt2 page: with interventions: the run that is shown, and before and after as printed", wrong)


def shades(picture):
    """Of each map in a picture: {(column, row): level}."""
    maps = []
    for part in re.findall(r"<g transform=.*?</g>", picture, re.S):
        paths = re.findall(r'class="heat" stroke-opacity="([\d.]+)" d="(.*?)"', part)
        maps.append({(int(x), int(y)): round(float(o) * 12) - 1 for o, d in paths for x, y in re.findall(r"M(\d+) (\d+)\.5h1", d)})
    return maps


def maps(work):
    """The shades of all layers' maps beside the weights that a run traced: of the mean over the heads, and of a head."""
    trace = work / "t.safetensors"
    sinkproof("run", MODEL, "--tokens", "random:25", "--policy", "f32", "--trace", str(trace), "--points", "A9")
    for head in (None, 4):
        words = ("--head", str(head)) if head else ()
        text, _, _ = measured(work, MODEL, "--tokens", "random:25", "--policy", "f32", *words, name="maps")
        part = re.search(r"<h3>Maps of all layers of this run</h3>\n<figure>(.*?)</figure>", text, re.S)[1]
        drawn, wrong = shades(part), []
        for l in range(4):
            (heads, n, width), weights = tensor(trace, f"{l:02d}.A9")
            chosen = [head - 1] if head else range(heads)
            for q in range(n):
                for k in range(n):
                    true = level(mean([weights[(h * n + q) * width + k] for h in chosen]))
                    if drawn[l].get((k, q), -1) != true:
                        wrong.append(f"layer {l + 1} ({q}, {k}): {drawn[l].get((k, q))}, not {true}")
        named = re.findall(r"<text[^>]*>(layer \d)</text>", part)
        said = (f"Head {head} of 6" if head else "The mean over 6 heads") in part
        report(len(drawn) == 4 and not wrong and said and named == [f"layer {l}" for l in range(1, 5)],
               f"command.gpt2 maps: of {f'head {head}' if head else 'all heads'}: every shade is the traced weights'", wrong[:5])
    text, _, _ = measured(work, small(work), "--tokens", "random:64", name="maps")
    report("A cell is the mean" not in text, "command.gpt2 maps: of 64 tokens: a cell is one weight")


def panels(work):
    """The table and figure 3 beside the JSON; a panel is what its options make of a run."""
    text, results, said = measured(work, small(work), "--sentence", "2", "--panel")
    page, found = Page(text), results[0]["panels"]
    rows = [row for row in page.cells if len(row) == 8 and row[0].isdigit()]
    true = [[str(l + 1)] + ["not run" if "missing" in p else f"{mean([head[j] for head in p['alpha'][l]]):.4f}" for p in found]
            for j in range(2) for l in range(11)]
    wrong = [f"{a} where the JSON says {b}" for a, b in zip(rows, true) if a != b]
    report(not wrong and len(rows) == 22 and [p["panel"] for p in found] == PANELS, "command.gpt2 panels: the table is the JSON's", wrong[:4])
    printed = [line.split() for line in said.splitlines() if re.match(r" +\d+( +(0\.\d{4}|-)){7}$", line)]
    report([["not run" if x == "-" else x for x in line] for line in printed] == rows, "command.gpt2 panels: the page has what is printed")
    wrong = []
    for panel, words in (("zero-bq", ("--zero-bq",)), ("swap-epe", ("--swap-epe", "1:2")), ("move-epe", ("--move-epe", "1:2")),
                         ("zero-bos", ("--zero-bos",)), ("zero-wk-rows", ("--zero-wk-rows", "auto")), ("zero-wk-random", ("--zero-wk-random", "auto"))):
        one = found[PANELS.index(panel)]
        out = work / "one.json"
        status, _, _ = sinkproof("gpt2", small(work), "--sentence", "2", *words, "--json", str(out))
        if "missing" in one:
            wrong += [] if status == 3 and not one["alpha"] else [f"{panel}: exit {status}"]
            continue
        after = json.loads(out.read_text())["results"][1]
        alphas = [[head["alpha"] for head in layer["heads"]] for layer in after["layers"]]
        if one["alpha"] != alphas or one["rows"] != after["zeroed_rows"]:
            wrong.append(panel)
    report(not wrong, "command.gpt2 panels: each is the run that its option makes", wrong)
    title = "Figure 18, as figure 3: Attention under each intervention"
    part = re.search(rf"<h3>{title}</h3>\n<figure>(.*?)</figure>", text, re.S)[1]
    ran = [p for p in found if "missing" not in p]
    named = re.findall(r"<text[^>]*>\((\w)\) ([\w-]+)</text>", part)
    wrong = [p["panel"] for p in ran if f"{p['what']}: {mean([head[0] for head in p['alpha'][9]]):.4g}" not in part]
    report(not wrong and named == [("abcdefg"[PANELS.index(p["panel"])], p["panel"]) for p in ran] and len(shades(part)) == len(ran),
           f"command.gpt2 panels: figure 3: {len(ran)} maps, of layer 10", wrong)
    heads = [re.sub(r"<.*?>", "", h) for h in re.findall(r"<h3>(?:As figure (?:[89]|1[0-4])): .*?</h3>", text)]
    report(len(heads) == 7 and heads[0] == "As figure 8: Maps of all layers, no intervention", f"command.gpt2 panels: maps of {len(heads)} runs", heads)
    text, results, _ = measured(work, MODEL, "--tokens", "5", "--panel", name="alone")
    missing = [p["panel"] for p in results[0]["panels"] if p.get("missing") == "there is one position"]
    report(missing == ["swap-epe", "move-epe"] and text.count("Not drawn: what it is made of is not known, or was not run.") >= 2
           and "Not run: position 1 has EPE_2, since there is one position." in text and "there is no other." in text
           and not re.search(r"\bnan\b", text, re.I) and not faults(Page(text)), "command.gpt2 panels: of one token: what was not run says so")


def published(work):
    """On drawn weights of the released shape: what is printed, measured and off, as in the JSON; and whose weights these are."""
    text, results, said = measured(work, "synthetic:gpt2", "--published")
    found, page, wrong = results[0]["published"], Page(text), []
    rows = [row for row in page.cells if len(row) == 7 and row[1] == "printedmeasuredoff"]
    by_layer = {int(row[0]): row for row in rows}
    for row in found["rows"]:
        have = by_layer[row["layer"] + 1]
        for column, cell in zip(("mean", "spread", "138", "447"), have[2:6]):
            one = row[column]
            off = "=" if one["rounds"] else f"{one['off']:+.4g}"
            if cell != one["printed"] + f"{one['measured']:.6g}" + off:
                wrong.append(f"layer {row['layer'] + 1}, {column}: {cell}")
            digits = len(one["printed"].partition(".")[2])
            if one["rounds"] != (f"{one['measured']:.{digits}f}" == f"{float(one['printed']):.{digits}f}"):
                wrong.append(f"layer {row['layer'] + 1}, {column}: rounds {one['rounds']}")
            if one["off"] != one["measured"] - float(one["printed"]):
                wrong.append(f"layer {row['layer'] + 1}, {column}: off {one['off']}")
    report(len(rows) == 12 and not wrong, "gpt2.table1 gpt2.table2 printed, measured and off are the JSON's", wrong[:5])
    best = [r for r in found["readings"] if r["shown"]]
    gammas = [layer["unsplit"]["gamma"] for layer in results[0]["layers"]]
    apart = max(abs(row["mean"]["measured"] - g["mean"]) + abs(row["spread"]["measured"] - 2 * g["deviation"]) for row, g in zip(found["rows"], gammas))
    report(len(found["readings"]) == 16 and best == found["readings"][:1] and apart == 0,
           "gpt2.table1 gpt2.table2 the first reading is mean and twice the deviation of |gamma|, to the bit")
    drawn = "not the released ones: the printed numbers are not expected"
    report(drawn in found["weights"] and drawn in text and drawn in said.replace("\n", " ") and "not known here" not in text,
           "command.gpt2 published: drawn weights are not taken for the released ones")
    epe = {e["epe"]: e for e in found["effective"]}
    delta = results[0]["layers"][9]["unsplit"]["delta"]
    value = epe["raw"]["values"]["delta-others"]["measured"]
    report(value == mean(delta[1:]) and epe["normed"]["values"]["delta-first"]["measured"] == delta[0]
           and epe["raw"]["values"]["check-least"]["measured"] == min(results[0]["epe"]["check"])
           and epe["normed"]["values"]["check-least"]["measured"] != min(results[0]["epe"]["check"]),
           f"command.gpt2 published: the numbers of the text, in both readings: {value:.6g}")
    notes = html.unescape(text)
    report(len(found["notes"]) > 9 and all(n in notes for n in found["notes"].values()), f"command.gpt2 published: {len(found['notes'])} notes on the page")
    status, listed, _ = sinkproof("gpt2", "--sentences", "--json", "-")
    sentences = json.loads(listed)["results"]
    status, out, wrong = sinkproof("gpt2", small(work), "--sentence", "all", "--json", "-")
    inputs = json.loads(out)["results"]
    report(status == 0 and [(r["sentence"], r["input"], r["tokens"]) for r in inputs] == [(s["sentence"], s["text"], len(s["ids"])) for s in sentences]
           and len(inputs) == 6, "command.gpt2 sentences: all six, as they are listed", [wrong])
    status, out, _ = sinkproof("gpt2", small(work), "--tokens", ",".join(map(str, sentences[4]["ids"])), "--json", "-")
    other = json.loads(out)["results"][0]
    report(other["layers"] == inputs[4]["layers"] and "sentence" not in other, "command.gpt2 sentences: sentence 4 is its token ids")


def strangers(work):
    """Markup in the names of a model and of its tokens."""
    folder, tokens = work / "<script>alert(1)<", work / '<img src=x onerror=alert(2)>&"'
    sinkproof("synth", MODEL, "--out", str(folder), "--layout", "hf")
    tokens.write_text("1,2,3")
    text, _, _ = measured(work, str(folder), "--tokens", f"@{tokens}", "--panel", "--svg", str(work / "svg"))
    page = Page(text)
    files = [p.read_text(encoding="utf-8") for p in (work / "svg").iterdir()]
    report(not faults(page) and "alert(1)" in page.text and "alert(2)" in page.text and "<script" not in text + "".join(files),
           "command.gpt2 page: names are shown and never run", faults(page))


def pictures(work):
    """Each figure as a file: well-formed, by itself, the page's own picture, with a title and words."""
    folder = work / "svg"
    text, _, _ = measured(work, small(work), "--sentence", "0", "--panel", "--svg", str(folder))
    files, wrong = {p.stem: p.read_text(encoding="utf-8") for p in folder.iterdir()}, []
    inline = [re.sub(r"^<svg[^>]*>", "", s).strip() for s in re.findall(r"<svg.*?</svg>", text, re.S)]
    for name, svg in files.items():
        root = tree.fromstring(svg)
        head = re.search(r"^<svg[^>]*role=\"img\" aria-label=\"([^\"]+)\"[^>]*><style>.*?</style><title>([^<]+)</title><desc>(.+?)</desc>", svg[svg.index("<svg"):], re.S)
        body = svg[svg.index("<svg"):][head.end():].strip() if head else ""
        if root.tag != "{http://www.w3.org/2000/svg}svg" or body not in inline or "prefers-color-scheme:dark" not in svg \
                or re.search(r"(?:href|src)=|url\(|@import", svg) or not head[2].startswith(f"Figure {name[7:]}: ") or head[1] not in head[2]:
            wrong.append(name)
    ran = {f"figure-{k}" for k in range(1, 15)}
    missing = {f"figure-{k + 8}" for k, p in enumerate(PANELS) if "Not run: " in text and p.startswith("zero-wk")}
    report(set(files) in (ran, ran - missing) and not wrong, f"command.gpt2 svg: files={len(files)}, each stands alone", wrong)
    status, _, said = sinkproof("gpt2", small(work), "--sentence", "all", "--svg", str(work / "all"))
    names = {p.stem for p in (work / "all").iterdir()}
    report(status == 0 and names == {f"{s}-{name}" for s in range(6) for name in ALONE | {"maps"}}, f"command.gpt2 svg: six sentences: files={len(names)}", [said])


def refused(work):
    (work / "file").write_text("x")
    model, run = small(work), (MODEL, "--tokens", "1,2")
    leaves_nothing("command.gpt2 refused:", work, "gpt2", (MODEL, "--tokens", "random:40"), (
        ("a page in a folder that is not there", 3, (*run, "--html", str(work / "no" / "page.html"))),
        ("pictures where a file is", 3, (*run, "--svg", str(work / "file"))),
        ("a head that the model has not", 3, (*run, "--head", "7", "--html", str(work / "page.html"))),
        ("the tables of another shape", 3, (model, "--published", "--html", str(work / "page.html"))),
        ("a sentence in another vocabulary", 3, (MODEL, "--sentence", "1", "--svg", str(work / "page"))),
        ("another architecture", 3, ("synthetic:tiny", "--tokens", "1,2", "--html", str(work / "page.html"))),
        ("the tables of another architecture", 3, ("synthetic:tiny", "--published")),
        ("a sentence that is none", 2, (model, "--sentence", "6")),
        ("a sentence and tokens", 2, (model, "--sentence", "1", "--tokens", "1")),
        ("panels of an intervention", 2, (model, "--sentence", "1", "--panel", "--zero-bq")),
        ("a head of nothing", 2, (model, "--sentence", "1", "--head", "1")),
        ("head 0", 2, (model, "--sentence", "1", "--head", "0", "--panel")),
        ("sentences of a model", 2, (model, "--sentences"))))


if __name__ == "__main__":
    sys.exit(checkpoints.run(numbers, maps, panels, published, strangers, pictures, refused))
