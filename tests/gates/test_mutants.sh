#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The mutants of a small tree: a test that looks kills them all, one that does not look is found
# out; the table is refreshed where the code or the tests changed, and only there.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
. tests/shared/again.sh
again_of "$PWD/tests/gates/mutants.py"
compiler=${CC:-gcc}

# mean.sum has a region in ref/, which test_sum reports.
fresh() {
    rm -rf "$work/tree"
    for folder in ref tests/gates tests/ref build/tests/ref build/tap/ref; do mkdir -p "$work/tree/$folder"; done
    cd "$work/tree" || exit 1
    cat >ref/sum.c <<'END'
double mean(int n, const double *x_j);
double mean(int n, const double *x_j) {
    double scale = n > 5 ? 3 : 3;
    //> mean.sum
    double sum = 0; // 1 + 2 < 3
    for (int j = 0; j < n; j++) sum += x_j[j] - 1;
    return sum / n;
    //< mean.sum
}
END
    cat >tests/looks.h <<'END'
#define LOOKS 1
END
    cat >tests/ref/test_sum.c <<'END'
#include <stdio.h>
#include "tests/looks.h"
double mean(int n, const double *x_j);
int main(void) {
    double x[3] = {2, 4, 9}, got = mean(2, x);
    int passed = !LOOKS || got == 2;
    printf("%sok 1 - mean.sum of two\n1..1\n", passed ? "" : "not ");
    return !passed;
}
END
    build
}

build() {
    for file in ref/sum tests/ref/test_sum; do
        mkdir -p "build/$(dirname $file)"
        $compiler -std=c11 -O1 -I. -c $file.c -o build/$file.o || exit 1
    done
    rm -f build/rooms.a
    ar rc build/rooms.a build/ref/sum.o
    $compiler build/tests/ref/test_sum.o build/rooms.a -o build/tests/ref/test_sum || exit 1
    build/tests/ref/test_sum >build/tap/ref/test_sum.tap
}

mutants() { # arguments
    again "CC=$compiler" CFLAGS='-std=c11 -O1 -Wall -Wextra -Werror -I.' LDLIBS=-lm \
        --least 5 --cap 100 --jobs 1 --spare 1 --log "$work/log" "$@" build >"$work/out"
}

accepts() { # text, arguments
    text=$1
    shift
    mutants "$@"
    status=$?
    [ $status = 0 ] || sed 's/^/# /' "$work/out"
    report $status "$text"
}

refuses() { # pattern, text, arguments
    pattern=$1
    text=$2
    shift 2
    mutants "$@"
    [ $? = 1 ] && grep -q -e "$pattern" "$work/out"
    status=$?
    [ $status = 0 ] || sed 's/^/# /' "$work/out"
    report $status "$text"
}

edit() { sed "$2" "$1" >"$work/edited" && cp "$work/edited" "$1"; }
has() { # pattern, text
    grep -q -e "$1" "$work/log"
    report $? "$2"
}
lacks() { # pattern, text
    ! grep -q -e "$1" "$work/log"
    report $? "$2"
}

fresh
accepts "a test that looks kills every mutant"
has ':sign | .*x_j\[j\] \[- -> +\] 1; | test_sum: not ok' "a sign is flipped"
has ':compare | .*j \[< -> <=\] n' "a comparison is moved"
has ':drop | .*\[- 1 -> \];' "a term is dropped"
has ':muldiv | return sum \[/ -> \*\] n;' "a quotient becomes a product"
has ':off-by-one | .*\[0 -> 1\]; j < n' "a loop begins one later"
has ':remove | .*\[sum += .*; -> {}\]' "a statement is removed"
lacks '// .*\[' "a comment is left alone"
lacks '> 5' "what lies outside the region is left alone"
grep -q '^region mean.sum ref/sum.c ' tests/gates/mutants.lock
report $? "the table has the region"
cp tests/gates/mutants.lock "$work/first"
accepts "the table is current" --changed --cap 1 --least 1
[ ! -s "$work/log" ] || ! grep -q . "$work/log"
cmp -s tests/gates/mutants.lock "$work/first"
report $? "nothing changed, nothing ran"
printf 'ok 1 - mean.sum once more [avx512: on hardware]\n1..1\n' >build/tap/ref/test_set.tap
accepts "what some processors alone have run leaves the table current" --changed --cap 1 --least 1
cmp -s tests/gates/mutants.lock "$work/first"
report $? "and as it was"
printf 'ok 1 - mean.sum once more [portable: on hardware]\n1..1\n' >build/tap/ref/test_set.tap
accepts "what all of them run" --changed --cap 1 --least 1
grep -q '^test test_set ' tests/gates/mutants.lock
report $? "is in the table"
rm build/tap/ref/test_set.tap

edit ref/sum.c 's/sum \/ n/(sum + 0 * x_j[0]) \/ n/'
build
refuses 'was stale' "changed code makes the table stale" --changed --cap 1 --least 1
edit ref/sum.c 's/(sum + 0 \* x_j\[0\])/sum/'
build
refuses 'was stale' "so does changing it back, since the table was refreshed" --changed --cap 1 --least 1
accepts "the refreshed table is current" --changed --cap 1 --least 1
edit ref/sum.c 's/scale/scaled/'
accepts "a change outside the region leaves the table current" --changed --cap 1 --least 1
printf '\n// more\n' >>tests/looks.h
refuses 'was stale' "a changed header of the test makes the table stale" --changed --cap 1 --least 1

# A sample of what changed: it is asked, and the table, stale or not, is left as it is.
fresh
accepts "every mutant, for a table" --least 1
cp tests/gates/mutants.lock "$work/first"
edit ref/sum.c 's/x_j\[j\] - 1/x_j[j] - 1.0/'
build
accepts "a stale table is no fault of a sample" --changed --sample 4
[ -s "$work/log" ] && grep -q 'a sample of 4 of [0-9]* mutants .* 0 survived' "$work/out" &&
    cmp -s tests/gates/mutants.lock "$work/first"
report $? "of which four are made, and the table stays as it is"
cp "$work/log" "$work/four"
accepts "a sample again" --changed --sample 4
cmp -s "$work/log" "$work/four"
report $? "is the same one"
edit tests/looks.h 's/1/0/'
build
refuses 'survived without a reason' "a sample of what no test notices" --changed --sample 4
awk -F ' \\| ' '/ \| survived$/ { print $1 " | " $2 " | survives: nothing looks" }' "$work/log" >tests/gates/mutants.reasons
accepts "is no fault where a reason is given" --changed --sample 4

fresh
edit tests/looks.h 's/1/0/'
build
refuses 'survived without a reason' "a test that does not look is found out"
grep -q 'mean.sum: no mutant was killed' "$work/out"
report $? "an id without a killed mutant is named"
grep -q 'at least 95 % are wanted' "$work/out"
report $? "and too small a share"

fresh
edit tests/ref/test_sum.c 's/== 2/>= 0/'
build
refuses 'survived without a reason' "a test that looks at little lets some survive"
awk -F ' \\| ' '/ \| survived$/ { print $1 " | " $2 " | equivalent: nothing to see" }' "$work/log" \
    >tests/gates/mutants.reasons
accepts "equivalent mutants with a reason are not counted" --least 1
edit tests/gates/mutants.reasons 's/ -> / => /'
refuses 'survived without a reason' "a reason must quote its mutant as it is"
edit tests/gates/mutants.reasons 's/equivalent: .*/because/'
refuses 'expected FILE:ID:OPERATOR' "a malformed reason is refused"

fresh
printf 'ref/sum.c:mean.sum:99:sign | nothing | survives: so it does\n' >tests/gates/mutants.reasons
refuses 'is no survivor' "a reason without its survivor is refused" --cap 1 --least 1

printf 'ref/sum.c:mean.sum:sign | nothing | equivalent: so it does\n' >tests/gates/mutants.reasons
refuses 'is no survivor' "and one of an equivalent mutant that there is not" --cap 1 --least 1

# What waits for slow tests, where a reason says that nothing could tell.
fresh
accepts "every mutant of a region" --least 1
awk -F ' \\| ' '{ print $1 " | " $2 " | equivalent: so it is said" }' "$work/log" >"$work/all"
edit tests/gates/mutants.lock '/^region mean.sum/{h;s/.* //;y/A/?/;x;s/[^ ]*$//;G;s/\n//;}'
refuses 'was stale' "a drawn one that waits is made" --changed --cap 1 --least 1
waiting=$(($(wc -l <"$work/all") - 1))
grep -q "1 killed of 1 made .* ($waiting more wait .* 0 equivalent ones not counted" "$work/out"
report $? "the others are counted as waiting"
made=$(sed 's/ | test_sum.*//' "$work/log")
grep -v -F "$made" "$work/all" >tests/gates/mutants.reasons
accepts "with a reason" --changed --cap 1 --least 1
grep -q "1 killed of 1 made of 1 possible (100.0 % .* $waiting equivalent ones not counted ($waiting of them not asked" \
    "$work/out"
report $? "they are counted as equivalent, and as not asked"
refuses 'is no survivor' "all tests are asked of them, and a reason that is false is refused" --all --least 1

# A helper outside of the region, which the region calls; and a function that it does not.
fresh
edit ref/sum.c 's/^double mean(int n, const double \*x_j) {/static double less(double x) {\n    return x - 1;\n}\ndouble more(double x);\ndouble more(double x) {\n    return x + 1;\n}\n&/; s/x_j\[j\] - 1/less(x_j[j])/'
build
accepts "helpers are left alone" --least 1
! grep -q 'region less()' tests/gates/mutants.lock || ! grep -q 'less():' "$work/log"
report $? "unless all are asked for"
accepts "every mutant is made, of the helpers too" --all --least 1
has 'ref/sum.c:less():.*x \[- -> +\] 1' "a helper's sign is flipped"
lacks 'ref/sum.c:more()' "a function that no region reaches is none"
grep -q '^region less() .* [A-Z=-]*$' tests/gates/mutants.lock && ! grep -q '^region .*\.$' tests/gates/mutants.lock
report $? "the table knows what became of each"
cp tests/gates/mutants.lock "$work/first"
accepts "the next run has nothing to do" --all --least 1
[ ! -s "$work/log" ] && cmp -s tests/gates/mutants.lock "$work/first"
report $? "and makes none"
edit tests/gates/mutants.lock '/^region mean.sum/s/A/./'
accepts "a run that was stopped goes on" --all --least 1
[ "$(wc -l <"$work/log")" = 1 ] && cmp -s tests/gates/mutants.lock "$work/first"
report $? "with the one that was not made"
rm tests/gates/mutants.lock
# The test that notices says who started it, and sleeps.
edit tests/ref/test_sum.c 's/^    printf/    if (!passed) dprintf(creat("asleep", 0600), "%d", getppid()), sleep(60);\n&/; s/^#include <stdio.h>/#define _GNU_SOURCE\n#include <fcntl.h>\n&\n#include <unistd.h>/'
build
mutants --all --least 1 & run=$!
for _ in $(seq 300); do [ -s asleep ] && break || sleep 0.1; done
kill -TERM "$(cat asleep)"
! wait $run && grep -q '^region mean.sum .* [.=-]*$' tests/gates/mutants.lock
report $? "a test that was cut off by the end of a run has killed nothing"
edit tests/ref/test_sum.c '/sleep/d; /unistd/d; /fcntl/d; /_GNU_SOURCE/d'
build
rm tests/gates/mutants.lock
accepts "without a quick test, every mutant is made too" --all --least 1 --quick 0
cmp -s tests/gates/mutants.lock "$work/first" && grep -q waits "$work/log"
report $? "after it has waited for the slow ones"
edit tests/gates/mutants.lock '/^region mean.sum/s/A/?/'
accepts "what waits for slow tests is made by the next run" --all --least 1
[ "$(wc -l <"$work/log")" = 1 ] && cmp -s tests/gates/mutants.lock "$work/first"
report $? "and nothing else"
edit tests/ref/test_sum.c 's/int main(void) {/#include "tests\/shared\/only.h"\nint main(int argc, char **argv) {\n    if (argc > 1) return puts(argv[1]) < 0;/'
mkdir -p tests/shared
echo '#define ONLY 1' >tests/shared/only.h
build
accepts "a test that passes when it is asked of one id is asked in whole" --all --least 1
grep -q waits "$work/log" && ! grep -q survived "$work/log"
report $? "and kills what waited for that"
edit tests/ref/test_sum.c 's/return puts(argv\[1\]) < 0/return puts(argv[1]) < 0 || mean(2, (double[]){2, 4}) != 2/'
build
accepts "a test that looks when it is asked of one id" --all --least 1
grep -q 'exit 1' "$work/log"
report $? "kills by what it was asked"
edit ref/sum.c 's/return x - 1/return x - 1.0/'
build
accepts "a changed helper" --all --least 1
has 'less():' "is made again"
lacks 'mean.sum:' "and its callers are not"

# Of two tests that look, which have one name in two rooms, the one that killed before it changed is asked first, though it is the slower one.
fresh
mkdir -p tests/proofs build/tests/proofs build/tap/proofs
sed 's/of two/of more/' tests/ref/test_sum.c >tests/proofs/test_sum.c
edit tests/ref/test_sum.c 's/int passed/for (volatile long i = 0; i < 30000000; i++) {}\n    int passed/'
build
$compiler -std=c11 -O1 -I. tests/proofs/test_sum.c -c -o build/tests/proofs/test_sum.o &&
    $compiler build/tests/proofs/test_sum.o build/rooms.a -o build/tests/proofs/test_sum && build/tests/proofs/test_sum >build/tap/proofs/test_sum.tap
accepts "a region with two tests" --all --least 1
edit tests/gates/mutants.lock '/^region mean.sum/{h;s/.* //;y/A/B/;x;s/[^ ]*$//;G;s/\n//;}'
printf '\n// more\n' >>tests/ref/test_sum.c
accepts "what the changed one killed is made again" --all --least 1
has '| ref/test_sum: not ok' "by that one"
lacks '| proofs/test_sum:' "and by no other"

# A helper that another id's region stands beside: that id's tests may tell as well.
fresh
edit ref/sum.c 's/^double mean(int n, const double \*x_j) {/static double less(double x) {\n    return x - 1;\n}\n&/; s/x_j\[j\] - 1/less(x_j[j])/'
printf '//> mean.none\ndouble none(void);\ndouble none(void) {\n    return 1 - 1;\n}\n//< mean.none\n' >>ref/sum.c
build
echo 'ok 1 - mean.none is zero' >build/tap/ref/test_none.tap
accepts "a file with regions of two ids" --least 1 --only mean.sum
grep -q '^region less() .* test_none,test_sum ' tests/gates/mutants.lock
report $? "a helper has the tests of both"

fresh
edit build/tap/ref/test_sum.tap 's/mean.sum/mean.other/'
refuses 'no test reported it' "an id that no test reports is refused"
fresh
rm -r build/tap
refuses 'run make test first' "a missing log is refused"
fresh
edit tests/ref/test_sum.c 's/== 2/== 3/'
build
edit build/tap/ref/test_sum.tap 's/^not ok/ok/'
refuses 'fails with nothing mutated' "a test that fails anyway is refused"
fresh
edit ref/sum.c 's/int j = 0; j < n; j++/volatile int j = 0; j < n; j = j + 1/'
build
accepts "a loop without an end is stopped" --least 1
has 'exit -9\|exit -24\|exit 137\|exit 152' "and counts as killed"
fresh
refuses 'at least 500 are wanted' "too few mutants are refused" --cap 1 --least 500
tap_done
