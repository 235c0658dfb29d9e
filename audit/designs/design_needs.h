// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The inputs of the step that computes a tensor, and those of them that a file lacks.
#ifndef SINKPROOF_DESIGN_NEEDS_H
#define SINKPROOF_DESIGN_NEEDS_H

#include "audit/designs/design_trace.h"

#define AT(name) DESIGN_##name

static inline bool has_tensor(const design_layer *l, design_tensor t) {
    return l->at[t] != NULL;
}

static inline bool has_star_column(const design_layer *l, design_tensor t) {
    return has_tensor(l, t) && l->at[t]->shape[2] > l->rows;
}

static inline bool has_feature_map(const design_layer *l) {
    return l->variant.feature != SINKPROOF_FEATURE_SELF;
}

// A bias with one row for all queries counts from the first key: slope j. It differs from slope (j
// - i) by a constant of the row, which no softmax sees.
static inline bool bias_is_shared(const design_layer *l) {
    return l->at[AT(BIAS)]->shape[1] == 1 && l->rows > 1;
}

// Whether a step of the file computed `t`. A query whose value before its rotation is not in the
// file is only an input of the next step.
static inline bool is_computed_in_file(const design_layer *l, design_tensor t) {
    if (t == AT(Q)) return has_tensor(l, t) && has_tensor(l, AT(UNTURNED_Q));
    if (t == AT(K)) return has_tensor(l, t) && has_tensor(l, AT(UNTURNED_K));
    if (t == AT(COS) || t == AT(SIN)) return has_tensor(l, t) && has_tensor(l, AT(BASE));
    return has_tensor(l, t);
}

// Writes the inputs, such as "q, star.key", without which nothing is known of `t`, or of the star's
// score; or "".
void design_write_missing(const design_layer *l, design_tensor t, char *text, size_t size);
void design_write_missing_star(const design_layer *l, char *text, size_t size);

#endif
