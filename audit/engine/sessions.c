// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The engines ref and lanes (the scalar emulation of the fast path's arithmetic): sessions of the
// reference's loop over layers with different tables of stages.
#include "audit/engine/kinds.h"
#include "fast/lanes/lanes.h"

#include <stdlib.h>
#include <string.h>

enum { TAIL = 16 }; // rows of logits that a session computes in one pass, although one is needed

typedef struct state {
    size_t vocab;
    sinkproof_session *session;
} state;

static bool open_session(const sinkproof_model *model, const sinkproof_policy *policy,
                         const sinkproof_stages *stages, void **out, sinkproof_error *error) {
    state *s = *out = calloc(1, sizeof *s);
    if (s != NULL) s->vocab = sinkproof_model_config(model)->vocab;
    if (s != NULL) s->session = sinkproof_session_with(model, policy, stages);
    return (s != NULL && s->session != NULL) || sinkproof_fail(error, "no memory for a session");
}

static bool open_ref(const sinkproof_model *model, const sinkproof_policy *policy,
                     const sinkproof_runner_options *options, void **out, sinkproof_error *error) {
    (void)options;
    return open_session(model, policy, &sinkproof_reference_stages, out, error);
}

static bool open_lanes(const sinkproof_model *model, const sinkproof_policy *policy,
                       const sinkproof_runner_options *options, void **out,
                       sinkproof_error *error) {
    (void)options;
    return open_session(model, policy, &sinkproof_lanes_stages, out, error);
}

static void close_session(void *of) {
    state *s = of;
    if (s == NULL) return;
    sinkproof_session_free(s->session);
    free(s);
}

// A session computes logits for all tokens of a call or for none: the last few tokens are a call of
// their own. Under an observer every token has logits anyway.
static bool session_forward_last(void *of, size_t n, const int32_t *tokens_n, double *logits_v,
                                 const sinkproof_observer *observer, sinkproof_error *error) {
    state *s = of;
    if (logits_v == NULL) return sinkproof_forward(s->session, n, tokens_n, NULL, observer, error);
    size_t rows = observer == NULL && n > TAIL ? TAIL : n, body = n - rows;
    double *logits_nv = calloc(rows, s->vocab * sizeof *logits_nv);
    if (logits_nv == NULL) return sinkproof_fail(error, "no memory for the logits");
    bool good = (body == 0 || sinkproof_forward(s->session, body, tokens_n, NULL, NULL, error)) &&
                sinkproof_forward(s->session, rows, tokens_n + body, logits_nv, observer, error);
    if (good) memcpy(logits_v, logits_nv + (rows - 1) * s->vocab, s->vocab * sizeof *logits_v);
    free(logits_nv);
    return good;
}

static size_t session_state_length(const void *of) {
    return sinkproof_session_length(((const state *)of)->session);
}

static void session_state_reset(void *of) {
    sinkproof_session_reset(((state *)of)->session);
}

// A stage's intermediate results are shown only together with its result, too late to be replaced.
static bool session_replaces_point(const sinkproof_policy *policy, sinkproof_trace_point point) {
    (void)policy;
    return sinkproof_trace_point_held(point) < SINKPROOF_INSIDE;
}

static bool ref_serves(const sinkproof_policy *policy, sinkproof_error *error) {
    return sinkproof_policy_admits_all(policy, sinkproof_definitions, error);
}

const engine_kind kind_ref = {
    .policy = "real-f64",
    .left = SINKPROOF_HELD_COUNT,
    .unseen = SINKPROOF_HELD_COUNT,
    .serves = ref_serves,
    .open = open_ref,
    .close = close_session,
    .forward = session_forward_last,
    .length = session_state_length,
    .reset = session_state_reset,
    .replaces = session_replaces_point,
};

const engine_kind kind_lanes = {
    .about = "fast's arithmetic in scalar code, the same bits",
    .policy = "f32",
    .left = SINKPROOF_UNBIASED, // as the fast path, whose whole trace it reproduces
    .unseen = SINKPROOF_PASSING,
    .serves = sinkproof_lanes_serves,
    .open = open_lanes,
    .close = close_session,
    .forward = session_forward_last,
    .length = session_state_length,
    .reset = session_state_reset,
    .replaces = session_replaces_point,
};
