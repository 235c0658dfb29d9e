// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an engine is to the rest of audit/: a row of a table. runner.c lists them; each is one file
// that fills its row, so that another engine is a file and an entry of the list. Private to
// audit/engine/.
#ifndef SINKPROOF_KINDS_H
#define SINKPROOF_KINDS_H

#include "audit/engine/runner.h"

typedef struct sinkproof_engine_kind {
    const char *about;     // what it is, for --help; NULL: its name says it
    const char *policy;    // unless another is asked for
    sinkproof_held left;   // points held so, or less, are left out of a whole trace
    sinkproof_held unseen; // points held so, or less, it never has
    bool tuned;            // heeds threads, streamed and packed

    // Whether it can follow a policy; otherwise a sentence with what it can.
    bool (*serves)(const sinkproof_policy *policy, sinkproof_error *error);
    // *state is what the functions below take; what a failure leaves in it is freed too.
    bool (*open)(const sinkproof_model *model, const sinkproof_policy *policy,
                 const sinkproof_runner_options *options, void **state, sinkproof_error *error);
    void (*close)(void *state); // NULL is allowed
    bool (*forward)(void *state, size_t n, const int32_t *tokens_n, double *logits_v,
                    const sinkproof_observer *observer, sinkproof_error *error);
    size_t (*length)(const void *state);
    void (*reset)(void *state); // to no tokens

    // Whether it shows the point before it uses it, and goes on from what an observer puts there.
    bool (*replaces)(const sinkproof_policy *policy, sinkproof_trace_point point);

    // Of engines that run vector code: instruction set, threads, bytes of weights. Or NULL.
    const char *(*isa)(const void *state);
    int (*threads)(const void *state);
    size_t (*weight_bytes)(const void *state);
} sinkproof_engine_kind;

#endif
