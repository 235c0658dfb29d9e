// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of gradients as sums of products of numbers that are known within a distance
// (grad.rounded). Worst case alone. A gradient's set needs a middle and a radius, and a sum of many
// thousand terms none of the other members of sinkproof_honest.
#ifndef SINKPROOF_BOUNDS_GRADIENT_SUMS_H
#define SINKPROOF_BOUNDS_GRADIENT_SUMS_H

#include "proofs/bounds/honest.h"

// Every number within `off` of `mid`; off is infinite where nothing is known.
typedef struct sinkproof_near {
    double mid, off;
} sinkproof_near;

static inline sinkproof_near sinkproof_near_exact(double x) {
    return (sinkproof_near){x, isfinite(x) ? 0 : INFINITY};
}
static inline double sinkproof_near_size(sinkproof_near x) {
    return fabs(x.mid) + x.off;
}
sinkproof_near sinkproof_near_of(sinkproof_honest set);
sinkproof_honest sinkproof_near_set(sinkproof_near x);
sinkproof_near sinkproof_near_hull(sinkproof_near x, sinkproof_near y); // the middle is x's

// What a policy says of the arithmetic of a backward pass.
//
// Sums are in the policy's inner format, or in the coarsest format of its running sums: unit `u`.
// Of a matrix unit it is that of a cut to its bits, twice for each term. `narrow` is the coarsest
// format in which the policy holds a tensor or reads an operand of a product, REAL where none is
// coarser than the inner format: a backward pass may store there, or not.
typedef struct sinkproof_gradient_arithmetic {
    double u, least; // least: what may underflow
    double each;     // roundings of an addition: 1, or 2 in a matrix unit
    sinkproof_format narrow;
    double narrow_u, narrow_least;
    // Whether the weights of attention are read as they were stored; else also from the LSE.
    bool weights_kept;
    bool through_maximum; // autograd may go back through a row's maximum
    bool stored_between;  // and the softmax goes back in steps, each stored in `narrow`
    double log_ulp, exp_ulp, exp_growth, rsqrt_ulp, quotient_ulp;
} sinkproof_gradient_arithmetic;

// false: a format of the policy, at the rounding point *where, is one that grad.rounded does not
// state (a format of rows or blocks).
bool sinkproof_gradient_arithmetic_of(const sinkproof_policy *policy,
                                      sinkproof_gradient_arithmetic *a, sinkproof_point *where);

// A sum of products while it is made: the middle, the sizes of the terms, and how far the terms
// are open.
typedef struct sinkproof_gradient_terms {
    double value, size, open;
} sinkproof_gradient_terms;

static inline void sinkproof_gradient_add(sinkproof_gradient_terms *t, sinkproof_near x,
                                          sinkproof_near y) {
    double size_x = sinkproof_near_size(x), size_y = sinkproof_near_size(y);
    if (size_x == 0 || size_y == 0) { // 0 times what is not known may be NaN
        if (!(size_x < INFINITY && size_y < INFINITY)) t->open = INFINITY;
        return;
    }
    t->value += x.mid * y.mid;
    t->size += size_x * size_y;
    t->open += x.off * size_y + fabs(x.mid) * y.off;
}

// The sum, of which each term passes at most `terms` additions and `roundings` other roundings of
// the inner format, and `narrow` roundings to the narrow one.
sinkproof_near sinkproof_gradient_sum(const sinkproof_gradient_arithmetic *a,
                                      const sinkproof_gradient_terms *t, double terms,
                                      double roundings, double narrow);

// sum_k x_k y_k of n products, x_k at x + k x_stride.
sinkproof_near sinkproof_gradient_dot(const sinkproof_gradient_arithmetic *a, size_t n,
                                      const sinkproof_near *x, size_t x_stride,
                                      const sinkproof_near *y, size_t y_stride, double roundings,
                                      double narrow);

// x as it is, or rounded to the narrow format.
sinkproof_near sinkproof_near_narrowed(const sinkproof_gradient_arithmetic *a, sinkproof_near x);

// x times a number, over the reals.
sinkproof_near sinkproof_near_scaled(sinkproof_near x, double by);

// The log-sum-exp of n scores, and of the sink's logit b unless it is -infinity.
sinkproof_near sinkproof_near_lse(const sinkproof_gradient_arithmetic *a, size_t n,
                                  const sinkproof_near *z_j, double b);
// exp(z - lse), as a kernel recomputes a weight.
sinkproof_near sinkproof_near_weight(const sinkproof_gradient_arithmetic *a, sinkproof_near z,
                                     sinkproof_near lse);

#endif
