// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The parts of the study. Private to audit/studies/next/.
#ifndef SINKPROOF_NEXT_INTERNAL_H
#define SINKPROOF_NEXT_INTERNAL_H

#include "audit/studies/next/next.h"
#include "ref/backward/backward.h"

// What is studied.
typedef struct next_prompt {
    const sinkproof_model *model;
    const sinkproof_config *config;
    const sinkproof_policy *policy;
    size_t n;
    const int32_t *tokens_n;
} next_prompt;

// A number of each element of each point, [layers, TRACE_POINTS]; T0, F1 and F2 are in layer 0.
// NULL: none.
typedef struct next_map {
    size_t n_layers;
    double **at_lp;
} next_map;
bool next_map_new(next_map *map, size_t n_layers);
void next_map_free(next_map *map);
static inline double **next_map_at(const next_map *map, sinkproof_trace_point point, size_t layer) {
    return &map->at_lp[layer * TRACE_POINTS + (size_t)point];
}

// ---- next_sets.c: the honest sets of all logits, end to end
// Fills `kept` of each position, and the bounded layers of the study.
bool next_sets(const next_prompt *p, double rate, next_study *study, sinkproof_error *error);
// The least value of a token minus the largest of every other; -INFINITY: there is no bound.
double next_margin_kept(const double *lo_v, const double *hi_v, size_t vocab, size_t token);

// ---- next_branches.c: all runs of honest engines, where they are few
// Counts the branches of the study, if they are at most `most` and nothing else is honest, and then
// raises `kept` to what all of them keep.
bool next_branches(const next_prompt *p, size_t most, next_study *study, sinkproof_error *error);

// ---- next_first_order.c: the honest rounding of each stage, and derivatives
// The radius of each local honest set around the value over the reals, from inputs over the reals.
typedef struct next_radii {
    next_map worst, likely;
} next_radii;
bool next_radii_new(const next_prompt *p, double rate, const sinkproof_activations *real,
                    next_radii *radii, sinkproof_error *error);
void next_radii_free(next_radii *radii);

// The derivatives of the margin of position i at the points that an engine computes anew
// (next_engine_draws), in `kept` unless NULL; and worst and likely of the position. radii may be
// NULL.
bool next_derivatives(const next_prompt *p, const sinkproof_activations *real, size_t i,
                      const next_radii *radii, next_position *position, next_map *kept,
                      sinkproof_error *error);

// ---- next_engines.c: engines that the policy admits
// The argmax and the margin of each position in a run of an engine.
typedef struct next_said {
    size_t token;
    double margin; // of the truth's token over the largest other; negative: another is larger
} next_said;

typedef struct next_engine {
    const next_prompt *prompt;
    const next_position *position_n; // the truth
    uint64_t seed;                   // its choices
    const next_map *against;         // derivatives; NULL: it is steered nowhere
    const sinkproof_observer *shown; // sees every point, or NULL. M9 is not this engine's: it
                                     // computes M10 without it
    size_t flips;                    // choices of experts unlike those of `chosen_lnk`
    const double *const *chosen_l;   // M3 of each layer over the reals; NULL: not counted
    next_said *said_n;               // [n]
} next_engine;

// Whether an engine computes the point anew, in an order of its own.
bool next_engine_draws(sinkproof_trace_point point);
// The policy that the engine of a seed follows: each optional rounding is made everywhere or
// nowhere. Whoever follows it follows `policy`.
sinkproof_policy next_engine_policy(const sinkproof_policy *policy, uint64_t seed);
bool next_engine_run(next_engine *engine, sinkproof_error *error);

#endif
