// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The truth of the whole model (model.forward over the reals), tokens to logits, the whole sequence
// at once. Every named point of the trace format is an enclosure.
//
// The walk serves two purposes. End to end: every ball follows from the tokens. Local: after `see`
// has received the truth of a point, `replay` replaces it by the engine's own values, as exact
// numbers. So the truth of every point is that of one operation on the engine's own inputs. If the
// engine did not trace a point, the point's enclosure is the input of the next operation.
#ifndef SINKPROOF_TRUTH_FORWARD_H
#define SINKPROOF_TRUTH_FORWARD_H

#include "model/model.h"
#include "proofs/truth/truth.h"

// A place in the walk: name "03.A4.q", point "A4.q". The layer is 0 for T0, F1 and F2.
typedef struct sinkproof_truth_place {
    const char *name, *point;
    size_t layer, rank;
    const size_t *shape; // [rank], as in the trace format; A6 and A9 over all n keys
} sinkproof_truth_place;

// The outcome of the choice of experts, which is discontinuous: one choice per layer and token.
typedef struct sinkproof_truth_routing {
    size_t choices;
    size_t ties;      // decided by definition: of equal exact logits the lower index wins
    size_t ambiguous; // not certified: the walk went on with the largest midpoints, or the replay
    size_t contested; // replayed selections that the truth of the router's input refutes
    size_t layer, token;             // of the thinnest margin (with the least lower end)
    arb_ptr margin;                  // [1] that margin, enclosed
    size_t first_layer, first_token; // the first ambiguous choice
    arb_ptr first_margin;            // [1]
} sinkproof_truth_routing;

// Checked results of products: enclosed or not, and those that no check could take.
typedef struct sinkproof_truth_checks {
    size_t products, rows, broken, unchecked;
} sinkproof_truth_checks;

// The walk between two layers: all that the rest of it depends on, and its accounts so far.
typedef struct sinkproof_truth_state {
    size_t layers;  // that are done
    arb_ptr values; // [n][hidden] M12 of the last of them, or what replaced it
    sinkproof_truth_routing routing;
    sinkproof_truth_checks checks;
} sinkproof_truth_state;

// Any of the functions may be NULL.
typedef struct sinkproof_truth_hooks {
    // Sees the enclosure of a point. Chosen experts (M3) come as exact integers. Masked keys of
    // A9 and A10 are exactly 0.
    void (*see)(void *context, const sinkproof_truth_place *place, arb_srcptr values);
    // May overwrite the values of a point other than M3, for everything that follows.
    void (*replay)(void *context, const sinkproof_truth_place *place, arb_ptr values);
    // May overwrite the selection of a layer, [n][k]; returns true if it did. The walk fails unless
    // the ids of a token are distinct and below the number of experts.
    bool (*choose)(void *context, size_t layer, size_t *chosen_nk);
    // Called after each layer. The walk fails if it returns false.
    bool (*layer)(void *context, const sinkproof_truth_state *state, sinkproof_error *error);
    void *context;
} sinkproof_truth_hooks;

typedef struct sinkproof_truth_request {
    const sinkproof_model *model;
    size_t n;
    const int32_t *tokens_n;
    slong bits;        // working precision, at least 32
    size_t check_rows; // so many results of each product are checked with GMP (check_rows.h)
    size_t threads;    // at most so many; they change no bit. 0: one
    bool last_logits;  // unembed the last token only: F1 and F2 have n = 1
    const sinkproof_truth_hooks *hooks; // may be NULL
    // NULL, or where a walk with the same model, tokens, bits, check_rows and hooks was after a
    // layer: the rest of it has the same bits. Its balls are copied.
    const sinkproof_truth_state *start;
} sinkproof_truth_request;

typedef struct sinkproof_truth_result {
    size_t n, vocab; // n = 1 under last_logits
    arb_ptr logits_nv;
    sinkproof_truth_routing routing;
    sinkproof_truth_checks checks;
} sinkproof_truth_result;

// Returns false on a token outside the vocabulary, an empty sequence, too few bits, or an invalid
// replayed selection.
bool sinkproof_truth_forward(const sinkproof_truth_request *request, sinkproof_truth_result *result,
                             sinkproof_error *error);
void sinkproof_truth_result_clear(sinkproof_truth_result *result);

#endif
