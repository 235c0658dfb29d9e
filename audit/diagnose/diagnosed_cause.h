// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// States a diagnosis as a policy: where overrides alone explain every point outside, this is the
// policy that declares them, if the trace is honest under it.
#ifndef SINKPROOF_DIAGNOSED_CAUSE_H
#define SINKPROOF_DIAGNOSED_CAUSE_H

#include "audit/diagnose/diagnose.h"
#include "audit/judge/judge_cause.h"

// Returns false if some finding has another explanation or none, or if a failing point stays
// outside.
bool sinkproof_diagnosed_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_judge_options *options,
                               const sinkproof_judgement *judgement,
                               const sinkproof_diagnosis *diagnosis, sinkproof_cause *cause);

#endif
