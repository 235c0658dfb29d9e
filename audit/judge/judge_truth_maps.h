// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear maps in binary64, of judge_truth.c alone.
#ifndef SINKPROOF_JUDGE_TRUTH_MAPS_H
#define SINKPROOF_JUDGE_TRUTH_MAPS_H

#include "model/matrix.h"

enum { JUDGE_TRUTH_ROWS = 256 }; // of a weight, decoded at a time

// Some decoded rows of a stored weight, and their biases or NULL.
typedef struct judge_truth_rows {
    size_t rows, cols;
    double *w_rc; // NULL: no memory
    const double *b_r;
} judge_truth_rows;

double *judge_truth_array(size_t count); // of doubles, also where count is 0; NULL: no memory

// At most JUDGE_TRUTH_ROWS rows from r0 on; b_r is the whole bias, or NULL.
judge_truth_rows judge_truth_decoded(const sinkproof_matrix *w, size_t r0, const double *b_r);
// y[m, rows] = x[m, cols] w[rows, cols]^T + b, rows of y `stride` apart. False: w was not decoded.
bool judge_truth_multiply(size_t m, const judge_truth_rows *w, const double *x, double *y,
                          size_t stride);
// The same with a whole stored weight, on one thread. b may be NULL or empty.
bool judge_truth_apply(size_t m, const sinkproof_matrix *w, const sinkproof_matrix *b,
                       const double *x, double *y);
bool judge_truth_project(size_t m, const sinkproof_matrix *w, const sinkproof_matrix *b,
                         const double *x, double *y); // on all threads

#endif
