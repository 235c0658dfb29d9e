// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// `sinkproof judge --plugin`: an engine's stages, called with inputs that are made for them, and
// each call judged by the honest set of its operation. What the plug-in is called with and what it
// gives is a trace of one layer, in a model whose weights are held in memory, so that the judge of
// everybody's traces judges here too.
#ifndef SINKPROOF_AUDIT_PLUGIN_H
#define SINKPROOF_AUDIT_PLUGIN_H

#include "audit/sinkproof.h"

#include <jansson.h>

typedef struct sinkproof_plugin_options {
    const char *path;    // of the shared object, or "builtin:fast"; NULL: with `collect`
    const char *stages;  // separated by commas; NULL: all that there are
    const char *only;    // one call, as it is printed ("attention:n=17,..."); NULL: all
    const char *policy;  // NULL: what the plug-in declares
    const char *model;   // whose sizes and constants are taken; NULL: small ones
    const char *emit;    // write the inputs into this directory, and judge nothing
    const char *collect; // judge the outputs that lie in this directory
    double rate;         // false alarms per tensor of the likely set and of drift
    double seconds;      // that one call may take
    uint64_t seed;       // of the inputs
    bool strict;         // suspicious exits 1, undecided 4
    bool any_model;      // `collect` with another model than its inputs were made for
    bool first;          // leave a stage at the first calls that fail
    void (*progress)(void *context, const char *stage, double share); // or NULL
    void *context;
} sinkproof_plugin_options;

typedef struct sinkproof_plugin_ruling {
    int exit;        // 0, 1 or 4
    char *text;      // the report
    json_t *results; // the same, a result for each stage
} sinkproof_plugin_ruling;

// False: the plug-in cannot be loaded, the words of the options name nothing, no memory. The
// ruling's parts are the caller's.
bool sinkproof_judge_plugin(const sinkproof_plugin_options *options,
                            sinkproof_plugin_ruling *ruling, sinkproof_error *error);

// Whether the words of the options mean something: stages, the one call, the policy.
bool sinkproof_plugin_check(const sinkproof_plugin_options *options, sinkproof_error *error);

// The stages that a plug-in may have: "rmsnorm, qkv, ...".
void sinkproof_plugin_stage_names(char *text, size_t size);

#endif
