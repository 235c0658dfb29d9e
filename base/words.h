// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for sentences: a count with its noun, and the known word nearest to a misspelt one.
#ifndef SINKPROOF_WORDS_H
#define SINKPROOF_WORDS_H

#include <stddef.h>

typedef struct word_phrase {
    char text[128];
} word_phrase;

// "1 token", "2 tokens", "0 entries": the noun is given in the singular.
word_phrase sinkproof_counted(size_t n, const char *noun);
// The noun alone: "token", "tokens".
word_phrase noun_for_count(size_t n, const char *noun);

// "is" for one, "are" for others.
const char *sinkproof_is_or_are(size_t n);

// The number of letters to insert, delete, replace or swap with the next to turn a into b; only the
// first 63 letters of b count.
size_t sinkproof_edit_distance(const char *a, const char *b);

// The search for the word nearest to a given one, ignoring case. Start with {"f23"}, the given
// word.
typedef struct sinkproof_guess {
    const char *given;
    char nearest[64]; // "" if no word was tried, or no letter of the given word is kept
    size_t tried, edits;
} sinkproof_guess;
void sinkproof_guess_try(sinkproof_guess *guess, const char *known);

// "the nearest known is f32; " for a list "f32, bf16 and f16"; "" if the nearest word keeps no
// letter of it.
word_phrase sinkproof_guess_in_list(const char *given, const char *list);
// The same for a finished search.
word_phrase sinkproof_guess_sentence(const sinkproof_guess *guess);

#endif
