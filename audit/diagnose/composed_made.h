// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers that a mistake makes from the trace: the point's own, or those that its operation reads
// in the place of an input.
#ifndef SINKPROOF_COMPOSED_MADE_H
#define SINKPROOF_COMPOSED_MADE_H

#include "audit/diagnose/composed_values.h"

typedef struct made_kind {
    sinkproof_make *make;
    bool adds; // to the point's own numbers
    double numbers[SINKPROOF_MAKING_NUMBERS];
    size_t ranged;          // which of these is said with its range; 0: none
    const double *table;    // kept as long as the diagnosis (composing_keep_numbers), or NULL
    bool measured;          // the point must differ along what this changes, and by about as much
    bool fitted;            // so it must, and this must hold most of how the point differs
    bool widened;           // all elements must be near, within the widths that `make` gives
    char id[80], text[352]; // "holds ..." of the point; "with ..." of an input
} made_kind;

// A new mistake in which the operation reads that input otherwise; the caller sets how.
composed_mistake *composing_reads(composing *c, const sinkproof_input *input);
// Begins its words: "M11 reads the experts' weights (M4)".
void composed_say_reads(const composing *c, composed_mistake *m, const sinkproof_input *input);

// A copy of numbers, for as long as the diagnosis. NULL if memory runs out.
const double *composing_keep_numbers(composing *c, size_t n, const double *numbers);

// What a number is made from: the trace, and the point with its elements.
sinkproof_making composing_making(const composing *c);

// Tries what is made of the point, in each of its regions, if a sample is near. False on error.
bool composing_try_made(const operation *o, const made_kind *kind);
// Tries what is made of an input in its place, if a sample is near; also rounded to its format.
bool composing_try_made_input(const operation *o, size_t input, const made_kind *kind);
// Tries what is made of the experts in the slots, if a sample is near; of an operation with weights
// of experts.
bool composing_try_made_experts(const operation *o, const made_kind *kind);

// composed_without.c: x: the outputs of attention without the keys [first, first + count), of the
// rows behind them. Returns false if the trace does not have what makes them, or memory runs out.
bool attention_without_keys(const sinkproof_making *of, size_t first, size_t count, double *x);

#endif
