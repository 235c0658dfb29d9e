// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of many elements at once: the operations of honest.h in vectors, for one instruction
// set each (abreast.inc). A result has the bits that the functions for one element give. An element
// that is not ordinary is left to these: a set that contains 0 or reaches far below the normal
// numbers, an end that is not finite.
#ifndef SINKPROOF_BOUNDS_ABREAST_H
#define SINKPROOF_BOUNDS_ABREAST_H

#include "proofs/bounds/bounds.h"

static const double libm = 0x1p-50; // of binary64 exp and tanh here: a few ulp

static inline double sigmoid_of(double t) {
    return t >= 0 ? 1 / (1 + exp(-t)) : exp(t) / (1 + exp(t));
}

// What swiglu.c knows of all elements of a row.
typedef struct swiglu_terms {
    double u, limit, offset;
    bool scales, by_exp, by_tanh; // alpha is not 1; the forms of the sigmoid
    bool open;                    // the two products may meet in any order
    sinkproof_honest alpha;
    double exp_ulp, exp_growth, tanh_error, flush_loss;
    rounding_widths two; // of two roundings
    sinkproof_rounding scaled, sigmoid, swish, up, result;
} swiglu_terms;

enum { ABREAST = 32 };

typedef struct sets_abreast {
    // n <= ABREAST sets, in place: rounded to binary32 or not, then at a point. odd_n: those that
    // are not ordinary, which are left as they were.
    void (*finish)(sinkproof_rounding at, size_t n, sinkproof_honest *x_n, bool *odd_n);
    // n <= ABREAST activations; gates and ups lie `stride` apart. odd_n: those that are not
    // ordinary, whose y_n is not written.
    void (*swiglu)(const swiglu_terms *t, size_t n, const sinkproof_honest *gate_n,
                   const sinkproof_honest *up_n, size_t stride, sinkproof_honest *y_n, bool *odd_n);
} sets_abreast;

#if defined __x86_64__
extern const sets_abreast sets_abreast_avx2;
extern const sets_abreast sets_abreast_avx512;
#endif

// Those that this processor runs, the fastest last; returns how many, which may be 0.
enum { SETS_ABREAST_MOST = 2 };
size_t sets_abreast_all(const sets_abreast **of);
const sets_abreast *sets_abreast_here(void); // NULL: none

// Whether the vectors round to the format.
static inline bool rounds_abreast(sinkproof_rounding at) {
    return at.format == SINKPROOF_REAL || at.format == SINKPROOF_F32 || at.format == SINKPROOF_BF16;
}

// swiglu.c: false where the policy has what the vectors do not compute.
bool swiglu_terms_of(const sinkproof_setting *s, sinkproof_swiglu_numbers numbers, swiglu_terms *t);

#endif
