// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mode "amx" for a few tokens, on vectors: the order of fast/kernels/linear_amx.c, operation by
// operation. A tile of sixteen tokens would be mostly empty, and memory is the limit: here each
// weight is read once, in order, in one stream per panel processed at a time, as in the lanes
// (fast/kernels/tile.inc). A product of two bf16 numbers is exact, so that a fused
// multiply-add rounds as the tiles do. Where tiles cannot be used, this code's result is also
// wrong, and the caller replaces it.
//
// The scale of MXFP4 multiplies the weight, exactly, as with tiles; or it multiplies a block's sum,
// since a power of two commutes with sums as long as no sum overflows or underflows on one side
// alone. The second way is used where every input is below 2^41 and every scale at most 2^64:
// unscaled sums are below 2^49 and scaled ones below 2^113. Unscaled terms of normal inputs are
// multiples of 2^-134, so that a subnormal sum of them is exact; and where tiles can be used, no
// scaled sum is too small.
#include "fast/kernels/linear_amx.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    MOST_PANELS = 4,
    AHEAD = 2048,       // prefetch distance of packed weights in bytes
    AHEAD_SCALES = 1024 // and of their scales
};

// Constants of the inlined code: MXFP4 or BF16, panels and tokens at a time.
typedef struct few_kind {
    bool coded, late; // late: the scale multiplies the block's sum
    int P, T;
} few_kind;

// The scales of a block as numbers. 255 is invalid and may only occur with zeros, which it must
// leave zeros.
INLINE __m512 decode_scales(const uint8_t *bytes) {
    __m512i s = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    s = _mm512_min_epu32(s, _mm512_set1_epi32(254));
    return _mm512_castsi512_ps(_mm512_slli_epi32(s, 23));
}

// Columns 2 (4 q + k), or + 1 if odd, of a block; `quarter` points to its quarter q.
INLINE __m512 column_weights(few_kind kind, const uint8_t *quarter, unsigned k, bool odd,
                             __m512 scale) {
    if (kind.coded) {
        const __m512 code = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f,
                                           -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
        __m512i w = _mm512_srli_epi32(_mm512_loadu_si512(quarter), (odd ? 16 : 0) + 4 * k);
        __m512 number = _mm512_permutexvar_ps(w, code);
        return kind.late ? number : _mm512_mul_ps(scale, number);
    }
    __m512i w = _mm512_loadu_si512(quarter + 64 * k);
    w = odd ? _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)) : _mm512_slli_epi32(w, 16);
    return _mm512_castsi512_ps(w);
}

typedef __m512 sums[MOST_PANELS][AMX_FEW];

INLINE void sums_clear(few_kind kind, sums s) {
    UNROLL(4)
    for (int p = 0; p < kind.P; p++) {
        UNROLL(4)
        for (int t = 0; t < kind.T; t++) s[p][t] = _mm512_setzero_ps();
    }
}

// Adds one column of each panel to the sums of the even or the odd columns.
INLINE void sums_add_column(few_kind kind, const uint8_t *const *quarter_p, unsigned k, bool odd,
                            const __m512 *scale_p, const float *const *x_t, size_t column, sums s) {
    __m512 w[MOST_PANELS];
    UNROLL(4)
    for (int p = 0; p < kind.P; p++) w[p] = column_weights(kind, quarter_p[p], k, odd, scale_p[p]);
    UNROLL(4)
    for (int t = 0; t < kind.T; t++) {
        __m512 x = _mm512_set1_ps(x_t[t][column + (odd ? 1 : 0)]);
        UNROLL(4)
        for (int p = 0; p < kind.P; p++) s[p][t] = _mm512_fmadd_ps(w[p], x, s[p][t]);
    }
}

// Adds a block to the totals: the even and the odd columns separately, then their sum.
INLINE void totals_add_block(few_kind kind, const uint8_t *const *data_p, const __m512 *scale_p,
                             const float *const *x_t, size_t column, sums total) {
    const size_t quarter = kind.coded ? 64 : 256;
    sums even, odd;
    sums_clear(kind, even);
    sums_clear(kind, odd);
    for (size_t q = 0; q < 4; q++) {
        const uint8_t *at[MOST_PANELS];
        UNROLL(4)
        for (int p = 0; p < kind.P; p++) {
            at[p] = data_p[p] + q * quarter;
            UNROLL(4)
            for (size_t i = 0; i < quarter; i += 64)
                _mm_prefetch((const char *)at[p] + i + AHEAD, _MM_HINT_T0);
        }
        UNROLL(4)
        for (unsigned k = 0; k < 4; k++) {
            sums_add_column(kind, at, k, false, scale_p, x_t, column + 8 * q + 2 * k, even);
            sums_add_column(kind, at, k, true, scale_p, x_t, column + 8 * q + 2 * k, odd);
        }
    }
    UNROLL(4)
    for (int p = 0; p < kind.P; p++) {
        UNROLL(4)
        for (int t = 0; t < kind.T; t++) {
            __m512 sum = _mm512_add_ps(even[p][t], odd[p][t]);
            total[p][t] = kind.late ? _mm512_fmadd_ps(scale_p[p], sum, total[p][t])
                                    : _mm512_add_ps(total[p][t], sum);
        }
    }
}

// Panels panel, panel + step .. of the product, kind.P of them, for all its tokens.
INLINE void multiply_panels_few(few_kind kind, const sinkproof_product *product, size_t panel,
                                size_t step) {
    const sinkproof_panels *w = product->weight;
    const size_t scale_bytes = w->blocks * SINKPROOF_PANEL_ROWS;
    const uint8_t *data[MOST_PANELS], *scales[MOST_PANELS] = {NULL};
    __m512 scale[MOST_PANELS];
    sums total;
    sums_clear(kind, total);
    UNROLL(4)
    for (int p = 0; p < kind.P; p++) {
        scale[p] = _mm512_setzero_ps();
        data[p] = w->data + (panel + (size_t)p * step) * w->panel_stride;
        if (kind.coded) scales[p] = w->scales + (panel + (size_t)p * step) * scale_bytes;
    }
    for (size_t b = 0; b < w->blocks; b++) {
        UNROLL(4)
        for (int p = 0; p < kind.P; p++) {
            if (!kind.coded) continue;
            _mm_prefetch((const char *)scales[p] + AHEAD_SCALES, _MM_HINT_T0);
            scale[p] = decode_scales(scales[p]);
            scales[p] += SINKPROOF_PANEL_ROWS;
        }
        totals_add_block(kind, data, scale, product->x_n, b * SINKPROOF_PANEL_COLS, total);
        UNROLL(4)
        for (int p = 0; p < kind.P; p++) data[p] += w->block_stride;
    }
    UNROLL(4)
    for (int p = 0; p < kind.P; p++) {
        UNROLL(4)
        for (int t = 0; t < kind.T; t++) {
            const size_t row = SINKPROOF_PANEL_ROWS * (panel + (size_t)p * step);
            if (product->bias_r != NULL)
                total[p][t] = _mm512_add_ps(total[p][t], _mm512_loadu_ps(product->bias_r + row));
            _mm512_storeu_ps(product->y_n[t] + row, total[p][t]);
        }
    }
}

// Processes kind.P panels at a time, one from each of as many parts of the range: each part is a
// sequential stream. The remaining panels are processed one by one.
INLINE void multiply_range_few(few_kind kind, const sinkproof_product *product, size_t first,
                               size_t last) {
    const size_t part = (last - first) / (size_t)kind.P;
    few_kind single = kind;
    single.P = 1;
    for (size_t p = first; p < first + part; p++) multiply_panels_few(kind, product, p, part);
    for (size_t p = first + part * (size_t)kind.P; p < last; p++)
        multiply_panels_few(single, product, p, 0);
}

#define RANGE(name, ...)                                                                           \
    static __attribute__((noinline)) void name(const sinkproof_product *product, size_t first,     \
                                               size_t last) {                                      \
        multiply_range_few((few_kind){__VA_ARGS__}, product, first, last);                         \
    }
RANGE(bf16_1, .P = 4, .T = 1)
RANGE(bf16_2, .P = 4, .T = 2)
RANGE(bf16_3, .P = 2, .T = 3)
RANGE(bf16_4, .P = 2, .T = 4)
RANGE(mxfp4_1, .coded = true, .P = 4, .T = 1)
RANGE(mxfp4_2, .coded = true, .P = 4, .T = 2)
RANGE(mxfp4_3, .coded = true, .P = 2, .T = 3)
RANGE(mxfp4_4, .coded = true, .P = 2, .T = 4)
RANGE(late_1, .coded = true, .late = true, .P = 4, .T = 1)
RANGE(late_2, .coded = true, .late = true, .P = 4, .T = 2)
RANGE(late_3, .coded = true, .late = true, .P = 2, .T = 3)
RANGE(late_4, .coded = true, .late = true, .P = 2, .T = 4)

// Whether scales may multiply the blocks' sums, by the exponent fields of the operands.
static bool scales_may_follow_sums(const sinkproof_product *product, size_t first, size_t last) {
    enum { ONE = 127, MOST = ONE + 40, SCALE = ONE + 64 };
    const sinkproof_panels *w = product->weight;
    const size_t panel = w->blocks * SINKPROOF_PANEL_ROWS;
    __m128i scale = _mm_setzero_si128();
    for (size_t at = first * panel; at < last * panel; at += SINKPROOF_PANEL_ROWS)
        scale = _mm_max_epu8(scale, _mm_loadu_si128((const __m128i *)(w->scales + at)));
    if (_mm_movemask_epi8(_mm_cmpgt_epi8(_mm_xor_si128(scale, _mm_set1_epi8((char)0x80)),
                                         _mm_set1_epi8((char)(SCALE ^ 0x80)))) != 0)
        return false;
    for (size_t i = 0; i < product->n; i++)
        for (size_t b = 0; b < w->blocks; b++) {
            __m512i x = _mm512_loadu_si512(product->x16_n[i] + b * SINKPROOF_PANEL_COLS);
            __m512i field = _mm512_srli_epi16(_mm512_add_epi16(x, x), 8);
            if (_mm512_cmpgt_epu16_mask(field, _mm512_set1_epi16(MOST)) != 0) return false;
        }
    return true;
}

void amx_linear_few(const sinkproof_product *product, size_t first, size_t last) {
    typedef void few(const sinkproof_product *product, size_t first, size_t last);
    static few *const ranges[3][AMX_FEW] = {{bf16_1, bf16_2, bf16_3, bf16_4},
                                            {mxfp4_1, mxfp4_2, mxfp4_3, mxfp4_4},
                                            {late_1, late_2, late_3, late_4}};
    bool coded = product->weight->format == SINKPROOF_PANEL_MXFP4;
    int kind = !coded ? 0 : scales_may_follow_sums(product, first, last) ? 2 : 1;
    ranges[kind][product->n - 1](product, first, last);
}
