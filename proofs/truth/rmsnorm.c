// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// RMSNorm over the reals: y_c = w_c x_c / sqrt(mean_c(x_c^2) + eps), eps the decimal number.
#include "proofs/truth/truth.h"

#include <stdlib.h>

//> rmsnorm.forward
void sinkproof_truth_rmsnorm(arb_ptr out_nc, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w_c,
                             double eps, slong bits) {
    size_t cols = w_c->cols;
    double *scratch = malloc(cols * sizeof *scratch);
    if (scratch == NULL) abort();
    arb_ptr weight_c = _arb_vec_init((slong)cols);
    arb_t epsilon, scale;
    balls_init(epsilon, scale);
    sinkproof_truth_row(weight_c, w_c, 0, scratch);
    sinkproof_truth_decimal(epsilon, eps, bits);
    for (size_t i = 0; i < n; i++) {
        arb_srcptr x_c = x_nc + i * cols;
        arb_ptr y_c = out_nc + i * cols;
        arb_dot(scale, NULL, 0, x_c, 1, x_c, 1, (slong)cols, bits);
        arb_div_ui(scale, scale, cols, bits);
        arb_add(scale, scale, epsilon, bits);
        arb_rsqrt(scale, scale, bits);
        for (size_t c = 0; c < cols; c++) {
            arb_mul(y_c + c, x_c + c, scale, bits);
            arb_mul(y_c + c, y_c + c, weight_c + c, bits);
        }
    }
    balls_clear(epsilon, scale);
    _arb_vec_clear(weight_c, (slong)cols);
    free(scratch);
}
//< rmsnorm.forward

void truth_mpfr_rmsnorm(mpfr_ptr out_c, mpfr_srcptr x_c, const sinkproof_matrix *w_c, double eps,
                        mpfr_prec_t bits) {
    size_t cols = w_c->cols;
    char decimal[40];
    double *weight_c = malloc(cols * sizeof *weight_c);
    if (weight_c == NULL) abort();
    sinkproof_matrix_row(w_c, 0, weight_c);
    truth_decimal_text(eps, decimal);
    mpfr_t sum, epsilon, term;
    mpfr_inits2(bits, sum, epsilon, term, (mpfr_ptr)0);
    mpfr_set_str(epsilon, decimal, 10, MPFR_RNDN);
    mpfr_set_zero(sum, 1);
    for (size_t c = 0; c < cols; c++) mpfr_fma(sum, x_c + c, x_c + c, sum, MPFR_RNDN);
    mpfr_div_ui(sum, sum, cols, MPFR_RNDN); // mean of squares
    mpfr_add(sum, sum, epsilon, MPFR_RNDN);
    mpfr_rec_sqrt(sum, sum, MPFR_RNDN);
    for (size_t c = 0; c < cols; c++) {
        mpfr_mul(term, x_c + c, sum, MPFR_RNDN);
        mpfr_mul_d(out_c + c, term, weight_c[c], MPFR_RNDN);
    }
    mpfr_clears(sum, epsilon, term, (mpfr_ptr)0);
    free(weight_c);
}
