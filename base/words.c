// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "base/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 64 };

word_phrase noun_for_count(size_t n, const char *noun) {
    word_phrase is = {""};
    size_t length = strlen(noun);
    bool turns = length > 1 && noun[length - 1] == 'y' && strchr("aeiou", noun[length - 2]) == NULL;
    if (n == 1)
        snprintf(is.text, sizeof is.text, "%s", noun);
    else if (turns) // entry, entries
        snprintf(is.text, sizeof is.text, "%.*sies", (int)length - 1, noun);
    else
        snprintf(is.text, sizeof is.text, "%ss", noun);
    return is;
}

word_phrase sinkproof_counted(size_t n, const char *noun) {
    word_phrase is;
    snprintf(is.text, sizeof is.text, "%zu %.100s", n, noun_for_count(n, noun).text);
    return is;
}

const char *sinkproof_is_or_are(size_t n) {
    return n == 1 ? "is" : "are";
}

size_t sinkproof_edit_distance(const char *a, const char *b) {
    size_t rows[3][WORD], length = strnlen(b, WORD - 1);
    // rows for two, one and no letters less
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= length; j++) last[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t least = last[j] + (a[i] != b[j]);
            if (1 + row[j] < least) least = 1 + row[j];
            if (1 + last[j + 1] < least) least = 1 + last[j + 1];
            bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
            if (swapped && 1 + before[j - 1] < least) least = 1 + before[j - 1];
            row[j + 1] = least;
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[length];
}

// The start of a word in lower case.
static void lower_case(const char *word, char out[WORD]) {
    size_t i = 0;
    for (; i < WORD - 1 && word[i] != '\0'; i++) out[i] = (char)tolower((unsigned char)word[i]);
    out[i] = '\0';
}

void sinkproof_guess_try(sinkproof_guess *guess, const char *known) {
    char given[WORD], candidate[WORD];
    lower_case(guess->given, given);
    lower_case(known, candidate);
    size_t edits = sinkproof_edit_distance(given, candidate), a = strlen(given),
           b = strlen(candidate);
    if (guess->tried++ > 0 && edits >= guess->edits) return;
    guess->edits = edits;
    bool alike = edits < (a > b ? a : b); // otherwise no letter is kept
    snprintf(guess->nearest, sizeof guess->nearest, "%s", alike ? known : "");
}

word_phrase sinkproof_guess_sentence(const sinkproof_guess *guess) {
    word_phrase is = {""};
    if (guess->nearest[0] != '\0')
        snprintf(is.text, sizeof is.text, "the nearest known is %s; ", guess->nearest);
    return is;
}

word_phrase sinkproof_guess_in_list(const char *given, const char *list) {
    sinkproof_guess guess = {.given = given};
    for (const char *at = list; *(at += strspn(at, ", ")) != '\0';) {
        char word[WORD];
        size_t length = strcspn(at, ", ");
        snprintf(word, sizeof word, "%.*s", (int)(length < WORD ? length : WORD), at);
        if (strcmp(word, "and") != 0 && strcmp(word, "or") != 0) sinkproof_guess_try(&guess, word);
        at += length;
    }
    return sinkproof_guess_sentence(&guess);
}
