// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the two halves of `sinkproof sinks`: the options of the half that measures.
#ifndef SINKPROOF_CMD_SINKS_H
#define SINKPROOF_CMD_SINKS_H

#include "audit/command/engine_options.h"
#include "audit/studies/sinks/part.h"

enum { SINKPROOF_SINKS_INPUTS = 64, SINKPROOF_SINKS_PARTS = 16 };

typedef struct sinkproof_sinks_options {
    const char *model, *trace, *html, *svg;
    const char *judged; // the file of --judge, which takes no MODEL
    const char *tokens[SINKPROOF_SINKS_INPUTS];
    size_t n_inputs;
    sinkproof_engine_choice how;
    double epsilon;
    bool epsilon_given, heads, any_model;
    bool asked[SINKPROOF_SINKS_PARTS]; // the requested parts, and their options
    const char *words[SINKPROOF_SINKS_PARTS];
} sinkproof_sinks_options;

// Its input is a sinkproof_sinks_options; a missing MODEL stays NULL.
const struct argp *sinkproof_sinks_parser(void);

// Runs `sinkproof sinks MODEL ...` and returns its exit code.
int sinkproof_sinks_of_model(const sinkproof_sinks_options *o, const char *json);

#endif
