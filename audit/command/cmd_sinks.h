// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the two halves of `sinkproof sinks`: the options of the half that measures.
#ifndef SINKPROOF_CMD_SINKS_H
#define SINKPROOF_CMD_SINKS_H

#include "audit/command/engine_options.h"
#include "audit/studies/sinks/part.h"

enum { SINKS_INPUTS = 64, SINKS_PARTS = 16 };

typedef struct sinks_options {
    const char *model, *trace, *html, *svg;
    const char *alone;  // of --trace, which takes no MODEL
    const char *judged; // the file of --judge, which takes no MODEL
    const char *tokens[SINKS_INPUTS];
    size_t n_inputs;
    engine_choice how;
    double epsilon;
    bool epsilon_given, heads, any_model;
    heads_hidden hidden;     // of --hide
    bool asked[SINKS_PARTS]; // the requested parts, and their options
    const char *words[SINKS_PARTS];
} sinks_options;

// Its input is a sinks_options; a missing MODEL stays NULL.
const struct argp *cmd_sinks_parser(void);

// Runs `sinkproof sinks MODEL ...` and returns its exit code.
int cmd_sinks_model(const sinks_options *o, const char *json);

#endif
