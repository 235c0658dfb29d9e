// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Runs an engine (the reference, or stages with a planted mistake) on a model, writes its trace
// and judges it: the whole way that a stranger's trace takes.
#ifndef SINKPROOF_TESTS_JUDGED_H
#define SINKPROOF_TESTS_JUDGED_H

#include "audit/judge.h"
#include "audit/trace_write.h"
#include "ref/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Pseudo-random token ids below vocab from a seed, the same everywhere.
static inline void some_tokens(size_t n, size_t vocab, uint64_t seed, int32_t *tokens_n) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tokens_n[i] = (int32_t)((seed >> 33) % vocab);
    }
}

// The engine runs under `runs` with `stages` in chunks of `chunk` tokens (0: one), keeping `points`
// (NULL: all); the judge reads its trace under `declared`. Aborts with the sentence of any error.
static inline sinkproof_judgement judged(const sinkproof_model *model,
                                         const sinkproof_stages *stages, const char *runs,
                                         const char *declared, size_t n, size_t chunk,
                                         uint64_t seed, const char *points) {
    sinkproof_error error = {{0}};
    sinkproof_policy policy, other;
    sinkproof_trace_writer *writer = NULL;
    sinkproof_trace *trace = NULL;
    sinkproof_judgement judgement = {0};
    char path[64];
    snprintf(path, sizeof path, "/tmp/sinkproof-judged-%ld.safetensors", (long)getpid());
    int32_t *tokens = malloc(n * sizeof *tokens);
    some_tokens(n, sinkproof_model_config(model)->vocab, seed, tokens);
    bool fine =
        tokens != NULL && sinkproof_policy_parse(runs, &policy, &error) &&
        sinkproof_policy_parse(declared, &other, &error) &&
        sinkproof_trace_writer_new(path, model, &policy, "planted", points, n, &writer, &error);
    sinkproof_session *session = sinkproof_session_with(model, &policy, stages);
    for (size_t i = 0; fine && i < n; i += chunk == 0 ? n : chunk) {
        size_t count = chunk == 0 || n - i < chunk ? n - i : chunk;
        fine = sinkproof_forward(session, count, tokens + i, NULL,
                                 sinkproof_trace_writer_observer(writer), &error);
    }
    fine = fine && sinkproof_trace_writer_finish(writer, tokens, &error) &&
           sinkproof_trace_open(path, sinkproof_model_config(model), &trace, &error) &&
           sinkproof_judge(model, trace, &other, 1e-9, false, false, &judgement, &error);
    if (!fine) {
        printf("Bail out! %s\n", error.text);
        exit(1);
    }
    sinkproof_trace_close(trace);
    sinkproof_trace_writer_free(writer);
    sinkproof_session_free(session);
    free(tokens);
    unlink(path);
    return judgement;
}

#endif
