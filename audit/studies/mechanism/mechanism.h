// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Measures the mechanism of GPT-2's sink on one run of a model with an input
// (doc/31-score-terms.md, doc/32-no-universal-mechanism.md). Every number is estimated: computed in
// binary64 from the numbers of the run. Positions, layers and heads count from 0 here and in JSON;
// in the paper and in print they count from 1, and coordinates from 0.
#ifndef SINKPROOF_AUDIT_MECHANISM_H
#define SINKPROOF_AUDIT_MECHANISM_H

#include "audit/intervene/interventions.h"
#include "audit/trace/trace.h"
#include "ref/mechanism.h"

typedef struct mechanism_layer {
    // Over the whole width, before the split into heads (the paper's form).
    double *gamma_c; // [hidden] b_Q W_k^T
    double *delta_j; // [n] gamma x_j^T, where x_j is the state after the norm A1
    double *align_j; // [n] cos(b_Q, EPE_j W_k)
    // For each head, with its rows of W_k and its part of the biases. Sums over the heads give the
    // above.
    double *gamma_hc; // [heads, hidden]
    double *delta_hj; // [heads, n]
    double *align_hj; // [heads, n]
    // How much each term favours the first key: the mean over the rows t >= 2 of term(t, 1) minus
    // its mean over the keys 2 to t, times the scale. QUERY and CONSTANT are 0 in exact arithmetic.
    // NAN for one token.
    double *lead_hk; // [heads, SINKPROOF_TERMS]
    // gpt2.expand as measured: the largest |q_t k_j^T - sum of the four terms| over the pairs j <=
    // t, over the sum of the terms' absolute values; 0 if all are 0.
    double *apart_h;    // [heads]
    double *weight_hij; // [heads, n, n] A10; NULL without maps
    double *alpha_hj;   // [heads, n] metric.sink of key j: the mean weight over all rows
} mechanism_layer;

typedef struct sinkproof_mechanism {
    const sinkproof_config *config; // the model's
    size_t n;                       // tokens
    sinkproof_interventions did;    // the interventions of the run
    size_t n_rows, *row_at;         // rows of W_k that they set to 0, ascending
    double *epe_ic;                 // [n, hidden] of the unchanged model, also under interventions
    double *epe_check_i;            // [n] cos(EPE_i, R_i - O_i)
    sinkproof_massive_rule rule;    // for |EPE_1|, three deviations
    size_t *massive_at;             // [rule.n]
    mechanism_layer *layers;        // [config->n_layers]
} sinkproof_mechanism;

typedef struct sinkproof_mechanism_options {
    bool normed;                            // gpt2.epe with the LayerNorm before the perceptron
    bool no_maps;                           // do not keep weight_hij
    const sinkproof_interventions *changes; // NULL: none
    void (*progress)(void *context, double share); // or NULL
    void *progress_context;
} sinkproof_mechanism_options;

// Runs the reference and measures. Fails if the model is not a GPT-2 (no rotation, no router,
// biases, and a perceptron without a gate are required), a token is outside the vocabulary, a
// number is not finite, or memory runs out. Free *out also after a failure.
bool sinkproof_mechanism_run(const sinkproof_model *model, const sinkproof_policy *policy, size_t n,
                             const int32_t *tokens_n, const sinkproof_mechanism_options *options,
                             sinkproof_mechanism *out, sinkproof_error *error);
void sinkproof_mechanism_free(sinkproof_mechanism *mechanism);

#endif
