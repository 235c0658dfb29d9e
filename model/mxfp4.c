// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decodes MXFP4 (mxfp4.decode). A product with a power of two changes only the exponent, and
// binary64 has every exponent that occurs: nothing is rounded.
#include "model/mxfp4.h"

#include <math.h>
#include <string.h>

// E2M1: one sign bit, two exponent bits, one fraction bit. Code 8 is minus zero.
static const double e2m1[16] = {0.0,  0.5,  1.0,  1.5,  2.0,  3.0,  4.0,  6.0,
                                -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0};

// The two elements of each byte, low nibble first: one look-up and one product of a vector decode
// both. ROW has the bytes with one high nibble.
typedef double element_pair __attribute__((vector_size(16), aligned(8), may_alias));
#define ROW(high)                                                                                  \
    {0.0, high}, {0.5, high}, {1.0, high}, {1.5, high}, {2.0, high}, {3.0, high}, {4.0, high},     \
        {6.0, high}, {-0.0, high}, {-0.5, high}, {-1.0, high}, {-1.5, high}, {-2.0, high},         \
        {-3.0, high}, {-4.0, high}, {                                                              \
        -6.0, high                                                                                 \
    }
static const element_pair pairs[256] = {
    ROW(0.0),  ROW(0.5),  ROW(1.0),  ROW(1.5),  ROW(2.0),  ROW(3.0),  ROW(4.0),  ROW(6.0),
    ROW(-0.0), ROW(-0.5), ROW(-1.0), ROW(-1.5), ROW(-2.0), ROW(-3.0), ROW(-4.0), ROW(-6.0)};
#undef ROW

//> mxfp4.exact
// 2^(s - 127), a normal binary64 number for every s; byte 255 is the standard's NaN.
static double scale_value(unsigned scale) {
    if (scale == SINKPROOF_MXFP4_NAN_SCALE) return NAN;
    uint64_t bits = (uint64_t)(scale - 127 + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
//< mxfp4.exact

double sinkproof_mxfp4_value(unsigned code, unsigned scale) {
    return e2m1[code & 15] * scale_value(scale);
}

//> mxfp4.decode
void sinkproof_mxfp4_decode(const uint8_t *codes, const uint8_t *scales, size_t n_blocks,
                            double *out) {
    for (size_t block = 0; block < n_blocks; block++) {
        double scale = scale_value(scales[block]);
        element_pair *pair_b = (element_pair *)out; // elements 2b and 2b + 1
        for (size_t b = 0; b < SINKPROOF_MXFP4_BYTES; b++) pair_b[b] = pairs[codes[b]] * scale;
        out += SINKPROOF_MXFP4_BLOCK;
        codes += SINKPROOF_MXFP4_BYTES;
    }
}
//< mxfp4.decode

//> mxfp4.ggml
// The nibble that holds element i of a block of ggml's: byte i % 16, its low half for i < 16.
static unsigned ggml_code(const uint8_t *block, unsigned i) {
    return block[1 + i % 16] >> (i < 16 ? 0 : 4) & 15;
}
//< mxfp4.ggml

void sinkproof_mxfp4_from_ggml(const uint8_t *blocks, size_t n_blocks, uint8_t *codes,
                               uint8_t *scales) {
    for (size_t block = 0; block < n_blocks; block++, blocks += SINKPROOF_MXFP4_GGML_BYTES) {
        scales[block] = blocks[0];
        for (unsigned b = 0; codes != NULL && b < SINKPROOF_MXFP4_BYTES; b++)
            *codes++ = (uint8_t)(ggml_code(blocks, 2 * b) | ggml_code(blocks, 2 * b + 1) << 4);
    }
}

void mxfp4_to_ggml(const uint8_t *codes, const uint8_t *scales, size_t n_blocks, uint8_t *blocks) {
    for (size_t block = 0; block < n_blocks; block++, codes += SINKPROOF_MXFP4_BYTES) {
        *blocks++ = scales[block];
        for (unsigned b = 0; b < SINKPROOF_MXFP4_BYTES; b++) { // elements b and b + 16
            unsigned low = codes[b / 2] >> b % 2 * 4 & 15, high = codes[8 + b / 2] >> b % 2 * 4;
            *blocks++ = (uint8_t)(low | high << 4);
        }
    }
}
