// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A census of sinks: measures one run of a model, or one trace (doc/25-measuring-sinks.md).
//
// It works layer by layer as the points pass, and keeps no map of attention. Where the engine shows
// its weights (A9), these are measured; where it does not (the fast path never holds them), they
// are computed in binary64 from its rotated queries and keys (A4) and the model's sink. What cannot
// be computed from the points is unknown: NAN here, null in JSON, a dash in the table.
//
// Every number is estimated: sums, roots and exponentials are those of binary64.
#ifndef SINKPROOF_CENSUS_H
#define SINKPROOF_CENSUS_H

#include "audit/engine/runner.h"
#include "audit/studies/sinks/heads.h"
#include "audit/trace/trace.h"
#include "ref/metrics.h"

// A query head.
typedef struct census_head {
    size_t group;        // its key/value head
    sinkproof_span sink; // alpha_s over the rows
    sinkproof_span mass; // the sum of the keys' weights over the rows
    // alpha_*: sink.mean; with the published code's additional row for the sink
    double star, star_published;
    double first;      // alpha_1 over all rows; rows whose window excludes key 1 count as 0
    double first_seen; // the same over the rows that see key 1
    double bias;       // |b^V W^O| with the head's part of W^O
    double intensity;  // (1 - alpha_s) |b^V W^O|, mean over the rows
    double output;     // |o W^O|, mean over the rows
    double share;      // intensity over output, row by row, then the mean; may exceed 1
    sinkproof_geometry cosines;
} census_head;

// A key/value head.
typedef struct census_group {
    sinkproof_drain values, keys; // keys as cached: rotated
} census_group;

// A state before and after a norm, at the token with the largest activation.
typedef struct census_norm {
    double before, after; // share of that state's SINKPROOF_SPIKES spikes in the squared norm
} census_norm;

// The source of a layer's weights.
typedef enum census_source {
    WEIGHTS_UNKNOWN, // neither A9 nor A4
    WEIGHTS_SHOWN,   // A9
    WEIGHTS_BARE,    // A10, without the sink's column, which is unknown
    WEIGHTS_COMPUTED // from A4
} census_source;

typedef struct census_layer {
    size_t window; // 0: a query sees all keys up to itself
    census_source source;
    census_head *heads;            // [n_heads]
    census_group *groups;          // [n_kv_heads]
    double *alpha_hk;              // [n_heads, n] alpha_k of every key
    double *sink_hi, *mass_hi;     // [n_heads, n] for every row
    double *intensity_i, *share_i; // [n] means over the heads
    // [n] of M12: each token's norm, and its size in the coordinate of the largest activation
    double *norm_i, *spike_i;
    sinkproof_massive middle, end;  // A13, M12
    census_norm attention, experts; // A1, M1
} census_layer;

typedef struct sink_census {
    const sinkproof_config *config; // the model's
    size_t n;                       // T: tokens
    double epsilon;
    bool windows_known;          // false: a trace alone
    sinkproof_massive embedding; // T0
    census_norm last;            // F1
    census_layer *layers;        // [config->n_layers]
    char missing[256]; // points that a measure needs and that no layer had: "A11, F1"; or ""
} sink_census;

// Rows of one head's map as they pass: alpha_ij [rows, stride] of the keys `from` to from + keys -
// 1 and the queries from `first` on, with the sink's weights separately in sink_i. A row's keys end
// at its own query. Heads may come in any order and concurrently; a head's rows come in ascending
// order.
typedef struct sinkproof_map_rows {
    size_t layer, head, first, rows, from, keys, stride;
    const double *alpha_ij, *sink_i;
} sinkproof_map_rows;

typedef struct sinkproof_census_options {
    double epsilon;
    // Of a run: every layer's attention is without these keys, computed in binary64 from the
    // engine's queries, keys and values, and the weights are those.
    heads_hidden hidden;
    void (*map)(void *context, const sinkproof_map_rows *rows); // or NULL
    void *map_context;
    // Points that the caller also receives as they pass, in the order of the forward pass, those of
    // a layer before its end: whole, or one head of a point of heads by queries (head SIZE_MAX: all
    // heads). Returning false, with a sentence in *error, ends the census. May be NULL.
    bool also[TRACE_POINTS];
    bool (*point)(void *context, sinkproof_trace_point point, size_t layer, size_t head,
                  const double *values, sinkproof_error *error);
    bool (*layer_end)(void *context, size_t layer, sinkproof_error *error);
    void *also_context;
    void (*progress)(void *context, double share); // or NULL
    void *progress_context;
} sinkproof_census_options;

// Runs n tokens on an engine with an empty sequence, which must run `model`. A number that is not
// finite is an error that names its point.
bool sinkproof_census_run(const sinkproof_model *model, sinkproof_runner *runner, size_t n,
                          const int32_t *tokens_n, const sinkproof_census_options *options,
                          sink_census *census, sinkproof_error *error);
// Measures a trace of any engine and with any points. Without a model (NULL) its configuration is
// that of the shapes (trace_shapes.h): weights are then those of A9, or of A10 where a layer has no
// A9, since queries and keys say nothing of a sink; what needs W^O, biases or windows is unknown.
bool sinkproof_census_trace(const sinkproof_model *model, const sinkproof_config *config,
                            const sinkproof_trace *trace, const sinkproof_census_options *options,
                            sink_census *census, sinkproof_error *error);
void sinkproof_census_free(sink_census *census);

// Counts over all layers and heads those that pass at key k, among the heads whose mean weight is
// known there. k is CENSUS_STAR for the sink's column, CENSUS_STAR_PUBLISHED for the sink with a
// row of its own, CENSUS_FIRST_SEEN for key 1 over the rows that see it.
#define CENSUS_STAR           ((size_t)-1)
#define CENSUS_STAR_PUBLISHED ((size_t)-2)
#define CENSUS_FIRST_SEEN     ((size_t)-3)
size_t census_passing_heads(const sink_census *census, size_t k);
size_t census_known_heads(const sink_census *census, size_t k); // those of known weight there

#endif
