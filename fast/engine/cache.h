// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The key/value cache of one sequence, as the attention kernels read it (sinkproof_cache_view):
// blocks of 32 positions, for each head the keys and then the values. A full layer has a place for
// every possible block of the sequence, and grows by spans of eight blocks: in a span each head's
// blocks are contiguous, so that a query reads one stream (with all heads of a block adjacent, a
// head's blocks would fall into the same sets of the processor's cache and evict each other). A
// window layer has a ring of places, just enough for a query's window and the 128 positions that
// are appended before their queries read them (CACHE_STEP); in a place all heads are
// adjacent.
//
// A block is cleared before its first position is written. Then neither an earlier round of the
// ring nor an earlier use of the sequence has an effect: a hidden key has weight 0, and 0 times its
// value must be 0.
#ifndef SINKPROOF_CACHE_H
#define SINKPROOF_CACHE_H

#include "fast/engine/memory.h"
#include "fast/kernels/kernels.h"
#include "model/config.h"

enum {
    CACHE_BLOCK = 32, // positions
    CACHE_STEP = 128, // positions that may be appended before their queries
};

typedef struct kv_cache {
    sinkproof_panel_format format; // F32 or BF16
    size_t n_layers, n_kv_heads, head_dim;
    size_t key_bytes, value_bytes; // of one head's block
    size_t place_bytes;            // of all heads' block
    // places of a layer, and the byte where they begin; after them their sizes,
    // [n_kv_heads][places]
    size_t *ring_l, *offset_l;
    size_t rings; // offset of the window layers' places, after the full layers'
    bool settled;
    sinkproof_pages pages;
} kv_cache;

bool cache_new(const sinkproof_config *config, sinkproof_panel_format format, size_t max_tokens,
               kv_cache *cache, sinkproof_error *error);
void cache_free(kv_cache *cache);

// Bytes of the blocks that `tokens` positions fill.
size_t cache_bytes(const kv_cache *cache, size_t tokens);

// Call it after positions up to `tokens`: when a layer has filled its first 2 MiB, advises large
// pages there too.
void cache_settle_pages(kv_cache *cache, size_t tokens);

// The keys and values of head g in layer l.
sinkproof_cache_view cache_head_view(const kv_cache *cache, size_t l, size_t g);

// Appends the keys and values of positions first .. first + n - 1, in ascending order of calls.
// Rows are `stride` floats apart. For a BF16 cache they must be bf16 numbers. Two threads may
// append to one head if their positions share no block.
void cache_append(const kv_cache *cache, size_t l, size_t g, size_t first, size_t n, const float *k,
                  const float *v, size_t stride);

#endif
