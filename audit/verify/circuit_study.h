// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted circuit under an intervention: every attention weight of one run is compared with the
// range that the weights of the model imply (proofs/truth/circuit.h). The run and the derivation
// get their interventions separately, so that a test can leave one out.
#ifndef SINKPROOF_CIRCUIT_STUDY_H
#define SINKPROOF_CIRCUIT_STUDY_H

#include "audit/intervene/interventions.h"
#include "proofs/truth/circuit.h"

enum { CIRCUIT_STUDY_BITS = 256 };

typedef struct circuit_options {
    bool normed;              // uses gpt2.epe, as in the derivation
    bool balls;               // run over the reals; else the reference in binary64
    bool zero_first_position; // a mistake for tests: p_1 is 0, and not e_1
} circuit_options;

typedef struct circuit_study {
    // weights: alpha_tj, j <= t, of all layers, heads and rows after the first; outside: not in the
    // derived range
    size_t weights, outside;
    double share; // largest distance from a range's middle over half its width
    // Over the last row, the layers after the first and the heads with a query bias (all heads if
    // none has one): the smallest and the largest weight of the first and of the second position,
    // measured and derived.
    double least[2], most[2], derived_least[2], derived_most[2];
    double *alpha_lhtj; // [layers, heads, n, n] weights, or midpoints of their balls
    size_t alphas;
} circuit_study;

// Derives the ranges that the weights imply under an intervention, for runs of at most n tokens;
// the caller frees them with sinkproof_circuit_free. Fails if nothing can be derived.
bool circuit_study_derive(const sinkproof_model *model, const sinkproof_interventions *changes,
                          bool normed, size_t n, sinkproof_circuit **circuit,
                          sinkproof_error *error);

// The caller frees *out, also after a failure.
bool circuit_study_run(const sinkproof_model *model, const sinkproof_circuit *derived,
                       const sinkproof_interventions *run, const circuit_options *options, size_t n,
                       const int32_t *tokens_n, circuit_study *out, sinkproof_error *error);
void circuit_study_free(circuit_study *study);

#endif
