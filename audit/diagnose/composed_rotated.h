// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cosines and sines that a rotation used, and tables that rules give in their place.
#ifndef SINKPROOF_COMPOSED_ROTATED_H
#define SINKPROOF_COMPOSED_ROTATED_H

#include "audit/diagnose/composed_made.h"

#include <math.h>

// Of each row and pair, in the table.
enum { COSINE, SINE, ENTRY };
typedef struct turns {
    composing *c;
    const operation *o;
    size_t n, d, half;       // half: of the coordinates that are turned
    double by, *frequency_p; // the concentration, and the frequencies as defined
    double *position_i;      // as defined
    double *used, *rule;     // ENTRY numbers for each row and pair
    double *room_p;
} turns;

// Of an entry. Written out: hypot of a new C library is no symbol of the older ones.
static inline double turn_size(const double *entry) {
    return sqrt(entry[COSINE] * entry[COSINE] + entry[SINE] * entry[SINE]);
}

// composed_rotated_table.c
// What the rotation reads; NULL: the trace lacks it.
const sinkproof_tensor *turned_from(const sinkproof_making *of);
// Whether the rule's table is near the one that was used.
bool turns_are_near(const turns *t);
// Tries the rule's table; `text` follows the point's name.
bool turns_try(turns *t, const char *id, const char *text);

// composed_rotated_rules.c: positions of rows and of pairs, and bases of stretches of rows.
typedef bool turns_attempt(turns *t);
turns_attempt turns_in_groups, turns_in_sections, turns_at_positions, turns_of_bases;
// composed_rotated_pairs.c: of each pair, of classes of pairs; and of each head
turns_attempt turns_of_frequencies, turns_in_classes, turns_by_heads;

#endif
