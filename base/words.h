// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Words for sentences: a count with its noun, and the known word that a misspelt one is nearest to.
#ifndef SINKPROOF_WORDS_H
#define SINKPROOF_WORDS_H

#include <stddef.h>

typedef struct sinkproof_phrase {
    char text[128];
} sinkproof_phrase;

// "1 token", "2 tokens", "0 entries": the noun is given as of one.
sinkproof_phrase sinkproof_counted(size_t n, const char *noun);
// The noun alone: "token", "tokens".
sinkproof_phrase sinkproof_noun(size_t n, const char *noun);

// "is" of one, "are" of others.
const char *sinkproof_is(size_t n);

// Letters to insert, delete, replace or swap with the next to turn a into b; of b the first 63
// count.
size_t sinkproof_edits(const char *a, const char *b);

// The search for the nearest of some words, whatever the case of their letters. Start with the word
// that was given: {"f23"}.
typedef struct sinkproof_guess {
    const char *given;
    char nearest[64]; // "" while none was tried, or no letter of the given word stays in it
    size_t tried, edits;
} sinkproof_guess;
void sinkproof_guess_try(sinkproof_guess *guess, const char *known);

// "the nearest known is f32; " of a list "f32, bf16 and f16"; "" when no letter of it stays in the
// nearest.
sinkproof_phrase sinkproof_nearest_in(const char *given, const char *list);
// The same of a search that is over.
sinkproof_phrase sinkproof_nearest(const sinkproof_guess *guess);

#endif
