// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A diagnosis stated as a policy: where overrides alone explain all that is outside, the policy
// that declares them, if the trace is honest under it.
#ifndef SINKPROOF_DIAGNOSED_CAUSE_H
#define SINKPROOF_DIAGNOSED_CAUSE_H

#include "audit/diagnose/diagnose.h"
#include "audit/judge/judge_cause.h"

// False: something else explains a finding, or nothing does; or not all that fails is within.
bool sinkproof_diagnosed_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                               const sinkproof_judge_options *options,
                               const sinkproof_judgement *judgement,
                               const sinkproof_diagnosis *diagnosis, sinkproof_cause *cause);

#endif
