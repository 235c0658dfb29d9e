// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The collector of a census: it receives the points one after the other, in the order of the
// forward pass. Private to audit/studies/sinks/census*.c.
#ifndef SINKPROOF_CENSUS_INTERNAL_H
#define SINKPROOF_CENSUS_INTERNAL_H

#include "audit/studies/sinks/census.h"

typedef struct census_collector {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const sinkproof_census_options *options;
    sink_census *census;
    const char *file;        // source of the points, for errors
    size_t layer;            // current layer
    bool seen[TRACE_POINTS]; // seen in it, and in any layer so far:
    bool ever[TRACE_POINTS];
    // Of the current layer: rotated queries, rotated keys, and the output of attention, with the
    // heads of a token adjacent.
    double *q_nhd, *k_ngd, *o_nhd;
    size_t spike_norm, spike_position; // of the last state: the number of its norm, and its token
    sinkproof_spikes spikes;
    bool good; // false: see error
    sinkproof_error *error;
} census_collector;

// census_weights.c: a head's rows of weights into its metrics. Of A9: [n, n + 1], the sink last.
// bare: the map has no column of the sink.
void collector_take_weights(census_collector *c, size_t head, bool bare, const double *alpha_ij);
// Every head of the current layer from queries, keys and sinks. Returns false if memory runs out.
bool collector_compute_weights(census_collector *c);
// Value biases and outputs through W^O, and directions. Return false if memory runs out.
bool collector_take_outputs(census_collector *c);
bool collector_take_cosines(census_collector *c);

#endif
