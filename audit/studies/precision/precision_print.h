// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A study of precision as text of at most 100 columns, as JSON, and as a part of a page.
#ifndef SINKPROOF_PRECISION_PRINT_H
#define SINKPROOF_PRECISION_PRINT_H

#include "audit/studies/precision/precision.h"

#include <jansson.h>
#include <stdio.h>

void sinkproof_precision_print(FILE *out, const sinkproof_precision_study *study);

// Appends to `results`: {"id": "model", ...}, then one object for each policy with its points and
// its budget.
void sinkproof_precision_json(json_t *results, const sinkproof_precision_study *study);

// Writes the part of a page (audit/report/page.h) that shows a study. model_name and tokens: as the
// user gave them.
bool sinkproof_precision_part(FILE *page, const sinkproof_precision_study *study,
                              const char *model_name, const char *tokens, sinkproof_error *error);

#endif
