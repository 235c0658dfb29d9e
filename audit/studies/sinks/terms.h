// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The four terms of every head's scores, measured on one run or trace (terms.split, terms.spread,
// terms.lead, terms.removed): points go in as they pass, layer by layer, a head's rows one at a
// time, so that no map is kept. Needs A2.q and A2.k; A6, or A4 where there is none, for how far the
// sum of the terms is from the engine's scores. Every number is estimated.
#ifndef SINKPROOF_SINKS_TERMS_H
#define SINKPROOF_SINKS_TERMS_H

#include "ref/points.h"
#include "ref/terms.h"

// Means over a head's rows. spread: over those with two visible keys or more; lead: of these, over
// those that see key 1; first: over those that see key 1. NAN: there is no such row.
typedef struct sinkproof_term_measure {
    double level, spread, lead;    // of the term, the scale with it
    double sink, first, variation; // of the weights, when the term goes
} sinkproof_term_measure;

typedef struct sinkproof_terms_head {
    double logit; // the sink's, the mean over the rows; -infinity: none
    double apart; // the largest |sum of the terms - score|, NAN: no score is known
    double score; // the largest |score|
    sinkproof_term_measure term[SINKPROOF_TERMS];
} sinkproof_terms_head;

// Where the scores beside the sum come from.
typedef enum sinkproof_terms_source {
    SINKPROOF_SCORES_UNKNOWN,
    SINKPROOF_SCORES_SHOWN,   // A6
    SINKPROOF_SCORES_COMPUTED // from A4, in binary64; from A2 where nothing rotates
} sinkproof_terms_source;

typedef struct sinkproof_terms_layer {
    bool known;    // A2.q and A2.k were there
    size_t window; // 0: every key up to the query
    sinkproof_terms_source source;
    double apart, score;         // the largest of the heads'
    sinkproof_terms_head *heads; // [n_heads]
} sinkproof_terms_layer;

typedef struct sinkproof_terms {
    const sinkproof_config *config;
    size_t n;
    sinkproof_terms_layer *layers; // [n_layers]
    sinkproof_model *kept;         // the weights as the engine keeps them
    double *cos_nd, *sin_nd;       // NULL: nothing rotates
    // Of the layer at hand, while points pass: A2.q and A2.k, and A4.q and A4.k.
    double *q_nhd, *k_ngd, *rotated_q_nhd, *rotated_k_ngd;
    bool held[SINKPROOF_TRACE_POINTS];
} sinkproof_terms;

// The points that sinkproof_terms_see takes.
enum { SINKPROOF_TERMS_POINTS = 5 };
extern const sinkproof_trace_point sinkproof_terms_points[SINKPROOF_TERMS_POINTS];

// For n tokens that the policy ran (NULL: nothing was rounded); free it also on failure.
bool sinkproof_terms_new(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
                         sinkproof_terms *terms, sinkproof_error *error);
void sinkproof_terms_free(sinkproof_terms *terms);

// A point of the layer at hand, or one head of it (SIZE_MAX: all), and the end of that layer.
bool sinkproof_terms_see(sinkproof_terms *terms, sinkproof_trace_point point, size_t layer,
                         size_t head, const double *values, sinkproof_error *error);
bool sinkproof_terms_end(sinkproof_terms *terms, size_t layer, sinkproof_error *error);

// How many layers are known.
size_t sinkproof_terms_known(const sinkproof_terms *terms);

#endif
