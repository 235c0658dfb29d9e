// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// OpenBLAS's matrix product at the same shapes, for comparison. Nothing in the model calls it,
// since its order of summation changes with shape and threads.
#ifndef SINKPROOF_BLAS_H
#define SINKPROOF_BLAS_H

#include <stddef.h>

// y_nr = sum_c x_nc w_rc in float32, on `threads` threads of the library. Dimensions are at most
// INT_MAX.
void sinkproof_blas_product(int threads, size_t n, size_t rows, size_t cols, const float *x_nc,
                            const float *w_rc, float *y_nr);

#endif
