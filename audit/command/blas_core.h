// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The core that OpenBLAS multiplies for. The library knows the processors that existed when it was
// built and takes an older core's kernels for any other: SSE3 where AVX-512 is at hand. It reads
// the environment's OPENBLAS_CORETYPE once, while it is loaded; so a better core needs a second
// start of the program.
#ifndef SINKPROOF_BLAS_CORE_H
#define SINKPROOF_BLAS_CORE_H

#include <stdbool.h>
#include <stddef.h>

// Starts the program again with a core of the processor's widest set, unless the library already
// has such a core or the environment names one. Returns where there is nothing to change, or where
// the second start fails; in the second start, goes back to the library's own core if a product of
// integers is not exact.
void blas_core_choose(char **argv);

typedef struct blas_core {
    const char *core; // that is in use, as the library names it
    const char *own;  // the library's own choice, if another is in use; else NULL
    const char *why;  // one clause: who chose it
} blas_core;
blas_core blas_core_known(void);

// The core that suits the widest of these sets better than `core`; NULL: none does.
const char *blas_core_better(const char *core, bool avx2, bool avx512);

// y_mr = sum_k x_mk y_rk in binary64, row-major.
typedef void blas_times(size_t m, size_t r, size_t k, const double *x, const double *y, double *c,
                        size_t stride);
// Whether products of small integers, of shapes around the kernels' tiles, are exact.
bool blas_core_exact(blas_times *times);

#endif
