// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The library's matrix product, for comparison.
#include "fast/kernels/blas.h"

#include <cblas.h>

void sinkproof_blas_product(int threads, size_t n, size_t rows, size_t cols, const float *x_nc,
                            const float *w_rc, float *y_nr) {
    openblas_set_num_threads(threads);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)rows, (int)cols, 1.0f, x_nc,
                (int)cols, w_rc, (int)cols, 0.0f, y_nr, (int)rows);
}
