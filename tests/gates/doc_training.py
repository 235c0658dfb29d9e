# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The runs of the training study (doc/27), and the chapter's tables of what is kept of them; for doc_pages.py.

tests/audit/training_study.py makes the runs. Nothing here needs torch. A verdict of a table is computed: no sentence
of the chapter says of the runs what they do not show. The lecture's tables (doc/28) say of a claim what the runs showed
in words that are made here too, "trained here: ...", and check() holds each row to them.
"""
import ast
import hashlib
import json
import pathlib
import re
import statistics

KEPT = "doc/book/data/training.json"
CODE = "tests/audit/training.py"
CODE_HERE = "tests/gates/doc_training.py"

DESIGNS = ("softmax", "sink-token", "kv-bias", "k-bias", "score-bias", "off-by-one", "v-bias", "value-even-5",
           "value-even-20", "scaled-2", "scaled-0.1", "sigmoid", "sigmoid-norm", "elu", "identity", "gated",
           "gated-head")
# {name of a run: its configuration}; what it does not say is training.Config's.
RUNS = {design: {"design": design} for design in DESIGNS}
RUNS |= {f"rate {rate:g}": {"design": "softmax", "rate": rate} for rate in (7.5e-4, 1.5e-3, 3e-3, 1.2e-2)}
RUNS |= {f"decay {decay:g}": {"design": "softmax", "decay": decay} for decay in (0, 0.5, 1, 2, 5)}
RUNS |= {"prefix-5": {"design": "prefix-5"}, "window-32": {"design": "window-32"}}
RUNS |= {f"window {window}": {"design": "window-32", "window": window} for window in (16, 8)}
RUNS |= {"drawn start": {"design": "softmax", "start": "drawn"}}
RUNS |= {"2 layers": {"design": "softmax", "layers": 2},
         "2 layers, drawn start": {"design": "softmax", "layers": 2, "start": "drawn"}}
LONG = {"steps": 1500, "every": 150}
RUNS |= {"1500 steps": {"design": "softmax", **LONG}, "decay 0, 1500 steps": {"design": "softmax", "decay": 0, **LONG},
         "decay 0, 1500 steps, k-bias": {"design": "k-bias", "decay": 0, **LONG},
         "decay 0, 1500 steps, score-bias": {"design": "score-bias", "decay": 0, **LONG}}

# The runs whose logits' gradients are followed step by step (tests/audit/training_gradients.py).
GRADIENT_RUNS = {"score-bias": {**RUNS["score-bias"], "every": 25},
                 "decay 0, 1500 steps, score-bias": {**RUNS["decay 0, 1500 steps, score-bias"], "every": 50}}
KEPT_GRADIENTS = "doc/book/data/training-gradients.json"
CODE_GRADIENTS = "tests/audit/training_gradients.py"

# Sink_* and Sink_1 in percent of the models of Gu et al. with 60 million parameters.
PUBLISHED = {"softmax": (None, "18.18"), "sink-token": ("74.12", "0.00"), "kv-bias": ("72.76", "0.04"),
             "k-bias": ("73.34", "0.00"), "v-bias": (None, "17.53"), "value-even-5": ("27.99", "5.93"),
             "value-even-20": ("0.00", "11.21"), "scaled-2": (None, "29.10"), "scaled-0.1": (None, "3.59"),
             "sigmoid": (None, "0.44"), "sigmoid-norm": (None, "30.24"), "elu": (None, "0.80"),
             "identity": (None, "0.00"),
             "rate 0.012": (None, "32.23"), "rate 0.003": (None, "11.21"), "rate 0.0015": (None, "2.90"),
             "decay 0": (None, "15.20"), "decay 0.5": (None, "41.08"), "decay 1": (None, "37.71"),
             "decay 2": (None, "6.13"), "decay 5": (None, "0.01")}

# What the lecture and its paper report, as a comparison of two runs: seen here if it holds in each seed, not seen if
# in none, the opposite if the reverse holds in each. A side is (run, quantity) at the end, or (run, quantity, 0) before the first step; the first is to be the
# larger. Where the report says "none", the smaller is to be below 1 % besides.
FINDINGS = (
    ("a sink on the first token emerges in training", ("softmax", "sink_1"), ("softmax", "sink_1", 0)),
    ("it grows as training goes on", ("1500 steps", "sink_1"), ("softmax", "sink_1")),
    ("so without weight decay", ("decay 0, 1500 steps", "sink_1"), ("decay 0", "sink_1")),
    ("its value becomes small", ("softmax", "value_1", 0), ("softmax", "value_1")),
    ("a learned key takes the sink", ("k-bias", "sink_star"), ("k-bias", "sink_1")),
    ("so a learned key with a value", ("kv-bias", "sink_star"), ("kv-bias", "sink_1")),
    ("so a learned token", ("sink-token", "sink_star"), ("sink-token", "sink_1")),
    ("so a learned key after 1500 steps without weight decay", ("decay 0, 1500 steps, k-bias", "sink_star"),
     ("decay 0, 1500 steps, k-bias", "sink_1")),
    ("so with a learned score", ("decay 0, 1500 steps, score-bias", "sink_star"),
     ("decay 0, 1500 steps, score-bias", "sink_1")),
    ("the first token has less", ("softmax", "sink_1"), ("k-bias", "sink_1")),
    ("so with a learned key and value", ("softmax", "sink_1"), ("kv-bias", "sink_1")),
    ("so with a learned token", ("softmax", "sink_1"), ("sink-token", "sink_1")),
    ("so with a learned score, as in GPT-OSS", ("softmax", "sink_1"), ("score-bias", "sink_1")),
    ("so with softmax off by one", ("softmax", "sink_1"), ("off-by-one", "sink_1")),
    ("not with a learned value alone", ("v-bias", "sink_1"), ("k-bias", "sink_1")),
    ("a key whose value is not small is left", ("k-bias", "sink_star"), ("value-even-20", "sink_star")),
    ("and the first token has its sink again", ("value-even-20", "sink_1"), ("k-bias", "sink_1")),
    ("weights that sum to 2: more", ("scaled-2", "sink_1"), ("softmax", "sink_1")),
    ("weights that sum to 0.1: less", ("softmax", "sink_1"), ("scaled-0.1", "sink_1")),
    ("sigmoids that nothing divides: none", ("softmax", "sink_1"), ("sigmoid", "sink_1")),
    ("so for the weights, not as shares of a row: none", ("softmax", "raw_sink_1"), ("sigmoid", "raw_sink_1")),
    ("over their sum: it is back", ("sigmoid-norm", "sink_1"), ("sigmoid", "sink_1")),
    ("elu + 1 that nothing divides: none", ("softmax", "sink_1"), ("elu", "sink_1")),
    ("the score itself: none", ("softmax", "sink_1"), ("identity", "sink_1")),
    ("a gate on each coordinate: less", ("softmax", "sink_1"), ("gated", "sink_1")),
    ("a gate on each head: less", ("softmax", "sink_1"), ("gated-head", "sink_1")),
    ("a learned key: smaller massive activations", ("softmax", "massive"), ("k-bias", "massive")),
    ("half the learning rate: less", ("softmax", "sink_1"), ("rate 0.003", "sink_1")),
    ("an eighth of it: less", ("softmax", "sink_1"), ("rate 0.00075", "sink_1")),
    ("twice the learning rate: more", ("rate 0.012", "sink_1"), ("softmax", "sink_1")),
    ("no weight decay: less", ("softmax", "sink_1"), ("decay 0", "sink_1")),
    ("weight decay 0.5: more", ("decay 0.5", "sink_1"), ("softmax", "sink_1")),
    ("weight decay 5: none", ("softmax", "sink_1"), ("decay 5", "sink_1")),
    ("a prefix that all see: the first token has less", ("softmax", "sink_1"), ("prefix-5", "sink_1")),
    ("another token of the prefix has more", ("prefix-5", "sink_2_10"), ("softmax", "sink_2_10")),
    ("a window of half the text: less", ("softmax", "sink_1"), ("window-32", "sink_1")),
    ("of an eighth: less", ("softmax", "sink_1"), ("window 8", "sink_1")),
    ("a first token that is always the same: more", ("softmax", "sink_1"), ("drawn start", "sink_1")),
    ("so with 2 layers", ("2 layers", "sink_1"), ("2 layers, drawn start", "sink_1")),
)
# {claim of a table of the lecture: (in short, what is reported) of each comparison that bears on it}.
LECTURE = "doc/28-lecture.md"
CLAIMS = {
    "The sink's value is small: *value drains*": (("the first value shorter than before", "its value becomes small"),),
    "No sink at the start, a sink after training": (
        ("a sink after 500 steps", "a sink on the first token emerges in training"),
        ("a larger one after 1500", "it grows as training goes on"),
        ("so without weight decay", "so without weight decay")),
    "Large learning rates make more of it, *even under the same rate times steps*": (
        ("less at half the rate", "half the learning rate: less"),
        ("less at an eighth", "an eighth of it: less"),
        ("more at twice the rate", "twice the learning rate: more")),
    "Weight decay makes more of it, too much unmakes the model": (
        ("less without decay", "no weight decay: less"),
        ("more at 0.5", "weight decay 0.5: more"),
        ("none at 5", "weight decay 5: none")),
    "Prefix language models: the sink moves to other tokens of the prefix": (
        ("less on the first token", "a prefix that all see: the first token has less"),
        ("more on another", "another token of the prefix has more")),
    "Short windows have less of it": (
        ("less with half of the text", "a window of half the text: less"),
        ("less with an eighth", "of an eighth: less")),
    "A learned sink token takes the sink": (
        ("the token has more of it than the first of the text", "so a learned token"),
        ("less on the first token than without", "so with a learned token")),
    "Learned $k^*$ and $v^*$ take it": (
        ("they have more of it than the first token", "so a learned key with a value"),
        ("less on the first token than without", "so with a learned key and value")),
    "Learned $k^*$ with the value 0 takes it": (
        ("the key has more of it than the first token", "a learned key takes the sink"),
        ("so after 1500 steps without weight decay", "so a learned key after 1500 steps without weight decay"),
        ("less on the first token than without", "the first token has less")),
    "Learned $v^*$ alone does not (on the slide: *learnable K biases*, control group; the formula has $v^*$)": (
        ("more on the first token than with a key", "not with a learned value alone"),),
    "Key biases lessen massive activations": (
        ("smaller ones with a learned key", "a learned key: smaller massive activations"),),
    "The value bias must be near 0": (
        ("less on a key whose value is large", "a key whose value is not small is left"),
        ("and the first token has its sink again", "and the first token has its sink again")),
    "Softmax off by one is $k^* = 0$": (
        ("less on the first token than without", "so with softmax off by one"),),
    "A score bias is one number for each head": (
        ("the sink's column has more of it than the first token after 1500 steps without weight decay",
         "so with a learned score"),
        ("less on the first token than without", "so with a learned score, as in GPT-OSS")),
    "... which lessens the sink": (
        ("more with weights that sum to 2", "weights that sum to 2: more"),
        ("less with 0.1", "weights that sum to 0.1: less")),
    "No normaliser, no sink; a normaliser, a sink again": (
        ("none with sigmoids", "sigmoids that nothing divides: none"),
        ("none of the weights themselves", "so for the weights, not as shares of a row: none"),
        ("none with elu + 1", "elu + 1 that nothing divides: none"),
        ("none with the score itself", "the score itself: none"),
        ("a sink again with sigmoids over their sum", "over their sum: it is back")),
    "a first token drawn at random; the first two; the second alone": (
        ("less with a drawn one", "a first token that is always the same: more"),),
    "... *no attention sink, no massive activations, better long context, stability*": (
        ("less with a gate on each coordinate", "a gate on each coordinate: less"),
        ("less with a gate on each head", "a gate on each head: less")),
}
OWN = {"so with 2 layers"}  # a question of this book, of no claim
NAMES = {"sink_1": "Sink_1", "sink_star": "Sink_*", "sink_2_10": "largest Sink_k, k = 2 … 10",
         "raw_sink_1": "Sink_1 of the weights",
         "value_1": "first value's norm", "massive": "largest over median activation"}


# ---- what is kept

def hash_of(root, name, runs=None, codes=(CODE,)):
    """Of a run's configuration and of the code that makes it, without its empty lines and those that are comments."""
    lines = [line for code in codes for line in (root / code).read_text(encoding="utf-8").splitlines()]
    code = [line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return hashlib.sha256(json.dumps([(runs or RUNS)[name], code], sort_keys=True).encode()).hexdigest()[:16]


def hash_of_gradients(root, name):
    return hash_of(root, name, GRADIENT_RUNS, (CODE, CODE_GRADIENTS))


def kept(root, path=KEPT):
    path = root / path
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def kept_gradients(root):
    return kept(root, KEPT_GRADIENTS)


def missing_gradients(root):
    told = kept_gradients(root)
    return [name for name in GRADIENT_RUNS if told.get(name, {}).get("hash") != hash_of_gradients(root, name)]


def missing(root):
    """Runs that are not kept, or that other code made."""
    told = kept(root)
    return [name for name in RUNS if told.get(name, {}).get("hash") != hash_of(root, name)]


def defaults(root):
    """{field of training.Config: its default}."""
    tree = ast.parse((root / CODE).read_text(encoding="utf-8"))
    config = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Config")
    return {field.target.id: ast.literal_eval(field.value) for field in config.body
            if isinstance(field, ast.AnnAssign) and field.value is not None}


def seen(told, run, quantity, at=-1):
    """A number for each seed; of what every head has its mean over the heads."""
    each = told[run]["seen"][at][quantity]
    return [statistics.fmean(x) if isinstance(x, list) else x for x in each]


# ---- cells

def span(numbers, digits):
    """Median, least and largest."""
    middle, least, most = (f"{x:.{digits}f}" for x in (statistics.median(numbers), min(numbers), max(numbers)))
    return middle if least == most else f"{middle} ({least} … {most})"


def cell(told, run, quantity, digits, at=-1):
    return span(seen(told, run, quantity, at), digits) if quantity in told[run]["seen"][at] else "—"


def excess(told, run):
    """Loss above what the process itself has."""
    return span([a - b for a, b in zip(seen(told, run, "loss"), seen(told, run, "process"))], 3)


def rows_of(told, runs, title):
    rows = ["", f"| {title} | Sink_\\* % | Sink_1 % | alpha_1 | loss above the process | published |", "|---" * 6 + "|"]
    for run in runs:
        published = ", ".join(f"{name} {x}" for name, x in zip(("Sink_\\*", "Sink_1"), PUBLISHED.get(run, ())) if x)
        rows.append(f"| `{run}` | {cell(told, run, 'sink_star', 0)} | {cell(told, run, 'sink_1', 0)} | "
                    f"{cell(told, run, 'alpha_1', 2)} | {excess(told, run)} | {published or '—'} |")
    return rows


def others(told):
    """Rows that need not sum to 1, the first value's norm beside the others' mean, the largest activation."""
    rows = ["", "| design | row sum | Sink_1 % of the weights | first value's norm | largest activation |",
            "|---" * 5 + "|"]
    for run in DESIGNS:
        pairs = [f"{cell(told, run, quantity, digits, 0)} → {cell(told, run, quantity, digits)}"
                 for quantity, digits in (("mass", 1), ("raw_sink_1", 0), ("value_1", 2), ("massive", 1))]
        rows.append(f"| `{run}` | {' | '.join(pairs)} |")
    return rows


def holds(told, reported, larger, smaller):
    """In how many seeds."""
    most = 1 if reported.endswith(": none") else float("inf")
    return sum(a > b and b < most for a, b in zip(seen(told, *larger), seen(told, *smaller)))


WORDS = ("seen", "not in every seed", "**not seen**", "**the opposite**")


def verdict(told, reported, larger, smaller):
    """Of a comparison, the word of WORDS for what the runs showed."""
    count, of = holds(told, reported, larger, smaller), len(seen(told, *larger))
    if count:
        return WORDS[0 if count == of else 1]
    reverse = all(a < b for a, b in zip(seen(told, *larger), seen(told, *smaller)))
    return WORDS[3 if reverse else 2]


def findings(told):
    rows = ["", "| reported | the larger here | the smaller | medians | seeds | here |", "|---" * 6 + "|"]
    for reported, larger, smaller in FINDINGS:
        sides = [f"`{run}` {NAMES[quantity].replace('*', chr(92) + '*')}{' before training' if at else ''}"
                 for run, quantity, *at in (larger, smaller)]
        medians = [statistics.median(seen(told, *side)) for side in (larger, smaller)]
        count, of = holds(told, reported, larger, smaller), len(seen(told, *larger))
        rows.append(f"| {reported} | {sides[0]} | {sides[1]} | {medians[0]:.1f}, {medians[1]:.1f} | {count} of {of} | "
                    f"{verdict(told, reported, larger, smaller)} |")
    verdicts = [verdict(told, *finding) for finding in FINDINGS]
    counted = ", ".join(f"{verdicts.count(word)} {word.strip('*')}" for word in WORDS)
    return [*rows, f"| all {len(FINDINGS)} | | | | | {counted} |"]


TRAINED = re.compile(r"trained here: [^;|]*[^;| ]")


def trained(told, claim):
    """What a row of the lecture says of its claim."""
    every = {finding[0]: finding for finding in FINDINGS}
    said = [f"{short}: {verdict(told, *every[reported])}" for short, reported in CLAIMS[claim]]
    return f"trained here: {', '.join(said)}"


def check(root, write, problems):
    """Each claim of the lecture on which a comparison bears says what the runs showed, in the words of trained(), and no
    other row speaks of them."""
    page, told = root / LECTURE, kept(root)
    if not page.is_file() or missing(root):
        return
    lines, found = page.read_text(encoding="utf-8").splitlines(), set()
    for at, line in enumerate(lines):
        cells = line.split(" | ")
        claim, said = cells[0].removeprefix("| "), TRAINED.findall(line)
        if not line.startswith("| ") or len(cells) < 3:
            continue
        if claim not in CLAIMS:
            if said or re.search(r"27-training|eq\[train\.", line) and claim != "trained here":
                problems.add(f"{LECTURE}:{at + 1}", f"speaks of the runs of doc/27, and CLAIMS of {CODE_HERE} has no such claim")
            continue
        found.add(claim)
        if write and len(said) == 1:
            lines[at] = line = line.replace(said[0], trained(told, claim))
        if TRAINED.findall(line) != [trained(told, claim)]:
            problems.add(f"{LECTURE}:{at + 1}", f"expected once in this row “{trained(told, claim)}”, found “{'; '.join(said)}”")
        if re.search(r"\bmeasured there\b", line):
            problems.add(f"{LECTURE}:{at + 1}", "says “measured there” of runs, and not what they showed")
    for claim in CLAIMS.keys() - found:
        problems.add(LECTURE, f"has no claim “{claim}”")
    cited = {reported for pairs in CLAIMS.values() for _, reported in pairs}
    for reported in [finding[0] for finding in FINDINGS if (finding[0] in cited) == (finding[0] in OWN)]:
        problems.add(CODE_HERE, f"“{reported}” bears on no claim of {LECTURE}, or is called the book's own and does")
    if write:
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(root):
    told, runs = defaults(root), kept(root).values()
    each = {"layers": "layers", "heads": "heads", "width": "width", "letters": "letters", "triggers": "triggers",
            "trigger_share": "their share", "length": "$T$", "steps": "steps", "batch": "sequences a step",
            "rate": "learning rate", "warmup": "warm-up steps", "decay": "weight decay", "betas": "betas of AdamW",
            "clip": "gradient norm at most", "seeds": "seeds", "sequences": "sequences measured"}
    cells = [f"| {each[name]} | {', '.join(map(str, value)) if isinstance(value, tuple) else value} |"
             for name, value in told.items() if name in each]
    seconds, builds = sum(run["seconds"] for run in runs), sorted({f"{run['torch']}, {run['machine']}" for run in runs})
    return ["", "| what | value |", "|---|---|", *cells, f"| runs | {len(RUNS)} |",
            f"| processor seconds of all runs | {seconds:.0f} |", f"| torch | {'; '.join(builds)} |"]


TABLES = ("setup", "designs", "others", "trends", "findings")


def table(root, name):
    """The lines of the table training-NAME, or None."""
    told, name = kept(root), name.removeprefix("training-")
    if name not in TABLES or missing(root):
        return None
    if name == "setup":
        return setup(root)
    if name in ("designs", "trends"):
        return rows_of(told, [run for run in RUNS if (run in DESIGNS) == (name == "designs")],
                       "design" if name == "designs" else "run")
    return (others if name == "others" else findings)(told)


def columns(root):
    """What the figure is drawn from: a block for each curve, step and mean, least and largest over the seeds."""
    told, blocks = kept(root), []
    for run, quantity in (("1500 steps", "sink_1"), ("decay 0, 1500 steps", "sink_1"),
                          ("decay 0, 1500 steps, k-bias", "sink_1"), ("decay 0, 1500 steps, k-bias", "sink_star")):
        lines = [f"# {run} {quantity}"]
        for at, row in enumerate(told[run]["seen"]):
            each = seen(told, run, quantity, at)
            lines.append(f"{row['step']} {statistics.fmean(each):g} {min(each):g} {max(each):g}")
        blocks.append("\n".join(lines))
    return "# step, mean, least and largest over the seeds\n" + "\n\n\n".join(blocks) + "\n"


def every_head(row, *keys):
    """The numbers of a row for each seed and head."""
    for key in keys:
        row = row[key]
    return [x for seed in row for x in seed]


def columns_of_logits(root):
    """Of the longer run whose logits are followed, a row a step: the logit, then what each kind of rows has moved it by, as
    mean, least and largest over seeds and heads; then the mean gradient, negated, of each kind."""
    lines = ["# step; mean, least and largest of the logit, and of what other, copying and first rows moved it by; "
             "minus the mean gradient of other, copying and first rows"]
    for row in kept_gradients(root)["decay 0, 1500 steps, score-bias"]["seen"]:
        cells = [row["step"]]
        for keys in (("b",), ("moved", "other"), ("moved", "copy"), ("moved", "first")):
            each = every_head(row, *keys)
            cells += [statistics.fmean(each), min(each), max(each)]
        cells += [-statistics.fmean(every_head(row, "gradient", kind)) for kind in ("other", "copy", "first")]
        lines.append(" ".join(f"{x:g}" for x in cells))
    return "\n".join(lines) + "\n"


def drawn(root, figure):
    """What a figure of the study is drawn from; None: the runs that it shows are not kept."""
    if figure == "training-logit":
        return None if missing_gradients(root) else columns_of_logits(root)
    return None if missing(root) else columns(root)


RECORD = "audit/verify/training_runs.inc"


def record(root):
    """The kept runs' Sink_1 before and after training and Sink_* after it, as rows of C: what `verify` asks."""
    told = kept(root)
    lines = ["// SPDX-License-Identifier: Apache-2.0", "// Copyright 2026 the sinkproof authors", "//",
             "// Generated by tests/gates/doc_training.py from doc/book/data/training.json: percent, a seed each.",
             "// NaN: the design has no star."]
    for run in (run for run in RUNS if run in told):
        star = seen(told, run, "sink_star") if "sink_star" in told[run]["seen"][-1] else ["NAN"] * 3
        sets = [", ".join(x if isinstance(x, str) else f"{x:.9g}" for x in each)
                for each in (seen(told, run, "sink_1", 0), seen(told, run, "sink_1"), star)]
        lines.append(f'{{"{run}", ' + ", ".join(f"{{{each}}}" for each in sets) + "},")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    home = pathlib.Path(__file__).resolve().parents[2]
    (home / RECORD).write_text(record(home), encoding="utf-8")
