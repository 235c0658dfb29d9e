// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How a census collects what it measures: points one after the other, in the order of the forward
// pass. Private to audit/studies/sinks/census*.c.
#ifndef SINKPROOF_CENSUS_INTERNAL_H
#define SINKPROOF_CENSUS_INTERNAL_H

#include "audit/studies/sinks/census.h"

typedef struct sinkproof_collector {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const sinkproof_census_options *options;
    sinkproof_census *census;
    const char *file;                  // whose points they are, for error sentences
    size_t layer;                      // at hand
    bool seen[SINKPROOF_TRACE_POINTS]; // of it; and at any layer so far:
    bool ever[SINKPROOF_TRACE_POINTS];
    // Of the layer at hand: rotated queries, rotated keys, and what attention leaves, with the
    // heads of a token side by side.
    double *q_nhd, *k_ngd, *o_nhd;
    size_t spike_norm, spike_position; // of the last state: which norm takes it, and its token
    sinkproof_spikes spikes;
    bool good; // false: error says why
    sinkproof_error *error;
} sinkproof_collector;

// census_weights.c: a head's rows of weights into its metrics. Of A9: [n, n + 1], the sink last.
void sinkproof_collect_shown(sinkproof_collector *c, size_t head, const double *alpha_ij);
// Every head of the layer at hand from queries, keys and sinks. False: no memory.
bool sinkproof_collect_computed(sinkproof_collector *c);
// Value biases and outputs through W^O, and directions. False: no memory.
bool sinkproof_collect_outputs(sinkproof_collector *c);
bool sinkproof_collect_cosines(sinkproof_collector *c);

#endif
