// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Softmax with a sink (A9, A10; doc/06-softmax-sink.md). The logit b of the row's sink is one
// more entry of the denominator and contributes no value vector: a query may attend to nothing.
//   alpha_ij = e^(s_ij - m) / Z,  alpha_sink = e^(b - m) / Z,
//   Z = e^(b - m) + sum_j e^(s_ij - m),  m = max(b, max_j s_ij),  j over the visible keys.
// With m as shift no exponential exceeds 1 and one of them is 1, hence 1 <= Z <= keys + 1: no
// overflow and no 0/0, whatever the finite scores. b = -inf gives the ordinary softmax, exactly.
#include "ref/stages.h"

#include <math.h>
#include <string.h>

static double gate_step(const sinkproof_policy *policy, double x) {
    return round_at(policy, AT_A9_GATE, x);
}

// An engine whose sink is a gate. Where sigmoid(LSE - b) reads the keys' LSE rounded, the sink's
// exponential is e^(LSE - r(LSE)) times as large. Where each step of the gate e^(LSE - LSE') is
// rounded, LSE' with the sink, the sink has what the gate leaves. Returns the sum of all.
static double gate_by_rounded(const sinkproof_policy *policy, size_t keys, const double *e_j,
                              double m, double b, double *e_sink) {
    double z = 0;
    for (size_t j = 0; j < keys; j++) z += e_j[j];
    if (!(z > 0) || b == -INFINITY) return z + *e_sink;
    double lse = m + log(z), read = round_at(policy, AT_A9_LSE, lse);
    if (policy->at[AT_A9_GATE].format == SINKPROOF_REAL) return z + (*e_sink *= exp(lse - read));
    double most = fmax(read, b);
    double both = gate_step(policy, exp(gate_step(policy, read - most))) +
                  gate_step(policy, exp(gate_step(policy, b - most)));
    double all = gate_step(policy, gate_step(policy, log(gate_step(policy, both))) + most);
    double gate = fmax(gate_step(policy, exp(gate_step(policy, read - all))), 0x1p-1000);
    *e_sink = z / gate - z;
    return z / gate;
}

// One row over its visible keys s_j, j in [0, keys): alpha_j, and the sink's weight.
static void softmax_row(const sinkproof_policy *policy, size_t keys, const double *s_j, double b,
                        double *alpha_j, double *alpha_sink) {
    //> sink.stable sink.limit law.shift
    double m = b;
    for (size_t j = 0; j < keys; j++) m = fmax(m, s_j[j]);
    double e_sink = exp(round_at(policy, AT_A9_MAX, b - m));
    double z = e_sink;
    for (size_t j = 0; j < keys; j++) {
        alpha_j[j] = exp(round_at(policy, AT_A9_MAX, s_j[j] - m));
        z += alpha_j[j];
    }
    //< sink.stable sink.limit law.shift
    if (policy->at[AT_A9_LSE].format != SINKPROOF_REAL ||
        policy->at[AT_A9_GATE].format != SINKPROOF_REAL)
        z = gate_by_rounded(policy, keys, alpha_j, m, b, &e_sink);
    //> sink.alpha repeat.sink
    bool divided_first = sinkproof_policy_rounds_weights_once(policy);
    for (size_t j = 0; j < keys; j++) {
        double e = divided_first ? alpha_j[j] : round_at(policy, AT_A9_UNNORM, alpha_j[j]);
        alpha_j[j] = round_at(policy, AT_A9, e / z);
    }
    //< sink.alpha repeat.sink
    //> sink.alpha-sink sink.mass-below-one sink.gate
    *alpha_sink = round_at(policy, AT_A9, e_sink / z);
    //< sink.alpha-sink sink.mass-below-one sink.gate
}

// The weights of the keys sum to 1 - alpha_sink (sink.mass): dropping the sink's column
// renormalises nothing.
void sinkproof_softmax_sink(const sinkproof_policy *policy, const sinkproof_block *block,
                            const double *b_i, const double *s_ij, double *alpha_ij) {
    for (size_t i = 0; i < block->rows; i++) {
        double b = round_at(policy, AT_A8, b_i[i]);
        double *alpha_j = alpha_ij + i * (block->keys + 1);
        size_t position = block->first + i;
        size_t first = sinkproof_mask_first(block->window, position);
        memset(alpha_j, 0, block->keys * sizeof *alpha_j);
        //> sink.mass
        softmax_row(policy, position + 1 - first, s_ij + i * block->keys + first, b,
                    alpha_j + first, alpha_j + block->keys);
        //< sink.mass
    }
}
