// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Finds a change of the policy under which a failing trace would be honest.
#ifndef SINKPROOF_JUDGE_CAUSE_H
#define SINKPROOF_JUDGE_CAUSE_H

#include "audit/judge/judge.h"

#include <stdio.h>

// Overrides of the declared policy, or another policy in its place.
typedef struct sinkproof_cause {
    char policy[SINKPROOF_POLICY_NAME + 64]; // the whole policy under which the trace is honest
    size_t n, at;       // number of overrides and where they start in `policy`; n 0: another policy
    char meaning[1024]; // sentences, one per line, joined by semicolons
    bool deployment;    // a freedom of how the engine was deployed, and no mistake
} sinkproof_cause;

// Starts from the policy of the judgement; overrides are added to it.
void sinkproof_cause_begin(sinkproof_cause *cause, const sinkproof_judgement *judgement);
// Returns false if `policy` or `meaning` has no room left.
bool sinkproof_cause_add(sinkproof_cause *cause, const char *override, const char *meaning);

// Judges the trace under the cause's policy: is every failing point then within?
bool sinkproof_cause_explains(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judge_options *options,
                              const sinkproof_judgement *judgement, const sinkproof_cause *cause);

// Looks for one known override that explains every failing point, or else for another policy among
// those that auto tries. Returns false if nothing fails or nothing explains it.
bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options,
                           const sinkproof_judgement *judgement, sinkproof_cause *cause);
bool sinkproof_judge_other_policy(const sinkproof_model *model, const sinkproof_trace *trace,
                                  const sinkproof_judge_options *options,
                                  const sinkproof_judgement *judgement, sinkproof_cause *cause);

// Looks for a deployment that the policy does not state and that would make every failing point
// honest: two, four or eight ranks, or a product split into blocks whose sums are rounded, of 8
// terms up to half of them. Is asked last: it is a freedom, and a narrower cause is nearer.
bool sinkproof_judge_deployment(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                const sinkproof_judgement *judgement, sinkproof_cause *cause);

// Prints that it explains the failing points.
void sinkproof_cause_print(FILE *out, const sinkproof_judgement *j, const sinkproof_cause *found);

#endif
