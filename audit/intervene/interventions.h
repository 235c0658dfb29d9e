// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The paper's interventions on GPT-2, which show what makes its sink
// (doc/32-no-universal-mechanism.md): parts of weights are set to zero, one token's embedding too,
// or the contribution of a position after the first layer is changed. They combine. The caller runs
// the view of the model that an application makes, under an observer that passes each point to
// sinkproof_intervention_replace.
#ifndef SINKPROOF_INTERVENTIONS_H
#define SINKPROOF_INTERVENTIONS_H

#include "ref/forward.h"
#include "ref/mechanism.h"

#include <stdint.h>

enum { INTERVENTION_MOVES = 16, INTERVENTION_ROWS = 64 };
#define SINKPROOF_AS_MASSIVE SIZE_MAX // size of the control: the number of massive rows

typedef struct sinkproof_interventions {
    bool zero_bq;  // 1: b_Q = 0 in every layer
    bool zero_bos; // 4: the first token's embedding is 0 before its position is added
    // 2 and 3: after the first layer (M12 of layer 0), EPE_from is removed from position `from` and
    // another position's is added instead.
    //   swap A:B   x_A += EPE_B - EPE_A: A gets B's; B keeps its own.
    //   move A:B   x_B += EPE_A - EPE_B and x_A += EPE_B - EPE_A: B gets A's, and A gets B's.
    // With `late`, no position is added to the embeddings; each position's EPE, exchanged in this
    // way, is added after the first layer. No position gets another's EPE twice.
    bool late;
    size_t n_moves;
    struct {
        bool swap;       // else move
        size_t from, to; // from 0
    } move_n[INTERVENTION_MOVES];
    // 5: the rows of W_k (coordinates of the normed state) that are 0 in every layer: those that
    // gpt2.massive finds in EPE_1, or the listed ones.
    bool massive_rows;
    size_t n_rows, row_n[INTERVENTION_ROWS];
    // The control: this many random rows, none of them massive, listed or already chosen.
    size_t n_random; // or SINKPROOF_AS_MASSIVE
    uint64_t seed;
} sinkproof_interventions;

bool sinkproof_interventions_any(const sinkproof_interventions *changes);
// A text such as "b_Q = 0; rows 138, 378, 447 of W_k = 0", for tables and pages. Positions count
// from 1. Without interventions: "none".
typedef struct intervention_name {
    char text[2048];
} intervention_name;
intervention_name sinkproof_interventions_describe(const sinkproof_interventions *changes);

// Adds an option of audit/command/intervention_options.h to the changes: its name without dashes,
// and its argument (NULL if it takes none). If it is invalid, returns false and leaves the changes
// as they were; the error names the option, what was expected and what was found.
bool sinkproof_intervention_read(const char *option, const char *argument,
                                 sinkproof_interventions *changes, sinkproof_error *error);

// The seven panels of the paper's figure 3: none, then 1 to 5, then the control with as many rows
// as are massive. NULL after the last.
typedef struct intervention_panel {
    const char *name, *what; // "zero-bq", "no query bias"
    sinkproof_interventions changes;
} intervention_panel;
const intervention_panel *sinkproof_intervention_panel_at(size_t i);

typedef struct sinkproof_intervened sinkproof_intervened;

// Applies changes to a run of n tokens from position 0 on, in one pass. epe_ic [n, hidden] (NULL if
// no EPE is added) and the n_massive massive coordinates of EPE_1 are those of the unchanged model.
// Free the result before closing `model`. Fails, with *intervened NULL, on a position or a
// coordinate that does not exist, on a model without position rows if one is needed, on a control
// with more rows than there are, on massive rows if none is massive, and if memory runs out.
bool sinkproof_intervened_new(const sinkproof_model *model, const sinkproof_interventions *changes,
                              const sinkproof_policy *policy, size_t n, const double *epe_ic,
                              size_t n_massive, const size_t *massive_at,
                              sinkproof_intervened **intervened, sinkproof_error *error);
void sinkproof_intervened_free(sinkproof_intervened *intervened);
const sinkproof_model *sinkproof_intervened_model(const sinkproof_intervened *intervened);
// The rows of W_k that are 0, *n of them, in ascending order.
const size_t *sinkproof_intervened_zero_rows(const sinkproof_intervened *intervened, size_t *n);
// An observer's `replace`, whose `context` is a sinkproof_intervened: changes T0, and M12 of layer
// 0. The difference of two EPE is rounded as the policy rounds M12, and so is its sum with the
// state; with `late` only the sum is rounded.
void sinkproof_intervention_replace(void *context, const char *name, size_t rank,
                                    const size_t *shape, double *values);

#endif
