// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures bounds of single operations: sums in many orders, exp, and 1 - alpha_s computed in three
// ways.
#include "audit/verify/verify_draw.h"

#include "proofs/bounds/bounds.h"
#include "proofs/bounds/one_minus.h"
#include "proofs/truth/exact_dot.h"
#include "ref/stages.h"

#include <math.h>

// bound.dot: float32 sums of products, ascending, descending, in blocks, with and without FMA;
// |err| <= gamma_n sum |a b|, u = 2^-24.
void verify_dot(verify_measure *result, uint64_t seed) {
    arf_t exact;
    arb_t ball;
    arf_init(exact);
    arb_init(ball);
    for (size_t n = 1; n <= 1024; n *= 2) {
        double a[1024], b[1024], size = 0;
        for (size_t k = 0; k < n; k++) {
            a[k] = (double)(float)between(&seed, -1, 1), b[k] = (double)(float)between(&seed, 0, 1);
            size += fabs(a[k] * b[k]);
        }
        sinkproof_exact_dot(exact, n, a, b);
        arb_set_arf(ball, exact);
        for (int way = 0; way < 4; way++) {
            float sum = 0, block = 0;
            for (size_t t = 0; t < n; t++) {
                size_t k = way & 1 ? n - 1 - t : t;
                float x = (float)a[k], y = (float)b[k];
                if (way & 2) { // blocks of 8, without FMA
                    block += x * y;
                    if (t % 8 == 7 || t == n - 1) sum += block, block = 0;
                } else {
                    sum = fmaf(x, y, sum);
                }
            }
            double least = size * (1 - (double)n * 0x1p-52); // `size` was summed in binary64
            verify_add_exact(result, sinkproof_truth_distance(ball, (double)sum),
                             sinkproof_gamma((double)n, 0x1p-24) * least);
        }
    }
    arf_clear(exact);
    arb_clear(ball);
}

// bound.dot-likely: float32 sums ascending, against the judge's likely set, which all of them
// together leave with probability below 1e-9 if roundings are independent and centred.
void verify_dot_likely(verify_measure *result, uint64_t seed) {
    enum { N = 2048, SUMS = 40 };
    sinkproof_policy policy = policy_named("f32");
    sinkproof_setting s = sinkproof_setting_for(&policy, SUMS, 1e-9);
    arf_t exact;
    arb_t ball;
    arf_init(exact);
    arb_init(ball);
    for (int round = 0; round < SUMS; round++) {
        static double a[N], b[N];
        static sinkproof_honest a_k[N], b_k[N];
        sinkproof_honest set;
        float sum = 0;
        for (size_t k = 0; k < N; k++) {
            a[k] = (double)(float)between(&seed, -1, 1), b[k] = (double)(float)between(&seed, 0, 1);
            a_k[k] = sinkproof_exact_set(a[k]), b_k[k] = sinkproof_exact_set(b[k]);
            sum += (float)a[k] * (float)b[k];
        }
        sinkproof_planes p = sinkproof_planes_new(a_k, 1, N, N);
        sinkproof_planes q = sinkproof_planes_new(b_k, 1, N, N);
        must(sinkproof_honest_products(&s, &p, &q, NULL, NULL, &set, 1));
        sinkproof_planes_free(&p);
        sinkproof_planes_free(&q);
        set.lo = set.likely_lo, set.hi = set.likely_hi;
        sinkproof_exact_dot(exact, N, a, b);
        arb_set_arf(ball, exact);
        double value = sum;
        verify_add_set_values(result, ball, &set, &value, 1);
    }
    arf_clear(exact);
    arb_clear(ball);
}

// bound.dot-exact: sums that the certificate calls exact are exact to the last bit, ascending and
// descending.
void verify_dot_exact(verify_measure *result, uint64_t seed) {
    arf_t exact;
    arf_init(exact);
    for (int round = 0; round < 200; round++) {
        enum { N = 300 };
        double a[N], b[N], value, forward = 0, backward = 0;
        size_t n = sinkproof_draw_from_to(&seed, 1, N);
        for (size_t k = 0; k < n; k++) { // 8 significant bits
            a[k] = ldexp((double)sinkproof_draw_from_to(&seed, 128, 255),
                         (int)sinkproof_draw_from_to(&seed, 0, 12));
            b[k] = ldexp((double)sinkproof_draw_from_to(&seed, 128, 255) - 191.5,
                         (int)sinkproof_draw_from_to(&seed, 0, 12));
        }
        if (!sinkproof_dot_certified(n, a, b, &value)) continue;
        for (size_t k = 0; k < n; k++)
            forward += a[k] * b[k], backward += a[n - 1 - k] * b[n - 1 - k];
        sinkproof_exact_dot_gmp(exact, n, a, b);
        const double ways[] = {value, forward, backward};
        for (size_t w = 0; w < 3; w++)
            verify_add_exact(result, arf_cmp_d(exact, ways[w]) == 0 ? 0 : INFINITY, 0);
    }
    arf_clear(exact);
}

// bound.exp: the exp that ref/ calls, in ulps, against the error that real-f64 declares.
void verify_exp(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("real-f64");
    arb_t y;
    arb_init(y);
    for (int k = 0; k < 4000; k++) {
        double x = k % 4 == 0 ? between(&seed, -1, 0) : between(&seed, -700, 0), e = exp(x);
        arb_set_d(y, x);
        arb_exp(y, y, 256);
        double bound = policy.ulp[SINKPROOF_EXP] * sinkproof_ulp(SINKPROOF_F64, e);
        verify_add_enclosed(result, sinkproof_truth_distance(y, e), bound);
    }
    arb_clear(y);
}

// bound.one-minus: n equal scores 0 and a sink logit b in float32, shifted by m = b. Every e^-b
// errs by eta, the error that f32 declares; their sum and the denominator by p; the sink's weight
// by e; LSE - b by the logarithm's declared error and one rounding.
void verify_one_minus(verify_measure *result, uint64_t seed) {
    const double u = 0x1p-24;
    sinkproof_policy policy = policy_named("f32");
    double eta = policy.ulp[SINKPROOF_EXP] * 2 * u;
    arb_t mass, e_b;
    balls_init(mass, e_b);
    for (int k = 0; k < 400; k++) {
        float b = (float)between(&seed, 0, 30), sum = 0, e = expf(-b), sink = 1;
        size_t n = sinkproof_draw_from_to(&seed, 1, 50);
        for (size_t j = 0; j < n; j++) sum += e;
        float den = sink + sum, log_n = logf((float)n), y = log_n - b;
        arb_set_d(e_b, (double)b);
        arb_exp(e_b, e_b, VERIFY_BITS);
        arb_add_ui(mass, e_b, n, VERIFY_BITS);
        arb_ui_div(mass, n, mass, VERIFY_BITS); // n / (n + e^b)
        arb_div_ui(e_b, e_b, n, VERIFY_BITS);   // the odds
        double kept = arf_get_d(arb_midref(mass), ARF_RND_DOWN);
        double odds = sinkproof_next_up(arf_get_d(arb_midref(e_b), ARF_RND_UP));
        double p = compound_up(eta, sinkproof_gamma((double)n, u));
        double off = compound_up(u, sinkproof_next_up(p / (1 - p))); // error of the quotient 1 / D
        double delta = policy.ulp[SINKPROOF_LOG] * sinkproof_ulp(SINKPROOF_F32, (double)log_n) +
                       0.5 * sinkproof_ulp(SINKPROOF_F32, (double)y);
        const struct {
            float value;
            double bound;
        } way[] = {{1 - sink / den, sinkproof_mass_subtracted(u, off, odds)},
                   {sum / den, sinkproof_mass_quotient(u, p, p)},
                   {1 / (1 + expf(-y)), sinkproof_mass_sigmoid(u, u, eta, delta)}};
        for (size_t w = 0; w < 3; w++)
            verify_add_enclosed(result, sinkproof_truth_distance(mass, (double)way[w].value),
                                sinkproof_mul_down(way[w].bound, kept));
    }
    balls_clear(mass, e_b);
}

// swiglu.gelu-fit: the activation of ref/ at u = 0 against GELU. It errs by the fit's largest
// difference and by its own distance from x sigmoid(1.702 x).
void verify_gelu_fit(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy = policy_named("real-f64");
    arb_ptr gate_up = _arb_vec_init(2);
    arb_t above, below, fit, gelu;
    balls_init(above, below, fit, gelu);
    sinkproof_truth_decimal(fit, 1.702, VERIFY_BITS);
    sinkproof_truth_gelu_fit(above, below, fit, 1, 64);
    arb_max(above, above, below, 64);
    double largest = sinkproof_truth_distance(above, 0);
    for (int k = 0; k < 2000; k++) {
        double g = k % 2 == 0 ? between(&seed, -3, 3) : between(&seed, -40, 7);
        double y = sinkproof_swiglu_one(&policy, (sinkproof_swiglu_numbers){1.702, 7, 1}, g, 0);
        arb_set_d(gate_up, g);
        sinkproof_truth_swiglu(fit, gate_up, 1, (sinkproof_swiglu_numbers){1.702, 7, 1},
                               VERIFY_BITS);
        sinkproof_truth_gelu(gelu, gate_up, VERIFY_BITS);
        verify_add_comparison(result, sinkproof_truth_distance(gelu, y),
                              largest + sinkproof_truth_distance(fit, y));
    }
    _arb_vec_clear(gate_up, 2);
    balls_clear(above, below, fit, gelu);
}
