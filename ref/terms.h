// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The effect of the four terms of a score (ref/mechanism.h) on their row, with or without rotated
// positions and a sink (doc/31-score-terms.md): functions of arrays, with sums over ascending
// indices in binary64. A NaN in an argument gives a NaN in the result; NAN also marks a quantity
// that a single key does not have.
#ifndef SINKPROOF_TERMS_H
#define SINKPROOF_TERMS_H

#include "ref/mechanism.h"

// terms.split: n rows of a head without their bias, and the bias once for each, both rotated by the
// positions of the tables cos_nd, sin_nd [n, d / 2]; cos_nd NULL: no rotation. x: rows of d
// numbers, `stride` apart. rest_nd, bias_nd: [n, d].
void sinkproof_terms_split(size_t n, size_t d, size_t stride, const double *x_nd, const double *b_d,
                           const double *cos_nd, const double *sin_nd, double *rest_nd,
                           double *bias_nd);

// terms.split: u_mj [SINKPROOF_TERMS, keys] for one query and its visible keys, including the
// scale.
void sinkproof_terms_row(size_t d, size_t keys, const double *a_d, const double *b_q_d,
                         const double *c_jd, const double *b_k_jd, double *u_mj);
// The sum of all terms except `without`; SINKPROOF_TERMS: of all four.
void sinkproof_terms_scores(size_t keys, const double *u_mj, size_t without, double *s_j);

// terms.spread: the mean of a term over the keys, and its standard deviation (NAN for one key). The
// deviation of equal keys is exactly 0.
double sinkproof_terms_level(size_t keys, const double *u_j);
double sinkproof_terms_spread(size_t keys, const double *u_j);
// terms.lead: the first key's term minus the mean of the others'; NAN if there are none.
double sinkproof_terms_lead(size_t keys, const double *u_j);

// terms.removed: weights of one row without a term minus those with all terms, [keys + 1] with the
// sink last: the change of the sink, of the first of these keys, and half the sum of all absolute
// changes.
typedef struct sinkproof_terms_change {
    double sink, first, variation;
} sinkproof_terms_change;
sinkproof_terms_change sinkproof_terms_changed(size_t keys, const double *alpha_j,
                                               const double *without_j);

#endif
