# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""What the pages that compute consist of: their files, choices, laws, and the lines of C that they show."""

TITLE = "One row, one sink"
KEYS = (
    '<details class="keys-help"><summary>Keyboard help</summary><p>Tab goes from one handle to the next. The arrow keys move it by a quarter, with Shift '
    "by a sixteenth; Page Up and Page Down by one; Home and End to its ends. The edge of the window moves by one key. "
    "Ctrl+Z undoes a step, Ctrl+Y does it again. The address of the page keeps what you set.</p></details>"
)
# Each page: what it is called, its own file, its scripts.
PAGES = {
    "index": (
        TITLE,
        "page.html",
        (
            "engine.js",
            "steps.js",
            "row.js",
            "row_state.js",
            "state.js",
            "draw.js",
            "scores.js",
            "share.js",
            "arrows.js",
            "law_cards.js",
            "acting.js",
            "words.js",
            "missions.js",
            "page.js",
        ),
    ),
    "lines": (
        "The derivation with numbers",
        "lines.html",
        (
            "engine.js",
            "steps.js",
            "row.js",
            "row_state.js",
            "state.js",
            "draw.js",
            "scores.js",
            "arrows.js",
            "lines.js",
        ),
    ),
    "sum": (
        "One sum, many roundings",
        "sum.html",
        ("engine.js", "steps.js", "sum_state.js", "draw.js", "sum_panels.js", "sum_page.js"),
    ),
    "layer": (
        "One layer, replayed",
        "layer.html",
        ("engine.js", "steps.js", "row.js", "row_state.js", "layer_state.js", "draw.js", "layer_panels.js", "layer.js"),
    ),
    "back": (
        "One row, backwards",
        "back.html",
        (
            "engine.js",
            "steps.js",
            "row.js",
            "row_state.js",
            "back_state.js",
            "draw.js",
            "scores.js",
            "arrows.js",
            "law_cards.js",
            "acting.js",
            "back_panels.js",
            "back.js",
        ),
    ),
}
# The lines of the derivation, and what each changes in the one before it.
TOKENS, BIASES = r"\sum_{h=1}^{H} \sum_{j=1}^{i} \alpha_{ijh}\, x_j W^V_h W^O_h", r"\sum_{h=1}^{H} b^V_h W^O_h"
LINES = {
    "concat": "",
    "headsum": r"\sum_{h=1}^{H} \operatorname{head}_h(i, X)\, W^O_h",
    "values": r"\sum_{j=1}^{i} \alpha_{ijh}\, v_h(x_j)",
    "expand": r"\big( x_j W^V_h + b^V_h \big)",
    "inside": r"\big( x_j W^V_h + b^V_h \big) W^O_h",
    "distribute": r"\big( x_j W^V_h W^O_h + b^V_h W^O_h \big)",
    "split": TOKENS + r" + \sum_{h=1}^{H} \Big( \sum_{j=1}^{i} \alpha_{ijh}\, b^V_h W^O_h \Big)",
    "factor": r"\Big( \sum_{j=1}^{i} \alpha_{ijh} \Big)\, b^V_h W^O_h",
    "mass": r"\big( 1 - \alpha_{s,ih} \big)",
    "one-minus": BIASES + r" - \sum_{h=1}^{H} \alpha_{s,ih}\, b^V_h W^O_h",
    "reorder": r"\sum_{h=1}^{H} \alpha_{s,ih} \big( {-b^V_h W^O_h} \big) + " + BIASES,
    "final": "b^V W^O",
    "gate": r"\operatorname{softmax}(s_{ih})_j\, x_j W^V_h + b^V_h",
}
FORMATS = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}
ORDERS = {
    "forward": "first to last",
    "backward": "last to first",
    "pairwise": "in pairs",
    "lanes": "in four lanes",
    "largest": "largest first",
    "smallest": "smallest first",
}
MISTAKES = {
    "none": "none",
    "lost": "the last term lost",
    "twice": "the last term twice",
    "cut": "cut, not rounded",
    "narrower": "two bits fewer",
}
RUNS = {
    "trained": "SmolLM2, a sentence",
    "repeated": "SmolLM2, one token nine times",
    "tiny": "tiny model with sink logits",
}
POLICIES = {"real": "real (binary64)", "f32": "float32", "bf16": "bfloat16", "f16": "float16"}
# Of each form: what it is called here, and its row in the table of planted mistakes of chapter 21.
FORMS = {
    "right": ("right", None),
    "scaled": ("sink scaled", "sink-scaled"),
    "dropped": ("sink dropped", "sink-dropped"),
    "max-only": ("only in the maximum", "sink-in-max-only"),
    "renormalised": ("renormalised", "sink-renormalised"),
    "per-part": ("once in each of two splits", "sink-per-part-16"),
    "lse-rounded": ("LSE rounded to bfloat16", "sink-lse-bf16"),
}
LAWS = {
    "mass": ("Mass", "Σ α<sub>j</sub> = 1 − α<sub>s</sub>", "sink.mass"),
    "shift": ("Shift of scores and sink", "α(s + 2, b + 2) = α(s, b)", "law.shift"),
    "key": ("A key of value zero", "the sink as one more key: score b, value 0", "sink.concat-slice"),
    "softmax1": (
        "Off by one",
        "at b = 0, α<sub>j</sub> = e<sup>s<sub>j</sub></sup> / (1 + Σ e<sup>s</sup>)",
        "sink.softmax1",
    ),
    "gate": ("Gate", "1 − α<sub>s</sub> = σ(LSE − b), o = σ(LSE − b) o<sub>softmax</sub>", "sink.gate"),
}
BACK_FORMS = {
    "right": "right",
    "sign": "sink’s gradient without its sign",
    "per-part": "sink’s gradient once in each of two splits",
    "renormalised": "D from renormalised weights",
    "sinkless": "weights recomputed without the sink",
    "lse-lost": "dLSE left out",
}
BACK_LAWS = {
    "sum": ("Shift of scores and sink", "Σ ds<sub>j</sub> + db = dLSE⁺", "grad.lse"),
    "delta": ("D in two ways", "Σ α<sub>j</sub> dα<sub>j</sub> = ⟨dO, o⟩", "grad.delta"),
    "bias": ("The value bias, which each value contains", "Σ dv<sub>j</sub> = (1 − α<sub>s</sub>) dO", "grad.value-bias"),
    "slope": (
        "A slope",
        "ds and db = (L(x + h) − L(x − h)) / 2h, at h = 2<sup>−15</sup>",
        "grad.softmax",
    ),
}
BACK_STRIP = {"sum": "shift", "delta": "D two ways", "bias": "bias", "slope": "slope"}
STRIP = {"mass": "mass", "shift": "shift", "key": "key", "softmax1": "off by one", "gate": "gate"}
# Which lines go into action: a region, then what moves each of its lines that the pattern finds.
CODE = (
    ("ref/scores.c", "attn.score", {r"dot|s_ij": "score"}),
    ("ref/mask.c", "mask.window", {r"window": "window"}),
    ("ref/softmax_sink.c", "sink.stable", {r"double m = b|e_sink": "sink", r"for|alpha_j|z \+=": "score window"}),
    ("ref/softmax_sink.c", "sink.alpha", {r"/ z": "score sink window"}),
    ("ref/softmax_sink.c", "sink.alpha-sink", {r"/ z": "score sink window"}),
    ("ref/values.c", "sink.attn-values", {r"running_add|v_jd": "value bias score sink window"}),
)

BACK_CODE = (
    ("ref/backward/values.c", "grad.values", {r"dalpha_j": "value dOut", r"dv_d": "dOut score sink window"}),
    ("ref/backward/softmax_sink.c", "grad.sink", {r"delta|db_i": "value dOut score sink window"}),
    ("ref/backward/softmax_sink.c", "grad.softmax", {r"ds_ij": "value dOut score sink window"}),
    ("ref/backward/softmax_sink.c", "grad.lse", {r"ds_j\[j\]|db_i": "lse score sink window"}),
)
