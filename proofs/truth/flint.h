// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Ball arithmetic, from the library that is installed: FLINT 3 contains Arb; with FLINT 2.9, Arb is
// a separate library with headers of its own. mpfr.h comes first, so that the conversions between
// MPFR and Arb are declared.
#ifndef SINKPROOF_TRUTH_FLINT_H
#define SINKPROOF_TRUTH_FLINT_H

#include <stddef.h>
#include <stdio.h>

#include <mpfr.h>

#if __has_include(<flint/arb.h>)
#include <flint/arb.h>
#include <flint/arb_mat.h>
#else
#include <arb.h>
#include <arb_mat.h>
#endif

static inline arb_ptr ball_vector(size_t n) {
    return _arb_vec_init((slong)n);
}
static inline void ball_vector_release(arb_ptr x, size_t n) { // accepts NULL
    if (x != NULL) _arb_vec_clear(x, (slong)n);
}

// balls_init(x, y, z) and balls_clear(x, y, z) of several balls, as MPFR has it for its numbers.
static inline void balls_each(void (*act)(arb_t), size_t n, arb_ptr const *ball_k) {
    for (size_t k = 0; k < n; k++) act(ball_k[k]);
}
#define BALLS(...)                                                                                 \
    sizeof((arb_ptr[]){__VA_ARGS__}) / sizeof(arb_ptr), (arb_ptr[]) {                              \
        __VA_ARGS__                                                                                \
    }
#define balls_init(...)  balls_each(arb_init, BALLS(__VA_ARGS__))
#define balls_clear(...) balls_each(arb_clear, BALLS(__VA_ARGS__))

#endif
