// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// libm's exponential at one of 512 of all float32 arguments, under FEW=1 of every fourth binade;
// `make exhaustive` asks all of them.
#include "proofs/bounds/worst.h"
#include "tests/shared/exp_floats.h"
#include "tests/shared/tap.h"

// The reference against Arb, entry by entry.
static double reference_error(void) {
    double worst = 0;
    for (int e = -20; e <= 9; e++)
        for (int k = 0; k < 40; k++) {
            int h = EXP_SPLIT / 2 + (k * 997) % (EXP_SPLIT / 2), l = (k * 2731) % EXP_SPLIT;
            double x = ldexp(h, e - 11) + ldexp(l, e - 23);
            if (x > 709) continue;
            exp_pair p = exp_product(exp_entry(h, e - 11, 0), exp_entry(l, e - 23, 0));
            exp_pair q = exp_entry(x, 0, 0);
            worst = sinkproof_keep_worst(worst, fabs((p.hi - q.hi) + (p.lo - q.lo)) / q.hi);
        }
    return worst;
}

enum { STRIDE = 512 };

static exp_worst one_of_many(exp_subject s) {
    exp_worst worst = {0};
    for (int e = 9; e >= -60; e--)
        for (int sign = -1; sign <= 1; sign += 2) exp_binade(e, sign, s, STRIDE, &worst);
    return worst;
}

int main(void) {
    const size_t least = 1000000;
    double apart = reference_error();
    ok(apart < 0x1p-100, "bound.exp reference against Arb worst=%.3g bound=%.3g", apart, 0x1p-100);
    exp_worst f64 = one_of_many(exp_binary64);
    exp_worst f32 = one_of_many(exp_binary32(expf));
    ok(f64.ulp <= 4 && f64.floats > least,
       "bound.exp libm exp at one float in %d: lower bound found by search, worst=%.6f bound=4 ulp "
       "at %a of %zu",
       STRIDE, f64.ulp, f64.at, f64.floats);
    ok(f32.ulp <= 2 && f32.floats > least,
       "bound.exp libm expf at one float in %d: lower bound found by search, worst=%.6f bound=2 "
       "ulp at %a of %zu",
       STRIDE, f32.ulp, f32.at, f32.floats);
    ok(exp_of_tiny_is_one(4093), "bound.exp of tiny numbers is 1");
    return tap_done();
}
