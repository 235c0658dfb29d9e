// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights as a supposed engine reads them.
#ifndef SINKPROOF_WEIGHT_EDITS_H
#define SINKPROOF_WEIGHT_EDITS_H

#include "audit/diagnose/mistakes.h"

typedef struct weight_editing {
    const supposed_engine *s;
    struct owned_reading *all; // the memory of the view
    bool failed;
} weight_editing;

// For sinkproof_model_edited; `context` is a weight_editing, which is released once the view is
// closed.
void edit_weight(void *context, size_t layer, sinkproof_slot slot, sinkproof_matrix *weight);
void weight_editing_release(weight_editing *e);

// Row r of matrix e of a stack, rewritten. largest_e: the largest sizes in the matrices, which
// matter only where they give the scale of a rounding. Returns false if the row stays as it is in
// `row_c`.
bool weight_row_rewrite(const mistake_weight_edit *edit, const sinkproof_matrix *stack,
                        const double *largest_e, size_t e, size_t r, double *row_c);
// Whether the edit needs largest_e, and what it is. The second does nothing for a stack of more
// than `most` numbers, and returns false.
bool weight_edit_needs_largest(const mistake_weight_edit *edit);
bool weight_largest_sizes(const sinkproof_matrix *stack, size_t most, double *largest_e);

#endif
