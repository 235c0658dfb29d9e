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

// The patterns published with GPT-2 and with o200k_base.
extern const char sinkproof_split_gpt2[], sinkproof_split_o200k[];

typedef struct sinkproof_splitter sinkproof_splitter;

// `name` is the pattern's file, for errors.
bool sinkproof_splitter_new(const char *pattern, const char *name, sinkproof_splitter **splitter,
                            sinkproof_error *error);
void sinkproof_splitter_free(sinkproof_splitter *splitter);

// The end of the piece that begins at `from` < length: a match of the pattern, or the text up to
// the next match. The text must be valid UTF-8.
bool sinkproof_split(const sinkproof_splitter *splitter, const uint8_t *text, size_t length,
                     size_t from, size_t *end, sinkproof_error *error);

// The number of bytes before the first invalid one; `length` if the text is valid UTF-8 (no
// overlong forms, no surrogates, nothing beyond U+10FFFF).
size_t sinkproof_utf8_valid(const uint8_t *text, size_t length);
// The number of invalid bytes at text[0] that one U+FFFD replaces: as many as could begin a
// character (Unicode, 3.9, "maximal subparts").
size_t sinkproof_utf8_fault(const uint8_t *text, size_t length);

// The version of Unicode in this PCRE2, such as "14.0.0".
void sinkproof_split_unicode(char version[24]);

#endif
