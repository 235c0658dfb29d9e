// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A mistake changes the bytes of a block, which the format's own decoder then reads.
#include "audit/diagnose/block_readings.h"

#include "model/ggml_blocks.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 256 };

// Where a block has what: its codes of four bits (or of eight), `turn` of them in a run of bytes
// whose lower halves come first; the bits above these; and the scales of its parts.
typedef struct block_places {
    size_t codes, n_codes, turn, high, n_high, parts, n_parts;
    bool shifted; // codes are moved below 0
} block_places;

static const block_places all_places[SINKPROOF_DTYPES] = {
    [SINKPROOF_DTYPE_Q4_0] = {.codes = 2, .n_codes = 16, .turn = 16, .shifted = true},
    [SINKPROOF_DTYPE_Q4_1] = {.codes = 4, .n_codes = 16, .turn = 16},
    [SINKPROOF_DTYPE_Q5_0] =
        {.codes = 6, .n_codes = 16, .turn = 16, .high = 2, .n_high = 4, .shifted = true},
    [SINKPROOF_DTYPE_Q5_1] = {.codes = 8, .n_codes = 16, .turn = 16, .high = 4, .n_high = 4},
    [SINKPROOF_DTYPE_Q8_0] = {.codes = 2, .n_codes = 32},
    [SINKPROOF_DTYPE_Q4_K] = {.codes = 16, .n_codes = 128, .turn = 32, .parts = 4, .n_parts = 12},
    [SINKPROOF_DTYPE_Q5_K] = {.codes = 48,
                              .n_codes = 128,
                              .turn = 32,
                              .high = 16,
                              .n_high = 32,
                              .parts = 4,
                              .n_parts = 12},
    [SINKPROOF_DTYPE_Q6_K] = {.codes = 0,
                              .n_codes = 128,
                              .turn = 64,
                              .high = 128,
                              .n_high = 64,
                              .parts = 192,
                              .n_parts = 16,
                              .shifted = true},
};

bool blocks_have(sinkproof_dtype dtype, block_mistake mistake) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    if (format == NULL) return false;
    const block_places *has = &all_places[dtype];
    switch (mistake) {
    case BLOCKS_WITHOUT_MINIMA:
    case BLOCKS_MINIMA_NEGATED:
    case BLOCKS_EXCHANGED:
    case BLOCKS_OTHER_MINIMA:
    case BLOCKS_OTHER_NUMBERS:
        return format->n_scales == 2;
    case BLOCKS_OTHER_PARTS:
        return has->n_parts > 0;
    case BLOCKS_IN_TURN:
    case BLOCKS_UPPER_FIRST:
        return has->turn > 0;
    case BLOCKS_WITHOUT_HIGH:
        return has->n_high > 0;
    case BLOCKS_UNSHIFTED:
        return has->shifted;
    default:
        return true;
    }
}

static void exchange(uint8_t *a, uint8_t *b) {
    uint8_t kept = *a;
    *a = *b, *b = kept;
}

// Code k of a run of n bytes becomes the one that is read for it.
static void turn_codes(uint8_t *bytes, size_t n) {
    uint8_t read[MOST_BYTES];
    for (size_t k = 0; k < 2 * n; k++) {
        unsigned code = k % 2 == 0 ? bytes[k / 2] & 15u : bytes[k / 2] >> 4;
        read[k % n] = (uint8_t)(k < n ? code : read[k % n] | code << 4);
    }
    memcpy(bytes, read, n);
}

static void upper_first(uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(bytes[i] >> 4 | (bytes[i] & 15) << 4);
}

// Makes the bytes of a block those that are read.
static void misread_bytes(const block_reading *reading, sinkproof_dtype dtype, const uint8_t *other,
                          uint8_t *block) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    const block_places *has = &all_places[dtype];
    size_t scale = format->scale_at[0], minimum = format->scale_at[1];
    block_mistake what = reading->mistake;
    bool both = what == BLOCKS_OTHER_NUMBERS;
    if (what == BLOCKS_WITHOUT_MINIMA) block[minimum] = block[minimum + 1] = 0;
    if (what == BLOCKS_MINIMA_NEGATED) block[minimum + 1] ^= 0x80;
    for (size_t i = 0; i < 2 && what == BLOCKS_EXCHANGED; i++)
        exchange(&block[scale + i], &block[minimum + i]);
    if (both || what == BLOCKS_OTHER_SCALES) memcpy(block + scale, other + scale, 2);
    if (both || what == BLOCKS_OTHER_MINIMA) memcpy(block + minimum, other + minimum, 2);
    if (what == BLOCKS_OTHER_PARTS) memcpy(block + has->parts, other + has->parts, has->n_parts);
    for (size_t at = 0; what == BLOCKS_IN_TURN && at < has->n_codes; at += has->turn)
        turn_codes(block + has->codes + at, has->turn);
    if (what == BLOCKS_UPPER_FIRST) upper_first(block + has->codes, has->n_codes);
    if (what == BLOCKS_WITHOUT_HIGH) memset(block + has->high, 0, has->n_high);
}

// The numbers of a block, as the format's decoder reads them.
static void decode(const ggml_blocks *format, const uint8_t *block, double *out) {
    double minima[GGML_BLOCK_MOST / GGML_PART];
    if (format->split == NULL) {
        format->decode(block, out);
        return;
    }
    format->split(block, out, minima);
    for (size_t i = 0; i < format->elements; i++) out[i] = (float)(out[i] + minima[i / GGML_PART]);
}

// Takes away what every code is moved by: what a block of no codes decodes to.
static void unshift(sinkproof_dtype dtype, const uint8_t *stored, double *out) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(dtype);
    const block_places *has = &all_places[dtype];
    uint8_t block[MOST_BYTES];
    double least[GGML_BLOCK_MOST];
    memcpy(block, stored, format->bytes);
    memset(block + has->codes, 0, has->n_codes);
    memset(block + has->high, 0, has->n_high);
    decode(format, block, least);
    for (size_t i = 0; i < format->elements; i++) out[i] -= least[i];
}

// The matrix without the model's reading of its rows, and the row that this reads as row *r.
static sinkproof_matrix stored_rows(const sinkproof_matrix *stack, size_t e, size_t *r) {
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    for (const sinkproof_reading *of = one.reading; of != NULL; of = of->below)
        if (of->row != NULL) *r = of->row(*r, one.rows, of->row_by);
    one.reading = NULL;
    return one;
}

bool blocks_misread(const block_reading *reading, const sinkproof_matrix *stack, size_t e, size_t r,
                    double *out_c) {
    const ggml_blocks *format = sinkproof_ggml_blocks_of(stack->dtype);
    if (!blocks_have(stack->dtype, reading->mistake)) return false;
    sinkproof_matrix one = stored_rows(stack, e, &r);
    size_t n = one.cols / format->elements;
    for (size_t b = 0; b < n; b++) {
        size_t circle = reading->across ? n * one.rows : n, own = reading->across ? r * n + b : b;
        size_t at = reading->first ? 0 : (own + circle + (size_t)reading->by) % circle;
        const uint8_t *row = sinkproof_matrix_stored(&one, r);
        const uint8_t *from = sinkproof_matrix_stored(&one, reading->across ? at / n : r);
        uint8_t block[MOST_BYTES];
        double *out = out_c + b * format->elements;
        if (row == NULL || from == NULL) return false;
        memcpy(block, row + b * format->bytes, format->bytes);
        misread_bytes(reading, stack->dtype, from + at % n * format->bytes, block);
        decode(format, block, out);
        if (reading->mistake == BLOCKS_UNSHIFTED) unshift(stack->dtype, block, out);
    }
    return true;
}
