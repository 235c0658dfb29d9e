// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The options of a command that runs one of this project's engines: the engine, its policy, and the
// storage of its weights. It is a child of the command's own parser.
#ifndef SINKPROOF_ENGINE_OPTIONS_H
#define SINKPROOF_ENGINE_OPTIONS_H

#include "audit/command/command.h"
#include "audit/command/fastest.h"
#include "audit/engine/runner.h"

#include <argp.h>

typedef struct engine_choice {
    const char *engine, *policy, *packed, *isa; // engine NULL: the first of the list
    size_t threads;                             // 0: not given
    bool streamed;
    bool unnamed;         // no engine was named
    fastest_sets fastest; // a tuned engine's instruction sets, after engine_settle_policy
} engine_choice;

// Its input is a engine_choice; after parsing, the engine is set and known.
extern const struct argp engine_parser;

// Chooses an engine that the user did not name, for n tokens without logits: the fast path, one
// layer's weights at a time, where the reference would take minutes and the fast path supports the
// model and the policy.
void engine_choose_suited(engine_choice *o, const sinkproof_config *config, size_t n);

// Sets the policy, by default the engine's, which must support it; and a tuned engine's instruction
// sets, which are measured if none is named.
bool engine_settle_policy(engine_choice *o, sinkproof_policy *policy, sinkproof_error *error);

// Opens the engine over a model, ready for max_tokens; prints the engine's settings on standard
// error.
bool engine_runner_start(const char *command, const engine_choice *o, const sinkproof_model *model,
                         const sinkproof_policy *policy, size_t max_tokens,
                         sinkproof_runner **runner, sinkproof_error *error);
// The options that engine_runner_start passes to the engine.
sinkproof_runner_options engine_runner_options(const engine_choice *o, size_t max_tokens);

// Parses a whole number from 1 to `most`, or ends with a usage error.
size_t option_count(struct argp_state *state, const char *name, const char *text,
                    unsigned long long most);
// Parses the threshold of a sink, 0 <= epsilon < 1, or ends with a usage error.
double option_epsilon(struct argp_state *state, const char *text);

#endif
