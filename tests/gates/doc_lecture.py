# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What the lecture's claims come to on a trained model: the tables and words that the book shows of
doc/book/data/lecture.json, which `make lecture` makes (tests/studies/lecture_study.py); for doc_pages.py.

A claim is one number of each text that the claim says to be above 0. An interval is a bootstrap's over the texts: of
2,000 resamples the means between the 2.5th and the 97.5th percentile. The claim is seen if the whole interval is above
0, the opposite if it is below, and not seen otherwise. The numbers are estimated, and so are the intervals.
"""
import json
import math
import pathlib
import random
import re
import statistics

KEPT = "doc/book/data/lecture.json"
CODE_HERE = "tests/gates/doc_lecture.py"
LECTURE = "doc/28-lecture.md"
EPSILONS, LENGTHS, LENGTH = (0.2, 0.3, 0.4), (8, 16, 32, 64, 128, 256), 64
CACHE = (1, 63, 192)  # first and recent tokens of a cache, and tokens of a text
RESAMPLES = 2000
STATE, TOKEN, COORDINATE, RATIO, NORM, BEFORE, AFTER, VALUE, KEY, COSINE, COSINES = range(11)  # of a layer, as kept
MASSIVE = 100  # times the median: a layer is called massive from here on; the claims do not use it


def kept(root):
    path = pathlib.Path(root) / KEPT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def fingerprint(info):
    return re.search(r"fingerprint (\w+)", info)[1]


# ---- intervals

def interval(numbers):
    """(mean, 2.5th percentile, 97.5th percentile) of the mean over resampled texts."""
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(numbers, k=len(numbers))) for _ in range(RESAMPLES))
    return statistics.fmean(numbers), means[RESAMPLES // 40], means[-1 - RESAMPLES // 40]


WORDS = ("seen", "**not seen**", "**the opposite**")


def verdict(numbers):
    _, low, high = interval(numbers)
    return WORDS[0] if low > 0 else WORDS[2] if high < 0 else WORDS[1]


def cell(numbers, digits=1):
    mean, low, high = (f"{round(x, digits) + 0:.{digits}f}" for x in interval(numbers))  # no -0
    return f"{mean} ({low} … {high})"


# ---- numbers of the texts

def sink(told, kind, length=LENGTH, bos=False, epsilon=0.3):
    return [text[str(epsilon)] for text in told["inputs"][f"{length}{' bos' if bos else ''}"][kind]]


def beside_later(told, kind, bos=False):
    """Sink_1 less the largest Sink_k of k = 2 ... 10."""
    return [text["0.3"] - text["later"] for text in told["inputs"][f"{LENGTH}{' bos' if bos else ''}"][kind]]


def by_layer(told, column, kind="natural"):
    """For each text, the numbers of its layers."""
    return [[layer[column] for layer in text] for text in told["inputs"][str(LENGTH)][f"{kind} layers"]]


def most_massive(told, column, kind="natural"):
    """Of each text's layer with the largest ratio."""
    return [max(text, key=lambda layer: layer[RATIO])[column] for text in told["inputs"][str(LENGTH)][f"{kind} layers"]]


def logs(numbers):
    return [math.log(x) for x in numbers]


def minus(a, b):
    return [x - y for x, y in zip(a, b)]


def loss(told, cache):
    return [text[cache]["loss"] for text in told["caches"]]


def off(told, cache):
    return [text[cache]["relative"] for text in told["caches"]]


def outlier(told, point, key):
    return [text[point][key] for text in told["outliers"]]


def perturbed(told):
    return [text["first hidden"][0] - text["as it is"][0] for text in told["perturb"]]


def switching(told):
    """Of each text of code: the share of heads, in percent, whose alpha_1 there and in the mean of prose are on two sides
    of 0.3, less that of a text of prose and the mean of the other ones."""
    prose = told["inputs"][str(LENGTH)]["natural firsts"]

    def changed(text, others):
        mean = [statistics.fmean(each) for each in zip(*others)]
        return 100 * sum((a > 0.3) != (b > 0.3) for a, b in zip(mean, text)) / len(mean)
    among = statistics.fmean(changed(text, prose[:i] + prose[i + 1:]) for i, text in enumerate(prose))
    return [changed(text, prose) - among for text in told["code firsts"]]


# {what is claimed, in short: the number of each text that is above 0 if it is so}
FINDINGS = {
    "more heads with a sink at the first token than at any of the next nine": lambda t: beside_later(t, "natural"),
    "more heads with a sink at a BOS than at any of the next nine tokens": lambda t: beside_later(t, "natural", True),
    "on random tokens, more heads with a sink at the first than at any of the next nine": lambda t: beside_later(t, "random"),
    "before random tokens, more heads with a sink at a BOS than at any of the next nine": lambda t: beside_later(t, "random", True),
    "on repeated tokens, fewer than 1 % of the heads with a sink at the first": lambda t: [1 - x for x in sink(t, "repeated")],
    "the largest activation on repeated tokens more than half of that on natural text": lambda t: [
        math.log(2 * x) - statistics.fmean(logs(most_massive(t, STATE))) for x in most_massive(t, STATE, "repeated")],
    "on repeated tokens, the other states longer than half of the first": lambda t: [1 / x - 0.5 for x in most_massive(t, NORM, "repeated")],
    "a largest activation more than a thousand times the median": lambda t: minus(logs(most_massive(t, RATIO)), [math.log(1000)] * len(t["perturb"])),
    "the largest activation at the first token": lambda t: [0.5 - (token > 0) for token in most_massive(t, TOKEN)],
    "the first state longer than the others": lambda t: logs(most_massive(t, NORM)),
    "the first value shorter than the others": lambda t: [-statistics.fmean(logs(text)) for text in by_layer(t, VALUE)],
    "the first key shorter than the others": lambda t: [-statistics.fmean(logs(text)) for text in by_layer(t, KEY)],
    "the first key's cosine with queries larger than the others'": lambda t: minus(
        [statistics.fmean(text) for text in by_layer(t, COSINE)], [statistics.fmean(text) for text in by_layer(t, COSINES)]),
    "three coordinates have more than half of a normed state's squares": lambda t: [x - 0.5 for x in most_massive(t, AFTER)],
    "a cache of the recent tokens alone predicts worse than one with the first token too": lambda t: minus(loss(t, "recent"), loss(t, "first-recent")),
    "a cache of all tokens but the first predicts worse than the full cache": lambda t: minus(loss(t, "first-gone"), loss(t, "full")),
    "a cache of the first token and the recent ones predicts no worse than the full cache": lambda t: minus(loss(t, "full"), loss(t, "first-recent")),
    "four bits predict better with the first token whole": lambda t: minus(loss(t, "int4"), loss(t, "int4-first")),
    "four bits change a layer's attention less with the first token whole": lambda t: minus(off(t, "int4"), off(t, "int4-first")),
    "eight bits predict better with the first token whole": lambda t: minus(loss(t, "int8"), loss(t, "int8-first")),
    "eight bits change a layer's attention less with the first token whole": lambda t: minus(off(t, "int8"), off(t, "int8-first")),
    "eight bits with one scale for the residual stream are off by more than half in the rows after the first": lambda t: [x - 0.5 for x in outlier(t, "M12", "rest_per_tensor")],
    "a changed word changes later states more with the first token hidden": perturbed,
    "with the first key hidden, none of the next nine has a sink in as many heads": lambda t: [sink - text["later"] for sink, text in zip(sink(t, "natural"), t["hidden"])],
    "a BOS before repeated tokens has a sink in more than 1 % of the heads": lambda t: [x - 1 for x in sink(t, "repeated", bos=True)],
    "four pads before the text have, together, a sink in more heads than the text's first token": lambda t: [pads - first for _, first, pads in t["padded"]],
    "the first pad alone has a sink in more heads than the text's first token": lambda t: [pad - first for pad, first, _ in t["padded"]],
    "with the pads masked, the text's first token has a sink in more heads than the pads": lambda t: [first - pads for _, first, pads in t["masked"]],
    "more heads gain or lose the sink between prose and code than between texts of prose": switching,
}
# {claim of a table of the lecture: the findings that bear on it}
CLAIMS = {
    "Heads give most of their weight to the first token (maps)": ("more heads with a sink at the first token than at any of the next nine",),
    "A few coordinates of a few tokens are enormous: *massive activations*": (
        "a largest activation more than a thousand times the median", "the largest activation at the first token", "the first state longer than the others"),
    "The sink's value is small: *value drains*": ("the first value shorter than the others",),
    "Long contexts: attend to the first token and the recent ones": (
        "a cache of the recent tokens alone predicts worse than one with the first token too",
        "a cache of the first token and the recent ones predicts no worse than the full cache"),
    "Keep the sink's keys and values in the cache, drop the middle": ("a cache of all tokens but the first predicts worse than the full cache",),
    "Quantise the cache, the sink's entries at full precision": (
        "four bits predict better with the first token whole", "four bits change a layer's attention less with the first token whole", "eight bits predict better with the first token whole", "eight bits change a layer's attention less with the first token whole"),
    "$q_t k_1^\\top \\gg q_t k_j^\\top$, and so is the cosine": (
        "the first key's cosine with queries larger than the others'", "the first key shorter than the others"),
    "LayerNorm keeps only the spikes": ("three coordinates have more than half of a normed state's squares",),
    "They are there with and without BOS, on random tokens too": ("more heads with a sink at a BOS than at any of the next nine tokens", "on random tokens, more heads with a sink at the first than at any of the next nine", "before random tokens, more heads with a sink at a BOS than at any of the next nine"),
    "... so *all have massive activations, distribute the sink*": (
        "on repeated tokens, fewer than 1 % of the heads with a sink at the first",
        "the largest activation on repeated tokens more than half of that on natural text", "on repeated tokens, the other states longer than half of the first"),
    "Windows: the sink is at the *absolute* first token, not the first that is seen": ("with the first key hidden, none of the next nine has a sink in as many heads",),
    "A sink prevents it: a changed word (*greatest* to *best*) changes little of the others": (
        "a changed word changes later states more with the first token hidden",),
    "A head is a no-op when it attends to one token sharply, or to the first": ("more heads gain or lose the sink between prose and code than between texts of prose",),
    "Packing with a fixed BOS puts the sink on the BOS, as in Gemma": ("more heads with a sink at a BOS than at any of the next nine tokens",),
    "... which helps quantisation and the stability of training": (
        "eight bits with one scale for the residual stream are off by more than half in the rows after the first",),
}


# ---- tables

def inputs(told):
    rows = ["", "| $T$ | first token | natural, 0.2 | natural, 0.3 | natural, 0.4 | random, 0.3 | repeated, 0.3 |", "|---" * 7 + "|"]
    for length in LENGTHS:
        for bos in (False, True):
            cells = [cell(sink(told, "natural", length, bos, e)) for e in EPSILONS] + [cell(sink(told, kind, length, bos)) for kind in ("random", "repeated")]
            rows.append(f"| {length} | {'BOS' if bos else 'of the text'} | {' | '.join(cells)} |")
    return rows


def states(told):
    """By layer, medians over the texts, and the token and coordinate of the largest activation in most of them."""
    rows = ["", "| layer | largest | token, coordinate (texts) | over the median | first norm over others | three spikes before and in the norm | "
            "first value over others | first key | cosine with key 1 | with others |", "|---" * 10 + "|"]
    texts = told["inputs"][str(LENGTH)]["natural layers"]
    for layer in range(len(texts[0])):
        each = [text[layer] for text in texts]
        places = [(row[TOKEN], row[COORDINATE]) for row in each]
        place = max(sorted(set(places)), key=places.count)
        m = [statistics.median(row[column] for row in each) for column in range(11)]
        rows.append(f"| {layer} | {m[STATE]:.4g} | {place[0]:.0f}, {place[1]:.0f} ({places.count(place)} of {len(places)}) | {m[RATIO]:.4g} | {m[NORM]:.3g} | "
                    f"{m[BEFORE]:.2f}, {m[AFTER]:.2f} | {m[VALUE]:.2f} | {m[KEY]:.2f} | {m[COSINE]:.2f} | {m[COSINES]:.2f} |")
    return rows


CACHES = {"full": "all keys", "first-recent": f"the first and {CACHE[1]} recent ones", "recent": f"{sum(CACHE[:2])} recent ones", "first-gone": "all but the first",
          "int8-first": "8 bits, the first whole", "int8": "8 bits", "int4-first": "4 bits, the first whole", "int4": "4 bits"}


def caches(told):
    rows = ["", "| cache | loss less that of the full cache, nats | perplexity | A11 off | its bound | row-wise | vacuous rows, % |", "|---" * 7 + "|"]
    for cache, what in CACHES.items():
        each = [text[cache] for text in told["caches"]]
        perplexity = math.exp(statistics.fmean(loss(told, cache)))
        more = [cell(minus(loss(told, cache), loss(told, "full")), 3) if cache != "full" else "0", f"{perplexity:.3g}"]
        if cache == "full":
            more += ["0", "0", "0", "0"]
        else:
            more += [f"{statistics.median(text[key] for text in each):.3g}" for key in ("relative", "bound", "row_bound")]
            more.append(f"{100 * statistics.fmean(text['vacuous'] for text in each):.0f}")
        rows.append(f"| {what} | {' | '.join(more)} |")
    return rows


def outliers(told):
    rows = ["", "| point | max/rms | off, a scale for the tensor | rows after the first | off, one for each token | rows after the first |", "|---" * 6 + "|"]
    for point in ("T0", "A1", "A11", "A13", "M1", "M12", "F1"):
        cells = [f"{statistics.median(outlier(told, point, key)):.3g}" for key in
                 ("most", "per_tensor", "rest_per_tensor", "per_token", "rest_per_token")]
        rows.append(f"| {point} | {' | '.join(cells)} |")
    return rows


def heads(told):
    """How many heads rest on the first token in every text, in none, in some."""
    rows = ["", "| texts | heads with a sink in all | in some | in none | $\\operatorname{Sink}_1$, % |", "|---" * 5 + "|"]
    groups = {"prose": (told["inputs"][str(LENGTH)]["natural firsts"], sink(told, "natural")),
              "code": (told["code firsts"], [text["0.3"] for text in told["code"]]),
              "random": (told["inputs"][str(LENGTH)]["random firsts"], sink(told, "random")),
              "repeated": (told["inputs"][str(LENGTH)]["repeated firsts"], sink(told, "repeated"))}
    groups["prose and code"] = (groups["prose"][0] + groups["code"][0], groups["prose"][1] + groups["code"][1])
    for name, (firsts, shares) in groups.items():
        each = [[alpha > 0.3 for alpha in head] for head in zip(*firsts)]
        every, none = sum(map(all, each)), sum(not any(head) for head in each)
        rows.append(f"| {name}, {len(firsts)} | {every} | {len(each) - every - none} | {none} | {cell(shares)} |")
    return rows


def findings(told):
    rows = ["", "| claim | number of a text that it says to be above 0: mean and interval | here |", "|---" * 3 + "|"]
    for name, numbers in FINDINGS.items():
        mean, low, high = interval(numbers(told))
        rows.append(f"| {name} | {mean:.3g} ({low:.3g} … {high:.3g}) | {verdict(numbers(told))} |")
    said = [verdict(numbers(told)) for numbers in FINDINGS.values()]
    return [*rows, f"| all {len(said)} | | {', '.join(f'{said.count(word)} ' + word.strip('*') for word in WORDS)} |"]


def column(told):
    """The lecture's table of inputs, and this model's row in it."""
    cells = [cell(sink(told, kind), 2) for kind in ("natural", "random", "repeated")]
    return ["", "| model | natural, % | random, % | repeated, % |", "|---" * 4 + "|", "| GPT2-XL | 77.00 | 70.29 | 62.28 |",
            "| Mistral-7B | 97.49 | 75.21 | 0.00 |", "| LLaMA2-7B base | 92.47 | 90.13 | 0.00 |", "| LLaMA3-8B base | 99.02 | 91.23 | 0.00 |",
            f"| SmolLM2-135M-Instruct, here | {' | '.join(cells)} |"]


def setup(told):
    texts = told["texts"]
    counts = {kind: sum(text[0] == kind for text in texts) for kind in ("prose", "code")}
    return ["", "| what | value |", "|---|---|", f"| model | SmolLM2-135M-Instruct, fingerprint {told['fingerprint']} |",
            f"| texts | {counts['prose']} of prose, {counts['code']} of code; {counts['prose'] // 2} random and {counts['prose'] // 2} repeated |",
            f"| tokens of a text, where not said | {LENGTH} |", f"| CPU seconds of the command | {told['cpu_seconds']} |"]


TABLES = {"setup": setup, "column": column, "inputs": inputs, "states": states, "caches": caches, "outliers": outliers, "heads": heads, "findings": findings}


def table(root, name):
    """The lines of the table lecture-NAME, or None."""
    told, name = kept(root), name.removeprefix("lecture-")
    return TABLES[name](told) if name in TABLES and told else None


def summary(told):
    return [line for name, make in TABLES.items() for line in (f"## {name}", *make(told), "")]


# ---- the lecture's rows

HERE = re.compile(r"SmolLM2: [^;|]*[^;| ]")


def here(told, claim):
    """What a row of the lecture says of its claim."""
    every = [f"{name}: {verdict(FINDINGS[name](told))}" for name in CLAIMS[claim]]
    return f"SmolLM2: {', '.join(every)}"


def check(root, write, problems):
    """Each claim on which a finding bears says what was seen, in the words of here(), and no other row speaks of it."""
    page, told = root / LECTURE, kept(root)
    if not page.is_file() or not told:
        return
    lines, found = page.read_text(encoding="utf-8").splitlines(), set()
    for at, line in enumerate(lines):
        claim, said = line.split(" | ")[0].removeprefix("| "), HERE.findall(line)
        if not line.startswith("| ") or "SmolLM2-135M" in line or claim not in CLAIMS:
            if said and line.startswith("| "):
                problems.add(f"{LECTURE}:{at + 1}", f"speaks of SmolLM2, and CLAIMS of {CODE_HERE} has no such claim")
            continue
        found.add(claim)
        if write and len(said) == 1:
            lines[at] = line = line.replace(said[0], here(told, claim))
        if HERE.findall(line) != [here(told, claim)]:
            problems.add(f"{LECTURE}:{at + 1}", f"expected once in this row “{here(told, claim)}”, found “{'; '.join(said)}”")
    for claim in CLAIMS.keys() - found:
        problems.add(LECTURE, f"has no claim “{claim}”")
    if write:
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
