// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks the planted circuit of chapter 32 under each intervention: the weights of a random run are
// within the ranges that the weights of the model imply. B: a run over the reals; E: the reference
// in binary64.
#include "audit/verify/circuit_study.h"
#include "audit/verify/verify.h"
#include "base/splitmix.h"

static void measure_run(verify_measure *result, const char *name,
                        const sinkproof_interventions *changes, bool balls, size_t n,
                        uint64_t seed) {
    int32_t tokens_n[64];
    char spec[64];
    circuit_study study;
    sinkproof_error error;
    sinkproof_model *model = NULL;
    snprintf(spec, sizeof spec, "synthetic:%s,seed=%u", name,
             (unsigned)(sinkproof_draw(&seed) % 1000));
    if (!sinkproof_model_open(spec, &model, &error)) return; // nothing is counted
    size_t vocab = sinkproof_model_config(model)->vocab;
    for (size_t i = 0; i < n; i++) tokens_n[i] = (int32_t)(sinkproof_draw(&seed) % vocab);
    circuit_options options = {.normed = sinkproof_draw(&seed) % 2 == 0, .balls = balls};
    sinkproof_circuit *derived;
    if (circuit_study_derive(model, changes, options.normed, n, &derived, &error)) {
        if (circuit_study_run(model, derived, changes, &options, n, tokens_n, &study, &error)) {
            result->values += study.weights;
            result->wrong += study.outside;
            result->worst = sinkproof_keep_worst(result->worst, study.share);
        }
        circuit_study_free(&study);
        sinkproof_circuit_free(derived);
    }
    sinkproof_model_close(model);
}

enum { BALLS = 6, NUMBERS = 20 }; // tokens

#define MOVE(from, to, only)                                                                       \
    {                                                                                              \
        .n_moves = 1, .move_n[0] = { only, from, to }                                              \
    }

#define CHECKED(name, model, ...)                                                                  \
    void verify_##name##_enclosed(verify_measure *result, uint64_t seed) {                         \
        static const sinkproof_interventions changes = __VA_ARGS__;                                \
        measure_run(result, model, &changes, true, BALLS, seed);                                   \
    }                                                                                              \
    void verify_##name##_run(verify_measure *result, uint64_t seed) {                              \
        static const sinkproof_interventions changes = __VA_ARGS__;                                \
        measure_run(result, model, &changes, false, NUMBERS, seed);                                \
    }

CHECKED(circuit, "gpt2-circuit", {.zero_bq = false})
CHECKED(bq_zero, "gpt2-circuit", {.zero_bq = true})
CHECKED(epe_swap, "gpt2-circuit", MOVE(0, 1, true))
CHECKED(epe_move, "gpt2-circuit", MOVE(0, 1, false))
CHECKED(bos_zero, "gpt2-circuit", {.zero_bos = true})
CHECKED(wk_rows, "gpt2-circuit", {.massive_rows = true})
CHECKED(wk_random, "gpt2-circuit", {.n_random = SINKPROOF_AS_MASSIVE})
CHECKED(null, "gpt2-null", {.zero_bq = false})
