// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the weights of a planted circuit imply of its attention, for every sequence of tokens
// (doc/32-no-universal-mechanism.md): how much weight a position gets that carries the massive
// coordinates, or none. No token is looked at and no layer is run: norms of matrices bound what is
// drawn, and what is planted is enclosed. Every premise is checked on the weights.
#ifndef SINKPROOF_TRUTH_CIRCUIT_H
#define SINKPROOF_TRUTH_CIRCUIT_H

#include "proofs/truth/flint.h"
#include "base/error.h"
#include "model/model.h"

// gpt2.epe over the reals: MLP^(1)(p_i) + p_i of the first n positions, [n, hidden]. `normed`: with
// the norm before the perceptron. The model has one perceptron without a gate, and positions.
void sinkproof_truth_epe(arb_ptr epe_ic, const sinkproof_model *model, bool normed, size_t n,
                         slong bits);

// A run of n positions of a model as it runs, its weights edited already.
typedef struct sinkproof_circuit_run {
    const sinkproof_model *model;
    size_t n;
    bool late;           // no position joins the embeddings
    arb_srcptr joins_nc; // [n, hidden]: what joins the first layer's output; NULL: nothing
} sinkproof_circuit_run;

typedef struct sinkproof_circuit sinkproof_circuit;

// Fails, and names what is missing, where a premise does not hold. Aborts without memory.
bool sinkproof_circuit_derive(const sinkproof_circuit_run *run, slong bits,
                              sinkproof_circuit **circuit, sinkproof_error *error);
void sinkproof_circuit_free(sinkproof_circuit *circuit);

// alpha_tj of one head, j <= t, whatever the tokens are, as long as none is out of the vocabulary;
// the first embedding may also be 0. Rounded outward.
typedef struct sinkproof_circuit_weight {
    double lo, hi;
} sinkproof_circuit_weight;
sinkproof_circuit_weight sinkproof_circuit_alpha(const sinkproof_circuit *circuit, size_t layer,
                                                 size_t head, size_t t, size_t j);
// Delta_j of the whole width: b_Q W_k x_j.
sinkproof_circuit_weight sinkproof_circuit_delta(const sinkproof_circuit *circuit, size_t layer,
                                                 size_t j);

#endif
