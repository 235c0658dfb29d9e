// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof sinks --judge` says.
#ifndef SINKPROOF_DESIGN_REPORT_H
#define SINKPROOF_DESIGN_REPORT_H

#include "audit/designs/design_judge.h"

#include <jansson.h>
#include <stdio.h>

void sinkproof_design_print(FILE *out, const sinkproof_design_judgement *judgement,
                            const char *policy);

// An array, a step each. NULL: no memory.
json_t *sinkproof_design_json(const sinkproof_design_judgement *judgement, const char *policy);

#endif
