#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The formal proofs compile, rest on nothing but the axioms of the real numbers, and each id they
# prove is reported; and a folder with one fault per rule is refused. Proofs that are byte for byte
# those that this prover accepted when proofs/formal/CERTIFICATE.lock was written are not compiled
# again, unless WHOLE=1 asks for it: a landing does, and so finds a record of what was not accepted.
set -u
cd "$(dirname "$0")/../.." || exit 1

skip() {
    echo "1..0 # SKIP $1 is missing (Debian: coq libcoq-coquelicot libcoq-flocq libcoq-interval)"
    exit 0
}
for tool in coqc coqdep make python3; do
    command -v $tool >/dev/null || skip $tool
done
for library in Coquelicot Flocq Interval; do
    [ -d "$(coqc -where)/user-contrib/$library" ] || skip "Coq's $library"
done
. tests/shared/tap.sh
. tests/shared/again.sh
again_of tests/gates/check_formal.py

check() { # folder, build folder, an option
    again ${3:+"$3"} "$1" "$2"
}

as_recorded=--as-recorded compiled=build/formal
[ -z "${WHOLE-}" ] || as_recorded='' compiled=build/formal-whole # beside makes that take `proved` from build/formal
check proofs/formal $compiled $as_recorded >"$work/said"
while read -r word text; do
    case $word in
    pass) report 0 "$text" ;;
    fail) report 1 "$text" ;;
    *) echo "# $text" ;;
    esac
done <"$work/said"
if ! grep -q "^pass .* are the record's$" "$work/said"; then
    cmp -s <(grep -v "^prover " $compiled/certificate) <(grep -v "^prover " proofs/formal/CERTIFICATE.lock)
    report $? "proofs/formal/CERTIFICATE.lock is what the prover accepted (else: make formal)"
fi

# A folder with one sound proof of the real numbers; and with one that needs no library, which takes coqc
# no time to load: what is refused below is that one, and for its fault alone.
sound='From Coq Require Import Reals Lra.
Open Scope R_scope.
(*> sink.mass *)
Theorem sink_mass x : x + 0 = x.
Proof. ring. Qed.
(*< sink.mass *)'
plain='(*> sink.mass *)
Theorem sink_mass (x : nat) : x + 0 = x.
Proof. auto. Qed.
(*< sink.mass *)'

refuses() { # what is wrong, what must be said, the file's text
    printf '%s\n' "$3" >"$work/formal/A.v"
    out=$(check "$work/formal" "$work/build")
    status=$?
    [ $status = 1 ] && printf '%s\n' "$out" | grep -q "^fail .*$2"
    report $? "$1 is refused"
    [ ! -e "$work/build/certificate" ]
    report $? "$1 leaves no certificate"
}

mkdir -p "$work/formal"
printf '%s\n' "$sound" >"$work/formal/A.v"
out=$(check "$work/formal" "$work/build")
report $? "a sound folder passes"
grep -q "^id sink.mass A.v [0-9a-f]* [1-9,]* sink_mass$" "$work/build/certificate" &&
    grep -q "^file A.v [0-9a-f]* -$" "$work/build/certificate" &&
    grep -q "^axiom ClassicalDedekindReals" "$work/build/certificate"
report $? "its certificate has the id, the theorem, the hashes and the axioms"
printf '%s\n' "$plain" >"$work/formal/A.v"
out=$(check "$work/formal" "$work/build")
report $? "so does one without the real numbers"
grep -q "^id sink.mass A.v [0-9a-f]* - sink_mass$" "$work/build/certificate" && ! grep -q "^axiom" "$work/build/certificate"
report $? "whose certificate has no axiom"
refuses "a false statement" "does not compile" "${plain/x + 0 = x/x + 1 = x}"
refuses "an admitted theorem" "Admitted" "${plain/auto. Qed/Admitted}"
refuses "an axiom in the source" "Axiom" "Axiom two : 1 = 2. ${plain}"
refuses "a parameter" "Parameter" "Parameter two : nat. ${plain}"
refuses "a theorem that rests on an axiom of its own" "rests on A.two" \
    "${plain/'(*>'/'Variable two : forall x : nat, x + 0 = x.
(*>'}"$'\nTheorem other x : x + 0 = x. Proof. apply two. Qed.'
refuses "a region without its theorem" "does not hold the theorem sink_mass" "${plain/Theorem sink_mass/Theorem sink_mas}"
refuses "a region with nothing in it" "is empty" "${plain}"$'\n(*> sink.gate *)\n(*< sink.gate *)'
refuses "an unclosed region" "not closed" "${plain/'(*< sink.mass *)'/}"
refuses "a malformed marker" "malformed" "${plain/'(*< sink.mass *)'/'(*< sink.mass*)'}"
printf '%s\n' "$plain" >"$work/formal/B.v"
refuses "an id proved twice" "a second time" "$plain"
rm "$work/formal/B.v"
refuses "a folder that proves no id" "no id is proved" "Definition nothing := tt."

# What the record has is not compiled again; anything else is.
compiles() { # 0: it compiles, 1: it does not; what is changed
    rm -rf "$work/none"
    check "$work/formal" "$work/none" --as-recorded >"$work/said"
    [ $? = 0 ] && { [ -e "$work/none/certificate" ] && echo 0 || echo 1; } | grep -q "$1"
    report $? "$2"
}
lock=$work/formal/CERTIFICATE.lock
fresh() {
    printf '%s\n' "$plain" >"$work/formal/A.v"
    cp "$work/build/certificate" "$lock"
}
printf '%s\n' "$plain" >"$work/formal/A.v"
check "$work/formal" "$work/build" >"$work/said"
fresh
compiles 1 "what is recorded is not compiled again"
echo >>"$work/formal/A.v"
compiles 0 "a file with another byte is compiled"
hash=$(sha256sum "$work/formal/A.v" | cut -c 1-16)
sed -i "s/^\(file A.v\) [^ ]*/\1 $hash/" "$lock"
compiles 1 "unless it is recorded"
printf '%s\n' "${plain/x + 0 = x/x + 0 = x + 0}" >"$work/formal/A.v"
hash=$(sha256sum "$work/formal/A.v" | cut -c 1-16)
sed -i "s/^\(file A.v\) [^ ]*/\1 $hash/" "$lock"
compiles 0 "a statement that is not the record's is compiled"
fresh
sed -i 's/^prover .*/&1/' "$lock"
compiles 0 "what another prover accepted is compiled"
fresh
sed -i 's/^prover .*/&\naxiom A.two/; s/^\(id .*\) - /\1 1 /' "$lock"
compiles 0 "what rests on an axiom of its own is compiled"
fresh
echo "Definition nothing := tt." >"$work/formal/B.v"
compiles 0 "with a file that is not recorded all are compiled"

tap_done
