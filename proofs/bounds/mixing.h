// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The reach of a change of one token, and the cost of a cache with few bits for a row of attention
// (chapter 26): the definitions behind the measurements of `sinkproof sinks`, and their bounds.
#ifndef SINKPROOF_BOUNDS_MIXING_H
#define SINKPROOF_BOUNDS_MIXING_H

#include <stddef.h>

// The Euclidean norms of a row's difference and of the row itself.
typedef struct sinkproof_moved {
    double off, size;
} sinkproof_moved;
// x_c: the state in the original run; y_c: in the run with another token.
sinkproof_moved sinkproof_row_distance(size_t width, const double *x_c, const double *y_c);

// Applies one layer to a column of path sums, in place: p_i becomes p_i + sum_{j <= i} a_ij p_j.
// a_ij [n, n] is sum_h w_h |A^h_ij|; keys after the query are not read.
void sinkproof_path_sums(size_t n, const double *a_ij, double *p_i);

// Stores n numbers as integers of `bits` bits with one scale, max |x| / (2^(bits-1) - 1), rounded
// to nearest, ties to even; out_n: the numbers as read back. Returns the scale; 0 if all are 0.
double sinkproof_quantise(int bits, size_t n, const double *x_n, double *out_n);
// The largest error of a number read back, with division and product rounded to binary64.
double sinkproof_quantise_most(int bits, double scale);

// A bound on the error of one coordinate of a row's output: alpha_j [n] are the computed weights,
// the sink's weight is that over exact keys; delta_j and eps_j bound the errors of scores and
// values; most: the largest |v_j|.
double sinkproof_cache_bound(size_t n, const double *alpha_j, const double *delta_j,
                             const double *eps_j, double sink, double most);
// The row-wise bound: of the same numbers by the largest delta_j alone. It never says less than
// that two averages of the same values differ by at most 2 most.
double sinkproof_cache_row_bound(size_t n, const double *alpha_j, const double *delta_j,
                                 const double *eps_j, double most);

#endif
