// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the walk of forward.c calls: the chunk on its way, how an observer sees a point, and
// attention once queries, keys and values are there. Private to ref/.
#ifndef SINKPROOF_LOOP_H
#define SINKPROOF_LOOP_H

#include "ref/buffers.h"
#include "ref/forward.h"
#include "ref/session.h"

// One chunk in the loop: its place, and its buffers.
typedef struct token_chunk {
    sinkproof_session *session;
    const sinkproof_config *config;
    const sinkproof_observer *observer; // or NULL
    chunk_buffers b;
    size_t n, first; // tokens, position of the first
    size_t l;        // layer
} token_chunk;

// Shows the observer a point by its full name ("F2"); the observer may replace the values.
void show_named_point(const token_chunk *c, const char *full, size_t rank, const size_t *shape,
                      double *values);
// The point `name` of the current layer ("03.A1").
void show_layer_point(const token_chunk *c, const char *name, size_t rank, const size_t *shape,
                      double *values);

static inline void show_per_token(const token_chunk *c, const char *name, size_t width,
                                  double *values_nc) {
    show_layer_point(c, name, 2, (size_t[]){c->n, width}, values_nc);
}

static inline void show_per_head(const token_chunk *c, const char *name, size_t heads,
                                 double *values_nhd) {
    show_layer_point(c, name, 3, (size_t[]){c->n, heads, c->config->head_dim}, values_nhd);
}

static inline void show_end_point(const token_chunk *c, const char *name, size_t width,
                                  double *values_nc) {
    show_named_point(c, name, 2, (size_t[]){c->n, width}, values_nc);
}

// A5 to A11, from queries and keys as the scores meet them; keys and values go into the cache.
void loop_attend(token_chunk *c, const sinkproof_layer *layer);

#endif
