// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The smallest exponent fields of nonzero numbers in a panel and in a token, which decide whether
// tiles can be used for the token in the panel (see fast/kernels/linear_amx.c). A field is that of
// a bf16 number's bits, 127 for 1; 0 if a number is subnormal or a scale does not fit bf16.
#ifndef SINKPROOF_LEAST_AMX_H
#define SINKPROOF_LEAST_AMX_H

#include "fast/kernels/panels.h"
#include "fast/kernels/tiles_amx.h"

#include <stdbool.h>
#include <string.h>

enum {
    NO_NUMBER = 256,    // the field for zeros only
    LEAST_PRODUCT = 143 // the smallest allowed sum of two fields: products from 2^-111 on
};

static inline size_t smaller_size(size_t a, size_t b) {
    return a < b ? a : b;
}

// 2 |w| - 1 as unsigned words: zeros become the largest, so that a minimum ignores them.
static inline __m512i least_magnitudes(__m512i least, __m512i w) {
    __m512i twice = _mm512_add_epi16(w, w);
    return _mm512_min_epu16(least, _mm512_sub_epi16(twice, _mm512_set1_epi16(1)));
}

// The exponent field of the smallest nonzero number, 0 if that is subnormal.
static inline uint16_t least_exponent(__m512i least) {
    __m256i a =
        _mm256_min_epu16(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
    __m128i m = _mm_min_epu16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    unsigned word = (unsigned)_mm_extract_epi16(_mm_minpos_epu16(m), 0);
    return (uint16_t)((word + 1) >> 8);
}

static inline bool tiles_serve(unsigned least_w, unsigned least_x) {
    return least_w > 0 && least_x > 0 && least_w + least_x >= LEAST_PRODUCT;
}

// The smallest exponent field of an MXFP4 panel by its scales: the smallest nonzero code is 1/2.
// Block rows of zeros do not count; 0 if another row's scale does not fit bf16.
static inline uint16_t least_scale(const sinkproof_panels *w, size_t p) {
    unsigned least = NO_NUMBER;
    size_t rows = smaller_size(SINKPROOF_PANEL_ROWS, w->rows - p * SINKPROOF_PANEL_ROWS);
    for (size_t b = 0; b < w->blocks; b++) {
        const uint8_t *block = w->data + p * w->panel_stride + b * w->block_stride;
        const uint8_t *scale_r = w->scales + (p * w->blocks + b) * SINKPROOF_PANEL_ROWS;
        for (size_t r = 0; r < rows; r++) {
            uint32_t quarter, codes = 0;
            for (size_t q = 0; q < 4; q++) {
                memcpy(&quarter, block + q * ROW + r * sizeof quarter, sizeof quarter);
                codes |= quarter & 0x77777777u;
            }
            if (codes == 0) continue;
            if (scale_r[r] < 2 || scale_r[r] > 252) return 0;
            if (scale_r[r] - 1u < least) least = scale_r[r] - 1u;
        }
    }
    return (uint16_t)least;
}

// A quick bound from the scales alone: at most least_scale, and nearly always equal to it.
static inline uint16_t least_scale_seen(const sinkproof_panels *w, size_t p) {
    const uint8_t *scale = w->scales + p * w->blocks * SINKPROOF_PANEL_ROWS;
    __m128i low = _mm_set1_epi8(-1), high = _mm_setzero_si128();
    for (size_t b = 0; b < w->blocks; b++) {
        __m128i s = _mm_loadu_si128((const __m128i *)(scale + b * SINKPROOF_PANEL_ROWS));
        low = _mm_min_epu8(low, s), high = _mm_max_epu8(high, s);
    }
    uint8_t lows[16], highs[16];
    _mm_storeu_si128((__m128i *)lows, low), _mm_storeu_si128((__m128i *)highs, high);
    unsigned least = 255, most = 0;
    for (int r = 0; r < 16; r++) {
        if (lows[r] < least) least = lows[r];
        if (highs[r] > most) most = highs[r];
    }
    return least < 2 || most > 252 ? 0 : (uint16_t)(least - 1);
}

// The same for a BF16 panel: stored by packing, or computed.
static inline uint16_t least_number(const sinkproof_panels *w, size_t p) {
    if (w->least_p != NULL) return w->least_p[p] == 255 ? NO_NUMBER : w->least_p[p];
    const uint8_t *panel = w->data + p * w->panel_stride;
    __m512i least = _mm512_set1_epi16(-1);
    for (size_t b = 0; b < w->blocks; b++)
        for (size_t i = 0; i < TILE; i += ROW)
            least = least_magnitudes(least, _mm512_loadu_si512(panel + b * w->block_stride + i));
    return least_exponent(least);
}

#endif
