// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The inputs of the step that computes a tensor, and those of them that a file lacks.
#ifndef SINKPROOF_DESIGN_NEEDS_H
#define SINKPROOF_DESIGN_NEEDS_H

#include "audit/designs/design_trace.h"

#define AT(name) DESIGN_##name

static inline bool has(const design_layer *l, design_tensor t) {
    return l->at[t] != NULL;
}

static inline bool has_star_column(const design_layer *l, design_tensor t) {
    return has(l, t) && l->at[t]->shape[2] > l->rows;
}

static inline bool featured(const design_layer *l) {
    return l->variant.feature != SINKPROOF_FEATURE_SELF;
}

// A bias with one row for all queries counts from the first key: slope j. It differs from slope (j
// - i) by a constant of the row, which no softmax sees.
static inline bool one_for_all_rows(const design_layer *l) {
    return l->at[AT(BIAS)]->shape[1] == 1 && l->rows > 1;
}

// Whether a step of the file computed `t`. A query whose value before its rotation is not in the
// file is only an input of the next step.
static inline bool is_step(const design_layer *l, design_tensor t) {
    if (t == AT(Q)) return has(l, t) && has(l, AT(UNTURNED_Q));
    if (t == AT(K)) return has(l, t) && has(l, AT(UNTURNED_K));
    if (t == AT(COS) || t == AT(SIN)) return has(l, t) && has(l, AT(BASE));
    return has(l, t);
}

// Writes the inputs, such as "q, star.key", without which nothing is known of `t`, or of the star's
// score; or "".
void design_write_missing(const design_layer *l, design_tensor t, char *text, size_t size);
void design_write_missing_star(const design_layer *l, char *text, size_t size);

#endif
