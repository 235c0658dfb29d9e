// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys or values that attention reads otherwise than the trace shows them: all of their numbers are
// a table.
#ifndef SINKPROOF_COMPOSED_READ_H
#define SINKPROOF_COMPOSED_READ_H

#include "audit/diagnose/composed_kernel.h"

// Which rows read a key so: those of a later pass than the key's. Rows before `first` are one pass,
// each later one has `rows`; rows 0: all rows do, the key's own too.
typedef struct read_passes {
    size_t first, rows;
} read_passes;

typedef struct reading {
    const operation *o;
    kernel *x;
    bool of_keys;
    size_t first; // the first row with an element outside
    double *y_c;  // room for a row of a head
    double times; // 0: the numbers are those of a table; else the own ones times this
} reading;

// Tries the numbers [n, groups, d] if a sample is near. The words follow "is computed".
bool reading_try(const reading *r, read_passes passes, const double *numbers, const char *id,
                 const char *text);
// The same for all rows, for cached keys and for keys of the passes before; `of`: "keys that are".
bool reading_try_passes(const reading *r, const double *numbers, const char *id, const char *text);

// composed_read_solve.c. y: what was read, [n, groups, d]; what is not told is as the trace shows
// it. told: of each vector whether it is. Returns how many are. room: the square of the larger of n
// and d, and n (d + 1) + d more.
size_t reading_solve(const reading *r, double *room, double *y, uint8_t *told);

// composed_read_rules.c: keys that are rotated by another position.
bool reading_try_turns(const reading *r);
// The same file: keys or values in the place of others, by a rule.
bool reading_try_places(const reading *r);

#endif
