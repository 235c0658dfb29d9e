// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The key/value cache of one sequence, as the attention kernels read it (sinkproof_cache_view):
// blocks of 32 positions, of each head the keys and then the values. A full layer has a place for
// every block that the sequence may have, and grows by spans of eight blocks: in a span each head's
// blocks lie side by side, so that a query reads one stream of them (blocks of all heads side by
// side would come to the same sets of a cache, and push each other out). A window layer has a ring
// of places, just enough for a query's window and the 128 positions that are appended before their
// queries look (SINKPROOF_CACHE_STEP); in a place all heads lie side by side.
//
// A block is cleared when its first position comes. Neither a former round of the ring nor a former
// life of the sequence shows through: a hidden key weighs 0, and 0 times what it holds must be 0.
#ifndef SINKPROOF_CACHE_H
#define SINKPROOF_CACHE_H

#include "fast/engine/memory.h"
#include "fast/kernels/kernels.h"
#include "model/config.h"

enum {
    SINKPROOF_CACHE_BLOCK = 32, // positions
    SINKPROOF_CACHE_STEP = 128, // positions that may be appended ahead of their queries
};

typedef struct sinkproof_cache {
    sinkproof_panel_format format; // F32 or BF16
    size_t n_layers, n_kv_heads, head_dim;
    size_t key_bytes, value_bytes; // of one head's block
    size_t place_bytes;            // of all heads' block
    size_t *ring_l, *offset_l;     // places of a layer, and the byte where they begin; behind them
                                   // their sizes, [n_kv_heads][places]
    size_t rings;                  // where the window layers' begin, behind the full ones
    bool settled;
    sinkproof_pages pages;
} sinkproof_cache;

bool sinkproof_cache_new(const sinkproof_config *config, sinkproof_panel_format format,
                         size_t max_tokens, sinkproof_cache *cache, sinkproof_error *error);
void sinkproof_cache_free(sinkproof_cache *cache);

// Bytes of the blocks that `tokens` positions fill.
size_t sinkproof_cache_bytes(const sinkproof_cache *cache, size_t tokens);

// After positions up to `tokens` came, the first time that a layer has filled its first 2 MiB:
// large pages there too.
void sinkproof_cache_settle(sinkproof_cache *cache, size_t tokens);

// What head g of layer l holds.
sinkproof_cache_view sinkproof_cache_at(const sinkproof_cache *cache, size_t l, size_t g);

// The keys and values of positions first .. first + n - 1, in ascending order of calls. Rows lie
// `stride` floats apart. In a BF16 cache they are bf16 numbers already. Two threads may append to
// one head when their positions share no block.
void sinkproof_cache_append(const sinkproof_cache *cache, size_t l, size_t g, size_t first,
                            size_t n, const float *k, const float *v, size_t stride);

#endif
