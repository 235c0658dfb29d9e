#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
#
# The command's second start on a processor that OpenBLAS does not know. A preloaded library says what OpenBLAS
# chose: Prescott, unless the environment names a core, as on processors newer than the library.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shared/tap.sh
unset OPENBLAS_CORETYPE SINKPROOF_BLAS_OWN SINKPROOF_BLAS_WRONG
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"

cat >"$work/core.c" <<'END'
#include <stdlib.h>
#include <string.h>
static const char *core(void) {
    const char *asked = getenv("OPENBLAS_CORETYPE"), *refused = getenv("TEST_REFUSED");
    return asked == NULL || (refused != NULL && strcmp(asked, refused) == 0) ? "Prescott" : asked;
}
char *openblas_get_corename(void) { return (char *)core(); }
#ifdef WRONG
void cblas_dgemm(int o, int s, int t, int m, int r, int k, double a, const double *x, int lx, const double *y, int ly,
                 double b, double *c, int stride) {
    (void)o, (void)s, (void)t, (void)a, (void)b;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < r; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += x[i * lx + l] * y[j * ly + l];
            c[i * stride + j] = sum + (strcmp(core(), "Prescott") != 0 && m > 16 && i == m - 1);
        }
}
#endif
END
for how in "" -DWRONG; do
    ${CC:-cc} -shared -fPIC $how -o "$work/core$how.so" "$work/core.c" ||
        { report 1 "a library is made to preload"; tap_done; }
done
said() { # the library preloaded; then the words of the line
    LD_PRELOAD="$work/$1" "$sinkproof" info --cpu >"$work/out" 2>"$work/err"
    found=$(sed -n 's/^OpenBLAS    //p' "$work/out")
}

wider=SkylakeX
case $("$sinkproof" info --cpu) in
*"avx512      yes"*) ;;
*"avx2        yes"*) wider=Haswell ;;
*) wider= ;;
esac
if [ -z "$wider" ]; then
    said core.so
    [ "$found" = "core Prescott, the library's own" ]
    report $? "no wider set: nothing is started again: $found"
else
    said core.so
    [ "$found" = "core $wider, wider than the library's own choice, Prescott" ]
    report $? "a core of the widest set: $found"
    TEST_REFUSED=$wider said core.so
    [ "$found" = "core Prescott, the library's own: it refused a wider one" ]
    report $? "a library without that core: $found"
    said core-DWRONG.so
    [ "$found" = "core Prescott, the library's own: products of a wider one are not exact here" ]
    report $? "products that are wrong: $found"
    OPENBLAS_CORETYPE=Prescott said core.so
    [ "$found" = "core Prescott, OPENBLAS_CORETYPE names it" ]
    report $? "the user's choice stays: $found"
    LD_PRELOAD="$work/core.so" exits 0 "info --cpu --json -" info --cpu --json -
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["results"][0]["openblas"])' "$work/out" >"$work/said"
    grep -q "'core': '$wider'" "$work/said" && grep -q "'own': 'Prescott'" "$work/said"
    report $? "JSON: $(cat "$work/said")"
    LD_PRELOAD="$work/core.so" exits 2 "its usage" judge --no-such-option
    grep -q "judge: unrecognized option '--no-such-option'" "$work/err"
    report $? "arguments and exit code are those of one start"
fi
tap_done
