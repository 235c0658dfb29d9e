// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Upper bounds in binary32 (factors.c) for long sums of sizes and of squares.
#ifndef SINKPROOF_FACTORS_H
#define SINKPROOF_FACTORS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct binary_factors {
    size_t rows, cols;
    float *size, *square; // [rows, cols] >= |x_rk| / scale_r and its square; NULL: not kept
    double *scale;        // [rows], powers of two
    double least;         // the smallest |x| that is not 0; infinite if all are 0
} binary_factors;

// Allocates rows of factors. Returns false if memory runs out.
bool factors_allocate(size_t rows, size_t cols, binary_factors *f);
// Fills row r. Returns false if an element is not finite or at least 2^400: then there are no
// factors.
bool factors_fill_row(binary_factors *f, size_t r, const double *x_k);
void factors_free(binary_factors *f);

#endif
