// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the paper does to GPT-2 to see what makes its sink (doc/32-no-universal-mechanism.md): parts
// of weights set to zero, one token's embedding, and what a position brings after the first layer.
// They combine. Whoever runs a model runs the view of it that an application makes, under an
// observer that passes each point through sinkproof_intervention_replace.
#ifndef SINKPROOF_INTERVENTIONS_H
#define SINKPROOF_INTERVENTIONS_H

#include "ref/forward.h"
#include "ref/mechanism.h"

#include <stdint.h>

enum { SINKPROOF_MOVES = 16, SINKPROOF_ROWS = 64 };
#define SINKPROOF_AS_MASSIVE SIZE_MAX // rows of the control: as many as are massive

typedef struct sinkproof_interventions {
    bool zero_bq;  // 1: b_Q = 0 in every layer
    bool zero_bos; // 4: the first token's embedding is 0 before its position is added
    // 2 and 3: after the first layer (M12 of layer 0), EPE_from leaves position `from` and another
    // position's comes in its place.
    //   swap A:B   x_A += EPE_B - EPE_A: A gets B's; B keeps its own.
    //   move A:B   x_B += EPE_A - EPE_B and x_A += EPE_B - EPE_A: B gets A's, and A gets B's.
    // With `late`, no position is added to the embeddings, and each position's EPE, exchanged so,
    // is added after the first layer. No position gets another's twice.
    bool late;
    size_t n_moves;
    struct {
        bool swap;       // else move
        size_t from, to; // from 0
    } move_n[SINKPROOF_MOVES];
    // 5: the rows of W_k (coordinates of the normed state) that are 0 in every layer: those that
    // gpt2.massive finds in EPE_1, or these.
    bool massive_rows;
    size_t n_rows, row_n[SINKPROOF_ROWS];
    // The control: so many drawn by the seed, none of them massive, listed or drawn before.
    size_t n_random; // or SINKPROOF_AS_MASSIVE
    uint64_t seed;
} sinkproof_interventions;

bool sinkproof_interventions_any(const sinkproof_interventions *changes);
// "b_Q = 0; rows 138, 378, 447 of W_k = 0", for tables and pages. Positions from 1. Of none:
// "none".
typedef struct sinkproof_intervention_name {
    char text[2048];
} sinkproof_intervention_name;
sinkproof_intervention_name sinkproof_interventions_named(const sinkproof_interventions *changes);

// An option of audit/command/intervention_options.h, by its name without dashes, and its argument
// (NULL where it takes none) join the changes, which are as they were where it is refused. False:
// the error names the option, what was expected and what was found.
bool sinkproof_intervention_read(const char *option, const char *argument,
                                 sinkproof_interventions *changes, sinkproof_error *error);

// The seven panels of the paper's figure 3: none, then 1 to 5, then the control with as many rows
// as are massive. NULL after the last.
typedef struct sinkproof_intervention_panel {
    const char *name, *what; // "zero-bq", "no query bias"
    sinkproof_interventions changes;
} sinkproof_intervention_panel;
const sinkproof_intervention_panel *sinkproof_intervention_panel_at(size_t i);

typedef struct sinkproof_intervened sinkproof_intervened;

// n tokens from position 0 on, run in one pass; epe_ic [n, hidden] (NULL where no EPE is added) and
// the n_massive massive coordinates of EPE_1 of the model as it is. The intervened model must be
// freed before `model` is closed. Fails on a position or a coordinate that is not there, on a model
// whose positions are no rows where one is asked for, a control that asks for more rows than there
// are, massive rows where none is massive, and without memory; *intervened is NULL then.
bool sinkproof_intervene(const sinkproof_model *model, const sinkproof_interventions *changes,
                         const sinkproof_policy *policy, size_t n, const double *epe_ic,
                         size_t n_massive, const size_t *massive_at,
                         sinkproof_intervened **intervened, sinkproof_error *error);
void sinkproof_intervened_free(sinkproof_intervened *intervened);
const sinkproof_model *sinkproof_intervened_model(const sinkproof_intervened *intervened);
// The rows of W_k that are 0, *n of them, the least first.
const size_t *sinkproof_intervened_rows(const sinkproof_intervened *intervened, size_t *n);
// An observer's `replace`, `context` a sinkproof_intervened: changes T0 and M12 of layer 0. The
// difference of two EPE is rounded as the policy rounds M12, and so is its sum with the state;
// late, the one sum is.
void sinkproof_intervention_replace(void *context, const char *name, size_t rank,
                                    const size_t *shape, double *values);

#endif
