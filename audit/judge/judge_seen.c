// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query sees: by the definition, by passes over a cache, or as attention may be meant.
#include "audit/judge/judge_seen.h"

#include "proofs/bounds/scaled.h"

#include <stdlib.h>
#include <string.h>

size_t first_seen_key(const sinkproof_config *config, size_t layer, size_t i) {
    return config->sliding[layer] && i + 1 > config->window ? i + 1 - config->window : 0;
}

// The first row of row i's pass.
static size_t pass_begin(const sinkproof_passes *passes, size_t i) {
    if (passes->rows == 0 || i < passes->first) return 0;
    return i - (i - passes->first) % passes->rows;
}

// The row behind the last of row i's pass.
static size_t pass_end(const sinkproof_passes *passes, size_t n, size_t i) {
    size_t rows = i < passes->first ? passes->first : passes->rows;
    if (passes->rows == 0 || n - pass_begin(passes, i) < rows) return n;
    return pass_begin(passes, i) + rows;
}

query part_query(const judge_part *part, const block *b, size_t i) {
    const judge_pass *pass = part->pass;
    const sinkproof_meaning *m = pass->meaning;
    const sinkproof_config *c = pass->config;
    size_t begin = pass_begin(&m->passes, i), last = pass_end(&m->passes, pass->n, i) - 1;
    size_t row = pass->first + (last - i < m->sees_later ? last : i + m->sees_later);
    size_t first_key, end;
    if (m->positions_anew) row = i - begin;
    if (b->meant == &sinkproof_attending_as_defined) {
        first_key = first_seen_key(c, part->layer, row), end = row + 1;
    } else {
        const sinkproof_sight sight = {pass->keys, c->window,
                                       c->sliding[part->layer] ? c->window : 0};
        sinkproof_attending_seen(b->meant, &sight, row, &first_key, &end);
    }
    if (m->cache_unread && first_key < pass->first + begin) first_key = pass->first + begin;
    if (m->sees_all) end = pass->keys;
    return (query){b->h, i, first_key, end - first_key};
}

sinkproof_key_read query_key(const judge_part *part, const block *b, const query *q, size_t j) {
    return sinkproof_attending_key(b->meant, part->pass->keys, part->pass->first + q->i,
                                   q->first_key, j);
}

static void include_key(block *b, bool none, size_t key) {
    if (none) return;
    if (key < b->low) b->low = key;
    if (key >= b->high) b->high = key + 1;
}

void find_seen_keys(const judge_part *part, block *b) {
    bool moved = b->meant->cache.kind != SINKPROOF_CACHE_NONE;
    b->low = part->pass->keys, b->high = 0, b->seen = 0;
    for (size_t r = 0; r < b->rows; r++) {
        query q = part_query(part, b, b->first + r);
        size_t end = q.first_key + q.seen;
        if (q.seen > b->seen) b->seen = q.seen;
        include_key(b, false, q.first_key);
        include_key(b, false, end - 1);
        for (size_t j = q.first_key; moved && j < end; j++) {
            sinkproof_key_read read = query_key(part, b, &q, j);
            include_key(b, read.zero_key, read.key);
            include_key(b, read.zero_value, read.value);
        }
    }
    if (part->pass->meaning->sink_has_value) b->low = 0;
}

bool block_reads_unknown(const judge_part *part, const attention *a, block b) {
    if (a->k.from == 0 && a->v.from == 0) return false;
    find_seen_keys(part, &b);
    return b.low < a->k.from || b.low < a->v.from;
}

bool cache_read_heads(const judge_pass *pass, sinkproof_point at, size_t rows, size_t heads,
                      sinkproof_honest *x) {
    size_t d = pass->config->head_dim;
    sinkproof_setting s = pass_setting(pass, pass->n * heads * d);
    return sinkproof_honest_scaled(&s, at, s.policy->at[at], rows, heads, d, x);
}

bool cache_read(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                sinkproof_point at, sinkproof_honest *x_ngd, cache *c) {
    const sinkproof_tensor *before = sinkproof_trace_before(pass->trace, point, layer);
    size_t heads = pass->config->n_kv_heads, width = heads * pass->config->head_dim;
    size_t earlier = before != NULL ? before->shape[0] : 0;
    *c = (cache){x_ngd, pass->first - earlier, width, before != NULL};
    if (before != NULL) {
        c->x = malloc((earlier + pass->n) * width * sizeof *c->x);
        if (c->x == NULL) return false;
        set_read_given(pass, point, before, 0, earlier * width, c->x);
        memcpy(c->x + earlier * width, x_ngd, pass->n * width * sizeof *c->x);
    }
    return cache_read_heads(pass, at, earlier + pass->n, heads, c->x);
}

void cache_free(cache *c) {
    if (c->owned) free(c->x);
}
