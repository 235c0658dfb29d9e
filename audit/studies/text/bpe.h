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
bool ids_append(sinkproof_ids *ids, int32_t id, sinkproof_error *error);

// Two tokens that merge into a third.
typedef struct bpe_merge {
    int32_t left, right, whole;
    uint32_t rank; // 1 + its line in the list; 0: an empty slot
} bpe_merge;

typedef struct bpe_merges {
    token_vocabulary vocabulary;
    bool by_bytes;    // the vocabulary is the list; else the merges are
    bpe_merge *slots; // open addressing by the hash of the two tokens
    size_t n_slots, n_merges;
    bool whole_first; // a piece that is a token stays whole, regardless of the merges
    // Bytes that are no token are left out of a text, as in Hugging Face tokenizers; else every
    // byte must be a token.
    bool drops;
    int32_t byte_id[256]; // -1: no token
} bpe_merges;

// Scratch memory for merging, reused from piece to piece.
typedef struct bpe_room bpe_room;
bpe_room *bpe_room_new(void);
void bpe_room_free(bpe_room *room);

// Adds the merge of rank n_merges: left, right and their joined bytes must be tokens.
bool bpe_add_merge(bpe_merges *bpe, int32_t left, int32_t right, const char *name,
                   sinkproof_error *error);
// Looks up the 256 bytes.
bool bpe_finish(bpe_merges *bpe, const char *name, sinkproof_error *error);
// Appends the tokens of a piece, in O(n log n) steps for n bytes.
bool bpe_encode_piece(const bpe_merges *bpe, const uint8_t *piece, size_t length, bpe_room *room,
                      sinkproof_ids *ids, sinkproof_error *error);
void bpe_free(bpe_merges *bpe);

#endif
