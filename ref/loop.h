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
typedef struct sinkproof_chunk {
    sinkproof_session *session;
    const sinkproof_config *config;
    const sinkproof_observer *observer; // or NULL
    sinkproof_buffers b;
    size_t n, first; // tokens, position of the first
    size_t l;        // layer
} sinkproof_chunk;

// Shows the observer a point by its full name ("F2"); the observer may replace the values.
void sinkproof_see_whole(const sinkproof_chunk *c, const char *full, size_t rank,
                         const size_t *shape, double *values);
// The point `name` of the current layer ("03.A1").
void sinkproof_see(const sinkproof_chunk *c, const char *name, size_t rank, const size_t *shape,
                   double *values);

static inline void see_nc(const sinkproof_chunk *c, const char *name, size_t width,
                          double *values_nc) {
    sinkproof_see(c, name, 2, (size_t[]){c->n, width}, values_nc);
}

static inline void see_heads(const sinkproof_chunk *c, const char *name, size_t heads,
                             double *values_nhd) {
    sinkproof_see(c, name, 3, (size_t[]){c->n, heads, c->config->head_dim}, values_nhd);
}

static inline void see_end(const sinkproof_chunk *c, const char *name, size_t width,
                           double *values_nc) {
    sinkproof_see_whole(c, name, 2, (size_t[]){c->n, width}, values_nc);
}

// A5 to A11, from queries and keys as the scores meet them; keys and values go into the cache.
void sinkproof_loop_attend(sinkproof_chunk *c, const sinkproof_layer *layer);

#endif
