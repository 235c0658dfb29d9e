// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The fast engine as an engine under judgement (tests/shared/judged.h).
#ifndef SINKPROOF_TESTS_JUDGED_ENGINE_H
#define SINKPROOF_TESTS_JUDGED_ENGINE_H

#include "fast/engine/engine.h"
#include "tests/shared/judged.h"

// The engine and the tokens of a pass.
typedef struct judged_engine {
    sinkproof_engine_options options;
    size_t piece;
} judged_engine;

static inline bool run_engine(void *of, const sinkproof_model *model,
                              const sinkproof_policy *policy, size_t n, const int32_t *tokens_n,
                              const sinkproof_observer *observer, sinkproof_error *error) {
    const judged_engine *e = of;
    sinkproof_engine *engine = NULL;
    sinkproof_sequence *sequence = NULL;
    bool fine = sinkproof_engine_new(model, policy, &e->options, &engine, error) &&
                (sequence = sinkproof_sequence_new(engine, n, error)) != NULL;
    for (size_t i = 0; fine && i < n; i += e->piece) {
        sinkproof_part part = {sequence, n - i < e->piece ? n - i : e->piece, tokens_n + i, NULL,
                               false};
        fine = sinkproof_engine_forward(engine, 1, &part, observer, error);
    }
    sinkproof_sequence_free(sequence);
    sinkproof_engine_free(engine);
    return fine;
}

#endif
