// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sixteen lanes in two AVX2 registers (AVX2, FMA, F16C). See fast/kernels/lanes.h.
#include "fast/kernels/lanes_x86.h"

// See lanes_avx512.h. A v16 takes two of sixteen registers: the totals of more than three tokens
// are in memory. MXFP4 codes need more registers: from DECODED tokens on they are decoded once for
// all of them.
#define LANES_TILE_PANELS   1
#define LANES_TILE_TOKENS   6
#define LANES_TILE_HELD     3
#define LANES_CODE_TOKENS   5
#define LANES_DECODED       9
#define LANES_STREAMS       2
#define LANES_STREAMS_CODES 2

typedef struct v16 {
    __m256 lo, hi;
} v16;
typedef struct v16i {
    __m256i lo, hi;
} v16i;
typedef v16i v16m; // all ones or zero

V16 v16 v16_load(const float *p) {
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
V16 void v16_store(float *p, v16 v) {
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
}
V16 v16 v16_set1(float x) {
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
V16 v16 v16_add(v16 a, v16 b) {
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
V16 v16 v16_sub(v16 a, v16 b) {
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
V16 v16 v16_mul(v16 a, v16 b) {
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
V16 v16 v16_div(v16 a, v16 b) {
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
V16 v16 v16_fma(v16 a, v16 b, v16 c) {
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
V16 v16i v16_bits(v16 v) {
    return (v16i){_mm256_castps_si256(v.lo), _mm256_castps_si256(v.hi)};
}
V16 v16 v16_of(v16i v) {
    return (v16){_mm256_castsi256_ps(v.lo), _mm256_castsi256_ps(v.hi)};
}
V16 v16m v16_lt(v16 a, v16 b) {
    return v16_bits(
        (v16){_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)});
}
V16 v16i v16i_select(v16m m, v16i a, v16i b) {
    return (v16i){_mm256_blendv_epi8(b.lo, a.lo, m.lo), _mm256_blendv_epi8(b.hi, a.hi, m.hi)};
}
V16 v16 v16_select(v16m m, v16 a, v16 b) {
    return v16_of(v16i_select(m, v16_bits(a), v16_bits(b)));
}
V16 v16 v16_least(v16 a, v16 b) {
    return (v16){_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
V16 v16 v16_most(v16 a, v16 b) {
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
V16 float v16_sum(v16 v) {
    return v8_sum(_mm256_add_ps(v.lo, v.hi));
}
V16 float v16_max(v16 v) {
    return v8_max(_mm256_max_ps(v.hi, v.lo));
}
V16 v16i v16i_load(const void *p) {
    const __m256i *q = p;
    return (v16i){_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
V16 v16i v16i_set1(int32_t x) {
    return (v16i){_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
V16 v16i v16i_add(v16i a, v16i b) {
    return (v16i){_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
V16 v16i v16i_sub(v16i a, v16i b) {
    return (v16i){_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
V16 v16i v16i_and(v16i a, v16i b) {
    return (v16i){_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
V16 v16i v16i_or(v16i a, v16i b) {
    return (v16i){_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
V16 v16m v16i_lt(v16i a, v16i b) {
    return (v16i){_mm256_cmpgt_epi32(b.lo, a.lo), _mm256_cmpgt_epi32(b.hi, a.hi)};
}
V16 v16i v16i_shl(v16i v, unsigned k) {
    return (v16i){_mm256_slli_epi32(v.lo, (int)k), _mm256_slli_epi32(v.hi, (int)k)};
}
V16 v16i v16i_shr(v16i v, unsigned k) {
    return (v16i){_mm256_srli_epi32(v.lo, (int)k), _mm256_srli_epi32(v.hi, (int)k)};
}
V16 v16i v16i_sra(v16i v, unsigned k) {
    return (v16i){_mm256_srai_epi32(v.lo, (int)k), _mm256_srai_epi32(v.hi, (int)k)};
}
V16 v16 v16_cvt(v16i v) {
    return (v16){_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)};
}

// The four bits select the two upper bytes of the number, for the codes of all bytes at once; the
// compiler shares the common work of a word's codes.
V16 __m256 v8_e2m1(__m256i v, unsigned shift) {
    const __m256i third = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 0, -128, -64, 0, 64, -128, -64, 0, 0, -128, -64, 0, 64, -128, -64));
    const __m256i fourth = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 63, 63, 63, 64, 64, 64, 64, -128, -65, -65, -65, -64, -64, -64, -64));
    const __m256i upper = _mm256_set1_epi16((short)0xff00);
    __m256i code = _mm256_and_si256(_mm256_srli_epi32(v, shift % 8), _mm256_set1_epi32(0x0f0f0f0f));
    __m256i h = _mm256_shuffle_epi8(fourth, code), l = _mm256_shuffle_epi8(third, code);
    __m256i halves = shift / 8 % 2 != 0 ? _mm256_blendv_epi8(_mm256_srli_epi16(l, 8), h, upper)
                                        : _mm256_blendv_epi8(l, _mm256_slli_epi16(h, 8), upper);
    return _mm256_castsi256_ps(shift / 16 != 0
                                   ? _mm256_and_si256(halves, _mm256_set1_epi32((int)0xffff0000u))
                                   : _mm256_slli_epi32(halves, 16));
}
V16 v16 v16_e2m1(v16i v, unsigned shift) {
    return (v16){v8_e2m1(v.lo, shift), v8_e2m1(v.hi, shift)};
}

V16 __m256 v8_e8m0(const uint8_t *bytes) {
    __m256i s = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes));
    __m256i zero = _mm256_cmpeq_epi32(s, _mm256_setzero_si256()); // 2^-127 has no normal exponent
    __m256i half = _mm256_and_si256(zero, _mm256_set1_epi32(0x00400000));
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_slli_epi32(s, 23), half));
}
V16 v16 v16_e8m0(const uint8_t *bytes) {
    return (v16){v8_e8m0(bytes), v8_e8m0(bytes + 8)};
}

V16 v16 v16_f16(const uint16_t *halves) {
    const __m128i *q = (const __m128i *)halves;
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128(q)), _mm256_cvtph_ps(_mm_loadu_si128(q + 1))};
}

// Splits sixteen floats into the eight even and the eight odd ones.
V16 void v8_deinterleave(const float *p, __m256 *even, __m256 *odd) {
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    __m256 a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(p + 8);
    *even = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(a, b, 0x88), order);
    *odd = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(a, b, 0xdd), order);
}
V16 void v16_deinterleave(const float *p, v16 *even, v16 *odd) {
    v8_deinterleave(p, &even->lo, &odd->lo);
    v8_deinterleave(p + 16, &even->hi, &odd->hi);
}

V16 void v16i_store16(uint16_t *p, v16i v) {
    const __m256i low = _mm256_set1_epi32(0xffff);
    __m256i packed = _mm256_packus_epi32(_mm256_and_si256(v.lo, low), _mm256_and_si256(v.hi, low));
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(packed, 0xd8));
}
