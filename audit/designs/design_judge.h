// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge of a design's attention: each step from the engine's own inputs to it, against the
// honest set of a policy (proofs/bounds/variants.h). A step whose inputs are not in the file is
// undecided, by name; so is an element whose set has no ends.
#ifndef SINKPROOF_DESIGN_JUDGE_H
#define SINKPROOF_DESIGN_JUDGE_H

#include "audit/designs/design_trace.h"
#include "ref/policy.h"

typedef struct sinkproof_design_verdict {
    const sinkproof_design_layer *layer;
    sinkproof_design_tensor tensor; // what the step left behind
    bool bridged;                   // from more than one step: its set is wider
    char missing[160];              // "q, star.key": without which nothing is decided; or ""
    size_t elements, outside;       // judged; not in their sets
    size_t several;                 // whose set has more than one value
    size_t unbounded;               // whose sets have no ends, or inputs no numbers
    double worst;                   // distance from the emulation in half-widths of the set
    size_t head, row, column;       // the first outside
    double lo, hi, found;           // its set, and what the engine has there
} sinkproof_design_verdict;

typedef struct sinkproof_design_judgement {
    size_t count;
    sinkproof_design_verdict *verdicts; // in the order of layers, then of steps
} sinkproof_design_judgement;

// False: no memory, or a policy that rounds where the sets of the designs do not say what follows.
bool sinkproof_design_judge(const sinkproof_design_trace *trace, const sinkproof_policy *policy,
                            sinkproof_design_judgement *out, sinkproof_error *error);
void sinkproof_design_judgement_free(sinkproof_design_judgement *judgement);

bool sinkproof_design_decided(const sinkproof_design_verdict *verdict); // at least one element

// Where nobody said: the generic policy of the narrowest format in the file, f32, bf16 or f16, with
// every rounding optional, since it is not known where the engine rounds.
const char *sinkproof_design_policy(const sinkproof_design_trace *trace);

#endif
