// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers of an operation in binary64, at a sample of the elements outside. They refute most
// suppositions before the judge makes sets: what is not near the engine's values is not tried.
#ifndef SINKPROOF_COMPOSED_VALUES_H
#define SINKPROOF_COMPOSED_VALUES_H

#include "audit/diagnose/composed_fit.h"
#include "audit/diagnose/weight_edits.h"

enum { SAMPLED_ROWS = 8, SAMPLES = 64 };

// The operation that computes the point, with all that it reads.
typedef struct operation {
    composing *c;
    point_operation kind;
    bool whole; // the trace has every input
    size_t layer, n_inputs, n_weights;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t width[SINKPROOF_MAX_INPUTS]; // numbers of a token
    double *x[SINKPROOF_MAX_INPUTS];    // the trace's
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    sinkproof_matrix weights[SINKPROOF_MAX_WEIGHTS];
    size_t n, at[SAMPLES]; // the sample: of a few rows
} operation;

// Frees with operation_free whatever it returns; false: no memory.
bool operation_read(composing *c, operation *o);
void operation_free(operation *o);

// What is supposed of it: other numbers in the place of input `input` (NULL: none), and weights
// that are rewritten (NULL: none).
typedef struct operation_change {
    size_t input;
    const double *x;
    const mistake_weight_edit *edit;
    const double *largest_e;
    size_t edited;            // which of the weights; SIZE_MAX: all
    const int32_t *chosen_nk; // other experts in the slots; NULL: those that the trace shows
} operation_change;

// The value of an element under the change; NAN: unknown.
double operation_value(const operation *o, const operation_change *change, size_t at);

// Whether the sample is near the engine's values under the change: seven of eight elements, each
// within a few widths of its set.
bool operation_is_near(const operation *o, const operation_change *change);

// Whether a value is so near.
bool value_is_near(const composing *c, size_t at, double value);

#endif
