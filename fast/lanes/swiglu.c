// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The experts' activation in lane arithmetic: (g / (1 + e^(-alpha g))) (u + (float)numbers.offset),
// the division first, so that a gate far below zero gives g / infinity = -0 and never infinity
// times 0.
#include "fast/lanes/stages.h"

float lanes_swiglu(sinkproof_swiglu_numbers numbers, float gate, float up) {
    float alpha = (float)numbers.alpha, limit = (float)numbers.limit;
    float g = gate > limit ? limit : gate; // a NaN stays a NaN
    float u = up > limit ? limit : up < -limit ? -limit : up;
    float t = alpha * g;
    float swish = g / (1 + sinkproof_lanes_exp(-t));
    return swish * (u + (float)numbers.offset);
}

void lanes_activate(const sinkproof_policy *policy, sinkproof_swiglu_numbers numbers, size_t n,
                    const double *gate_up_2n, double *act_n) {
    for (size_t i = 0; i < n; i++) { // gate and up lie side by side
        float gate = (float)gate_up_2n[2 * i], up = (float)gate_up_2n[2 * i + 1];
        float act = lanes_swiglu(numbers, gate, up);
        act_n[i] = round_at(policy, AT_M8, act);
    }
}
