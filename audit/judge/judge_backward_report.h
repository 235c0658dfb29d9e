// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The report on a trace's gradients, as text and as JSON.
#ifndef SINKPROOF_JUDGE_BACKWARD_REPORT_H
#define SINKPROOF_JUDGE_BACKWARD_REPORT_H

#include "audit/judge/judge_backward.h"

#include <jansson.h>
#include <stdio.h>

// Prints nothing for a trace without gradients. all: a line for each layer.
void sinkproof_gradients_print(FILE *out, const sinkproof_gradient_judgement *judgement,
                               const char *policy, bool all);
// Appends a row for each gradient, and adds their number and what is outside to the first row.
void sinkproof_gradients_json(json_t *results, const sinkproof_gradient_judgement *judgement);

#endif
