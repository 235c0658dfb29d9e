// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The exact rung of the ladder against itself: certified binary64, GMP, MPFR at a precision that
// rounds nothing, and a ball, on rows of every format, with every spread of exponents.
#include "proofs/truth/exact_dot.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

enum { EXACT_BITS = 6000 }; // 2 x 53 bits, 4196 exponents, log2 of the terms: fewer than this

typedef struct tally {
    size_t drawn, certified, wrong;
} tally;

// One dot by four rungs. They agree or the draw is counted as wrong.
static void compare(tally *t, size_t n, const double *a_k, const double *b_k) {
    arf_t exact, gmp, wide;
    arb_t ball;
    arb_ptr a = _arb_vec_init((slong)n), b = _arb_vec_init((slong)n);
    mpfr_t sum, term;
    arf_init(exact);
    arf_init(gmp);
    arf_init(wide);
    arb_init(ball);
    mpfr_init2(sum, EXACT_BITS);
    mpfr_init2(term, 53);
    mpfr_set_zero(sum, 1);
    for (size_t k = 0; k < n; k++) {
        arb_set_d(a + k, a_k[k]);
        arb_set_d(b + k, b_k[k]);
        mpfr_set_d(term, a_k[k], MPFR_RNDN);
        mpfr_t factor;
        mpfr_init2(factor, 53);
        mpfr_set_d(factor, b_k[k], MPFR_RNDN);
        mpfr_fma(sum, term, factor, sum, MPFR_RNDN);
        mpfr_clear(factor);
    }
    arf_set_mpfr(wide, sum);
    bool certified = sinkproof_exact_dot(exact, n, a_k, b_k);
    sinkproof_exact_dot_gmp(gmp, n, a_k, b_k);
    arb_dot(ball, NULL, 0, a, 1, b, 1, (slong)n, 128);
    t->drawn++;
    t->certified += certified;
    t->wrong += !(arf_equal(exact, gmp) && arf_equal(exact, wide) && arb_contains_arf(ball, exact));
    arf_clear(exact);
    arf_clear(gmp);
    arf_clear(wide);
    arb_clear(ball);
    mpfr_clears(sum, term, (mpfr_ptr)0);
    _arb_vec_clear(a, (slong)n);
    _arb_vec_clear(b, (slong)n);
}

// Rows of `dtype` against activations of `bits` significant bits.
static void draw_rows(const char *what, sinkproof_dtype dtype, int weight_spread, int bits,
                      int spread, uint64_t seed) {
    uint64_t state = seed;
    tally t = {0, 0, 0};
    double a_k[192], b_k[192];
    for (int round = 0; round < 40; round++) {
        size_t cols = dtype == SINKPROOF_DTYPE_MXFP4 ? 32 * (1 + draw_below(&state, 6))
                                                     : 1 + draw_below(&state, 192);
        sinkproof_matrix m;
        uint8_t *bytes = draw_matrix(&state, dtype, 1, cols, weight_spread, &m);
        sinkproof_matrix_row(&m, 0, a_k);
        for (size_t k = 0; k < cols; k++) b_k[k] = draw_number(&state, bits, spread);
        compare(&t, cols, a_k, b_k);
        free(bytes);
    }
    ok(t.wrong == 0, "bound.dot-exact %s dots=%zu certified=%zu wrong=%zu bound=0 seed=%llu", what,
       t.drawn, t.certified, t.wrong, (unsigned long long)seed);
}

static void edges(void) {
    double value;
    const double one[] = {1, 1}, half_ulp[] = {0x1p53, 1}, below[] = {0x1p53 - 1, 0.0};
    ok(!sinkproof_dot_certified(2, one, half_ulp, &value),
       "bound.dot-exact refuses 2^53 + 1 (the sum is 2^(53+L) or more)");
    ok(sinkproof_dot_certified(2, one, below, &value) && value == 0x1p53 - 1,
       "bound.dot-exact certifies 2^53 - 1");
    const double big[] = {0x1p53, -0x1p53, 1}, ones[] = {1, 1, 1};
    ok(!sinkproof_dot_certified(3, big, ones, &value),
       "bound.dot-exact looks at magnitudes, not at a sum that cancels");
    const double tiny[] = {0x1p-1074, 0x1p-1000};
    ok(!sinkproof_dot_certified(2, tiny, tiny, &value), "bound.dot-exact refuses underflow");
    ok(!sinkproof_dot_certified(2, tiny, one, &value), "bound.dot-exact refuses 2^-1074 + 2^-1000");
    const double least[] = {0x1p-1074, 0x1p-1060};
    ok(sinkproof_dot_certified(2, least, one, &value) && value == 0x1p-1074 + 0x1p-1060,
       "bound.dot-exact certifies subnormals");
    const double huge[] = {0x1p1023, 0x1p1023};
    ok(!sinkproof_dot_certified(2, huge, one, &value), "bound.dot-exact refuses overflow");
    const double nothing[] = {0, -0.0};
    ok(sinkproof_dot_certified(2, nothing, huge, &value) && value == 0,
       "bound.dot-exact certifies zeros");
    const double bad[] = {NAN, INFINITY};
    arf_t x;
    arf_init(x);
    ok(!sinkproof_exact_dot(x, 2, bad, one) && arf_is_nan(x), "bound.dot-exact NaN in, NaN out");
    arf_clear(x);
}

int main(void) {
    edges();
    draw_rows("bf16 x bf16", SINKPROOF_DTYPE_BF16, 4, 8, 4, 1);
    draw_rows("bf16 x bf16, heavy exponents", SINKPROOF_DTYPE_BF16, 12, 8, 12, 2);
    draw_rows("f32 x f32", SINKPROOF_DTYPE_F32, 3, 24, 3, 3);
    draw_rows("mxfp4 x bf16", SINKPROOF_DTYPE_MXFP4, 4, 8, 4, 4);
    draw_rows("mxfp4 x f64, all scales", SINKPROOF_DTYPE_MXFP4, 126, 53, 100, 5);
    draw_rows("f64 x f64, all exponents to the subnormals", SINKPROOF_DTYPE_F64, 1022, 53, 1022, 6);
    draw_rows("f32 x f64 with subnormals", SINKPROOF_DTYPE_F32, 140, 53, 1070, 7);
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
