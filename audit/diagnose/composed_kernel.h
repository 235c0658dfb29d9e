// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is made of A11 by a kernel of attention, tried as a cause.
#ifndef SINKPROOF_COMPOSED_KERNEL_H
#define SINKPROOF_COMPOSED_KERNEL_H

#include "audit/diagnose/attention_kernel.h"
#include "audit/diagnose/composed_made.h"

// The table with these numbers behind. NULL if memory runs out.
const double *kernel_table(composing *c, size_t n, const double *numbers);
// Whether the point is A11 of one sequence from position 0 on, of few enough numbers.
bool kernel_is_asked(const composing *c);
// Whether the point is A6 of one sequence from position 0 on, with all its scores in the trace.
bool kernel_scores_are_asked(const composing *c);
// Tries what is made if nearly all elements are near, those that are inside by the definition too:
// a slip of a kernel is no matter of some positions. In `made` the caller has made, its numbers and
// its table.
bool kernel_try(const operation *o, const made_kind *made);

#endif
