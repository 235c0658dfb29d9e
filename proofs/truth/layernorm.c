// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// LayerNorm over the reals: the mean is subtracted, the rest is RMSNorm, the shift is added.
#include "proofs/truth/truth.h"

#include <stdlib.h>

//> layernorm.forward
void sinkproof_truth_layernorm(arb_ptr out_nc, arb_srcptr x_nc, size_t n,
                               const sinkproof_matrix *w_c, const sinkproof_matrix *b_c, double eps,
                               slong bits) {
    size_t cols = w_c->cols;
    double *scratch = malloc(cols * sizeof *scratch);
    if (scratch == NULL) abort();
    arb_ptr shift_c = _arb_vec_init((slong)cols), centred = _arb_vec_init((slong)(n * cols));
    arb_t mean;
    arb_init(mean);
    sinkproof_truth_row(shift_c, b_c, 0, scratch);
    for (size_t i = 0; i < n; i++) {
        arb_zero(mean);
        for (size_t c = 0; c < cols; c++) arb_add(mean, mean, x_nc + i * cols + c, bits);
        arb_div_ui(mean, mean, cols, bits);
        for (size_t c = 0; c < cols; c++)
            arb_sub(centred + i * cols + c, x_nc + i * cols + c, mean, bits);
    }
    sinkproof_truth_rmsnorm(out_nc, centred, n, w_c, eps, bits);
    for (size_t i = 0; i < n * cols; i++) arb_add(out_nc + i, out_nc + i, shift_c + i % cols, bits);
    arb_clear(mean);
    _arb_vec_clear(shift_c, (slong)cols);
    _arb_vec_clear(centred, (slong)(n * cols));
    free(scratch);
}
//< layernorm.forward
