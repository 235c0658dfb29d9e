// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge of a design's attention: each step is computed from the engine's own inputs to it and
// compared with the honest set of a policy (proofs/bounds/variants.h). A step whose inputs are not
// in the file is undecided, and the report names them; an element with an unbounded set is
// undecided too.
#ifndef SINKPROOF_DESIGN_JUDGE_H
#define SINKPROOF_DESIGN_JUDGE_H

#include "audit/designs/design_trace.h"
#include "ref/policy.h"

typedef struct design_verdict {
    const design_layer *layer;
    design_tensor tensor;     // the output of the step
    bool bridged;             // spans more than one step: the set is wider
    char missing[160];        // inputs without which nothing is decided, "q, star.key"; or ""
    size_t elements, outside; // judged elements, and those outside their sets
    size_t several;           // elements whose set has more than one value
    size_t unbounded;         // elements with an unbounded set or a NaN among their inputs
    double worst;             // distance from the emulation in half-widths of the set
    size_t head, row, column; // the first element outside
    double lo, hi, found;     // its set, and the engine's value
} design_verdict;

typedef struct sinkproof_design_judgement {
    size_t count;
    design_verdict *verdicts; // in the order of layers, then of steps
} sinkproof_design_judgement;

// Returns false if memory runs out, or if the policy rounds where the sets of the designs have no
// rule for it.
bool sinkproof_design_judge(const sinkproof_design_trace *trace, const sinkproof_policy *policy,
                            sinkproof_design_judgement *out, sinkproof_error *error);
void sinkproof_design_judgement_free(sinkproof_design_judgement *judgement);

// at least one element is decided
bool sinkproof_design_decided(const design_verdict *verdict);

// The policy for a file that declares none: the generic one of the narrowest format in the file,
// f32, bf16 or f16, with every rounding optional, since the engine's roundings are unknown.
const char *sinkproof_design_policy(const sinkproof_design_trace *trace);

#endif
