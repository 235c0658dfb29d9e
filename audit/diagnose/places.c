// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/places.h"

size_t read_from_shifted(size_t i, size_t count, size_t by) {
    return (i + by) % count;
}

size_t read_from_reversed(size_t i, size_t count, size_t by) {
    (void)by;
    return count - 1 - i;
}

size_t read_from_pairs(size_t i, size_t count, size_t by) {
    (void)by;
    return (i ^ 1) < count ? i ^ 1 : i;
}

size_t read_from_halves(size_t i, size_t count, size_t by) {
    size_t in = i % by;
    (void)count;
    return i - in + in % 2 * (by / 2) + in / 2;
}

size_t read_from_neighbours(size_t i, size_t count, size_t by) {
    size_t in = i % by, half = by / 2;
    (void)count;
    return i - in + in % half * 2 + in / half;
}

size_t read_from_transposed(size_t i, size_t count, size_t by) {
    return i % by * (count / by) + i / by;
}

size_t read_from_tiles(size_t i, size_t count, size_t by) {
    size_t tile = by & 0xffffffffu, a = by >> 32;
    if (i - i % tile + tile > count) return i;
    return i - i % tile + read_from_transposed(i % tile, tile, a);
}

size_t read_from_swizzled(size_t i, size_t count, size_t by) {
    size_t r = i / by, b = i % by, rows = count / by, tiles = (by + 3) / 4;
    size_t in = r % 128 % 32 * 16 + r % 128 / 32 * 4 + b % 4;
    size_t at = (r / 128 * tiles + b / 4) * 512 + in;
    return rows % 128 == 0 && by % 4 == 0 ? at : i;
}

size_t read_from_heads_modulo(size_t i, size_t count, size_t by) {
    size_t d = by & 0xffffffffu, groups = by >> 32, heads = count / d;
    return read_from_transposed(i / d, heads, groups) * d + i % d;
}

size_t read_from_reversed_in(size_t i, size_t count, size_t by) {
    (void)count;
    return i - i % by + (by - 1 - i % by);
}

size_t read_from_half_turned(size_t i, size_t count, size_t by) {
    (void)count;
    return i - i % by + (i % by + by / 2) % by;
}

size_t read_from_next_in(size_t i, size_t count, size_t by) {
    (void)count;
    return i - i % by + (i % by + 1) % by;
}

size_t read_from_before_in(size_t i, size_t count, size_t by) {
    (void)count;
    return i - i % by + (i % by + by - 1) % by;
}

size_t read_from_quotient(size_t i, size_t count, size_t by) {
    (void)count;
    return i / by;
}

size_t read_from_modulo(size_t i, size_t count, size_t by) {
    (void)count;
    return i % by;
}

size_t read_from_first_of(size_t i, size_t count, size_t by) {
    (void)count;
    return i - i % by;
}

static size_t strided(size_t i, size_t by) {
    size_t blocks = by & 0xfff, stride = by >> 12 & 0xfff;
    return i / blocks * stride + i % blocks;
}

size_t read_from_strided(size_t i, size_t count, size_t by) {
    size_t each = by >> 24;
    return (i / each * each + strided(i % each, by)) % count;
}

size_t read_from_strided_within(size_t i, size_t count, size_t by) {
    size_t each = by >> 24;
    (void)count;
    return i / each * each + strided(i % each, by) % each;
}
