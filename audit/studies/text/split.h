// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Splits text by a regular expression into pieces that are encoded one by one. The accepted syntax
// means the same to PCRE2, Oniguruma and Rust's regex: literals, classes, alternation, repeats,
// groups (?: (?i: (?= (?! (?> and general categories \p{..}. \s is Unicode's White_Space.
#ifndef SINKPROOF_TEXT_SPLIT_H
#define SINKPROOF_TEXT_SPLIT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// The patterns published with GPT-2, o200k_base, Llama 3 and Qwen2; and GPT-2's between digits,
// each of which is a piece (SmolLM).
extern const char split_gpt2[], split_o200k[], split_llama3[], split_qwen2[], split_digits[];

typedef struct text_splitter text_splitter;

// `name` is the pattern's file, for errors.
bool splitter_new(const char *pattern, const char *name, text_splitter **splitter,
                  sinkproof_error *error);
void splitter_free(text_splitter *splitter);

// The end of the piece that begins at `from` < length: a match of the pattern, or the text up to
// the next match. The text must be valid UTF-8.
bool splitter_next_end(const text_splitter *splitter, const uint8_t *text, size_t length,
                       size_t from, size_t *end, sinkproof_error *error);

// The number of bytes before the first invalid one; `length` if the text is valid UTF-8 (no
// overlong forms, no surrogates, nothing beyond U+10FFFF).
size_t utf8_valid(const uint8_t *text, size_t length);
// The number of invalid bytes at text[0] that one U+FFFD replaces: as many as could begin a
// character (Unicode, 3.9, "maximal subparts").
size_t utf8_fault_length(const uint8_t *text, size_t length);

// The version of Unicode in this PCRE2, such as "14.0.0".
void sinkproof_unicode_version(char version[24]);

#endif
