#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# `sinkproof curve`: what it lists it prints, as columns and as JSON alike; and what the figures of the book
# show holds in the numbers they are drawn from.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

exits 0 "curve lists what it has" curve
listed=$(cut -d ' ' -f 1 "$work/out")
[ -n "$listed" ]
report $? "the list is not empty"
exits 2 "a curve that there is not" curve sink.none
exits 2 "two curves" curve sink.alpha-sink bound.dot

# The table: "# ..." lines, rows of numbers, two empty lines between series.
for id in $listed; do
    exits 0 "curve $id" curve "$id" --json "$work/$id.json"
    mv "$work/out" "$work/$id.table"
    [ -s "$work/$id.json" ]
    report $? "curve $id as JSON"
done
"$sinkproof" curve yarn.ramp --json - | cmp -s - "$work/yarn.ramp.json"
report $? "--json - prints what --json FILE writes"
# shellcheck disable=SC2086  # words
python3 - "$work" $listed >"$work/same" <<'END'
import json, sys
for name in sys.argv[2:]:
    of = f"{sys.argv[1]}/{name}"
    table = [[line for line in part.splitlines() if not line.startswith("#")] for part in open(of + ".table").read().split("\n\n\n")]
    series = json.load(open(of + ".json"))["results"]
    rows = [[" ".join("NaN" if c is None else "%.17g" % c for c in row) for row in s["rows"]] for s in series]
    whole = all(len(row) == len(s["columns"]) for s in series for row in s["rows"])
    if rows == table and all(rows) and whole:
        print(name)
END
for id in $listed; do
    grep -qxF "$id" "$work/same"
    report $? "curve $id: the table and the JSON hold the same numbers"
done

# Every error of a float32 sum is below its bound (columns 2 to 5 and 6), and what was designed comes near.
awk '/^[^#]/ { for (c = 2; c <= 5; c++) if (!($c <= $6)) exit 1; rows++; near = $5 / $6 }
    END { exit !(rows > 10 && near > 0.9) }' "$work/bound.dot.table"
report $? "curve bound.dot: no error is above its bound, the designed one reaches nine tenths of it"

# A sink's gradient: the float32 sum is inside its set (columns 5 and 3), which grows with n; the gradient's share
# falls over all, and a stored output costs more than all else.
awk '/^[^#]/ { if (!($5 <= $3 && $3 > before && $3 < $4)) exit 1; before = $3; rows++
    if (rows == 1) first = $2; last = $2 } END { exit !(rows == 6 && last < first) }' "$work/grad.rounded.table"
report $? "grad.rounded curve: the error is inside the radius, the radius grows, the gradient shrinks beside its terms"
tap_done
