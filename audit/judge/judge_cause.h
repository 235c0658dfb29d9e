// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One change of the policy under which a trace would be honest.
#ifndef SINKPROOF_JUDGE_CAUSE_H
#define SINKPROOF_JUDGE_CAUSE_H

#include "audit/judge/judge.h"

// What one change explains: an override of the policy, or another policy.
typedef struct sinkproof_cause {
    char policy[SINKPROOF_POLICY_NAME + 64]; // the whole one under which the trace is honest
    const char *override;                    // of the one that was asked for; NULL: another policy
    const char *meaning;
} sinkproof_cause;

// Looks for one change under which everything that fails in `judgement` would be within. False:
// nothing fails, or no known one.
bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options,
                           const sinkproof_judgement *judgement, sinkproof_cause *cause);

#endif
