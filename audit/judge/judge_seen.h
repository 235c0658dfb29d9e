// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys the queries of a trace see and read, and where the trace has them: positions are
// counted from the beginning of the sequence, rows from that of the trace. Private to audit/judge/.
#ifndef SINKPROOF_JUDGE_SEEN_H
#define SINKPROOF_JUDGE_SEEN_H

#include "audit/judge/judge_internal.h"

enum { QUERIES = 64 }; // queries of a part

// Keys or values from position `from` on, [keys - from, kv_heads, head_dim]: those of earlier
// positions are unknown.
typedef struct cache {
    sinkproof_honest *x;
    size_t from, width;
    bool owned;
} cache;

static inline const sinkproof_honest *cache_at(const cache *c, size_t position) {
    return c->x + (position - c->from) * c->width;
}

// Rounds queries as the scores read them, and keys and values as the cache stores them.
bool cache_read_heads(const judge_pass *pass, sinkproof_point at, size_t rows, size_t heads,
                      sinkproof_honest *x);
// The keys or values of the trace's tokens, behind those that it has of earlier positions. Returns
// false if memory runs out.
bool cache_read(const judge_pass *pass, sinkproof_trace_point point, size_t layer,
                sinkproof_point at, sinkproof_honest *x_ngd, cache *c);
void cache_free(cache *c);

typedef struct attention {
    const sinkproof_layer *layer;
    const sinkproof_honest *q_nhd;
    cache k, v;
    sinkproof_honest *out_nhd;
    size_t blocks; // blocks of queries
} attention;

// One head, its queries [first, first + rows), which are rows of the trace, and the positions [low,
// high) of the keys that at least one of them reads. seen: the most keys that one of them sees.
typedef struct block {
    size_t h, first, rows, low, high, seen;
    const sinkproof_attending *meant; // of all of these queries
} block;

// Query i of head h, which sees the keys [first_key, first_key + seen).
typedef struct query {
    size_t h, i, first_key, seen;
} query;

query part_query(const judge_part *part, const block *b, size_t i);
sinkproof_key_read query_key(const judge_part *part, const block *b, const query *q, size_t j);
// Sets the keys that at least one query of the block reads.
void find_seen_keys(const judge_part *part, block *b);
// Whether the block reads keys or values of positions that the trace has none of.
bool block_reads_unknown(const judge_part *part, const attention *a, block b);

#endif
