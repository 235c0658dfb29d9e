// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One rounding point at a time: a stage and its written-out formula run under policies that round
// at one point alone, for every point, at none, and at all; the bits must be equal.
#ifndef SINKPROOF_TESTS_POINTS_H
#define SINKPROOF_TESTS_POINTS_H

#include "tests/shared/reference.h"

#include <math.h>

enum { SIZE = 512, POLICIES = AT_POINTS + 2 };

static sinkproof_policy policy; // the policy of both sides
static uint64_t state;

// Policy k < POINT_COUNT rounds at point k alone; the next at none, the last at all.
static void set_policy(int k) {
    policy = policy_of("real-f64");
    for (int at = 0; at < AT_POINTS; at++)
        if (at == k || k == AT_POINTS + 1) policy.at[at].format = SINKPROOF_BF16;
}

static double at(sinkproof_point point, double x) {
    return policy.at[point].format == SINKPROOF_BF16 ? sinkproof_round(SINKPROOF_BF16, x) : x;
}

typedef void stage(double *stage_out, double *formula_out);

// The number of elements that differ over all policies, and the number of policies with results of
// their own.
static void check(const char *ids, stage *run, size_t points) {
    size_t wrong = 0, moved = 0;
    static double plain[SIZE], out[SIZE], formula[SIZE];
    for (int k = AT_POINTS; k >= 0; k--) { // first the policy without roundings
        set_policy(k);
        state = 41;
        memset(out, 0, sizeof out), memset(formula, 0, sizeof formula);
        run(out, formula);
        wrong += differing(SIZE, out, formula);
        if (k == AT_POINTS) memcpy(plain, out, sizeof out);
        moved += differing(SIZE, out, plain) > 0;
    }
    set_policy(POLICIES - 1);
    state = 41;
    memset(out, 0, sizeof out), memset(formula, 0, sizeof formula);
    run(out, formula);
    wrong += differing(SIZE, out, formula);
    ok(wrong == 0 && moved == points,
       "%s rounds at its %zu points of %d and nowhere else worst=%zu bound=0 (%zu points move it) "
       "seed=41",
       ids, points, (int)AT_POINTS, wrong, moved);
}

#endif
