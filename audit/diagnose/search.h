// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The search for the explanations of a place: what its parts share (diagnose.c, findings.c,
// pairs.c, composed.c).
#ifndef SINKPROOF_SEARCH_H
#define SINKPROOF_SEARCH_H

#include "audit/diagnose/trial.h"

// A mistake of the catalogue, tried at the current place.
typedef struct candidate {
    mistakes_together what;
    unsigned reached;       // failing points that it reaches
    bool tried, fits;       // tried alone; no element is outside under it
    bool alone;             // tried alone only: in no pair, and never as the next best
    sinkproof_rows in_vain; // the last rows in which it was tried and explained nothing
} candidate;

struct attention_guesses; // attention_screen.h
struct attention_memory;

typedef struct search {
    place_trials trials;
    // of each point of attention of one layer, once they are found
    struct attention_guesses *guesses[TRACE_POINTS];
    size_t guessed; // the layer
    // of each point and kind of layer, without a window and with one; NULL: nothing was guessed yet
    struct attention_memory *memory;
    sinkproof_diagnosis *out;
    candidate *of; // the candidates of the current place
    mistake_trial *fitting;
    size_t n_candidates, n_fitting;
    size_t explained; // layers whose search explained every point
    size_t allowed;   // judgements, before the place that is searched ends
} search;

static inline unsigned point_bit(sinkproof_trace_point point) {
    return 1u << point;
}

bool budget_is_spent(const search *s);
bool fail_for_memory(const search *s);

// ---- findings. Added at the end of those of the diagnosis; NULL if memory runs out.
// One cause of several points is preferred to one of each: takes the findings of the place alone
// whose points are all among these, and returns their points.
unsigned findings_give(search *s, size_t place, unsigned points);
diagnosed_finding *add_finding(search *s, size_t place, unsigned points);
void finding_add_alike(diagnosed_finding *f, const mistakes_together *what);
// Keeps a supposition that does not explain f as the next best if its farthest element is nearer.
void keep_if_nearer(diagnosed_finding *f, const mistake_trial *t);
// Whether the mistakes put every point that they reach inside, and `points` are among those.
bool trial_explains(const mistake_trial *t, unsigned points);

// ---- pairs.c
// Counts the suppositions that reach a point, and the single mistakes that were tried.
void count_suppositions(const search *s, diagnosed_finding *f, sinkproof_trace_point point);
// Tries pairs for the first point of `left`; the other points that the pair explains leave with it.
bool explain_by_pairs(search *s, size_t place, unsigned *left);

#endif
