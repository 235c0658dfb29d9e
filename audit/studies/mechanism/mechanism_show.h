// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A measured mechanism as text of 100 columns and as JSON, and two side by side: the unchanged
// model, and the model with interventions.
#ifndef SINKPROOF_MECHANISM_SHOW_H
#define SINKPROOF_MECHANISM_SHOW_H

#include "audit/studies/mechanism/mechanism.h"

#include <jansson.h>
#include <stdio.h>

// The run, as the user stated it.
typedef struct sinkproof_mechanism_about {
    const char *model_name, *input; // input: "random:24", or the text
    const sinkproof_model *model;
    const sinkproof_policy *policy;
    bool normed;
    double epsilon; // of metric.sink
    bool every_head;
} sinkproof_mechanism_about;

// Prints the run and EPE; then the layers: Delta, alignment, gamma, the terms' leads, the sink.
void sinkproof_mechanism_print(const sinkproof_mechanism *m, const sinkproof_mechanism_about *about,
                               FILE *out);
// Prints, layer by layer, the sink of key 1 and of the keys to which an EPE was moved, before and
// after.
void sinkproof_mechanism_print_changed(const sinkproof_mechanism *before,
                                       const sinkproof_mechanism *after,
                                       const sinkproof_mechanism_about *about, FILE *out);
json_t *sinkproof_mechanism_json(const sinkproof_mechanism *m,
                                 const sinkproof_mechanism_about *about);

// For a layer: the mean over the heads of alpha_j, and the number of heads with a sink at key j.
double mechanism_mean_alpha(const sinkproof_mechanism *m, size_t layer, size_t j);
size_t mechanism_sink_count(const sinkproof_mechanism *m, size_t layer, size_t j, double epsilon);
// For a term: the mean of its lead over the heads.
double mechanism_mean_lead(const sinkproof_mechanism *m, size_t layer, sinkproof_term term);

#endif
