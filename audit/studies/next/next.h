// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What honest rounding can do to the next token. For each position of a prompt the truth says which
// logit is the largest, and by how much: its margin. Three questions follow, from the most certain
// to the least.
//
//   certified  the honest sets of all logits, end to end from the tokens under a policy: if the
//              least value of the truth's token is above the largest of every other, no honest
//              engine says another token (next_sets.c).
//   changed    an engine that the policy admits was run, and says another token: a fact
//              (next_engines.c).
//   open       neither.
//
// Beside them stands an estimate to first order: by how much honest rounding can lower the margin,
// if each stage's honest rounding is multiplied by the margin's derivative there
// (next_first_order.c). A derivative knows no second order and no other choice of experts, so this
// number certifies nothing.
#ifndef SINKPROOF_NEXT_H
#define SINKPROOF_NEXT_H

#include "model/model.h"
#include "ref/policy.h"

typedef enum next_fate {
    NEXT_CERTIFIED,
    NEXT_CHANGED,
    NEXT_OPEN,
    NEXT_UNKNOWN, // the truth itself has no certified argmax here
    NEXT_FATES
} next_fate;

const char *next_fate_name(next_fate fate);

typedef struct next_position {
    int32_t token;         // of the prompt
    size_t argmax, runner; // the truth's largest logit, and the largest other
    double margin;         // between the two, at least; NAN: unknown
    // The margin that every honest engine keeps, by its sets; negative or -INFINITY: none is known.
    double kept;
    // Of the margin, to first order: what honest rounding takes at most, and what it takes if
    // roundings are independent and centred, at odds of the rate. NAN: not asked, or no derivative.
    double worst, likely;
    double least;      // margin in a drawn engine, of all engines
    size_t changed;    // engines that say another token
    size_t changed_to; // the token of the first of them
    next_fate fate;
} next_position;

typedef struct next_study {
    size_t n, n_layers;
    next_position *at_n;
    size_t count[NEXT_FATES];
    // Of the positions that no engine changed: those with an estimate, those whose margin exceeds
    // `worst`, and `likely`.
    size_t estimated, beyond_worst, beyond_likely;
    size_t engines; // that were run
    size_t steered; // of these: against a position
    // Of the choices of experts, layers times tokens, and how many times an engine chose others.
    size_t choices, flips;
    size_t broken; // positions that are certified and changed: a bound or an engine is wrong
    size_t truth_ambiguous; // choices that the truth leaves open: its logits are then unknown
    // Layers at whose end every element of the residual stream has a bound, from the first on, and
    // at least one element has. Equal to n_layers: all.
    size_t all_bounded, some_bounded;
    // The first layer where honest rounding may choose other experts, and for how many tokens; 0:
    // no layer that has sets.
    size_t open_layer, open_tokens;
    size_t branches; // each honest engine's run is one of so many; 0: not known
    double rate;
} next_study;

typedef struct next_options {
    long bits;       // of the truth
    size_t threads;  // of the truth
    size_t branches; // at most so many runs are followed
    size_t draws;    // engines with random orders and roundings
    bool steer;      // and one against each position
    bool derivative; // the estimate to first order
    bool last;       // steered and estimated: the last position alone
    uint64_t seed;
    double rate; // of the likely estimate, of a tensor
    void (*progress)(void *context, const char *what, size_t done, size_t total); // or NULL
    void *context;
} next_options;

// Runs on all processors; the result is the same for any number of threads.
bool sinkproof_next_run(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                        const sinkproof_policy *policy, const next_options *options,
                        next_study *study, sinkproof_error *error);
void sinkproof_next_free(next_study *study);

#endif
