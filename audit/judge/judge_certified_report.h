// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is said of a trace against certified truth.
#ifndef SINKPROOF_JUDGE_CERTIFIED_REPORT_H
#define SINKPROOF_JUDGE_CERTIFIED_REPORT_H

#include "audit/judge/judge_certified.h"

#include <jansson.h>
#include <stdio.h>

// A table by layer: of each layer the last point that both have; with `all` every point.
void sinkproof_certified_print(FILE *out, const certified_comparison *comparison,
                               const truth_file *file, bool all);
// Appends a result for the file and one for each point.
void sinkproof_certified_json(json_t *results, const certified_comparison *comparison,
                              const truth_file *file);

#endif
