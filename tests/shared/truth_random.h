// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Random operands for the tests of the truth: numbers of each storage format with a given spread of
// exponents, and plain matrices of them in memory.
#ifndef SINKPROOF_TRUTH_RANDOM_H
#define SINKPROOF_TRUTH_RANDOM_H

#include "base/splitmix.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/truth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t draw(uint64_t *state) {
    return sinkproof_draw(state);
}

static inline size_t draw_below(uint64_t *state, size_t n) {
    return (size_t)(draw(state) % n);
}

// A number with `bits` significant bits and an exponent in [-spread, spread]; 1 in 16 is zero.
static inline double draw_number(uint64_t *state, int bits, int spread) {
    uint64_t word = draw(state);
    if (word % 16 == 0) return 0;
    double significand = (double)(draw(state) >> (64 - bits) | UINT64_C(1) << (bits - 1));
    int exponent = (int)(draw(state) % (uint64_t)(2 * spread + 1)) - spread;
    double x = ldexp(significand, exponent - bits);
    // a spread that reaches the subnormals also exceeds the largest number
    if (isinf(x)) x = 0x1p1023;
    return word >> 63 ? -x : x;
}

// The bytes of a random matrix of the given dtype; the caller frees them.
static inline uint8_t *draw_matrix(uint64_t *state, sinkproof_dtype dtype, size_t rows, size_t cols,
                                   int spread, sinkproof_matrix *matrix) {
    size_t size = dtype == SINKPROOF_DTYPE_MXFP4 ? 1 : sinkproof_dtype_size(dtype);
    uint8_t *bytes = malloc(rows * cols * size + rows * cols);
    if (bytes == NULL) abort();
    *matrix = (sinkproof_matrix){.dtype = dtype,
                                 .count = 1,
                                 .rows = rows,
                                 .cols = cols,
                                 .data = bytes,
                                 .stack_stride = rows * cols,
                                 .row_stride = cols,
                                 .col_stride = 1,
                                 .name = "drawn"};
    for (size_t i = 0; i < rows * cols; i++) {
        if (dtype == SINKPROOF_DTYPE_F64) {
            double x = draw_number(state, 53, spread);
            memcpy(bytes + 8 * i, &x, 8);
        } else if (dtype == SINKPROOF_DTYPE_MXFP4) {
            bytes[i] = (uint8_t)draw(state); // half of them hold the codes
        } else {                             // f32, or the upper half of one: bf16
            float x = (float)draw_number(state, dtype == SINKPROOF_DTYPE_F32 ? 24 : 8, spread);
            if (isinf(x)) x = 0x1p127f; // as above
            uint32_t image;
            memcpy(&image, &x, 4);
            if (dtype == SINKPROOF_DTYPE_BF16) image >>= 16;
            memcpy(bytes + size * i, &image, size);
        }
    }
    if (dtype == SINKPROOF_DTYPE_MXFP4) {
        matrix->scales = bytes + rows * cols;
        for (size_t b = 0; b < rows * cols / 32; b++)
            bytes[rows * cols + b] =
                (uint8_t)(127 + (int)(draw(state) % (uint64_t)(2 * spread + 1)) - spread);
    }
    return bytes;
}

// n random numbers as exact balls and as MPFR numbers; out_d receives the doubles unless it is
// NULL.
static inline void draw_vector(uint64_t *state, size_t n, int bits, int spread, arb_ptr balls,
                               mpfr_ptr numbers, double *out) {
    for (size_t i = 0; i < n; i++) {
        double x = draw_number(state, bits, spread);
        arb_set_d(balls + i, x);
        mpfr_set_d(numbers + i, x, MPFR_RNDN);
        if (out != NULL) out[i] = x;
    }
}

static inline bool all_contain(arb_srcptr balls, mpfr_srcptr numbers, size_t n) {
    arf_t x;
    arf_init(x);
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        arf_set_mpfr(x, numbers + i);
        all = all && arb_is_finite(balls + i) && arb_contains_arf(balls + i, x);
    }
    arf_clear(x);
    return all;
}

// log2 of the largest radius; -INFINITY if all are exact, INFINITY if one is not finite.
static inline double worst_radius_log2(arb_srcptr balls, size_t n) {
    double worst = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!arb_is_finite(balls + i)) return INFINITY;
        double r = mag_is_zero(arb_radref(balls + i))
                       ? -INFINITY
                       : mag_get_d_log2_approx(arb_radref(balls + i));
        worst = sinkproof_keep_worst(worst, r);
    }
    return worst;
}

static inline double worst_relative_log2(arb_srcptr balls, size_t n) {
    double worst = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double r = sinkproof_truth_relative_log2(balls + i);
        worst = sinkproof_keep_worst(worst, r);
    }
    return worst;
}

#endif
