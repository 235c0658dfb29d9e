// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lane arithmetic stated a second time for its tests: orders as lists of indices, not as the
// loops of fast/lanes/.
#ifndef SINKPROOF_TESTS_LANES_H
#define SINKPROOF_TESTS_LANES_H

#include "fast/lanes/stages.h"
#include "tests/shared/reference.h"

#include <math.h>

// A random float32 number in [-size, size) with all its bits random.
static inline double next_float(uint64_t *state, double size) {
    return (float)next_real(state, size);
}

static inline void fill_floats(uint64_t *state, double size, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) x[i] = next_float(state, size);
}

// sum_c w_c x_c over n columns, s_B a scale per block of 32 or NULL. Step i of a block uses column
// i with its lowest bit inverted: 1, 0, 3, 2, ...
static inline float told_dot(size_t n, const double *w_c, const double *scale_b,
                             const double *x_c) {
    float total = 0;
    for (size_t b = 0; b < n; b += 32) {
        float block = 0;
        for (size_t i = b; i < b + 32; i++) {
            size_t c = i ^ 1;
            float w = c < n ? (float)w_c[c] : 0, x = c < n ? (float)x_c[c] : 0;
            block = fmaf(w, x, block);
        }
        total = fmaf(scale_b != NULL ? (float)scale_b[b / 32] : 1, block, total);
    }
    return total;
}

// Lane by lane, then the tree of halves: l + 8, + 4, + 2, + 1.
static inline float told_sum16(size_t n, const float *term_n) {
    float a[16], b[8], c[4];
    for (size_t l = 0; l < 16; l++) {
        a[l] = 0;
        for (size_t i = l; i < n; i += 16) a[l] = a[l] + term_n[i];
    }
    for (size_t l = 0; l < 8; l++) b[l] = a[l] + a[l + 8];
    for (size_t l = 0; l < 4; l++) c[l] = b[l] + b[l + 4];
    return (c[0] + c[2]) + (c[1] + c[3]);
}

#endif
