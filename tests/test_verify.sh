#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# `sinkproof verify` from outside: exit codes, the table, the detail, JSON, and the record of formal
# proofs that the build makes of proofs/formal. That a broken equation gives exit 1 is tested in
# test_exact_verify.c, which can break one.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh

contains() { # file, pattern, text
    grep -q -e "$2" "$work/$1"
    report $? "$3"
}
narrow() { # text
    ! awk 'length > 100 { found = 1 } END { exit !found }' "$work/out"
    report $? "$1 stays within 100 columns"
}

exits 0 "verify: all statements hold" verify --bits 128 --instances 20
contains out "^holds  sink.attn-final" "each statement has its row"
contains out "statements: .* hold, 0 broken" "the counts close the table"
! grep -q BROKEN "$work/out"
report $? "nothing is broken"
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

exits 0 "verify --list" verify --list
contains out "^sink.mass  *CQB" "the list names what each statement needs"
narrow "the list"
exits 0 "every id of the list" verify --bits 64 --instances 2 $(cut -d' ' -f1 "$work/out")
narrow "the detail of every statement"

exits 2 "an unknown id" verify sink.mas
contains err "nearest are sink.mass" "the nearest ids are named"
empty out "and nothing else"
exits 2 "bits that are no number" verify --bits many
exits 2 "bits below 32" verify --bits 8
exits 2 "an unknown option" verify --precision 64
exits 0 "--help" verify --help
exits 3 "no place to write" verify law.shift --json "$work/none/x"

exits 0 "verify --json -" verify sink.attn-mass sink.mass-below-one attn.qkv --json - --bits 64
python3 - "$work/out" <<'END'
import json, sys
e = json.load(open(sys.argv[1]))
mass, below, qkv = e["results"]
assert e["command"] == "verify" and e["exit"] == 0
assert [r["id"] for r in e["results"]] == ["sink.attn-mass", "sink.mass-below-one", "attn.qkv"]
assert all(r["ok"] is True for r in e["results"])
assert mass["label"] == "enclosed" and mass["exact"]["instances"] > 0 and mass["exact"]["unequal"] == 0
assert mass["exact"]["refuted"] == mass["exact"]["wrong_forms"] == 1
assert mass["enclosed"]["bits"] == 64 and mass["enclosed"]["worst"] <= mass["enclosed"]["bound"] == 1
assert -64 < mass["enclosed"]["radius_log2"] < -40 and mass["enclosed"]["grid_cases"] == 72
assert below["enclosed"]["radius_log2"] is None
assert qkv["measured"]["bound_id"] == "bound.linear" and 0 < qkv["measured"]["worst"] <= 1
END
report $? "the JSON says what was tried and how far it was from its bound"
exits 0 "verify --json FILE" verify law.shift --json "$work/j"
contains out "law.shift" "the table is still on standard output"
[ -s "$work/j" ]
report $? "and the JSON in its file"

# The record of formal proofs: regions, their hashes, what is admitted, and faults.
mkdir -p "$work/tree/proofs/formal"
printf '(*> sink.mass *)\nTheorem t : True.\nProof. exact I. Qed.\n(*< sink.mass *)\n' \
    >"$work/tree/proofs/formal/A.v"
printf '(*> sink.lse sink.gate *)\nTheorem u : True.\nAdmitted. (* Admitted *)\n(*< sink.lse *)\n(*< sink.gate *)\n' \
    >"$work/tree/proofs/formal/B.v"
python3 tests/formal_registry.py "$work/tree" >"$work/c" 2>"$work/err"
grep -q '{"sink.mass", "proofs/formal/A.v", "[0-9a-f]*", true}' "$work/c"
report $? "a closed region is recorded"
[ "$(grep -c false "$work/c")" = 2 ]
report $? "what is admitted is recorded as incomplete"
sed -i 's/exact I/easy/' "$work/tree/proofs/formal/A.v"
python3 tests/formal_registry.py "$work/tree" >"$work/d" 2>"$work/err"
! cmp -s "$work/c" "$work/d"
report $? "a changed proof has another hash"
printf '(*> sink.limit *)\n' >>"$work/tree/proofs/formal/A.v"
python3 tests/formal_registry.py "$work/tree" >"$work/d" 2>"$work/err"
[ $? = 1 ] && grep -q "sink.limit is not closed" "$work/err"
report $? "an unclosed region is refused"

tap_done
