// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The changes of numbers and of places that are supposed of inputs, weights and results alike.
#ifndef SINKPROOF_COMPOSED_CHANGES_H
#define SINKPROOF_COMPOSED_CHANGES_H

#include "audit/judge/judge_region.h"

enum { MOST_CHANGES = 360, MOST_RULES = 72 };

typedef struct named_change {
    sinkproof_change change;
    char id[48], text[192]; // "clamped to 2 on both sides", as in "x is ..."
} named_change;

typedef struct change_list {
    size_t n;
    named_change of[MOST_CHANGES];
} change_list;

// Roundings; and clamps and caps below `largest`, or with a largest number of `at` (0: not asked).
void list_roundings(change_list *list, bool wide);
void list_clamps(change_list *list, double largest);
void list_functions(change_list *list, bool wide, double eps); // eps: of the norms
// Codes with a zero point, which is lost, or with a scale that is lost: of each row.
void list_codes(change_list *list);
void list_signs(change_list *list); // lost, zero, one; a step of codes added

typedef struct named_rule {
    sinkproof_from from;
    char id[40], text[208]; // "the two halves exchanged", as in "x has ..."
} named_rule;

typedef struct rule_list {
    size_t n;
    named_rule of[MOST_RULES];
} rule_list;

// Of `size` places, in equal units of `unit` places (0, or 1: none): `word` names a place, `units`
// a unit.
void list_rules(rule_list *list, size_t size, size_t unit, const char *word, const char *units);
// Adds the orders within each of a few equal parts, as ranks have them, and read in rows of another
// length.
void list_more_rules(rule_list *list, size_t size, const char *word);

#endif
