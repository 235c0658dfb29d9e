# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The runs of the training study (doc/27), and the chapter's tables of what is kept of them; for doc_pages.py.

tests/audit/training_study.py makes the runs. Nothing here needs torch. A verdict of a table is computed: no sentence
of the chapter says of the runs what they do not show.
"""
import ast
import hashlib
import json
import pathlib
import statistics

KEPT = "doc/book/data/training.json"
CODE = "tests/audit/training.py"

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
# in none. A side is (run, quantity) at the end, or (run, quantity, 0) before the first step; the first is to be the
# larger. Where the report says "none", the smaller is to be below 1 % besides.
FINDINGS = (
    ("a sink on the first token emerges in training", ("softmax", "sink_1"), ("softmax", "sink_1", 0)),
    ("it grows as training goes on", ("1500 steps", "sink_1"), ("softmax", "sink_1")),
    ("so without weight decay", ("decay 0, 1500 steps", "sink_1"), ("decay 0", "sink_1")),
    ("its value becomes small", ("softmax", "value_1", 0), ("softmax", "value_1")),
    ("a learned key takes the sink", ("k-bias", "sink_star"), ("k-bias", "sink_1")),
    ("so after 1500 steps without weight decay", ("decay 0, 1500 steps, k-bias", "sink_star"),
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
NAMES = {"sink_1": "Sink_1", "sink_star": "Sink_*", "sink_2_10": "largest Sink_k, k = 2 … 10",
         "raw_sink_1": "Sink_1 of the weights",
         "value_1": "first value's norm", "massive": "largest over median activation"}


# ---- what is kept

def hash_of(root, name):
    """Of a run's configuration and of the code that makes it, without its empty lines and those that are comments."""
    lines = (root / CODE).read_text(encoding="utf-8").splitlines()
    code = [line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return hashlib.sha256(json.dumps([RUNS[name], code], sort_keys=True).encode()).hexdigest()[:16]


def kept(root):
    path = root / KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


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


def findings(told):
    rows = ["", "| reported | the larger here | the smaller | medians | seeds | here |", "|---" * 6 + "|"]
    for reported, larger, smaller in FINDINGS:
        sides = [f"`{run}` {NAMES[quantity].replace('*', chr(92) + '*')}{' before training' if at else ''}"
                 for run, quantity, *at in (larger, smaller)]
        medians = [statistics.median(seen(told, *side)) for side in (larger, smaller)]
        count, of = holds(told, reported, larger, smaller), len(seen(told, *larger))
        verdict = "seen" if count == of else "not in every seed" if count else "**not seen here**"
        rows.append(f"| {reported} | {sides[0]} | {sides[1]} | {medians[0]:.1f}, {medians[1]:.1f} | {count} of {of} | "
                    f"{verdict} |")
    return rows


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
