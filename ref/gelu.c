// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The activation of GPT-2 (M8, doc/30-gpt2.md): GELU with its normal distribution replaced by a
// tanh, "gelu_new" in checkpoints. A policy may round every step of it.
#include "ref/stages.h"

#include <math.h>

double sinkproof_gelu_one(const sinkproof_policy *policy, double x) {
    //> gelu.tanh
    double square = round_at(policy, AT_M8_SQUARE, x * x);
    double cube = round_at(policy, AT_M8_CUBE, square * x);
    double cubic = round_at(policy, AT_M8_CUBIC, 0.044715 * cube);
    double sum = round_at(policy, AT_M8_SUM, x + cubic);
    double root = sqrt(2 / acos(-1)); // of 2 / pi
    double inner = round_at(policy, AT_M8_INNER, root * sum);
    double bend = round_at(policy, AT_M8_TANH, tanh(inner));
    double one = round_at(policy, AT_M8_ONE, 1 + bend);
    return round_at(policy, AT_M8, 0.5 * x * one);
    //< gelu.tanh
}

void sinkproof_gelu(const sinkproof_policy *policy, size_t n, const double *x_n, double *y_n) {
    for (size_t i = 0; i < n; i++) y_n[i] = sinkproof_gelu_one(policy, x_n[i]);
}
