# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The drawings of the book: what has a shape and no data. Pictures of data are made by runs.py."""
from canvas import WIDTH, Canvas


def steps(c, y, rows, left=110, right=WIDTH - 10):
    """Rows of one box under the other, each an operation and its points; returns the y beneath."""
    for words, points in rows:
        c.rect(left, y, right - left, 30)
        c.text(left + 12, y + 21, words)
        c.text(right - 10, y + 20, points, "a", "end", "code")
        y += 36
    return y


def branch(c, top, rows, adds, x=50):
    """A branch that leaves the residual stream, is computed, and is added to it; returns the y beneath."""
    c.arrow((x, top + 15), (110, top + 15))
    bottom = steps(c, top, rows)
    y = bottom + 12
    c.line((WIDTH - 60, bottom - 6), (WIDTH - 60, y))
    c.arrow((WIDTH - 60, y), (x + 10, y))
    c.plus(x, y)
    c.text(x + 22, y - 6, adds, "a", kind="code")
    return y + 20


def model():
    c = Canvas(868, "Data flow of GPT-OSS: a token becomes a row of the embedding; in every layer attention and then the "
               "experts read the residual stream through a norm and add to it; a last norm and the unembedding give "
               "the logits. Beside each operation stand the names of its points.")
    c.text(50, 22, "tokens", anchor="middle")
    c.arrow((50, 30), (50, 48))
    steps(c, 48, [("row of the embedding", "T0")], 10, 260)
    c.line((50, 78), (50, 798))
    c.rect(4, 96, WIDTH - 8, 684, "line", round=10)
    c.text(WIDTH - 12, 90, "each layer, 24 or 36 times", "faint", "end", "small")
    y = branch(c, 110, [("RMSNorm", "A1"), ("queries, keys, values", "A2"), ("rotate queries and keys", "A4"),
                        ("scores, scaled", "A5 A6"), ("mask, window on even layers", ""),
                        ("softmax with the sink _b_", "A9"), ("drop the sink's column", "A10"),
                        ("weighted values", "A11"), ("output projection", "A12")], "A13")
    branch(c, y + 8, [("RMSNorm", "M1"), ("router: a logit per expert", "M2"), ("the largest four, weighted", "M3 M4"),
                      ("up-projection", "M5 M6"), ("activation", "M8"), ("down-projection", "M9 M10"),
                      ("weighted sum", "M11")], "M12")
    c.arrow((50, 780), (50, 798))
    steps(c, 798, [("RMSNorm", "F1")], 10, 220)
    c.arrow((220, 813), (300, 813))
    steps(c, 798, [("unembedding", "F2")], 300, 510)
    c.text(405, 850, "logits", anchor="middle")
    return c


def heads():
    c = Canvas(400, "Sixty-four query heads in eight groups of eight; each group reads one key/value head. The heads' outputs "
               "side by side, times the output matrix, are a sum of products of each head's output with its own rows of "
               "the matrix.")
    c.text(10, 22, "64 query heads, 8 to a group")
    for h in range(64):
        g, x = h // 8, 10 + (h // 8) * 63.5 + (h % 8) * 6.8
        c.rect(x, 34, 5.4, 22, None, "abcd"[g % 4], 0.85, 1)
    for g in range(8):
        x = 10 + g * 63.5 + 27
        c.arrow((x, 90), (x, 62), colour="abcd"[g % 4])
        c.rect(x - 13, 92, 26, 22, None, "abcd"[g % 4], 0.85, 3)
    c.text(10, 138, "8 key/value heads: the cache holds these only")
    top = 190
    c.text(10, top - 16, "heads side by side, times _Wᴼ_ by blocks of rows")
    for k, name in enumerate(["_o_₁", "_o_₂", "…", "_o_₆₄"]):
        colour = "abcd"[k]
        c.rect(10 + 50 * k, top + 62, 46, 26, colour, colour, 0.18)
        c.text(33 + 50 * k, top + 80, name, anchor="middle")
        c.rect(250, top + 38 * k, 100, 34, colour, colour, 0.18)
        c.text(300, top + 38 * k + 22, ["_Wᴼ_₁", "_Wᴼ_₂", "…", "_Wᴼ_₆₄"][k], anchor="middle")
    c.text(228, top + 81, "·", anchor="middle", weight="bold")
    c.text(372, top + 81, "=", anchor="middle")
    c.text(392, top + 81, "Σ _oₕ Wᴼₕ_ + _bᴼ_")
    c.text(10, 374, "each 64 numbers", "faint", kind="small")
    c.text(250, 374, "64 × 2,880 each", "faint", kind="small")
    return c


def ladder():
    c = Canvas(392, "The ladder of truth. From the ground up: an estimate in binary64, with no guarantee; correctly rounded "
               "operations in MPFR; balls that enclose the real value; exact numbers. Rungs that exist for the same value "
               "must agree.")
    rungs = [("exact", "c", "a certified binary64 sum, or GMP integers", "nothing was rounded: there is no error"),
             ("enclosed", "a", "balls of Arb", "the real value is inside, for every real input inside"),
             ("correctly rounded", "d", "one operation of MPFR after another", "written to be read, at a stated precision"),
             ("estimated", "b", "binary64, from the tokens to the logits", "only for how far an engine is; no verdict rests on it")]
    c.line((24, 8), (24, 384), width=3, colour="line")
    c.line((WIDTH - 24, 8), (WIDTH - 24, 384), width=3, colour="line")
    for k, (label, colour, how, what) in enumerate(rungs):
        y = 14 + 96 * k
        c.rect(24, y, WIDTH - 48, 74, colour, colour, 0.12)
        c.text(40, y + 22, label, colour, weight="bold")
        c.text(40, y + 44, how)
        c.text(40, y + 64, what, "faint", kind="small")
        if k < 3:
            c.text(WIDTH / 2, y + 90, "must agree, where both exist" if k < 2 else "compared, never trusted", "faint", "middle", "small")
    return c


def forms():
    c = Canvas(596, "One sink, many forms. In the middle the weight of a key. Around it what is equal to it: an extra column, "
               "softmax off by one of shifted scores, a gate on the ordinary softmax, a running maximum, the log-sum-exp "
               "subtracted, split keys. Below: sinks that are keys, of which only a key without a value is the same, and gates "
               "that are learned, which are not.")
    c.rect(90, 246, 340, 62, "ink", None, width=2)
    c.text(260, 284, "_αⱼ_ = exp _sⱼ_ / (exp _b_ + Σ exp _s_)", anchor="middle", weight="bold")
    equal = [(10, 40, "column appended, sliced", "sink.concat-slice", "a"),
             (10, 100, "softmax₁ of _s_ − _b_", "sink.shifted-softmax1", "a"),
             (10, 160, "gate σ(LSE − _b_)", "sink.gate", "a"),
             (270, 40, "a running maximum", "form.running-max", "c"),
             (270, 100, "LSE subtracted", "form.lse-subtract", "c"),
             (270, 160, "split keys, sink once", "sink.split-kv", "c")]
    c.text(10, 24, "as it is written", "a", weight="bold")
    c.text(270, 24, "as kernels compute it", "c", weight="bold")
    for x, y, words, id, colour in equal:
        c.rect(x, y, 240, 52, colour, colour, 0.1)
        c.text(x + 10, y + 22, words)
        c.text(x + 10, y + 42, id, "faint", kind="code")
    for x in (130, 390):
        c.line((x, 212), (x, 246), width=1.6)
        c.text(x + 10, 235, "=", weight="bold")
    keys = [("a key without a value, _b_ = _q · k*_", "sink.key-bias", "equal, with a _b_ of each query"),
            ("a learned token, a key with a value", "sink.sink-token", "rows sum to 1: the value bias stays whole"),
            ("a value bias alone", "sink.value-bias-only", "no sink at all"),
            ("a learned gate σ(_G_)", "sink.gated", "equal only where _G_ = LSE − _b_"),
            ("sinks on sliding layers only", "sink.hybrid", "another model")]
    for k, (words, id, verdict) in enumerate(keys):
        y = 344 + 54 * k
        c.text(10, y, words)
        c.text(WIDTH - 10, y, id, "faint", "end", "code")
        c.text(26, y + 20, ("= " if k == 0 else "≠ ") + verdict, "c" if k == 0 else "bad", kind="small")
    return c


def terms():
    c = Canvas(478, "The matrix of scores as a sum of four: the product of both tokens, where every cell is its own; the "
               "query's token with the key's bias, where a row has one value; the query's bias with the key's token, where "
               "a column has one value; the product of both biases, one value everywhere. Without a sink the second and the "
               "fourth cancel.")
    strength = [[.35, .7, .5, .9, .25], [.8, .3, .6, .2, .5], [.5, .9, .2, .6, .8], [.3, .6, .8, .4, .2], [.7, .2, .5, .8, .6]]
    parts = [("_aₜ · cⱼ_", "both tokens", "a", True, True, "stays"), ("_aₜ_ · key's bias", "the query's token", "b", True, False, "cancels"),
             ("query's bias · _cⱼ_ = Δ", "the key's token", "c", False, True, "stays"), ("bias · bias", "neither token", "d", False, False, "cancels")]
    for k, (product, of, colour, by_row, by_column, what) in enumerate(parts):
        x, y = 30 + 262 * (k % 2), 44 + 240 * (k // 2)
        c.text(x, y - 12, f"{k + 1}.  {product}", colour, weight="bold")
        for i in range(5):
            for j in range(i + 1):
                c.rect(x + 28 * j, y + 28 * i, 26, 26, None, colour, strength[i if by_row else 0][j if by_column else 0], 2)
        c.text(x, y + 164, of, "faint", kind="small")
        c.text(x, y + 184, f"without a sink: {what}", "faint", kind="small")
        if k < 3:
            c.text(x + 200 if k != 1 else 14, y + 76 if k != 1 else y + 316, "+", anchor="middle", weight="bold")
    return c


DRAWINGS = {"model": model, "heads": heads, "ladder": ladder, "forms": forms, "terms": terms}
