// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The least and the largest product are those at the ends of the balls that the signs of the
// weights name. Both are sums of integers times a power of 2, and so are the ends of y.
#include "proofs/truth/check_rows.h"

#include <math.h>
#include <stdlib.h>

// A dyadic number m 2^e, m any integer.
typedef struct dyadic {
    mpz_t m;
    slong e;
} dyadic;

static void dyadic_add(dyadic *sum, const dyadic *x, mpz_t scratch) {
    if (mpz_sgn(x->m) == 0) return;
    if (mpz_sgn(sum->m) == 0) {
        mpz_set(sum->m, x->m);
        sum->e = x->e;
    } else if (x->e >= sum->e) {
        mpz_mul_2exp(scratch, x->m, (mp_bitcnt_t)(x->e - sum->e));
        mpz_add(sum->m, sum->m, scratch);
    } else {
        mpz_mul_2exp(sum->m, sum->m, (mp_bitcnt_t)(sum->e - x->e));
        mpz_add(sum->m, sum->m, x->m);
        sum->e = x->e;
    }
}

static void dyadic_set_double(dyadic *out, double x) {
    int e;
    mpz_set_d(out->m, ldexp(frexp(x, &e), 53));
    out->e = e - 53;
}

static void dyadic_set_arf(dyadic *out, const arf_t x) {
    fmpz_t m, e;
    fmpz_init(m);
    fmpz_init(e);
    arf_get_fmpz_2exp(m, e, x);
    fmpz_get_mpz(out->m, m);
    out->e = fmpz_get_si(e);
    fmpz_clear(m);
    fmpz_clear(e);
}

// The end of a ball: above its midpoint or below it.
static void dyadic_set_end(dyadic *out, const arb_t x, bool above, mpz_t scratch) {
    dyadic radius;
    arf_t r;
    arf_init(r);
    mpz_init(radius.m);
    arf_set_mag(r, arb_radref(x));
    dyadic_set_arf(out, arb_midref(x));
    dyadic_set_arf(&radius, r);
    if (!above) mpz_neg(radius.m, radius.m);
    dyadic_add(out, &radius, scratch);
    mpz_clear(radius.m);
    arf_clear(r);
}

// The least or the largest product.
static void extreme_product(dyadic *sum, const double *w_c, double bias, arb_srcptr x_c,
                            size_t cols, bool above, mpz_t scratch) {
    dyadic x, w;
    mpz_init(x.m);
    mpz_init(w.m);
    dyadic_set_double(sum, bias);
    for (size_t c = 0; c < cols; c++) {
        if (w_c[c] == 0) continue;
        dyadic_set_double(&w, w_c[c]);
        dyadic_set_end(&x, x_c + c, above == (w_c[c] > 0), scratch);
        mpz_mul(x.m, x.m, w.m);
        x.e += w.e;
        dyadic_add(sum, &x, scratch);
    }
    mpz_clear(x.m);
    mpz_clear(w.m);
}

// The sign of a - b; a changes.
static int dyadic_compare(dyadic *a, const dyadic *b, mpz_t scratch) {
    dyadic minus = {.e = b->e};
    mpz_init(minus.m);
    mpz_neg(minus.m, b->m);
    dyadic_add(a, &minus, scratch);
    mpz_clear(minus.m);
    return mpz_sgn(a->m);
}

static bool is_near(const arb_t x) {
    static const slong far = (slong)1 << 24;
    if (!arb_is_finite(x)) return false;
    bool middle = arf_is_special(arb_midref(x)) || (arf_cmpabs_2exp_si(arb_midref(x), far) < 0 &&
                                                    arf_cmpabs_2exp_si(arb_midref(x), -far) > 0);
    return middle && (mag_is_zero(arb_radref(x)) || (mag_cmp_2exp_si(arb_radref(x), far) < 0 &&
                                                     mag_cmp_2exp_si(arb_radref(x), -far) > 0));
}

static bool all_are_near(const double *w_c, double bias, arb_srcptr x_c, size_t cols) {
    for (size_t c = 0; c < cols; c++)
        if (!isfinite(w_c[c]) || !is_near(x_c + c)) return false;
    return isfinite(bias);
}

static bool holds_products(const double *w_c, double bias, arb_srcptr x_c, size_t cols,
                           const arb_t y) {
    dyadic product, end;
    mpz_t scratch;
    mpz_inits(product.m, end.m, scratch, NULL);
    extreme_product(&product, w_c, bias, x_c, cols, false, scratch);
    dyadic_set_end(&end, y, false, scratch);
    bool holds = dyadic_compare(&end, &product, scratch) <= 0;
    extreme_product(&product, w_c, bias, x_c, cols, true, scratch);
    dyadic_set_end(&end, y, true, scratch);
    holds = holds && dyadic_compare(&end, &product, scratch) >= 0;
    mpz_clears(product.m, end.m, scratch, NULL);
    return holds;
}

truth_row truth_check_row(const sinkproof_matrix *w_rc, const sinkproof_matrix *b_r, size_t r,
                          arb_srcptr x_c, const arb_t y) {
    size_t cols = w_rc->cols, rows = w_rc->rows;
    double *w_c = malloc((cols + rows) * sizeof *w_c), *bias_r = w_c + cols;
    if (w_c == NULL) abort();
    sinkproof_matrix_row(w_rc, r, w_c);
    bias_r[r] = 0;
    if (b_r != NULL && b_r->count > 0) sinkproof_matrix_row(b_r, 0, bias_r);
    truth_row outcome = TRUTH_ROW_HOLDS;
    if (!all_are_near(w_c, bias_r[r], x_c, cols))
        outcome = TRUTH_ROW_UNCHECKED;
    else if (arf_is_nan(arb_midref(y)))
        outcome = TRUTH_ROW_BROKEN;
    else if (!mag_is_inf(arb_radref(y))) // else the whole line
        outcome = !is_near(y)                                    ? TRUTH_ROW_UNCHECKED
                  : holds_products(w_c, bias_r[r], x_c, cols, y) ? TRUTH_ROW_HOLDS
                                                                 : TRUTH_ROW_BROKEN;
    free(w_c);
    return outcome;
}
