// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the parts of a cause in attention share when they are put into words.
#ifndef SINKPROOF_ATTENTION_WORDS_H
#define SINKPROOF_ATTENTION_WORDS_H

#include "audit/diagnose/attention_screen.h"

typedef struct cause_words {
    const sinkproof_attending *how;
    const attention_site *site;
    const sinkproof_config *config;
    size_t n; // keys
    char *id, *text;
    size_t id_size, text_size;
} cause_words;

void SINKPROOF_PRINTF(2, 3) name_cause(cause_words *w, const char *format, ...);
void SINKPROOF_PRINTF(2, 3) say_cause(cause_words *w, const char *format, ...);

// A number; those that have a name have it beside.
typedef struct number_text {
    char text[48];
} number_text;
number_text number_words(const cause_words *w, double x);

// Each says its part and returns true, or returns false where this part is as defined.
bool say_sinks(cause_words *w);        // attention_words_sinks.c
bool say_merges(cause_words *w);       // the same
bool say_cache(cause_words *w);        // attention_words_keys.c
bool say_reads(cause_words *w);        // the same
bool say_heads(cause_words *w);        // the same
bool say_softmax(cause_words *w);      // attention_words_softmax.c
bool say_sums(cause_words *w);         // attention_words_sums.c: a part of the one before
bool say_rules(cause_words *w);        // attention_words_softmax.c
bool say_leaks(cause_words *w);        // the same
bool say_passes(cause_words *w);       // attention_words_passes.c
bool say_access(cause_words *w);       // attention_words_access.c: a part of the one before
void say_which_passes(cause_words *w); // the same: " (passes of 16 rows)", where there are some
// of: what each head has of another one
void say_head_from(cause_words *w, sinkproof_head_from from, const char *id, const char *of);

#endif
