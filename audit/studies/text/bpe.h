// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Byte-pair encoding: a piece of text begins as its single bytes; of all neighbours that are listed
// as a pair the one of lowest rank is merged, the leftmost of equal ones, until no pair is listed.
// Two lists are known: merges by rank (GPT-2's merges.txt, tokenizer.json), and the vocabulary
// itself, where any two neighbours whose bytes together are a token are a pair of that token's rank
// (tiktoken).
#ifndef SINKPROOF_TEXT_BPE_H
#define SINKPROOF_TEXT_BPE_H

#include "audit/studies/text/vocabulary.h"

// A list of ids that grows.
typedef struct sinkproof_ids {
    int32_t *id_t;
    size_t n, room;
} sinkproof_ids;
bool sinkproof_ids_add(sinkproof_ids *ids, int32_t id, sinkproof_error *error);

// Two tokens that merge into a third.
typedef struct sinkproof_merge {
    int32_t left, right, whole;
    uint32_t rank; // 1 + its line in the list; 0: a free slot
} sinkproof_merge;

typedef struct sinkproof_bpe {
    sinkproof_vocabulary vocabulary;
    bool by_bytes;          // the vocabulary itself is the list; else the merges are
    sinkproof_merge *slots; // by hash of the two, then the next free one
    size_t n_slots, n_merges;
    bool whole_first; // a piece that is a token stays whole, whatever the merges say
    int32_t byte_id[256];
} sinkproof_bpe;

// What merging needs for a while; kept from piece to piece.
typedef struct sinkproof_bpe_room sinkproof_bpe_room;
sinkproof_bpe_room *sinkproof_bpe_room_new(void);
void sinkproof_bpe_room_free(sinkproof_bpe_room *room);

// The merge of rank n_merges: left and right have to be tokens, and their bytes together one.
bool sinkproof_bpe_add_merge(sinkproof_bpe *bpe, int32_t left, int32_t right, const char *name,
                             sinkproof_error *error);
// Looks up the 256 bytes: each has to be a token.
bool sinkproof_bpe_finish(sinkproof_bpe *bpe, const char *name, sinkproof_error *error);
// Appends the tokens of a piece. n bytes take O(n log n) steps.
bool sinkproof_bpe_encode(const sinkproof_bpe *bpe, const uint8_t *piece, size_t length,
                          sinkproof_bpe_room *room, sinkproof_ids *ids, sinkproof_error *error);
void sinkproof_bpe_free(sinkproof_bpe *bpe);

#endif
