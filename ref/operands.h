// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a matrix product reads and how it adds up, apart from what is stored before and after: an
// operand rounded when it is read (A2.in, ...), each product (A2.term), the running sum (A2.acc).
// Most engines round none of the three.
#ifndef SINKPROOF_OPERANDS_H
#define SINKPROOF_OPERANDS_H

#include "model/matrix.h"
#include "ref/policy.h"

// What `policy` rounds an operand to at the point `in` when it meets `weight`; never OF_WEIGHT: an
// engine that follows its weights rounds to what they are kept in, and to Q8_0 beside blocks.
sinkproof_format sinkproof_operand_format(const sinkproof_policy *policy, sinkproof_point in,
                                          const sinkproof_matrix *weight);

// out_c = x_c[n] as it is read: each number rounded, or blocks of 32 from the first one on.
void sinkproof_operand_row(sinkproof_format format, size_t n, const double *x_c, double *out_c);

// The terms whose sum is finished before it joins the others: a block whose scale is a power of
// two, or all.
size_t sinkproof_terms_together(const sinkproof_matrix *weight);

// A sum that runs in ascending order. It rounds to nothing where the policy does not say so.
typedef struct sinkproof_running {
    sinkproof_format term, acc;
} sinkproof_running;

sinkproof_running sinkproof_running_at(const sinkproof_policy *policy, sinkproof_point term,
                                       sinkproof_point acc);

// sum + a b, rounded as the sum says.
static inline double sinkproof_run(const sinkproof_running *r, double sum, double a, double b) {
    double product = a * b;
    if (r->term != SINKPROOF_REAL) product = sinkproof_round(r->term, product);
    return r->acc == SINKPROOF_REAL ? sum + product : sinkproof_round(r->acc, sum + product);
}

#endif
