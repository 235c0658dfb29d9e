// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the files of audit/plugin/: the table of stages, a call in words and in arrays, the
// process that makes it, and the findings about it.
#ifndef SINKPROOF_DRILL_H
#define SINKPROOF_DRILL_H

#include "audit/judge/judge.h"
#include "audit/plugin/plugin.h"
#include "audit/trace/trace_points.h"
#include "model/slots.h"
#include "ref/policy.h"

// ---- the table of stages (stages.c)

// The sizes and options of a call that a stage uses. Every stage uses LENGTH.
enum {
    SINKPROOF_OF_HEADS = 1 << 0, // heads, kv, dim
    SINKPROOF_OF_KEYS = 1 << 1,  // window, chunk
    SINKPROOF_OF_SINKS = 1 << 2,
    SINKPROOF_OF_HIDDEN = 1 << 3,
    SINKPROOF_OF_INTER = 1 << 4,
    SINKPROOF_OF_EXPERTS = 1 << 5, // experts, chosen
    SINKPROOF_OF_VOCAB = 1 << 6,
};

// How the inputs are chosen.
typedef enum sinkproof_recipe {
    SINKPROOF_RANDOM,    // normal numbers
    SINKPROOF_EXACT,     // small whole numbers: exact in every order of summation
    SINKPROOF_RISING,    // each key outweighs all earlier ones: tests the mask's near edge
    SINKPROOF_FALLING,   // each key outweighs all later ones: tests the window's far edge
    SINKPROOF_LIMITS,    // at the clamp and one step beside it, zeros of both signs, overflow
    SINKPROOF_TIES,      // equal logits
    SINKPROOF_ZEROS,     // of both signs
    SINKPROOF_SUBNORMAL, // below the smallest normal number of float32
    SINKPROOF_HUGE,      // the exponential would overflow without a shift, a square nearly does
    SINKPROOF_EQUAL,     // equal rows
    SINKPROOF_RECIPES
} sinkproof_recipe;

// The size of the sinks.
typedef enum sinkproof_sink_place {
    SINKPROOF_SINK_AROUND, // about that of the scores
    SINKPROOF_SINK_NONE,   // -infinity
    SINKPROOF_SINK_FAR_BELOW,
    SINKPROOF_SINK_BELOW,
    SINKPROOF_SINK_ABOVE,
    SINKPROOF_SINK_FAR_ABOVE,
    SINKPROOF_SINK_PLACES
} sinkproof_sink_place;

enum { SINKPROOF_STAGE_ARRAYS = 8 };
typedef struct sinkproof_stage_row {
    const char *name;
    unsigned knows;   // SINKPROOF_OF_...
    unsigned recipes; // as bits
    unsigned exact;   // bits of `to`: outputs that are exact in every order for EXACT inputs
    size_t n_from;
    sinkproof_trace_point from[3];
    size_t n_weights;
    sinkproof_slot weights[6];
    size_t n_to;
    sinkproof_trace_point to[3];
} sinkproof_stage_row;

const sinkproof_stage_row *sinkproof_stage_at(size_t i); // NULL: i is too large
const sinkproof_stage_row *sinkproof_stage_named(const char *name, size_t length); // or NULL
// The error for an unknown name: the nearest one, and all names.
bool sinkproof_no_stage(const char *word, size_t length, sinkproof_error *error);

// ---- a call in words (stages.c)

typedef struct sinkproof_case {
    const sinkproof_stage_row *stage;
    size_t n, chunk; // all tokens, and tokens in a pass; chunk 0: all at once
    size_t window, heads, kv, dim, hidden, inter, experts, chosen, vocab;
    sinkproof_recipe recipe;
    sinkproof_sink_place sinks;
    uint64_t seed;
} sinkproof_case;

enum { SINKPROOF_CASE_TEXT = 256 };
// Writes "attention:n=17,heads=4,kv=2,dim=64,...", with only the sizes that the stage uses.
void sinkproof_case_print(const sinkproof_case *c, char text[SINKPROOF_CASE_TEXT]);
// Sizes that are left out are taken from `base`.
bool sinkproof_case_parse(const char *text, const sinkproof_case *base, sinkproof_case *c,
                          sinkproof_error *error);
// Sets the sizes that the stage does not use to their minimum.
void sinkproof_case_settle(sinkproof_case *c);
// The configuration of one layer with the case's sizes; the constants come from `base`.
sinkproof_config sinkproof_case_config(const sinkproof_case *c, const sinkproof_config *base);

// ---- a call in arrays (inputs.c)

typedef struct sinkproof_arrays {
    sinkproof_config config;
    size_t n;
    float *point[SINKPROOF_TRACE_POINTS]; // inputs and outputs; NULL: neither
    float *weight[SINKPROOF_SLOTS];
} sinkproof_arrays;

// The limit for the arrays of a case; larger cases are not served.
enum { SINKPROOF_CALL_BYTES = 1 << 29 };
size_t sinkproof_case_bytes(const sinkproof_case *c, const sinkproof_config *base);

// Makes the inputs, in the policy's formats, and outputs filled with NaN. The caller frees them.
bool sinkproof_arrays_make(const sinkproof_case *c, const sinkproof_config *base,
                           const sinkproof_policy *policy, sinkproof_arrays *a,
                           sinkproof_error *error);
void sinkproof_arrays_free(sinkproof_arrays *a);
size_t sinkproof_point_elements(const sinkproof_arrays *a, sinkproof_trace_point point);
// [count, rows, cols] without leading ones for a vector; returns the rank.
size_t sinkproof_weight_shape(const sinkproof_config *config, sinkproof_slot slot,
                              size_t shape[SINKPROOF_RANK]);

// ---- the process that calls (worker.c)

typedef enum sinkproof_call_end {
    SINKPROOF_CALL_DONE,
    SINKPROOF_CALL_NOT_SERVED,
    SINKPROOF_CALL_FAILED, // the plug-in failed: the error says how
    SINKPROOF_CALL_HUNG,   // the plug-in failed: it did not return in time
    SINKPROOF_CALL_ERROR   // this program failed
} sinkproof_call_end;

typedef struct sinkproof_worker sinkproof_worker;
// Loads the plug-in in a process of its own. On failure the error says why: missing file, no
// symbol, a struct that is too small, an unknown stage.
bool sinkproof_worker_new(const char *path, double seconds, sinkproof_worker **worker,
                          sinkproof_error *error);
void sinkproof_worker_free(sinkproof_worker *worker);
const char *sinkproof_worker_name(const sinkproof_worker *worker);
const char *sinkproof_worker_policy(const sinkproof_worker *worker);
bool sinkproof_worker_has(const sinkproof_worker *worker, const sinkproof_stage_row *stage);

// Makes one call: inputs are copied to the worker, outputs from it. A crash, a timeout or a write
// outside the outputs is SINKPROOF_CALL_FAILED, and the next call starts a new process.
sinkproof_call_end sinkproof_worker_call(sinkproof_worker *worker, const sinkproof_drill *drill,
                                         sinkproof_error *error);

// Whether x was never written: outputs are painted before a call.
bool sinkproof_is_unwritten(float x);

// Runs all passes of a case (passes.c) and fills the outputs in a->point.
sinkproof_call_end sinkproof_case_call(sinkproof_worker *worker, const sinkproof_case *c,
                                       sinkproof_arrays *a, sinkproof_error *error);

// ---- findings (finding.c)

typedef struct sinkproof_outcome {
    bool served, broken, hung; // broken: it failed in another way than by wrong numbers
    sinkproof_verdict verdict; // the worst of its points
    char why[640];             // a sentence about a bug or a suspicious result
} sinkproof_outcome;

// Judges the outputs of a case. Returns false if memory runs out.
bool sinkproof_case_judge(const sinkproof_case *c, const sinkproof_arrays *a,
                          const sinkproof_policy *policy, double rate, sinkproof_outcome *outcome,
                          sinkproof_error *error);

// ---- which cases (plan.c)

typedef struct sinkproof_plan {
    size_t count, room;
    sinkproof_case *cases;
} sinkproof_plan;
// Adds every case of base->stage. fixed: only with base's sizes, else with many. whole: no case in
// passes. The cases of several stages follow each other in a plan.
bool sinkproof_plan_add(const sinkproof_case *base, bool fixed, bool whole, sinkproof_plan *plan,
                        sinkproof_error *error);

// Lists the smaller cases that may show the same failure, the smallest first; returns their number.
enum { SINKPROOF_SMALLER = 24 };
size_t sinkproof_case_smaller(const sinkproof_case *c, sinkproof_case smaller[SINKPROOF_SMALLER]);

// ---- out of process (files.c)

// Writes the inputs of every case of the plan, and a manifest, into a new or empty directory.
bool sinkproof_cases_emit(const char *directory, const sinkproof_plan *plan,
                          const sinkproof_config *base, const sinkproof_policy *policy,
                          const char *model, sinkproof_error *error);

// Reads the manifest of such a directory: its cases, its policy, and the model or "".
bool sinkproof_cases_collect(const char *directory, const sinkproof_case *base,
                             sinkproof_plan *plan, char policy[SINKPROOF_POLICY_NAME],
                             char model[1024], sinkproof_error *error);
// Reads the outputs of case i; *there: whether it has any.
bool sinkproof_case_read(const char *directory, size_t i, const sinkproof_case *c,
                         sinkproof_arrays *a, bool *there, sinkproof_error *error);

// ---- our own kernels as a plug-in (builtin.c): "builtin:fast", or NULL
const sinkproof_plugin *sinkproof_plugin_builtin(const char *name);

#endif
