// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One step of a sum in a known order, on the ends of its set (bound.accumulator): shared by
// accumulators.c and flash.c.
#ifndef SINKPROOF_RUNNING_H
#define SINKPROOF_RUNNING_H

#include "proofs/bounds/bounds.h"

// The ends of a set, and the emulation.
typedef struct number_span {
    double lo, hi, mid;
} number_span;

// x y, rounded like a term; sum + term, and sum x, rounded like the accumulator.
number_span running_span_product(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                 number_span x, number_span y);
number_span running_plus(const sinkproof_setting *s, const sinkproof_accumulator *a,
                         number_span sum, number_span term);
number_span running_scaled(const sinkproof_setting *s, const sinkproof_accumulator *a,
                           number_span sum, number_span x);

// The set of a finished sum. An engine's code chooses among its numbers: nothing is centred. With
// an infinite end nothing is known.
sinkproof_honest running_sum_set(number_span sum);

#endif
