// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the tests that write the bounds a second time in long double: the distance of an end
// from the stated one, in roundings of binary64, and random numbers that no sum rounds.
#ifndef SINKPROOF_TESTS_FORMULAS_H
#define SINKPROOF_TESTS_FORMULAS_H

#include "tests/shared/stated.h"

static inline real gamma_of(real n, real u) {
    return n * u < 1 ? n * u / (1 - n * u) : INFINITY;
}

static inline sinkproof_policy real_policy(const char *forms) {
    char text[80];
    snprintf(text, sizeof text, "real-f64,ftz=none,M8.form=sigmoid,A9.form=%s", forms);
    sinkproof_policy policy = policy_named(text);
    for (int f = 0; f < SINKPROOF_DIV; f++) policy.ulp[f] = 1 + f; // quotients are rounded
    return policy;
}

// A quotient as a policy declares it: by a division, or by a reciprocal and a product; 0: as
// rounded.
static inline real quotient_of(const sinkproof_policy *policy, real u) {
    real div = 2 * u * policy->ulp[SINKPROOF_DIV], rcp = 2 * u * policy->ulp[SINKPROOF_RCP];
    return div <= u && rcp <= u ? 0 : fmaxl(div, rcp + (1 + rcp) * u);
}

static inline sinkproof_setting setting(const sinkproof_policy *policy) {
    return (sinkproof_setting){.policy = policy, .u = 0x1p-24, .odds = 30};
}

// mid - 2^-a ... mid + 2^-b: ends that no sum rounds.
static inline sinkproof_honest draw_set(uint64_t *state, double mid) {
    double lo = ldexp(1, -10 - (int)draw_below(state, 8)),
           hi = ldexp(1, -10 - (int)draw_below(state, 8));
    sinkproof_honest x = {mid - lo, mid + hi, mid - lo / 4, mid + hi / 2, mid, 0, 0, 0, 0};
    x.var = lo * lo / 8, x.bias = hi / 64;
    return x;
}

static inline real lean_of(size_t n, const double *term, double sum) {
    error_lean lean = lean_of_rounded_sum(sum, 0x1p-24);
    for (size_t k = 0; k < n; k++) lean_add(&lean, term[k]);
    return lean_result(&lean);
}

#endif
