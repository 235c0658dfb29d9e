// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge MODEL --bisect CMD`: finds the shortest prompt that shows an engine's mistake.
#ifndef SINKPROOF_BISECT_H
#define SINKPROOF_BISECT_H

#include "model/model.h"

typedef struct bisect_request {
    const sinkproof_model *model;
    const char *command; // with {tokens}, {n} and {out}
    const char *policy;
    size_t n; // of the whole prompt
    const int32_t *tokens_n;
    double rate;
    bool any_model; // accept a trace that names another model
} bisect_request;

// Prints the result and returns the exit code: 1 if a prompt fails, 0 if none of those tried does.
int bisect_prompt(const bisect_request *b);

#endif
