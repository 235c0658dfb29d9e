// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// ggml's blocks of four to six bits, decoded: blocks are packed here from their whole numbers, by
// a code of its own, and every element is held against the formula of its format, in float32; then
// what one byte changes, at every place of a block.
#include "base/splitmix.h"
#include "model/bf16.h"
#include "model/ggml_blocks.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 3000, BYTES = 256, MOST = GGML_BLOCK_MOST };

static uint64_t drawn(uint64_t *state) {
    *state += sinkproof_golden;
    return sinkproof_mix(*state);
}

// A finite float16 of any size.
static uint16_t draw_half(uint64_t *state) {
    uint16_t bits = (uint16_t)drawn(state);
    return (bits & 0x7c00) == 0x7c00 ? (uint16_t)(bits & ~0x4000) : bits;
}

static double half(uint16_t bits) {
    return sinkproof_f16_value(bits);
}

static void put_half(uint8_t *at, uint16_t bits) {
    at[0] = (uint8_t)bits, at[1] = (uint8_t)(bits >> 8);
}

// Sets `width` bits from bit `from` of a byte string on.
static void put_bits(uint8_t *bytes, size_t from, unsigned width, unsigned value) {
    for (unsigned b = 0; b < width; b++)
        if (value >> b & 1) bytes[(from + b) / 8] |= (uint8_t)(1 << (from + b) % 8);
}

// Packs q_i of a format of 32, and returns what element i is: the float32 number nearest to
// d (q_i - less), or to d q_i + m.
static void pack_32(sinkproof_dtype dtype, uint64_t *state, uint8_t *block, double *want) {
    bool five = dtype == SINKPROOF_DTYPE_Q5_0 || dtype == SINKPROOF_DTYPE_Q5_1,
         minimum = dtype == SINKPROOF_DTYPE_Q4_1 || dtype == SINKPROOF_DTYPE_Q5_1;
    uint16_t d = draw_half(state), m = draw_half(state);
    size_t high = minimum ? 4 : 2, low = high + (five ? 4 : 0);
    put_half(block, d);
    if (minimum) put_half(block + 2, m);
    for (size_t i = 0; i < 32; i++) {
        unsigned q = (unsigned)drawn(state) & (five ? 31 : 15);
        put_bits(block + low, 8 * (i % 16) + 4 * (i / 16), 4, q & 15);
        if (five) put_bits(block + high, i, 1, q >> 4);
        want[i] = minimum ? (float)(half(d) * q + half(m)) : half(d) * ((int)q - (five ? 16 : 8));
    }
}

// The eight scales and minima of six bits: of the first four parts whole bytes, of the others four
// bits each after those, and two bits above the first eight.
static void pack_k(bool five, uint64_t *state, uint8_t *block, double *want) {
    uint16_t d = draw_half(state), least = draw_half(state);
    put_half(block, d);
    put_half(block + 2, least);
    for (size_t p = 0; p < 8; p++) {
        unsigned scale = (unsigned)drawn(state) & 63, minimum = (unsigned)drawn(state) & 63;
        uint8_t *packed = block + 4;
        put_bits(packed, p < 4 ? 8 * p : 8 * (p + 4), p < 4 ? 6 : 4, scale);
        put_bits(packed, p < 4 ? 8 * (p + 4) : 8 * (p + 4) + 4, p < 4 ? 6 : 4, minimum);
        if (p >= 4) put_bits(packed, 8 * (p - 4) + 6, 2, scale >> 4);
        if (p >= 4) put_bits(packed, 8 * p + 6, 2, minimum >> 4);
        for (size_t i = 0; i < 32; i++) {
            unsigned q = (unsigned)drawn(state) & (five ? 31 : 15);
            put_bits(block + (five ? 48 : 16) + 32 * (p / 2), 8 * i + 4 * (p % 2), 4, q & 15);
            if (five) put_bits(block + 16, 8 * i + p, 1, q >> 4);
            want[32 * p + i] = (float)(half(d) * scale * q - half(least) * minimum);
        }
    }
}

static void pack_q6_k(uint64_t *state, uint8_t *block, double *want) {
    uint16_t d = draw_half(state);
    put_half(block + 208, d);
    for (size_t s = 0; s < 16; s++) block[192 + s] = (uint8_t)drawn(state);
    for (size_t i = 0; i < 256; i++) {
        unsigned q = (unsigned)drawn(state) & 63;
        size_t half_of_block = i / 128, quarter = i % 128 / 32, l = i % 32;
        put_bits(block + 64 * half_of_block, 8 * (l + 32 * (quarter % 2)) + 4 * (quarter / 2), 4,
                 q & 15);
        put_bits(block + 128 + 32 * half_of_block, 8 * l + 2 * quarter, 2, q >> 4);
        want[i] = half(d) * (int8_t)block[192 + i / 16] * ((int)q - 32);
    }
}

static void pack(sinkproof_dtype dtype, uint64_t *state, uint8_t *block, double *want) {
    memset(block, 0, BYTES);
    if (dtype == SINKPROOF_DTYPE_Q4_K || dtype == SINKPROOF_DTYPE_Q5_K)
        pack_k(dtype == SINKPROOF_DTYPE_Q5_K, state, block, want);
    else if (dtype == SINKPROOF_DTYPE_Q6_K)
        pack_q6_k(state, block, want);
    else
        pack_32(dtype, state, block, want);
}

static void test_format(sinkproof_dtype dtype) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    const char *name = sinkproof_dtype_name(dtype);
    uint64_t state = dtype;
    unsigned wrong = 0, wide = 0, unread = 0;
    for (int t = 0; t < DRAWS; t++) {
        uint8_t blocks[2 * BYTES] = {0}, second[BYTES];
        double want[2 * MOST], out[2 * MOST + 1];
        pack(dtype, &state, blocks, want);
        pack(dtype, &state, second, want + format->elements);
        memcpy(blocks + format->bytes, second, format->bytes);
        out[2 * format->elements] = 7; // nothing is written behind the blocks
        ggml_blocks_decode(dtype, blocks, 2, out);
        for (size_t i = 0; i < 2 * format->elements; i++) {
            wrong += out[i] != want[i];
            wide += (double)(float)out[i] != out[i];
        }
        wrong += out[2 * format->elements] != 7;
        // every bit of a block is read: no byte may change without an element
        for (size_t b = 0; t < 40 && b < format->bytes; b++) {
            bool changed = false;
            double other[MOST];
            blocks[b] ^= 0x21;
            ggml_blocks_decode(dtype, blocks, 1, other);
            blocks[b] ^= 0x21;
            for (size_t i = 0; i < format->elements; i++)
                changed = changed || !(other[i] == want[i]);
            unread += !changed;
        }
    }
    ok(wrong == 0, "ggml.blocks %s: every element by its formula, worst=%u bound=0", name, wrong);
    ok(wide == 0, "ggml.blocks %s: float32 holds every weight, worst=%u bound=0", name, wide);
    // a byte may leave every element as it is only where its scale is 0 or its sum is rounded away
    ok(unread * 10 < 40 * format->bytes, "ggml.blocks %s: every byte is read: %u of %zu unread",
       name, unread, 40 * format->bytes);
}

// What the numbers of the table say of the formats' sizes, and which dtypes have blocks.
static void test_table(void) {
    static const struct {
        sinkproof_dtype dtype;
        size_t elements, bytes;
    } known[] = {{SINKPROOF_DTYPE_Q4_0, 32, 18},   {SINKPROOF_DTYPE_Q4_1, 32, 20},
                 {SINKPROOF_DTYPE_Q5_0, 32, 22},   {SINKPROOF_DTYPE_Q5_1, 32, 24},
                 {SINKPROOF_DTYPE_Q8_0, 32, 34},   {SINKPROOF_DTYPE_Q4_K, 256, 144},
                 {SINKPROOF_DTYPE_Q5_K, 256, 176}, {SINKPROOF_DTYPE_Q6_K, 256, 210}};
    unsigned wrong = 0, blocks = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        wrong += sinkproof_dtype_block(known[i].dtype) != known[i].elements ||
                 sinkproof_dtype_bytes_for(known[i].dtype, 3 * known[i].elements) !=
                     3 * known[i].bytes ||
                 sinkproof_dtype_size(known[i].dtype) != 0;
    for (int d = 0; d < SINKPROOF_DTYPES; d++)
        blocks += sinkproof_ggml_blocks_of((sinkproof_dtype)d) != NULL;
    ok(wrong == 0 && blocks == sizeof known / sizeof *known &&
           sinkproof_dtype_block(SINKPROOF_DTYPE_F32) == 1,
       "ggml.blocks sizes of %u formats", blocks);
}

int main(void) {
    static const sinkproof_dtype formats[] = {
        SINKPROOF_DTYPE_Q4_0, SINKPROOF_DTYPE_Q4_1, SINKPROOF_DTYPE_Q5_0, SINKPROOF_DTYPE_Q5_1,
        SINKPROOF_DTYPE_Q4_K, SINKPROOF_DTYPE_Q5_K, SINKPROOF_DTYPE_Q6_K};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) test_format(formats[f]);
    test_table();
    return tap_done();
}
