// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts' activation (M8, doc/09-swiglu-experts.md): z = g sigmoid(alpha g) (u + 1), where the
// gate g is clamped from above only and u on both sides. Very negative gates overflow e^(-alpha g)
// to infinity, and the sigmoid is then 0, never NaN.
#include "ref/stages.h"

#include <math.h>

//> swiglu.clamped
// Where e^|t| is rounded (M8.exp) it is what the sigmoid is made of: 1 / (1 + e^|t|) is sigmoid(t)
// of a negative t and 1 - sigmoid(t) of others.
static double sigmoid_of(const sinkproof_policy *policy, double t) {
    if (policy->at[SINKPROOF_AT_M8_EXP].format == SINKPROOF_REAL) return 1 / (1 + exp(-t));
    double y = 1 / (1 + sinkproof_round_at(policy, SINKPROOF_AT_M8_EXP, exp(fabs(t))));
    return t < 0 ? y : 1 - y;
}
//< swiglu.clamped

double sinkproof_swiglu_one(const sinkproof_policy *policy, double alpha, double limit, double gate,
                            double up) {
    //> swiglu.clamped
    double g = gate > limit ? limit : gate; // a NaN stays a NaN
    double u = up > limit ? limit : up < -limit ? -limit : up;
    double a = sinkproof_round_at(policy, SINKPROOF_AT_M8_ALPHA, alpha);
    double scaled = sinkproof_round_at(policy, SINKPROOF_AT_M8_SCALED, a * g);
    double sigmoid =
        sinkproof_round_at(policy, SINKPROOF_AT_M8_SIGMOID, sigmoid_of(policy, scaled));
    double swish = sinkproof_round_at(policy, SINKPROOF_AT_M8_SWISH, g * sigmoid);
    double up_one = sinkproof_round_at(policy, SINKPROOF_AT_M8_UP, u + 1);
    return sinkproof_round_at(policy, SINKPROOF_AT_M8, swish * up_one);
    //< swiglu.clamped
}

void sinkproof_swiglu(const sinkproof_policy *policy, const sinkproof_config *config,
                      const double *gate_up_2f, double *act_f) {
    for (size_t f = 0; f < config->inter; f++)
        act_f[f] = sinkproof_swiglu_one(policy, config->swiglu_alpha, config->swiglu_limit,
                                        gate_up_2f[2 * f], gate_up_2f[2 * f + 1]);
}
