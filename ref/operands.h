// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How a matrix product reads operands and sums, apart from the rounding of its stored inputs and
// output: an operand rounded when it is read (A2.in, ...), each product (A2.term), the running sum
// (A2.acc). Most engines round none of the three.
#ifndef SINKPROOF_OPERANDS_H
#define SINKPROOF_OPERANDS_H

#include "model/matrix.h"
#include "ref/scaled.h"
#include "ref/tensor_core.h"

// The format to which `policy` rounds an operand at the point `in` when it is multiplied by
// `weight`; never OF_WEIGHT: an engine that follows its weights rounds to their format, and for
// weights in blocks to Q8_0, Q8_1 (blocks of 32 with a minimum) or Q8_K (blocks of 256).
sinkproof_format operand_format(const sinkproof_policy *policy, sinkproof_point in,
                                const sinkproof_matrix *weight);

// The same with the scale that the policy says there (ref/scaled.h).
sinkproof_rounding sinkproof_operand_rounding(const sinkproof_policy *policy, sinkproof_point in,
                                              const sinkproof_matrix *weight);

// out_c = x_c[n] as read: each number rounded, blocks of 32 from the first number on, or with the
// scale of a row (a tensor's is stated here: scaled_settled).
void sinkproof_operand_row(sinkproof_rounding how, size_t n, const double *x_c, double *out_c);

// The number of sums that a product reads beside the numbers of a row, one for each minimum of a
// weight's row (bound.q8-minima): none, unless `format` is Q8_1 or Q8_K.
size_t sinkproof_operand_sums(sinkproof_format format, const sinkproof_matrix *weight);
enum { SINKPROOF_SUMMED = 32 }; // numbers in a sum

// sinkproof_operand_row and behind it the `sums` sums, or zeros: out_c[n + sums].
void sinkproof_operand_row_and_sums(sinkproof_rounding how, size_t n, size_t sums,
                                    const double *x_c, double *out_c);
// The numbers of a block of Q8_0 and Q8_1, and of Q8_K; 0: another format.
size_t sinkproof_whole_block(sinkproof_format format);

// The number of terms that are summed before they are added to the others: a block whose scale is a
// power of two, or all terms.
size_t sinkproof_terms_together(const sinkproof_matrix *weight);

// A sum in ascending order, by so many products at a time: one, or a block of a matrix unit. It
// rounds only where the policy says so.
typedef struct running_points {
    sinkproof_format term;
    sinkproof_rounding acc;
    size_t together;
} running_points;

// Whether the sum is that of parts, each rounded; then the number of products in a part of n.
bool sinkproof_sum_is_in_parts(sinkproof_rounding acc);
size_t sinkproof_sum_part_products(sinkproof_rounding acc, size_t n);

running_points running_points_at(const sinkproof_policy *policy, sinkproof_point term,
                                 sinkproof_point acc);

// The sum after the next of the `left` products a_k b_(k stride) that are still to come: one, or a
// block.
static inline double running_add(const running_points *r, double sum, size_t left,
                                 const double *a_k, const double *b_k, size_t stride) {
    if (r->acc.format == SINKPROOF_TENSOR_CORE)
        return sinkproof_core_add(r->acc, sum, left < r->together ? left : r->together, a_k, b_k,
                                  stride);
    double product = a_k[0] * b_k[0];
    if (r->term != SINKPROOF_REAL) product = sinkproof_round(r->term, product);
    return r->acc.format == SINKPROOF_REAL ? sum + product
                                           : sinkproof_round(r->acc.format, sum + product);
}

#endif
