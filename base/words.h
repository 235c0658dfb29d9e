// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for sentences: a count with its noun, and the known word nearest to a misspelt one.
#ifndef SINKPROOF_WORDS_H
#define SINKPROOF_WORDS_H

#include <stddef.h>

typedef struct sinkproof_phrase {
    char text[128];
} sinkproof_phrase;

// "1 token", "2 tokens", "0 entries": the noun is given in the singular.
sinkproof_phrase sinkproof_counted(size_t n, const char *noun);
// The noun alone: "token", "tokens".
sinkproof_phrase sinkproof_noun(size_t n, const char *noun);

// "is" for one, "are" for others.
const char *sinkproof_is(size_t n);

// The number of letters to insert, delete, replace or swap with the next to turn a into b; only the
// first 63 letters of b count.
size_t sinkproof_edits(const char *a, const char *b);

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
sinkproof_phrase sinkproof_nearest_in(const char *given, const char *list);
// The same for a finished search.
sinkproof_phrase sinkproof_nearest(const sinkproof_guess *guess);

#endif
