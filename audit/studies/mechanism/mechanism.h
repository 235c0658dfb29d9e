// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mechanism of GPT-2's sink, measured on one run of a model with an input
// (doc/31-score-terms.md, doc/32-no-universal-mechanism.md). Every number is estimated: computed in
// binary64 from the numbers that the run holds. Positions, layers and heads count from 0 here and
// in JSON; the paper's and the printed ones count from 1, coordinates from 0 as the paper does.
#ifndef SINKPROOF_AUDIT_MECHANISM_H
#define SINKPROOF_AUDIT_MECHANISM_H

#include "audit/intervene/interventions.h"
#include "audit/trace/trace.h"
#include "ref/mechanism.h"

typedef struct sinkproof_mechanism_layer {
    // Of the whole width, before the heads are split (the paper's form).
    double *gamma_c; // [hidden] b_Q W_k^T
    double *delta_j; // [n] gamma x_j^T, x_j the state after the norm A1
    double *align_j; // [n] cos(b_Q, EPE_j W_k)
    // Of each head: its rows of W_k and its part of the biases. Sums over the heads are the above.
    double *gamma_hc; // [heads, hidden]
    double *delta_hj; // [heads, n]
    double *align_hj; // [heads, n]
    // How far each term tells the first key from the others: mean over the rows t >= 2 of
    // term(t, 1) less its mean over the keys 2 to t, times the scale. QUERY and CONSTANT are 0 in
    // exact arithmetic. NAN of one token.
    double *lead_hk; // [heads, SINKPROOF_TERMS]
    // gpt2.expand as measured: the largest |q_t k_j^T - sum of the four terms| over the pairs
    // j <= t, over the sum of the terms' absolute values; 0 where all are 0.
    double *apart_h;    // [heads]
    double *weight_hij; // [heads, n, n] A10; NULL where no maps are kept
    double *alpha_hj;   // [heads, n] metric.sink of key j: the mean weight over all rows
} sinkproof_mechanism_layer;

typedef struct sinkproof_mechanism {
    const sinkproof_config *config; // the model's
    size_t n;                       // tokens
    sinkproof_interventions did;    // what was done to the run
    size_t n_rows, *row_at;         // rows of W_k that are 0 by it, the least first
    double *epe_ic;                 // [n, hidden] of the model as it is, also under interventions
    double *epe_check_i;            // [n] cos(EPE_i, R_i - O_i)
    sinkproof_massive_rule rule;    // of |EPE_1|, three deviations
    size_t *massive_at;             // [rule.n]
    sinkproof_mechanism_layer *layers; // [config->n_layers]
} sinkproof_mechanism;

typedef struct sinkproof_mechanism_options {
    bool normed;                            // gpt2.epe with the LayerNorm before the perceptron
    bool no_maps;                           // weight_hij is not kept
    const sinkproof_interventions *changes; // or NULL: none
    void (*progress)(void *context, double share); // or NULL
    void *progress_context;
} sinkproof_mechanism_options;

// Runs the reference. Fails where the model is no GPT-2 (no rotation, no router, biases and a
// perceptron without a gate are what it needs), a token is outside the vocabulary, a number is not
// finite, or memory is short. *out is to be freed also on failure.
bool sinkproof_mechanism_run(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
                             const int32_t *tokens_n, const sinkproof_mechanism_options *options,
                             sinkproof_mechanism *out, sinkproof_error *error);
void sinkproof_mechanism_free(sinkproof_mechanism *mechanism);

#endif
