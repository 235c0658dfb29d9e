// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The keys and values that attention reads: those of the trace's tokens, behind those that the
// trace has of earlier positions.
#include "audit/judge/judge_internal.h"
#include "audit/judge/judge_prefix.h"
#include "proofs/bounds/scaled.h"

#include <stdlib.h>
#include <string.h>

bool read_heads(const judge_pass *pass, sinkproof_point at, size_t rows, size_t heads,
                sinkproof_honest *x) {
    size_t d = pass->config->head_dim;
    sinkproof_setting s = pass_setting(pass, pass->n * heads * d);
    return sinkproof_honest_scaled(&s, at, s.policy->at[at], rows, heads, d, x);
}

// The keys or values of sequences apart by column: those of earlier positions of each, which the
// trace has, or whose sets are known, and those of its rows.
static bool read_apart(const judge_pass *pass, sinkproof_trace_point point,
                       const sinkproof_tensor *before, const sinkproof_honest *sets,
                       const sinkproof_honest *x_ngd, cached_rows *c) {
    size_t read = 0;
    c->x = malloc(pass->keys * c->width * sizeof *c->x);
    c->unknown = calloc(sinkproof_trace_sequences(pass->trace), sizeof *c->unknown);
    if (c->x == NULL || c->unknown == NULL) return false;
    for (size_t i = 0; i < pass->keys * c->width; i++) c->x[i] = sinkproof_unknown_set(0);
    for (size_t n = 0; n < sinkproof_trace_sequences(pass->trace); n++) {
        sinkproof_sequence s = sinkproof_trace_sequence(pass->trace, n);
        size_t earlier = (s.keys - s.rows) * c->width;
        sinkproof_honest *x = c->x + s.key * c->width;
        size_t last = (s.named_at + s.named) * c->width; // of the sequence's sets
        c->unknown[n] = earlier > 0 && before == NULL && (sets == NULL || s.named == 0);
        if (before != NULL && earlier > 0)
            set_read_given(pass, point, before, read, earlier, x);
        else if (earlier > 0 && !c->unknown[n])
            memcpy(x, sets + last - earlier, earlier * sizeof *x);
        memcpy(x + earlier, x_ngd + s.row * c->width, s.rows * c->width * sizeof *x);
        read += earlier;
    }
    return true;
}

bool read_cached(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                 sinkproof_point at, sinkproof_honest *x_ngd, cached_rows *c) {
    const sinkproof_tensor *before = sinkproof_trace_before(pass->trace, point, layer);
    size_t heads = pass->config->n_kv_heads, width = heads * pass->config->head_dim;
    const sinkproof_honest *sets = sinkproof_prefix_sets(pass->prefix, pass->config, point, layer);
    size_t given = before != NULL ? before->shape[0] : 0;
    size_t earlier = sets != NULL ? pass->first : given;
    if (sinkproof_trace_is_apart(pass->trace)) {
        *c = (cached_rows){.width = width, .owned = true};
        return read_apart(pass, point, before, sets, x_ngd, c) &&
               read_heads(pass, at, pass->keys, heads, c->x);
    }
    *c = (cached_rows){x_ngd, pass->first - earlier, width, earlier > 0, NULL};
    if (earlier > 0) {
        c->x = malloc((earlier + pass->n) * width * sizeof *c->x);
        if (c->x == NULL) return false;
        if (earlier > given) memcpy(c->x, sets, (earlier - given) * width * sizeof *c->x);
        if (given > 0)
            set_read_given(pass, point, before, 0, given * width, c->x + (earlier - given) * width);
        memcpy(c->x + earlier * width, x_ngd, pass->n * width * sizeof *c->x);
    }
    return read_heads(pass, at, earlier + pass->n, heads, c->x);
}

void cached_free(cached_rows *c) {
    if (c->owned) free(c->x);
    free(c->unknown);
}
