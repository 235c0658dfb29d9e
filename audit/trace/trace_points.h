// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Names of a trace's points: with their layer, and the nearest known one to a name that is none.
#ifndef SINKPROOF_TRACE_POINTS_H
#define SINKPROOF_TRACE_POINTS_H

#include "audit/trace/trace.h"
#include "ref/policy.h"
#include "base/words.h"

// The format of a tensor that holds numbers in `dtype` (F64 for integers).
sinkproof_format sinkproof_trace_format(sinkproof_dtype dtype);

// "03.A4.q" into layer 3 and A4.q; "F2" into F2. Layers have two digits or more, no other
// leading zeros. False for any other name.
bool sinkproof_trace_name_parse(const char *name, sinkproof_trace_point *point, size_t *layer);

// "03.A4.q" into `name`, which holds at least SINKPROOF_TRACE_NAME characters.
enum { SINKPROOF_TRACE_NAME = 40 };
void sinkproof_trace_name(sinkproof_trace_point point, size_t layer, char *name);

// The indices of element `at` of a tensor, and the same as "1, 2, 15".
void sinkproof_trace_index(size_t rank, const size_t *shape, size_t at, size_t *index);
typedef struct sinkproof_index_text {
    char text[22 * SINKPROOF_MAX_RANK];
} sinkproof_index_text;
sinkproof_index_text sinkproof_trace_index_text(size_t rank, const size_t *shape, size_t at);

// Whether a shape is the expected one with one more dimension in front, as that of a batch has; and
// what an error says of it.
bool sinkproof_has_batch(size_t rank, const size_t *shape, size_t expected_rank,
                         const size_t *expected);
#define SINKPROOF_OF_A_BATCH                                                                       \
    ": it has the dimension of a batch in front; a trace holds one sequence without it"

// Does a word of a list of points name this one? "A9", "03.A9", or "A4" for A4.q.
bool sinkproof_trace_word_names(const char *word, size_t length, sinkproof_trace_point point,
                                size_t layer);

// The known name with the fewest edits from `name`, keeping its layer when it has one.
void sinkproof_trace_nearest(const char *name, size_t n_layers, char *nearest);

#endif
