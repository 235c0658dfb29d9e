// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sixteen lanes in one AVX-512 register (F, BW, DQ, VL). See fast/kernels/lanes.h.
#include "fast/kernels/lanes_x86.h"

// A tile of products keeps PANELS x TOKENS sums in registers (for MXFP4 codes PANELS x
// CODE_TOKENS), and as many totals if there are at most HELD; a single token streams STREAMS panels
// (for codes STREAMS_CODES, since decoding takes time).
#define LANES_TILE_PANELS   2
#define LANES_TILE_TOKENS   6
#define LANES_TILE_HELD     12
#define LANES_CODE_TOKENS   6
#define LANES_STREAMS       2
#define LANES_STREAMS_CODES 4

typedef __m512 v16;
typedef __m512i v16i;
typedef __mmask16 v16m;

V16 v16 v16_load(const float *p) {
    return _mm512_loadu_ps(p);
}
V16 void v16_store(float *p, v16 v) {
    _mm512_storeu_ps(p, v);
}
V16 v16 v16_set1(float x) {
    return _mm512_set1_ps(x);
}
V16 v16 v16_add(v16 a, v16 b) {
    return _mm512_add_ps(a, b);
}
V16 v16 v16_sub(v16 a, v16 b) {
    return _mm512_sub_ps(a, b);
}
V16 v16 v16_mul(v16 a, v16 b) {
    return _mm512_mul_ps(a, b);
}
V16 v16 v16_div(v16 a, v16 b) {
    return _mm512_div_ps(a, b);
}
V16 v16 v16_fma(v16 a, v16 b, v16 c) {
    return _mm512_fmadd_ps(a, b, c);
}
V16 v16m v16_lt(v16 a, v16 b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
V16 v16 v16_select(v16m m, v16 a, v16 b) {
    return _mm512_mask_blend_ps(m, b, a);
}
V16 v16 v16_least(v16 a, v16 b) {
    return _mm512_min_ps(a, b);
}
V16 v16 v16_most(v16 a, v16 b) {
    return _mm512_max_ps(a, b);
}
V16 float v16_sum(v16 v) {
    return v8_sum(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}
V16 float v16_max(v16 v) {
    return v8_max(_mm256_max_ps(_mm512_extractf32x8_ps(v, 1), _mm512_castps512_ps256(v)));
}
#define LANES_SCALE 1
V16 v16 v16_scale(v16 p, v16 n) {
    return _mm512_scalef_ps(p, n);
}
V16 v16i v16_bits(v16 v) {
    return _mm512_castps_si512(v);
}
V16 v16 v16_of(v16i v) {
    return _mm512_castsi512_ps(v);
}
V16 v16i v16i_load(const void *p) {
    return _mm512_loadu_si512(p);
}
V16 v16i v16i_set1(int32_t x) {
    return _mm512_set1_epi32(x);
}
V16 v16i v16i_add(v16i a, v16i b) {
    return _mm512_add_epi32(a, b);
}
V16 v16i v16i_sub(v16i a, v16i b) {
    return _mm512_sub_epi32(a, b);
}
V16 v16i v16i_and(v16i a, v16i b) {
    return _mm512_and_si512(a, b);
}
V16 v16i v16i_or(v16i a, v16i b) {
    return _mm512_or_si512(a, b);
}
V16 v16m v16i_lt(v16i a, v16i b) {
    return _mm512_cmplt_epi32_mask(a, b);
}
V16 v16i v16i_select(v16m m, v16i a, v16i b) {
    return _mm512_mask_blend_epi32(m, b, a);
}
V16 v16i v16i_shl(v16i v, unsigned k) {
    return _mm512_slli_epi32(v, k);
}
V16 v16i v16i_shr(v16i v, unsigned k) {
    return _mm512_srli_epi32(v, k);
}
V16 v16i v16i_sra(v16i v, unsigned k) {
    return _mm512_srai_epi32(v, k);
}
V16 v16 v16_cvt(v16i v) {
    return _mm512_cvtepi32_ps(v);
}

// vpermps uses the low four bits of each index: the table is the format.
V16 v16 v16_e2m1(v16i v, unsigned shift) {
    const v16 code = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f,
                                    -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    return _mm512_permutexvar_ps(v16i_shr(v, shift), code);
}

V16 v16 v16_e8m0(const uint8_t *bytes) {
    v16i s = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    v16m subnormal = _mm512_testn_epi32_mask(s, s); // 2^-127 has no normal exponent
    return v16_of(
        _mm512_mask_mov_epi32(_mm512_slli_epi32(s, 23), subnormal, _mm512_set1_epi32(0x00400000)));
}

V16 v16 v16_f16(const uint16_t *halves) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)halves));
}

V16 void v16_deinterleave(const float *p, v16 *even, v16 *odd) {
    const v16i e = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const v16i o = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    v16 a = v16_load(p), b = v16_load(p + 16);
    *even = _mm512_permutex2var_ps(a, e, b);
    *odd = _mm512_permutex2var_ps(a, o, b);
}

V16 void v16i_store16(uint16_t *p, v16i v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(v));
}

#if defined(__AVX512BF16__)
#define LANES_PAIRS       1
#define LANES_PAIR_PANELS 4 // of a tile of pairs
#define LANES_PAIR_TOKENS 4

// Two columns of products of bf16 numbers: fma of the odd ones, then fma of the even ones.
V16 v16 v16_dot2(v16 sum, v16i a, v16i b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

// vpermw uses the low five bits of each index: the table holds the sixteen codes, as bf16, twice.
V16 v16i v16i_e2m1_pairs(v16i v, unsigned shift) {
    const v16i code = _mm512_setr_epi32(
        0x3f000000, 0x3fc03f80, 0x40404000, 0x40c04080, (int)0xbf008000, (int)0xbfc0bf80,
        (int)0xc040c000, (int)0xc0c0c080, 0x3f000000, 0x3fc03f80, 0x40404000, 0x40c04080,
        (int)0xbf008000, (int)0xbfc0bf80, (int)0xc040c000, (int)0xc0c0c080);
    return _mm512_permutexvar_epi16(_mm512_srli_epi16(v, shift), code);
}

// The minimum of `least` and the sizes of 32 bf16 numbers minus one place, so that zeros become the
// largest.
V16 v16i v16i_least_pairs(v16i least, v16i words) {
    v16i size = _mm512_and_si512(words, _mm512_set1_epi16(0x7fff));
    return _mm512_min_epu16(least, _mm512_sub_epi16(size, _mm512_set1_epi16(1)));
}
#endif
