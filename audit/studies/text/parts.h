// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The data of a tokenizer; private to this folder.
#ifndef SINKPROOF_TEXT_PARTS_H
#define SINKPROOF_TEXT_PARTS_H

#include "audit/studies/text/split.h"
#include "audit/studies/text/tokenizer.h"
#include "model/gguf.h"

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
    char *chat_system; // chatml.c: the template's own system message; NULL: no such template
};

sinkproof_tokenizer *tokenizer_new(const char *name, const char *format, sinkproof_error *error);
// Adds a special token; its id may already be in the vocabulary, with the same spelling.
bool tokenizer_add_special(sinkproof_tokenizer *t, const char *spelling, size_t length, int64_t id,
                           bool late, sinkproof_error *error);
// The last step: sets the pattern and the single bytes, and sorts the special tokens.
bool tokenizer_finish(sinkproof_tokenizer *t, const char *pattern, sinkproof_error *error);

// listed.c: tokens and merges that a file spells in GPT-2's alphabet.
typedef struct listed_reader {
    sinkproof_tokenizer *t;
    sinkproof_error *error;
    uint8_t *bytes; // as long as the longest string's bytes; the caller frees it
    size_t room;
} listed_reader;
// A token with a character that stands for no byte is never produced by merging, but can be
// decoded.
bool listed_add_token(listed_reader *r, const char *spelling, size_t length, int64_t id);
bool listed_add_merge(listed_reader *r, const char *left, size_t left_length, const char *right,
                      size_t right_length);
// "LEFT RIGHT", with one space.
bool listed_add_merge_line(listed_reader *r, const char *line, size_t length);

// tokenizer_gguf.c
bool tokenizer_read_gguf(const gguf_file *file, const char *name, sinkproof_tokenizer **tokenizer,
                         sinkproof_error *error);

// GPT-2's alphabet has a character for each byte: printable ones stand for themselves, the others
// are U+0100 and up. Writes the bytes of the string to `out` (as long as the string); false: a
// character is not in the alphabet.
bool alphabet_decode(const char *text, size_t length, uint8_t *out, size_t *n);

#endif
