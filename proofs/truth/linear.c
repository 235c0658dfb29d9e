// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A linear stage over the reals: y_r = b_r + sum_c W_rc x_c, with weights exact as stored. Rows are
// decoded once for all tokens. The product is that of slices (sliced.h). The plain one, which takes
// one ball dot product after another, holds it in tests: midpoints are summed with guard bits,
// radii are propagated term by term.
#include "proofs/truth/sliced.h"
#include "proofs/truth/truth.h"

#include <stdlib.h>

//> attn.qkv
void sinkproof_truth_linear(arb_ptr out_nr, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w_rc,
                            const sinkproof_matrix *b_r, slong bits) {
    sinkproof_sliced_linear(out_nr, x_nc, n, w_rc, b_r, bits, 1, NULL);
}

void truth_plain_linear(arb_ptr out_nr, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w_rc,
                        const sinkproof_matrix *b_r, slong bits) {
    size_t rows = w_rc->rows, cols = w_rc->cols;
    double *scratch = malloc((rows > cols ? rows : cols) * sizeof *scratch);
    if (scratch == NULL) abort();
    arb_ptr row_c = _arb_vec_init((slong)cols), bias_r = _arb_vec_init((slong)rows);
    if (b_r != NULL && b_r->count > 0) sinkproof_truth_row(bias_r, b_r, 0, scratch);
    for (size_t r = 0; r < rows; r++) {
        sinkproof_truth_row(row_c, w_rc, r, scratch);
        for (size_t i = 0; i < n; i++)
            arb_dot(out_nr + i * rows + r, bias_r + r, 0, row_c, 1, x_nc + i * cols, 1, (slong)cols,
                    bits);
    }
    _arb_vec_clear(row_c, (slong)cols);
    _arb_vec_clear(bias_r, (slong)rows);
    free(scratch);
}
//< attn.qkv

void truth_mpfr_linear(mpfr_ptr out_r, mpfr_srcptr x_c, const sinkproof_matrix *w_rc,
                       const sinkproof_matrix *b_r, mpfr_prec_t bits) {
    size_t rows = w_rc->rows, cols = w_rc->cols;
    double *weight_c = malloc(cols * sizeof *weight_c), *bias_r = calloc(rows, sizeof *bias_r);
    if (weight_c == NULL || bias_r == NULL) abort();
    if (b_r != NULL && b_r->count > 0) sinkproof_matrix_row(b_r, 0, bias_r);
    mpfr_t sum, weight;
    mpfr_init2(sum, bits);
    mpfr_init2(weight, 53);
    for (size_t r = 0; r < rows; r++) {
        sinkproof_matrix_row(w_rc, r, weight_c);
        mpfr_set_d(sum, bias_r[r], MPFR_RNDN);
        for (size_t c = 0; c < cols; c++) {
            mpfr_set_d(weight, weight_c[c], MPFR_RNDN); // exact
            mpfr_fma(sum, weight, x_c + c, sum, MPFR_RNDN);
        }
        mpfr_set(out_r + r, sum, MPFR_RNDN);
    }
    mpfr_clears(sum, weight, (mpfr_ptr)0);
    free(weight_c);
    free(bias_r);
}
