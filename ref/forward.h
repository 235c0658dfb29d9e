// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The whole model, tokens to logits (model.forward), layer by layer: only one layer's weights are
// read at a time, and a key/value cache makes chunked prefill and decoding give the same bits as
// one pass over the whole sequence.
#ifndef SINKPROOF_FORWARD_H
#define SINKPROOF_FORWARD_H

#include "model/model.h"
#include "ref/policy.h"

// Sees each named point of the trace format as it is computed. `name` is the trace name
// ("T0", "03.A4.q", "F2"); values are binary64 holding numbers of the policy's format at that
// point. In a chunk of n tokens that follows p cached ones, A6, A9 and A10 have p + n keys.
typedef struct sinkproof_observer {
    void (*see)(void *context, const char *name, size_t rank, const size_t *shape,
                const double *values);
    void *context;
    // Called before `see`, or NULL: may replace the values. The pass continues from the new values
    // if it has not yet used the point: everything after T0, A1 to A4, A11 to A13, M1, M3, M4 and
    // M10 to F2 is computed after they are shown (A6 to A10, M2 and M5 to M9 are shown too late).
    void (*replace)(void *context, const char *name, size_t rank, const size_t *shape,
                    double *values);
    bool no_logits; // the observer does not need F2: it is computed only for logits_nv
} sinkproof_observer;

typedef struct sinkproof_session sinkproof_session; // a model, a policy, a key/value cache

sinkproof_session *sinkproof_session_new(const sinkproof_model *model,
                                         const sinkproof_policy *policy);
void sinkproof_session_free(sinkproof_session *session);
size_t sinkproof_session_length(const sinkproof_session *session); // tokens in the cache
void sinkproof_session_reset(sinkproof_session *session);          // back to no tokens

// Runs n further tokens. logits_nv: [n, vocab], or NULL: then logits are computed only for an
// observer. Fails on a token id outside the vocabulary or a context beyond max_context.
bool sinkproof_forward(sinkproof_session *session, size_t n, const int32_t *tokens_n,
                       double *logits_nv, const sinkproof_observer *observer,
                       sinkproof_error *error);

#endif
