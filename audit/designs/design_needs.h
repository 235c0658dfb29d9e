// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the step that leaves a tensor behind is made of, and what of it a file lacks.
#ifndef SINKPROOF_DESIGN_NEEDS_H
#define SINKPROOF_DESIGN_NEEDS_H

#include "audit/designs/design_trace.h"

#define AT(name) SINKPROOF_DESIGN_##name

static inline bool has(const sinkproof_design_layer *l, sinkproof_design_tensor t) {
    return l->at[t] != NULL;
}

static inline bool has_star_column(const sinkproof_design_layer *l, sinkproof_design_tensor t) {
    return has(l, t) && l->at[t]->shape[2] > l->rows;
}

static inline bool featured(const sinkproof_design_layer *l) {
    return l->variant.feature != SINKPROOF_FEATURE_SELF;
}

// A bias of one row for all queries counts from the first key: slope j, where slope (j - i) is
// another by a number of the row alone, which no softmax sees.
static inline bool one_for_all_rows(const sinkproof_design_layer *l) {
    return l->at[AT(BIAS)]->shape[1] == 1 && l->rows > 1;
}

// Whether a step of the file left `t` behind. A query of which the file does not say what it was
// before its rotation is only what the next step reads.
static inline bool is_step(const sinkproof_design_layer *l, sinkproof_design_tensor t) {
    if (t == AT(Q)) return has(l, t) && has(l, AT(UNTURNED_Q));
    if (t == AT(K)) return has(l, t) && has(l, AT(UNTURNED_K));
    if (t == AT(COS) || t == AT(SIN)) return has(l, t) && has(l, AT(BASE));
    return has(l, t);
}

// Writes "q, star.key": without which nothing is known of `t`, or of the star's score; or "".
void sinkproof_design_missing(const sinkproof_design_layer *l, sinkproof_design_tensor t,
                              char *text, size_t size);
void sinkproof_design_missing_star(const sinkproof_design_layer *l, char *text, size_t size);

#endif
