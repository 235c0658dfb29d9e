// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The catalogue: what engines are known to get wrong, each with a change that makes the judge's
// honest sets those of an engine with that mistake. Data: an entry is a line of mistakes.c.
#ifndef SINKPROOF_MISTAKES_H
#define SINKPROOF_MISTAKES_H

#include "audit/judge/judge_meaning.h"
#include "model/slots.h"
#include "ref/policy.h"

enum { SINKPROOF_WEIGHT_EDITS = 16 };

// Weights read otherwise than they are stored, of every layer.
typedef struct sinkproof_weight_edit {
    unsigned slots;            // bits
    sinkproof_reading reading; // of a vector the column may be any function
    bool borrowed;             // another slot's, or another layer's, in its place
    sinkproof_slot from;
    int layer_by;
} sinkproof_weight_edit;

// An engine with some mistakes: everything that is not the definition.
typedef struct sinkproof_supposition {
    const sinkproof_model *model;
    sinkproof_config config;
    sinkproof_meaning meaning;
    sinkproof_policy policy;
    sinkproof_weight_edit edits[SINKPROOF_WEIGHT_EDITS];
    size_t n_edits;
} sinkproof_supposition;

typedef struct sinkproof_mistake sinkproof_mistake;
// False: this model or policy has no place for the mistake.
typedef bool sinkproof_suppose(sinkproof_supposition *s, const sinkproof_mistake *mistake);

struct sinkproof_mistake {
    const char *id;   // "window-wide"
    const char *text; // "the window is one key too wide": what an engine does, as a sentence
    unsigned points;  // where it acts first, as bits of sinkproof_trace_point
    sinkproof_suppose *suppose;
    double by;            // how much, of a mistake that has a size
    unsigned slots;       // of weights, as bits
    const char *override; // of a policy; or NULL
};

size_t sinkproof_mistakes(void);
const sinkproof_mistake *sinkproof_mistake_at(size_t i);

// Whether it is known to make infinities or NaN of numbers: a narrower range, 1/0, an exponential
// without the maximum.
bool sinkproof_mistake_may_overflow(const sinkproof_mistake *mistake);

// A running sum in a narrower format, whose sets take a step for each term: it is supposed where no
// other mistake explains what is outside, and neither together with one nor as the next best.
bool sinkproof_mistake_stands_alone(const sinkproof_mistake *mistake);

#endif
