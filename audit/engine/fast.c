// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engine fast: the optimized path, with one sequence.
#include "audit/engine/kinds.h"
#include "fast/engine/engine.h"
#include "fast/kernels/choose.h"
#include "fast/kernels/isa.h"

#include <stdlib.h>

typedef struct state {
    size_t vocab;
    sinkproof_engine *engine;
    sinkproof_sequence *sequence;
    float *logits_v;
    char isa[SINKPROOF_ISA_NAMES];
} state;

static bool fast_serves_policy(const sinkproof_policy *policy, sinkproof_error *error) {
    const sinkproof_kernels *kernels = sinkproof_isa_choose(NULL, error);
    return kernels != NULL && sinkproof_engine_serves(kernels, policy, error);
}

static bool open_fast(const sinkproof_model *model, const sinkproof_policy *policy,
                      const sinkproof_runner_options *options, void **out, sinkproof_error *error) {
    sinkproof_engine_options fast = {.threads = options->threads,
                                     .streamed = options->streamed,
                                     .packed = options->packed,
                                     .kernels = options->kernels,
                                     .kernels_of_one = options->kernels_of_one,
                                     .progress = options->progress};
    state *s = *out = calloc(1, sizeof *s);
    if (s == NULL) return sinkproof_fail(error, "no memory for a session");
    s->vocab = sinkproof_model_config(model)->vocab;
    s->logits_v = malloc(s->vocab * sizeof *s->logits_v);
    if (s->logits_v == NULL) return sinkproof_fail(error, "no memory for the logits");
    if (!sinkproof_engine_new(model, policy, &fast, &s->engine, error)) return false;
    sinkproof_isa_names(sinkproof_engine_kernels_one_token(s->engine),
                        sinkproof_engine_kernels(s->engine), s->isa);
    s->sequence = sinkproof_sequence_new(s->engine, options->max_tokens, error);
    return s->sequence != NULL;
}

static void close_fast(void *of) {
    state *s = of;
    if (s == NULL) return;
    sinkproof_sequence_free(s->sequence);
    sinkproof_engine_free(s->engine);
    free(s->logits_v);
    free(s);
}

static bool fast_forward(void *of, size_t n, const int32_t *tokens_n, double *logits_v,
                         const sinkproof_observer *observer, sinkproof_error *error) {
    state *s = of;
    sinkproof_part part = {s->sequence, n, tokens_n, logits_v != NULL ? s->logits_v : NULL, false};
    if (!sinkproof_engine_forward(s->engine, 1, &part, observer, error)) return false;
    for (size_t v = 0; logits_v != NULL && v < s->vocab; v++) logits_v[v] = s->logits_v[v];
    return true;
}

static size_t fast_length(const void *of) {
    return sinkproof_sequence_length(((const state *)of)->sequence);
}

static void fast_reset(void *of) {
    sinkproof_sequence_reset(((state *)of)->sequence);
}

// Some points cannot be replaced: bfloat16 operands are packed before they are shown; the thread
// that computes a residual or an expert's output also adds or mixes it; and each thread has its own
// experts.
static bool fast_replaces_point(const sinkproof_policy *policy, sinkproof_trace_point point) {
    switch (point) {
    case TRACE_T0:
    case TRACE_A2_Q:
    case TRACE_A2_K:
    case TRACE_A2_V:
    case TRACE_A3_Q:
    case TRACE_A3_K:
    case TRACE_A4_Q:
    case TRACE_A4_K:
    case TRACE_A13:
    case TRACE_M12:
        return true;
    case TRACE_A1:
    case TRACE_A11:
    case TRACE_M1:
    case TRACE_F1:
        return policy->at[AT_A1].format != SINKPROOF_BF16;
    default:
        return false;
    }
}

static const char *fast_isa(const void *of) {
    return ((const state *)of)->isa;
}

static int fast_threads(const void *of) {
    return sinkproof_engine_threads(((const state *)of)->engine);
}

static size_t weight_bytes(const void *of) {
    return sinkproof_engine_weight_bytes(((const state *)of)->engine);
}

const engine_kind kind_fast = {
    .policy = "f32",
    .left = SINKPROOF_UNBIASED,
    .unseen = SINKPROOF_UNBIASED,
    .tuned = true,
    .serves = fast_serves_policy,
    .open = open_fast,
    .close = close_fast,
    .forward = fast_forward,
    .length = fast_length,
    .reset = fast_reset,
    .replaces = fast_replaces_point,
    .isa = fast_isa,
    .threads = fast_threads,
    .weight_bytes = weight_bytes,
};
