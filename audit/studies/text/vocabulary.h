// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tokens as strings of bytes, found by their bytes and by their ids. Two tokens never share an id,
// and two that can be found by their bytes never share those bytes.
#ifndef SINKPROOF_TEXT_VOCABULARY_H
#define SINKPROOF_TEXT_VOCABULARY_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { TOKEN_MAX_ID = 1 << 22 }; // limit of the ids: twenty times the largest known vocabulary

typedef struct vocabulary_token {
    size_t at; // its bytes, in `bytes` of the vocabulary
    uint32_t length;
    int32_t id;
} vocabulary_token;

typedef struct token_vocabulary {
    uint8_t *bytes;
    size_t bytes_used, bytes_room;
    vocabulary_token *token_n;
    size_t n, room;
    uint32_t *slots; // 1 + index of a token, 0: empty; hash with linear probing
    size_t n_slots;  // a power of two, more than twice the tokens
    uint32_t *by_id; // [n_ids] 1 + index of a token, 0: unused id
    size_t n_ids, ids_room;
    size_t longest; // bytes of the longest token that can be found
} token_vocabulary;

// `name` is the file's, for errors. `found`: it can be found by its bytes too, not only by its id.
bool vocabulary_add(token_vocabulary *v, const uint8_t *bytes, size_t length, int64_t id,
                    bool found, const char *name, sinkproof_error *error);
// The id of these bytes, or -1.
int32_t vocabulary_find(const token_vocabulary *v, const uint8_t *bytes, size_t length);
// The token of an id, or NULL.
const vocabulary_token *vocabulary_token_at(const token_vocabulary *v, int64_t id);
void vocabulary_free(token_vocabulary *v);

// Makes room for one more element of `size` bytes after n elements: doubles the array when it is
// full.
bool sinkproof_make_room(void **array, size_t *room, size_t n, size_t size, sinkproof_error *error);

#endif
