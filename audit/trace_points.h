// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The points of the trace format: names, shapes, and which rounding point each one shows.
#ifndef SINKPROOF_TRACE_POINTS_H
#define SINKPROOF_TRACE_POINTS_H

#include "audit/trace.h"
#include "ref/policy.h"

// The shape of a point in a trace of n tokens (and n keys); returns its rank.
size_t sinkproof_trace_shape(const sinkproof_config *config, sinkproof_trace_point point, size_t n,
                             size_t *shape);

// The rounding point whose result the trace holds there. M3 (indices) has none: false.
bool sinkproof_trace_rounding(sinkproof_trace_point point, sinkproof_point *rounding);

// What a point is computed from. EACH: an element of the point needs its own element of the input,
// or a row of which all elements share a known common factor; SHARED: one element of the input
// enters many elements of the point, so that they share its error.
typedef enum sinkproof_input_kind {
    SINKPROOF_INPUT_EACH,
    SINKPROOF_INPUT_SHARED
} sinkproof_input_kind;
typedef struct sinkproof_input {
    sinkproof_trace_point point;
    size_t layer;
    sinkproof_input_kind kind;
} sinkproof_input;
enum { SINKPROOF_MAX_INPUTS = 3 };

// The inputs of a point, weights and tokens apart; returns how many. T0 has none.
size_t sinkproof_trace_inputs(const sinkproof_config *config, sinkproof_trace_point point,
                              size_t layer, sinkproof_input inputs[SINKPROOF_MAX_INPUTS]);

// The format of a tensor that holds numbers in `dtype` (F64 for integers).
sinkproof_format sinkproof_trace_format(sinkproof_dtype dtype);

// "03.A4.q" into layer 3 and A4.q; "F2" into F2. Layers have two digits or more, no other
// leading zeros. False for any other name.
bool sinkproof_trace_name_parse(const char *name, sinkproof_trace_point *point, size_t *layer);

// "03.A4.q" into `name`, which holds at least SINKPROOF_TRACE_NAME characters.
enum { SINKPROOF_TRACE_NAME = 40 };
void sinkproof_trace_name(sinkproof_trace_point point, size_t layer, char *name);

// Letters to insert, delete or replace to turn a into b (Levenshtein); b is shorter than
// SINKPROOF_TRACE_NAME, a of any length.
size_t sinkproof_edits(const char *a, const char *b);

// The known name with the fewest edits from `name`, keeping its layer when it has one.
void sinkproof_trace_nearest(const char *name, size_t n_layers, char *nearest);

#endif
