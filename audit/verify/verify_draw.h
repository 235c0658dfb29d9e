// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Random inputs for `sinkproof verify`: the same from the same seed on every machine.
#ifndef SINKPROOF_VERIFY_DRAW_H
#define SINKPROOF_VERIFY_DRAW_H

#include "audit/verify/verify.h"
#include "base/splitmix.h"

#include <stdlib.h>

enum { VERIFY_BITS = 256 }; // precision of the enclosed truth for measurements

static inline double between(uint64_t *state, double low, double high) {
    return low + (high - low) * ((double)(sinkproof_draw(state) >> 11) * 0x1p-53);
}

static inline sinkproof_policy policy_named(const char *name) {
    sinkproof_policy policy;
    sinkproof_error error;
    if (!sinkproof_policy_parse(name, &policy, &error)) abort();
    return policy;
}

static inline void must(bool done) { // exits if memory ran out
    if (!done) abort();
}

// (1 + a) (1 + b) - 1, rounded up
static inline double compound_up(double a, double b) {
    return sinkproof_add_up(sinkproof_mul_up(sinkproof_add_up(1, a), sinkproof_add_up(1, b)), -1);
}

static inline arb_ptr balls_from_doubles(const double *x, size_t n) {
    arb_ptr b = _arb_vec_init((slong)n);
    for (size_t k = 0; k < n; k++) arb_set_d(b + k, x[k]);
    return b;
}

// Drawn numbers as the weights of a layer.
static inline sinkproof_matrix doubles_matrix(const double *x, size_t rows, size_t cols) {
    return (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64,
                              .count = 1,
                              .rows = rows,
                              .cols = cols,
                              .data = (const uint8_t *)x,
                              .stack_stride = rows * cols,
                              .row_stride = cols,
                              .col_stride = 1,
                              .name = "drawn"};
}

#endif
