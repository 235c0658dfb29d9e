// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Outliers of what passes through a model, and what eight bits with one scale lose of it, with the
// model's sink logits and without them; and whether the sink's weight stands where the first
// token's was, on rows whose window has left that token behind.
#ifndef SINKPROOF_OUTLIERS_H
#define SINKPROOF_OUTLIERS_H

#include "audit/engine/runner.h"

// ---- outliers ----------------------------------------------------------------------------------

// The points that are looked at: what meets a weight, and the residual stream.
enum { SINKPROOF_OUTLIER_POINTS = 7 };
extern const sinkproof_trace_point sinkproof_outlier_points[SINKPROOF_OUTLIER_POINTS];

// Of a tensor of n rows: max |x| / rms of a row, the largest and the mean over the rows; the error
// of whole numbers of 8 bits (bound.quantized-cache), relative, as roots of sums of squares: one
// scale for the tensor, one for each row. NAN: not seen.
typedef struct sinkproof_outliers {
    double most, mean, per_tensor, per_token;
} sinkproof_outliers;

// [layers + 1][points][2]: [0] with the model's sinks, [1] without; T0 and F1 in the last layer.
typedef struct sinkproof_outlier_study {
    size_t n_layers, n;
    bool without; // [1] is there: the engine goes on from A11
    sinkproof_outliers *of;
} sinkproof_outlier_study;
bool sinkproof_outlier_run(const sinkproof_model *model, sinkproof_runner *runner, bool without,
                           size_t n, const int32_t *tokens_n,
                           void (*progress)(void *context, double share), void *progress_context,
                           sinkproof_outlier_study *study, sinkproof_error *error);
const sinkproof_outliers *sinkproof_outlier_at(const sinkproof_outlier_study *study, size_t layer,
                                               size_t point, bool sinks);
void sinkproof_outlier_free(sinkproof_outlier_study *study);

// ---- the window --------------------------------------------------------------------------------

// Mean weights over a layer's heads and rows. Before: rows 1 ... w - 1, which see the first token
// and more than it; after: rows from w on, whose window has left it behind where there is one. NAN:
// there is no such row.
typedef struct sinkproof_handover {
    size_t window; // 0: none; the rows are divided by the model's window all the same
    double first_before, first_after, sink_before, sink_after;
} sinkproof_handover;

// What the layers with a window say together.
typedef struct sinkproof_handover_answer {
    size_t layers; // with a window and rows beyond it; 0: nothing is decided
    size_t holds;  // of these, where the sink has at least what the first token had
    size_t takes;  // of these, where its own weight grew by at least as much
} sinkproof_handover_answer;

// layers: [n_layers].
bool sinkproof_handover_run(const sinkproof_model *model, sinkproof_runner *runner, size_t n,
                            const int32_t *tokens_n, void (*progress)(void *context, double share),
                            void *progress_context, sinkproof_handover *layers,
                            sinkproof_error *error);
sinkproof_handover_answer sinkproof_handover_says(size_t n_layers,
                                                  const sinkproof_handover *layers);

#endif
