// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A long sum in lane arithmetic: sixteen partial sums, as in one vector register; then the halves
// of the register are added until one number is left.
#include "fast/lanes/stages.h"

enum { LANES = LANES_WIDTH };

float lanes_fold(float *lane_l) {
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++) lane_l[l] += lane_l[l + half];
    return lane_l[0];
}

float lanes_sum16(size_t n, const float *term_n) {
    float lane_l[LANES] = {0};
    for (size_t i = 0; i < n; i++) lane_l[i % LANES] += term_n[i];
    return lanes_fold(lane_l);
}
