// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The next token: the largest logit, or a sample from the softmax at a temperature. The random
// number is a function of seed and position alone (SplitMix64 as a counter), so that a text is
// reproducible.
#include "base/splitmix.h"
#include "fast/engine/engine.h"

#include <math.h>

static int32_t largest_logit(size_t vocab, const float *logits_v) {
    size_t best = 0;
    for (size_t v = 1; v < vocab; v++)
        if (logits_v[v] > logits_v[best]) best = v; // a tie keeps the lower
    return (int32_t)best;
}

// Uniform in [0, 1), a multiple of 2^-53.
static double uniform_draw(uint64_t seed, uint64_t position) {
    return (double)(sinkproof_draw_nth(sinkproof_draw_nth(seed, 0), position) >> 11) * 0x1p-53;
}

int32_t sinkproof_sample_token(size_t vocab, const float *logits_v, double temperature,
                               uint64_t seed, uint64_t position) {
    int32_t best = largest_logit(vocab, logits_v);
    if (!(temperature > 0)) return best;
    double top = logits_v[best], sum = 0, passed = 0;
    for (size_t v = 0; v < vocab; v++) sum += exp((logits_v[v] - top) / temperature);
    double drawn = uniform_draw(seed, position) * sum;
    for (size_t v = 0; v < vocab; v++) {
        passed += exp((logits_v[v] - top) / temperature);
        if (passed > drawn) return (int32_t)v;
    }
    return best; // logits with NaN
}
