// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The verdict on a trace that holds points and gradients: what both say together.
#ifndef SINKPROOF_RULING_GRADIENTS_H
#define SINKPROOF_RULING_GRADIENTS_H

#include "audit/judge/judge_backward.h"
#include "audit/sinkproof.h"

#include <stdio.h>

// The two judgements of a trace.
typedef struct ruled {
    const sinkproof_judgement *points;
    const sinkproof_gradient_judgement *gradients;
} ruled;

sinkproof_verdict ruled_verdict(ruled r);
int ruled_exit(ruled r, bool strict);
void ruled_print_conclusion(FILE *out, ruled r, int code);
sinkproof_finding ruled_finding(const sinkproof_point_report *report);
sinkproof_finding gradient_finding(const sinkproof_gradient_report *report);

#endif
