// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The keys and values that attention reads: those of the trace's tokens, behind those that the
// trace has of earlier positions.
#include "audit/judge/judge_internal.h"
#include "proofs/bounds/scaled.h"

#include <stdlib.h>
#include <string.h>

bool read_heads(const judge_pass *pass, sinkproof_point at, size_t rows, size_t heads,
                sinkproof_honest *x) {
    size_t d = pass->config->head_dim;
    sinkproof_setting s = pass_setting(pass, pass->n * heads * d);
    return sinkproof_honest_scaled(&s, at, s.policy->at[at], rows, heads, d, x);
}

bool read_cached(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                 sinkproof_point at, sinkproof_honest *x_ngd, cached_rows *c) {
    const sinkproof_tensor *before = sinkproof_trace_before(pass->trace, point, layer);
    size_t heads = pass->config->n_kv_heads, width = heads * pass->config->head_dim;
    size_t earlier = before != NULL ? before->shape[0] : 0;
    *c = (cached_rows){x_ngd, pass->first - earlier, width, before != NULL};
    if (before != NULL) {
        c->x = malloc((earlier + pass->n) * width * sizeof *c->x);
        if (c->x == NULL) return false;
        set_read_given(pass, point, before, 0, earlier * width, c->x);
        memcpy(c->x + earlier * width, x_ngd, pass->n * width * sizeof *c->x);
    }
    return read_heads(pass, at, earlier + pass->n, heads, c->x);
}

void cached_free(cached_rows *c) {
    if (c->owned) free(c->x);
}
