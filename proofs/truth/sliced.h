// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Products of stored weights and balls by exact slices (slices.h): OpenBLAS multiplies short
// integers, and no rounding happens before the last one. The midpoint is the exact product of the
// weights and the midpoints, each taken with all bits that its radius or the precision leaves
// standing. The radius is an upper bound of sum_c |w_c| radius_c, also a product of integers.
//
// The result depends on the row, the token and the precision: neither the number of threads nor the
// other tokens nor the library's order of summation change a bit.
#ifndef SINKPROOF_TRUTH_SLICED_H
#define SINKPROOF_TRUTH_SLICED_H

#include "model/matrix.h"
#include "proofs/truth/flint.h"

// Bits of an activation that are kept below its radius, or below the precision.
enum { SLICED_GUARD_BITS = 30 };

// What a product did, or would do.
typedef struct sliced_account {
    int digit_bits;    // s, of a digit of an activation
    size_t digits;     // of the token with the most
    size_t slices;     // of the row block with the most
    double dense;      // slices of a weight that were multiplied as a matrix, in the mean
    double sparse;     // nonzero integers in the others, for each weight
    size_t plain_rows; // rows that no slices hold: ball by ball
    size_t plain_tokens;
} sliced_account;

// out_nr = x_nc W^T + b; b may be NULL or have count 0. account may be NULL.
void sinkproof_sliced_linear(arb_ptr out_nr, arb_srcptr x_nc, size_t n,
                             const sinkproof_matrix *w_rc, const sinkproof_matrix *b_r, slong bits,
                             size_t threads, sliced_account *account);

// The bytes of its work space, at most: digits of the tokens that are multiplied together, and for
// each thread a block of rows.
double sinkproof_sliced_bytes(size_t rows, size_t cols, size_t n, slong bits, size_t threads);

// The same ball by ball, with arb_dot.
void truth_plain_linear(arb_ptr out_nr, arb_srcptr x_nc, size_t n, const sinkproof_matrix *w_rc,
                        const sinkproof_matrix *b_r, slong bits);

// The spread of a matrix, measured on rows_measured rows at even distances: how many bits, from the
// largest sum of a row's sizes to a weight's last bit, hold a share of the weights.
typedef struct sliced_plan {
    sliced_account expected; // plain_tokens is 0
    size_t rows_measured;
    int bits_most, bits_all; // for 99 of 100 weights, and for all
    double multiply_adds;    // in binary64, for each weight and token: slices times digits
} sliced_plan;

// For activations of `size` bits, a token at a time.
sliced_plan sinkproof_sliced_plan(const sinkproof_matrix *w_rc, slong size);

#endif
