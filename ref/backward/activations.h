// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the backward pass reads of a forward pass: the points of every layer, kept as an observer
// sees them.
#ifndef SINKPROOF_ACTIVATIONS_H
#define SINKPROOF_ACTIVATIONS_H

#include "ref/forward.h"
#include "ref/points.h"

typedef struct sinkproof_activations {
    size_t n, n_layers;
    const int32_t *tokens_n;
    double **at_lp; // [layers, TRACE_POINTS]; NULL: the model has no such point
    const sinkproof_config *config;
    sinkproof_observer observer;    // to pass to sinkproof_forward, for all n tokens at once
    const sinkproof_observer *next; // sees every point after it, or NULL
} sinkproof_activations;

// Room for every point of n tokens, which outlive it.
bool sinkproof_activations_new(const sinkproof_config *config, size_t n, const int32_t *tokens_n,
                               sinkproof_activations **a, sinkproof_error *error);
void sinkproof_activations_free(sinkproof_activations *a);

// A point of a layer; T0, F1 and F2 are in layer 0.
static inline const double *sinkproof_activations_at(const sinkproof_activations *a, size_t layer,
                                                     sinkproof_trace_point point) {
    return a->at_lp[layer * TRACE_POINTS + (size_t)point];
}

#endif
