// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of a trace's points with their layers, and the nearest known name to an unknown one.
#ifndef SINKPROOF_TRACE_POINTS_H
#define SINKPROOF_TRACE_POINTS_H

#include "audit/trace/trace.h"
#include "base/words.h"
#include "ref/policy.h"

// The floating-point format of a tensor of that dtype (F64 for integers).
sinkproof_format sinkproof_trace_format(sinkproof_dtype dtype);

// Parses "03.A4.q" into layer 3 and A4.q; "F2" into F2. Layers have two digits or more, and no
// other leading zeros. Returns false for any other name.
bool sinkproof_trace_name_parse(const char *name, sinkproof_trace_point *point, size_t *layer);

// Writes "03.A4.q" to `name`, which holds at least SINKPROOF_TRACE_NAME characters.
enum { SINKPROOF_TRACE_NAME = 40 };
void sinkproof_trace_name(sinkproof_trace_point point, size_t layer, char *name);

// The shape of a point in a trace of n tokens from position `first` on: queries [n] may see the
// keys [first + n]. Returns the rank.
size_t trace_shape_from(const sinkproof_config *config, sinkproof_trace_point point, size_t first,
                        size_t n, size_t *shape);

// Whether a trace of the model may hold the point: one that the model has, or one that is offered.
bool trace_may_hold(const sinkproof_config *config, sinkproof_trace_point point, size_t layer);
bool sinkproof_trace_point_is_offered(sinkproof_trace_point point);

// The point that later tokens read as the keys of earlier ones: A4.k, or A2.k without a rotation;
// and whether they read a point so, or as values.
sinkproof_trace_point sinkproof_trace_keys(const sinkproof_config *config);
bool sinkproof_trace_is_cached(const sinkproof_config *config, sinkproof_trace_point point);

// The indices of element `at` of a tensor, and their text, such as "1, 2, 15".
void sinkproof_trace_index(size_t rank, const size_t *shape, size_t at, size_t *index);
typedef struct sinkproof_index_text {
    char text[22 * SINKPROOF_MAX_RANK];
} sinkproof_index_text;
sinkproof_index_text sinkproof_trace_index_text(size_t rank, const size_t *shape, size_t at);

// Whether a shape is the expected one with one more dimension in front, as in a batch; and the
// words for an error about it.
bool shape_has_batch(size_t rank, const size_t *shape, size_t expected_rank,
                     const size_t *expected);
#define SHAPE_OF_A_BATCH                                                                           \
    ": it has the dimension of a batch in front; a trace holds one sequence without it"

// Whether a word of a list of points names this one: "A9", "03.A9", or "A4" for A4.q.
bool sinkproof_trace_word_names(const char *word, size_t length, sinkproof_trace_point point,
                                size_t layer);

// Whether a list of such words, separated by commas, names it. NULL names every point.
bool sinkproof_trace_list_names(const char *list, sinkproof_trace_point point, size_t layer);
// Whether each word of the list names a point of a trace.
bool sinkproof_trace_list_check(const char *list, size_t n_layers, sinkproof_error *error);

// The known name with the fewest edits from `name`; keeps its layer if it has one.
void sinkproof_trace_nearest(const char *name, size_t n_layers, char *nearest);

#endif
