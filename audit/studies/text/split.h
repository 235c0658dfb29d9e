// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Text into the pieces that are encoded one by one, by a regular expression. Accepted is what
// means the same to PCRE2, Oniguruma and Rust's regex: literals, classes, alternation, repeats,
// groups (?: (?i: (?= (?! (?> and general categories \p{..}. \s is Unicode's White_Space.
#ifndef SINKPROOF_TEXT_SPLIT_H
#define SINKPROOF_TEXT_SPLIT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// As published with GPT-2, and with o200k_base.
extern const char sinkproof_split_gpt2[], sinkproof_split_o200k[];

typedef struct sinkproof_splitter sinkproof_splitter;

// `name` is the file's that has the pattern, for sentences.
bool sinkproof_splitter_new(const char *pattern, const char *name, sinkproof_splitter **splitter,
                            sinkproof_error *error);
void sinkproof_splitter_free(sinkproof_splitter *splitter);

// Where the piece ends that begins at `from` < length: a match of the pattern, or the stretch up
// to the next match. The text is valid UTF-8.
bool sinkproof_split(const sinkproof_splitter *splitter, const uint8_t *text, size_t length,
                     size_t from, size_t *end, sinkproof_error *error);

// Bytes of the text before its first fault: `length` where it is UTF-8 throughout (no overlong
// forms, no surrogates, nothing past U+10FFFF).
size_t sinkproof_utf8_valid(const uint8_t *text, size_t length);
// Bytes of the fault at text[0]: as many as could have begun a character, which one U+FFFD stands
// for (as in Unicode, 3.9, "maximal subparts").
size_t sinkproof_utf8_fault(const uint8_t *text, size_t length);

// "14.0.0": the version of Unicode whose classes PCRE2 has here.
void sinkproof_split_unicode(char version[24]);

#endif
