// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014; constants: Stafford's variant 13): the only
// source of pseudo-random bits, the same on every machine.
#ifndef SINKPROOF_SPLITMIX_H
#define SINKPROOF_SPLITMIX_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t sinkproof_golden = 0x9e3779b97f4a7c15; // 2^64 over the golden ratio, odd

// A bijection of 64 bits: every bit of x affects every bit of the result.
static inline uint64_t sinkproof_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// The i-th number of the stream of a seed.
static inline uint64_t sinkproof_draw_nth(uint64_t seed, uint64_t i) {
    return sinkproof_mix(seed + (i + 1) * sinkproof_golden);
}

// The next number of a stream; the state is a counter that starts at the seed.
static inline uint64_t sinkproof_draw(uint64_t *state) {
    return sinkproof_mix(*state += sinkproof_golden);
}

// A whole number in [least, most].
static inline size_t sinkproof_draw_from_to(uint64_t *state, size_t least, size_t most) {
    return least + (size_t)(sinkproof_draw(state) % (most - least + 1));
}

#endif
