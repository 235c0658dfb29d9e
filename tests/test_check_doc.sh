#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The traceability check accepts a small tree without a fault and refuses one with a fault per rule.
set -u
check="python3 $(cd "$(dirname "$0")" && pwd)/check_doc.py"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
n=0
failed=0

report() { # status, text
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; fi
}

fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/ref" "$work/tree/proofs/truth" "$work/tree/doc"
    cd "$work/tree" || exit 1
    printf '%s\n' '## eq[sink.mass] The mass' '' '$$' '\sum_j \alpha_j = 1 - \alpha_s' '$$' '' \
        '<!-- code ref/a.c sink.mass -->' '```c' 'double mass;' '```' >doc/01-a.md
    printf '%s\n' 'eq[sink.limit] The limit' '$$' 'b \to -\infty' '$$' >doc/02-b.md
    printf '%s\n' '# readme' >README.md
    printf '%s\n' '//> sink.mass sink.limit' '    double mass;' '//< sink.limit sink.mass' >ref/a.c
    printf '%s\n' '//> sink.mass' 'double enclosed;' '//< sink.mass' >proofs/truth/a.c
    printf '%s\n' '# FILE test_a' 'ok 1 - sink.mass ref worst=0 bound=1' \
        'ok 2 - sink.limit: x' 'ok 3 - sink.json is read' 'ok 4 - q.k of no family' '1..4' >log
    $check --write --log log . >/dev/null
}

accepts() {
    out=$($check --log "$work/tree/log" "$work/tree" 2>&1)
    status=$?
    [ $status = 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
    report $status "$1"
}

refuses() { # pattern of the sentence, what is wrong
    if out=$($check --log "$work/tree/log" "$work/tree" 2>&1); then report 1 "$2: accepted"; return; fi
    printf '%s\n' "$out" | grep -q "$1"
    status=$?
    [ $status = 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
    report $status "$2 is refused"
}

edit() { sed "$2" "$work/tree/$1" >"$work/edited" && cp "$work/edited" "$work/tree/$1"; }

fresh; accepts "a tree without a fault passes after --write"
fresh; edit doc/02-b.md 's/sink.limit/sink.mass/'; refuses 'stated a second time' "an id stated twice"
fresh; edit doc/02-b.md 's/^eq\[sink.limit\]/eq[Sink limit]/'; refuses 'malformed statement' "a malformed statement"
fresh; edit doc/02-b.md '/\$\$/d'; refuses 'not followed by a \$\$ block' "a statement without its block"
fresh; edit doc/02-b.md '/infty/d'; refuses 'block is empty' "an empty block"
fresh; edit ref/a.c '/\/\/</s/sink.limit sink.mass/sink.mass/'; refuses 'sink.limit is not closed' "an unclosed region"
fresh; edit ref/a.c '/\/\/>/s/ sink.limit//'; refuses 'was not opened' "a region closed but not opened"
fresh; edit ref/a.c 's/^\/\/> .*/\/\/>sink.mass/'; refuses 'malformed region marker' "a malformed marker"
fresh; edit ref/a.c '/double/d'; refuses 'is empty' "an empty region"
fresh; edit ref/a.c 's/ sink.limit//'; refuses 'have no region' "a statement without code"
fresh; edit ref/a.c 's/sink.limit/sink.other/'; refuses 'sink.other is not stated' "a region of an unknown id"
fresh; edit log '/sink.limit/d'; refuses 'no test that ran reported it' "a statement that no test reported"
fresh; edit log 's/ok 2 - sink.limit: x/ok 2 - sink.limit # SKIP later/'; refuses 'no test that ran reported it' "a skipped test as evidence"
fresh; edit log 's/^ok 2/not ok 2/'; refuses 'sink.limit failed' "a failing test"
fresh; edit log 's/sink.limit:/sink.other/'; refuses 'reports sink.other' "a report of an unknown id"
fresh; : >"$work/tree/log"; refuses 'log is empty' "an empty log"
fresh; rm "$work/tree/log"; refuses 'log is empty or missing' "a missing log"
fresh; rm "$work/tree/doc/01-a.md" "$work/tree/doc/02-b.md"; refuses 'zero equations' "a book without equations"
fresh; edit doc/01-a.md 's/double mass/float mass/'; refuses 'shown code differs' "shown code that differs"
fresh; edit doc/01-a.md 's/code ref\/a.c sink.mass/code ref\/b.c sink.mass/'; refuses 'has no region' "shown code of no region"
fresh; edit doc/01-a.md '/<!-- code/d'; refuses 'without <!-- code' "a fence of C without its marker"
fresh; edit doc/01-a.md 's/<!-- code ref/<!-- code: ref/'; refuses 'malformed marker of shown' "a malformed marker of shown code"
fresh; edit doc/02-b.md 's/infty/infty x/'; refuses 'sink.limit is stale: its statement' "a changed statement"
fresh; edit proofs/truth/a.c 's/enclosed/other/'; refuses 'sink.mass is stale: its proof' "a changed proof"
fresh; rm "$work/tree/doc/TRACE.lock"; refuses 'sink.mass is new' "a missing lock"
fresh; edit doc/INDEX.md 's/test_a/test_b/'; refuses 'INDEX.md: differs' "an index edited by hand"
fresh; edit ref/a.c 's/double mass/double more/'; refuses 'its code changed' "changed code"
$check --write --log "$work/tree/log" "$work/tree" >/dev/null
accepts "--write refreshes shown code, index and lock"
grep -q 'double more' "$work/tree/doc/01-a.md"; report $? "the Markdown shows the new code"
echo "1..$n"
exit $failed
