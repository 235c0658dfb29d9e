// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// ggml's formats of few bits (ggml.blocks), as GGUF files hold them: along a row, 32 or 256 numbers
// share a block with their scales. An element is the float32 number that ggml's own decoder gives.
// Source: doc/99-bibliography.md#llama-cpp.
#ifndef SINKPROOF_GGML_BLOCKS_H
#define SINKPROOF_GGML_BLOCKS_H

#include "model/matrix.h"

enum {
    GGML_BLOCK_MOST = 256, // elements of a block
    GGML_SCALES = 2,       // float16 numbers in a block
    GGML_PART = 32         // elements that share a minimum, in formats that have any
};

typedef struct ggml_blocks {
    size_t elements, bytes;                 // of a block
    size_t n_scales, scale_at[GGML_SCALES]; // the places of its float16 numbers
    // one block -> out[elements]; NULL: `split` and a sum
    void (*decode)(const uint8_t *block, double *out);
    // of a format with minima: out[elements] without them, and minima[elements / 32], which are
    // added; both are exact. NULL: a format without
    void (*split)(const uint8_t *block, double *out, double *minima);
} ggml_blocks;

// The blocks of a dtype; NULL: it is not one of these formats.
const ggml_blocks *sinkproof_ggml_blocks_of(sinkproof_dtype dtype);

// n_blocks blocks of a dtype that has them -> out[elements * n_blocks].
void ggml_blocks_decode(sinkproof_dtype dtype, const uint8_t *blocks, size_t n_blocks, double *out);

#endif
