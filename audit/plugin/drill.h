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

// ---- the arrays of a call (arrays.c)

// A point, the gradient of a point, or the gradient of a weight.
typedef size_t array_id;
enum {
    ARRAY_GRADIENTS = TRACE_POINTS,   // + a point
    ARRAY_WEIGHTS = 2 * TRACE_POINTS, // + a slot
    CALL_ARRAYS = ARRAY_WEIGHTS + SINKPROOF_SLOTS,
    ARRAY_NAME = 32
};
// "A4.q", "dA4.q", "dsink".
const char *array_name(array_id id, char name[ARRAY_NAME]);
// The point that an array is, or is the gradient of; false for a weight's.
bool array_point(array_id id, sinkproof_trace_point *point);
bool array_is_gradient(array_id id);

// ---- the table of stages (stages.c)

// The sizes and options of a call that a stage uses. Every stage uses LENGTH.
enum {
    STAGE_KNOWS_HEADS = 1 << 0, // heads, kv, dim
    STAGE_KNOWS_KEYS = 1 << 1,  // window
    STAGE_KNOWS_SINKS = 1 << 2,
    STAGE_KNOWS_HIDDEN = 1 << 3,
    STAGE_KNOWS_INTER = 1 << 4,
    STAGE_KNOWS_EXPERTS = 1 << 5, // experts, chosen
    STAGE_KNOWS_VOCAB = 1 << 6,
    STAGE_KNOWS_PASSES = 1 << 7, // chunk
    STAGE_KNOWS_LOSS = 1 << 8,   // gradients
};

// How the inputs are chosen.
typedef enum input_recipe {
    RECIPE_RANDOM,    // normal numbers
    RECIPE_EXACT,     // small whole numbers: exact in every order of summation
    RECIPE_RISING,    // each key outweighs all earlier ones: tests the mask's near edge
    RECIPE_FALLING,   // each key outweighs all later ones: tests the window's far edge
    RECIPE_LIMITS,    // at the clamp and one step beside it, zeros of both signs, overflow
    RECIPE_TIES,      // equal logits
    RECIPE_ZEROS,     // of both signs
    RECIPE_SUBNORMAL, // below the smallest normal number of float32
    RECIPE_HUGE,      // the exponential would overflow without a shift, a square nearly does
    RECIPE_EQUAL,     // equal rows
    RECIPE_COUNT
} input_recipe;

// The size of the sinks.
typedef enum sink_place {
    SINK_AROUND, // about that of the scores
    SINK_NONE,   // -infinity
    SINK_FAR_BELOW,
    SINK_BELOW,
    SINK_ABOVE,
    SINK_FAR_ABOVE,
    // 88.8 to 104 above: exp(sink - maximum) overflows float32 if the maximum leaves the sink out
    SINK_OVERFLOWING,
    SINK_PLACES
} sink_place;

enum { STAGE_ARRAYS = 9 };
typedef struct stage_row {
    const char *name;
    unsigned knows;   // STAGE_KNOWS_...
    unsigned recipes; // as bits
    unsigned exact;   // bits of `to`: outputs that are exact in every order for EXACT inputs
    size_t n_from;
    array_id from[7];
    size_t n_weights;
    sinkproof_slot weights[6];
    size_t n_to;
    array_id to[4];
} stage_row;

bool stage_goes_back(const stage_row *stage);
// Whether the gradient of A9.lse is among its inputs, 0 where the loss does not read it.
bool stage_reads_lse(const stage_row *stage);

// Of its outputs the last ones are offered: only some engines have them.
size_t stage_offered(const stage_row *stage);
const stage_row *stage_at(size_t i);                           // NULL: i is too large
const stage_row *stage_named(const char *name, size_t length); // or NULL
// The error for an unknown name: the nearest one, and all names.
bool stage_name_error(const char *word, size_t length, sinkproof_error *error);

// ---- a call in words (stages.c)

typedef struct stage_case {
    const stage_row *stage;
    size_t n, chunk; // all tokens, and tokens in a pass; chunk 0: all at once
    size_t window, heads, kv, dim, hidden, inter, experts, chosen, vocab;
    input_recipe recipe;
    sink_place sinks;
    bool lse;  // A9.lse is among the outputs
    bool dlse; // the loss reads A9.lse
    uint64_t seed;
    size_t number; // of its files, where calls go through files
} stage_case;

enum { CASE_TEXT = 256 };
// Writes "attention:n=17,heads=4,kv=2,dim=64,...", with only the sizes that the stage uses.
void case_print(const stage_case *c, char text[CASE_TEXT]);
// Sizes that are left out are taken from `base`.
bool case_parse(const char *text, const stage_case *base, stage_case *c, sinkproof_error *error);
// Sets the sizes that the stage does not use to their minimum.
void case_settle_unknown(stage_case *c);
// Whether A9.lse is something in it: of one kind or the other.
bool case_has_lse(const stage_case *c);
// The number of its outputs, stage->to.
size_t case_outputs(const stage_case *c);
// The configuration of one layer with the case's sizes; the constants come from `base`.
sinkproof_config case_config(const stage_case *c, const sinkproof_config *base);

// ---- a call in arrays (inputs.c)

typedef struct call_arrays {
    sinkproof_config config;
    size_t n;
    const sinkproof_policy *made; // in whose formats the inputs are
    float *at[CALL_ARRAYS];       // inputs and outputs; NULL: neither
    float *weight[SINKPROOF_SLOTS];
} call_arrays;

// The limit for the arrays of a case; larger cases are not served.
enum { CALL_BYTES = 1 << 29 };
bool case_is_too_large(const stage_case *c, const sinkproof_config *base);

// Rounds x to float32 and to the format; larger numbers become the format's largest.
float number_as_stored(sinkproof_format format, double x);
// Makes the inputs, in the policy's formats, and outputs filled with NaN. The caller frees them.
bool arrays_make(const stage_case *c, const sinkproof_config *base, const sinkproof_policy *policy,
                 call_arrays *a, sinkproof_error *error);
void arrays_free(call_arrays *a);
// In which an engine of the policy stores an array, without loss: BF16, F16 or F32; I32 for
// experts.
sinkproof_dtype array_dtype(const sinkproof_policy *policy, array_id id);
// Weights are bfloat16 numbers: BF16 beside points in BF16, else F32.
sinkproof_dtype weight_dtype(const sinkproof_policy *policy, const stage_row *stage);
// Room for an array, filled with NaN; false without memory.
bool array_make(call_arrays *a, array_id id);
size_t array_count(const call_arrays *a, array_id id);
size_t array_shape(const sinkproof_config *config, array_id id, size_t n,
                   size_t shape[SINKPROOF_RANK]);
// What the forward pass made of the inputs of a stage that goes back: A11 in the policy's format,
// and A9.lse, with the sink or without it. Returns false without memory.
bool fill_forward(const stage_case *c, const sinkproof_policy *policy, call_arrays *a);
// [count, rows, cols] without leading ones for a vector; returns the rank.
size_t weight_shape(const sinkproof_config *config, sinkproof_slot slot,
                    size_t shape[SINKPROOF_RANK]);

// ---- what A9.lse is (lse.c)

// The log-sum-exp with the sink, and of the keys alone. A call without it is judged as the first.
enum { LSE_WITH_SINK, LSE_OF_KEYS, LSE_KINDS };
typedef struct lse_kinds {
    bool has;           // the engine has A9.lse
    bool as[LSE_KINDS]; // what it may be: one kind, or both where the engine does not say
} lse_kinds;

// Of the words "with-sink", "without-sink" and "either"; NULL: it has none.
bool lse_parse(const char *word, lse_kinds *kinds, sinkproof_error *error);
const char *lse_word(size_t kind);
// One kind of a call that has A9.lse, or has not.
lse_kinds lse_of_kind(bool has, size_t kind);

// ---- who makes a call

typedef enum call_end {
    CALL_DONE,
    CALL_NOT_SERVED,
    CALL_FAILED, // the plug-in failed: the error says how
    CALL_HUNG,   // the plug-in failed: it did not return in time
    CALL_ERROR   // this program failed
} call_end;

// A plug-in in a process of its own (worker.c), or in this one (inside.c).
typedef struct call_maker {
    const char *name, *policy; // as the plug-in tells them
    lse_kinds lse;
    bool (*has_stage)(const void *context, const stage_row *stage);
    call_end (*call)(void *context, const sinkproof_drill *drill, sinkproof_error *error);
    void *context;
} call_maker;

// Opens the plug-in of the options. `close` frees what `open` made; it is called if that has a
// context.
typedef struct call_opener {
    bool (*open)(const sinkproof_plugin_options *options, call_maker *maker,
                 sinkproof_error *error);
    void (*close)(call_maker *maker);
} call_opener;

// Judges the plug-in that the opener opens (plugin.c); else as sinkproof_judge_plugin.
bool plugin_judge_through(const call_opener *opener, const sinkproof_plugin_options *options,
                          sinkproof_plugin_ruling *ruling, sinkproof_error *error);

// Outputs are painted before a call.
void output_paint(float *values, size_t count);
uint32_t output_paint_word(size_t i); // the bits of element i
// Whether x was never written.
bool output_is_unwritten(float x);

// Runs all passes of a case (passes.c) and fills the outputs in a->point.
call_end case_call_passes(const call_maker *maker, const stage_case *c,
                          const sinkproof_policy *policy, call_arrays *a, sinkproof_error *error);

// ---- in a process of its own (worker.c)

typedef struct plugin_worker plugin_worker;
// Loads the plug-in in a process of its own. On failure the error says why: missing file, no
// symbol, a struct that is too small, an unknown stage.
bool worker_new(const char *path, double seconds, plugin_worker **worker, sinkproof_error *error);
void worker_free(plugin_worker *worker);

// In each call inputs are copied to the worker, outputs from it. A crash, a timeout or a write
// outside the outputs is CALL_FAILED, and the next call starts a new process.
call_maker worker_maker(plugin_worker *worker);

// ---- in this process (inside.c)

// options->inside: a write into an input is CALL_FAILED.
extern const call_opener inside_opener;

// ---- findings (finding.c)

// A model of one layer with the weights of `a`, which must outlive it.
bool case_model(const stage_case *c, const call_arrays *a, sinkproof_model **model,
                sinkproof_error *error);
// A trace with the inputs and outputs, or NULL; the error may be the plug-in's fault (an expert
// that does not exist). `kind` is that of A9.lse, if the case has it.
sinkproof_trace *case_trace(const sinkproof_model *model, const stage_case *c, const call_arrays *a,
                            size_t kind, sinkproof_error *error);

typedef struct case_outcome {
    bool served, broken, hung; // broken: it failed in another way than by wrong numbers
    bool lse_outside;          // elements of A9.lse are outside
    sinkproof_verdict verdict; // the worst of its points
    char why[640];             // a sentence about a bug or a suspicious result
} case_outcome;

// Judges the outputs of a case, as each kind that A9.lse may be. Returns false if memory runs out.
bool case_judge(const stage_case *c, const call_arrays *a, const sinkproof_policy *policy,
                double rate, const lse_kinds *lse, case_outcome outcome[LSE_KINDS],
                sinkproof_error *error);

// ---- which cases (plan.c)

typedef struct case_plan {
    size_t count, room;
    stage_case *cases;
} case_plan;
// Adds every case of base->stage. fixed: only with base's sizes, else with many. The cases of
// several stages follow each other in a plan.
bool plan_add_stage_cases(const stage_case *base, bool fixed, case_plan *plan,
                          sinkproof_error *error);

// Keeps at most `limit` cases of those from `from` on, in their order: a third of them in passes,
// as far as there are any, and both kinds evenly spread.
bool plan_keep_some(case_plan *plan, size_t from, size_t limit, sinkproof_error *error);

// Lists the smaller cases that may show the same failure, the smallest first; returns their number.
enum { CASE_SMALLER = 24 };
size_t case_list_smaller(const stage_case *c, stage_case smaller[CASE_SMALLER]);

// ---- out of process (files.c)

// The most bytes that the files of the plan's cases have, with the manifest.
double cases_bytes(const case_plan *plan, const sinkproof_config *base,
                   const sinkproof_policy *policy);
// Refuses a directory on whose disk fewer bytes are free. What cannot be asked is not refused.
bool cases_have_room(const char *directory, size_t calls, double bytes, sinkproof_error *error);
// Writes the inputs of every case of the plan, and a manifest, into a new or empty directory.
bool cases_write_inputs(const char *directory, const case_plan *plan, const sinkproof_config *base,
                        const sinkproof_policy *policy, const char *model, sinkproof_error *error);

// The manifest (manifest.c): a case, and the whole with what its words mean.
json_t *manifest_case(size_t number, const stage_case *c, const call_arrays *a);
json_t *manifest_whole(json_t *cases, const case_plan *plan, const sinkproof_policy *policy,
                       const char *model);

// Reads the manifest of such a directory, or some of its cases in any order: cases, its policy, and
// the model or "".
bool cases_read_manifest(const char *directory, const stage_case *base, case_plan *plan,
                         char policy[SINKPROOF_POLICY_NAME], char model[1024],
                         sinkproof_error *error);
// Reads the outputs of a case; *there: whether it has any. *lse is what the file says of A9.lse:
// the case has it if the file has.
bool case_read_outputs(const char *directory, stage_case *c, call_arrays *a, bool *there,
                       lse_kinds *lse, sinkproof_error *error);

// ---- our own kernels as a plug-in (builtin.c): "builtin:fast", or NULL
const sinkproof_plugin *plugin_builtin(const char *name);

#endif
