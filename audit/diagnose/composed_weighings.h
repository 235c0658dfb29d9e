// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#ifndef SINKPROOF_COMPOSED_WEIGHINGS_H
#define SINKPROOF_COMPOSED_WEIGHINGS_H

#include "audit/diagnose/composed_kernel.h"

typedef enum weighing_kind {
    WEIGH_KEYS,        // each weight before its division times a number, 0 for no key
    WEIGH_SCORES,      // each score times a number
    WEIGH_BY_KEY,      // each score and the number times the key's position
    WEIGH_BY_DISTANCE, // each score less the number times the distance
    WEIGH_SINK,        // the sink counts so often
    WEIGH_ZEROS        // so many keys have the score 0, and values of zeros
} weighing_kind;

// What the number depends on.
typedef enum weighing_by {
    BY_ALL, // nothing: it is one
    BY_ROW,
    BY_HEAD,
    BY_DISTANCE, // from the key to the query: keys before the window too
    BY_KEY,
    BY_HEAD_DISTANCE, // of each head its own
    BY_HEAD_KEY
} weighing_by;

typedef struct weighing {
    weighing_kind kind;
    weighing_by by;
    const double *table;
} weighing;

size_t weighing_numbers(const kernel *x, weighing_by by);
size_t weighing_index(const kernel *x, weighing_by by, size_t h, size_t i, size_t j);
// The output of a row under it; returns the first key.
size_t weighing_row(kernel *x, const weighing *w, size_t h, size_t i, double *y_c);
size_t weighing_first(const kernel *x, weighing_by by, size_t i);

// Numbers of each distance (by BY_HEAD_DISTANCE) or key (BY_HEAD_KEY): shared by all heads, [n],
// and of each head, [heads, n]. Returns false where they are not told, or memory runs out.
bool weighing_fit_keys(const composing *c, kernel *x, weighing_by by, double *shared,
                       double *of_heads);
// How often the sink or keys of score 0 count: in all rows and heads, in each row, or in each head.
void weighing_fit_terms(const composing *c, kernel *x, const weighing *w, double *table);
// The factor or the slope of the scores of each row or head. Returns false if memory runs out.
bool weighing_fit_scores(const composing *c, kernel *x, const weighing *w, double *table);

// Tries it, in the words of `made`, whose numbers are set here.
bool weighing_try(const operation *o, const kernel *x, const weighing *w, made_kind *made);

#endif
