// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Where a mistaken engine reads element i of `count`: the permutations of the catalogue, and two
// that are none.
#ifndef SINKPROOF_PLACES_H
#define SINKPROOF_PLACES_H

#include <stddef.h>

size_t sinkproof_from_shifted(size_t i, size_t count, size_t by);  // i + by
size_t sinkproof_from_reversed(size_t i, size_t count, size_t by); // the last first
size_t sinkproof_from_pairs(size_t i, size_t count, size_t by);    // neighbours exchanged
// In blocks of `by`: element p stands at 2 p and element by / 2 + p at 2 p + 1; and back.
size_t sinkproof_from_halves(size_t i, size_t count, size_t by);
size_t sinkproof_from_neighbours(size_t i, size_t count, size_t by);
// [count / by, by] read as [by, count / by].
size_t sinkproof_from_transposed(size_t i, size_t count, size_t by);
// Heads of by % 2^32 coordinates in `by / 2^32` groups, group by group where they are mixed.
size_t sinkproof_from_heads_modulo(size_t i, size_t count, size_t by);
size_t sinkproof_from_quotient(size_t i, size_t count, size_t by); // i / by
size_t sinkproof_from_first_of(size_t i, size_t count, size_t by); // the first of i's `by`

#endif
