// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How many parameters a configuration has.
#ifndef SINKPROOF_EXACT_PARAMETERS_H
#define SINKPROOF_EXACT_PARAMETERS_H

#include "model/config.h"

typedef struct sinkproof_parameters {
    size_t total, active, mxfp4; // all; those that one token uses; those stored as MXFP4
} sinkproof_parameters;

sinkproof_parameters sinkproof_parameters_count(const sinkproof_config *config);
size_t parameters_bytes(sinkproof_parameters n);

#endif
