// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Creates and frees sessions, has the reference's table of stages, and grows the cache.
#include "ref/session.h"

#include "base/words.h"

#include <stdlib.h>

const sinkproof_stages sinkproof_reference_stages = {
    .embed = sinkproof_embed,
    .rmsnorm = sinkproof_rmsnorm,
    .layernorm = sinkproof_layernorm,
    .swiglu = sinkproof_swiglu,
    .gelu = sinkproof_gelu,
    .linear = sinkproof_linear,
    .qkv = stage_qkv,
    .rope = sinkproof_rope,
    .scores = sinkproof_scores,
    .sink_logits = sinkproof_sink_logits,
    .softmax_sink = sinkproof_softmax_sink,
    .values = sinkproof_values,
    .output = stage_output,
    .router = sinkproof_router,
    .experts = stage_experts,
    .mixture = sinkproof_mixture,
    .unembed = stage_unembed,
};

sinkproof_session *sinkproof_session_with(const sinkproof_model *model,
                                          const sinkproof_policy *policy,
                                          const sinkproof_stages *stages) {
    sinkproof_session *s = calloc(1, sizeof *s);
    if (s == NULL) return NULL;
    size_t n_layers = sinkproof_model_config(model)->n_layers;
    s->model = model;
    if (policy->weights != SINKPROOF_REAL)
        s->model = s->view = sinkproof_model_kept(model, policy->weights);
    if (s->model == NULL) {
        free(s);
        return NULL;
    }
    s->stages = stages;
    s->policy = *policy;
    s->k_ljgd = calloc(n_layers, sizeof *s->k_ljgd);
    s->v_ljgd = calloc(n_layers, sizeof *s->v_ljgd);
    if (s->k_ljgd != NULL && s->v_ljgd != NULL) return s;
    sinkproof_session_free(s);
    return NULL;
}

sinkproof_session *sinkproof_session_new(const sinkproof_model *model,
                                         const sinkproof_policy *policy) {
    return sinkproof_session_with(model, policy, &sinkproof_reference_stages);
}

void sinkproof_session_free(sinkproof_session *session) {
    if (session == NULL) return;
    size_t n_layers = sinkproof_model_config(session->model)->n_layers;
    for (size_t l = 0; l < n_layers; l++) {
        if (session->k_ljgd != NULL) free(session->k_ljgd[l]);
        if (session->v_ljgd != NULL) free(session->v_ljgd[l]);
    }
    free(session->k_ljgd);
    free(session->v_ljgd);
    sinkproof_model_close(session->view);
    free(session);
}

size_t sinkproof_session_length(const sinkproof_session *session) {
    return session->length;
}

void sinkproof_session_reset(sinkproof_session *session) {
    session->length = 0;
}

static bool grow_cache(double **cache, size_t capacity, size_t width, sinkproof_error *error) {
    double *grown = capacity <= SIZE_MAX / sizeof *grown / width
                        ? realloc(*cache, capacity * width * sizeof *grown)
                        : NULL;
    if (grown == NULL)
        return sinkproof_fail(error, "no memory for a key/value cache of %s",
                              sinkproof_counted(capacity, "token").text);
    *cache = grown;
    return true;
}

bool session_reserve(sinkproof_session *s, size_t length, sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(s->model);
    if (length <= s->capacity) return true;
    size_t capacity = length + length / 2, width = config->n_kv_heads * config->head_dim;
    for (size_t l = 0; l < config->n_layers; l++)
        if (!grow_cache(&s->k_ljgd[l], capacity, width, error) ||
            !grow_cache(&s->v_ljgd[l], capacity, width, error))
            return false;
    s->capacity = capacity;
    return true;
}

bool session_check(const sinkproof_session *s, size_t n, const int32_t *tokens_n,
                   sinkproof_error *error) {
    const sinkproof_config *config = sinkproof_model_config(s->model);
    if (n > config->max_context || s->length > config->max_context - n)
        return sinkproof_fail(error, "%s exceed the model's context of %zu",
                              sinkproof_counted(s->length + n, "token").text, config->max_context);
    for (size_t t = 0; t < n; t++)
        if (tokens_n[t] < 0 || (size_t)tokens_n[t] >= config->vocab)
            return sinkproof_fail(error,
                                  "token %zu is %d: expected an id from 0 to %zu (the vocabulary)",
                                  s->length + t, (int)tokens_n[t], config->vocab - 1);
    return true;
}
