// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// train.* as a recorded experiment: the small models that `make training-study` trained, three
// seeds each. This file checks whether the recorded runs show what the chapter states.
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

typedef struct shares {
    double first, star; // at the end of a run
} shares;

// NaN for a run that is not recorded: every check of it fails.
static shares final_shares(const char *name, size_t seed) {
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
        if (strcmp(runs[k].name, name) == 0)
            return (shares){runs[k].first[seed], runs[k].star[seed]};
    return (shares){NAN, NAN};
}

static void check_holds(verify_measure *result, bool holds) {
    verify_add_comparison(result, holds ? 0 : 1, 0);
}

void verify_sinks_learned(verify_measure *result, uint64_t seed) {
    (void)seed; // the runs have their own
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
        for (size_t s = 0; s < SEEDS; s++) check_holds(result, runs[k].first_before[s] < 1);
    for (size_t s = 0; s < SEEDS; s++) {
        check_holds(result, final_shares("softmax", s).first > 30);
        check_holds(result, final_shares("1500 steps", s).first < 10); // the sink is gone
    }
}

void verify_star_learned(verify_measure *result, uint64_t seed) {
    static const char *const fewer[] = {"k-bias", "kv-bias", "score-bias"};
    static const char *const whole[] = {"decay 0, 1500 steps, k-bias",
                                        "decay 0, 1500 steps, score-bias"};
    (void)seed;
    for (size_t s = 0; s < SEEDS; s++) {
        for (size_t k = 0; k < sizeof fewer / sizeof *fewer; k++)
            check_holds(result, final_shares(fewer[k], s).first < final_shares("softmax", s).first);
        for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
            shares end = final_shares(whole[k], s);
            check_holds(result, end.star > 90 && end.first < 1);
        }
    }
}
