// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the tests share that write formulas of the book out a second time in long double: how far a
// value is from the stated one, in roundings of its evaluation, and draws that no sum rounds.
#ifndef SINKPROOF_TESTS_STATED_H
#define SINKPROOF_TESTS_STATED_H

#include "tests/bounds_engine.h"

typedef long double real;

typedef struct distance {
    size_t compared;
    double worst; // |found - stated| / (gamma_K scale)
} distance;

// gamma_K at 2^-53, and 2^-9 of it for the long doubles.
MAYBE_UNUSED static real gamma_k(real k) {
    return k * 0x1p-53L / (1 - k * 0x1p-53L) * (1 + 0x1p-9L);
}

MAYBE_UNUSED static void near(distance *d, double found, real stated, real scale, real k) {
    real apart = fabsl(found - stated), room = gamma_k(k) * scale;
    double share = apart == 0 ? 0 : (double)(apart / room);
    d->compared++;
    if (isinf(found) && (double)stated == found) return;
    if (!(share <= d->worst) && d->worst == d->worst) d->worst = share;
}

MAYBE_UNUSED static real gamma_of(real n, real u) {
    return n * u < 1 ? n * u / (1 - n * u) : INFINITY;
}

MAYBE_UNUSED static sinkproof_policy real_policy(const char *forms) {
    char text[80];
    snprintf(text, sizeof text, "real-f64,ftz=none,M8.form=sigmoid,A9.form=%s", forms);
    sinkproof_policy policy = policy_named(text);
    for (int f = 0; f < SINKPROOF_FUNCTION_COUNT; f++) policy.ulp[f] = 1 + f;
    return policy;
}

MAYBE_UNUSED static sinkproof_setting setting(const sinkproof_policy *policy) {
    return (sinkproof_setting){policy, 0x1p-24, 30, false};
}

// mid - 2^-a ... mid + 2^-b: ends that no sum rounds.
MAYBE_UNUSED static sinkproof_honest draw_set(uint64_t *state, double mid) {
    double lo = ldexp(1, -10 - (int)draw_below(state, 8)),
           hi = ldexp(1, -10 - (int)draw_below(state, 8));
    sinkproof_honest x = {mid - lo, mid + hi, mid - lo / 4, mid + hi / 2, mid, 0, 0, 0, 0};
    x.var = lo * lo / 8, x.bias = hi / 64;
    return x;
}

MAYBE_UNUSED static double draw_dyadic(uint64_t *state) { // a multiple of 1/8 in [-4, 4], not 0
    double x = (double)draw_below(state, 32) / 8 + 0.125;
    return draw(state) % 2 ? -x : x;
}

MAYBE_UNUSED static real lean_of(size_t n, const double *term, double sum) {
    sinkproof_lean lean = sinkproof_lean_of_sum(sum, 0x1p-24);
    for (size_t k = 0; k < n; k++) sinkproof_lean_add(&lean, term[k]);
    return sinkproof_lean_result(&lean);
}

MAYBE_UNUSED static void report(const distance *d, const char *id, const char *what,
                                uint64_t seed) {
    ok(d->compared > 0 && d->worst <= 1, "%s %s as stated worst=%.3g bound=1 values=%zu seed=%llu",
       id, what, d->worst, d->compared, (unsigned long long)seed);
}

#endif
