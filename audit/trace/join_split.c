// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads the list that says how the points of ranks are split.
#include "audit/trace/join_split.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_words[SPLIT_KINDS] = {"whole",     "heads",   "coordinates",
                                                    "positions", "experts", "partial"};

const char *split_word(split_kind kind) {
    return kind_words[kind];
}

// A word of the list: its first characters name points.
typedef struct split_entry {
    const char *text;
    size_t length, name;
    split_kind kind; // SPLIT_KINDS: unknown
} split_entry;

// Reads the word at *list and moves on; returns false at the end.
static bool next_entry(const char **list, split_entry *entry) {
    if (**list == '\0') return false;
    *entry = (split_entry){.text = *list, .kind = SPLIT_KINDS};
    entry->length = strcspn(*list, ",");
    entry->name = strcspn(*list, "=,");
    for (int k = 0; k < SPLIT_KINDS && entry->name < entry->length; k++)
        if (strlen(kind_words[k]) == entry->length - entry->name - 1 &&
            strncmp(kind_words[k], *list + entry->name + 1, strlen(kind_words[k])) == 0)
            entry->kind = (split_kind)k;
    *list += entry->length + ((*list)[entry->length] == ',');
    return true;
}

static bool is_rest(const split_entry *entry) {
    return entry->name == 1 && *entry->text == '*';
}

static bool names_some_point(const split_entry *entry) {
    size_t digits = strspn(entry->text, "0123456789");
    // a layer in front may be any: the point behind it is asked
    const char *point = digits > 0 && entry->text[digits] == '.' ? entry->text + digits + 1 : NULL;
    size_t skipped = point != NULL ? (size_t)(point - entry->text) : 0;
    if (skipped > entry->name) return false;
    for (int p = 0; p < TRACE_POINTS; p++)
        if (sinkproof_trace_word_names(entry->text + skipped, entry->name - skipped,
                                       (sinkproof_trace_point)p, 0))
            return true;
    return is_rest(entry);
}

bool split_check(const char *split, const char *path, sinkproof_error *error) {
    split_entry entry;
    while (next_entry(&split, &entry))
        if (entry.kind == SPLIT_KINDS || !names_some_point(&entry))
            return sinkproof_fail(error,
                                  "%s: metadata split: expected POINT=heads, =coordinates, "
                                  "=positions, =experts, =partial or =whole, found '%.*s'",
                                  path, (int)(entry.length < 60 ? entry.length : 60), entry.text);
    return true;
}

split_kind split_of(const char *split, sinkproof_trace_point point, size_t layer) {
    split_kind named = SPLIT_KINDS, rest = SPLIT_WHOLE;
    split_entry entry;
    while (next_entry(&split, &entry)) {
        if (is_rest(&entry)) rest = entry.kind;
        if (sinkproof_trace_word_names(entry.text, entry.name, point, layer)) named = entry.kind;
    }
    return named != SPLIT_KINDS ? named : rest;
}

bool split_has(const char *split, split_kind kind) {
    split_entry entry;
    while (next_entry(&split, &entry))
        if (entry.kind == kind) return true;
    return false;
}

bool split_number(const char *text, size_t *number, const char **end) {
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9) return false;
    *number = (size_t)strtoul(text, NULL, 10);
    *end = text + digits;
    return true;
}

bool is_whole_dtype(const sinkproof_tensor *t) {
    return t->dtype == SINKPROOF_DTYPE_I32 || t->dtype == SINKPROOF_DTYPE_I64;
}

size_t shape_product(const size_t *shape, size_t from, size_t to) {
    size_t all = 1;
    for (size_t d = from; d < to; d++) all *= shape[d];
    return all;
}

bool split_has_heads(sinkproof_trace_point point) {
    return point == TRACE_A2_Q || point == TRACE_A2_K || point == TRACE_A2_V ||
           point == TRACE_A3_Q || point == TRACE_A3_K || point == TRACE_A4_Q ||
           point == TRACE_A4_K || point == TRACE_A11;
}

bool split_has_slots(sinkproof_trace_point point) {
    return point == TRACE_M5 || point == TRACE_M6 || point == TRACE_M8 || point == TRACE_M9 ||
           point == TRACE_M10;
}
