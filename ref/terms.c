// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The four terms of a score in a row of attention (doc/31-score-terms.md): splits queries and keys,
// and measures how a term moves weight among keys, towards the first, and to the sink.
#include "ref/terms.h"

#include "ref/stages.h"

#include <math.h>
#include <string.h>

void sinkproof_terms_split(size_t n, size_t d, size_t stride, const double *x_nd, const double *b_d,
                           const double *cos_nd, const double *sin_nd, double *rest_nd,
                           double *bias_nd) {
    static const sinkproof_policy real = {.name = "real"}; // rounds nowhere
    for (size_t t = 0; t < n; t++) {
        //> terms.split
        for (size_t c = 0; c < d; c++) rest_nd[t * d + c] = x_nd[t * stride + c] - b_d[c];
        memcpy(bias_nd + t * d, b_d, d * sizeof *b_d);
        //< terms.split
    }
    if (cos_nd == NULL) return;
    //> terms.split
    sinkproof_rope(&real, n, 1, d, cos_nd, sin_nd, rest_nd);
    sinkproof_rope(&real, n, 1, d, cos_nd, sin_nd, bias_nd);
    //< terms.split
}

void sinkproof_terms_row(size_t d, size_t keys, const double *a_d, const double *b_q_d,
                         const double *c_jd, const double *b_k_jd, double *u_mj) {
    const double scale = 1.0 / sqrt((double)d);
    for (size_t j = 0; j < keys; j++) {
        //> terms.split
        double term_m[SINKPROOF_TERMS];
        sinkproof_mechanism_terms(d, a_d, b_q_d, c_jd + j * d, b_k_jd + j * d, term_m);
        for (size_t m = 0; m < SINKPROOF_TERMS; m++) u_mj[m * keys + j] = term_m[m] * scale;
        //< terms.split
    }
}

void sinkproof_terms_scores(size_t keys, const double *u_mj, size_t without, double *s_j) {
    //> terms.removed
    for (size_t j = 0; j < keys; j++) {
        s_j[j] = 0;
        for (size_t m = 0; m < SINKPROOF_TERMS; m++)
            if (m != without) s_j[j] += u_mj[m * keys + j];
    }
    //< terms.removed
}

double sinkproof_terms_level(size_t keys, const double *u_j) {
    //> terms.spread
    double sum = 0;
    for (size_t j = 0; j < keys; j++) sum += u_j[j];
    return sum / (double)keys;
    //< terms.spread
}

double sinkproof_terms_spread(size_t keys, const double *u_j) {
    if (keys < 2) return NAN;
    //> terms.spread
    double mean = 0, square = 0; // relative to the first key's term, so that equal terms give 0
    for (size_t j = 0; j < keys; j++) mean += u_j[j] - u_j[0];
    mean /= (double)keys;
    for (size_t j = 0; j < keys; j++) {
        double off = u_j[j] - u_j[0] - mean;
        square += off * off;
    }
    return sqrt(square / (double)keys);
    //< terms.spread
}

double sinkproof_terms_lead(size_t keys, const double *u_j) {
    //> terms.lead
    double ahead = 0;
    for (size_t j = 1; j < keys; j++) ahead += u_j[0] - u_j[j];
    return keys > 1 ? ahead / (double)(keys - 1) : NAN;
    //< terms.lead
}

sinkproof_terms_change sinkproof_terms_changed(size_t keys, const double *alpha_j,
                                               const double *without_j) {
    //> terms.removed
    double distance = 0;
    for (size_t j = 0; j <= keys; j++) distance += fabs(without_j[j] - alpha_j[j]);
    return (sinkproof_terms_change){.sink = without_j[keys] - alpha_j[keys],
                                    .first = without_j[0] - alpha_j[0],
                                    .variation = distance / 2};
    //< terms.removed
}
