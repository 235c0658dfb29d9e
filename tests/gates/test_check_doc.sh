#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The traceability check accepts a small tree without a fault and refuses one with a fault per rule.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
. tests/shared/again.sh
tests=$PWD/tests/gates
again_of "$tests/check_doc.py"
CI=

check() { again "CI=$CI" "$@"; }

# Two equations: one with every kind of proof, shown, measured and cited; one a definition.
whole() {
    mkdir -p "$work/tree/ref" "$work/tree/proofs/truth" "$work/tree/proofs/exact" \
        "$work/tree/proofs/formal" "$work/tree/doc" "$work/tree/audit"
    cd "$work/tree" || exit 1
    printf '%s\n' '## eq[sink.mass] The mass {C Q B}' '' '$$' '\sum_j \alpha_j = 1 - \alpha_s' '$$' '' \
        '<!-- code ref/a.c sink.mass -->' '```c' 'double mass;' '```' '' \
        '<!-- theorem proofs/formal/A.v sink.mass -->' '```coq' 'old' '```' '' \
        '<!-- measured sink.mass -->' '' '<!-- exercise ten-lines -->' '```c' 'int main(void);' '```' \
        '<!-- output ten-lines -->' '```text' '```' '' \
        '<!-- program audit/x.c -->' '```c' '```' '' \
        'See eq[sink.limit], `sink.limit`, [there](02-b.md#sink.limit).' >doc/01-a.md
    printf '%s\n' 'eq[sink.limit] The limit {D}' '$$' 'b \to -\infty' '$$' >doc/02-b.md
    printf '%s\n' '# readme' >README.md
    printf '%s\n' '// licence' '// owners' '//' '// A program' 'int main(void);' >audit/x.c
    printf '%s\n' '//> sink.mass sink.limit' '    double mass;' '//< sink.limit sink.mass' >ref/a.c
    printf '%s\n' '//> sink.mass' 'double enclosed;' '//< sink.mass' >proofs/truth/a.c
    printf '%s\n' '//> sink.mass' 'double exact;' '//< sink.mass' >proofs/exact/a.c
    printf '%s\n' '(*> sink.mass *)' 'Theorem sink_mass : True.' 'Proof. exact I. Qed.' '(*< sink.mass *)' \
        >proofs/formal/A.v
    printf '%s\n' '# FILE test_a' 'ok 1 - sink.mass ref worst=0.5 bound=1' \
        'ok 2 - sink.limit: x' 'ok 3 - sink.json is read' 'ok 4 - q.k of no family' '1..4' \
        '# FILE test_exact' 'ok 1 - sink.mass exact instances=7 unequal=0' '1..1' \
        '# FILE test_formal' 'ok 1 - sink.mass coq theorem=sink_mass' '1..1' \
        '# FILE test_exercises' '# output ten-lines| 42' 'ok 1 - runs' '1..1' >log
    check --log log . | sed -n "s/.*then write '\(.*\)' and what both say$/\1/p" >doc/PROVED.txt
    echo '    sum_j alpha_j = 1 - alpha_s' >>doc/PROVED.txt
    check --write --log log . >/dev/null
}

fresh() { # the same tree again
    rm -rf "$work/tree"
    cp -R "$work/whole" "$work/tree"
    cd "$work/tree" || exit 1
}

accepts() {
    out=$(check --log "$work/tree/log" "$work/tree" 2>&1)
    status=$?
    [ $status = 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
    report $status "$1"
}

refuses() { # pattern of the sentence, what is wrong
    if out=$(check --log "$work/tree/log" "$work/tree" 2>&1); then report 1 "$2: accepted"; return; fi
    printf '%s\n' "$out" | grep -q "$1"
    status=$?
    [ $status = 0 ] || printf '%s\n' "$out" | sed 's/^/# /'
    report $status "$2 is refused"
}

edit() { sed "$2" "$work/tree/$1" >"$work/edited" && cp "$work/edited" "$work/tree/$1"; }
drop() { rm "$work/tree/$1"; }

whole
cp -R "$work/tree" "$work/whole"
fresh; accepts "a tree without a fault passes after --write"
grep -q '^Theorem sink_mass : True.$' doc/01-a.md && ! grep -q Qed doc/01-a.md
report $? "a theorem is shown without its proof"
grep -q '^Measured: 1 check .*7 exact instances .*1 theorem .*worst 0.5 of bound 1' doc/01-a.md
report $? "what was measured is filled in from the log"
grep -q '^42$' doc/01-a.md; report $? "what a program printed is filled in from the log"

# Statements.
fresh; edit doc/02-b.md 's/infty/infty x/'; refuses 'sink.limit is stale: its statement' "an edited equation"
fresh; edit doc/02-b.md 's/eq.sink.limit./eq[sink.limt]/'; refuses 'sink.limt is stated, but no room' "a typo in an id"
fresh; edit doc/02-b.md 's/sink.limit/sink.mass/'; refuses 'stated a second time' "an id stated twice"
fresh; edit doc/02-b.md 's/^eq\[sink.limit\]/eq[Sink limit]/'; refuses 'malformed statement' "a malformed statement"
fresh; edit doc/02-b.md 's/ {D}//'; refuses 'malformed statement' "a statement that asks for no evidence"
fresh; edit doc/02-b.md 's/{D}/{X}/'; refuses 'malformed statement' "evidence of an unknown kind"
fresh; edit doc/02-b.md '/\$\$/d'; refuses 'not followed by a \$\$ block' "a statement without its block"
fresh; edit doc/02-b.md '/infty/d'; refuses 'block is empty' "an empty block"
fresh; drop doc/01-a.md; drop doc/02-b.md; refuses 'zero equations' "a book without equations"

# Regions.
fresh; edit ref/a.c '/\/\/</s/sink.limit sink.mass/sink.mass/'; refuses 'sink.limit is not closed' "an unclosed region"
fresh; edit ref/a.c '/\/\/>/s/ sink.limit//'; refuses 'was not opened' "a region closed but not opened"
fresh; edit ref/a.c 's/^\/\/> .*/\/\/>sink.mass/'; refuses 'malformed region marker' "a malformed marker"
fresh; edit ref/a.c '/double/d'; refuses 'is empty' "an empty region"
fresh; edit ref/a.c 's/ sink.limit//'; refuses 'no room has a region' "a statement without code"
fresh; edit ref/a.c 's/sink.limit/sink.other/'; refuses 'sink.other is not stated' "a region of an unknown id"
fresh; edit proofs/formal/A.v '/(\*</d'; refuses 'A.v:1: region sink.mass is not closed' "an unclosed region in Coq"
fresh; edit proofs/formal/A.v 's/(\*> sink.mass/(*>sink.mass/'; refuses 'malformed region marker' "a malformed marker in Coq"

# The reference's code stands in any of its rooms; nowhere else.
for room in base model fast/lanes; do
    fresh; mkdir -p $room; mv ref/a.c $room/a.c; edit doc/01-a.md "s|code ref/a.c|code $room/a.c|"
    refuses 'sink.mass is stale: its code' "a region that moved to $room"
    check --write --log log . >/dev/null; accepts "a region in $room is the code of its statement"
    grep -q "\`$room/a.c\`" doc/INDEX.md; report $? "the index names $room/a.c"
done
fresh; mkdir -p fast/engine; mv ref/a.c fast/engine/a.c; refuses 'sink.limit is stated, but no room' "a region in fast/engine"

# Proofs.
fresh; drop proofs/formal/A.v; refuses 'asks for C, formal proof: no region' "a removed formal proof"
fresh; drop proofs/exact/a.c; refuses 'asks for Q, exact instances: no region' "a removed exact proof"
fresh; drop proofs/truth/a.c; refuses 'asks for B, enclosure or bound: no region' "a removed enclosure"
fresh; edit proofs/formal/A.v 's/Theorem/Definition/'; refuses 'its Coq region proves nothing' "a formal proof without a theorem"
fresh; edit log 's/sink.mass coq.*/all of it # SKIP no coqc/'; CI=true
refuses 'asks for C, formal proof: no test' "a formal proof that was not checked, in CI"; CI=
accepts "a run without Coq passes elsewhere"
out=$(check --log log . 2>&1); case $out in *"formal proofs were not checked"*) report 0 "and says so" ;; *) report 1 "and says so" ;; esac
fresh; edit log 's/exact instances/looks right/'; refuses 'asks for Q, exact instances: no test' "exact instances that did not run"
fresh; edit log 's/sink.mass ref/a.mass ref/'; refuses 'asks for B, enclosure or bound: no test' "a bound that no test measured"
fresh; edit proofs/truth/a.c 's/enclosed/other/'; refuses 'sink.mass is stale: its proof' "a changed proof"
fresh; edit proofs/formal/A.v 's/exact I/trivial/'; refuses 'sink.mass is stale: its proof' "a changed formal proof"

# The book's table of points.
points() {
    fresh
    printf '    P(T0, "T0", "row") \\\n    P(A2, "A2", "heads")\n#define SINKPROOF_TRACED_POINTS(P)\n' >"$work/tree/ref/points.h"
    printf '    P(T0, "T0", T0)\n    P(A2_Q, "A2.q", A2)\n    P(A3, "A3", A2)\n' >>"$work/tree/ref/points.h"
    printf '# Model\n\n## The points\n\n| points | what |\n|---|---|\n%s\n\n## Next\n' "$1" >"$work/tree/doc/01-model.md"
}
points '| `T0` `A2` | row |
| `A3` | only traced |'; accepts "a table of all points passes"
points '| `T0` | row |
| `A3` | only traced |'; refuses 'A2 is missing: it is a point of' "a point that the book's table lacks"
points '| `T0` `A2` `A7` | row |
| `A3` | only traced |'; refuses 'A7 is no point of' "a point that the code lacks"
points '| `T0` `A3` `A2` | row |'; refuses 'A3 stands where ref/points.h has A2' "points out of order"

# Lines that an editor can show.
long=$(printf 'word %.0s' $(seq 30)) # 150 columns
fresh; printf '\n%s\n' "$long" >>"$work/tree/doc/01-a.md"; refuses 'columns of prose, at most 120' "a long line of prose"
fresh; printf '\n- %s\n' "$long" >>"$work/tree/doc/01-a.md"; refuses 'columns of prose' "a long item of a list"
fresh; printf '\n```\n%s\n```\n\n$$\n%s\n$$\n\n[`%s`](02-b.md)\n\n| %s |\n' "$long" "$long" "$long" "$long" >>"$work/tree/doc/01-a.md"
accepts "code, formulas, tables and what cannot be broken may be long"

# Euler's number shares its letter with nothing in one statement.
fresh; printf '\n%s\n' 'With $e^x$ and $e$ the error.' >>"$work/tree/doc/02-b.md"
refuses "Euler's number and something else are e in eq\[sink.limit\]" "an error that is called e beside Euler's number"
fresh; printf '\n%s\n' 'With $e^x$, $\log_2 e$, $\hat e$, $e_j$ and $\delta$ the error.' >>"$work/tree/doc/02-b.md"
accepts "e with an index, a hat or a logarithm is Euler's or its own"
fresh; printf '\n%s\n' 'With $e$ the error.' >>"$work/tree/doc/02-b.md"; accepts "an error e where Euler's number is not"

# Formula and theorem, read by a person: neither changes behind the row, and nothing but a person renews it.
rewritten() { check --write --log "$work/tree/log" "$work/tree" >/dev/null; }
fresh; edit doc/01-a.md 's/= 1 - /= 2 - /'; rewritten
refuses 'the formula of sink.mass changed since somebody read both' "a changed formula of a theorem, even after --write"
fresh; edit proofs/formal/A.v 's/: True/: 1 = 1/;s/exact I/reflexivity/'; rewritten
refuses 'the theorem of sink.mass changed since somebody read both' "a changed theorem, even after --write"
fresh; edit proofs/formal/A.v 's/exact I/(* as before *) exact I/'; rewritten
accepts "a changed proof of the same theorem passes after --write"
meant() { # A.v states its theorem in a word of B.v, which stands on another; the row is written
    fresh; edit proofs/formal/A.v 's/: True/: fine/;s/exact I/exact eq_refl/'
    edit proofs/formal/A.v '1i From Sinkproof Require Import B.'
    printf '%s\n' 'Definition one := 1. Definition unused := 2.' 'Definition fine := one = 1. (* so far *)' \
        >"$work/tree/proofs/formal/B.v"
    rewritten
    row=$(check --log "$work/tree/log" "$work/tree" | sed -n "s/.*then write '\(.*\)' and what both say$/\1/p")
    edit doc/PROVED.txt "s/^sink.mass .*/$row/"; rewritten
}
meant; accepts "a theorem in words that are defined elsewhere"
edit proofs/formal/B.v 's/so far/and on/;s/unused := 2/unused := 3/'; rewritten
accepts "a comment, and a definition that no theorem needs"
edit proofs/formal/B.v 's/one := 1/one := 0 + 1/'; rewritten
refuses 'the meaning of the words of sink.mass changed since somebody read both' "a changed definition below a theorem's words"
fresh; edit doc/PROVED.txt '/^sink.mass/d'; refuses 'PROVED.txt:1: malformed' "a reading without its row"
fresh; drop doc/PROVED.txt; refuses 'sink.mass has no row: read formula and theorem' "a theorem that nobody compared"
fresh; edit doc/PROVED.txt '/^    /d'; refuses 'sink.mass does not say what both say' "a row that says nothing"
fresh; printf '%s\n' '  : \sum_j := ∑ j ∈ J' '  : \alpha_s := a' >>doc/PROVED.txt
refuses 'sink.mass prints .*no relation of the theorems' "a formula that no theorem states"
printf '%s\n' '  ! \sum_j left to the reader' >>doc/PROVED.txt; accepts "a relation that is named as not read"
printf '%s\n' '  ! \alpha_j it is not there' >>doc/PROVED.txt
refuses 'prints no relation that begins' "a relation named that is not printed"
fresh; edit doc/PROVED.txt 's/^sink.mass/sink.limit/'; refuses 'sink.limit is no statement that asks for C' "a row of another statement"
fresh; edit doc/01-a.md '/<!-- theorem/,/^```$/d'; refuses 'no page shows the theorem' "a theorem that no page shows"
fresh; edit proofs/formal/A.v '1i Section S.\nHypothesis wrong : False.'; echo 'End S.' >>proofs/formal/A.v
refuses 'under a hypothesis that its region leaves out: wrong : False' "a hypothesis that the page does not show"

# The run.
fresh; edit log 's/^ok 2 - sink.limit.*/# nothing/;s/^1..4/1..3/'; refuses 'no test that ran reported it' "a statement that no test reported"
fresh; edit log 's/ok 2 - sink.limit: x/ok 2 - sink.limit # SKIP later/'; refuses 'no test that ran reported it' "a skipped test as evidence"
fresh; edit log 's/^ok 2/not ok 2/'; refuses 'sink.limit failed' "a failed test"
fresh; edit log 's/sink.limit:/sink.other/'; refuses 'reports sink.other' "a report of an unknown id"
fresh; : >"$work/tree/log"; refuses 'log is empty' "an empty log"
fresh; drop log; refuses 'log is empty or missing' "a missing log"

# What the pages show.
# Tables of planted mistakes and of honest runs.
kept() {
    fresh
    mkdir -p doc/engines/planted doc/engines/honest
    printf '%s\n' '{"engine": "e", "rows": [' '{"mistake": "m", "policy": "f32", "kind": "mistake", "changed": 7, "verdict": "bug",
"first": "00.A9", "points": 1, "ulp": 2.0, "named": "exactly", "as": "m", "bounds": 3.0},' '{"mistake": "n", "policy": "f32",
"kind": "equivalent", "changed": 0, "verdict": "within", "first": null, "points": 0, "ulp": 0, "named": null}]}' \
        >doc/engines/planted/e.json
    printf '%s\n' '{"engine": "e", "version": "1", "runs": [' '{"run": "a", "policy": "f32", "verdict": "within"},' \
        '{"run": "b", "policy": "f32", "verdict": "undecided"}]}' >doc/engines/honest/e.json
    printf '%s\n' '# 21' '- f32: 4 planted, 3 seen and convicted, 3 named, 2 of these alone.' '' '<!-- planted all -->' '' \
        '<!-- planted rows -->' '' '<!-- honest all -->' >doc/21-diagnosis.md
    check --write --log log . >/dev/null
}
kept; accepts "tables of planted mistakes and honest runs"
grep -q '^| all but equivalents | | 5 | 1 | 0 | 4 | 3 | 1 | 0 | 0 | 0 |$' doc/21-diagnosis.md &&
    grep -q '^| all |  | 2 | 1 | 0 | 1 | 95 % |$' doc/21-diagnosis.md
report $? "their sums are those of the rows, and what decides nothing bounds nothing"
kept; edit doc/21-diagnosis.md 's/4 | 3 | 1/5 | 3 | 1/'; refuses 'shown table differs' "another sum"
kept; edit doc/engines/planted/e.json 's/"within"/"bug"/'; refuses 'computes the same and is called bug' "a convicted equivalent"
kept; edit doc/engines/planted/e.json 's/"changed": 7/"changed": 0/'; refuses 'changed nothing' "a mistake that is none"
kept; edit doc/engines/planted/e.json 's/"exactly"/null/'; refuses 'not asked for its cause' "a conviction without a cause"
kept; edit doc/engines/honest/e.json 's/"b"/"a"/'; refuses 'counted 2 times' "an honest run counted twice"

fresh; edit ref/a.c 's/double mass/double more/'; refuses 'sink.mass is stale: its code' "edited code"
fresh; edit doc/01-a.md 's/double mass/float mass/'; refuses 'shown code differs' "shown code that differs"
fresh; edit doc/01-a.md 's/code ref\/a.c sink.mass/code ref\/b.c sink.mass/'; refuses 'has no region' "shown code of no region"
fresh; edit doc/01-a.md '/<!-- code/d'; refuses 'without <!-- code' "a fence of C without its marker"
fresh; edit doc/01-a.md 's/<!-- code ref/<!-- code: ref/'; refuses 'malformed marker of shown' "a malformed marker of shown code"
fresh; edit doc/01-a.md 's/: True/: False/'; refuses 'shown theorem differs' "a shown theorem that differs"
fresh; edit doc/01-a.md 's/^42/43/'; refuses 'shown output differs' "output that was typed"
fresh; edit audit/x.c 's/void/int argc/'; refuses 'shown program differs from audit/x.c' "a program that has changed"
fresh; rm "$work/tree/audit/x.c"; refuses 'audit/x.c is no file' "a program that is not there"
fresh; edit log '/output ten/d'; refuses 'no program ten-lines ran' "output of a program that did not run"
fresh; edit doc/01-a.md 's/^Measured: 1 check/Measured: check/'; refuses 'shown measured differs' "a measurement that was typed"
fresh; edit log 's/worst=0.5/worst=0.6/'; refuses 'shown measured differs' "a figure that is not the log's"
fresh; edit doc/01-a.md 's/worst 0.5/worst 0.1/'; refuses 'shown measured differs' "a figure that was typed"
fresh; edit doc/01-a.md 's/7 exact/8 exact/'; refuses 'shown measured differs' "a count that was typed"
fresh; edit log '1i# MACHINE another'; edit log 's/worst=0.5/worst=0.6/'; accepts "a figure of another machine passes"
fresh; edit log '1i# MACHINE another'; edit log 's/^ok 1 - sink.mass exact.*/ok 1 - sink.mass other/'
refuses 'shown measured differs' "but no other sentence does"
silent() { # a test that reported the id where the pages were written has nothing to ask here
    fresh; printf '%s\n' '# FILE test_more' 'ok 1 - sink.mass wide worst=0.2 bound=1' '1..1' >>log
    check --write --log log . >/dev/null; edit log 's/^ok 1 - sink.mass wide.*/ok 1 - nothing to ask/'
}
silent; refuses 'shown measured differs' "a test that no longer reports an id"
silent; edit log '1i# MACHINE another'; accepts "but on another machine it may have nothing to ask"
silent; edit log '1i# MACHINE another'; edit log '/test_more/d'; refuses 'shown measured differs' "there, too, one that did not run"
fresh; edit doc/INDEX.md 's/test_a/test_b/'; refuses 'INDEX.md: differs' "an index edited by hand"
fresh; mkdir -p tests/gates; echo 'region sink.mass ref/a.c 0 5 5 4 1 0 test_a AAAA!' >tests/gates/mutants.lock
refuses 'INDEX.md: differs' "an index without the mutants of the day"
fresh; drop doc/TRACE.lock; refuses 'sink.mass is new' "a missing lock"
fresh; mkdir -p tests/fast fast/lanes; echo '# CODE 0123456789abcdef' >tests/fast/exhaustive.log
refuses 'other code than fast/lanes/exp.h' "a kept log of other code"
fresh; mkdir -p tests/fast fast/lanes; echo 'float r = 1;' >fast/lanes/exp.h
python3 "$tests/doc_pages.py" exhaustive . >tests/fast/exhaustive.log; accepts "a kept log of this code"
echo 'float r = 1; // one' >fast/lanes/exp.h; accepts "a comment changes no code"
echo 'float r = 2;' >fast/lanes/exp.h; refuses 'other code than' "a changed constant beside a kept log"

speed() {
    fresh; mkdir -p doc/book/data; printf '%s\n' '# work' 'decode | 12.1 | 14.8 | tok/s | 54.8 GB/s | 11.4' \
        'a query | 0.26 | 0.13 | ms | |' >doc/book/data/fast.txt
    printf '%s\n' '' '<!-- table fast -->' '' 'After.' >>doc/01-a.md; check --write --log log . >/dev/null
}
speed; accepts "a table of kept speeds"
grep -q '^| decode | 12.1 tok/s | 14.8 (54.8 GB/s) | 82 % | 11.4 |$' doc/01-a.md && grep -q '^| a query .* 50 % |' doc/01-a.md
report $? "its shares are computed"
speed; edit doc/01-a.md 's/12.1/13.1/'; refuses 'shown table differs' "a speed that was typed"
speed; edit doc/01-a.md 's/82 %/83 %/'; refuses 'shown table differs' "a share that was typed"
speed; edit doc/book/data/fast.txt 's/0.26/0.52/'; refuses 'shown table differs' "a table of older data"
speed; echo '| decode | 12.1 tok/s | 14.8 |' >>doc/01-a.md; refuses 'a speed that was typed' "a speed without its data"
changed() {
    fresh; mkdir -p doc/book/data; printf '%s\n' '# work | before | now | unit | share | of what' \
        'a product | 10 | 25 | GFLOP/s | 50 | the limit' 'a query | 18 | 12 | ms | |' >doc/book/data/new.txt
    printf '%s\n' '' '<!-- table new -->' '' 'After.' >>doc/01-a.md; check --write --log log . >/dev/null
}
changed; accepts "a table of what was and is"
grep -q '^| a product | 10 GFLOP/s | 25 GFLOP/s | 2.50 | 50 % of the limit |$' doc/01-a.md &&
    grep -q '^| a query | 18 ms | 12 ms | 1.50 | — |$' doc/01-a.md
report $? "its ratios are computed"
changed; edit doc/book/data/new.txt 's/25/24/'; refuses 'shown table differs' "a table of what was, of older data"
speed; drop doc/book/data/fast.txt; refuses 'fast.txt is missing' "a table without its data"

# Citations.
fresh; edit doc/01-a.md 's/See eq.sink.limit./See eq[sink.limt]/'; refuses 'cites sink.limt' "an unknown citation"
fresh; edit doc/01-a.md 's/`sink.limit`/`sink.limt`/'; refuses 'cites sink.limt' "an unknown id in backticks"
fresh; edit doc/01-a.md 's/#sink.limit/#sink.limt/'; refuses 'links to sink.limt' "a link to an unknown id"
fresh; edit doc/01-a.md 's/02-b.md#/03-b.md#/'; refuses 'dead link' "a dead link"
fresh; echo 'Look into `ref/gone.c`.' >"$work/tree/CONTRIBUTING.md"; refuses 'names ref/gone.c' "a file that is not there"
fresh; echo 'Look into `ref/a.c`, `tests/ROOM/test_STEM.c`.' >"$work/tree/CONTRIBUTING.md"; accepts "files that are there, and patterns"
entered() { # a bibliography with one entry, cited once in prose
    fresh
    printf '%s\n' '# Bibliography' '' '- <a id="higham-2002"></a>Higham' >doc/99-bibliography.md
    echo 'As in [Higham](99-bibliography.md#higham-2002).' >>doc/02-b.md
}
entered; accepts "a bibliography and its citation"
entered; edit doc/02-b.md 's/#higham-2002/#higham-2003/'; refuses 'cites higham-2003' "a citation without an entry"
entered; edit doc/02-b.md '/Higham/d'; refuses 'higham-2002 is cited nowhere' "an entry that nobody cites"
entered; echo '(Higham, *Accuracy*, 2002).' >>doc/02-b.md; refuses "names 'Accuracy'" "a work in plain words"
entered; edit doc/02-b.md '/Higham/d'; sed -i '1i // doc/99-bibliography.md#higham-2002' ref/a.c; accepts "a citation in a comment"
entered; sed -n 3p doc/99-bibliography.md >>doc/99-bibliography.md; refuses 'entered twice' "an entry made twice"
entered; sed -i '1i // SPEC section 3' ref/a.c; refuses 'cites SPEC' "a source that nobody can open"
entered; sed -i '1i // doc/03-c.md' ref/a.c; refuses 'names doc/03-c.md' "a chapter that there is not"

fresh; edit ref/a.c 's/double mass/double more/'
check --write --log "$work/tree/log" "$work/tree" >/dev/null
accepts "--write refreshes shown code, index and lock"
grep -q 'double more' "$work/tree/doc/01-a.md"; report $? "the Markdown shows the new code"
tap_done
