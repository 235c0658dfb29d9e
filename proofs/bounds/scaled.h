// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of numbers that a product reads in eight bits or four (bound.scaled).
#ifndef SINKPROOF_BOUNDS_SCALED_H
#define SINKPROOF_BOUNDS_SCALED_H

#include "proofs/bounds/honest.h"
#include "ref/scaled.h"

// The smallest and the largest value that a number may have.
typedef struct ends {
    double lo, hi;
} ends;

// The smallest and the largest amax of n numbers.
ends row_largest_ends(size_t n, const sinkproof_honest *x_c);

// The set of a number between these ends. An engine's code is one of two neighbours: nothing is
// centred.
sinkproof_honest set_between_codes(ends x, double mid);

// x[tokens, heads, dim] as a product reads it at the point `in`, in place. Without a scale each
// number is rounded. Otherwise the number of a code may be rounded to the format in which the
// engine held x. Optional: the engine may read x itself, one choice for all. Returns false if
// memory runs out.
__attribute__((warn_unused_result)) bool
sinkproof_honest_scaled(const sinkproof_setting *s, sinkproof_point in, sinkproof_rounding how,
                        size_t tokens, size_t heads, size_t dim, sinkproof_honest *x);

#endif
