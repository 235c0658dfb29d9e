// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How far a change of one token reaches, and what a cache of few bits costs a row of attention
// (chapter 26): the definitions that `sinkproof sinks` measures by, and the bounds beside them.
#ifndef SINKPROOF_BOUNDS_MIXING_H
#define SINKPROOF_BOUNDS_MIXING_H

#include <stddef.h>

// The Euclidean norms of a row's difference and of the row itself.
typedef struct sinkproof_moved {
    double off, size;
} sinkproof_moved;
// x_c: the state of the run as it is; y_c: of the run with another token.
sinkproof_moved sinkproof_row_moved(size_t width, const double *x_c, const double *y_c);

// One layer's step of a column of path sums, in place: p_i becomes p_i + sum_{j <= i} a_ij p_j.
// a_ij [n, n]: sum_h w_h |A^h_ij|, of which keys after the query are not read.
void sinkproof_path_sums(size_t n, const double *a_ij, double *p_i);

// n numbers kept as whole numbers of `bits` bits and one scale, max |x| / (2^(bits-1) - 1), each
// the nearest, a tie to the even one; out_n: as they are read back. Returns the scale; 0 where all
// are 0.
double sinkproof_quantise(int bits, size_t n, const double *x_n, double *out_n);
// No number is read back farther off, the division and the product rounded to binary64.
double sinkproof_quantise_most(int bits, double scale);

// What one coordinate of a row's output may be off, keys and values being off by at most what is
// said: of the row as it runs alpha_j [n], of the row over exact keys the sink's weight; delta_j:
// scores, eps_j: values; most: the largest |v_j|.
double sinkproof_cache_bound(size_t n, const double *alpha_j, const double *delta_j,
                             const double *eps_j, double sink, double most);

#endif
