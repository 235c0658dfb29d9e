// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// sinkproof: does an engine compute GPT-OSS, up to honest rounding?
//
// The interface of libsinkproof, for C11 and C++11. It needs only libc. A verdict in three steps:
//
//   sinkproof_model_open         opens a checkpoint, or a synthetic model that needs no disk
//   sinkproof_run_new            runs one of this project's engines under a policy, in which
//   sinkproof_run_replace        your function computes a stage, and
//   sinkproof_run_trace          a forward pass makes a trace of every point; or
//   sinkproof_trace_builder_new  makes a trace from the arrays of your own engine,
//   sinkproof_trace_builder_add  point by point; or
//   sinkproof_trace_open         reads a trace that your engine wrote to a file; or
//   sinkproof_plugin             declares stages in a shared object, for `sinkproof judge --plugin`
//   sinkproof_judge_trace        asks whether an honest engine may compute it from the same inputs
//   sinkproof_ruling_text        returns the report that `sinkproof judge` prints
//
// Rules that hold for every function:
//   Errors are values. A function that can fail returns false and writes a sentence to *error:
//     what was expected and what was found. `error` may be NULL. The object that the function
//     would have made is then NULL. Lack of memory is such an error. No function exits, aborts,
//     prints or keeps state between calls.
//   Threads. Any thread may use its own objects. Threads may share a model, which never changes.
//     A run and a builder belong to one thread at a time. The judge and engine fast use OpenMP
//     inside; OMP_NUM_THREADS limits it. The results do not depend on the number of threads.
//   Lifetimes. A model outlives its runs, traces, builders and rulings. A text that a function
//     returns lives as long as the object that was passed to the function.
//   _close and _free accept NULL; functions that only query an object do not.
//   Text arguments are UTF-8, end with 0, and are copied. Shapes are row-major: [n, heads,
//   head_dim], n tokens. A struct with a member `size` is filled or read up to that many bytes: set
//   it to its sizeof. Options of zeros but for `size` ask for the defaults. Points are the tensors
//   of a trace: "T0", "03.A11" (layer 3, two digits or more), "F2".
#ifndef SINKPROOF_PUBLIC_H
#define SINKPROOF_PUBLIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SINKPROOF_VERSION "0.1.0"
// The version of the loaded library, "0.1.0"; SINKPROOF_VERSION is that of this header.
const char *sinkproof_version(void);

#ifndef SINKPROOF_ERROR_DEFINED
#define SINKPROOF_ERROR_DEFINED
typedef struct sinkproof_error {
    char text[1024]; // one sentence, without control characters
} sinkproof_error;
#endif
enum { SINKPROOF_RANK = 8 }; // most dimensions of a tensor

// ---- model -----------------------------------------------------------------------------------
typedef struct sinkproof_model sinkproof_model;
typedef struct sinkproof_config sinkproof_config;
// Opens a checkpoint: a directory in Hugging Face's or OpenAI's layout, a file NAME.gguf, or
// "synthetic:NAME[,seed=N][,layers=N][,sink=KIND]", where NAME is one of tiny, gpt-oss-20b,
// gpt-oss-120b, tiny-gpt2, gpt2, tiny-llama, tiny-qwen3, gpt2-circuit, gpt2-null, or the path of a
// config.json. Checks every tensor's presence, shape and dtype, and that every weight is a finite
// number (sinks may be -infinity).
bool sinkproof_model_open(const char *spec, sinkproof_model **model, sinkproof_error *error);
void sinkproof_model_close(sinkproof_model *model);
const char *sinkproof_model_spec(const sinkproof_model *model); // as given to sinkproof_model_open
const char *sinkproof_model_layout(const sinkproof_model *model); // "synthetic", "hf-mxfp4", ...
// A hash of configuration and weights as numbers: the same in every container and format.
bool sinkproof_model_fingerprint(const sinkproof_model *model, uint64_t *fingerprint,
                                 sinkproof_error *error);
const sinkproof_config *sinkproof_model_config(const sinkproof_model *model); // the model's own

// One number of the configuration: n_layers, n_experts, n_chosen (experts per token), vocab,
// hidden, inter, n_heads, n_kv_heads, head_dim, window, swiglu_alpha, swiglu_limit, rms_eps,
// rope_theta, yarn_factor, yarn_beta_fast, yarn_beta_slow, yarn_original_context, yarn_truncate (0
// or 1) or max_context. An unknown name is an error that lists them.
bool sinkproof_config_number(const sinkproof_config *config, const char *name, double *value,
                             sinkproof_error *error);
// Whether layer `layer` sees only the last `window` keys.
bool sinkproof_config_slides(const sinkproof_config *config, size_t layer);

// One weight as binary64 numbers, exactly as stored: values [rows, cols], or NULL to get only the
// shape. Names: attn_norm, w_q, w_k, w_v, b_q, b_k, b_v, sinks, w_o, b_o, mlp_norm, w_router,
// b_router; for each expert w_up, b_up, w_down, b_down (gate rows even, up rows odd); embedding,
// final_norm, unembedding (layer 0). GPT-2 has one w_up and one w_down without gates, no router,
// and also attn_norm_b, mlp_norm_b, final_norm_b and positions. A vector has one row. `expert` is 0
// for weights that are not an expert's.
bool sinkproof_model_weight(const sinkproof_model *model, const char *name, size_t layer,
                            size_t expert, size_t shape[2], double *values, sinkproof_error *error);

// ---- names -----------------------------------------------------------------------------------
const char *const *sinkproof_policy_names(void); // NULL-terminated, narrowest first
const char *const *sinkproof_engine_names(void); // "ref", "lanes", "fast", NULL
// The points of a trace without their layers, in the order of the forward pass; NULL-terminated.
const char *const *sinkproof_point_names(void);
// The meaning of a point, "attention weights" for "A9" or "03.A9"; NULL if none has the name.
const char *sinkproof_point_meaning(const char *name);

// Whether a text is a valid policy: "f32", "bf16,A8=f32", "f32,exp=4ulp", "@FILE" (not "auto").
bool sinkproof_policy_check(const char *text, sinkproof_error *error);

// The shape of a point, with its layer or without, or of a gradient, in a trace of n tokens.
bool sinkproof_point_shape(const sinkproof_config *config, const char *name, size_t n, size_t *rank,
                           size_t shape[SINKPROOF_RANK], sinkproof_error *error);

// ---- traces ----------------------------------------------------------------------------------
typedef struct sinkproof_trace sinkproof_trace;

// Opens a file in the format sinkproof-trace-1 and checks it against the configuration: names,
// shapes, dtypes, tokens inside the vocabulary, positions that follow each other.
bool sinkproof_trace_open(const char *path, const sinkproof_config *config, sinkproof_trace **trace,
                          sinkproof_error *error);
// The same; metadata with another model's fingerprint are an error, unless `any_model` is set.
bool sinkproof_trace_open_of(const char *path, const sinkproof_model *model, bool any_model,
                             sinkproof_trace **trace, sinkproof_error *error);
// The same of the bytes of such a file, which are copied; their model is not compared.
bool sinkproof_trace_from_bytes(const void *bytes, size_t length, const sinkproof_model *model,
                                sinkproof_trace **trace, sinkproof_error *error);
void sinkproof_trace_close(sinkproof_trace *trace);

// Writes a trace as such a file: first under a temporary name beside `path`, renamed when complete.
bool sinkproof_trace_write(const sinkproof_trace *trace, const char *path, sinkproof_error *error);

size_t sinkproof_trace_length(const sinkproof_trace *trace);         // n
const int32_t *sinkproof_trace_tokens(const sinkproof_trace *trace); // [n]
// A value of the metadata: "engine", "policy", "version", "model"; NULL if absent.
const char *sinkproof_trace_metadata(const sinkproof_trace *trace, const char *key);

// One tensor of a trace in its stored form, little-endian, at any alignment.
typedef struct sinkproof_view {
    size_t size;       // of this struct, set by the caller
    const char *name;  // "03.A11"
    const char *dtype; // "BF16", "F16", "F32", "F64", "I32", "I64"
    size_t rank, shape[SINKPROOF_RANK];
    const void *data;
    size_t bytes;
} sinkproof_view;
size_t sinkproof_trace_count(const sinkproof_trace *trace); // all tensors, and indices too
bool sinkproof_trace_at(const sinkproof_trace *trace, size_t i, sinkproof_view *view); // i < count
bool sinkproof_trace_named(const sinkproof_trace *trace, const char *name, sinkproof_view *view);

// Builds a trace in memory from your own arrays.
typedef struct sinkproof_trace_builder sinkproof_trace_builder;
// For n tokens at positions 0 .. n - 1. `engine` is your engine's name, for the report; `policy`,
// for the metadata, is its declared one, or NULL.
bool sinkproof_trace_builder_new(const sinkproof_model *model, const char *engine,
                                 const char *policy, size_t n, const int32_t *tokens_n,
                                 sinkproof_trace_builder **builder, sinkproof_error *error);
// Adds a point ("03.A11") or a gradient ("03.dsink") in its dtype: "BF16", "F16", "F32" or "F64";
// M3 in "I32" or "I64". `data` is copied. Errors: an unknown name or shape, a point already added.
bool sinkproof_trace_builder_add(sinkproof_trace_builder *builder, const char *name,
                                 const char *dtype, size_t rank, const size_t *shape,
                                 const void *data, sinkproof_error *error);
// Sets `model` in the metadata, for arrays from a file that states the fingerprint of its own.
bool sinkproof_trace_builder_of(sinkproof_trace_builder *builder, const char *fingerprint,
                                sinkproof_error *error);
// Before any point: sequences end to end, of `rows` tokens, from `firsts` on (NULL: 0); the keys
// and values of a single one may be longer in front.
bool sinkproof_trace_builder_place(sinkproof_trace_builder *b, size_t sequences, const size_t *rows,
                                   const size_t *firsts, sinkproof_error *error);
// Then, of several: how many keys and values each has, those before its rows too (cu_seqlens_k).
bool sinkproof_trace_builder_cached(sinkproof_trace_builder *b, const size_t *keys,
                                    sinkproof_error *error);
// The n tokens before the sequences: of each all or none, as `named` says (NULL: all of each).
bool sinkproof_trace_builder_prefixes(sinkproof_trace_builder *b, const size_t *named, size_t n,
                                      const int32_t *tokens_n, sinkproof_error *error);
// What A9.lse is: "with-sink" or "without-sink", "heads,tokens" or "tokens,heads"; NULL: not said.
bool sinkproof_trace_builder_lse(sinkproof_trace_builder *builder, const char *lse,
                                 const char *layout, sinkproof_error *error);
// What the loss reads: "cross-entropy", the mean of the next tokens', or points: "F2,03.A9.lse".
bool sinkproof_trace_builder_loss(sinkproof_trace_builder *builder, const char *loss,
                                  sinkproof_error *error);
// The tokens of each call: "16,16,12"; "36,8x1" (36, then 8 times 1); of sequences "7;10,1".
bool sinkproof_trace_builder_calls(sinkproof_trace_builder *builder, const char *calls,
                                   sinkproof_error *error);
// Makes the trace of the added points, any subset of all. The builder is then empty.
bool sinkproof_trace_builder_finish(sinkproof_trace_builder *builder, sinkproof_trace **trace,
                                    sinkproof_error *error);
void sinkproof_trace_builder_free(sinkproof_trace_builder *builder);

// ---- runs ------------------------------------------------------------------------------------
// One engine that runs a model under a policy, with one sequence.
typedef struct sinkproof_run sinkproof_run;

typedef struct sinkproof_run_options {
    size_t size;
    int threads;  // engine fast: 0, as many as processors or as OMP_NUM_THREADS says
    size_t chunk; // tokens per pass in sinkproof_run_trace; 0: all; 1: as in decoding
} sinkproof_run_options;

// `engine` is one of sinkproof_engine_names. `policy` is as in sinkproof_policy_check, or NULL for
// the engine's default: real-f64 for ref, f32 for lanes and fast. `options` may be NULL. If the
// engine cannot follow the policy, the error says which policies it can follow.
bool sinkproof_run_new(const sinkproof_model *model, const char *engine, const char *policy,
                       const sinkproof_run_options *options, sinkproof_run **run,
                       sinkproof_error *error);
void sinkproof_run_free(sinkproof_run *run);

// The arguments of a stage, made by the library. Later versions add members only at the end.
typedef struct sinkproof_call {
    const char *name;             // the point to compute, "03.A11"
    size_t layer;                 // 3; 0 for T0, F1 and F2
    size_t n;                     // tokens in this pass
    size_t first;                 // position of the first token
    size_t keys;                  // first + n: keys in the cache
    size_t window;                // keys that a query sees in this layer, itself included; 0: all
    size_t rank;                  // of the point's shape in this pass, [n, ...]
    const size_t *shape;          // [rank]
    const int32_t *tokens;        // [n]
    const sinkproof_model *model; // with its weights as the policy stores them
    const struct sinkproof_seen *seen; // for sinkproof_call_input
} sinkproof_call;

// Your function for a stage. On entry `values` [shape] holds the engine's result, on return yours:
// numbers of the format to which the policy rounds the point. If it returns false, the run fails
// with the sentence in *error (which is not NULL here).
typedef bool sinkproof_stage_function(void *context, const sinkproof_call *call, double *values,
                                      sinkproof_error *error);

// An input of the current stage by the name of its point ("A4.q", one of `from` below, in the same
// layer), as binary64 numbers of the policy's format. It has the tokens of this pass, [n, ...];
// only A2.v and A4.k have all keys, [keys, kv_heads, head_dim]. "RESIDUAL" is the residual stream
// before the sublayer, [n, hidden]. It is valid until the stage returns. NULL: not an input.
const double *sinkproof_call_input(const sinkproof_call *call, const char *name);

// Lets `stage` compute the point `point` ("A11": in every layer; "03.A11": in one) from the points
// `from`, separated by commas ("A4.q,A4.k,A2.v"). The run continues from the stage's result. The
// points in between (here A6, A9 and A10), which the engine still computes in its own way, are left
// out of traces, so that the trace is that of one engine with your stage.
//
// A point can be replaced if the engine shows it before it uses it: T0, A1, A2.q, A2.k, A2.v, A4.q,
// A4.k, A11, A12, A13, M1, M2, M3, M4, M10, M11, M12, F1, F2 in engines ref and lanes; fewer in
// fast. Replacing M2 requires M3 and M4 too, and M3 requires M4: otherwise the run does not start.
// For any other point, or a list from which the point cannot be computed, the error says what is
// possible. NULL for `stage` restores the engine's own stage. A later call for a point replaces an
// earlier one. The run is reset.
bool sinkproof_run_replace(sinkproof_run *run, const char *point, const char *from,
                           sinkproof_stage_function *stage, void *context, sinkproof_error *error);

// Runs n further tokens; logits_v [vocab] receives the logits after the last one, or is NULL. After
// a failure the run is empty.
bool sinkproof_run_forward(sinkproof_run *run, size_t n, const int32_t *tokens_n, double *logits_v,
                           sinkproof_error *error);
size_t sinkproof_run_length(const sinkproof_run *run); // tokens processed
void sinkproof_run_reset(sinkproof_run *run);          // back to no tokens

// Resets the run, runs a forward pass over n tokens and returns its trace in memory. `points`
// restricts the trace: names separated by commas, "A9" for every layer, "03.A9" for one, "A4" for
// A4.q and A4.k; NULL: all points that the engine shows. `engine` is the engine's name in the
// trace; NULL: "sinkproof ref", and with a replaced stage "sinkproof ref with A11 replaced".
bool sinkproof_run_trace(sinkproof_run *run, size_t n, const int32_t *tokens_n, const char *points,
                         const char *engine, sinkproof_trace **trace, sinkproof_error *error);

// ---- plug-ins --------------------------------------------------------------------------------
// Stages of your engine in a shared object, judged by `sinkproof judge --plugin ENGINE.so`: the
// plug-in needs this header, and links nothing. It defines one function, sinkproof_plugin_get,
// which returns the list of its stages; each stage reads arrays in float32 and fills others. The
// command runs the plug-in in a process of its own.

// One array of a call, row-major and dense. Experts (M3) are whole numbers.
typedef struct sinkproof_array {
    const char *name; // of a point or a weight: "A4.q", "sinks"
    size_t rank, shape[SINKPROOF_RANK];
    float *values; // inputs are read-only
} sinkproof_array;

// The arguments of a stage; later versions add members only at the end. Keys and values are those
// of the whole cache, first + n; all other arrays are those of the n tokens of this call.
//   stage         in                                           out
//   rmsnorm       T0 attn_norm                                 A1
//   qkv           A1 w_q b_q w_k b_k w_v b_v                   A2.q A2.k A2.v
//   rope          A2.q A2.k                                    A4.q A4.k
//   scores        A4.q A4.k                                    A6
//   softmax_sink  A6 sinks                                     A9
//   values        A9 A2.v                                      A11
//   attention     A4.q A4.k A2.v sinks                         A11, A9.lse if it has `lse`
//   output        A11 w_o b_o                                  A12
//   router        M1 w_router b_router                         M2 M3 M4
//   experts       M1 M3 w_up b_up w_down b_down                M10
//   swiglu        M6                                           M8
//   mixture       M10 M3 M4                                    M11
//   unembed       F1 unembedding                               F2
//   attention_backward  A4.q A4.k A2.v A11 A9.lse dA11 dA9.lse sinks   dA4.q dA4.k dA2.v dsink
//   swiglu_backward     M6 dM8                                 dM6
//   rmsnorm_backward    M12 dF1 final_norm                     dM12 dW.final_norm
//   linear_backward     A11 dA12 w_o b_o                       dA11 dW.o db.o
// Shapes are those of sinkproof_point_shape and sinkproof_model_weight; weights of experts have the
// expert as an additional first dimension. A6 is [heads, n, keys], and A9 has the sink's column
// after the keys. Masked entries are 0 in A9, and arbitrary in A6. A9.lse, natural, is [heads, n].
// The gate is in the even rows of w_up and the even columns of M6.
// Going back all rows are in one call. A11 and A9.lse, with the sink, are what a forward pass
// stores. dA9.lse is 0 where the loss does not read the log-sum-exp, as of a plug-in without `lse`.
typedef struct sinkproof_drill {
    size_t size; // of this struct
    const char *stage;
    size_t n_inputs, n_outputs;
    const sinkproof_array *inputs;  // in the order of the table
    const sinkproof_array *outputs; // to fill
    size_t n;                       // tokens
    size_t first;                   // position of the first token
    size_t window;                  // keys that a query sees, itself included; 0: all up to itself
    size_t heads, kv_heads, head_dim, hidden, inter, experts, chosen;
    double rms_eps, swiglu_alpha, swiglu_limit;
    double rope_theta, yarn_factor, yarn_beta_fast, yarn_beta_slow;
    size_t yarn_original_context;
    bool yarn_truncate; // the ends of the ramp are rounded to whole numbers
    const char *dtype;  // in which the policy stores the first input: "BF16", "F16" or "F32"
    // of attention, [kv_heads]: the largest of all passes; NULL in another process
    const float *k_largest, *v_largest;
} sinkproof_drill;

// Fills the outputs and returns 0; 1: the stage does not support these shapes, which is no mistake;
// any other value: it failed.
typedef int sinkproof_plugin_stage(void *context, const sinkproof_drill *drill);

typedef struct sinkproof_plugin_entry {
    const char *stage;
    sinkproof_plugin_stage *run;
} sinkproof_plugin_entry;

typedef struct sinkproof_plugin {
    size_t size;      // of this struct in the plug-in's header
    const char *name; // shown in the report: "my kernels 1.2"
    size_t n_stages;
    const sinkproof_plugin_entry *stages;
    const char *policy; // declared policy, as in sinkproof_policy_check; NULL: f32
    void *context;      // passed to its stages
    const char *lse;    // A9.lse: "with-sink", "without-sink", "either" (found); NULL: none
} sinkproof_plugin;

// The one symbol of a plug-in. It returns NULL if the plug-in cannot run on this machine.
typedef const sinkproof_plugin *sinkproof_plugin_getter(void);
extern sinkproof_plugin_getter sinkproof_plugin_get;

// Drills a plug-in of this program: the calls and the judgement of `sinkproof judge --plugin`, in
// this process and on the calling thread. A member that is zero has that command's default.
typedef struct sinkproof_drill_options {
    size_t size;
    const char *stages; // separated by commas: "attention,swiglu"; NULL: all that the plug-in has
    const char *only;   // one call, as the report prints it: "attention:n=17,..."; NULL: all
    const char *policy; // NULL: the plug-in's own
    const char *model;  // source of sizes and constants (sinkproof_model_open); NULL: small ones
    // Calls of a stage at most, spread over all of them, a third over a cache as far as there are
    // any; 0: all. Smaller calls, to which a failing one is reduced, are not counted.
    size_t limit;
    double rate;   // as in sinkproof_trial_options; 0: 1e-9
    uint64_t seed; // of the inputs; 0: 1
    bool strict;   // exit code 1 for suspicious, 4 for undecided
    bool first;    // leave a stage at its first failing calls
    bool no_cause; // look for no cause of failing calls
    void (*progress)(void *context, const char *stage, double share); // or NULL
    void *context;                                                    // of `progress`
    const sinkproof_error *said; // what a stage says before it returns neither 0 nor 1; or NULL
    const bool *stop; // set by a stage that fails: the drill ends with what it said; or NULL
} sinkproof_drill_options;

// Returns true whatever the verdict, false on an error (a stage, the policy, memory). Calls whose
// outputs are left unwritten or whose inputs are changed are bugs. `options` may be NULL.
typedef struct sinkproof_drill_ruling sinkproof_drill_ruling;
bool sinkproof_drill_plugin(const sinkproof_plugin *plugin, const sinkproof_drill_options *options,
                            sinkproof_drill_ruling **ruling, sinkproof_error *error);
void sinkproof_drill_ruling_free(sinkproof_drill_ruling *ruling);
// The exit code of that command: 0 within; 1 a bug; 4 suspicious, or nothing decided.
int sinkproof_drill_ruling_exit(const sinkproof_drill_ruling *ruling);
// The report, and the JSON array that --json writes under "results": a result for each stage.
const char *sinkproof_drill_ruling_text(const sinkproof_drill_ruling *ruling);
const char *sinkproof_drill_ruling_json(const sinkproof_drill_ruling *ruling);

// ---- the judge -------------------------------------------------------------------------------
typedef enum sinkproof_verdict {
    SINKPROOF_VERDICT_ABSENT,     // not in the trace: bridged
    SINKPROOF_VERDICT_EXACT,      // every set is a single value, and the engine has it
    SINKPROOF_VERDICT_WITHIN,     // inside the honest set: rounding explains it
    SINKPROOF_VERDICT_UNDECIDED,  // an engine without the operation might pass too
    SINKPROOF_VERDICT_SUSPICIOUS, // possible, but unlikely
    SINKPROOF_VERDICT_BUG,        // outside the honest set: no order of summation explains it
} sinkproof_verdict;

// Such as "bug"; "unknown" for any other number.
const char *sinkproof_verdict_name(sinkproof_verdict verdict);

// The options of `sinkproof judge`; a member that is zero has that command's default.
typedef struct sinkproof_trial_options {
    size_t size;
    const char *policy; // the engine's policy; NULL or "auto": the narrowest known one that fits
    const char *name;   // the trace's name in the report; NULL: its path, or "(memory)"
    // False alarms per tensor: of the likely set, drift, spread, drift of layers together; 0: 1e-9.
    double rate;
    bool strict;  // exit code 1 for a suspicious trace, not 4; 4 if a point is undecided, not 0
    bool all;     // the report has a line per layer and point, not per point
    bool local;   // skip the end-to-end comparison with the truth
    bool no_hint; // skip the search for a policy that explains a bug
    bool forms;   // name the form of each stage that the trace fits; judges a few times more
    // With the share that is done; `what`: the policy on trial, "forms", "a cause", "diagnosis".
    void (*progress)(void *context, const char *what, double share);
    void *context;
    bool no_diagnosis; // skip the search for known mistakes that explain a bug
    size_t any_model;  // not 0: judge a trace of another model too, and say so in the report
    size_t first_layer, end_layer; // judged alone, T0 with 0, F1, F2 with the last; end 0: all
    const char *truth;   // a file of `truth --trace` to compare with: not with `local` or layers
    bool truth_alone;    // that comparison alone: nothing is judged, exit code 4
    const char *adapter; // the directory of a LoRA (PEFT) beside the weights: not end to end
} sinkproof_trial_options;

typedef struct sinkproof_ruling sinkproof_ruling;

// Judges every point of the trace from the trace's own inputs to it. Returns true whatever the
// verdict, and false on an error (the policy, metadata with the fingerprint of another model,
// memory). `options` may be NULL.
bool sinkproof_judge_trace(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_trial_options *options, sinkproof_ruling **ruling,
                           sinkproof_error *error);
void sinkproof_ruling_free(sinkproof_ruling *ruling);

// The worst verdict among the decided points; UNDECIDED if no point is decided, or if no point is
// worse and an element is NaN where the honest set is unbounded.
sinkproof_verdict sinkproof_ruling_verdict(const sinkproof_ruling *ruling);
// The exit code of `sinkproof judge`: 0 within; 1 a bug; 4 suspicious, nothing decided, or NaN
// where the honest set is unbounded.
int sinkproof_ruling_exit(const sinkproof_ruling *ruling);
// the policy under which it was judged
const char *sinkproof_ruling_policy(const sinkproof_ruling *ruling);
// The overrides ("A1=f32,A11=f32") or another policy, under which every failing point passes. NULL:
// none was found, or the search was skipped.
const char *sinkproof_ruling_explained_by(const sinkproof_ruling *ruling);
// The first divergence in the order of the forward pass: the first point with a bug ("03.A11");
// NULL if there is none.
const char *sinkproof_ruling_first(const sinkproof_ruling *ruling);
// The number of points that this trace cannot decide.
size_t sinkproof_ruling_undecided(const sinkproof_ruling *ruling);

// The report, exactly as `sinkproof judge` prints it.
const char *sinkproof_ruling_text(const sinkproof_ruling *ruling);
// A JSON array, as `sinkproof judge --json` writes it under "results": the judgement, then its
// points.
const char *sinkproof_ruling_json(const sinkproof_ruling *ruling);

// The finding about one point. A set is the interval of values that an honest engine may have. The
// worst element is the one furthest outside its set; if none is outside, the one that uses most of
// its set.
typedef struct sinkproof_finding {
    size_t size;      // of this struct, set by the caller
    const char *name; // "03.A11"
    size_t layer;     // 0 for T0, F1, F2
    sinkproof_verdict verdict;
    bool bridged;     // an input of the operation is not in the trace: the set is wider
    size_t elements;  // of the tensor
    size_t several;   // elements whose set has more than one value
    size_t outside;   // elements outside their set: proved wrong under the policy
    size_t unlikely;  // elements outside the likely set
    size_t undecided; // elements in rows whose sets are as wide as the values
    size_t nans;      // elements where the engine has NaN
    size_t rank, shape[SINKPROOF_RANK];
    size_t worst_index[SINKPROOF_RANK];            // [rank] indices of the worst element
    double worst_value;                            // the engine's
    double worst_low, worst_emulation, worst_high; // its set, and the emulated policy's value
    const char *worst_inputs; // its inputs; of a gradient its cause, or what is missing; or ""
    double excess_ulp;        // distance of the worst element outside its set, in ulp of the dtype
    double share_worst, share_median; // |engine - emulation| over the half-width of the set
    double drift, drift_limit;        // signed errors: their lean, and the limit of chance
    double spread, spread_limit;      // squared errors over the variance of rounding to nearest
    // Against the truth end to end, relative in the 2-norm; NaN if the comparison was skipped.
    double error, local, inherited;
    size_t infinities; // elements where the engine has an infinity
    // Drift over several layers of the point together, this layer among them; 0: not asked.
    size_t layers_together;
    double drift_together, drift_together_limit;
} sinkproof_finding;
size_t sinkproof_ruling_count(const sinkproof_ruling *ruling); // points of the trace
bool sinkproof_ruling_at(const sinkproof_ruling *ruling, size_t i, sinkproof_finding *finding);
bool sinkproof_ruling_named(const sinkproof_ruling *ruling, const char *name,
                            sinkproof_finding *finding);

// ---- any design of attention -----------------------------------------------------------------
// Judges step by step the attention of an engine of any design, from a safetensors file in the
// format "sinkproof-design-1" (chapter 24 of the book). Returns true whatever the verdict, and
// false on an error (the file, the policy, memory). policy NULL: the file's own, or the generic one
// of its format.
typedef struct sinkproof_design_ruling sinkproof_design_ruling;
bool sinkproof_judge_design(const char *path, const char *policy, sinkproof_design_ruling **ruling,
                            sinkproof_error *error);
// The same for a file in memory; `name` is used in errors, or NULL.
bool sinkproof_judge_design_bytes(const void *bytes, size_t length, const char *name,
                                  const char *policy, sinkproof_design_ruling **ruling,
                                  sinkproof_error *error);
void sinkproof_design_ruling_free(sinkproof_design_ruling *ruling);

// The exit code of `sinkproof sinks --judge`: 0 within; 1 a bug; 4 nothing was decided.
int sinkproof_design_ruling_exit(const sinkproof_design_ruling *ruling);
const char *sinkproof_design_ruling_policy(const sinkproof_design_ruling *ruling);
// The output of that command, and the JSON array that its --json writes under "results".
const char *sinkproof_design_ruling_text(const sinkproof_design_ruling *ruling);
const char *sinkproof_design_ruling_json(const sinkproof_design_ruling *ruling);

#ifdef __cplusplus
}
#endif

#endif
