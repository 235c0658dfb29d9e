// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What would the judge say if the engine had these mistakes?
#ifndef SINKPROOF_SUPPOSITION_H
#define SINKPROOF_SUPPOSITION_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge_evidence.h"

// What is asked again and again of one trace.
typedef struct sinkproof_suspect {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    double rate;
    sinkproof_variant settled; // DECLARED: what the policy leaves open is left open
} sinkproof_suspect;

// Judges as `how` says, but for its meaning, an engine's trace as one's with all of the mistakes.
// *possible: the model and the policy have a place for each, else nothing is judged. False: an
// error.
bool sinkproof_suppose_all(const sinkproof_suspect *suspect, size_t n,
                           const sinkproof_mistake *const *mistakes,
                           const sinkproof_judge_options *how, sinkproof_judgement *judgement,
                           bool *possible, sinkproof_error *error);

// Have the model and the policy a place for the mistake?
bool sinkproof_can_suppose(const sinkproof_suspect *suspect, const sinkproof_mistake *mistake);

#endif
