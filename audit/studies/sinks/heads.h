// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention computed in binary64 from a run's own queries, keys and values: with other sinks, or
// from another cache. An observer keeps A4 and A2.v of the current layer and makes a call when the
// layer's A11 is available; on engines that support it (sinkproof_runner_replaces), the run
// continues from the values that the call writes. No weight is copied and no engine changed.
#ifndef SINKPROOF_HEADS_H
#define SINKPROOF_HEADS_H

#include "ref/forward.h"

// The first keys, hidden from the rows `from` on: what a row attends to when a sink on them is
// taken away. Where from == first, no other row sees them, and the next token is the first of a
// text.
typedef struct heads_hidden {
    size_t first, from; // first 0: none; else from >= first, so that every row has a key
} heads_hidden;

// Whether no head of the model has a sink, so that "without sinks" is the run itself.
bool heads_have_no_sinks(const sinkproof_config *config);

// The current layer, in a run of n tokens from an empty cache.
typedef struct layer_heads {
    const sinkproof_config *config;
    size_t layer, n, window; // window 0: all keys up to the query
    double *q_nhd, *k_gdn;   // rotated; of the keys, each coordinate of all tokens is contiguous
    double *v_ngd, *b_hi;    // values; the sink's logit for every row, -infinity: none
    double *o_nhd;           // the engine's A11, which may be overwritten
    bool held_q, held_k, held_v;
    heads_hidden hidden;
} layer_heads;

// The first key that row i sees: by the window, and by what is hidden.
size_t heads_first_key(const layer_heads *heads, size_t i);

typedef struct heads_observer {
    void *context;
    void (*heads)(void *context, const layer_heads *heads); // or NULL
    // Called for every point with its final values; or NULL.
    void (*point)(void *context, sinkproof_trace_point point, size_t layer, size_t count,
                  const double *values);
    bool logits; // `point` wants F2
    // Filled by heads_observer_begin:
    const sinkproof_model *model;
    layer_heads at;
    double *work;
    bool incomplete; // A11 came without queries, keys or values
} heads_observer;

// Makes the observer of a run of n tokens; free the watcher afterwards, also after a failure.
bool heads_observer_begin(heads_observer *watcher, const sinkproof_model *model, size_t n,
                          sinkproof_observer *observer, sinkproof_error *error);
void heads_observer_free(heads_observer *watcher);

// s_j of row i of head h over keys laid out as k_gdn, from the first key that the row sees to i.
void heads_row_scores(const layer_heads *heads, const double *k_gdn, size_t h, size_t i,
                      double *s_j);

// One row's sums relative to e^top, and their completion by a sink: a key's weight is its
// exponential times `each`. b = -infinity: no sink.
typedef struct heads_row_sums {
    double top, sum; // the largest score; sum_j e^(s_j - top)
} heads_row_sums;
double row_mean_each_way(const heads_row_sums *sums, double b, double *sink);

// The weights of row i in alpha_j [i + 1], 0 before the window; b is the sink's logit.
void heads_row_weights(const layer_heads *heads, size_t h, size_t i, double b, double *alpha_j,
                       double *sink);

// Attention of the whole layer with `change` added to every sink's logit (-infinity: no sinks), in
// o_nhd. work: n doubles.
void heads_attend(const layer_heads *heads, double change, double *o_nhd, double *work);

#endif
