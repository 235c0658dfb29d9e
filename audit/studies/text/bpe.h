// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Byte-pair encoding: a piece of text begins as single bytes; among all neighbours that are listed
// as a pair, the one of lowest rank is merged, the leftmost of equal ones, until no pair is listed.
// Two kinds of lists are supported: merges by rank (GPT-2's merges.txt, tokenizer.json), and the
// vocabulary itself, where two neighbours form a pair if their joined bytes are a token, with that
// token's rank (tiktoken).
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
    uint32_t rank; // 1 + its line in the list; 0: an empty slot
} sinkproof_merge;

typedef struct sinkproof_bpe {
    sinkproof_vocabulary vocabulary;
    bool by_bytes;          // the vocabulary is the list; else the merges are
    sinkproof_merge *slots; // open addressing by the hash of the two tokens
    size_t n_slots, n_merges;
    bool whole_first; // a piece that is a token stays whole, regardless of the merges
    int32_t byte_id[256];
} sinkproof_bpe;

// Scratch memory for merging, reused from piece to piece.
typedef struct sinkproof_bpe_room sinkproof_bpe_room;
sinkproof_bpe_room *sinkproof_bpe_room_new(void);
void sinkproof_bpe_room_free(sinkproof_bpe_room *room);

// Adds the merge of rank n_merges: left, right and their joined bytes must be tokens.
bool sinkproof_bpe_add_merge(sinkproof_bpe *bpe, int32_t left, int32_t right, const char *name,
                             sinkproof_error *error);
// Looks up the 256 bytes, each of which must be a token.
bool sinkproof_bpe_finish(sinkproof_bpe *bpe, const char *name, sinkproof_error *error);
// Appends the tokens of a piece, in O(n log n) steps for n bytes.
bool sinkproof_bpe_encode(const sinkproof_bpe *bpe, const uint8_t *piece, size_t length,
                          sinkproof_bpe_room *room, sinkproof_ids *ids, sinkproof_error *error);
void sinkproof_bpe_free(sinkproof_bpe *bpe);

#endif
