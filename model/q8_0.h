// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Q8_0 (q8.decode), a format of ggml: 32 elements have a common float16 scale d, and an element is
// d times a signed byte. A block is 34 bytes: d, then the 32 bytes. Source:
// doc/99-bibliography.md#llama-cpp.
//
// Every value is exact in binary64 and in float32: 11 significant bits times 7. Writing a model in
// Q8_0 rounds it: each number changes by up to 9/16 of the scale (q8.encode).
#ifndef SINKPROOF_Q8_0_H
#define SINKPROOF_Q8_0_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SINKPROOF_Q8_0_BLOCK = 32, // elements that share a scale
    SINKPROOF_Q8_0_BYTES = 34, // of a block
};

// The scale of a block.
double q8_0_scale(const uint8_t *block);

// n_blocks blocks -> out [32 n_blocks].
void sinkproof_q8_0_decode(const uint8_t *blocks, size_t n_blocks, double *out);

// x [32 n_blocks] -> n_blocks blocks with the bytes that ggml makes from these float32 numbers.
// Returns false if a scale is not a finite float16 (a magnitude above 127 65504, or NaN).
bool sinkproof_q8_0_encode(const double *x, size_t n_blocks, uint8_t *blocks);

#endif
