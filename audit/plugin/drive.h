// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is found of a stage over all its calls, and how it is told.
#ifndef SINKPROOF_DRIVE_H
#define SINKPROOF_DRIVE_H

#include "audit/plugin/drill.h"

typedef struct sinkproof_driver {
    sinkproof_worker *worker; // NULL: the outputs are collected
    sinkproof_config config;  // whose constants are used
    sinkproof_policy policy;
    double rate;
    bool first; // leave a stage at the first calls that fail
    void (*progress)(void *context, const char *stage, double share); // or NULL
    void *context;
} sinkproof_driver;

// What a call may have that another has not: "have a window".
enum { SINKPROOF_TRAITS = 14 };
const char *sinkproof_trait_words(size_t trait);

typedef struct sinkproof_stage_result {
    const sinkproof_stage_row *stage;
    size_t calls, failing, suspicious, undecided, not_served; // calls: those that were served
    bool left_out;           // calls broke, or the first failure was enough: not all were made
    sinkproof_case at;       // the smallest failing call, or a suspicious one
    sinkproof_outcome worst; // what it showed
    size_t failing_with[SINKPROOF_TRAITS], passing_with[SINKPROOF_TRAITS];
} sinkproof_stage_result;

void sinkproof_result_count(sinkproof_stage_result *result, const sinkproof_case *c,
                            const sinkproof_outcome *outcome);

// The calls of a plan, all of one stage. False: no memory, no process.
bool sinkproof_drive_stage(const sinkproof_driver *driver, const sinkproof_plan *plan,
                           sinkproof_stage_result *result, sinkproof_error *error);

// ---- report.c

// What all results come to: 0, 1 or 4.
int sinkproof_results_exit(const sinkproof_stage_result *results, size_t n, bool strict);
// The report into memory, and as JSON. `again` is the command line that `--case` is added to.
bool sinkproof_results_tell(const sinkproof_stage_result *results, size_t n, const char *title,
                            const char *again, int code, sinkproof_plugin_ruling *ruling,
                            sinkproof_error *error);

#endif
