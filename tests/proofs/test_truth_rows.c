// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The enclosures process many rows and columns at a time: the balls are the same as one by one, and
// contain the reference where the configuration takes its rarer branches.
#include "proofs/truth/truth.h"
#include "tests/shared/reference.h"

#include <math.h>

enum { N = 3, COLS = 7, ROWS = 4, BITS = 128 };

static arb_ptr balls(const double *x, size_t n) {
    arb_ptr out = _arb_vec_init((slong)n);
    for (size_t i = 0; i < n; i++) arb_set_d(out + i, x[i]);
    return out;
}

static size_t apart(arb_srcptr a, arb_srcptr b, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += !arb_equal(a + i, b + i);
    return count;
}

static void rows_one_by_one(void) {
    double x[N * COLS], w[ROWS * COLS], b[ROWS];
    uint64_t state = 51;
    fill_reals(&state, 2, N * COLS, x);
    fill_reals(&state, 2, ROWS * COLS, w);
    fill_reals(&state, 2, ROWS, b);
    sinkproof_matrix weight = matrix_of(w, 1, ROWS, COLS), bias = matrix_of(b, 1, 1, ROWS);
    sinkproof_matrix scale = matrix_of(w, 1, 1, COLS);
    arb_ptr in = balls(x, N * COLS), all = _arb_vec_init(N * COLS), one = _arb_vec_init(N * COLS);
    sinkproof_truth_linear(all, in, N, &weight, &bias, BITS);
    for (size_t i = 0; i < N; i++)
        sinkproof_truth_linear(one + i * ROWS, in + i * COLS, 1, &weight, &bias, BITS);
    size_t linear = apart(all, one, N * ROWS);
    sinkproof_truth_rmsnorm(all, in, N, &scale, 1e-5, BITS);
    for (size_t i = 0; i < N; i++)
        sinkproof_truth_rmsnorm(one + i * COLS, in + i * COLS, 1, &scale, 1e-5, BITS);
    size_t norm = apart(all, one, N * COLS);
    ok(linear == 0, "attn.qkv balls of %d rows at a time worst=%zu bound=0 seed=51", N, linear);
    ok(norm == 0, "rmsnorm.forward balls of %d rows at a time worst=%zu bound=0 seed=51", N, norm);
    _arb_vec_clear(in, N * COLS), _arb_vec_clear(all, N * COLS), _arb_vec_clear(one, N * COLS);
}

// Every visible value is v*, of COLS coordinates that differ, among other heads' columns.
static void constant_values(void) {
    enum { STRIDE = COLS + 2 };
    double alpha[N], v[N * STRIDE], star[COLS];
    uint64_t state = 52;
    fill_reals(&state, 3, N * STRIDE, v);
    for (size_t j = 0; j < N; j++) alpha[j] = (double)(1 + next_bits(&state) % 99) / 512;
    for (size_t d = 0; d < COLS; d++) star[d] = next_integer(&state, 99) / 8;
    for (size_t j = 0; j < N; j++) memcpy(v + j * STRIDE, star, sizeof star);
    arb_ptr a = balls(alpha, N), values = balls(v, N * STRIDE), out = _arb_vec_init(COLS);
    sinkproof_truth_values(out, a, values, N, STRIDE, COLS, BITS);
    size_t wrong = 0;
    for (size_t d = 0; d < COLS; d++) {
        arb_t expected;
        arb_init(expected);
        arb_set_d(expected, (alpha[0] + alpha[1] + alpha[2]) * star[d]);
        wrong += !arb_equal(out + d, expected);
        arb_clear(expected);
    }
    ok(wrong == 0, "law.constant-value balls of %d coordinates worst=%zu bound=0 seed=52", COLS,
       wrong);
    _arb_vec_clear(a, N), _arb_vec_clear(values, N * STRIDE), _arb_vec_clear(out, COLS);
}

// 0.1 ln(factor) + 1 for factors from 1 on; nothing below. The ball and the reference agree to 5
// roundings of the latter.
static void concentration(void) {
    const double factors[] = {0.5, 1, 1.25, 1.5, 2, 3, 32};
    double worst = 0;
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        sinkproof_config config;
        sinkproof_config_named("tiny", &config);
        config.rotation.factor = factors[f];
        sinkproof_truth_yarn yarn;
        sinkproof_truth_yarn_init(&yarn, &config, BITS);
        double c = sinkproof_yarn_concentration(&config);
        double middle = arf_get_d(arb_midref(yarn.concentration), ARF_RND_NEAR);
        double stated = factors[f] <= 1 ? 1 : (double)(0.1L * logl(factors[f]) + 1);
        keep_worst(&worst, fabs(middle - stated) / (gamma53(2) * stated));
        keep_worst(&worst, fabs(c - stated) / (gamma53(6) * stated));
        sinkproof_truth_yarn_clear(&yarn);
    }
    ok(worst <= 1,
       "yarn.concentration every factor, in balls and in the reference worst=%.3g bound=1", worst);
}

int main(void) {
    rows_one_by_one();
    constant_values();
    concentration();
    flint_cleanup();
    return tap_done();
}
