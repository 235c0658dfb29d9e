// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The interface of an engine to the rest of audit/: a row of a table. Each engine is one file that
// fills its row, and runner.c lists the rows. Private to audit/engine/.
#ifndef SINKPROOF_KINDS_H
#define SINKPROOF_KINDS_H

#include "audit/engine/runner.h"

typedef struct engine_kind {
    const char *about;     // description for --help; NULL: the name is enough
    const char *policy;    // the default policy
    sinkproof_held left;   // points held this way, or less, are left out of a whole trace
    sinkproof_held unseen; // points held this way, or less, are never available
    bool tuned;            // uses threads, streamed and packed

    // Whether it can follow a policy; if not, the error says which policies it can follow.
    bool (*serves)(const sinkproof_policy *policy, sinkproof_error *error);
    // *state is passed to the functions below; after a failure, close is called on it too.
    bool (*open)(const sinkproof_model *model, const sinkproof_policy *policy,
                 const sinkproof_runner_options *options, void **state, sinkproof_error *error);
    void (*close)(void *state); // accepts NULL
    bool (*forward)(void *state, size_t n, const int32_t *tokens_n, double *logits_v,
                    const sinkproof_observer *observer, sinkproof_error *error);
    size_t (*length)(const void *state);
    void (*reset)(void *state); // back to no tokens

    // Whether it shows the point before it uses it, and continues from the values that an observer
    // writes.
    bool (*replaces)(const sinkproof_policy *policy, sinkproof_trace_point point);

    // For engines that run vector code: instruction set, threads, bytes of weights. May be NULL.
    const char *(*isa)(const void *state);
    int (*threads)(const void *state);
    size_t (*weight_bytes)(const void *state);
} engine_kind;

#endif
