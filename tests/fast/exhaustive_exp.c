// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libm's exponential and the lanes' at every float32 argument where it neither over- nor
// underflows, the lanes' where its result is subnormal and beyond too: minutes, and so not in `make
// test` but in `make exhaustive`, which keeps what it prints for the book.
#include "fast/lanes/exp.h"
#include "tests/shared/exp_floats.h"
#include "tests/shared/tap.h"

#include <gnu/libc-version.h>

static void say(const char *what, const char *unit, exp_worst worst) {
    printf("# output exhaustive-exp| %s: upper bound %.9f %s, at %a, %zu above 2^-60\n", what,
           worst.ulp + EXP_REFERENCE, unit, worst.at, worst.floats);
    fflush(stdout);
}

static void judge(const char *what, const char *unit, exp_worst worst, double bound) {
    ok(worst.ulp + EXP_REFERENCE <= bound,
       "bound.exp %s at every float: upper bound worst=%.9f bound=%.6g %s", what,
       worst.ulp + EXP_REFERENCE, bound, unit);
}

int main(void) {
    printf("# output exhaustive-exp| glibc %s, every float32 argument whose result neither over- "
           "nor underflows\n",
           gnu_get_libc_version());
    exp_worst f64 = exp_floats(exp_binary64, 1);
    say("exp,  binary64", "ulp", f64);
    exp_worst f32 = exp_floats(exp_binary32(expf), 1);
    say("expf, binary32", "ulp", f32);
    exp_worst lanes = exp_floats(exp_binary32(sinkproof_lanes_exp), 1);
    say("lanes, binary32", "ulp", lanes);
    exp_worst below = exp_floats(exp_subnormal(sinkproof_lanes_exp), 1);
    say("lanes, where the result is subnormal", "units of 2^-149", below);
    bool one = exp_of_tiny_is_one(1), far = exp_of_far_is_an_end(sinkproof_lanes_exp, 1);
    printf("# output exhaustive-exp| all are 1 at all others between: %s\n", one ? "yes" : "no");
    printf("# output exhaustive-exp| lanes beyond both ends: infinity, 0 and NaN: %s\n",
           far ? "yes" : "no");
    judge("libm exp", "ulp", f64, 4);
    judge("libm expf", "ulp", f32, 2);
    judge("lanes", "ulp", lanes, SINKPROOF_EXP_ULP);
    judge("lanes, subnormal", "units of 2^-149", below, EXP_ULP_SUBNORMAL);
    ok(one, "bound.exp of tiny numbers is 1");
    ok(far, "bound.exp lanes beyond both ends at every float");
    return tap_done();
}
