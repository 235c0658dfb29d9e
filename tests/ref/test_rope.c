// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// YaRN's frequencies against a table of the published formula and against long double, both modes
// of truncation; the rotation: which coordinates pair, what it preserves.
#include "tests/shared/reference.h"

#include <math.h>

// The formula of doc/99-bibliography.md#peng-2024 in binary64, not by this code: pair, radians per
// position, and the change in per cent when the ramp's ends are truncated to 8 and 18.
static const struct golden {
    size_t d;
    double freq;
    const char *truncated;
} goldens[] = {
    {0, 1.0, "+0.000"},
    {1, 0.6890443058881633, "+0.000"},
    {7, 0.07374456821026082, "+0.000"},
    {8, 0.050813274815461475, "+0.000"},
    {9, 0.03170569618466377, "-0.268"},
    {10, 0.019335001126540362, "+0.600"},
    {11, 0.011592049256286924, "+1.727"},
    {12, 0.006794959489732219, "+3.249"},
    {13, 0.0038603593171920685, "+5.419"},
    {14, 0.0020937923789696887, "+8.763"},
    {15, 0.0010526021013863359, "+14.586"},
    {16, 0.00045648391922324086, "+27.266"},
    {17, 0.00012931870124506317, "+76.268"},
    {18, 3.8308812373753384e-05, "+0.000"},
    {24, 4.0999784818029795e-06, "+0.000"},
    {31, 3.0235114281192144e-07, "+0.000"},
};
enum { GOLDENS = sizeof goldens / sizeof goldens[0], HALF = 32 };

static const long double TWO_PI = 6.28318530717958647692528676655900577L;

static long double end_of_ramp(const sinkproof_config *c, double rotations) {
    long double turns = c->rotation.original_context / (rotations * TWO_PI);
    return c->head_dim * logl(turns) / (2 * logl(c->rotation.theta));
}

// The formula in long double, and what binary64 may add to it. With L = ln theta: an end of the
// ramp x errs by (3 head_dim / (2 L) + 6 x) u (three roundings inside the logarithm, six outside),
// the ramp by (2 dlow + dhigh) / (high - low) + 3 u, its complement by u more; the period by 2 u
// (pow within one ulp); products, quotients and the sum by 8 u of the result.
static long double exact_frequency(const sinkproof_config *c, size_t d, double *bound) {
    long double low = end_of_ramp(c, c->rotation.beta_fast),
                high = end_of_ramp(c, c->rotation.beta_slow);
    long double period = powl(c->rotation.theta, 2.0L * d / c->head_dim);
    long double ramp = (d - low) / (high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    long double freq = ramp / (c->rotation.factor * period) + (1 - ramp) / period;
    double per_end = 3 * (double)c->head_dim / (2 * log(c->rotation.theta));
    double ends = 2 * (per_end + 6 * (double)low) + per_end + 6 * (double)high;
    bool flat = ramp <= 0 || ramp >= 1;
    double ramp_error = flat ? 0 : ends / (double)(high - low) + 4;
    *bound = gamma53(ramp_error) / (double)period + gamma53(8) * (double)freq;
    return freq;
}

static void test_frequencies(void) {
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_config config;
    double freq[HALF], truncated[HALF], worst = 0, worst_golden = 0;
    sinkproof_config_named("gpt-oss-20b", &config);
    sinkproof_yarn_frequencies(&real, &config, freq);
    for (size_t d = 0; d < HALF; d++) {
        double bound;
        long double exact = exact_frequency(&config, d, &bound);
        keep_worst(&worst, (double)fabsl(freq[d] - exact) / bound);
    }
    ok(worst <= 1, "yarn.ramp real worst=%.3g bound=1", worst);
    sinkproof_policy cut = policy_of("real-f64,yarn=truncate");
    sinkproof_yarn_frequencies(&cut, &config, truncated);
    size_t wrong = 0;
    for (size_t g = 0; g < GOLDENS; g++) {
        double bound;
        exact_frequency(&config, goldens[g].d, &bound); // ours and the table's own binary64
        keep_worst(&worst_golden, fabs(freq[goldens[g].d] - goldens[g].freq) / (2 * bound));
        char percent[32];
        double change = 100 * (truncated[goldens[g].d] / freq[goldens[g].d] - 1);
        snprintf(percent, sizeof percent, "%+.3f", change == 0 ? 0 : change);
        wrong += strcmp(percent, goldens[g].truncated) != 0;
    }
    ok(worst_golden <= 1, "yarn.ramp goldens worst=%.3g bound=1", worst_golden);
    ok(wrong == 0, "yarn.truncate goldens to 0.001 per cent worst=%zu bound=0", wrong);
    config.rotation.truncate = true;
    double configured[HALF];
    sinkproof_yarn_frequencies(&real, &config, configured);
    ok(differing(HALF, configured, truncated) == 0, "yarn.truncate by configuration or by policy");
}

// Llama 3.1's frequencies in long double. u: turns in the context errs by 8 u, its share of the
// ramp by that of turns and both ends over the ramp's width and 4 u, a product or sum by 8 u.
static void test_llama3(void) {
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_config c = {.head_dim = 2 * HALF,
                          .rotation = {.kind = SINKPROOF_LLAMA3_ROTATION,
                                       .theta = 500000,
                                       .factor = 8,
                                       .beta_fast = 4,
                                       .beta_slow = 1,
                                       .original_context = 8192}};
    double freq[HALF], worst = 0;
    size_t trained = 0, slowed = 0;
    sinkproof_yarn_frequencies(&real, &c, freq);
    for (size_t d = 0; d < HALF; d++) {
        long double w = powl(500000, -2.0L * d / (2 * HALF));
        long double turns = 8192 * w / 6.283185307179586476925L, keep = (turns - 1) / 3;
        trained += keep >= 1, slowed += keep <= 0;
        keep = keep < 0 ? 0 : keep > 1 ? 1 : keep;
        long double exact = w * ((1 - keep) / 8 + keep);
        double off = keep <= 0 || keep >= 1 ? 0 : gamma53(9 * (double)turns + 8) * (double)w;
        keep_worst(&worst, (double)fabsl(freq[d] - exact) / (off + gamma53(12) * (double)exact));
    }
    ok(worst <= 1 && trained > 8 && slowed > 8 && trained + slowed < HALF,
       "rope.llama3 %zu pairs as trained, %zu slowed, others between: worst=%.3g bound=1", trained,
       slowed, worst);
    ok(sinkproof_yarn_concentration(&c) == 1, "rope.llama3 has no concentration");
}

// 0.1 ln 32 + 1: logarithm one ulp (2 u), product, 0.1 itself, sum: 5 u.
static void test_concentration(void) {
    sinkproof_config config;
    sinkproof_config_named("gpt-oss-20b", &config);
    double c = sinkproof_yarn_concentration(&config);
    double error = (double)fabsl(c - (0.1L * logl(32) + 1)) / c, bound = gamma53(5);
    ok(error <= bound, "yarn.concentration worst=%.3g bound=%.3g", error, bound);
    config.rotation.factor = 1;
    ok(sinkproof_yarn_concentration(&config) == 1, "yarn.concentration of factor 1");
}

// float32 as the published engines do it, step by step: single precision arithmetic itself.
static void test_single(void) {
    sinkproof_policy policy = policy_of("f32");
    sinkproof_config config;
    double freq[HALF], low, high;
    size_t wrong = 0;
    sinkproof_config_named("gpt-oss-20b", &config);
    sinkproof_yarn_frequencies(&policy, &config, freq);
    sinkproof_yarn_range(&config, false, &low, &high);
    for (size_t d = 0; d < HALF; d++) {
        float period = (float)pow(150000, (float)d / 32.0f);
        float between = 1.0f / (32.0f * period), trained = 1.0f / period;
        float ramp = ((float)d - (float)low) / (float)(high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        float keep = 1 - ramp;
        float sum = between * (1 - keep) + trained * keep;
        wrong += freq[d] != (double)sum;
    }
    ok(wrong == 0, "yarn.ramp float32 steps worst=%zu bound=0", wrong);
}

// A unit vector at coordinate d of a head reaches d and d + half, of that head and token, alone.
static void test_pairs(void) {
    enum { N = 3, HEADS = 2, DIM = 16, SIZE = N * HEADS * DIM };
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_config config;
    double freq[8], cosine[N * 8], sine[N * 8], x[SIZE];
    size_t wrong = 0;
    sinkproof_config_named("tiny", &config);
    sinkproof_yarn_frequencies(&real, &config, freq);
    sinkproof_rope_table(&real, &config, freq, 5, N, cosine, sine);
    for (size_t at = 0; at < SIZE; at++) {
        memset(x, 0, sizeof x);
        x[at] = 1;
        sinkproof_rope(&real, N, HEADS, DIM, cosine, sine, x);
        size_t d = at % DIM, t = at / (HEADS * DIM), pair = d % 8;
        double c = cosine[t * 8 + pair], s = sine[t * 8 + pair];
        size_t other = d < 8 ? at + 8 : at - 8;
        for (size_t i = 0; i < SIZE; i++) {
            double expected = i == at ? c : i == other ? (d < 8 ? s : -s) : 0;
            wrong += x[i] != expected;
        }
    }
    ok(wrong == 0, "rope.rotate pairs by halves worst=%zu bound=0", wrong);
}

// o1^2 + o2^2 = c^2 (x1^2 + x2^2). Cosine and sine carry 2 u (one ulp), u, and c's 5 u; product
// and sum two more: each output errs by 10 u B with B = c (|x1| + |x2|), |o| <= B, so the sum of
// squares errs by 2 (2 B)(10 u B) = 40 u B^2, and forming it here costs 6 u B^2.
static void test_orthogonal(void) {
    enum { N = 64, DIM = 16 };
    sinkproof_policy real = policy_of("real-f64");
    sinkproof_config config;
    double freq[8], cosine[N * 8], sine[N * 8], x[N * DIM], before[N * DIM], worst = 0;
    uint64_t state = 3;
    sinkproof_config_named("tiny", &config);
    sinkproof_yarn_frequencies(&real, &config, freq);
    sinkproof_rope_table(&real, &config, freq, 131000, N, cosine, sine);
    fill_reals(&state, 10, N * DIM, x);
    memcpy(before, x, sizeof x);
    sinkproof_rope(&real, N, 1, DIM, cosine, sine, x);
    double c = sinkproof_yarn_concentration(&config);
    for (size_t t = 0; t < N; t++)
        for (size_t d = 0; d < 8; d++) {
            const double *a = before + t * DIM + d, *o = x + t * DIM + d;
            double square = c * c * (a[0] * a[0] + a[8] * a[8]);
            double b = c * (fabs(a[0]) + fabs(a[8]));
            keep_worst(&worst, fabs(o[0] * o[0] + o[8] * o[8] - square) / (gamma53(46) * b * b));
        }
    ok(worst <= 1, "rope.rotate preserves the norm worst=%.3g bound=1 seed=3", worst);
}

int main(void) {
    test_frequencies();
    test_concentration();
    test_llama3();
    test_single();
    test_pairs();
    test_orthogonal();
    return tap_done();
}
