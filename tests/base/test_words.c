// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Counts with their nouns, and the known word that a misspelt one is nearest to.
#include "base/words.h"
#include "tests/shared/tap.h"

#include <string.h>

static void check_counts(void) {
    static const struct {
        size_t n;
        const char *noun, *expected;
    } rows[] = {{0, "token", "0 tokens"},    {1, "token", "1 token"},
                {2, "token", "2 tokens"},    {1, "query", "1 query"},
                {3, "query", "3 queries"},   {2, "key", "2 keys"},
                {11, "entry", "11 entries"}, {2, "key/value head", "2 key/value heads"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        word_phrase found = sinkproof_counted(rows[i].n, rows[i].noun);
        ok(strcmp(found.text, rows[i].expected) == 0, "%s: found %s", rows[i].expected, found.text);
    }
    ok(strcmp(sinkproof_is_or_are(1), "is") == 0 && strcmp(sinkproof_is_or_are(0), "are") == 0 &&
           strcmp(sinkproof_is_or_are(2), "are") == 0,
       "one is, none and two are");
}

static void check_edits(void) {
    static const struct {
        const char *a, *b;
        size_t edits;
    } rows[] = {{"", "", 0},       {"", "abc", 3},  {"abc", "", 3},           {"f32", "f32", 0},
                {"f23", "f32", 1}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"a9", "A9", 1},
                {"ca", "abc", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t there = sinkproof_edit_distance(rows[i].a, rows[i].b);
        size_t back = sinkproof_edit_distance(rows[i].b, rows[i].a);
        ok(there == rows[i].edits && back == there, "'%s' to '%s': %zu, expected %zu", rows[i].a,
           rows[i].b, there, rows[i].edits);
    }
    char endless[200];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    ok(sinkproof_edit_distance(endless, endless) == 199 - 63,
       "of the second word the first 63 count");
}

static void check_nearest(void) {
    static const struct {
        const char *given, *expected;
    } rows[] = {{"f23", "the nearest known is f32; "},
                {"BF61", "the nearest known is bf16; "},
                {"openai", "the nearest known is openai-bf16; "},
                {"zzz", ""}};
    static const char list[] = "f32, bf16, openai-bf16 and 1";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        word_phrase found = sinkproof_guess_in_list(rows[i].given, list);
        ok(strcmp(found.text, rows[i].expected) == 0, "'%s': '%s'", rows[i].given, found.text);
    }
    ok(sinkproof_guess_in_list("foo", "portable, amx").text[0] == '\0',
       "'foo': amx is nearer than portable, and no letter of it stays: none is named");
    ok(strstr(sinkproof_guess_in_list("and", list).text, " and;") == NULL,
       "'and' is no known word");
    sinkproof_guess guess = {.given = "sink.mas"};
    sinkproof_guess_try(&guess, "sink.mass");
    sinkproof_guess_try(&guess, "sink.max");
    ok(strcmp(guess.nearest, "sink.mass") == 0 && guess.edits == 1, "of two as near the first");
}

int main(void) {
    check_counts();
    check_edits();
    check_nearest();
    return tap_done();
}
