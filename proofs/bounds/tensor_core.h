// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The error of one sum, by what its additions may do: for linear.c.
#ifndef SINKPROOF_BOUNDS_TENSOR_CORE_H
#define SINKPROOF_BOUNDS_TENSOR_CORE_H

#include "proofs/bounds/bounds.h"

// What the bound of one sum needs to know about its products p_k.
typedef struct sum_sizes {
    double mid;      // S, the sum
    double total;    // A = sum |p_k|, with all freedom of the operands
    double square;   // Q = sum p_k^2
    double signs;    // |sum sign p_k|, of a matrix unit
    double apparent; // the sizes that subnormal binary16 operands seem to have there
} sum_sizes;

// All but the operands' freedom and the errors of the judge's own products.
typedef struct sum_freedom {
    double worst, likely;
    double var, order, bias, shift; // of drift; shift: the mean of what is not centred
} sum_freedom;

// How much of the greatest lean some sums of a tensor have, emulated: l is what a sum lost toward
// zero and m the most that its last cuts lose on average, both times its size.
typedef struct core_lean {
    double lost, most;         // sums of l and m
    double lost2, both, most2; // of l l, l m, m m
} core_lean;

// Of x's rows with y's, [rows of x, rows of y]; NULL: nothing.
typedef struct core_sums {
    double *signs, *apparent;
    core_lean lean;
} core_sums;

// c must be empty at first; free it also if memory runs out. So many sums are emulated.
MUST_CHECK bool core_sums_prepare(const sinkproof_setting *s, const sinkproof_planes *x,
                                  const sinkproof_planes *y, size_t emulated, core_sums *c);
void core_sums_free(core_sums *c);
void core_lean_merge(core_lean *into, const core_lean *from);
sum_sizes core_sum_sizes(double mid, double total, double square, const core_sums *c, size_t at);

// What all sums of one row share.
typedef struct core_terms {
    double n, blocks;
    double cut;   // of an addend, relative to the largest of its block
    double last;  // of a result, relative to it
    double gamma; // of a whole sum
    double width; // products in a block
    bool biased;
    core_lean lean;
} core_terms;

// straddles: the terms may begin inside a block.
core_terms core_row_terms(const sinkproof_setting *s, double n, bool biased, bool straddles);
sum_freedom core_freedom(const sinkproof_setting *s, const core_terms *t, const sum_sizes *z);

#endif
