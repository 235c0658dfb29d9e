// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The place from which a mistaken engine reads element i of `count`: the permutations of the
// catalogue, and two maps that are not permutations.
#ifndef SINKPROOF_PLACES_H
#define SINKPROOF_PLACES_H

#include <stddef.h>

size_t read_from_shifted(size_t i, size_t count, size_t by);  // i + by
size_t read_from_reversed(size_t i, size_t count, size_t by); // in reverse order
size_t read_from_pairs(size_t i, size_t count, size_t by);    // neighbours are swapped
// In blocks of `by`: element p is at 2 p and element by / 2 + p at 2 p + 1; the second function is
// the inverse.
size_t read_from_halves(size_t i, size_t count, size_t by);
size_t read_from_neighbours(size_t i, size_t count, size_t by);
// In blocks of `by`: in reverse order, and with the halves exchanged.
size_t read_from_reversed_in(size_t i, size_t count, size_t by);
size_t read_from_half_turned(size_t i, size_t count, size_t by);
// In blocks of `by`, in a circle: the next one, and the one before.
size_t read_from_next_in(size_t i, size_t count, size_t by);
size_t read_from_before_in(size_t i, size_t count, size_t by);
// [count / by, by] is read as [by, count / by].
size_t read_from_transposed(size_t i, size_t count, size_t by);
// The same in each tile of by % 2^32, in which by / 2^32 is the second number.
size_t read_from_tiles(size_t i, size_t count, size_t by);
// Scales of rows of `by` blocks in the order of tensor cores: in tiles of 128 rows by 4 blocks, a
// tile's row r and block b at r % 32 * 16 + r / 32 * 4 + b. The scale that stands there is read.
size_t read_from_swizzled(size_t i, size_t count, size_t by);
// by % 2^32 is the head's width and by / 2^32 the number of groups: heads are read group by group
// where they are stored in turn.
size_t read_from_heads_modulo(size_t i, size_t count, size_t by);
size_t read_from_quotient(size_t i, size_t count, size_t by); // i / by
size_t read_from_modulo(size_t i, size_t count, size_t by);   // i % by
// the first element of i's block of `by`
size_t read_from_first_of(size_t i, size_t count, size_t by);

// Scales of experts, each of rows of blocks, by other strides: packed_strides packs the blocks of a
// row, the stride of a row, and what an expert has. They go on in the next expert, or, `within`,
// begin anew.
size_t read_from_strided(size_t i, size_t count, size_t by);
size_t read_from_strided_within(size_t i, size_t count, size_t by);
static inline size_t packed_strides(size_t blocks, size_t stride, size_t each) {
    return blocks | stride << 12 | each << 24;
}

#endif
