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
    size_t blocks;                              // blocks of queries
    size_t number;                              // the layer's
    sinkproof_honest *read_q, *read_k, *read_v; // as they may be meant; NULL: as they are
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
// `position`, the query itself at `own`, and there are `all` keys; window: the layer's, or 0. cut:
// it also sees keys before the first that has a column.
typedef struct query {
    size_t h, i, first_key, seen, position, own, all, window;
    bool cut;
    const sinkproof_attending *meant;
} query;

size_t larger_size(size_t a, size_t b);

// A head as it is meant: the head whose query it has.
sinkproof_head_counts head_counts(const judge_part *part);
size_t block_head(const judge_part *part, const block *b);

// ---- judge_read_as.c: queries, keys and values as they are read

// Rows of one head; `owned` is freed by the function below.
typedef struct head_rows {
    const sinkproof_honest *x;
    size_t width;
    sinkproof_honest *owned;
} head_rows;
void head_rows_free(head_rows *rows);
head_rows queries_as_read(judge_part *part, const attention *a, const block *b);
// Columns [first, first + count) of the keys or of the values of key/value head g.
head_rows keys_as_read(judge_part *part, const attention *a, const block *b, unsigned of, size_t g,
                       size_t first, size_t count);
// Whether the numbers of a key depend on the query that reads it: then a block has one query.
bool reads_by_row(const sinkproof_attending *m);
// judge_read_maps.c: what is made of y[rows, heads, head_dim], whose first row is at position
// `first`; what is made may be stored in the format. Returns false if memory runs out.
bool map_read_sets(const judge_pass *pass, const sinkproof_setting *s, size_t first, size_t rows,
                   size_t heads, sinkproof_format format, sinkproof_honest *y);
// Rounds and multiplies what is read otherwise. Returns false if memory runs out.
bool make_read_numbers(const judge_pass *pass, attention *a);
void free_read_numbers(attention *a);

// ---- judge_sinks.c: the sink's logit of each row of the block
bool sink_logits(judge_part *part, const block *b, const attention *a, const sinkproof_setting *s,
                 const sinkproof_planes *q_id, sinkproof_honest *b_i);

// ---- judge_query_weights.c

// What a query's weights are made in.
typedef struct weights_room {
    sinkproof_honest *z_e, *a_e, *a_j; // of the keys that are read; of those that are seen
    size_t *part_e, *part_j;
    double *times_e, *sums_e, *times_j; // times_j: 0: the key is not read
} weights_room;
// Judges the log-sum-exp of a query, and makes the weights a_j of the keys that it sees and of the
// sink. Those that it does not read are 0.
bool query_weights(judge_part *part, const block *b, const query *q, const sinkproof_setting *s,
                   const sinkproof_honest *z_j, sinkproof_honest sink, weights_room *room,
                   double *common);

// ---- judge_seen.c

query part_query(const judge_part *part, const block *b, size_t i);
sinkproof_key_read query_key(const block *b, const query *q, size_t j);
// Sets the keys that at least one query of the block reads.
void find_seen_keys(const judge_part *part, block *b);
// Whether query i of sequences with columns of their own sees keys that the trace does not have.
bool query_is_cut(const judge_part *part, const attention *a, size_t i, const block *b);
// Whether the block reads keys or values of positions that the trace has none of.
bool block_reads_unknown(const judge_part *part, const attention *a, block b);

#endif
