// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// sinkproof: is what an engine computes what GPT-OSS is, up to honest rounding?
//
// The public face of libsinkproof, for C11 and C++11. It needs nothing but libc. An engine
// developer takes one of two ways to a verdict:
//
//   sinkproof_model_open         a checkpoint, or a synthetic model that needs no disk
//
//   sinkproof_run_new            one engine of ours under a policy, in which
//   sinkproof_run_replace        your function takes the place of a stage, and
//   sinkproof_run_trace          a forward pass leaves a trace of every point
//     or
//   sinkproof_trace_builder_new  the arrays that your own engine left behind,
//   sinkproof_trace_builder_add  point by point
//     or
//   sinkproof_trace_open         a file that it wrote
//     or
//   sinkproof_plugin             stages in a shared object, for `sinkproof judge --plugin`
//
//   sinkproof_judge_trace        is every point what an honest engine may compute from the same
//                                inputs?
//   sinkproof_ruling_text        what `sinkproof judge` prints
//
// Rules that hold for all of it:
//   Errors are values. A function that can fail returns false and leaves a sentence in *error:
//     what was expected and what was found. `error` may be NULL. What it would have made is not
//     made, and its place is NULL. Lack of memory is such an error. Nothing here exits, aborts,
//     prints or keeps state between calls.
//   Threads. Any thread may use its own objects, and a model may be shared: it does not change.
//     A run and a builder belong to one thread at a time. Judging and engine fast use OpenMP
//     inside; OMP_NUM_THREADS limits it. The results do not depend on the number of threads.
//   Lifetimes. A model outlives its runs, traces, builders and rulings. Text that a function
//     returns lives as long as the object that it was asked of.
//   _close and _free take NULL; a function that asks an object, and cannot fail, does not.
//   Text that is given is UTF-8, ends with 0, and is copied.
//   Shapes are row-major, the last dimension dense: [n, heads, head_dim]. n is tokens.
//   A struct with a member `size` is filled or read up to that many bytes: set it to its sizeof.
//   A struct that starts as all zeros but for its size asks for the defaults.
//   Points are the tensors of a trace: "T0", "03.A11" (layer 3, two digits or more), "F2".
#ifndef SINKPROOF_PUBLIC_H
#define SINKPROOF_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SINKPROOF_VERSION "0.1.0"

// The version of the library that runs, "0.1.0": of the header it is SINKPROOF_VERSION.
const char *sinkproof_version(void);

#ifndef SINKPROOF_ERROR_DEFINED
#define SINKPROOF_ERROR_DEFINED
// One sentence, without control characters.
typedef struct sinkproof_error {
    char text[1024];
} sinkproof_error;
#endif

enum { SINKPROOF_RANK = 8 }; // dimensions that a tensor may have

// ---- model -----------------------------------------------------------------------------------

typedef struct sinkproof_model sinkproof_model;
typedef struct sinkproof_config sinkproof_config;

// Opens a checkpoint: a directory in Hugging Face's or OpenAI's layout, a file NAME.gguf, or
// "synthetic:NAME[,seed=N][,layers=N][,sink=KIND]", NAME one of tiny, gpt-oss-20b, gpt-oss-120b,
// tiny-gpt2, gpt2, gpt2-circuit, gpt2-null or the path of a config.json. Checks every tensor's
// presence, shape and dtype, and that every weight is a finite number (sinks may be -infinity).
bool sinkproof_model_open(const char *spec, sinkproof_model **model, sinkproof_error *error);
void sinkproof_model_close(sinkproof_model *model);
const char *sinkproof_model_spec(const sinkproof_model *model);   // as it was opened
const char *sinkproof_model_layout(const sinkproof_model *model); // "synthetic", "hf-mxfp4", ...
// Of configuration and weights as numbers: the same in every container and format.
bool sinkproof_model_fingerprint(const sinkproof_model *model, uint64_t *fingerprint,
                                 sinkproof_error *error);
// Lives with the model.
const sinkproof_config *sinkproof_model_config(const sinkproof_model *model);

// One number of the configuration: n_layers, n_experts, n_chosen (experts per token), vocab,
// hidden, inter, n_heads, n_kv_heads, head_dim, window, swiglu_alpha, swiglu_limit, rms_eps,
// rope_theta, yarn_factor, yarn_beta_fast, yarn_beta_slow, yarn_original_context, yarn_truncate (0
// or 1) or max_context. An unknown name is an error that lists them.
bool sinkproof_config_number(const sinkproof_config *config, const char *name, double *value,
                             sinkproof_error *error);
// Whether layer `layer` sees only the last `window` keys.
bool sinkproof_config_slides(const sinkproof_config *config, size_t layer);

// One weight as binary64 numbers, exactly as stored: values [rows, cols], or NULL to learn the
// shape alone. Names: attn_norm, w_q, w_k, w_v, b_q, b_k, b_v, sinks, w_o, b_o, mlp_norm, w_router,
// b_router; of one expert w_up, b_up, w_down, b_down (gate rows even, up rows odd); embedding,
// final_norm, unembedding (layer 0). GPT-2 has one w_up and one w_down without gates, no router,
// and besides attn_norm_b, mlp_norm_b, final_norm_b and positions. A vector has one row. `expert`
// is 0 where there is one matrix.
bool sinkproof_model_weight(const sinkproof_model *model, const char *name, size_t layer,
                            size_t expert, size_t shape[2], double *values, sinkproof_error *error);

// ---- names -----------------------------------------------------------------------------------

const char *const *sinkproof_policy_names(void); // NULL-terminated, narrowest first
const char *const *sinkproof_engine_names(void); // "ref", "lanes", "fast", NULL
// The points of a trace without their layers, in the order of the forward pass; NULL-terminated.
const char *const *sinkproof_point_names(void);
// What a point is, "attention weights" of "A9" or "03.A9"; NULL of a name that is no point's.
const char *sinkproof_point_meaning(const char *name);

// Whether a text states a policy: "f32", "bf16,A8=f32", "f32,exp=4ulp", "@FILE" (not "auto").
bool sinkproof_policy_check(const char *text, sinkproof_error *error);

// The shape that the point has in a trace of n tokens; `name` with or without a layer.
bool sinkproof_point_shape(const sinkproof_config *config, const char *name, size_t n, size_t *rank,
                           size_t shape[SINKPROOF_RANK], sinkproof_error *error);

// ---- traces ----------------------------------------------------------------------------------

typedef struct sinkproof_trace sinkproof_trace;

// Opens a file in the format sinkproof-trace-1 and checks it against the configuration: names,
// shapes, dtypes, tokens inside the vocabulary, positions 0, 1, 2 ...
bool sinkproof_trace_open(const char *path, const sinkproof_config *config, sinkproof_trace **trace,
                          sinkproof_error *error);
// The same, and beside the model itself: where the metadata name the fingerprint of another model,
// that is the error, before any tensor is looked at; with `any_model` it is none.
bool sinkproof_trace_open_of(const char *path, const sinkproof_model *model, bool any_model,
                             sinkproof_trace **trace, sinkproof_error *error);
void sinkproof_trace_close(sinkproof_trace *trace);

// Writes a trace as such a file: under a temporary name beside `path`, and renamed when it is
// whole.
bool sinkproof_trace_write(const sinkproof_trace *trace, const char *path, sinkproof_error *error);

size_t sinkproof_trace_length(const sinkproof_trace *trace);         // n
const int32_t *sinkproof_trace_tokens(const sinkproof_trace *trace); // [n]
// A value of the metadata: "engine", "policy", "version", "model"; NULL when absent.
const char *sinkproof_trace_metadata(const sinkproof_trace *trace, const char *key);

// One tensor of a trace as it is stored, little-endian, at any alignment.
typedef struct sinkproof_view {
    size_t size;       // of this struct, set by the caller
    const char *name;  // "03.A11"
    const char *dtype; // "BF16", "F16", "F32", "F64", "I32", "I64"
    size_t rank, shape[SINKPROOF_RANK];
    const void *data;
    size_t bytes;
} sinkproof_view;
size_t sinkproof_trace_count(const sinkproof_trace *trace); // tensors, tokens and positions too
bool sinkproof_trace_at(const sinkproof_trace *trace, size_t i, sinkproof_view *view); // i < count
bool sinkproof_trace_named(const sinkproof_trace *trace, const char *name, sinkproof_view *view);

// A trace of your own arrays, in memory.
typedef struct sinkproof_trace_builder sinkproof_trace_builder;

// Of n tokens at positions 0 .. n - 1. `engine` names yours in the report. `policy` is what it
// declares, for the metadata; it may be NULL.
bool sinkproof_trace_builder_new(const sinkproof_model *model, const char *engine,
                                 const char *policy, size_t n, const int32_t *tokens_n,
                                 sinkproof_trace_builder **builder, sinkproof_error *error);
// Adds the point `name` ("03.A11") in the dtype that your engine holds: "BF16", "F16", "F32" or
// "F64"; M3 in "I32" or "I64". `data` is copied. An unknown name, another shape than
// sinkproof_point_shape says, a point that is already there: an error.
bool sinkproof_trace_builder_add(sinkproof_trace_builder *builder, const char *name,
                                 const char *dtype, size_t rank, const size_t *shape,
                                 const void *data, sinkproof_error *error);
// What the metadata say under `model`, in place of the fingerprint of the model at hand: of arrays
// that come from a file which says so.
bool sinkproof_trace_builder_of(sinkproof_trace_builder *builder, const char *fingerprint,
                                sinkproof_error *error);
// The trace of what was added: any subset of the points is one. The builder is then empty of
// points.
bool sinkproof_trace_builder_finish(sinkproof_trace_builder *builder, sinkproof_trace **trace,
                                    sinkproof_error *error);
void sinkproof_trace_builder_free(sinkproof_trace_builder *builder);

// ---- runs ------------------------------------------------------------------------------------

// One engine on a model under a policy, with one sequence.
typedef struct sinkproof_run sinkproof_run;

typedef struct sinkproof_run_options {
    size_t size;
    int threads;  // of engine fast; 0: as many as processors, or as OMP_NUM_THREADS says
    size_t chunk; // tokens per pass in sinkproof_run_trace; 0: all at once; 1: as in decoding
} sinkproof_run_options;

// `engine` is one of sinkproof_engine_names. `policy` as in sinkproof_policy_check, or NULL for the
// engine's own: real-f64 of ref, f32 of lanes and fast. `options` may be NULL. An engine that
// cannot follow the policy refuses it and says what it can.
bool sinkproof_run_new(const sinkproof_model *model, const char *engine, const char *policy,
                       const sinkproof_run_options *options, sinkproof_run **run,
                       sinkproof_error *error);
void sinkproof_run_free(sinkproof_run *run);

// What a stage is called with. The library makes it; members are only ever added at the end.
typedef struct sinkproof_call {
    const char *name;             // the point to make, "03.A11"
    size_t layer;                 // 3; 0 for T0, F1 and F2
    size_t n;                     // tokens of this pass
    size_t first;                 // position of the first one
    size_t keys;                  // first + n: keys in the cache
    size_t window;                // keys that a query sees in this layer, itself included; 0: all
    size_t rank;                  // of the point in this pass: [n, ...]
    const size_t *shape;          // [rank]
    const int32_t *tokens;        // [n]
    const sinkproof_model *model; // its weights as the policy keeps them
    const struct sinkproof_seen *seen; // for sinkproof_call_input
} sinkproof_call;

// A stage of yours. `values` [shape] comes with what the engine computed and leaves with what yours
// computed: numbers of the format that the policy rounds to at the point. False refuses: the run
// then fails, with the sentence in *error (which is not NULL here).
typedef bool sinkproof_stage_function(void *context, const sinkproof_call *call, double *values,
                                      sinkproof_error *error);

// An input of the stage at hand by its point ("A4.q", one of `from` below; in the layer at hand),
// as binary64 holding numbers of the policy's format: of the tokens of this pass, [n, ...], but
// A2.v and A4.k of all keys, [keys, kv_heads, head_dim]; "RESIDUAL" is the residual stream as the
// sublayer finds it, [n, hidden]. Lives until the stage returns. NULL: not one of them.
const double *sinkproof_call_input(const sinkproof_call *call, const char *name);

// From now on `stage` makes the point `point` ("A11": in every layer; "03.A11": in one) from the
// points `from`, separated by commas ("A4.q,A4.k,A2.v"). The run goes on from what it returns, and
// the points in between (here A6, A9 and A10), which the engine still computes in its own way, are
// left out of traces: what is left is the trace of one engine, your stage in it.
//
// A point can be replaced when the engine shows it before it uses it: T0, A1, A2.q, A2.k, A2.v,
// A4.q, A4.k, A11, A12, A13, M1, M2, M3, M4, M10, M11, M12, F1, F2 of engines ref and lanes; fewer
// of fast. M2 takes M3 and M4 with it, and M3 takes M4: a run refuses to start with one alone.
// Anything else, and a list from which the point cannot be computed, is an error that says what
// can. NULL for `stage` gives the engine's own back. What was said last of a point holds. The run
// is reset.
bool sinkproof_run_replace(sinkproof_run *run, const char *point, const char *from,
                           sinkproof_stage_function *stage, void *context, sinkproof_error *error);

// n further tokens; logits_v [vocab] after the last one, or NULL. After a failure the run holds no
// tokens: it starts again.
bool sinkproof_run_forward(sinkproof_run *run, size_t n, const int32_t *tokens_n, double *logits_v,
                           sinkproof_error *error);
size_t sinkproof_run_length(const sinkproof_run *run); // tokens that went through
void sinkproof_run_reset(sinkproof_run *run);          // to none

// A forward pass over n tokens from the start (the run is reset), and its trace in memory. `points`
// restricts it: names separated by commas, "A9" for every layer, "03.A9" for one, "A4" for A4.q and
// A4.k; NULL: all that the engine shows. `engine` names the whole in the trace; NULL: "sinkproof
// ref", and with a stage replaced "sinkproof ref with A11 replaced".
bool sinkproof_run_trace(sinkproof_run *run, size_t n, const int32_t *tokens_n, const char *points,
                         const char *engine, sinkproof_trace **trace, sinkproof_error *error);

// ---- plug-ins --------------------------------------------------------------------------------

// Stages of your engine in a shared object, judged by `sinkproof judge --plugin ENGINE.so`: it
// needs this header, and links nothing. It defines one function, sinkproof_plugin_get, which gives
// the list of its stages; each is called with arrays in float32 and fills others. The command runs
// it in a process of its own.

// One array of a call, row-major and dense. Experts (M3) are whole numbers.
typedef struct sinkproof_array {
    const char *name; // of the point or the weight: "A4.q", "sinks"
    size_t rank, shape[SINKPROOF_RANK];
    float *values; // an input must not be written
} sinkproof_array;

// What a stage is called with; members are only ever added at the end. Keys and values are those of
// the whole cache, first + n; all else is of the n tokens at hand.
//   stage         in                                           out
//   rmsnorm       T0 attn_norm                                 A1
//   qkv           A1 w_q b_q w_k b_k w_v b_v                   A2.q A2.k A2.v
//   rope          A2.q A2.k                                    A4.q A4.k
//   scores        A4.q A4.k                                    A6
//   softmax_sink  A6 sinks                                     A9
//   values        A9 A2.v                                      A11
//   attention     A4.q A4.k A2.v sinks                         A11
//   output        A11 w_o b_o                                  A12
//   router        M1 w_router b_router                         M2 M3 M4
//   experts       M1 M3 w_up b_up w_down b_down                M10
//   swiglu        M6                                           M8
//   mixture       M10 M3 M4                                    M11
//   unembed       F1 unembedding                               F2
// Shapes are those of sinkproof_point_shape, and of sinkproof_model_weight with the experts in
// front. A6 is [heads, n, keys], A9 has the sink's column behind the keys: what the mask hides is 0
// in A9, and anything in A6. w_up has the gate in even rows, and so has M6.
typedef struct sinkproof_drill {
    size_t size; // of this struct
    const char *stage;
    size_t n_inputs, n_outputs;
    const sinkproof_array *inputs;  // in the order above
    const sinkproof_array *outputs; // to be filled
    size_t n;                       // tokens
    size_t first;                   // position of the first one
    size_t window;                  // keys that a query sees, itself included; 0: all before it
    size_t heads, kv_heads, head_dim, hidden, inter, experts, chosen;
    double rms_eps, swiglu_alpha, swiglu_limit;
    double rope_theta, yarn_factor, yarn_beta_fast, yarn_beta_slow;
    size_t yarn_original_context;
    bool yarn_truncate; // the ends of the ramp are whole numbers
} sinkproof_drill;

// Fills the outputs and returns 0; 1: these shapes are not served, which is no mistake; anything
// else: it failed.
typedef int sinkproof_plugin_stage(void *context, const sinkproof_drill *drill);

typedef struct sinkproof_plugin_entry {
    const char *stage;
    sinkproof_plugin_stage *run;
} sinkproof_plugin_entry;

typedef struct sinkproof_plugin {
    size_t size;      // of this struct in the header that it was built with
    const char *name; // in the report: "my kernels 1.2"
    size_t n_stages;
    const sinkproof_plugin_entry *stages;
    const char *policy; // what it declares, as in sinkproof_policy_check; NULL: f32
    void *context;      // for its stages
} sinkproof_plugin;

// The one symbol of a plug-in. NULL: it cannot run here.
typedef const sinkproof_plugin *sinkproof_plugin_getter(void);
extern sinkproof_plugin_getter sinkproof_plugin_get;

// ---- the judge -------------------------------------------------------------------------------

typedef enum sinkproof_verdict {
    SINKPROOF_VERDICT_ABSENT,     // not in the trace: bridged
    SINKPROOF_VERDICT_EXACT,      // every set is a single value, and the engine has it
    SINKPROOF_VERDICT_WITHIN,     // inside what honest rounding can do
    SINKPROOF_VERDICT_UNDECIDED,  // an engine that left the operation out might pass
    SINKPROOF_VERDICT_SUSPICIOUS, // possible, but not likely
    SINKPROOF_VERDICT_BUG,        // outside the honest set: no order of summation explains it
} sinkproof_verdict;

// "bug"; "unknown" of a number that is no verdict.
const char *sinkproof_verdict_name(sinkproof_verdict verdict);

// The options of `sinkproof judge`, and its defaults where they are zero.
typedef struct sinkproof_trial_options {
    size_t size;
    const char *policy; // what the engine declares; NULL or "auto": the narrowest known that fits
    const char *name;   // of the trace in the report; NULL: its path, or "(memory)"
    // False alarms per tensor of the likely set, of drift and of spread each, and of the drift of a
    // point's layers together; 0: 1e-9.
    double rate;
    bool strict;  // a suspicious trace exits 1, not 4; one with points undecided 4, not 0
    bool all;     // a line of the report per layer and point, not per point
    bool local;   // without the comparison with the truth end to end
    bool no_hint; // without a look for a policy that would explain a bug
    bool forms;   // name the form of each stage that the trace fits: some more judgements
    // Called with the share of the judgement at hand that is done, 1 at its end; `what` is the
    // policy that is tried, "forms", "a cause" or "diagnosis".
    void (*progress)(void *context, const char *what, double share);
    void *context;
    bool no_diagnosis; // without a look for the known mistakes that explain a bug
    // Not 0: judge a trace whose metadata name another model too; the report then says so. (As wide
    // as a word: an older caller's struct ends before it.)
    size_t any_model;
} sinkproof_trial_options;

typedef struct sinkproof_ruling sinkproof_ruling;

// Judges every point of the trace from the trace's own inputs to it. True whatever the verdict:
// false is an error (the policy, metadata that name the fingerprint of another model, memory).
// `options` may be NULL.
bool sinkproof_judge_trace(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_trial_options *options, sinkproof_ruling **ruling,
                           sinkproof_error *error);
void sinkproof_ruling_free(sinkproof_ruling *ruling);

// The worst of the points that were decided; UNDECIDED when none was, or when none is worse and an
// element is NaN where nothing bounds what an honest engine has.
sinkproof_verdict sinkproof_ruling_verdict(const sinkproof_ruling *ruling);
// The exit code of `sinkproof judge`: 0 within, 1 a bug, 4 suspicious, nothing decided, or
// NaN that nothing bounds.
int sinkproof_ruling_exit(const sinkproof_ruling *ruling);
const char *sinkproof_ruling_policy(const sinkproof_ruling *ruling); // judged under this one
// The overrides ("A1=f32,A11=f32"), or other policy, that would explain all that fails: it was
// tried. NULL: none, or not asked.
const char *sinkproof_ruling_explained_by(const sinkproof_ruling *ruling);
// The first divergence in the order of the forward pass ("03.A11"): the first bug; NULL without
// one.
const char *sinkproof_ruling_first(const sinkproof_ruling *ruling);
// Points that this trace cannot decide.
size_t sinkproof_ruling_undecided(const sinkproof_ruling *ruling);

// The report, letter for letter what `sinkproof judge` prints.
const char *sinkproof_ruling_text(const sinkproof_ruling *ruling);
// What `sinkproof judge --json` writes as "results", a JSON array: the judgement, then its points.
const char *sinkproof_ruling_json(const sinkproof_ruling *ruling);

// What was found of one point. Sets are intervals of what an honest engine may have; those of the
// worst element are given: the one furthest outside, or else the one that uses most of its set.
typedef struct sinkproof_finding {
    size_t size;      // of this struct, set by the caller
    const char *name; // "03.A11"
    size_t layer;     // 0 for T0, F1, F2
    sinkproof_verdict verdict;
    bool bridged;     // an input of the operation is not in the trace: its set is wider
    size_t elements;  // of the tensor
    size_t several;   // whose set has more than one value
    size_t outside;   // of their set: proved wrong under the policy
    size_t unlikely;  // outside the likely set
    size_t undecided; // in rows whose sets are as wide as what they hold
    size_t nans;      // where the engine has NaN
    size_t rank, shape[SINKPROOF_RANK];
    size_t worst_index[SINKPROOF_RANK];            // [rank] of the worst element
    double worst_value;                            // the engine's
    double worst_low, worst_emulation, worst_high; // its set, and the middle: the policy emulated
    const char *worst_inputs; // what it was computed from, in hex floats; may be ""
    double excess_ulp;        // distance of the worst element outside its set, in ulp of the dtype
    double share_worst, share_median; // |engine - emulation| over the half-width of the set
    double drift, drift_limit;        // signed errors: how far they lean, and how far chance leans
    double spread, spread_limit;      // squares of errors over the variance of rounding to nearest
    // Against the truth end to end, relative in the 2-norm; NaN when it was not asked for.
    double error, local, inherited;
    size_t infinities; // where the engine has an infinity
    // Drift of as many layers of the point together, this one among them; 0: not asked.
    size_t layers_together;
    double drift_together, drift_together_limit;
} sinkproof_finding;
size_t sinkproof_ruling_count(const sinkproof_ruling *ruling); // points of the trace
bool sinkproof_ruling_at(const sinkproof_ruling *ruling, size_t i, sinkproof_finding *finding);
bool sinkproof_ruling_named(const sinkproof_ruling *ruling, const char *name,
                            sinkproof_finding *finding);

// ---- any design of attention -----------------------------------------------------------------

// What an engine of any design of attention computed, as a safetensors file "sinkproof-design-1"
// (chapter 24 of the book), judged step by step. True whatever the verdict: false is an error (the
// file, the policy, memory). policy NULL: what the file says, or the generic one of its format.
typedef struct sinkproof_design_ruling sinkproof_design_ruling;
bool sinkproof_judge_design(const char *path, const char *policy, sinkproof_design_ruling **ruling,
                            sinkproof_error *error);
// The same of a file in memory; `name` for errors, or NULL.
bool sinkproof_judge_design_bytes(const void *bytes, size_t length, const char *name,
                                  const char *policy, sinkproof_design_ruling **ruling,
                                  sinkproof_error *error);
void sinkproof_design_ruling_free(sinkproof_design_ruling *ruling);

// The exit code of `sinkproof sinks --judge`: 0 within, 1 a bug, 4 nothing was decided.
int sinkproof_design_ruling_exit(const sinkproof_design_ruling *ruling);
const char *sinkproof_design_ruling_policy(const sinkproof_design_ruling *ruling);
// What it prints, and what its --json writes as "results", a JSON array.
const char *sinkproof_design_ruling_text(const sinkproof_design_ruling *ruling);
const char *sinkproof_design_ruling_json(const sinkproof_design_ruling *ruling);

#ifdef __cplusplus
}
#endif

#endif
