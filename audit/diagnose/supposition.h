// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a trace as that of an engine with some mistakes.
#ifndef SINKPROOF_SUPPOSITION_H
#define SINKPROOF_SUPPOSITION_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge_evidence.h"

// The arguments that stay the same over many questions about one trace.
typedef struct sinkproof_suspect {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    double rate;
    sinkproof_variant settled; // DECLARED: the roundings that the policy leaves open stay open
} sinkproof_suspect;

// Judges a trace as that of an engine with all of the mistakes; *how gives the other options.
// *possible: every mistake can occur in the model and the policy; otherwise nothing is judged.
// Returns false on error.
bool sinkproof_suppose_all(const sinkproof_suspect *suspect, size_t n,
                           const sinkproof_mistake *const *mistakes,
                           const sinkproof_judge_options *how, sinkproof_judgement *judgement,
                           bool *possible, sinkproof_error *error);

// Whether the mistake can occur in the model and the policy.
bool sinkproof_can_suppose(const sinkproof_suspect *suspect, const sinkproof_mistake *mistake);

#endif
