// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Outliers in a model's values and the error of eight bits with one scale, with and without the
// model's sink logits, or, in a model without sinks, with the first key hidden; and whether the
// sink takes over the first token's weight in rows whose window excludes that token.
#ifndef SINKPROOF_OUTLIERS_H
#define SINKPROOF_OUTLIERS_H

#include "audit/engine/runner.h"

// ---- outliers ----------------------------------------------------------------------------------

// The measured points: operands of weights, and the residual stream.
enum { OUTLIER_POINTS = 7 };
extern const sinkproof_trace_point outlier_points[OUTLIER_POINTS];

// For a tensor of n rows: max |x| / rms of a row, as the largest and as the mean over the rows; and
// the relative error of 8-bit integers (bound.quantized-cache), as roots of sums of squares, with
// one scale for the tensor and with one for each row: over all rows, and over the rows after the
// first alone, whose error a first row of massive activations hides in the sum. NAN: not seen.
typedef struct outlier_measures {
    double most, mean, per_tensor, per_token, rest_per_tensor, rest_per_token;
} outlier_measures;

// [layers + 1][points][2]: [0] the model as it is, [1] without its sinks; where it has none, with
// the first key hidden from row OUTLIER_FROM on. T0 and F1 are in the last layer.
enum { OUTLIER_FROM = 2 };
typedef struct outlier_study {
    size_t n_layers, n;
    bool without; // [1] is valid: the engine continues from A11, and rows are left to hide it from
    bool hidden;  // [1] has the first key hidden
    outlier_measures *of;
} outlier_study;
// `without`: the engine continues from A11.
bool outlier_measure(const sinkproof_model *model, sinkproof_runner *runner, bool without, size_t n,
                     const int32_t *tokens_n, void (*progress)(void *context, double share),
                     void *progress_context, outlier_study *study, sinkproof_error *error);
const outlier_measures *outlier_at(const outlier_study *study, size_t layer, size_t point,
                                   bool sinks);
void outlier_free(outlier_study *study);

// ---- the window --------------------------------------------------------------------------------

// Mean weights over a layer's heads and rows. Before: rows 1 ... w - 1, which see the first token
// and others; after: rows from w on, whose window, if there is one, excludes it. NAN: there are no
// such rows.
typedef struct sink_handover {
    size_t window; // 0: none; the rows are still divided at the model's window
    double first_before, first_after, sink_before, sink_after;
} sink_handover;

// The result over all layers with a window.
typedef struct handover_answer {
    size_t layers; // with a window and rows beyond it; 0: undecided
    // of these, those where the sink's weight is at least the first token's former weight
    size_t holds;
    size_t takes; // of these, those where the sink's weight grew by at least as much
} handover_answer;

// layers: [n_layers].
bool handover_measure(const sinkproof_model *model, sinkproof_runner *runner, size_t n,
                      const int32_t *tokens_n, void (*progress)(void *context, double share),
                      void *progress_context, sink_handover *layers, sinkproof_error *error);
handover_answer handover_decide(size_t n_layers, const sink_handover *layers);

#endif
