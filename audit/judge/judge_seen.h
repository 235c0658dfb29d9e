// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which keys the queries of a trace see and read, and where the trace has them. Private to
// audit/judge/.
#ifndef SINKPROOF_JUDGE_SEEN_H
#define SINKPROOF_JUDGE_SEEN_H

#include "audit/judge/judge_internal.h"

enum { QUERIES = 64 }; // queries of a part

typedef struct attention {
    const sinkproof_layer *layer;
    const sinkproof_honest *q_nhd;
    cached_rows k, v;
    sinkproof_honest *out_nhd;
    size_t blocks; // blocks of queries
} attention;

// One head, its queries [first, first + rows), which are rows of the trace, and the columns [low,
// high) of the keys that at least one of them reads. seen: the most keys that one of them sees.
typedef struct block {
    size_t h, first, rows, low, high, seen;
    const sinkproof_attending *meant; // of all of these queries
} block;

// Query i of head h, which sees the keys [first_key, first_key + seen): columns of the trace. A
// trace of one sequence has a column for each position from 0 on; one of several has a column for
// each row, or for each key in their caches. In its sequence the first of these keys is at
// `position`, the query itself at `own`, and there are `all` keys. cut: it also sees keys before
// the first that has a column.
typedef struct query {
    size_t h, i, first_key, seen, position, own, all;
    bool cut;
} query;

size_t larger_size(size_t a, size_t b);
query part_query(const judge_part *part, const block *b, size_t i);
sinkproof_key_read query_key(const block *b, const query *q, size_t j);
// Sets the keys that at least one query of the block reads.
void find_seen_keys(const judge_part *part, block *b);
// Whether query i of a trace of several sequences sees keys that the trace does not have.
bool query_is_cut(const judge_part *part, const attention *a, size_t i, const block *b);
// Whether the block reads keys or values of positions that the trace has none of.
bool block_reads_unknown(const judge_part *part, const attention *a, block b);

#endif
