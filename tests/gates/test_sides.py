#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""The two sides of every check stand apart on this tree, and a tree where two of them do not is refused."""
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/shared"))
sys.path.insert(0, str(ROOT / "tests/gates"))
import check_sides  # noqa: E402
from tap import Tap  # noqa: E402

CHANGED = set()  # the files of the copy that a fault changed
EXACT, BALLS = "proofs/exact/", "proofs/truth/identities_"


def said_of(root):
    tree = check_sides.Tree(root)
    checks = check_sides.Checks(tree, "proofs/")
    return len(checks.rows), [*checks.breaches(), *check_sides.room_breaches(tree), *check_sides.unread_names(tree)]


def change(root, file, *pairs):
    """Replaces each piece of the file, of which it has one, however its lines are broken."""
    path = root / file
    CHANGED.add(file)
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        text, count = re.subn(r"\s+".join(map(re.escape, old.split())), lambda _, n=new: n, text)
        assert count == 1, (file, old, count)
    path.write_text(text, encoding="utf-8")


def keeps_with_one_function(root):
    """mask.first-recent as it was: both sides ask one function which keys are kept."""
    change(root, EXACT + "laws.c", ("static row full_row(const instance *m) {\n",
                                    "static row full_row(const instance *m) {\n    instance same = first_recent(m);\n"))


FAULTS = [
    ("a side that is the other", "law.shift: calls: ",
     lambda r: change(r, EXACT + "laws.c", ("weights_of_shifted,\n        weights_by_hand)", "weights, weights)"))),
    ("a law that compares a function with itself on another instance", "law.shift: calls: ",
     lambda r: change(r, EXACT + "laws.c", ("weights_of_shifted,\n        weights_by_hand)", "weights_of_shifted, weights)"))),
    ("a right side in balls that begins with the left", "sink.mass-below-one: calls: ",
     lambda r: change(r, BALLS + "attention.c", ("    arb_t all;\n    arb_init(all);\n    ball_exps(e, m, 0, bits);\n"
                                                 "    ball_sum(out + 2,",
                                                 "    arb_t all;\n    arb_init(all);\n    below_one_left(out, m, bits);\n"
                                                 "    ball_sum(out + 2,"))),
    ("one choice of keys on both sides", "mask.first-recent: shares: both full_row and row_from_kept call "
     "proofs/exact/laws.c:first_recent", keeps_with_one_function),
    ("a formula that is passed to both sides", "sink.key-bias: shares: ",
     lambda r: change(r, EXACT + "key_bias.c", ("    return sink_output(m, e_by_coordinates(m, m->q, m->k_star));\n}\n// k* = 0",
                                                "    return attend(m, q_int(1), row_zero(1), value_of);\n}\n// k* = 0"))),
    ("a formula behind two other functions", "terms.sink: shares: ",
     lambda r: change(r, EXACT + "terms.c", ("    return weights_of_product(m, true, e_b);", "    return weights_of_two(m, e_b);"))),
    ("a shared formula in a header", "law.permute: shares: ",
     lambda r: change(r, EXACT + "attention.h", ("static inline row value_of(", "static inline row value_twice(const instance *m, size_t j) {\n"
                                                 "    return row_scale(q_int(2), matrix_row(m->u, j));\n}\nstatic inline row value_of("))
     or change(r, EXACT + "laws.c", ("row_scale(alpha(m, j, 0), value_of(m, j)));\n    return sum;\n}\n\n// The same two",
                                     "row_scale(alpha(m, j, 0), value_twice(m, j)));\n    return sum;\n}\n\n// The same two"),
               ("    row o = row_zero(m->head_dim);\n    for (size_t k = 0; k < m->tokens * m->head_dim; k++) {",
                "    row o = row_zero(m->head_dim), u = value_twice(m, 0);\n    for (size_t k = 0; k < m->tokens * m->head_dim; k++) {"))),
    ("what a check of ref/ calls of ref/ on both sides", "bf16.round: shares: ",
     lambda r: change(r, EXACT + "formats.c", ("    return number_row(take_down ? down : up);",
                                               "    return number_row(sinkproof_round(SINKPROOF_BF16, take_down ? down : up));"))),
    ("an honest set around the reference's own formula", "similarity_set: room: calls ref/variants/similarity.c:",
     lambda r: change(r, "proofs/bounds/variants.c", ("similarity_at(kind, x.mid)", "variant_similarity(kind, x.mid)"))),
    ("a truth that asks the bounds", "room: calls proofs/bounds/",
     lambda r: change(r, "proofs/truth/gelu.c", ("#include", "static double g(void) { return sinkproof_gamma(1, 1); }\n#include"))),
    ("a symbol that no check has on one side alone", "sink.attn-reorder: symbol: ",
     lambda r: change(r, EXACT + "attention.c", ('    LINE("attn-reorder", attn_one_minus, attn_reorder),\n', ""))),
    ("a primitive that is gone", "unread: no such file or function",
     lambda r: change(r, EXACT + "router.c", ("static matrix chosen_w2(", "static matrix w2_for("))),
    ("an entry whose side is no function of the sources", "sink.limit: unread: two sides expected",
     lambda r: change(r, BALLS + "sink.c", ("weights_without_sink,\n     softmax,", "weights_without_sink,\n     gone,"))),
]


def main():
    tap = Tap()
    asked, said = said_of(ROOT)
    tap.report(not said and asked >= 172, f"{asked} checks: no side calls the other and no formula stands on both", said)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for part in check_sides.FOLDERS:
            shutil.copytree(ROOT / part, root / part)
        for name, expected, plant in FAULTS:
            plant(root)
            _, said = said_of(root)
            tap.report(any(expected in line for line in said), f"{name} is refused", said[:3] or ["nothing said"])
            for file in CHANGED:
                shutil.copyfile(ROOT / file, root / file)
            CHANGED.clear()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
