// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Does a trace show the difference that a supposed mistake makes? It is not enough that every
// element is inside the sets of the supposed engine: wide sets hold honest numbers too, and a few
// wrong ones with them. So the supposed engine is emulated on the trace's own inputs, and its
// numbers are compared with the sets of the declared engine. Which elements would the mistake move
// out of those sets, and are the same elements outside in the trace?
//
// Where the policy leaves roundings open there are two emulations: one does every optional
// rounding, the other none. An element is certainly moved where both leave its set, and possibly
// where one does. Where the policy admits several forms, the definition is emulated.
#ifndef SINKPROOF_JUDGE_EVIDENCE_H
#define SINKPROOF_JUDGE_EVIDENCE_H

#include "audit/judge/judge.h"

// Engines that are run on the same inputs.
typedef enum sinkproof_evidence_variant {
    SINKPROOF_VARIANT_DECLARED, // the declared engine, with what its policy leaves open
    SINKPROOF_VARIANT_ROUNDED,  // the supposed engine with every optional rounding
    SINKPROOF_VARIANT_UNROUNDED // the supposed engine without any optional rounding
} sinkproof_evidence_variant;

// Judges one variant with the options `how`, whose policy, meaning and rate the callee replaces.
// Returns false on error.
typedef bool variant_judge(void *context, sinkproof_evidence_variant variant,
                           const sinkproof_judge_options *how, sinkproof_error *error);

// Counts over the judged elements.
typedef struct sinkproof_evidence {
    size_t outside;       // outside in the trace
    size_t moved_outside; // of those, the elements that the mistake possibly moves
    size_t moved_inside;  // certainly moved by the mistake, but inside in the trace
} sinkproof_evidence;

typedef struct sinkproof_evidence_question {
    const sinkproof_config *config;
    const sinkproof_judgement *judgement; // of the declared engine; gives the shapes of the points
    size_t place;                         // a layer, or n_layers for the points outside the layers
    const sinkproof_stretch *stretch;     // the points that are judged
    const sinkproof_rows *rows;           // NULL: all rows
    const sinkproof_region *region;       // NULL: all elements
    bool open; // the supposed policy leaves roundings open: two emulations
    variant_judge *judge;
    void *context;
} sinkproof_evidence_question;

// Adds the counts of one place to *evidence. Returns false on error.
bool sinkproof_evidence_add(const sinkproof_evidence_question *question,
                            sinkproof_evidence *evidence, sinkproof_error *error);

// Whether the evidence supports the mistake: some elements that it moves are outside, no fewer than
// those that it moves and that are inside, and it moves at least half of those outside.
bool sinkproof_evidence_tells(const sinkproof_evidence *evidence);

// sinkproof_policy_settle leaves nothing open: each optional rounding is done (`rounded`) or, if it
// is to a format narrower than the inner one, left out; of several forms it keeps one.
// sinkproof_policy_is_open tells whether the two results differ.
void sinkproof_policy_settle(sinkproof_policy *policy, bool rounded);
bool sinkproof_policy_is_open(const sinkproof_policy *policy);

#endif
