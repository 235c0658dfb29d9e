// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The metadata `split` of a rank's trace: a list such as "A11=heads,M5=experts,A12=partial"; *
// stands for every point that no other word names. A point without a word is whole.
#ifndef SINKPROOF_JOIN_SPLIT_H
#define SINKPROOF_JOIN_SPLIT_H

#include "audit/trace/trace_points.h"
#include "model/safetensors.h"

typedef enum split_kind {
    SPLIT_WHOLE,       // every rank has the same bits
    SPLIT_HEADS,       // each rank has the heads after those of the rank before
    SPLIT_COORDINATES, // the same of the last dimension
    SPLIT_POSITIONS,   // each rank has the rows that its tensor `positions` names
    SPLIT_EXPERTS,     // each rank has the rows of the experts that its metadata `experts` names
    SPLIT_PARTIAL,     // a term of a sum: no tensor of the model
    SPLIT_KINDS
} split_kind;

const char *split_word(split_kind kind);
// Whether every word names a point and a kind; `path` is for the error.
bool split_check(const char *split, const char *path, sinkproof_error *error);
// By the last word that names the point, or else by *.
split_kind split_of(const char *split, sinkproof_trace_point point, size_t layer);
// Whether some word says this kind.
bool split_has(const char *split, split_kind kind);

// Whether a point is [n, heads, head_dim], or has a row for each token and slot.
bool split_has_heads(sinkproof_trace_point point);
bool split_has_slots(sinkproof_trace_point point);

// A whole number of at most nine digits; *end is behind it. Returns false for anything else.
bool split_number(const char *text, size_t *number, const char **end);

// Whether a tensor has whole numbers.
bool is_whole_dtype(const sinkproof_tensor *t);
// shape[from] times ... shape[to - 1].
size_t shape_product(const size_t *shape, size_t from, size_t to);

#endif
