// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The part of a page that shows a trace's gradients.
#ifndef SINKPROOF_REPORT_GRADIENTS_H
#define SINKPROOF_REPORT_GRADIENTS_H

#include "audit/judge/judge_backward.h"

#include <stdio.h>

// The verdict in a sentence where a gradient is outside; else nothing is written, and false
// returned.
bool write_gradient_title(FILE *page, const sinkproof_gradient_judgement *judgement,
                          const char *policy);
// Writes nothing for a trace without gradients.
void write_gradients(FILE *page, const sinkproof_gradient_judgement *judgement);

#endif
