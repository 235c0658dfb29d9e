// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace judged as `sinkproof judge` does it: the policy found when it is `auto`, the forms, the
// one cause that explains a bug; the report as text and as JSON. The public face of the judge
// (audit/sinkproof.h), and what the command needs beyond it.
#ifndef SINKPROOF_RULING_H
#define SINKPROOF_RULING_H

#include "audit/judge/judge.h"
#include "audit/sinkproof.h"

#include <jansson.h>

// The judgement and its points, as sinkproof_judgement_json makes them; lives with the ruling.
json_t *sinkproof_ruling_results(const sinkproof_ruling *ruling);

// What the ruling is about; lives with it.
const sinkproof_judgement *sinkproof_ruling_judgement(const sinkproof_ruling *ruling);

// judge_cause.c: what one change explains: an override of the policy, or another policy.
typedef struct sinkproof_cause {
    char policy[320];     // the whole policy under which the trace is honest
    const char *override; // of the one that was asked for; NULL: another policy
    const char *meaning;
} sinkproof_cause;

// Looks for one change under which everything that fails in `judgement` would be within. False:
// nothing fails, or no known one.
bool sinkproof_judge_cause(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options,
                           const sinkproof_judgement *judgement, sinkproof_cause *cause);

#endif
