// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Softmax with a sink: against long double within the derived bound, its mass, its stability where
// the plain formula overflows, its limit without a sink, and the two wrong forms.
#include "tests/shared/reference.h"

#include <math.h>

enum { KEYS = 40 };

// One full row over n keys: alpha_j [n + 1], the sink last.
static void row(const char *policy_name, size_t n, const double *s_j, double b, double *alpha_j) {
    sinkproof_policy policy = policy_of(policy_name);
    sinkproof_block block = {.rows = 1, .keys = n, .first = n - 1, .window = 0, .head_dim = 1};
    sinkproof_softmax_sink(&policy, &block, &b, s_j, alpha_j);
}

// bound.softmax-sink with exp within one ulp: [(m - z_i) + sum_k alpha_k (m - z_k) + n + 3] u
// relative, k over keys and sink, n + 1 terms.
static void test_bound(void) {
    double s[KEYS + 1], alpha[KEYS + 1], worst = 0, worst_sink = 0, worst_mass = 0;
    uint64_t state = 17;
    for (int trial = 0; trial < 2000; trial++) {
        size_t n = 1 + next_bits(&state) % KEYS;
        fill_reals(&state, ldexp(1, trial % 6), n + 1, s); // s[n] is the sink's logit
        row("real-f64", n, s, s[n], alpha);
        long double z = 0, entropy = 0, mass = 0, m = s[0];
        for (size_t j = 1; j <= n; j++) m = s[j] > m ? s[j] : m;
        for (size_t j = 0; j <= n; j++) z += expl(s[j] - m);
        for (size_t j = 0; j <= n; j++) entropy += expl(s[j] - m) / z * (m - s[j]);
        double total = 0;
        for (size_t j = 0; j <= n; j++) {
            long double exact = expl(s[j] - m) / z;
            double k = (double)((m - s[j]) + entropy) + (double)n + 4;
            double share = (double)(fabsl(alpha[j] - exact) / exact) / gamma53(k);
            keep_worst(j < n ? &worst : &worst_sink, share);
            mass += alpha[j];
            total += gamma53(k) * (double)exact;
        }
        keep_worst(&worst_mass, (double)fabsl(mass - 1) / total);
    }
    ok(worst <= 1, "sink.alpha ref worst=%.3g bound=1 seed=17", worst);
    ok(worst_sink <= 1, "sink.alpha-sink ref worst=%.3g bound=1 seed=17", worst_sink);
    ok(worst_mass <= 1, "sink.mass ref worst=%.3g bound=1 seed=17", worst_mass);
}

static void test_stable(void) {
    const double huge[] = {1e300, -1e300, 1e4, -1e4, 0, 710, -745, 3};
    double s[8], alpha[9];
    size_t bad = 0;
    for (size_t b = 0; b < 8; b++)
        for (size_t first = 0; first < 8; first++) {
            for (size_t j = 0; j < 8; j++) s[j] = huge[(first + j * (1 + b)) % 8];
            row("real-f64", 8, s, huge[b], alpha);
            for (size_t j = 0; j < 9; j++) bad += !(alpha[j] >= 0 && alpha[j] <= 1);
        }
    ok(bad == 0, "sink.stable no finite row gives NaN worst=%zu bound=0", bad);
    // The wrong shift: with m = max s alone, the sink's exponential overflows.
    const double low[] = {-400, -410};
    row("real-f64", 2, low, 400, alpha);
    ok(!isfinite(exp(400.0 - -400.0)) && alpha[2] == 1 && alpha[0] < alpha[2],
       "sink.stable the shift must include the sink");
}

// Shifting scores and sink by a number that adds exactly changes no bit. (Multiples of 2^-20 below
// 2^20, shifted by 2^20.)
static void test_shift(void) {
    double s[KEYS + 1], shifted[KEYS + 1], alpha[KEYS + 1], beta[KEYS + 1];
    uint64_t state = 19;
    for (size_t j = 0; j <= KEYS; j++) s[j] = next_integer(&state, 1 << 23) * 0x1p-20;
    for (size_t j = 0; j <= KEYS; j++) shifted[j] = s[j] + 0x1p20;
    row("real-f64", KEYS, s, s[KEYS], alpha);
    row("real-f64", KEYS, shifted, shifted[KEYS], beta);
    size_t apart = differing(KEYS + 1, alpha, beta);
    ok(apart == 0, "sink.stable shift invariance worst=%zu bound=0 seed=19", apart);
    // Keeping the sink where it was is another function.
    row("real-f64", KEYS, shifted, s[KEYS], beta);
    ok(differing(KEYS + 1, alpha, beta) > 0, "sink.stable shifting the scores alone is wrong");
}

// b = -inf: the ordinary softmax, summed in the same order, bit for bit; no share for the sink.
static void test_limit(void) {
    double s[KEYS], alpha[KEYS + 1], plain[KEYS], m = -INFINITY, z = 0;
    uint64_t state = 23;
    fill_reals(&state, 20, KEYS, s);
    for (size_t j = 0; j < KEYS; j++) m = fmax(m, s[j]);
    for (size_t j = 0; j < KEYS; j++) z += exp(s[j] - m);
    for (size_t j = 0; j < KEYS; j++) plain[j] = exp(s[j] - m) / z;
    const char *const policies[] = {"real-f64", "f32", "openai-bf16"};
    for (size_t p = 0; p < 3; p++) {
        sinkproof_policy policy = policy_of(policies[p]);
        row(policies[p], KEYS, s, -INFINITY, alpha);
        double expected[KEYS];
        for (size_t j = 0; j < KEYS; j++) expected[j] = round_at(&policy, AT_A9, plain[j]);
        size_t apart = differing(KEYS, alpha, expected);
        ok(apart == 0 && alpha[KEYS] == 0,
           "sink.stable no sink (b = -inf) %s worst=%zu bound=0 seed=23", policies[p], apart);
    }
}

// One key equal to the sink: a half each. A sink of 100 above: the key keeps e^-100.
static void test_single_key(void) {
    double s = 2.5, alpha[2];
    row("openai-bf16", 1, &s, 2.5, alpha);
    ok(alpha[0] == 0.5 && alpha[1] == 0.5, "sink.alpha one key at the sink's logit");
    row("real-f64", 1, &s, 102.5, alpha);
    ok(alpha[0] > 0 && alpha[1] == 1, "sink.alpha-sink dominating");
    row("real-f64", 1, &s, -100, alpha);
    ok(alpha[0] == 1 && alpha[1] > 0, "sink.alpha-sink negligible");
}

// hf-bf16 subtracts the row's maximum in bf16 first: an example where that shows.
static void test_published(void) {
    const double s[] = {4.03125, -0.00390625};
    double ours[3], theirs[3];
    row("openai-bf16", 2, s, 1.0, ours);
    row("hf-bf16", 2, s, 1.0, theirs);
    sinkproof_policy p = policy_of("openai-bf16,A9=real"), q = policy_of("hf-bf16,A9=real");
    double a[3], b[3];
    sinkproof_block block = {.rows = 1, .keys = 2, .first = 1, .window = 0, .head_dim = 1};
    const double one = 1;
    sinkproof_softmax_sink(&p, &block, &one, s, a);
    sinkproof_softmax_sink(&q, &block, &one, s, b);
    ok(differing(3, a, b) > 0, "sink.alpha openai-bf16 and hf-bf16 part at A9.max");
    note("%g %g / %g %g", ours[0], ours[1], theirs[0], theirs[1]);
}

int main(void) {
    test_bound();
    test_stable();
    test_shift();
    test_limit();
    test_single_key();
    test_published();
    return tap_done();
}
