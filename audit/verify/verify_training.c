// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// train.* as an experiment on record: the small models that `make training-study` trained, three
// seeds each. What is asked here is whether the recorded runs show what the chapter states.
#include "audit/verify/verify.h"

#include <math.h>
#include <string.h>

enum { SEEDS = 3 };

// Shares of the heads with a sink, in percent.
static const struct {
    const char *name;
    double first_before[SEEDS], first[SEEDS], star[SEEDS];
} runs[] = {
#include "audit/verify/training_runs.inc"
};

// Of a run the numbers at its end; NaN for a run that is not on record: nothing holds of it.
static double first_of(const char *name, size_t seed) {
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
        if (strcmp(runs[k].name, name) == 0) return runs[k].first[seed];
    return NAN;
}

static double star_of(const char *name, size_t seed) {
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
        if (strcmp(runs[k].name, name) == 0) return runs[k].star[seed];
    return NAN;
}

static void ask(verify_measure *result, bool holds) {
    sinkproof_verify_put(result, holds ? 0 : 1, 0);
}

void sinkproof_verify_sinks_learned(verify_measure *result, uint64_t seed) {
    (void)seed; // the runs have their own
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
        for (size_t s = 0; s < SEEDS; s++) ask(result, runs[k].first_before[s] < 1);
    for (size_t s = 0; s < SEEDS; s++) ask(result, first_of("softmax", s) > 30);
}

void sinkproof_verify_star_learned(verify_measure *result, uint64_t seed) {
    static const char *const fewer[] = {"k-bias", "kv-bias", "score-bias"};
    static const char *const whole[] = {"decay 0, 1500 steps, k-bias",
                                        "decay 0, 1500 steps, score-bias"};
    (void)seed;
    for (size_t s = 0; s < SEEDS; s++) {
        for (size_t k = 0; k < sizeof fewer / sizeof *fewer; k++)
            ask(result, first_of(fewer[k], s) < first_of("softmax", s));
        for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
            ask(result, star_of(whole[k], s) > 90 && first_of(whole[k], s) < 1);
    }
}
