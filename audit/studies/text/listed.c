// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tokens and merges as tokenizer.json, merges.txt and GGUF list them: in GPT-2's alphabet.
#include "audit/studies/text/parts.h"

#include <string.h>

// Makes room for as many bytes as the string has.
static bool make_room(listed_reader *r, size_t length) {
    void *bytes = r->bytes;
    bool good = sinkproof_make_room(&bytes, &r->room, length, 1, r->error);
    r->bytes = bytes;
    return good;
}

bool listed_add_token(listed_reader *r, const char *spelling, size_t length, int64_t id) {
    size_t n;
    if (!make_room(r, length)) return false;
    bool found = alphabet_decode(spelling, length, r->bytes, &n);
    return vocabulary_add(&r->t->bpe.vocabulary, found ? r->bytes : (const uint8_t *)spelling,
                          found ? n : length, id, found, r->t->name, r->error);
}

// Finds the token of one side of a merge.
static bool find_side(listed_reader *r, const char *spelling, size_t length, int32_t *id) {
    size_t n;
    if (!make_room(r, length)) return false;
    *id = alphabet_decode(spelling, length, r->bytes, &n)
              ? vocabulary_find(&r->t->bpe.vocabulary, r->bytes, n)
              : -1;
    return *id >= 0 ||
           sinkproof_fail(r->error, "%.300s: merge %zu: '%.*s' is no token of the vocabulary",
                          r->t->name, r->t->bpe.n_merges, (int)(length < 60 ? length : 60),
                          spelling);
}

bool listed_add_merge(listed_reader *r, const char *left, size_t left_length, const char *right,
                      size_t right_length) {
    int32_t left_id, right_id;
    return find_side(r, left, left_length, &left_id) &&
           find_side(r, right, right_length, &right_id) &&
           bpe_add_merge(&r->t->bpe, left_id, right_id, r->t->name, r->error);
}

bool listed_add_merge_line(listed_reader *r, const char *line, size_t length) {
    const char *space = memchr(line, ' ', length);
    size_t left = space != NULL ? (size_t)(space - line) : 0, right = length - left - 1;
    if (space == NULL || left == 0 || right == 0 || memchr(space + 1, ' ', right) != NULL)
        return sinkproof_fail(
            r->error, "%.300s: merge %zu: expected two tokens and a space, found '%.*s'",
            r->t->name, r->t->bpe.n_merges, (int)(length < 60 ? length : 60), line);
    return listed_add_merge(r, line, left, space + 1, right);
}
