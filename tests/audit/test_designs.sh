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
holding=$(grep -cE '^ +(HOLDS|VALUES)\("|^ +\{"' proofs/truth/edges.c)
false=$(grep -c '^ *FALSE("' proofs/truth/edges.c)
[ "$(grep -c ' overlap  ' "$work/out")" = "$holding" ] && [ "$(grep -c ' apart   ' "$work/out")" = "$false" ]
report $? "$holding overlap, $false are apart: each edge of the table"
[ "$holding" -ge 39 ] && [ "$false" -ge 14 ]
report $? "39 or more and 14 or more"
grep -q '^0 other$\|^0 other ' "$work/out"
report $? "none is other than the book says"
exits 0 "on another head, as JSON" sinks --edges --seed 5 --json -
python3 - "$work/out" $((holding + false)) <<'END'
import json, sys
said = json.load(open(sys.argv[1]))
assert said["command"] == "sinks" and len(said["results"]) == int(sys.argv[2]), said["command"]
assert all(edge["expected"] and (edge["apart"] > 0) == (edge["verdict"] == "apart") for edge in said["results"])
for edge in said["results"]:
    at = edge.get("instance")
    assert (at is None) == (edge["verdict"] == "overlap"), edge
    assert at is None or (abs(at["from"] - at["to"]) > 0 and 1 <= at["row"] <= 15 and 1 <= at["column"] <= 16), edge
END
report $? "all edges, each as the book says, and an entry of both sides for each that is refuted"
exits 2 "neither" sinks
exits 2 "both" sinks --list --edges
exits 2 "a seed that is no number" sinks --edges --seed many
grep -q 'expected a whole number, found "many"' "$work/err"
report $? "names what it found"
exits 2 "a name" sinks --list softmax

# An engine of two heads without positions, in plain Python: written as it is, and with a change.
engine() { # file, Python that changes the tensors, or the metadata
    python3 - "$work/$1" "$2" <<'END'
import json, math, struct, sys
path, change = sys.argv[1:]
n, heads, d = 6, 2, 4
def number(*at):
    return math.sin(sum(a * (17 + 6 * k) for k, a in enumerate(at, 1))) * 2
q = [[[number(1, i, h, c) for c in range(d)] for h in range(heads)] for i in range(n)]
k = [[[number(2, j, 0, c) for c in range(d)]] for j in range(n)]
v = [[[number(3, j, 0, c) for c in range(d)]] for j in range(n)]
b = [0.5, -1.0]
s = [[[sum(x * y for x, y in zip(q[i][h], k[j][0])) / 2 for j in range(n)] for i in range(n)] for h in range(heads)]
e = [[[math.exp(s[h][i][j]) if j <= i else 0 for j in range(n)] for i in range(n)] for h in range(heads)]
alpha = [[[x / (sum(row) + math.exp(b[h])) for x in row] for row in e[h]] for h in range(heads)]
o = [[[sum(alpha[h][i][j] * v[j][0][c] for j in range(n)) for c in range(d)] for h in range(heads)] for i in range(n)]
tensors = {"00.q": q, "00.k": k, "00.v": v, "00.s": s, "00.alpha": alpha, "00.o": o, "00.star.logit": b}
metadata = {"format": "sinkproof-design-1", "design": "nope,star=score"}
exec(change)
def shape(x):
    return [len(x), *shape(x[0])] if isinstance(x, list) else []
def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]
header, data = {"__metadata__": metadata}, b""
for name, x in tensors.items():
    part = struct.pack(f"<{len(flat(x))}d", *flat(x))
    header[name] = {"dtype": "F64", "shape": shape(x), "data_offsets": [len(data), len(data) + len(part)]}
    data += part
text = json.dumps(header).encode()
open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
END
}
engine honest 'pass'
exits 0 "an honest engine" sinks --judge "$work/honest"
grep -q '^00.alpha  *nope,star=score  *72  *0 .* within$' "$work/out"
report $? "each of its weights is judged"
exits 0 "of binary64" sinks --judge "$work/honest" --policy real-f64
# Whole numbers: no order rounds, so the sums are the middles of their sets to the last bit. The sets are wider.
engine whole 'q, k = ([[[round(c) for c in h] for h in x] for x in y] for y in (q, k))
s = [[[sum(x * y for x, y in zip(q[i][h], k[j][0])) / 2 for j in range(n)] for i in range(n)] for h in range(heads)]
tensors = {"00.q": q, "00.k": k, "00.s": s}'
exits 0 "sums that no order rounds" sinks --judge "$work/whole"
grep -q '^00.s  *nope,star=score  *42  *0  *0  within$' "$work/out"
report $? "are in the middle of their sets, and within: the word exact is for sets of one value"
engine only 'tensors = {"00.alpha": [[[1.0]], [[1.0]]], "00.v": [[[3.0, 5.0]]], "00.o": [[[3.0, 5.0], [3.0, 5.0]]]}
metadata["design"] = "softmax"'
exits 0 "the only key of a row, of weight 1" sinks --judge "$work/only" --policy bf16,A11=bf16
grep -q '^00.o  *softmax  *4  *0  *0  exact$' "$work/out"
report $? "leaves its value behind in every engine: exact"
engine forgotten 'metadata["design"] = "nope"; tensors.pop("00.star.logit")'
exits 1 "weights that another took away from" sinks --judge "$work/forgotten"
grep -Eq '^First outside: 00.alpha, head 0, row 0, key 0: expected (0.99999|1)[0-9]* to 1[.0-9]*, found 0[.]' "$work/out"
report $? "the first of them, what it must be, and what it is"
engine nan 'tensors["00.o"][3][1][2] = math.nan'
exits 1 "a result that is NaN" sinks --judge "$work/nan" --json -
python3 - "$work/out" <<'END'
import json, sys
steps = {step["id"]: step for step in json.load(open(sys.argv[1]))["results"]}
assert set(steps) == {"00.s", "00.alpha", "00.o"} and steps["00.s"]["verdict"] == "within", steps
assert steps["00.o"]["verdict"] == "bug" and steps["00.o"]["outside"] == 1 and not steps["00.o"]["ok"]
first = steps["00.o"]["first"]
assert (first["head"], first["row"], first["column"], first["found"]) == (1, 3, 2, None), first
END
report $? "where it is, as JSON"
engine alone 'tensors = {"00.alpha": alpha}'
exits 4 "weights alone decide nothing" sinks --judge "$work/alone"
grep -q 'undecided: the file lacks q, k, star.logit$' "$work/out"
report $? "and it is said what is missing"
engine gated 'tensors["00.gate"] = o'
exits 3 "a gate that the design has not" sinks --judge "$work/gated"
grep -q "gated: tensor 00.gate: expected none, since the design nope,star=score has no gate$" "$work/err"
report $? "the tensor is named"
exits 3 "no such file" sinks --judge "$work/none"
exits 3 "a policy of no name" sinks --judge "$work/honest" --policy f33
exits 3 "a policy that the sets do not follow" sinks --judge "$work/honest" --policy llama-cpp
exits 2 "a model beside it" sinks synthetic:tiny --tokens 1 --judge "$work/honest"
exits 2 "threads of nothing" sinks --judge "$work/honest" --engine fast --threads 2
tap_done
