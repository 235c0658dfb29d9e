// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The findings about a stage over all its calls, and their report.
#ifndef SINKPROOF_DRIVE_H
#define SINKPROOF_DRIVE_H

#include "audit/diagnose/call_causes.h"
#include "audit/plugin/drill.h"

typedef struct call_driver {
    call_maker maker;        // unused where outputs are read from files
    sinkproof_config config; // source of the constants
    sinkproof_policy policy;
    double rate;
    bool first; // stop a stage at its first failing calls
    void (*progress)(void *context, const char *stage, double share); // or NULL
    void *context;
} call_driver;

// Traits by which calls differ, such as "have a window".
enum { PLUGIN_TRAITS = 14 };
const char *trait_sentence(size_t trait);

// What A9.lse is in a stage's calls.
typedef struct lse_finding {
    size_t calls; // that have it; 0: it is not asked
    bool tried;   // the engine did not say: `kind` is the one that fits
    size_t kind;
    size_t outside[LSE_KINDS]; // calls with elements outside, as either kind
} lse_finding;

typedef struct stage_result {
    const stage_row *stage;
    size_t calls, failing, suspicious, undecided, not_served; // calls: only those that were served
    bool left_out;      // some calls were skipped: calls broke, or the first failure was enough
    stage_case at;      // the smallest failing call, or a suspicious one
    case_outcome worst; // its outcome
    size_t failing_with[PLUGIN_TRAITS], passing_with[PLUGIN_TRAITS];
    size_t n_failed, n_passed; // of calls that fail and of calls within, some that are kept
    stage_case failed[CAUSES_MOST_CALLS], passed[CAUSES_MOST_PASSING];
    sinkproof_call_causes causes;
    lse_finding lse;
} stage_result;

void stage_result_add(stage_result *result, const stage_case *c, const case_outcome *outcome);

// The findings as each kind that A9.lse may be .
typedef struct stage_kinds {
    lse_kinds lse; // the kinds that are still judged
    bool tried;
    size_t with_lse, outside[LSE_KINDS];
    stage_result of[LSE_KINDS];
} stage_kinds;

stage_kinds stage_kinds_begin(const stage_row *stage, lse_kinds lse);
void stage_kinds_say(stage_kinds *k, lse_kinds lse); // before any call that has A9.lse
void stage_kinds_add(stage_kinds *k, const stage_case *c, const case_outcome outcome[LSE_KINDS]);
// Leaves off judging calls as a kind that does not fit where the other one does: an honest engine
// is of one kind in all of its calls.
void stage_kinds_narrow(stage_kinds *k);
// The findings as the kind that fits; where neither does, as the one that fits more calls.
void stage_kinds_settle(const stage_kinds *k, stage_result *result);

// Makes and judges the calls of a plan, all of one stage. Returns false if memory runs out or no
// process can be started.
bool driver_run_stage(const call_driver *driver, const case_plan *plan, stage_result *result,
                      sinkproof_error *error);

// Makes a call that failed again, with the plug-in. *there: it has outputs.
bool driver_remake(const call_driver *driver, const stage_case *c, call_arrays *a, bool *there,
                   sinkproof_error *error);

// ---- cause.c

// Makes the arrays of a call again, inputs and outputs. *there: it has outputs. The caller frees
// the arrays.
typedef struct case_source {
    bool (*make)(void *context, const stage_case *c, call_arrays *a, bool *there,
                 sinkproof_error *error);
    void *context;
} case_source;

// Asks the smallest failing call and some of the others about every known mistake. Returns false if
// memory runs out or no process can be started.
bool stage_result_find_cause(const case_source *source, const sinkproof_policy *policy, double rate,
                             stage_result *result, sinkproof_error *error);
// "    Cause: the sink is left out [sink-dropped] (all of 9 failing calls asked)", or
// nothing.
void stage_result_print_cause(FILE *out, const stage_result *result);
json_t *stage_result_cause_json(const stage_result *result); // null: no call was asked

// ---- report.c

// The exit code for all results: 0, 1 or 4.
int results_exit_code(const stage_result *results, size_t n, bool strict);
// Writes the report into memory, and as JSON. `again` is the command line to which `--case` is
// added.
bool results_write_report(const stage_result *results, size_t n, const char *title,
                          const char *again, int code, sinkproof_plugin_ruling *ruling,
                          sinkproof_error *error);

#endif
