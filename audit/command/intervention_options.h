// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The options of a command that intervenes on a model (audit/intervene/interventions.h): --zero-bq,
// --swap-epe A:B, --move-epe A:B (positions from 1), --late-epe, --zero-bos,
// --zero-wk-rows auto|LIST, --zero-wk-random auto|N[,SEED] (seed 1). A child of the command's own
// parser.
#ifndef SINKPROOF_INTERVENTION_OPTIONS_H
#define SINKPROOF_INTERVENTION_OPTIONS_H

#include "audit/intervene/interventions.h"

#include <argp.h>

// Its input is a sinkproof_interventions, all zero before the first option.
extern const struct argp interventions_parser;

#endif
