// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Derives the attention of a planted circuit from its weights, for every sequence of tokens
// (doc/32-no-universal-mechanism.md): how much weight a position receives that carries the massive
// coordinates, and one that does not. No token is read and no layer is run: norms of matrices bound
// the random part, and the planted part is enclosed. Every premise is checked on the weights.
#ifndef SINKPROOF_TRUTH_CIRCUIT_H
#define SINKPROOF_TRUTH_CIRCUIT_H

#include "base/error.h"
#include "model/model.h"
#include "proofs/truth/flint.h"

// gpt2.epe over the reals: MLP^(1)(p_i) + p_i for the first n positions, [n, hidden]. `normed`:
// with the norm before the perceptron. The model must have positions and one perceptron without a
// gate.
void sinkproof_truth_epe(arb_ptr epe_ic, const sinkproof_model *model, bool normed, size_t n,
                         slong bits);

// A run of n positions on a model whose weights are already edited.
typedef struct sinkproof_circuit_run {
    const sinkproof_model *model;
    size_t n;
    bool late;           // no position is added to the embeddings
    arb_srcptr joins_nc; // [n, hidden]: added to the first layer's output; NULL: nothing
} sinkproof_circuit_run;

typedef struct sinkproof_circuit sinkproof_circuit;

// Fails if a premise does not hold, and names it in `error`. Aborts if memory runs out.
bool sinkproof_circuit_derive(const sinkproof_circuit_run *run, slong bits,
                              sinkproof_circuit **circuit, sinkproof_error *error);
void sinkproof_circuit_free(sinkproof_circuit *circuit);

// The range of alpha_tj of one head, j <= t, for all tokens of the vocabulary; the first embedding
// may also be 0. Rounded outward.
typedef struct sinkproof_circuit_weight {
    double lo, hi;
} sinkproof_circuit_weight;
sinkproof_circuit_weight sinkproof_circuit_alpha(const sinkproof_circuit *circuit, size_t layer,
                                                 size_t head, size_t t, size_t j);
// Delta_j over the whole width: b_Q W_k x_j.
sinkproof_circuit_weight circuit_delta(const sinkproof_circuit *circuit, size_t layer, size_t j);

#endif
