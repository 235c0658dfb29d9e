// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge --plugin`: calls an engine's stages with generated inputs and judges each call
// by the honest set of its operation. The inputs and outputs of a call become a trace of one layer,
// in a model whose weights are in memory, so that the ordinary judge of traces judges them.
#ifndef SINKPROOF_AUDIT_PLUGIN_H
#define SINKPROOF_AUDIT_PLUGIN_H

#include "audit/sinkproof.h"

#include <jansson.h>

typedef struct sinkproof_plugin_options {
    const char *path; // of the shared object, or "builtin:fast"; NULL with `collect`, `inside`
    const sinkproof_plugin *inside; // the plug-in itself, which runs in this process
    const sinkproof_error *said;    // of `inside`: what a stage says of its failure; or NULL
    const bool *stop;               // of `inside`: set by a stage that ends everything; or NULL
    size_t limit;                   // calls of a stage at most; 0: all
    const char *stages;             // separated by commas; NULL: all
    const char *only;    // one call, as the report prints it ("attention:n=17,..."); NULL: all
    const char *policy;  // NULL: the plug-in's own
    const char *model;   // source of sizes and constants; NULL: small ones
    const char *emit;    // write the inputs to this directory, and judge nothing
    const char *collect; // judge the outputs in this directory
    double rate;         // of false alarms, per tensor, of the likely set and of drift
    double seconds;      // time limit of one call
    uint64_t seed;       // of the inputs
    bool strict;         // exit code 1 for suspicious, 4 for undecided
    bool any_model;      // `collect` even with another model than the inputs were made for
    bool first;          // stop a stage at its first failing calls
    bool no_cause;       // look for no cause of failing calls
    void (*progress)(void *context, const char *stage, double share); // or NULL
    void (*writes)(void *context, const char *sentence); // of `emit`: before it writes; or NULL
    void *context;
} sinkproof_plugin_options;

typedef struct sinkproof_plugin_ruling {
    int exit;        // 0, 1 or 4
    char *text;      // the report
    json_t *results; // the same as JSON, a result for each stage
} sinkproof_plugin_ruling;

// Returns false if the plug-in cannot be loaded, an option is invalid, or memory runs out. The
// caller frees the members of the ruling.
bool sinkproof_judge_plugin(const sinkproof_plugin_options *options,
                            sinkproof_plugin_ruling *ruling, sinkproof_error *error);

// Checks the stages, the one call and the policy in the options.
bool sinkproof_plugin_check(const sinkproof_plugin_options *options, sinkproof_error *error);

// The stages that a plug-in may define: "rmsnorm, qkv, ...".
void plugin_stage_names(char *text, size_t size);

#endif
