// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Does a trace show what a supposition makes different? That every element is inside the supposed
// sets is not enough: sets that are wide hold honest numbers too, and a few wrong ones with them.
// So the supposed engine is emulated on the trace's own inputs, and its numbers are held against
// the sets of the engine that was declared: which elements would it move out of them, and are
// those outside in the trace?
//
// Where the policy leaves roundings open there are two emulations, with all of them and with none:
// an element is moved for certain where both leave its set, and may be where one does. Of several
// forms the definition is emulated.
#ifndef SINKPROOF_JUDGE_EVIDENCE_H
#define SINKPROOF_JUDGE_EVIDENCE_H

#include "audit/judge/judge.h"

// Engines on the same inputs.
typedef enum sinkproof_variant {
    SINKPROOF_VARIANT_DECLARED, // the one that is asked about, as its policy leaves it open
    SINKPROOF_VARIANT_ROUNDED,  // the supposed one, which does all optional roundings
    SINKPROOF_VARIANT_UNROUNDED // which does none of them
} sinkproof_variant;

// Judges one of them as `how` says, but for its policy, its meaning and its rate. False: an error.
typedef bool sinkproof_variant_judge(void *context, sinkproof_variant variant,
                                     const sinkproof_judge_options *how, sinkproof_error *error);

// Counted over the elements that are judged.
typedef struct sinkproof_evidence {
    size_t outside;       // in the trace
    size_t moved_outside; // of these those that may be moved
    size_t moved_inside;  // moved for certain, and inside in the trace
} sinkproof_evidence;

typedef struct sinkproof_evidence_question {
    const sinkproof_config *config;
    const sinkproof_judgement *judgement; // of the declared engine: the shapes of its points
    size_t place;                         // a layer, or n_layers for what lies outside them
    const sinkproof_stretch *stretch;     // what is judged
    const sinkproof_rows *rows;           // NULL: all
    bool open; // the supposed policy leaves roundings open: there are two emulations
    sinkproof_variant_judge *judge;
    void *context;
} sinkproof_evidence_question;

// Adds to *evidence. False: an error.
bool sinkproof_evidence_add(const sinkproof_evidence_question *question,
                            sinkproof_evidence *evidence, sinkproof_error *error);

// What the supposition moves is outside: some elements, and no fewer than those that it moves and
// that are inside; and at least half of what is outside is what it moves.
bool sinkproof_evidence_tells(const sinkproof_evidence *evidence);

// Leaves nothing open: each optional rounding is done, or, narrower than the format inside, left
// out; of the forms one. sinkproof_policy_is_open: the two differ.
void sinkproof_policy_settle(sinkproof_policy *policy, bool rounded);
bool sinkproof_policy_is_open(const sinkproof_policy *policy);

#endif
