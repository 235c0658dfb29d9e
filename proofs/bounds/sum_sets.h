// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// From the sums S, A and Q of linear.c to honest sets.
#ifndef SINKPROOF_BOUNDS_SUM_SETS_H
#define SINKPROOF_BOUNDS_SUM_SETS_H

#include "proofs/bounds/tensor_core.h"

typedef struct sums {
    double *mid, *abs, *square;          // S, A, Q
    double *worst, *likely, *var, *bias; // from the inputs' freedom; NULL if all are known
    double *flushed; // the possible loss of operands read as zero; NULL if none is that small
    core_sums unit;  // what a matrix unit needs beside these (bound.tensor-core)
} sums;

// Quantities that all sums of one row share.
typedef struct row_terms {
    double n;           // rounded terms; a constant b adds one when `biased`
    double whole;       // products per term: integers times a scale, whose sum is exact
    double products;    // roundings of a term before it is added
    bool biased, leans; // leans: the format is narrow, so no error is assumed to be centred
    double gamma;       // relative error of all roundings that one term can undergo
    double here;        // relative error of the matrix products below, in units of A
    double under;       // absolute error that underflows can add to a nonzero sum
    double largest;     // largest number of the format inside
    core_terms core;    // of a matrix unit
} row_terms;

row_terms row_error_terms(const sinkproof_setting *s, const sinkproof_planes *x, double terms,
                          bool exact_products, bool biased, bool straddles);

// The set of one sum, at `at`, with the constant b.
sinkproof_honest sum_set(const sinkproof_setting *s, const row_terms *t, double b, const sums *c,
                         size_t at);
// Row i of the sums, each with its constant, or NULL.
void sums_row(const sinkproof_setting *s, const sums *c, const row_terms *t, size_t i, size_t rows,
              const double *b_r, sinkproof_honest *out_r);

#endif
