// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads traces: one safetensors file with the named points of a run, in the dtypes that the engine
// holds (the public format "sinkproof-trace-1" of this project).
#ifndef SINKPROOF_TRACE_H
#define SINKPROOF_TRACE_H

#include "model/model.h"
#include "model/safetensors.h"
#include "ref/points.h"

typedef struct sinkproof_trace sinkproof_trace;

// Opens a trace and checks it against the model: every known point's shape and dtype, tokens inside
// the vocabulary, positions that follow each other. An unknown name is an error that names the
// nearest known one.
//
// A file may hold several sequences end to end: cu_seqlens [m + 1] has the row where each begins,
// and n. A trace of one sequence may begin after position 0. Its keys and values (A4.k, or A2.k
// without a rotation, and A2.v) may then have more rows than tokens: those of the positions just
// before the first token. With several sequences cu_seqlens_k [m + 1] says where the keys of each
// begin, and keys and values have so many rows. `prefix` may name all tokens before the first one
// of each sequence; with cu_seqlens_prefix [m + 1], of some.
bool sinkproof_trace_open(const char *path, const sinkproof_config *config, sinkproof_trace **trace,
                          sinkproof_error *error);
bool trace_parse(const uint8_t *bytes, size_t length, const char *name,
                 const sinkproof_config *config, sinkproof_trace **trace,
                 sinkproof_error *error); // for tests and fuzzing
// The same from malloc'ed bytes. The trace owns the bytes from then on, and a failure frees them.
bool trace_adopt(char *bytes, size_t length, const char *name, const sinkproof_config *config,
                 sinkproof_trace **trace, sinkproof_error *error);
// The same, checked against the model itself: metadata that name another model are an error before
// any tensor is read, unless any_model is set (trace_model.h).
bool sinkproof_trace_open_of(const char *path, const sinkproof_model *model, bool any_model,
                             sinkproof_trace **trace, sinkproof_error *error);
void sinkproof_trace_close(sinkproof_trace *trace);
const sinkproof_safetensors *sinkproof_trace_file(const sinkproof_trace *trace);
// or the name given to trace_adopt
const char *sinkproof_trace_path(const sinkproof_trace *trace);

size_t sinkproof_trace_length(const sinkproof_trace *trace);            // n
const int32_t *sinkproof_trace_tokens(const sinkproof_trace *trace);    // [n]
const int32_t *sinkproof_trace_positions(const sinkproof_trace *trace); // [n]
// Position of the first token; 0 in a trace of several sequences.
size_t sinkproof_trace_first(const sinkproof_trace *trace);
// The tokens before the sequences, one after the other, if the trace names any; else NULL.
const int32_t *sinkproof_trace_prefix(const sinkproof_trace *trace);
size_t sinkproof_trace_prefix_length(const sinkproof_trace *trace);
// Refuses a trace of several sequences, or that begins after position 0: for what needs one whole
// sequence.
bool sinkproof_trace_from_start(const sinkproof_trace *trace, sinkproof_error *error);
const char *sinkproof_trace_metadata(const sinkproof_trace *trace, const char *key);
// The tensor of a point, or NULL when the trace lacks it. `layer` is ignored for T0, F1, F2.
const sinkproof_tensor *sinkproof_trace_find(const sinkproof_trace *trace,
                                             sinkproof_trace_point point, size_t layer);
// What the metadata say of A9.lse. Unsaid: the tensor is found as both points, LSE and LSE_KEYS.
typedef enum sinkproof_lse {
    SINKPROOF_LSE_UNSAID,
    SINKPROOF_LSE_WITH_SINK,
    SINKPROOF_LSE_KEYS
} sinkproof_lse;
sinkproof_lse sinkproof_trace_lse(const sinkproof_trace *trace);
// [n]: 1 where a call of the engine begins, as its metadata say; NULL: they do not.
const uint8_t *sinkproof_trace_calls(const sinkproof_trace *trace);
// How many of its tensors are gradients (gradients.h): their shapes are checked, nothing else.
size_t sinkproof_trace_gradients(const sinkproof_trace *trace);
bool sinkproof_trace_lse_by_token(const sinkproof_trace *trace); // [n, heads], not [heads, n]
// The rows of one sequence: [row, row + rows), from position `first` on; and the columns of its
// keys, [key, key + keys), which end with those of its rows. Of the tokens before it `named` are in
// the prefix, from its element named_at on: all `first` of them, or none.
typedef struct sinkproof_sequence {
    size_t number, row, rows, first, key, keys, named_at, named;
} sinkproof_sequence;
// Columns of keys of all sequences, and whether they have caches of their own.
size_t sinkproof_trace_columns(const sinkproof_trace *trace);
bool sinkproof_trace_is_apart(const sinkproof_trace *trace);
size_t sinkproof_trace_sequences(const sinkproof_trace *trace);
sinkproof_sequence sinkproof_trace_sequence(const sinkproof_trace *trace, size_t number);
sinkproof_sequence sinkproof_trace_sequence_of(const sinkproof_trace *trace, size_t row);
// The keys or values of a layer at the positions just before the first token, [m, heads, dim], of
// each sequence in turn; NULL if the trace has none.
const sinkproof_tensor *sinkproof_trace_before(const sinkproof_trace *trace,
                                               sinkproof_trace_point point, size_t layer);

// A view with another tensor at one point, of the same shape. It shares everything else with
// `trace`, and must be freed before it; NULL if memory runs out.
sinkproof_trace *sinkproof_trace_view(const sinkproof_trace *trace, sinkproof_trace_point point,
                                      size_t layer, const sinkproof_tensor *tensor);
void sinkproof_trace_view_free(sinkproof_trace *view);

// Gives back the memory of a layer's tensors, if the trace is in a file; they may be read again.
void sinkproof_trace_forget_layer(const sinkproof_trace *trace, size_t layer);

#endif
