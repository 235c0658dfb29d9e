// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The study as text and as JSON.
#ifndef SINKPROOF_NEXT_PRINT_H
#define SINKPROOF_NEXT_PRINT_H

#include "audit/studies/next/next.h"

#include <jansson.h>
#include <stdio.h>

void sinkproof_next_print(FILE *out, const next_study *study, const sinkproof_policy *policy);
// Appends the rows of the results.
void sinkproof_next_json(json_t *results, const next_study *study, const sinkproof_policy *policy);

#endif
