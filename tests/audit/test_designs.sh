#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# `sinkproof sinks`: the designs by name, and which is which other one.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

exits 0 "the designs" sinks --list
[ "$(grep -c '^  [a-z]' "$work/out")" = "$(grep -c '^    {"' ref/variants/designs.c)" ]
report $? "each row of the table is listed"
grep -q '^  score-bias  *sink.alpha  *a learned score, the same in every row: GPT-OSS$' "$work/out"
report $? "GPT-OSS's own among them"
exits 0 "the edges" sinks --edges
[ "$(grep -c ' overlap  ' "$work/out")" = 39 ] && [ "$(grep -c ' apart   ' "$work/out")" = 14 ]
report $? "39 overlap, 14 are apart"
grep -q '^0 other$\|^0 other ' "$work/out"
report $? "none is other than the book says"
exits 0 "on another head, as JSON" sinks --edges --seed 5 --json -
python3 - "$work/out" <<'END'
import json, sys
said = json.load(open(sys.argv[1]))
assert said["command"] == "sinks" and len(said["results"]) == 53, said["command"]
assert all(edge["expected"] and (edge["apart"] > 0) == (edge["verdict"] == "apart") for edge in said["results"])
for edge in said["results"]:
    at = edge.get("instance")
    assert (at is None) == (edge["verdict"] == "overlap"), edge
    assert at is None or (abs(at["from"] - at["to"]) > 0 and 1 <= at["row"] <= 15 and 1 <= at["column"] <= 16), edge
END
report $? "53 edges, each as the book says, and an entry of both sides for each that is refuted"
exits 2 "neither" sinks
exits 2 "both" sinks --list --edges
exits 2 "a seed that is no number" sinks --edges --seed many
grep -q 'expected a whole number, found "many"' "$work/err"
report $? "names what it found"
exits 2 "a name" sinks --list softmax
tap_done
