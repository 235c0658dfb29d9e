// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drawing the next token: as often as the softmax says, and the same for the same seed and step.
#include "fast/engine/engine.h"
#include "tests/shared/reference.h"

#include <math.h>

static void test_sample(void) {
    float logits[] = {1, 3, 3, -2, 0};
    size_t count[5] = {0};
    bool same = true;
    for (uint64_t i = 0; i < 100000; i++) {
        int32_t drawn = sinkproof_sample_token(5, logits, 1.0, 7, i);
        same = same && drawn == sinkproof_sample_token(5, logits, 1.0, 7, i);
        count[drawn]++;
    }
    // Binomial counts: six standard deviations.
    double sum = 0, worst = 0;
    for (size_t v = 0; v < 5; v++) sum += exp(logits[v]);
    for (size_t v = 0; v < 5; v++) {
        double p = exp(logits[v]) / sum, deviation = sqrt(1e5 * p * (1 - p));
        keep_worst(&worst, fabs((double)count[v] - 1e5 * p) / deviation);
    }
    ok(same && worst <= 6, "draws from the softmax worst=%.2f bound=6 standard deviations", worst);
    ok(sinkproof_sample_token(5, logits, 0, 1, 1) == 1,
       "temperature 0 takes the lower of two largest");
}

int main(void) {
    test_sample();
    return tap_done();
}
