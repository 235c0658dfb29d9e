// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Decodes ggml's blocks (ggml.blocks). A product of a scale and a small whole number is exact in
// float32, and so is the product of two scales; only the sum with the minimum is rounded, and once.
// So a compiler that fuses the two operations gets the same number.
#include "model/ggml_blocks.h"

#include "model/bf16.h"
#include "model/q8_0.h"

enum {
    Q4_BLOCK = 32,     // elements of Q4_0, Q4_1, Q5_0 and Q5_1
    K_BLOCK = 256,     // elements of Q4_K, Q5_K and Q6_K
    K_PART = 32,       // elements that share a scale and a minimum in Q4_K and Q5_K
    K_SCALES = 12,     // bytes of these, six bits each
    Q6_K_PART = 16,    // elements that share a scale in Q6_K
    Q6_K_SCALES = 192, // where those scales begin
    Q6_K_D = 208,      // and the scale of the block
};

static double half_at(const uint8_t *bytes) {
    return sinkproof_f16_value((uint16_t)(bytes[0] | bytes[1] << 8));
}

// Element i of 2 n nibbles: the lower ones first, then the upper ones.
static int nibble(const uint8_t *bytes, size_t n, size_t i) {
    return i < n ? bytes[i] & 15 : bytes[i - n] >> 4;
}

static int bit(const uint8_t *bytes, size_t i) {
    return bytes[i / 8] >> i % 8 & 1;
}

static void decode_q4_0(const uint8_t *block, double *out) {
    for (size_t i = 0; i < Q4_BLOCK; i++)
        out[i] = half_at(block) * (nibble(block + 2, Q4_BLOCK / 2, i) - 8);
}

static void decode_q5_0(const uint8_t *block, double *out) {
    for (size_t i = 0; i < Q4_BLOCK; i++)
        out[i] =
            half_at(block) * (nibble(block + 6, Q4_BLOCK / 2, i) + 16 * bit(block + 2, i) - 16);
}

static void split_q5_1(const uint8_t *block, double *out, double *minima) {
    minima[0] = half_at(block + 2);
    for (size_t i = 0; i < Q4_BLOCK; i++)
        out[i] = half_at(block) * (nibble(block + 8, Q4_BLOCK / 2, i) + 16 * bit(block + 4, i));
}

//> ggml.blocks
static void split_q4_1(const uint8_t *block, double *out, double *minima) {
    minima[0] = half_at(block + 2);
    for (size_t i = 0; i < Q4_BLOCK; i++)
        out[i] = half_at(block) * nibble(block + 4, Q4_BLOCK / 2, i);
}

// The scale and the minimum of part p, whole numbers of six bits: four bits of those of the last
// four parts stand after the first eight bytes, two bits above the numbers of the first four.
static void part_of_k(const uint8_t *packed, size_t p, int *scale, int *minimum) {
    if (p < 4) {
        *scale = packed[p] & 63, *minimum = packed[p + 4] & 63;
    } else {
        *scale = (packed[p + 4] & 15) | packed[p - 4] >> 6 << 4;
        *minimum = packed[p + 4] >> 4 | packed[p] >> 6 << 4;
    }
}

// Two parts of 32 share 32 bytes: the first has the lower nibbles. `high`: the fifth bits, one byte
// for each place of a part, one bit of it for each part; NULL: there are none.
static void split_k(const uint8_t *block, const uint8_t *high, const uint8_t *low, double *out,
                    double *minima) {
    double d = half_at(block), d_min = half_at(block + 2);
    for (size_t i = 0; i < K_BLOCK; i++) {
        size_t p = i / K_PART, within = i % K_PART;
        int scale, minimum, q = nibble(low + p / 2 * K_PART, K_PART, i % (2 * K_PART));
        part_of_k(block + 4, p, &scale, &minimum);
        if (high != NULL) q += 16 * (high[within] >> p & 1);
        out[i] = d * scale * q, minima[p] = -(d_min * minimum);
    }
}

// ggml's own decoder adds the minimum in float32.
static void add_minima(size_t n, const double *minima, double *out) {
    for (size_t i = 0; i < n; i++) out[i] = (float)(out[i] + minima[i / GGML_PART]);
}
//< ggml.blocks

static void split_q4_k(const uint8_t *block, double *out, double *minima) {
    split_k(block, NULL, block + 4 + K_SCALES, out, minima);
}

static void split_q5_k(const uint8_t *block, double *out, double *minima) {
    split_k(block, block + 4 + K_SCALES, block + 4 + K_SCALES + K_PART, out, minima);
}

// Each half of the block: 64 bytes of nibbles for 128 elements, and 32 bytes with two bits more of
// the elements l, l + 32, l + 64 and l + 96.
static void decode_q6_k(const uint8_t *block, double *out) {
    double d = half_at(block + Q6_K_D);
    for (size_t i = 0; i < K_BLOCK; i++) {
        size_t half = i / 128, within = i % 128, quarter = within / 32;
        const uint8_t *low = block + 64 * half, *high = block + 128 + 32 * half;
        int q = nibble(low, 64, within) | (high[within % 32] >> 2 * quarter & 3) << 4;
        out[i] = d * (int8_t)block[Q6_K_SCALES + i / Q6_K_PART] * (q - 32);
    }
}
static void decode_q8_0(const uint8_t *block, double *out) {
    sinkproof_q8_0_decode(block, 1, out);
}

static const ggml_blocks formats[SINKPROOF_DTYPES] = {
    [SINKPROOF_DTYPE_Q4_0] = {Q4_BLOCK, 18, 1, {0}, decode_q4_0, NULL},
    [SINKPROOF_DTYPE_Q4_1] = {Q4_BLOCK, 20, 2, {0, 2}, NULL, split_q4_1},
    [SINKPROOF_DTYPE_Q5_0] = {Q4_BLOCK, 22, 1, {0}, decode_q5_0, NULL},
    [SINKPROOF_DTYPE_Q5_1] = {Q4_BLOCK, 24, 2, {0, 2}, NULL, split_q5_1},
    [SINKPROOF_DTYPE_Q8_0] =
        {SINKPROOF_Q8_0_BLOCK, SINKPROOF_Q8_0_BYTES, 1, {0}, decode_q8_0, NULL},
    [SINKPROOF_DTYPE_Q4_K] = {K_BLOCK, 144, 2, {0, 2}, NULL, split_q4_k},
    [SINKPROOF_DTYPE_Q5_K] = {K_BLOCK, 176, 2, {0, 2}, NULL, split_q5_k},
    [SINKPROOF_DTYPE_Q6_K] = {K_BLOCK, 210, 1, {Q6_K_D}, decode_q6_k, NULL},
};

const ggml_blocks *sinkproof_ggml_blocks_of(sinkproof_dtype dtype) {
    bool known = (unsigned)dtype < SINKPROOF_DTYPES && formats[dtype].elements > 0;
    return known ? &formats[dtype] : NULL;
}

void ggml_blocks_decode(sinkproof_dtype dtype, const uint8_t *blocks, size_t n_blocks,
                        double *out) {
    const ggml_blocks *format = &formats[dtype];
    for (size_t b = 0; b < n_blocks; b++, out += format->elements) {
        double minima[GGML_BLOCK_MOST / GGML_PART];
        if (format->split == NULL) {
            format->decode(blocks + b * format->bytes, out);
        } else {
            format->split(blocks + b * format->bytes, out, minima);
            add_minima(format->elements, minima, out);
        }
    }
}
