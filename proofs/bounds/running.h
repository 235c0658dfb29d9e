// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One step of a sum that runs in a known order, on the ends of its set (bound.accumulator): what
// accumulators.c and flash.c share.
#ifndef SINKPROOF_RUNNING_H
#define SINKPROOF_RUNNING_H

#include "proofs/bounds/bounds.h"

// The ends of a set, and the emulation.
typedef struct sinkproof_span {
    double lo, hi, mid;
} sinkproof_span;

// x y, rounded as a term; sum + term, and sum x, rounded as the accumulator is.
sinkproof_span sinkproof_running_product(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                         sinkproof_span x, sinkproof_span y);
sinkproof_span sinkproof_running_plus(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                      sinkproof_span sum, sinkproof_span term);
sinkproof_span sinkproof_running_scaled(const sinkproof_setting *s, const sinkproof_accumulator *a,
                                        sinkproof_span sum, sinkproof_span x);

// The set of a finished sum. Which of its numbers an engine has is its code's choice: nothing is
// centred. An infinite end leaves nothing known.
sinkproof_honest sinkproof_running_set(sinkproof_span sum);

#endif
