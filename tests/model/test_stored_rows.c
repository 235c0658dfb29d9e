// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of stored weights, each element found a second time by its address: every format, with its
// scales beside it or apart, stacks, transposed ones, halves that lie apart; and readings of what
// is stored, which permute, scale, add and leave out. Nothing outside of a row is written. 0.01 CPU
// seconds.
#include "base/splitmix.h"
#include "model/bf16.h"
#include "model/ggml_blocks.h"
#include "model/mxfp4.h"
#include "model/q8_0.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <string.h>

enum { BYTES = 1 << 15, MOST = 512, GUARD = 40 };

static uint8_t stored[BYTES], apart[BYTES];
static double guarded[GUARD + MOST + GUARD], *const out = guarded + GUARD;

static void fill(uint8_t *bytes, uint64_t state) {
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)sinkproof_draw(&state);
}

// The row, or a mistake wherever something beside it was written.
static size_t row_of(const sinkproof_matrix *m, size_t r) {
    size_t wrong = 0;
    for (size_t i = 0; i < GUARD + MOST + GUARD; i++) guarded[i] = -12345.5;
    sinkproof_matrix_row(m, r, out);
    for (size_t i = 0; i < GUARD + MOST + GUARD; i++)
        if (i < GUARD || i >= GUARD + m->cols) wrong += guarded[i] != -12345.5;
    return wrong;
}

static bool same(double x, double y) {
    return x == y || (isnan(x) && isnan(y));
}

// ---- formats ------------------------------------------------------------------------------------

static double e2m1(unsigned code) {
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}

static double f16(unsigned bits) {
    int e = bits >> 10 & 31, f = bits & 1023;
    double x = e == 0 ? ldexp(f, -24) : ldexp(1024 + f, e - 25);
    if (e == 31) x = f == 0 ? INFINITY : NAN;
    return bits >> 15 ? -x : x;
}

// Element i of a vector of a format, whose bytes lie at `at`.
static double element(sinkproof_dtype dtype, const uint8_t *at, size_t i) {
    const uint8_t *block = at + i / 32 * (dtype == SINKPROOF_DTYPE_MXFP4 ? 17 : 34);
    uint64_t bits = 0;
    size_t size = dtype == SINKPROOF_DTYPE_U8                                     ? 1
                  : dtype == SINKPROOF_DTYPE_BF16 || dtype == SINKPROOF_DTYPE_F16 ? 2
                  : dtype == SINKPROOF_DTYPE_F32 || dtype == SINKPROOF_DTYPE_I32  ? 4
                                                                                  : 8;
    if (dtype == SINKPROOF_DTYPE_Q8_0)
        return f16((unsigned)(block[0] + 256 * block[1])) * (int8_t)block[2 + i % 32];
    if (dtype == SINKPROOF_DTYPE_MXFP4) {
        unsigned byte = block[1 + i % 16], code = i % 32 < 16 ? byte & 15 : byte >> 4;
        return block[0] == 255 ? NAN : ldexp(e2m1(code), block[0] - 127);
    }
    for (size_t b = size; b-- > 0;) bits = bits << 8 | at[i * size + b];
    uint32_t half = (uint32_t)(dtype == SINKPROOF_DTYPE_BF16 ? bits << 16 : bits);
    float single;
    double whole;
    memcpy(&single, &half, sizeof single);
    memcpy(&whole, &bits, sizeof whole);
    switch (dtype) {
    case SINKPROOF_DTYPE_BF16:
    case SINKPROOF_DTYPE_F32:
        return single;
    case SINKPROOF_DTYPE_F16:
        return f16((unsigned)bits);
    case SINKPROOF_DTYPE_F64:
        return whole;
    case SINKPROOF_DTYPE_I32:
        return (int32_t)bits;
    case SINKPROOF_DTYPE_I64:
        return (double)(int64_t)bits;
    default:
        return (double)bits;
    }
}

static sinkproof_matrix matrix_of(sinkproof_dtype dtype, size_t count, size_t rows, size_t cols) {
    sinkproof_matrix m = {.dtype = dtype, .count = count, .rows = rows, .cols = cols};
    m.data = stored, m.stack_stride = rows * cols, m.row_stride = cols, m.col_stride = 1;
    return m;
}

// ggml's blocks of four to six bits, whose elements test_ggml_blocks.c has.
static bool is_in_few_bits(sinkproof_dtype dtype) {
    return sinkproof_ggml_blocks_of(dtype) != NULL && dtype != SINKPROOF_DTYPE_Q8_0;
}

static size_t next_row(size_t r, size_t rows, size_t by) {
    return (r + by) % rows;
}

// Two experts of three rows of two blocks each, one after the other.
static void few_bits(void) {
    for (int d = 0; d < SINKPROOF_DTYPES; d++) {
        sinkproof_dtype dtype = (sinkproof_dtype)d;
        if (!is_in_few_bits(dtype)) continue;
        const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
        size_t cols = 2 * format->elements, wrong = 0;
        sinkproof_matrix stack = matrix_of(dtype, 2, 3, cols);
        for (size_t i = 0; i < 6; i++) {
            double want[2 * GGML_BLOCK_MOST];
            sinkproof_matrix m = sinkproof_matrix_at(&stack, i / 3);
            ggml_blocks_decode(dtype, stored + 2 * i * format->bytes, 2, want);
            wrong += row_of(&m, i % 3);
            for (size_t c = 0; c < cols; c++) wrong += !same(out[c], want[c]);
        }
        ok(wrong == 0, "attn.qkv model.forward %s, 2 times 3 rows of 2 blocks: worst=%zu bound=0",
           sinkproof_dtype_name(dtype), wrong);
    }
}

// A row in parts: with its minima, one for 32 elements, it is the row that is decoded. A reading
// of other rows and another factor keeps the parts; one that adds has none.
static void parts(void) {
    size_t wrong = 0, with = 0;
    for (int d = 0; d < SINKPROOF_DTYPES; d++) {
        sinkproof_matrix m = matrix_of((sinkproof_dtype)d, 1, 6, 512);
        size_t minima = sinkproof_matrix_minima(&m);
        bool stated = d == SINKPROOF_DTYPE_Q4_1 || d == SINKPROOF_DTYPE_Q5_1 ||
                      d == SINKPROOF_DTYPE_Q4_K || d == SINKPROOF_DTYPE_Q5_K;
        wrong += minima != (stated ? 16 : 0);
        if (!stated) continue;
        sinkproof_reading turned = {.row = next_row, .row_by = 2, .factor = 4},
                          shifted = {.factor = 1, .addend = 1, .below = &turned};
        const sinkproof_reading *const readings[] = {NULL, &turned, &shifted};
        for (int k = 0; k < 3; k++)
            for (size_t r = 0; r < 6; r++, with++) {
                double split[512 + 16];
                m.reading = readings[k];
                wrong += row_of(&m, r);
                sinkproof_matrix_split_row(&m, r, split);
                for (size_t c = 0; c < 512; c++)
                    wrong +=
                        !same(out[c], k == 0   ? (float)(split[c] + split[512 + c / 32])
                                      : k == 1 ? 4 * (float)((split[c] + split[512 + c / 32]) / 4)
                                               : split[c] + split[512 + c / 32]);
                for (size_t p = 0; k == 2 && p < 16; p++) wrong += split[512 + p] != 0;
            }
        m.kept = SINKPROOF_F16;
        wrong += sinkproof_matrix_minima(&m) != 0;
    }
    ok(wrong == 0 && with == 72, "ggml.blocks rows without their minima, %zu: worst=%zu bound=0",
       with, wrong);
}

// Every expert, row and column where their numbers say.
static void formats(void) {
    for (int d = 0; d < SINKPROOF_DTYPES; d++) {
        sinkproof_dtype dtype = (sinkproof_dtype)d;
        if (is_in_few_bits(dtype)) continue;
        sinkproof_matrix stack = matrix_of(dtype, 3, 5, 96);
        size_t wrong = 0;
        for (size_t e = 0; e < 3; e++) {
            sinkproof_matrix m = sinkproof_matrix_at(&stack, e);
            wrong += m.count != 1;
            for (size_t r = 0; r < 5; r++) {
                wrong += row_of(&m, r);
                for (size_t c = 0; c < 96; c++)
                    wrong += !same(out[c], element(dtype, stored, (e * 5 + r) * 96 + c));
            }
        }
        ok(wrong == 0, "attn.qkv model.forward %s, 3 times 5 rows of 96: worst=%zu bound=0",
           sinkproof_dtype_name(dtype), wrong);
        if (dtype == SINKPROOF_DTYPE_MXFP4 || dtype == SINKPROOF_DTYPE_Q8_0) continue;
        sinkproof_matrix turned = matrix_of(dtype, 2, 7, 11); // rows and columns change places
        turned.row_stride = 1, turned.col_stride = 7;
        wrong = 0;
        for (size_t e = 0; e < 2; e++) {
            sinkproof_matrix m = sinkproof_matrix_at(&turned, e);
            for (size_t r = 0; r < 7; r++) {
                wrong += row_of(&m, r);
                for (size_t c = 0; c < 11; c++)
                    wrong += !same(out[c], element(dtype, stored, e * 77 + c * 7 + r));
            }
        }
        ok(wrong == 0, "attn.qkv model.forward %s transposed: worst=%zu bound=0",
           sinkproof_dtype_name(dtype), wrong);
    }
}

// The codes of a row side by side, two a byte, the scales elsewhere.
static void codes_and_scales(void) {
    sinkproof_matrix stack = matrix_of(SINKPROOF_DTYPE_MXFP4, 3, 5, 96);
    stack.scales = apart;
    size_t wrong = 0;
    for (size_t e = 0; e < 3; e++) {
        sinkproof_matrix m = sinkproof_matrix_at(&stack, e);
        for (size_t r = 0; r < 5; r++) {
            wrong += row_of(&m, r);
            for (size_t c = 0; c < 96; c++) {
                size_t at = (e * 5 + r) * 96 + c;
                unsigned byte = stored[at / 2], scale = apart[at / 32];
                double x = ldexp(e2m1(at % 2 == 0 ? byte & 15 : byte >> 4), (int)scale - 127);
                wrong += !same(out[c], scale == 255 ? NAN : x);
            }
        }
    }
    ok(wrong == 0, "attn.qkv model.forward codes apart from their scales: worst=%zu bound=0",
       wrong);
    // Other formats have no codes, whatever stands where their scales would.
    sinkproof_matrix plain = matrix_of(SINKPROOF_DTYPE_BF16, 2, 3, 32);
    plain.scales = apart;
    sinkproof_matrix m = sinkproof_matrix_at(&plain, 1);
    wrong = row_of(&m, 2);
    for (size_t c = 0; c < 32; c++)
        wrong += !same(out[c], element(SINKPROOF_DTYPE_BF16, stored, (3 + 2) * 32 + c));
    ok(wrong == 0, "attn.qkv model.forward scales beside BF16 are not read: worst=%zu bound=0",
       wrong);
}

// Gate and up: odd rows, or the odd elements of a vector, in a place of their own.
static void halves(void) {
    static const sinkproof_dtype dtypes[] = {SINKPROOF_DTYPE_F32, SINKPROOF_DTYPE_MXFP4};
    for (size_t d = 0; d < 2; d++) {
        sinkproof_matrix stack = matrix_of(dtypes[d], 2, 6, 64);
        stack.odd = apart, stack.stack_stride = 3 * 64;
        size_t wrong = 0;
        for (size_t e = 0; e < 2; e++) {
            sinkproof_matrix m = sinkproof_matrix_at(&stack, e);
            for (size_t r = 0; r < 6; r++) {
                wrong += row_of(&m, r);
                for (size_t c = 0; c < 64; c++)
                    wrong += !same(out[c], element(dtypes[d], r % 2 == 0 ? stored : apart,
                                                   (e * 3 + r / 2) * 64 + c));
            }
        }
        ok(wrong == 0, "attn.qkv model.forward %s, odd rows apart: worst=%zu bound=0",
           sinkproof_dtype_name(dtypes[d]), wrong);
    }
    for (size_t stride = 1; stride < 4; stride += 2) {
        sinkproof_matrix m = matrix_of(SINKPROOF_DTYPE_F32, 1, 1, 9);
        m.odd = apart, m.col_stride = stride;
        size_t wrong = row_of(&m, 0);
        for (size_t c = 0; c < 9; c++)
            wrong += !same(
                out[c], element(SINKPROOF_DTYPE_F32, c % 2 == 0 ? stored : apart, c / 2 * stride));
        ok(wrong == 0, "attn.qkv model.forward odd elements apart, every %zu: worst=%zu bound=0",
           stride, wrong);
    }
}

// ---- readings -----------------------------------------------------------------------------------

// Three permutations: of one cycle or several, of pairs and a fixed point, of one long cycle.
static size_t turned(size_t i, size_t count, size_t by) {
    return (i + by) % count;
}
static size_t mirrored(size_t i, size_t count, size_t by) {
    return (count - 1 - i + by) % count;
}
static size_t multiplied(size_t i, size_t count, size_t by) {
    return i * by % count;
}

static void readings(void) {
    enum { ROWS = 7, COLS = 11 };
    static const bool gone_c[COLS + 1] = {true, [3] = true, [10] = true, [COLS] = true};
    static sinkproof_read_from *const from[] = {turned, mirrored, multiplied};
    sinkproof_matrix stack = matrix_of(SINKPROOF_DTYPE_I32, 4, ROWS, COLS);
    size_t wrong = 0, asked = 0;
    for (size_t k = 0; k < 36; k++) {
        sinkproof_reading below = {.factor = 0.25, .addend = 3, .expert_by = 2, .row = turned};
        below.row_by = 4, below.column = mirrored, below.column_by = k % 11;
        sinkproof_reading reading = {.factor = k % 5 == 0 ? 0 : -2, .addend = (double)(k % 3) - 1};
        reading.expert_by = k % 4, reading.column_by = 1 + k % 10, reading.row_by = 1 + k % 6;
        if (k % 4 != 3) reading.column = from[k % 3];
        if (k % 6 != 5) reading.row = from[k / 3 % 3];
        if (k % 2) reading.gone_c = gone_c;
        if (k % 7 > 2) reading.below = &below;
        stack.reading = &reading;
        for (size_t e = 0; e < 4; e++) {
            sinkproof_matrix m = sinkproof_matrix_at(&stack, e);
            size_t expert = (e + k % 4 + (reading.below != NULL ? 2 : 0)) % 4;
            for (size_t r = 0; r < ROWS; r++) {
                wrong += row_of(&m, r);
                size_t row = reading.row != NULL ? reading.row(r, ROWS, 1 + k % 6) : r;
                for (size_t c = 0; c < COLS; c++, asked++) {
                    size_t col = reading.column != NULL ? reading.column(c, COLS, 1 + k % 10) : c;
                    size_t i = row, j = col;
                    if (reading.below != NULL)
                        i = turned(row, ROWS, 4), j = mirrored(col, COLS, k % 11);
                    double x = element(SINKPROOF_DTYPE_I32, stored, (expert * ROWS + i) * COLS + j);
                    if (reading.below != NULL) x = 0.25 * x + 3;
                    x = (k % 5 == 0 ? 0 : -2 * x) + (double)(k % 3) - 1;
                    wrong += !same(out[c], k % 2 && gone_c[c] ? 0 : x);
                }
            }
        }
    }
    ok(wrong == 0 && asked == (size_t)36 * 4 * ROWS * COLS,
       "attn.qkv model.forward readings of what is stored: %zu elements worst=%zu bound=0", asked,
       wrong);
}

// What an engine keeps its weights in rounds them, each by itself.
static void kept(void) {
    sinkproof_matrix m = matrix_of(SINKPROOF_DTYPE_F32, 1, 3, 40);
    size_t wrong = 0;
    for (int f = 0; f < 2; f++) {
        m.kept = f == 0 ? SINKPROOF_BF16 : SINKPROOF_F16;
        for (size_t r = 0; r < 3; r++) {
            wrong += row_of(&m, r);
            for (size_t c = 0; c < 40; c++)
                wrong += !same(out[c], sinkproof_round(m.kept, element(SINKPROOF_DTYPE_F32, stored,
                                                                       r * 40 + c)));
        }
    }
    ok(wrong == 0, "attn.qkv model.forward rows that are kept in fewer bits: worst=%zu bound=0",
       wrong);
    wrong = 0;
    for (int d = 0; d < SINKPROOF_DTYPES; d++)
        for (int f = 0; f < 2; f++) {
            sinkproof_matrix blocks = {.dtype = (sinkproof_dtype)d};
            blocks.kept = f == 0 ? SINKPROOF_REAL : SINKPROOF_BF16;
            bool stated =
                (d == SINKPROOF_DTYPE_MXFP4 || sinkproof_ggml_blocks_of(blocks.dtype) != NULL) &&
                f == 0;
            wrong += sinkproof_matrix_is_whole(&blocks) != stated;
        }
    ok(wrong == 0, "attn.qkv what is kept as whole numbers in blocks: worst=%zu bound=0", wrong);
}

// ---- sizes and single elements ------------------------------------------------------------------

static void sizes(void) {
    static const size_t bytes_of_64[SINKPROOF_DTYPES] = {
        [SINKPROOF_DTYPE_BF16] = 128, [SINKPROOF_DTYPE_F16] = 128,  [SINKPROOF_DTYPE_F32] = 256,
        [SINKPROOF_DTYPE_F64] = 512,  [SINKPROOF_DTYPE_MXFP4] = 34, [SINKPROOF_DTYPE_U8] = 64,
        [SINKPROOF_DTYPE_I32] = 256,  [SINKPROOF_DTYPE_I64] = 512,  [SINKPROOF_DTYPE_Q8_0] = 68,
        [SINKPROOF_DTYPE_Q4_0] = 36,  [SINKPROOF_DTYPE_Q4_1] = 40,  [SINKPROOF_DTYPE_Q5_0] = 44,
        [SINKPROOF_DTYPE_Q5_1] = 48};
    size_t wrong = 0;
    for (int d = 0; d < SINKPROOF_DTYPES; d++) {
        sinkproof_dtype dtype = (sinkproof_dtype)d;
        if (bytes_of_64[d] == 0) continue; // blocks of 256
        wrong += sinkproof_dtype_bytes_for(dtype, 64) != bytes_of_64[d];
        if (bytes_of_64[d] % 64 != 0) continue; // blocks
        for (size_t stride = 1; stride < 4; stride++) {
            sinkproof_decode_many(dtype, stored + 3, stride, 50, out);
            for (size_t i = 0; i < 50; i++)
                wrong +=
                    !same(out[i], element(dtype, stored + 3, i * stride)) ||
                    !same(out[i],
                          element_decode(dtype, stored + 3 + i * stride * (bytes_of_64[d] / 64)));
        }
    }
    ok(wrong == 0, "attn.qkv model.forward sizes, and elements several apart: worst=%zu bound=0",
       wrong);
}

int main(void) {
    fill(stored, 20261123), fill(apart, 20261124);
    formats();
    few_bits();
    parts();
    codes_and_scales();
    halves();
    readings();
    kept();
    sizes();
    return tap_done();
}
