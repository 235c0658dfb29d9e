// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the tests of the reference's stages: policies by name, weights from arrays,
// reproducible numbers, and the error of a formula with K roundings in binary64.
#ifndef SINKPROOF_TESTS_REFERENCE_H
#define SINKPROOF_TESTS_REFERENCE_H

#include "base/splitmix.h"
#include "proofs/bounds/worst.h"
#include "ref/stages.h"
#include "tests/shared/tap.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

// The oracle of these tests computes in long double; its own error must be negligible compared with
// 2^-53.
_Static_assert(LDBL_MANT_DIG >= 64, "long double is wider than double here");

#define U53 0x1p-53

// gamma_K = K u / (1 - K u) at u = 2^-53, plus one part in 2^9 for the oracle's own roundings (K of
// its steps at 2^-64 each are K u / 2^11).
static inline double gamma53(double k) {
    return k * U53 / (1 - k * U53) * (1 + 0x1p-9);
}

static inline sinkproof_policy policy_of(const char *text) {
    sinkproof_policy policy;
    sinkproof_error error;
    if (sinkproof_policy_parse(text, &policy, &error)) return policy;
    printf("Bail out! %s\n", error.text);
    exit(1);
}

// A row-major binary64 matrix as a weight.
static inline sinkproof_matrix matrix_of(const double *values, size_t count, size_t rows,
                                         size_t cols) {
    return (sinkproof_matrix){
        .dtype = SINKPROOF_DTYPE_F64,
        .count = count,
        .rows = rows,
        .cols = cols,
        .data = (const uint8_t *)values,
        .stack_stride = rows * cols,
        .row_stride = cols,
        .col_stride = 1,
        .name = "test",
    };
}

// One generator state per test; the seed is its initial value.
static inline uint64_t next_bits(uint64_t *state) {
    return sinkproof_draw(state);
}

// Uniform in [-size, size), a multiple of size 2^-52.
static inline double next_real(uint64_t *state, double size) {
    return size * ((double)(next_bits(state) >> 11) * 0x1p-52 - 1);
}

// An integer in [-size, size].
static inline double next_integer(uint64_t *state, int size) {
    return (double)(next_bits(state) % (2 * (uint64_t)size + 1)) - size;
}

static inline void fill_reals(uint64_t *state, double size, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) x[i] = next_real(state, size);
}

static inline void fill_integers(uint64_t *state, int size, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) x[i] = next_integer(state, size);
}

// The number of doubles with different bits (0 and -0 differ, equal NaNs do not).
static inline size_t differing(size_t n, const double *a, const double *b) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += memcmp(&a[i], &b[i], sizeof *a) != 0;
    return count;
}

// Keeps the largest of its arguments in *worst; a NaN stays.
static inline void keep_worst(double *worst, double x) {
    *worst = sinkproof_keep_worst(*worst, x);
}

#endif
