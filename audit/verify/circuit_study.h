// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The planted circuit under an intervention: every weight of attention of one run beside what the
// weights of the model imply (proofs/truth/circuit.h). Run and derivation are told their
// intervention apart, so that a test can leave one out.
#ifndef SINKPROOF_CIRCUIT_STUDY_H
#define SINKPROOF_CIRCUIT_STUDY_H

#include "audit/intervene/interventions.h"
#include "proofs/truth/circuit.h"

enum { SINKPROOF_STUDY_BITS = 256 };

typedef struct sinkproof_circuit_options {
    bool normed;              // gpt2.epe, as in the derivation
    bool balls;               // the run over the reals; else the reference in binary64
    bool zero_first_position; // a mistake for tests: p_1 is 0, and not e_1
} sinkproof_circuit_options;

typedef struct sinkproof_circuit_study {
    size_t weights, outside; // alpha_tj, j <= t, of all layers, heads and rows behind the first;
                             // not in the derived range
    double share;            // the largest distance from a range's middle over half its width
    // Of the last row, the layers behind the first and the heads with a query bias, or of all heads
    // where none has one: the least and the largest weight of the first and of the second position,
    // as they ran, and as they are derived.
    double least[2], most[2], derived_least[2], derived_most[2];
    double *alpha_lhtj; // [layers, heads, n, n] the weights, or the midpoints of their balls
    size_t alphas;
} sinkproof_circuit_study;

// What the weights imply under an intervention of any run of n tokens or fewer; to be freed by
// sinkproof_circuit_free. Fails where nothing can be derived.
bool sinkproof_circuit_study_derive(const sinkproof_model *model,
                                    const sinkproof_interventions *changes, bool normed, size_t n,
                                    sinkproof_circuit **circuit, sinkproof_error *error);

// *out is to be freed also on failure.
bool sinkproof_circuit_study_run(const sinkproof_model *model, const sinkproof_circuit *derived,
                                 const sinkproof_interventions *run,
                                 const sinkproof_circuit_options *options, size_t n,
                                 const int32_t *tokens_n, sinkproof_circuit_study *out,
                                 sinkproof_error *error);
void sinkproof_circuit_study_free(sinkproof_circuit_study *study);

#endif
