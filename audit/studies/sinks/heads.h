// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention as a run's own queries, keys and values make it, in binary64: what it would be with
// other sinks, or from another cache. An observer holds A4 and A2.v of the layer at hand, and calls
// when the layer's A11 is there; what is put in its place the run goes on from, on engines that
// hold it (sinkproof_runner_replaces). No weight is copied and no engine changed.
#ifndef SINKPROOF_HEADS_H
#define SINKPROOF_HEADS_H

#include "ref/forward.h"

// The layer at hand. A run of n tokens from an empty cache.
typedef struct sinkproof_heads {
    const sinkproof_config *config;
    size_t layer, n, window; // window 0: every key up to the query
    double *q_nhd, *k_gdn;   // rotated; of the keys one coordinate of all tokens side by side
    double *v_ngd, *b_hi;    // values; the sink's logit of every row, -infinity: none
    double *o_nhd;           // A11 of the engine, which may be written to
    bool held_q, held_k, held_v;
} sinkproof_heads;

typedef struct sinkproof_watcher {
    void *context;
    void (*heads)(void *context, const sinkproof_heads *heads); // or NULL
    // Every point, as it stands when the engine goes on; or NULL.
    void (*point)(void *context, sinkproof_trace_point point, size_t layer, size_t count,
                  const double *values);
    // Filled by sinkproof_watch:
    const sinkproof_model *model;
    sinkproof_heads at;
    double *work;
    bool incomplete; // A11 came without its queries, keys or values
} sinkproof_watcher;

// The observer of a run of n tokens; free the watcher afterwards, also on failure.
bool sinkproof_watch(sinkproof_watcher *watcher, const sinkproof_model *model, size_t n,
                     sinkproof_observer *observer, sinkproof_error *error);
void sinkproof_watcher_free(sinkproof_watcher *watcher);

// s_j of row i of head h over keys laid out as k_gdn, j = first key that the row sees ... i.
void sinkproof_heads_scores(const sinkproof_heads *heads, const double *k_gdn, size_t h, size_t i,
                            double *s_j);

// One row's sums relative to e^top, and what becomes of them beside a sink: each weight of a key is
// its e times `each`. b = -infinity: no sink.
typedef struct sinkproof_row_sums {
    double top, sum; // the largest score; sum_j e^(s_j - top)
} sinkproof_row_sums;
double sinkproof_row_each(const sinkproof_row_sums *sums, double b, double *sink);

// The weights of row i into alpha_j [i + 1], 0 before the window; b is what joins the scores.
void sinkproof_heads_weights(const sinkproof_heads *heads, size_t h, size_t i, double b,
                             double *alpha_j, double *sink);

// Attention over the whole layer with `change` added to every sink's logit (-infinity: no sinks),
// into o_nhd. work: n doubles.
void sinkproof_heads_attend(const sinkproof_heads *heads, double change, double *o_nhd,
                            double *work);

#endif
