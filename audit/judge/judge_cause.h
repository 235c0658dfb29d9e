// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A change of the policy under which a trace would be honest.
#ifndef SINKPROOF_JUDGE_CAUSE_H
#define SINKPROOF_JUDGE_CAUSE_H

#include "audit/judge/judge.h"

// Overrides of the policy that was asked for, or another policy.
typedef struct sinkproof_cause {
    char policy[SINKPROOF_POLICY_NAME + 64]; // the whole one under which the trace is honest
    size_t n, at;       // overrides, and where they stand in it; n 0: it is another policy
    char meaning[1024]; // sentences, a line each, with semicolons between them
} sinkproof_cause;

// The policy that a judgement was asked for, to which overrides are added.
void sinkproof_cause_begin(sinkproof_cause *cause, const sinkproof_judgement *judgement);
// False: there is no room for it.
bool sinkproof_cause_add(sinkproof_cause *cause, const char *override, const char *meaning);

// Would everything that fails in the judgement be within under the cause's policy? It is judged.
bool sinkproof_cause_explains(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judge_options *options,
                              const sinkproof_judgement *judgement, const sinkproof_cause *cause);

// Looks for one known override under which everything that fails would be within, or for another
// policy, of those that auto tries. False: nothing fails, or there is none.
bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options,
                           const sinkproof_judgement *judgement, sinkproof_cause *cause);
bool sinkproof_judge_other_policy(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_judge_options *options,
                                  const sinkproof_judgement *judgement, sinkproof_cause *cause);

#endif
