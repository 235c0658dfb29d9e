// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof truth` does at the end of each layer: it writes the work file and shows how far
// the run is.
#ifndef SINKPROOF_COMMAND_TRUTH_LAYERS_H
#define SINKPROOF_COMMAND_TRUTH_LAYERS_H

#include "audit/verify/truth_work.h"

typedef struct truth_layers {
    const sinkproof_model *model;
    truth_work *work; // its path is NULL: none
    const truth_study *study;
    size_t done;                 // layers before this walk
    double began, layer, logits; // the clock; weights of a layer, and of the unembedding
} truth_layers;

// Begins to watch a walk behind so many layers. The result is the context of the function below,
// which is the study's `layer`.
truth_layers truth_layers_begin(const sinkproof_model *model, truth_work *work,
                                const truth_study *study, size_t done);
bool truth_layer_ends(void *context, const sinkproof_truth_state *state, sinkproof_error *error);
// Ends the line of progress.
void truth_layers_end(void);

// The lines that say which run it is, malloc'ed: version, model, tokens, and what was asked. `of`
// names the role of the trace, whose bytes are summed; certified is 0 where the bits are stated.
typedef struct truth_asked {
    const char *of, *points;
    const sinkproof_trace *trace;
    long bits, certified, check;
} truth_asked;
char *truth_identity(const truth_asked *asked, const sinkproof_model *model, size_t n,
                     const int32_t *tokens_n, sinkproof_error *error);

#endif
