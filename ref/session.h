// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A session: a model, a policy, the stages that compute, and the key/value cache that makes the
// next chunk continue the last one. Private to the layer loop.
#ifndef SINKPROOF_SESSION_H
#define SINKPROOF_SESSION_H

#include "ref/stages.h"

struct sinkproof_session {
    const sinkproof_model *model;
    sinkproof_model *view; // of the weights as the policy keeps them, or NULL; `model` is it then
    const sinkproof_stages *stages;
    sinkproof_policy policy;
    size_t length, capacity;   // tokens in the cache, and room for
    double **k_ljgd, **v_ljgd; // per layer [capacity, kv_heads, head_dim]; keys rotated
};

// Token ids inside the vocabulary, n more tokens inside the context.
bool sinkproof_session_check(const sinkproof_session *session, size_t n, const int32_t *tokens_n,
                             sinkproof_error *error);
// Room in the cache for `length` tokens. Sliding layers keep all their keys too: A6 shows them.
bool sinkproof_session_reserve(sinkproof_session *session, size_t length, sinkproof_error *error);

#endif
