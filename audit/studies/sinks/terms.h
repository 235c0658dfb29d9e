// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The four terms of every head's scores, measured on one run or trace (terms.split, terms.spread,
// terms.lead, terms.removed). Points come as they pass, layer by layer, and a head's rows are
// processed one at a time, so that no map is kept. It needs A2.q and A2.k; and A6, or else A4, to
// compare the sum of the terms with the engine's scores. Every number is estimated.
#ifndef SINKPROOF_SINKS_TERMS_H
#define SINKPROOF_SINKS_TERMS_H

#include "ref/points.h"
#include "ref/terms.h"

// Means over a head's rows. spread: over those with at least two visible keys; lead: over those of
// them that see key 1; first: over those that see key 1. NAN: there are no such rows.
typedef struct term_measure {
    double level, spread, lead;    // of the term, including the scale
    double sink, first, variation; // of the weights when the term is removed
} term_measure;

typedef struct terms_head {
    double logit; // of the sink, mean over the rows; -infinity: none
    double apart; // the largest |sum of the terms - score|; NAN: the scores are unknown
    double score; // the largest |score|
    term_measure term[SINKPROOF_TERMS];
} terms_head;

// The source of the scores that the sum is compared with.
typedef enum terms_source {
    SCORES_UNKNOWN,
    SCORES_SHOWN,   // A6
    SCORES_COMPUTED // from A4 in binary64; from A2 without a rotation
} terms_source;

typedef struct terms_layer {
    bool known;    // A2.q and A2.k were available
    size_t window; // 0: all keys up to the query
    terms_source source;
    double apart, score; // the largest over the heads
    terms_head *heads;   // [n_heads]
} terms_layer;

typedef struct score_terms_study {
    const sinkproof_config *config;
    size_t n;
    terms_layer *layers;     // [n_layers]
    sinkproof_model *kept;   // the weights as the engine stores them
    double *cos_nd, *sin_nd; // NULL: no rotation
    // Of the current layer: A2.q and A2.k, A4.q and A4.k.
    double *q_nhd, *k_ngd, *rotated_q_nhd, *rotated_k_ngd;
    bool held[TRACE_POINTS];
} score_terms_study;

// The points that terms_take_point needs.
enum { TERMS_POINTS = 5 };
extern const sinkproof_trace_point terms_points[TERMS_POINTS];

// For n tokens that ran under the policy (NULL: without roundings); free it also after a failure.
bool terms_new(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
               score_terms_study *terms, sinkproof_error *error);
void terms_free(score_terms_study *terms);

// A point of the current layer, or one head of it (SIZE_MAX: all heads), and the end of the layer.
bool terms_take_point(score_terms_study *terms, sinkproof_trace_point point, size_t layer,
                      size_t head, const double *values, sinkproof_error *error);
bool terms_end_layer(score_terms_study *terms, size_t layer, sinkproof_error *error);

// The number of layers with known terms.
size_t terms_known_layers(const score_terms_study *terms);

#endif
