// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// MXFP4 (mxfp4.decode): blocks of 32 elements share one scale byte s; an element is
// E2M1(code) * 2^(s - 127). In safetensors, byte b of a block's 16 holds element 2b in
// its low nibble and element 2b + 1 in its high nibble. Sources:
// doc/99-bibliography.md#ocp-2023, doc/99-bibliography.md#openai-source.
//
// In ggml's files (mxfp4.ggml) a block is 17 bytes, the scale byte and 16 of codes: byte b holds
// element b in its low nibble and element b + 16 in its high nibble. Its sources double the codes'
// values and halve the scale; the products are the same. Source: doc/99-bibliography.md#llama-cpp.
//
// Every value is exact in binary64, and in bf16 as long as s <= 252 (mxfp4.exact): the
// largest, 6 * 2^127, only needs exponent 129, the smallest, 2^-128, is no subnormal here.
// Scale byte 255 means NaN in the OCP standard and is refused when a checkpoint is opened.
#ifndef SINKPROOF_MXFP4_H
#define SINKPROOF_MXFP4_H

#include <stddef.h>
#include <stdint.h>

enum {
    SINKPROOF_MXFP4_BLOCK = 32, // elements that share a scale
    SINKPROOF_MXFP4_BYTES = 16, // bytes of codes in a block
    SINKPROOF_MXFP4_NAN_SCALE = 255,
    SINKPROOF_MXFP4_GGML_BYTES = 17, // of a block with its scale
};

// One element: code 0 ... 15, scale byte 0 ... 254 (255: NaN).
double sinkproof_mxfp4_value(unsigned code, unsigned scale);

// n_blocks blocks: codes [n_blocks, 16], scales [n_blocks] -> out [32 n_blocks].
void sinkproof_mxfp4_decode(const uint8_t *codes, const uint8_t *scales, size_t n_blocks,
                            double *out);

// n_blocks blocks of ggml's -> codes [n_blocks, 16] in the order above (or NULL: only the scales
// are wanted), scales [n_blocks]; and back.
void sinkproof_mxfp4_from_ggml(const uint8_t *blocks, size_t n_blocks, uint8_t *codes,
                               uint8_t *scales);
void mxfp4_to_ggml(const uint8_t *codes, const uint8_t *scales, size_t n_blocks, uint8_t *blocks);

#endif
