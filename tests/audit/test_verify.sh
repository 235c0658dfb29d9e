#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# `sinkproof verify` from outside: exit codes, the table, the detail, JSON, and that it knows what the
# book states. That a broken equation gives exit 1 is tested in test_exact_verify.c, which can break
# one; what it says of formal proofs, in test_certificate.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

contains() { # file, pattern, text
    grep -q -e "$2" "$work/$1"
    report $? "$3"
}
narrow() { # text
    ! awk 'length > 100 { found = 1 } END { exit !found }' "$work/out"
    report $? "$1 stays within 100 columns"
}

exits 0 "verify: all statements hold" verify --bits 128 --instances 4 --json "$work/all.json"
contains out "^holds *sink.attn-final" "each statement has its row"
contains out "statements: .* hold, .* 0 broken, 0 lacking" "the counts close the table"
! grep -q -e BROKEN -e LACKS -e "lacks" "$work/out"
report $? "nothing is broken, nothing lacks what its heading asks for"
contains out "^formal proofs: [0-9]* proved" "and so do the formal proofs"
narrow "the table"

exits 0 "verify of two statements" verify sink.stable router.softmax-after
contains out "literal 1 kept" "a wrong form is shown with its counterexample"
contains out "refuted" "and it is refuted"
contains out "e^s = " "the instance is shown"
narrow "the detail"
cp "$work/out" "$work/first"
exits 0 "the same again" verify sink.stable router.softmax-after
cmp -s "$work/out" "$work/first"
report $? "a seed gives the same output"
exits 0 "another seed" verify sink.stable router.softmax-after --seed 7
! cmp -s "$work/out" "$work/first"
report $? "another seed gives another"

# One inventory: the ids, letters and order of the book's headings.
exits 0 "verify --list" verify --list
python3 - "$work/out" <<'END'
import pathlib, re, sys
heading = re.compile(r"^#+ eq\[([^\]]+)\] .* \{([A-Z ]+)\}$", re.MULTILINE)
pages = [p for p in sorted(pathlib.Path("doc").glob("*.md")) if p.name != "INDEX.md"]
book = [(id, letters.replace(" ", "")) for p in pages for id, letters in heading.findall(p.read_text())]
listed = [tuple(line.split()[:2]) for line in open(sys.argv[1])]
assert book == listed and len(book) > 90, set(book) ^ set(listed)
index = re.findall(r"^\| `([^`]+)` \| .*? \| ([A-Z ]+) \|", pathlib.Path("doc/INDEX.md").read_text(), re.MULTILINE)
assert [(id, letters.replace(" ", "")) for id, letters in index] == book
END
report $? "the ids and letters are those of the book's headings and of the index, in their order"
contains out "^sink.mass  *CQB" "the list names what each statement needs"
narrow "the list"
# The table above has all of them. These take a second each: GPT-2's circuit under interventions, and every pair of MXFP4.
cut -d' ' -f1 "$work/out" >"$work/ids-listed"
grep -v -x -E \
    'gpt2\.(null|circuit|bq-zero|bos-zero|epe-move|wk-rows|wk-random)|mxfp4\.ggml' "$work/ids-listed" >"$work/ids"
[ $(($(wc -l <"$work/ids-listed") - $(wc -l <"$work/ids"))) = 8 ]
report $? "eight ids are left out of the detail"
exits 0 "every other id of the list" verify --bits 64 --instances 2 $(cat "$work/ids")
narrow "the detail of a statement"

exits 2 "an unknown id" verify sink.mas
contains err "nearest are sink.mass" "the nearest ids are named"
empty out "and nothing else"
exits 2 "bits that are no number" verify --bits many
exits 2 "bits below 32" verify --bits 8
exits 2 "an unknown option" verify --precision 64
exits 0 "--help" verify --help
exits 3 "no place to write" verify law.shift --json "$work/none/x"

exits 0 "what is only defined" verify mask.causal
contains out "^defined  mask.causal" "a definition is defined"
contains out "defined in ref/mask.c" "and where"
grep mask.causal "$work/out" >"$work/row"
! grep -q proved "$work/row"
report $? "not proved"
exits 0 "verify --json -" verify sink.mass-below-one attn.qkv --json - --bits 64
python3 - "$work/out" "$work/all.json" <<'END'
import json, sys
e, every = (json.load(open(path)) for path in sys.argv[1:])
below, qkv = e["results"]
mass, = (r for r in every["results"] if r["id"] == "sink.attn-mass")
assert e["command"] == every["command"] == "verify" and e["exit"] == every["exit"] == 0
assert [r["id"] for r in e["results"]] == ["sink.mass-below-one", "attn.qkv"]
assert below["enclosed"]["bits"] == 64
assert all(r["ok"] is True for r in e["results"])
assert mass["label"] == "enclosed" and mass["exact"]["instances"] > 0 and mass["exact"]["unequal"] == 0
assert mass["exact"]["refuted"] == mass["exact"]["wrong_forms"] == 1
assert mass["enclosed"]["bits"] == 128 and mass["enclosed"]["worst"] <= mass["enclosed"]["bound"] == 1
assert -128 < mass["enclosed"]["radius_log2"] < -104 and mass["enclosed"]["grid_cases"] == 72
assert below["enclosed"]["radius_log2"] is None
assert mass["formal"]["state"] in ("proved", "recorded") and mass["status"] == "holds"
assert mass["formal"]["theorems"] == "sink_attn_mass" and "Reals" in mass["formal"]["axioms"]
assert qkv["formal"]["state"] == "defined" and qkv["defined"] == "ref/qkv.c"
assert qkv["measured"]["bound_id"] == "bound.linear" and 0 < qkv["measured"]["worst"] <= 1
END
report $? "the JSON says what was tried and how far it was from its bound"
# Every bound is measured and has a floor that is reached; of other statements only statistics have one.
python3 - "$work/all.json" "$work/ids-listed" <<'END'
import json, sys
results = json.load(open(sys.argv[1]))["results"]
assert [r["id"] for r in results] == open(sys.argv[2]).read().split()
bounds = [r for r in results if r["id"].startswith("bound.")]
assert len(bounds) > 30
for r in bounds:
    m = r["measured"]
    assert m["bound_id"] == r["id"] and 0.1 < m["floor"] <= m["reached"] <= m["worst"] <= m["bound"] == 1, r
    assert m["truth"] in ("exact", "enclosed"), r
truths = {r["id"]: r["measured"]["truth"] for r in bounds}
assert truths["bound.dot"] == truths["bound.linear"] == "exact" and truths["bound.rope"] == "enclosed"
others = {r["id"]: r["measured"] for r in results if not r["id"].startswith("bound.") and "measured" in r}
assert "floor" not in others["attn.qkv"] and "truth" not in others["attn.qkv"]
assert others["stat.spread"]["reached"] >= others["stat.spread"]["floor"] and "truth" not in others["stat.spread"]
END
report $? "the JSON has of every bound what built operands reach, and the floor"
exits 0 "verify bound.dot" verify bound.dot
contains out "^holds *bound.dot .* its own, floor 0.9 " "the table has the floor"
contains out "held from below: operands built for it reach 0.999 of the bound, floor 0.9; the truth is exact" \
    "and the detail what is reached"
narrow "the detail of a bound"

exits 0 "verify --json FILE" verify law.shift --json "$work/j"
contains out "law.shift" "the table is still on standard output"
[ -s "$work/j" ]
report $? "and the JSON in its file"

tap_done
