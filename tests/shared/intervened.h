// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Interventions from their options, on runs of N tokens.
#ifndef SINKPROOF_TESTS_INTERVENED_H
#define SINKPROOF_TESTS_INTERVENED_H

#include "audit/intervene/interventions.h"
#include "tests/shared/opened.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { N = 12, HIDDEN = 96, MASSIVE = 3 }; // tokens; of tiny-gpt2
static const size_t massive_at[MASSIVE] = {7, 40, 95};

static inline sinkproof_policy policy_of(const char *text) {
    sinkproof_policy policy;
    must(sinkproof_policy_parse(text, &policy, NULL));
    return policy;
}

// The interventions of a list of options, "zero-bq", "move-epe 1:3", ... that ends with an empty
// one.
static inline sinkproof_interventions changes_of(const char *const *options) {
    sinkproof_interventions changes = {0};
    sinkproof_error error;
    for (; *options != NULL; options++) {
        char name[32];
        const char *space = strchr(*options, ' ');
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*options, " "), *options);
        if (sinkproof_intervention_read(name, space != NULL ? space + 1 : NULL, &changes, &error))
            continue;
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    return changes;
}
#define CHANGES(...) changes_of((const char *const[]){__VA_ARGS__, NULL})

// An arbitrary EPE: the algebra needs no model's. Numbers of the policy's format at M12.
static inline const double *some_epe(const sinkproof_policy *policy) {
    static double epe_ic[N * HIDDEN];
    uint64_t seed = 11;
    for (size_t i = 0; i < N * HIDDEN; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        epe_ic[i] = round_at(policy, AT_M12, ldexp((double)(seed >> 33), -31) - 0.5);
    }
    return epe_ic;
}

static inline sinkproof_intervened *intervened(const sinkproof_model *model,
                                               const sinkproof_interventions *changes,
                                               const sinkproof_policy *policy) {
    sinkproof_intervened *made;
    sinkproof_error error;
    need(sinkproof_intervened_new(model, changes, policy, N, some_epe(policy), MASSIVE, massive_at,
                                  &made, &error),
         &error);
    return made;
}

#endif
