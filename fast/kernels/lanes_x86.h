// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the lanes of AVX2 and of AVX-512: folding eight lanes, halves first. MAXPS a, b is b <
// a ? a : b.
#ifndef SINKPROOF_LANES_X86_H
#define SINKPROOF_LANES_X86_H

#include <immintrin.h>

V16 float v8_sum(__m256 v) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

V16 float v8_max(__m256 v) {
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(v, 1), _mm256_castps256_ps128(v));
    __m128 two = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(two), two));
}

#endif
