// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Judges a trace as that of an engine with some mistakes.
#ifndef SINKPROOF_SUPPOSITION_H
#define SINKPROOF_SUPPOSITION_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge_evidence.h"

// The arguments that stay the same over many questions about one trace.
typedef struct suspect_engine {
    const sinkproof_model *model;
    const sinkproof_trace *trace;
    const sinkproof_policy *policy;
    double rate;
    // Keys and values of the tokens before the trace, as the engine without mistakes has them;
    // NULL: unknown.
    const struct judge_prefix *prefix;
    sinkproof_evidence_variant
        settled; // DECLARED: the roundings that the policy leaves open stay open
    bool call;   // of a kernel, with nothing of the model around it
    // of a call: rows that came in each pass over a cache, and the row that begins a second piece;
    // 0: unknown
    size_t pass, piece;
} suspect_engine;

// Judges a trace as that of an engine with all of the mistakes; *how gives the other options.
// *possible: every mistake can occur in the model and the policy; otherwise nothing is judged.
// Returns false on error.
bool suspect_suppose_all(const suspect_engine *suspect, size_t n,
                         const known_mistake *const *mistakes, const sinkproof_judge_options *how,
                         sinkproof_judgement *judgement, bool *possible, sinkproof_error *error);

// Whether the mistake can occur in the model and the policy.
bool suspect_can_suppose(const suspect_engine *suspect, const known_mistake *mistake);

// The part of the points in which the mistakes are, if they can occur. Elsewhere they say nothing.
sinkproof_region suspect_region(const suspect_engine *suspect, size_t n,
                                const known_mistake *const *mistakes);

#endif
