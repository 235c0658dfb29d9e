// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The options of a command that runs one of this project's engines: which, under which policy, and
// how its weights are kept. A child of the command's own parser.
#ifndef SINKPROOF_ENGINE_OPTIONS_H
#define SINKPROOF_ENGINE_OPTIONS_H

#include "audit/command/command.h"
#include "audit/command/fastest.h"
#include "audit/engine/runner.h"

#include <argp.h>

typedef struct sinkproof_engine_choice {
    const char *engine, *policy, *packed, *isa; // engine NULL: the first of the list
    size_t threads;                             // 0: not given
    bool streamed;
    bool unnamed;              // nobody named an engine
    sinkproof_fastest fastest; // a tuned engine's instruction sets, once it is settled
} sinkproof_engine_choice;

// Its input is a sinkproof_engine_choice; after the line an engine is named, and known.
extern const struct argp sinkproof_engine_parser;

// An engine that nobody named, for n tokens without their logits: where the reference would take
// minutes and the fast path takes the model and the policy, that, one layer's weights at a time.
void sinkproof_engine_suit(sinkproof_engine_choice *o, const sinkproof_config *config, size_t n);

// The policy, by default the engine's, which must serve it; a tuned engine's instruction sets,
// which are measured where nobody names one.
bool sinkproof_engine_settle(sinkproof_engine_choice *o, sinkproof_policy *policy,
                             sinkproof_error *error);

// The engine over a model, ready for max_tokens; what runs goes to standard error.
bool sinkproof_engine_start(const char *command, const sinkproof_engine_choice *o,
                            const sinkproof_model *model, const sinkproof_policy *policy,
                            size_t max_tokens, sinkproof_runner **runner, sinkproof_error *error);
// How sinkproof_engine_start would have it run.
sinkproof_runner_options sinkproof_engine_how(const sinkproof_engine_choice *o, size_t max_tokens);

// A whole number from 1 to `most`, or a usage error.
size_t sinkproof_parse_count(struct argp_state *state, const char *name, const char *text,
                             unsigned long long most);
// The threshold of a sink, from 0 to less than 1, or a usage error.
double sinkproof_parse_epsilon(struct argp_state *state, const char *text);

#endif
