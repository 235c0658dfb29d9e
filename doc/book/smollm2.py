# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Pictures of SmolLM2's sinks, from what `make lecture` kept (doc/book/data/lecture.json)."""
import math
import statistics
from xml.sax.saxutils import escape

import doc_lecture
from canvas import WIDTH, Canvas, number

CELL = 14


def heads(told):
    """A cell for each head: its mean weight of the first token, over the texts of prose."""
    texts = told["inputs"][str(doc_lecture.LENGTH)]["natural firsts"]
    layers = len(told["inputs"][str(doc_lecture.LENGTH)]["natural layers"][0])
    prose, code = ([statistics.fmean(each) for each in zip(*of)] for of in (texts, told["code firsts"]))
    columns = len(prose) // layers
    changed = [(a > 0.3) != (b > 0.3) for a, b in zip(prose, code)]
    above = sum(x > 0.3 for x in prose)
    c = Canvas(84 + CELL * layers, f"A grid of {layers} layers and {columns} heads, each cell the fuller the more weight the head gives the first of "
               f"{doc_lecture.LENGTH} tokens, on the mean over {len(texts)} texts. {above} of {len(prose)} cells are above 0.3; "
               f"{sum(changed)} outlined ones are on the other side of 0.3 in code.")
    c.text(112, 22, "heads", "faint", kind="small")
    for l in range(layers):
        y = 32 + CELL * l
        if l % 2 == 0:
            c.text(100, y + 12, f"layer {l}", "faint", "end", "small")
        for h in range(columns):
            at = l * columns + h
            c.rect(112 + CELL * h, y, CELL - 2, CELL - 2, "b" if changed[at] else "line", "a", prose[at], 2, 2 if changed[at] else 0.7)
    y = 32 + CELL * layers
    c.text(20, y + 22, f"mean weight of the first token; above 0.3: {above} of {len(prose)} heads", kind="small")
    c.text(20, y + 42, f"outlined: {sum(changed)} heads on the other side of 0.3 in code", "b", kind="small")
    return c


def stream(told):
    """Medians over the texts, layer by layer: the largest activation, the median of all, the first state's norm over the others'."""
    texts = told["inputs"][str(doc_lecture.LENGTH)]["natural layers"]
    layers = range(len(texts[0]))

    def median(number):
        return [statistics.median(number(text[layer]) for text in texts) for layer in layers]
    lines = (("the largest activation", "a", median(lambda row: row[doc_lecture.STATE])),
             ("first state's norm over the others'", "b", median(lambda row: row[doc_lecture.NORM])),
             ("the median activation", "faint", median(lambda row: row[doc_lecture.STATE] / row[doc_lecture.RATIO])))
    numbers = [x for _, _, each in lines for x in each]
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    peak = max(lines[0][2])
    c = Canvas(404, f"The largest activation after each of {len(texts[0])} layers, at most {peak:.3g}, the median activation, and the norm of the first "
               "token's state over the mean of the others', on a logarithmic axis; medians over the texts.")

    def at(layer, x):
        return 54 + layer * (WIDTH - 74) / (len(texts[0]) - 1), 300 - (math.log10(x) - low) / (high - low) * 270
    for decade in range(low, high + 1):
        x, y = at(0, 10.0 ** decade)
        c.line((x, y), (WIDTH - 20, y), colour="line", width=0.7)
        c.text(x - 8, y + 5, f"1e{decade}", "faint", "end", "small")
    for layer in range(0, len(texts[0]), 4):
        c.text(at(layer, 1.0)[0], 320, str(layer), "faint", "middle", "small")
    c.text(WIDTH - 20, 338, "layer", "faint", "end", "small")
    for k, (words, colour, each) in enumerate(lines):
        c.line(*[at(layer, x) for layer, x in enumerate(each)], colour=colour, width=2)
        c.text(54, 350 + 20 * k, words, colour, kind="small")
    return c


def maps(told):
    """The maps of two heads between the words of a sentence, one below the other."""
    words, heads, left, side = [word.strip() or word for word in told["maps"]["words"]], told["maps"]["heads"], 96, 18
    n = len(words)
    says = [f"layer {head['layer']}, head {head['head']}: the first of {n} tokens has {statistics.fmean(row[0] for row in head['alpha']):.2f} "
            "of a row's weight on the mean" for head in heads]
    c = Canvas(2 * (side * n + 100), f"Two maps of attention between the words of a sentence; {'; '.join(says)}.")
    for at, head in enumerate(heads):
        top = at * (side * n + 100) + 72
        for j, word in enumerate(words):
            x, y = left + side * j + 12, top - 6
            c.add("text", escape(word), x=x, y=y, transform=f"rotate(-90 {number(x)} {number(y)})", style="fill:var(--faint)", class_="small")
            c.plain(left - 8, top + side * j + 14, word, "faint", "end")
        for i, row in enumerate(head["alpha"]):
            for j, weight in enumerate(row):
                c.rect(left + side * j, top + side * i, side - 2, side - 2, "line", "a", weight, 2, 0.7)
        x = left + side * n + 12
        c.text(x, top + 30, f"layer {head['layer']}, head {head['head']}", kind="small")
        c.text(x, top + 52, f"first token: {statistics.fmean(row[0] for row in head['alpha']):.2f}", "faint", kind="small")
    return c


def pictures(root):
    told = doc_lecture.kept(root)
    return {"smollm2-heads": heads(told), "smollm2-stream": stream(told), "smollm2-maps": maps(told)} if told else {}
