// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear maps of the truth end to end: stored weights decoded a few rows at a time, products in
// binary64.
#include "audit/judge/judge_truth_maps.h"

#include "audit/judge/judge_internal.h"

#include <stdlib.h>

double *judge_truth_array(size_t count) {
    return malloc((count > 0 ? count : 1) * sizeof(double));
}

// At most JUDGE_TRUTH_ROWS rows from r0 on; b_r is the whole bias. w_rc stays NULL if memory
// runs out.
judge_truth_rows judge_truth_decoded(const sinkproof_matrix *w, size_t r0, const double *b_r) {
    size_t rows = w->rows - r0 < JUDGE_TRUTH_ROWS ? w->rows - r0 : JUDGE_TRUTH_ROWS;
    judge_truth_rows some = {rows, w->cols, judge_truth_array(rows * w->cols),
                             b_r != NULL ? b_r + r0 : NULL};
    for (size_t r = 0; some.w_rc != NULL && r < rows; r++)
        sinkproof_matrix_row(w, r0 + r, &some.w_rc[r * w->cols]);
    return some;
}

// y[m, rows] = x[m, cols] w[rows, cols]^T + b. Returns false if w was not decoded.
bool judge_truth_multiply(size_t m, const judge_truth_rows *w, const double *x, double *y,
                          size_t stride) {
    if (w->w_rc == NULL) return false;
    sinkproof_matrix_times(m, w->rows, w->cols, x, w->w_rc, y, stride);
    for (size_t i = 0; w->b_r != NULL && i < m; i++)
        for (size_t r = 0; r < w->rows; r++) y[i * stride + r] += w->b_r[r];
    return true;
}

// The whole bias, or NULL where there is none. False: no memory.
static bool decode_bias(const sinkproof_matrix *b, double **b_r) {
    bool biased = b != NULL && b->count > 0;
    *b_r = biased ? vector_decode(b) : NULL;
    return !biased || *b_r != NULL;
}

// The same with a stored weight, on one thread.
bool judge_truth_apply(size_t m, const sinkproof_matrix *w, const sinkproof_matrix *b,
                       const double *x, double *y) {
    double *b_r;
    bool fine = decode_bias(b, &b_r);
    for (size_t r0 = 0; fine && r0 < w->rows; r0 += JUDGE_TRUTH_ROWS) {
        judge_truth_rows some = judge_truth_decoded(w, r0, b_r);
        fine = judge_truth_multiply(m, &some, x, y + r0, w->rows);
        free(some.w_rc);
    }
    free(b_r);
    return fine;
}

// The same on all threads.
bool judge_truth_project(size_t m, const sinkproof_matrix *w, const sinkproof_matrix *b,
                         const double *x, double *y) {
    double *b_r;
    bool fine = decode_bias(b, &b_r);
    size_t blocks = (w->rows + JUDGE_TRUTH_ROWS - 1) / JUDGE_TRUTH_ROWS;
#pragma omp parallel for schedule(dynamic, 1) reduction(&& : fine)
    for (size_t block = 0; block < blocks; block++) {
        judge_truth_rows some = judge_truth_decoded(w, block * JUDGE_TRUTH_ROWS, b_r);
        fine = judge_truth_multiply(m, &some, x, y + block * JUDGE_TRUTH_ROWS, w->rows) && fine;
        free(some.w_rc);
    }
    free(b_r);
    return fine;
}
