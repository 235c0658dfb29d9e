// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The data of a tokenizer; private to this folder.
#ifndef SINKPROOF_TEXT_PARTS_H
#define SINKPROOF_TEXT_PARTS_H

#include "audit/studies/text/split.h"
#include "audit/studies/text/tokenizer.h"

typedef struct special_token {
    char *spelling;
    size_t length;
    int32_t id;
    // searched after the others, in the text between them ("normalized" in tokenizer.json)
    bool late;
} special_token;

struct sinkproof_tokenizer {
    char *name; // of the file
    const char *format;
    bpe_merges bpe;
    text_splitter *splitter;
    special_token *special_n; // sorted by spelling after `finish`
    size_t n_special, special_room;
};

sinkproof_tokenizer *tokenizer_new(const char *name, const char *format, sinkproof_error *error);
// Adds a special token; its id may already be in the vocabulary, with the same spelling.
bool tokenizer_add_special(sinkproof_tokenizer *t, const char *spelling, size_t length, int64_t id,
                           bool late, sinkproof_error *error);
// The last step: sets the pattern and the single bytes, and sorts the special tokens.
bool tokenizer_finish(sinkproof_tokenizer *t, const char *pattern, sinkproof_error *error);

// GPT-2's alphabet has a character for each byte: printable ones stand for themselves, the others
// are U+0100 and up. Writes the bytes of the string to `out` (as long as the string); false: a
// character is not in the alphabet.
bool alphabet_decode(const char *text, size_t length, uint8_t *out, size_t *n);

#endif
