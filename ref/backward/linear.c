// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of a linear layer y_nr = sum_c W_rc x_nc + b_r: through the transposed matrix to
// its input, and a sum over the tokens to its weights. A matrix's row is decoded once for all
// tokens.
#include "ref/backward/backward.h"

void sinkproof_linear_backward(size_t n, const sinkproof_matrix *weight_rc, const double *x_nc,
                               const double *dy_nr, double *dx_nc, double *dw_rc, double *db_r,
                               double *w_c) {
    size_t rows = weight_rc->rows, cols = weight_rc->cols;
    for (size_t r = 0; r < rows; r++) {
        sinkproof_matrix_row(weight_rc, r, w_c);
        for (size_t t = 0; t < n; t++) {
            double dy = dy_nr[t * rows + r];
            //> grad.linear
            for (size_t c = 0; c < cols; c++) {
                if (dx_nc != NULL) dx_nc[t * cols + c] += w_c[c] * dy;
                if (dw_rc != NULL) dw_rc[r * cols + c] += dy * x_nc[t * cols + c];
            }
            if (db_r != NULL) db_r[r] += dy;
            //< grad.linear
        }
    }
}
