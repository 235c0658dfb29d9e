// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints the output of `sinkproof sinks --judge`.
#ifndef SINKPROOF_DESIGN_REPORT_H
#define SINKPROOF_DESIGN_REPORT_H

#include "audit/designs/design_judge.h"

#include <jansson.h>
#include <stdio.h>

void sinkproof_design_print(FILE *out, const sinkproof_design_judgement *judgement,
                            const char *policy);

// An array with one object for each step. NULL if memory runs out.
json_t *sinkproof_design_json(const sinkproof_design_judgement *judgement, const char *policy);

#endif
