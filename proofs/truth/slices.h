// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Slices: numbers as sums of short integers times powers of 2, so that a matrix product in binary64
// makes no rounding (slices.exact).
//
// A row of weights is w_c = sum_t 2^(l_t) h_tc with integers h. A token's activations are
// x_c = 2^q sum_j 2^(s j) d_cj with digits |d| <= 2^(s-1), up to an error that goes into the
// radius. Each slice has sum_c |h_tc| < 2^(54-s). So sum_c |h_tc d_cj| < 2^53, and by
// bound.dot-exact the binary64 sum_c h_tc d_cj is exact in any order.
#ifndef SINKPROOF_TRUTH_SLICES_H
#define SINKPROOF_TRUTH_SLICES_H

#include "proofs/truth/flint.h"
#include "proofs/truth/sliced.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DIGIT_BITS_LEAST = 12,
    DIGIT_BITS_MOST = 44,
    SLICES_MOST = 32, // of a row of weights: every exponent of binary32 takes fewer
    RADIUS_BITS = 20, // a radius is an integer of at most 2^19 units
};

typedef enum slice_outcome {
    SLICE_NONE, // every number is 0
    SLICE_TAKEN,
    SLICE_REFUSED, // a number is not finite, or the sizes are beyond 2^900 or below 2^-900
} slice_outcome;

// An upper bound of sum_c |w_c|; not finite if a number is not.
double slice_sum_of_sizes(const double *w_c, size_t cols);

// Takes a slice from rest_c: integers h_c and an exponent l with sum_c |h_c| < 2^room, and
// rest_c -= 2^l h_c, exactly. room <= 50. *sizes: the upper bound of rest_c's sum of sizes, before
// and after.
typedef struct slice_found {
    size_t count;      // the nonzero h_c
    uint32_t *left_at; // [cols] where something is left, or NULL
    size_t left;       // in so many places
} slice_found;
slice_outcome slice_take(double *rest_c, double *sizes, size_t cols, int room, double *h_c,
                         int *exponent, slice_found *found);

// Upper bounds in integers: |w_c| <= 2^l up_c and sum_c up_c < 2^room. With the radii of a few
// tokens it is sum_c up_c radius_c of each that is stored, and not up_c.
enum { SLICE_FEW_TOKENS = 4 };
typedef struct slice_radii {
    size_t tokens;           // 1 to SLICE_FEW_TOKENS
    const double *radius_ic; // [tokens][stride], 0 from cols on to the next multiple of 16
    size_t stride;
    double *dot_i; // [tokens]
} slice_radii;
slice_outcome slice_bound(const double *w_c, double sizes, size_t cols, int room, double *up_c,
                          int *exponent, const slice_radii *radii);

// The largest digits that rows of `cols` weights permit at all.
int slice_digit_bits_most(size_t cols);

// The fixed point of one token. Truncated to units of 2^low, every midpoint is below 2^(low +
// size).
typedef struct slice_point {
    bool refused;     // an input is not finite, or an exponent is beyond some 2^40
    slong low, size;  // size 0: every midpoint is truncated to 0
    bool ball;        // some input has a radius, or was truncated
    slong radius_low; // radii, with that error, are at most 2^19 units of 2^radius_low
} slice_point;

// Depends on the token's own inputs and on `bits` alone: all bits of the midpoints, but none that
// is SLICED_GUARD_BITS below the largest radius or below the precision.
slice_point slice_fixed_point(arb_srcptr x_c, size_t cols, slong bits);
// The number of digits of s bits.
size_t slice_digits(const slice_point *point, int s);
// The digits of a midpoint, the lowest first; and its radius in units, rounded up.
void slice_number(const slice_point *point, arb_srcptr x, int s, double *digit_j, size_t digits,
                  double *radius);

// out = sum_j 2^(s j) sum_j for integers |sum_j| < 2^53. limb_k: slice_limbs of them.
size_t slice_limbs(size_t digits, int s);
void slice_join(arf_t out, const double *sum_j, size_t digits, int s, mp_ptr limb_k);

#endif
