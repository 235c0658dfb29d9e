// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numbers of one point, and their sets, as a judgement passes them.
#ifndef SINKPROOF_SEEN_SETS_H
#define SINKPROOF_SEEN_SETS_H

#include "audit/judge/judge.h"

// NULL: not asked for.
typedef struct seen_sets {
    sinkproof_trace_point point;
    size_t elements;
    double *v, *lo, *hi, *mid;
} seen_sets;

judge_witness see_sets; // its context is a seen_sets

#endif
