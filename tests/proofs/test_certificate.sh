#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# "Proved" means proved: what `verify` says of a formal proof, in a copy of this tree that is built by make after
# one thing in it changed, or two of which neither concerns the other's statement. No prover runs here;
# tests/proofs/test_formal.sh has one.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh

# The sources, and what a build of them needs so that make has only the inventory to build. What is changed below and
# what make writes are copies; the rest is this tree's.
tree=$work/tree
mkdir -p "$tree/build/release" "$tree/build/formal" || exit 1
cp -a proofs doc "$tree/"
for part in flags inventory.c inventory.o rooms.a sinkproof; do cp -a "build/release/$part" "$tree/build/release/"; done
for part in Makefile make LICENSE README.md base model ref fast audit tests build/packages; do
    ln -s "$PWD/$part" "$tree/$part"
done
cp -as "$PWD"/build/release/{base,model,ref,fast,proofs,audit} "$tree/build/release/" # links, file by file
strip --strip-debug "$tree/build/release/rooms.a" # a smaller file to link
checked=build/formal/certificate # as if the prover had run here, on what is there now
cp proofs/formal/CERTIFICATE.lock "$tree/$checked"

changed=proofs/formal/CERTIFICATE.lock
fresh() {
    for part in $changed; do cp -a "$part" "$tree/$part"; done
    cp proofs/formal/CERTIFICATE.lock "$tree/$checked"
    changed=proofs/formal/CERTIFICATE.lock
}

# `make`, then `verify ID`: its exit code, and what its row and its detail say.
says() { # code, word of the row, pattern in the output, text, id
    make -s -C "$tree" build/release/sinkproof >"$work/made" 2>&1
    report $? "$4: make"
    also "$@"
}
# The same of what make built last.
also() {
    "$tree/build/release/sinkproof" verify --bits 64 --instances 4 "$5" >"$work/out" 2>&1
    code=$?
    row=$(grep -m 1 -E "^[A-Za-z]+ +$5 " "$work/out")
    [ $code = "$1" ] && [ "${row##* }" = "$2" ] && grep -q -e "$3" "$work/out"
    found=$?
    report $found "$4: exit $code, expected $1; \"${row##* }\", expected \"$2\""
    [ $found = 0 ] || sed 's/^/# /' "$work/out"
}
edit() { # file, sed script
    changed="$changed $1"
    cp "$tree/$1" "$work/before"
    sed -i "$2" "$tree/$1"
    ! cmp -s "$work/before" "$tree/$1"
    report $? "$1 is changed: $2"
}
mass=proofs/formal/SoftmaxSink.v sinks=doc/06-softmax-sink.md

says 0 proved "^formal proofs: 1 proved$" "checked here, as it stands" sink.mass
also 0 defined "defined: proofs/formal/SoftmaxSink.v" "a definition is defined, never proved" sink.alpha
rm "$tree/$checked"
says 0 recorded "1 recorded, not checked here (make formal)" "checked elsewhere, as it stands" sink.mass
grep -q "proved on" "$work/out"
[ $? = 1 ]
report $? "nothing that was not checked here is called proved"

fresh
edit $mass 's/= 1 - alpha_sink J s b\./= 2 - alpha_sink J s b./'
says 1 outdated "lacks C: .*doc/06-softmax-sink.md asks for a formal" "a false theorem" sink.mass
grep -q "its statement is another" "$work/out"
report $? "its statement is another than the one that was checked"
! grep -qw -e "proved on" -e "holds *sink.mass" "$work/out"
report $? "a false theorem is not called proved"
also 1 outdated "SoftmaxSink.v changed since" "a theorem that rests on the file of a false one" sink.gate
# shellcheck disable=SC2046  # ids; those of chapter 32 would take twenty seconds
"$tree/build/release/sinkproof" verify --bits 64 --instances 2 \
    $("$tree/build/release/sinkproof" verify --list | cut -d' ' -f1 | grep -E '^(sink|law|mask)\.') >"$work/all" 2>&1
[ $? = 1 ] && grep -q "^LACKS *sink.mass " "$work/all" && grep -q "^holds *sink.hybrid " "$work/all"
report $? "among others that hold, too"

fresh
edit $mass 's/field. lra\./admit./'
edit $sinks 's/^### eq\[mask.causal\] \(.*\) {D}$/### eq[mask.causal] \1 {D Q E}/'
says 1 outdated "SoftmaxSink.v changed since" "another proof, not checked" sink.mass
also 1 - "lacks Q" "a heading that asks for more than there is" mask.causal
grep -q "lacks E: its heading in doc/06-softmax-sink.md asks for an experiment" "$work/out"
report $? "every letter is named"

fresh
edit proofs/formal/Sums.v 's/^(\* SPDX/(* x SPDX/'
edit $sinks 's/^### eq\[mask.causal\]/### eq[mask.causl]/'
says 1 outdated "Sums.v changed since" "a required file that changed" sink.mass
also 1 - "lacks D" "a statement that nothing defines" mask.causl

fresh
edit $mass '/(\*[<>] sink.mass \*)/d'
says 1 - "lacks C" "a proof that is gone" sink.mass
fresh
rm "$tree/$checked" "$tree/proofs/formal/CERTIFICATE.lock"
says 1 outdated "no record of it" "a proof without any record" sink.mass

tap_done
