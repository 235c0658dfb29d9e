// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Factors in binary32, from above (factors.c): what long sums of sizes and of squares are made of.
#ifndef SINKPROOF_FACTORS_H
#define SINKPROOF_FACTORS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sinkproof_factors {
    size_t rows, cols;
    float *size, *square; // [rows, cols] >= |x_rk| / scale_r and its square; NULL: none are kept
    double *scale;        // [rows], powers of two
    double least;         // the least size of x that is not 0; infinite where all are
} sinkproof_factors;

// Room for rows of factors. False: no memory.
bool sinkproof_factors_for(size_t rows, size_t cols, sinkproof_factors *f);
// Fills row r. False where an element is not finite or 2^400 and more: there are no factors then.
bool sinkproof_factors_row(sinkproof_factors *f, size_t r, const double *x_k);
void sinkproof_factors_free(sinkproof_factors *f);

#endif
