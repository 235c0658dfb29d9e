// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Bounds of single operations, measured: sums in many orders, exp, and 1 - alpha_s formed in two
// ways. And the table that says which measurement belongs to which statement.
#include "audit/verify.h"

#include "proofs/bounds/honest.h"
#include "proofs/truth/exact_dot.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t draw(uint64_t *state) { // splitmix64
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static double between(uint64_t *state, double low, double high) {
    return low + (high - low) * ((double)(draw(state) >> 11) * 0x1p-53);
}

// bound.dot: float32 sums of products, ascending, descending, in blocks, with and without FMA;
// |err| <= gamma_n sum |a b|, u = 2^-24.
void sinkproof_verify_dot(verify_measure *result, uint64_t seed) {
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
            double slack = 1 - 0x1p-40; // of `size`, summed in binary64
            sinkproof_verify_put(result, sinkproof_truth_distance(ball, (double)sum),
                                 sinkproof_gamma((double)n, 0x1p-24) * size * slack);
        }
    }
    arf_clear(exact);
    arb_clear(ball);
}

// bound.dot-likely: float32 sums ascending, lambda sqrt(n) u sum |a b| with lambda = sqrt(2 ln(2 /
// p)), exceeded with probability below p = 1e-9 each if roundings are independent and centred.
void sinkproof_verify_dot_likely(verify_measure *result, uint64_t seed) {
    const double lambda = sqrt(2 * log(2 / 1e-9));
    arf_t exact;
    arb_t ball;
    arf_init(exact);
    arb_init(ball);
    for (int round = 0; round < 40; round++) {
        enum { N = 2048 };
        double a[N], b[N], size = 0;
        float sum = 0;
        for (size_t k = 0; k < N; k++) {
            a[k] = (double)(float)between(&seed, -1, 1), b[k] = (double)(float)between(&seed, 0, 1);
            size += fabs(a[k] * b[k]);
            sum += (float)a[k] * (float)b[k];
        }
        sinkproof_exact_dot(exact, N, a, b);
        arb_set_arf(ball, exact);
        sinkproof_verify_put(result, sinkproof_truth_distance(ball, (double)sum),
                             lambda * sqrt(N) * 0x1p-24 * size * (1 - 0x1p-40));
    }
    arf_clear(exact);
    arb_clear(ball);
}

// bound.exp: the exp that ref/ calls, in units of the last place, against what real-f64 declares.
void sinkproof_verify_exp(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy;
    sinkproof_error error;
    if (!sinkproof_policy_parse("real-f64", &policy, &error)) abort();
    arb_t y;
    arb_init(y);
    for (int k = 0; k < 4000; k++) {
        double x = k % 4 == 0 ? between(&seed, -1, 0) : between(&seed, -700, 0), e = exp(x);
        arb_set_d(y, x);
        arb_exp(y, y, 256);
        double bound = policy.ulp[SINKPROOF_EXP] * sinkproof_ulp(SINKPROOF_F64, e);
        sinkproof_verify_put(result, sinkproof_truth_distance(y, e), bound);
    }
    arb_clear(y);
}

// bound.one-minus: over n equal scores 0 and a growing sink logit b, shifted by m = b. Every e^-b
// errs by 2 u, their sum s by (n + 1) u of itself. As s / (1 + s) the error of s meets itself in
// the denominator: (n + 1) u, an addition and a quotient, so (n + 3) u relative, whatever b. As 1 -
// 1 / (1 + s): the same and two roundings of alpha_s, 3 u alpha_s absolute, which is 3 u alpha_s /
// (1 - alpha_s) relative: log2(1 / (1 - alpha_s)) bits are lost.
void sinkproof_verify_one_minus(verify_measure *result, uint64_t seed) {
    arb_t truth, e_b, t;
    arb_init(truth);
    arb_init(e_b);
    arb_init(t);
    for (int k = 0; k < 400; k++) {
        double b = between(&seed, 0, 30), n = (double)(1 + draw(&seed) % 50), u = 0x1p-53, sum = 0;
        double e_sink = exp(0.0), e = exp(0 - b); // shifted by m = b
        for (int j = 0; j < (int)n; j++) sum += e;
        double den = e_sink + sum, direct = sum / den, subtracted = 1 - e_sink / den;
        arb_set_d(e_b, b);
        arb_exp(e_b, e_b, 256);
        arb_set_d(t, n);
        arb_add(e_b, e_b, t, 256);
        arb_div(truth, t, e_b, 256); // n / (n + e^b)
        double kept = arf_get_d(arb_midref(truth), ARF_RND_DOWN);
        double units = (n + 3.01) * u;
        sinkproof_verify_put(result, sinkproof_truth_distance(truth, direct), units * kept);
        sinkproof_verify_put(result, sinkproof_truth_distance(truth, subtracted),
                             units * kept + 3 * u * (1 - kept));
    }
    arb_clear(truth);
    arb_clear(e_b);
    arb_clear(t);
}

// swiglu.gelu-fit: the activation of ref/ at u = 0 against GELU. It errs by the fit's own largest
// difference and by its distance from x sigmoid(1.702 x).
void sinkproof_verify_gelu_fit(verify_measure *result, uint64_t seed) {
    sinkproof_policy policy;
    if (!sinkproof_policy_known("real-f64", &policy)) abort();
    arb_ptr gate_up = _arb_vec_init(2);
    arb_t above, below, fit, gelu;
    arb_init(above);
    arb_init(below);
    arb_init(fit);
    arb_init(gelu);
    sinkproof_truth_decimal(fit, 1.702, 256);
    sinkproof_truth_gelu_fit(above, below, fit, 1, 64);
    arb_max(above, above, below, 64);
    double largest = sinkproof_truth_distance(above, 0);
    for (int k = 0; k < 2000; k++) {
        double g = k % 2 == 0 ? between(&seed, -3, 3) : between(&seed, -40, 7);
        double y = sinkproof_swiglu_one(&policy, 1.702, 7, g, 0);
        arb_set_d(gate_up, g);
        sinkproof_truth_swiglu(fit, gate_up, 1, 1.702, 7, 256);
        sinkproof_truth_gelu(gelu, gate_up, 256);
        sinkproof_verify_put(result, sinkproof_truth_distance(gelu, y),
                             largest + sinkproof_truth_distance(fit, y));
    }
    _arb_vec_clear(gate_up, 2);
    arb_clear(above);
    arb_clear(below);
    arb_clear(fit);
    arb_clear(gelu);
}

static const struct measured {
    const char *id, *bound;
    void (*run)(verify_measure *result, uint64_t seed);
} table[] = {
    {"attn.qkv", "bound.linear", sinkproof_verify_linear},
    {"attn.score", "bound.linear", sinkproof_verify_scores},
    {"sink.alpha", "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.alpha-sink", "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.stable", "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.limit", "bound.softmax-sink", sinkproof_verify_softmax},
    {"sink.mass", "bound.softmax-sink", sinkproof_verify_mass},
    {"sink.attn-concat", "bound.linear", sinkproof_verify_linear},
    {"sink.attn-values", "bound.value", sinkproof_verify_values},
    {"rmsnorm.forward", "bound.rmsnorm", sinkproof_verify_rmsnorm},
    {"rope.rotate", "bound.rope", sinkproof_verify_rotate},
    {"rope.orthogonal", "bound.rope", sinkproof_verify_rotate},
    {"yarn.ramp", "bound.rope", sinkproof_verify_yarn},
    {"yarn.concentration", "bound.rope", sinkproof_verify_yarn},
    {"yarn.truncate", "bound.rope", sinkproof_verify_yarn},
    {"router.softmax-after", "bound.softmax-sink", sinkproof_verify_router},
    {"swiglu.clamped", "bound.swiglu", sinkproof_verify_swiglu},
    {"swiglu.gelu-fit", "swiglu.gelu-fit", sinkproof_verify_gelu_fit},
    {"moe.sum", "bound.dot", sinkproof_verify_mixture},
    {"bound.dot", "bound.dot", sinkproof_verify_dot},
    {"bound.dot-likely", "bound.dot-likely", sinkproof_verify_dot_likely},
    {"bound.exp", "bound.exp", sinkproof_verify_exp},
    {"bound.one-minus", "bound.one-minus", sinkproof_verify_one_minus},
    {"bound.linear", "bound.linear", sinkproof_verify_linear},
    {"bound.softmax-sink", "bound.softmax-sink", sinkproof_verify_softmax},
    {"bound.value", "bound.value", sinkproof_verify_values},
    {"bound.rmsnorm", "bound.rmsnorm", sinkproof_verify_rmsnorm},
    {"bound.rope", "bound.rope", sinkproof_verify_rotate},
    {"bound.swiglu", "bound.swiglu", sinkproof_verify_swiglu},
};

verify_measure sinkproof_verify_measure(const char *id, uint64_t seed) {
    verify_measure result = {NULL, 0, 0, 0};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strcmp(table[k].id, id) == 0) {
            result.bound = table[k].bound;
            table[k].run(&result, seed);
        }
    return result;
}
