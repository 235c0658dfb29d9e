// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of synthetic weights, each element drawn a second time from its number alone: every recipe,
// rows that begin at an odd number, experts, blocks with their scales. 0.01 CPU seconds.
#include "model/matrix.h"
#include "model/synthetic.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { MOST = 192 };

// SplitMix64's bijection, of key + number * 2^64 / golden ratio.
static uint64_t hash(uint64_t key, uint64_t number) {
    uint64_t x = key + number * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t key_of(uint64_t seed, uint64_t stream) {
    return hash(hash(seed, 1), stream);
}

// (offset + gain t) 2^exponent cut to eight bits; t of the 32 bits that the number has to itself.
static double element(const element_recipe *recipe, uint64_t key, uint64_t number) {
    uint64_t bits = hash(key, number / 2) >> 32 * (number % 2);
    int64_t low = (int64_t)(bits % 65536), high = (int64_t)(bits / 65536 % 65536);
    int64_t t = recipe->uniform ? 2 * low - 65535 : low + high - 65535;
    double whole = (double)(recipe->offset + recipe->gain * t);
    if (whole == 0) return 0;
    double unit = ldexp(1, ilogb(whole) - 7);
    return trunc(whole / unit) * unit * ldexp(1, recipe->exponent);
}

// Element `number` of a tensor of blocks.
static double coded(const element_recipe *recipe, uint64_t key, uint64_t number) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    uint64_t block = number / 32, at = number % 32;
    uint64_t codes = hash(key, 2 * block + at / 16) >> 4 * (at % 16);
    double x = magnitude[codes & 7] * (codes & 8 ? -1 : 1);
    unsigned drawn = (unsigned)(hash(~key, block / 4) >> 16 * (block % 4)) & 0xffff;
    int down = 0;
    while (down < 7 && !(drawn >> (8 + down) & 1)) down++;
    int boost = (int)(drawn & 0xff) < recipe->boost;
    return ldexp(x, recipe->scale - down + boost - 127);
}

static synthetic_model drawn_with(uint64_t seed) {
    static const element_recipe recipes[4] = {{false, 12345, 7, -20, 127, 11},
                                              {true, -300, 100, -30, 118, 0},
                                              {false, 0, 1, 3, 120, 101},
                                              {true, 4, -3, 0, 130, 129}};
    synthetic_model synthetic = {.seed = seed};
    for (size_t k = 0; k < STREAM_SLOTS; k++) synthetic.recipes[k] = recipes[k % 4];
    return synthetic;
}

// Every element of experts of [rows, cols]; the slot's number, the layer and the expert count.
static size_t apart_of(const synthetic_model *synthetic, sinkproof_dtype dtype, size_t slot,
                       size_t rows, size_t cols) {
    static double out[MOST + 1];
    sinkproof_matrix stack = {.dtype = dtype, .count = 3, .rows = rows, .cols = cols};
    stack.synthetic = synthetic, stack.stream = slot | 5 << 8;
    size_t apart = 0;
    for (size_t e = 0; e < 3; e++) {
        sinkproof_matrix m = sinkproof_matrix_at(&stack, e);
        uint64_t key = key_of(synthetic->seed, slot + 5 * 256 + e * 16777216);
        for (size_t r = 0; r < rows; r++) {
            uint8_t codes[MOST / 2], scales[MOST / 32], only[MOST / 32];
            out[cols] = 0.125;
            sinkproof_matrix_row(&m, r, out);
            apart += out[cols] != 0.125;
            bool blocks = dtype == SINKPROOF_DTYPE_MXFP4;
            for (size_t c = 0; c < cols; c++) {
                const element_recipe *recipe = &synthetic->recipes[slot];
                double x = (blocks ? coded : element)(recipe, key, r * cols + c);
                apart += !(out[c] == x);
            }
            if (!blocks) continue;
            synthetic_codes(&m, r, codes, scales);
            synthetic_codes(&m, r, NULL, only);
            apart += memcmp(scales, only, cols / 32) != 0;
            for (size_t c = 0; c < cols; c++) {
                static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
                unsigned code = codes[c / 2] >> 4 * (c % 2) & 15;
                double x = ldexp(magnitude[code & 7], scales[c / 32] - 127);
                apart += !(out[c] == (code & 8 ? -x : x));
            }
        }
    }
    return apart;
}

int main(void) {
    size_t elements = 0, blocks = 0;
    for (uint64_t seed = 0; seed < 3; seed++) {
        synthetic_model synthetic = drawn_with(seed * UINT64_C(0x123456789abcdef1));
        for (size_t slot = 0; slot < 8; slot++) {
            static const size_t cols[] = {1, 7, 10, 33};
            for (size_t k = 0; k < 4; k++)
                elements += apart_of(&synthetic, SINKPROOF_DTYPE_BF16, slot, 5, cols[k]);
            blocks += apart_of(&synthetic, SINKPROOF_DTYPE_MXFP4, slot, 7, 96);
            blocks += apart_of(&synthetic, SINKPROOF_DTYPE_MXFP4, slot, 3, 192);
        }
    }
    ok(elements == 0, "attn.qkv model.forward drawn elements by their numbers: worst=%zu bound=0",
       elements);
    ok(blocks == 0, "attn.qkv model.forward drawn blocks by their numbers: worst=%zu bound=0",
       blocks);
    return tap_done();
}
