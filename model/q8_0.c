// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decodes and encodes Q8_0. Decoding is exact (q8.decode); encoding follows ggml operation by
// operation in float32 (q8.encode).
#include "model/q8_0.h"

#include "model/bf16.h"

#include <math.h>

double q8_0_scale(const uint8_t *block) {
    return sinkproof_f16_value((uint16_t)(block[0] | block[1] << 8));
}

//> q8.decode
void sinkproof_q8_0_decode(const uint8_t *blocks, size_t n_blocks, double *out) {
    for (size_t block = 0; block < n_blocks; block++, blocks += SINKPROOF_Q8_0_BYTES) {
        double d = q8_0_scale(blocks);
        for (size_t i = 0; i < SINKPROOF_Q8_0_BLOCK; i++) *out++ = d * (int8_t)blocks[2 + i];
    }
}
//< q8.decode

//> q8.encode
// Encodes one block. The stored scale is rounded; the elements are divided by the unrounded one.
static bool encode_block(const double *x, uint8_t *block) {
    float most = 0;
    for (size_t i = 0; i < SINKPROOF_Q8_0_BLOCK; i++) most = fmaxf(most, fabsf((float)x[i]));
    float d = most / 127, inverse = d != 0 ? 1 / d : 0;
    uint16_t bits = f16_bits_rounded(d);
    block[0] = (uint8_t)bits;
    block[1] = (uint8_t)(bits >> 8);
    for (size_t i = 0; i < SINKPROOF_Q8_0_BLOCK; i++)
        block[2 + i] = (uint8_t)(int8_t)roundf((float)x[i] * inverse);
    return isfinite(sinkproof_f16_value(bits));
}
//< q8.encode

bool sinkproof_q8_0_encode(const double *x, size_t n_blocks, uint8_t *blocks) {
    bool good = true;
    for (size_t block = 0; good && block < n_blocks; block++)
        good =
            encode_block(x + block * SINKPROOF_Q8_0_BLOCK, blocks + block * SINKPROOF_Q8_0_BYTES);
    return good;
}
