// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A session: a model, a policy, the stages that compute, and the key/value cache with which the
// next chunk continues the last one. Private to the layer loop.
#ifndef SINKPROOF_SESSION_H
#define SINKPROOF_SESSION_H

#include "ref/stages.h"

struct sinkproof_session {
    const sinkproof_model *model;
    sinkproof_model *view; // with the weights as the policy stores them; NULL: `model` is used
    const sinkproof_stages *stages;
    sinkproof_policy policy;
    size_t length, capacity;   // tokens in the cache, and room for
    double **k_ljgd, **v_ljgd; // per layer [capacity, kv_heads, head_dim]; keys rotated
};

// Checks that token ids are inside the vocabulary and n more tokens inside the context.
bool session_check(const sinkproof_session *session, size_t n, const int32_t *tokens_n,
                   sinkproof_error *error);
// Makes room in the cache for `length` tokens. Sliding layers keep all their keys too, since A6
// shows them.
bool session_reserve(sinkproof_session *session, size_t length, sinkproof_error *error);

#endif
