// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts' activation: edges of both clamps, against long double within a derived bound, and
// the constant 1.702 in each policy.
#include "tests/shared/reference.h"

#include <math.h>

static const double LIMIT = 7, ALPHA = 1.702;
static const sinkproof_swiglu_numbers numbers = {1.702, 7, 1};

static long double exact(double gate, double up) {
    long double g = gate > LIMIT ? LIMIT : gate;
    long double u = up > LIMIT ? LIMIT : up < -LIMIT ? -LIMIT : up;
    return g / (1 + expl(-ALPHA * g)) * (u + 1);
}

// With x = alpha g: the product's rounding moves e^-x by |x| u, exp adds one ulp (2 u), then five
// operations: |x| + 7 roundings. Where e^-x overflows the result is zero and the bound absolute.
static void test_bound(void) {
    sinkproof_policy policy = policy_of("real-f64");
    const double gates[] = {-100, -7.5, -7, -1, 0, 1e-3, 1, 7, nextafter(7, 8), 100};
    const double ups[] = {-100, -7, -1, 0, 0.5, 7, nextafter(7, 8), 100};
    double worst = 0;
    uint64_t state = 5;
    for (int i = 0; i < 20000; i++) {
        bool edge = i < 80;
        double g = edge ? gates[i % 10] : next_real(&state, 12);
        double u = edge ? ups[i / 10] : next_real(&state, 9);
        long double truth = exact(g, u);
        double error = (double)fabsl(sinkproof_swiglu_one(&policy, numbers, g, u) - truth);
        double bound = gamma53(fabs(ALPHA * (g > LIMIT ? LIMIT : g)) + 7) * (double)fabsl(truth);
        keep_worst(&worst, error == 0 && bound == 0 ? 0 : error / bound);
    }
    ok(worst <= 1, "swiglu.clamped ref worst=%.3g bound=1 seed=5", worst);
}

static void test_clamps(void) {
    sinkproof_policy p = policy_of("real-f64");
    double at = sinkproof_swiglu_one(&p, numbers, 7, 3);
    ok(sinkproof_swiglu_one(&p, numbers, nextafter(7, 8), 3) == at &&
           sinkproof_swiglu_one(&p, numbers, 1e300, 3) == at,
       "swiglu.clamped gate above the limit");
    ok(sinkproof_swiglu_one(&p, numbers, nextafter(7, 0), 3) < at,
       "swiglu.clamped gate below the limit is free");
    ok(sinkproof_swiglu_one(&p, numbers, -8, 3) != sinkproof_swiglu_one(&p, numbers, -7, 3),
       "swiglu.clamped gate is not clamped from below");
    ok(sinkproof_swiglu_one(&p, numbers, 2, 9) == sinkproof_swiglu_one(&p, numbers, 2, 7) &&
           sinkproof_swiglu_one(&p, numbers, 2, -9) == sinkproof_swiglu_one(&p, numbers, 2, -7),
       "swiglu.clamped up on both sides");
    ok(sinkproof_swiglu_one(&p, numbers, -1e300, 3) == 0,
       "swiglu.clamped a gate whose exponential overflows gives zero, not NaN");
    ok(isnan(sinkproof_swiglu_one(&p, numbers, NAN, 3)) &&
           isnan(sinkproof_swiglu_one(&p, numbers, 3, NAN)),
       "swiglu.clamped no clamp hides a NaN");
}

// The reference under bf16 is the formula with each operation rounded, and 1.703125 is another
// model.
static void test_policies(void) {
    sinkproof_policy p = policy_of("openai-bf16"), q = policy_of("openai-bf16,M8.alpha=bf16");
    uint64_t state = 9;
    size_t wrong = 0, apart = 0;
    for (int i = 0; i < 5000; i++) {
        double g = sinkproof_round(SINKPROOF_BF16, next_real(&state, 7));
        double u = sinkproof_round(SINKPROOF_BF16, next_real(&state, 7));
        double scaled = sinkproof_round(SINKPROOF_BF16, (double)1.702f * g);
        double sigmoid = sinkproof_round(SINKPROOF_BF16, 1 / (1 + exp(-scaled)));
        double swish = sinkproof_round(SINKPROOF_BF16, g * sigmoid);
        double z = sinkproof_round(SINKPROOF_BF16, swish * sinkproof_round(SINKPROOF_BF16, u + 1));
        wrong += sinkproof_swiglu_one(&p, numbers, g, u) != z;
        apart += sinkproof_swiglu_one(&q, numbers, g, u) != z;
    }
    ok(wrong == 0 && apart > 0,
       "swiglu.clamped openai-bf16 worst=%zu bound=0 (alpha=bf16 moves %zu of 5000) seed=9", wrong,
       apart);
}

// Even columns are the gate, odd ones up.
static void test_interleaved(void) {
    sinkproof_policy p = policy_of("real-f64");
    sinkproof_config config;
    sinkproof_config_named("tiny", &config);
    double row[2 * 128], act[128];
    size_t wrong = 0;
    uint64_t state = 13;
    fill_reals(&state, 9, 2 * config.inter, row);
    sinkproof_swiglu(&p, config.swiglu, config.inter, row, act);
    for (size_t f = 0; f < config.inter; f++)
        wrong += act[f] != sinkproof_swiglu_one(&p, numbers, row[2 * f], row[2 * f + 1]);
    ok(wrong == 0, "swiglu.clamped interleaved gate and up worst=%zu bound=0", wrong);
}

int main(void) {
    test_bound();
    test_clamps();
    test_policies();
    test_interleaved();
    return tap_done();
}
