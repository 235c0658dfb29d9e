// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The working precision of `sinkproof truth`, and what it says of it before the run.
#ifndef SINKPROOF_COMMAND_TRUTH_PRECISION_H
#define SINKPROOF_COMMAND_TRUTH_PRECISION_H

#include "audit/trace/trace.h"

#include <stdio.h>

typedef struct truth_precision {
    size_t layers; // of the model, or the longest run of them in which no traced value is replayed
    double lost;   // bits in these layers (estimated)
    bool chosen;   // not stated by the user
    bool local;
} truth_precision;

// *bits 0: chosen here, so that a logit is left with `certified`. local: the trace that is
// replayed, or NULL.
truth_precision truth_choose_bits(const sinkproof_config *config, const sinkproof_trace *local,
                                  long certified, long *bits);
bool truth_bits_are_few(const truth_precision *p, long bits);
void truth_say_precision(FILE *out, const truth_precision *p, const sinkproof_config *config,
                         long bits);

#endif
