// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// MXFP4 (mxfp4.decode): blocks of 32 elements share one scale byte s; an element is
// E2M1(code) * 2^(s - 127). In safetensors, byte b of a block's 16 holds element 2b in
// its low nibble and element 2b + 1 in its high nibble. Sources:
// doc/99-bibliography.md#ocp-2023, doc/99-bibliography.md#openai-source.
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
};

// One element: code 0 ... 15, scale byte 0 ... 254 (255: NaN).
double sinkproof_mxfp4_value(unsigned code, unsigned scale);

// n_blocks blocks: codes [n_blocks, 16], scales [n_blocks] -> out [32 n_blocks].
void sinkproof_mxfp4_decode(const uint8_t *codes, const uint8_t *scales, size_t n_blocks,
                            double *out);

#endif
