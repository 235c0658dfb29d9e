// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How many parameters a configuration has, all of them whole numbers.
#ifndef SINKPROOF_EXACT_PARAMETERS_H
#define SINKPROOF_EXACT_PARAMETERS_H

#include "model/config.h"

typedef struct sinkproof_parameters {
    size_t total, active, mxfp4; // all; those that a token meets; those stored as MXFP4
} sinkproof_parameters;

sinkproof_parameters sinkproof_parameters_of(const sinkproof_config *config);
size_t sinkproof_parameters_bytes(sinkproof_parameters n);

#endif
