#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The walls hold on this tree; and a tree with one fault per rule is refused for that rule.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
. tests/shared/again.sh
again_of "$PWD/tests/gates/check_walls.py"

header='// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors'

# A small tree without a fault, so that what is refused below is refused for its fault alone.
fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree"
    cd "$work/tree" || exit 1
    mkdir -p base model ref fast/lanes fast/kernels fast/engine proofs/truth audit/trace audit/judge audit/command \
        audit/studies/sinks tests
    printf '%s\n' "$header" 'int sinkproof_a(void);' >ref/a.h
    printf '%s\n' "$header" '#include "ref/a.h"' '#include <math.h>' \
        '// main( and printf( in a comment, and "printf" in a string, are nothing' \
        'int sinkproof_a(void) { return "printf"[0]; }' >ref/a.c
    printf '%s\n' "$header" >base/a.h
    printf '%s\n' "$header" '#include "base/a.h"' '#include <jansson.h>' >model/a.h
    printf '%s\n' "$header" '#include "model/a.h"' '#include "ref/a.h"' >fast/lanes/a.h
    printf '%s\n' "$header" '#include "ref/a.h"' '#include <immintrin.h>' >fast/kernels/a.h
    printf '%s\n' "$header" '#include "ref/a.h"' '#include <mpfr.h>' '#include <flint/fmpz.h>' >proofs/truth/a.h
    printf '%s\n' "$header" '#include "proofs/truth/a.h"' '#include "fast/kernels/a.h"' \
        '#include "audit/studies/sinks/a.h"' '#include <stdio.h>' \
        'int main(void) { return printf("x"); }' >audit/command/main.c
    printf '%s\n' "$header" '#include "ref/a.h"' >audit/a.h
    printf '%s\n' "$header" '#include "model/a.h"' >audit/studies/sinks/a.h
    cp audit/a.h audit/trace/trace.h
    printf '%s\n' "$header" '#include "audit/a.h"' '#include <arb.h>' 'int main(void) { return 0; }' >tests/test_a.c
    cd - >/dev/null || exit 1
}

refuses() { # rule, what is wrong (the tree already has the fault)
    if out=$(again "$work/tree" 2>&1); then report 1 "$2: accepted"; return; fi
    printf '%s\n' "$out" | grep -q ": $1: " && [ "$(printf '%s\n' "$out" | grep -c ': .*: ')" = 1 ]
    report $? "$2 is refused under $1"
}

add() { printf '%s\n' "$2" >>"$work/tree/$1"; }

out=$(again . 2>&1)
status=$?
[ $status = 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
report $status "the walls hold: $(printf '%s\n' "$out" | tail -n 1)"
fresh
again "$work/tree" >/dev/null 2>&1
report $? "a tree without a fault passes"

fresh; add ref/a.c '#include "fast/kernels/a.h"'; refuses include "ref including fast"
fresh; add ref/a.c '#include "../proofs/truth/a.h"'; refuses include "ref including proofs by a relative path"
fresh; add ref/a.c '#include <jansson.h>'; refuses include "ref including Jansson"
fresh; add base/a.h '#include <jansson.h>'; refuses include "base including Jansson"
for arrow in base:model base:ref model:ref model:fast/lanes ref:fast/lanes fast/lanes:fast/kernels proofs/truth:fast/lanes audit/judge:fast/lanes; do
    fresh; printf '%s\n' "$header" >"$work/tree/${arrow%:*}/c.h"
    add "${arrow%:*}/c.h" "#include \"${arrow#*:}/a.h\""; refuses include "${arrow%:*} including ${arrow#*:}"
done
fresh; add ref/a.c '#include <pthread.h>'; refuses include "threads in ref"
fresh; add ref/a.c '#include <immintrin.h>'; refuses include "intrinsics in ref"
fresh; add fast/kernels/a.h '#include "proofs/truth/a.h"'; refuses include "fast including proofs"
fresh; add fast/kernels/a.h '#include <mpfr.h>'; refuses include "fast including MPFR"
fresh; cp "$work/tree/fast/kernels/a.h" "$work/tree/fast/engine/b.h"; add fast/kernels/a.h '#include "fast/engine/b.h"'
refuses include "a kernel including the engine"
fresh; add proofs/truth/a.h '#include "fast/kernels/a.h"'; refuses include "proofs including fast"
fresh; add proofs/truth/a.h '#include "audit/a.h"'; refuses include "proofs including audit"
fresh; add ref/a.c '#include "audit/a.h"'; refuses include "ref including audit"
fresh; add audit/a.h '#include <gmp.h>'; refuses include "audit including GMP itself"
fresh; add audit/a.h '#include <flint/arb.h>'; refuses include "audit including Arb itself"
for arrow in trace:judge trace:command judge:verify judge:command verify:command bench:judge; do
    fresh; mkdir -p "$work/tree/audit/${arrow%:*}" "$work/tree/audit/${arrow#*:}"
    cp "$work/tree/audit/a.h" "$work/tree/audit/${arrow#*:}/b.h"; cp "$work/tree/audit/a.h" "$work/tree/audit/${arrow%:*}/c.h"
    add "audit/${arrow%:*}/c.h" "#include \"audit/${arrow#*:}/b.h\""; refuses include "audit/${arrow%:*} including audit/${arrow#*:}"
done
# Nothing but the command uses a study, and a study of the instrument no more than the headers that STUDIES lists.
for room in base model ref fast/engine proofs/truth audit/trace audit/judge audit/verify audit/report audit/studies/text; do
    fresh; mkdir -p "$work/tree/$room"; printf '%s\n' "$header" >"$work/tree/$room/c.h"
    add "$room/c.h" '#include "audit/studies/sinks/a.h"'; refuses include "$room including a study"
done
fresh; add audit/studies/sinks/a.h '#include "audit/trace/trace.h"'; again "$work/tree" >/dev/null 2>&1
report $? "a study may include the trace"
for header_of in judge/b trace/b engine/b; do
    fresh; mkdir -p "$work/tree/audit/${header_of%/*}"; cp "$work/tree/audit/a.h" "$work/tree/audit/$header_of.h"
    add audit/studies/sinks/a.h "#include \"audit/$header_of.h\""; refuses include "a study including audit/$header_of.h"
done
fresh; cp "$work/tree/audit/a.h" "$work/tree/audit/judge/c.h"; add audit/judge/c.h '#include "fast/kernels/a.h"'
refuses include "the judge including the fast path"
fresh; cp "$work/tree/audit/a.h" "$work/tree/audit/judge/c.h"; add audit/judge/c.h 'static void f(void) { puts("x"); }'
refuses print "printing in the judge"
fresh; add audit/a.h '#include "ref/none.h"'; refuses include "a header that is not there"
fresh; add ref/a.c '#include HIDDEN'; refuses include "a computed include"
fresh; add ref/a.c 'int main (void) { return 0; }'; refuses main "a main in ref"
fresh; add proofs/truth/a.h 'static void f(void) { puts("x"); }'; refuses print "printing in proofs"
fresh; add fast/kernels/a.h 'static void f(void) { fprintf(stderr, "x"); }'; refuses print "stderr in fast"
for room in base model; do
    fresh; add $room/a.h "$(yes '//' | head -n 300)"; refuses length "more than 300 lines in $room"
done
fresh; add ref/a.c "$(yes '//' | head -n 300)"; refuses length "more than 300 lines in ref"
fresh; add audit/a.h "$(yes '//' | head -n 500)"; refuses length "more than 500 lines in audit"
fresh; mkdir -p "$work/tree"/tests/{audit,studies}
for room in audit studies; do sed 's,^//,#,' "$work/tree/base/a.h" >"$work/tree/tests/$room/test_a.py"; done
refuses module "two scripts in Python of one name"
fresh; add model/k.h 'int k;'; refuses licence "a file without the SPDX header"
rm -rf "$work/tree"; mkdir "$work/tree"
again "$work/tree" >/dev/null 2>&1; [ $? = 1 ]
report $? "an empty tree is refused"

printf 'int mpfr_name(void);\nint mpfr_name(void) { return 1; }\n' >"$work/stray.c"
fresh
${CC:-gcc} -c "$work/stray.c" -o "$work/stray.o" && ar rcs "$work/stray.a" "$work/stray.o"
out=$(again --archive "$work/stray.a" "$work/tree" 2>&1) && report 1 "a name like a library's: accepted" ||
    { printf '%s\n' "$out" | grep -q 'name: .*mpfr_name'; report $? "a name like a library's is refused"; }

# Two files that call each other, or of which one only calls.
circle() { # first file, second file, what the second calls of the first
    fresh
    rm -rf "$work/objects"
    printf 'int sinkproof_m(int);\nint sinkproof_r(int x);\nint sinkproof_r(int x) { return sinkproof_m(x); }\n' >"$work/tree/$1.c"
    printf 'int sinkproof_r(int);\nint sinkproof_m(int x);\nint sinkproof_m(int x) { return %s; }\n' "$3" >"$work/tree/$2.c"
    for file in "$1" "$2"; do
        mkdir -p "$work/objects/$(dirname "$file")"
        ${CC:-gcc} -c "$work/tree/$file.c" -o "$work/objects/$file.o"
    done
    out=$(again --objects "$work/objects" "$work/tree" 2>&1)
}
says() { # pattern, text
    printf '%s\n' "$out" | grep -q "cycle: $1"
    report $? "$2"
}
circle ref/r model/m 'sinkproof_r(x) + 1'; says 'folders .*model/m.c, ref/r.c' "files of two folders that call each other are refused"
circle ref/r ref/m 'sinkproof_r(x) + 1'; says 'files .*ref/m.c, ref/r.c' "files of one folder that call each other are refused"
for second in model/m ref/m; do
    circle ref/r $second 'x + 1'
    ! printf '%s\n' "$out" | grep -q 'cycle: '
    report $? "a call in one direction is not: ref/r to $second"
done
circle ref/policy ref/policy_parse 'sinkproof_r(x) + 1'
! printf '%s\n' "$out" | grep -q 'cycle: '
report $? "nor is a circle that a listed call closes"
circle ref/policy ref/policy_parse 'x + 1'; says 'closes no circle by ref/policy_parse.c' "a listed call that closes none is"
circle ref/policy ref/policy_other 'sinkproof_r(x) + 1'; says 'files .*ref/policy.c, ref/policy_other.c' "a listed file may call back only what is listed"

# A name without the prefix that another file links: of its own room, and of another.
plain() { # the room of the file that links it
    fresh
    rm -rf "$work/objects"
    printf 'int plain(void);\nint plain(void) { return 1; }\n' >"$work/tree/audit/judge/p.c"
    mkdir -p "$work/tree/$1"
    printf 'int plain(void);\nint other(void);\nint other(void) { return plain(); }\n' >"$work/tree/$1/q.c"
    for file in audit/judge/p "$1/q"; do
        mkdir -p "$work/objects/$(dirname "$file")"
        ${CC:-gcc} -c "$work/tree/$file.c" -o "$work/objects/$file.o"
    done
    out=$(again --objects "$work/objects" "$work/tree" 2>&1)
}
plain audit/trace
printf '%s\n' "$out" | grep -q 'audit/judge/p.c: name: plain is linked by audit/trace/q.c'
report $? "a name without the prefix that another room links is refused"
plain audit/judge
! printf '%s\n' "$out" | grep -q ': name: '
report $? "one that its own room alone links is not"
# A name with it that no other room links; unless the public face declares it.
circle ref/r ref/m 'x + 1'
[ "$(printf '%s\n' "$out" | grep -c 'name: sinkproof_. begins with sinkproof_, and no other room links it')" = 2 ]
report $? "a name with the prefix that no other room links is refused"
circle ref/r model/m 'x + 1'
! printf '%s\n' "$out" | grep -q 'name: sinkproof_m'
report $? "one that another room links is not"
printf '%s\n' "$header" 'int sinkproof_r(int x);' >"$work/tree/audit/sinkproof.h"
out=$(again --objects "$work/objects" "$work/tree" 2>&1)
! printf '%s\n' "$out" | grep -q ': name: '
report $? "nor is one that the public face declares"
# One name in two files, which a program would link by chance.
cp "$work/objects/model/m.o" "$work/objects/ref/m.o" && cp "$work/tree/model/m.c" "$work/tree/ref/m.c"
out=$(again --objects "$work/objects" "$work/tree" 2>&1)
printf '%s\n' "$out" | grep -q 'ref/m.c: name: sinkproof_m is defined by model/m.c too'
report $? "a name that two rooms define is refused"
tap_done
