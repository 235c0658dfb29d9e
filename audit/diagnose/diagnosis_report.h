// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Prints a diagnosis in words, and as JSON.
#ifndef SINKPROOF_DIAGNOSIS_REPORT_H
#define SINKPROOF_DIAGNOSIS_REPORT_H

#include "audit/diagnose/diagnose.h"

#include <jansson.h>
#include <stdio.h>

void sinkproof_diagnosis_print(FILE *out, const sinkproof_config *config,
                               const sinkproof_diagnosis *diagnosis);
// An array with one object for each finding. NULL if memory runs out.
json_t *sinkproof_diagnosis_json(const sinkproof_config *config,
                                 const sinkproof_diagnosis *diagnosis);

#endif
