// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys a query sees: by the definition, by passes over a cache, or as attention may be meant.
#include "audit/judge/judge_seen.h"

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

size_t larger_size(size_t a, size_t b) {
    return a > b ? a : b;
}

sinkproof_head_counts head_counts(const judge_part *part) {
    return (sinkproof_head_counts){part->pass->config->n_heads, part->pass->config->n_kv_heads};
}

size_t block_head(const judge_part *part, const block *b) {
    return sinkproof_attending_head(b->meant->head, head_counts(part), b->h, 0);
}

query part_query(const judge_part *part, const block *b, size_t i) {
    const judge_pass *pass = part->pass;
    const sinkproof_meaning *m = pass->meaning;
    const sinkproof_config *c = pass->config;
    sinkproof_sequence s = sinkproof_trace_sequence_of(pass->trace, i);
    if (b->meant->across && sinkproof_trace_sequences(pass->trace) > 1)
        s = (sinkproof_sequence){
            .rows = pass->n, .first = pass->first, .key = pass->first, .keys = pass->n};
    size_t at = i - s.row, begin = pass_begin(&m->passes, at), all = s.first + s.rows;
    size_t last = pass_end(&m->passes, s.rows, at) - 1;
    size_t row = s.first + (last - at < m->sees_later ? last : at + m->sees_later), first, end;
    if (m->positions_anew) row = at - begin;
    if (b->meant == &sinkproof_attending_as_defined) {
        first = first_seen_key(c, part->layer, row), end = row + 1;
    } else {
        const sinkproof_sight sight = {all, c->window, c->sliding[part->layer] ? c->window : 0};
        sinkproof_attending_seen(b->meant, &sight, row, &first, &end);
    }
    if (m->cache_unread && first < s.first + begin) first = s.first + begin;
    if (m->sees_all) end = all;
    size_t from = all - s.keys; // of the first column
    query q = {
        .h = b->h, .i = i, .meant = b->meant, .own = s.first + at, .all = all, .cut = first < from};
    q.window = c->sliding[part->layer] ? c->window : 0;
    q.position = larger_size(first, from);
    q.first_key = q.position - from + s.key;
    q.seen = larger_size(end, q.position) - q.position;
    return q;
}

sinkproof_key_read query_key(const block *b, const query *q, size_t j) {
    size_t before = q->first_key - q->position; // columns of other sequences
    const sinkproof_sight sight = {q->all, q->window, q->window};
    sinkproof_key_read read =
        sinkproof_attending_key(b->meant, &sight, q->own, q->position, j - before);
    read.key += before, read.value += before;
    return read;
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
            sinkproof_key_read read = query_key(b, &q, j);
            include_key(b, read.zero_key, read.key);
            include_key(b, read.zero_value, read.value);
        }
    }
    bool elsewhere = b->meant->columns != SINKPROOF_COLUMNS_DEFINED;
    if (part->pass->meaning->sink_has_value || b->meant->sink_value || elsewhere) b->low = 0;
    if (elsewhere) b->high = part->pass->keys;
}

bool query_is_cut(const judge_part *part, const attention *a, size_t i, const block *b) {
    query q = part_query(part, b, i);
    sinkproof_sequence s = sinkproof_trace_sequence_of(part->pass->trace, i);
    bool unknown = (a->k.unknown != NULL && a->k.unknown[s.number]) ||
                   (a->v.unknown != NULL && a->v.unknown[s.number]);
    return q.cut || (unknown && q.position < s.first);
}

bool block_reads_unknown(const judge_part *part, const attention *a, block b) {
    const sinkproof_trace *trace = part->pass->trace;
    if (sinkproof_trace_sequences(trace) > 1 || sinkproof_trace_is_apart(trace))
        return query_is_cut(part, a, b.first, &b);
    if (a->k.from == 0 && a->v.from == 0) return false;
    find_seen_keys(part, &b);
    return b.low < a->k.from || b.low < a->v.from;
}
