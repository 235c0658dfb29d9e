// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a tokenizer holds; private to this folder.
#ifndef SINKPROOF_TEXT_PARTS_H
#define SINKPROOF_TEXT_PARTS_H

#include "audit/studies/text/split.h"
#include "audit/studies/text/tokenizer.h"

typedef struct sinkproof_special {
    char *spelling;
    size_t length;
    int32_t id;
    bool late; // looked for after the others, in what they leave ("normalized" in tokenizer.json)
} sinkproof_special;

struct sinkproof_tokenizer {
    char *name; // of the file
    const char *format;
    sinkproof_bpe bpe;
    sinkproof_splitter *splitter;
    sinkproof_special *special_n; // sorted by spelling once `finish` is through
    size_t n_special, special_room;
};

sinkproof_tokenizer *sinkproof_tokenizer_new(const char *name, const char *format,
                                             sinkproof_error *error);
// A special token; its id may be in the vocabulary already, under the same spelling.
bool sinkproof_tokenizer_add_special(sinkproof_tokenizer *t, const char *spelling, size_t length,
                                     int64_t id, bool late, sinkproof_error *error);
// Pattern, single bytes, order of the special tokens: the last step.
bool sinkproof_tokenizer_finish(sinkproof_tokenizer *t, const char *pattern,
                                sinkproof_error *error);

// GPT-2's alphabet: a character for each byte, printable ones for themselves, the others from
// U+0100 upwards. Bytes of the string in `out` (as long as the string), or false: a character is
// not of the alphabet.
bool sinkproof_alphabet_bytes(const char *text, size_t length, uint8_t *out, size_t *n);

#endif
