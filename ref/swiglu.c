// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts' activation (M8, doc/09-swiglu-experts.md): z = g sigmoid(alpha g) (u + offset),
// where the gate g is clamped from above only and u on both sides. GPT-OSS has alpha 1.702, the
// limit 7 and the offset 1; Llama has alpha 1, no limit and the offset 0, and then computes neither
// the product alpha g nor the sum. Very negative gates overflow e^(-alpha g) to infinity, and the
// sigmoid is then 0, never NaN.
#include "ref/stages.h"

#include <math.h>

//> swiglu.clamped
// Where e^|t| is rounded (M8.exp), the sigmoid is computed from it: 1 / (1 + e^|t|) is sigmoid(t)
// for negative t and 1 - sigmoid(t) otherwise.
static double rounded_sigmoid(const sinkproof_policy *policy, double t) {
    if (policy->at[AT_M8_EXP].format == SINKPROOF_REAL) return 1 / (1 + exp(-t));
    double y = 1 / (1 + round_at(policy, AT_M8_EXP, exp(fabs(t))));
    return t < 0 ? y : 1 - y;
}
//< swiglu.clamped

double sinkproof_swiglu_one(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers,
                            double gate, double up) {
    //> swiglu.clamped
    double limit = numbers.limit;
    double g = gate > limit ? limit : gate; // a NaN stays a NaN
    double u = up > limit ? limit : up < -limit ? -limit : up;
    double scaled = g, shifted = u;
    if (numbers.alpha != 1) {
        double a = round_at(policy, AT_M8_ALPHA, numbers.alpha);
        scaled = round_at(policy, AT_M8_SCALED, a * g);
    }
    double sigmoid = round_at(policy, AT_M8_SIGMOID, rounded_sigmoid(policy, scaled));
    double swish = round_at(policy, AT_M8_SWISH, g * sigmoid);
    if (numbers.offset != 0) shifted = round_at(policy, AT_M8_UP, u + numbers.offset);
    return round_at(policy, AT_M8, swish * shifted);
    //< swiglu.clamped
}

void sinkproof_swiglu(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers, size_t n,
                      const double *gate_up_2n, double *act_n) {
    for (size_t i = 0; i < n; i++)
        act_n[i] = sinkproof_swiglu_one(policy, numbers, gate_up_2n[2 * i], gate_up_2n[2 * i + 1]);
}
