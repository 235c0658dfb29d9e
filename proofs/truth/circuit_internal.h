// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the two halves of the derivation: the planted part (circuit_planted.c), and the random
// part with the conclusion (circuit.c).
#ifndef SINKPROOF_TRUTH_CIRCUIT_INTERNAL_H
#define SINKPROOF_TRUTH_CIRCUIT_INTERNAL_H

#include "model/slots.h"
#include "proofs/truth/circuit.h"
#include "proofs/truth/truth.h"

#include <stdlib.h>

typedef struct circuit_derivation {
    const sinkproof_circuit_run *run;
    const sinkproof_config *config;
    slong bits;
    size_t hidden, n_reserved;
    bool *reserved_c, *massive_c, *step_f;
    // [n, hidden] the reserved coordinates, 0 elsewhere: before the first layer, and after it
    arb_ptr place_ic, held_ic;
    // [n] bounds on the other coordinates: at the start, and of what is added to them
    arb_ptr start_i, joined_i;
    arb_ptr attention_l, mlp_l; // [layers] bounds on what attention and MLP add to them
    sinkproof_error *error;
} circuit_derivation;

// A whole weight, exact, [rows, cols].
arb_ptr circuit_weight_as_balls(const circuit_derivation *d, size_t l, sinkproof_slot slot,
                                size_t *rows, size_t *cols);
// |x| over the n coordinates that are not left out (NULL: all n).
void circuit_norm(arb_t out, arb_srcptr x_c, const bool *left_out_c, size_t n, slong bits);
// Returns `holds`; if false, the error says that `what` does not hold.
bool circuit_premise(const circuit_derivation *d, bool holds, size_t l, const char *what);

// Fills reserved_c, massive_c, step_f and checks the premises; `longest` bounds the embeddings'
// other coordinates.
bool circuit_find_planted(circuit_derivation *d, arb_t longest);
// Adds the first perceptron's output in the reserved coordinates of position i, whose deviation
// before it is at most `deviation`.
bool circuit_add_step(circuit_derivation *d, size_t i, const arb_t deviation);

#endif
