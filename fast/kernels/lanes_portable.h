// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sixteen lanes in plain C, for any machine: the definition of each name of fast/kernels/lanes.h.
// fmaf is exact by the C standard; without an FMA instruction the library computes it from
// integers, slowly.
#include <math.h>

#define LANES_TILE_PANELS   1 // see lanes_avx512.h
#define LANES_TILE_TOKENS   1
#define LANES_TILE_HELD     1
#define LANES_CODE_TOKENS   1
#define LANES_STREAMS       1
#define LANES_STREAMS_CODES 1

typedef struct v16 {
    float lane[16];
} v16;
typedef struct v16i {
    uint32_t lane[16];
} v16i;
typedef struct v16m {
    uint32_t lane[16]; // all ones or zero
} v16m;

#define EACH(l) for (int l = 0; l < 16; l++)

V16 v16 v16_load(const float *p) {
    v16 v;
    memcpy(&v, p, sizeof v);
    return v;
}
V16 void v16_store(float *p, v16 v) {
    memcpy(p, &v, sizeof v);
}
V16 v16 v16_set1(float x) {
    v16 v;
    EACH(l) v.lane[l] = x;
    return v;
}
V16 v16 v16_add(v16 a, v16 b) {
    EACH(l) a.lane[l] += b.lane[l];
    return a;
}
V16 v16 v16_sub(v16 a, v16 b) {
    EACH(l) a.lane[l] -= b.lane[l];
    return a;
}
V16 v16 v16_mul(v16 a, v16 b) {
    EACH(l) a.lane[l] *= b.lane[l];
    return a;
}
V16 v16 v16_div(v16 a, v16 b) {
    EACH(l) a.lane[l] /= b.lane[l];
    return a;
}
V16 v16 v16_fma(v16 a, v16 b, v16 c) {
    EACH(l) c.lane[l] = fmaf(a.lane[l], b.lane[l], c.lane[l]);
    return c;
}
V16 v16m v16_lt(v16 a, v16 b) {
    v16m m;
    EACH(l) m.lane[l] = a.lane[l] < b.lane[l] ? UINT32_MAX : 0;
    return m;
}
V16 v16 v16_select(v16m m, v16 a, v16 b) {
    EACH(l) b.lane[l] = m.lane[l] != 0 ? a.lane[l] : b.lane[l];
    return b;
}
V16 v16 v16_least(v16 a, v16 b) {
    return v16_select(v16_lt(a, b), a, b);
}
V16 v16 v16_most(v16 a, v16 b) {
    return v16_select(v16_lt(b, a), a, b);
}
V16 float v16_sum(v16 v) {
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++) v.lane[l] += v.lane[l + half];
    return v.lane[0];
}
V16 float v16_max(v16 v) {
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            v.lane[l] = v.lane[l] < v.lane[l + half] ? v.lane[l + half] : v.lane[l];
    return v.lane[0];
}
V16 v16i v16_bits(v16 v) {
    v16i w;
    memcpy(&w, &v, sizeof w);
    return w;
}
V16 v16 v16_of(v16i v) {
    v16 w;
    memcpy(&w, &v, sizeof w);
    return w;
}
V16 v16i v16i_load(const void *p) {
    v16i v;
    memcpy(&v, p, sizeof v);
    return v;
}
V16 v16i v16i_set1(int32_t x) {
    v16i v;
    EACH(l) v.lane[l] = (uint32_t)x;
    return v;
}
V16 v16i v16i_add(v16i a, v16i b) {
    EACH(l) a.lane[l] += b.lane[l];
    return a;
}
V16 v16i v16i_sub(v16i a, v16i b) {
    EACH(l) a.lane[l] -= b.lane[l];
    return a;
}
V16 v16i v16i_and(v16i a, v16i b) {
    EACH(l) a.lane[l] &= b.lane[l];
    return a;
}
V16 v16i v16i_or(v16i a, v16i b) {
    EACH(l) a.lane[l] |= b.lane[l];
    return a;
}
V16 v16m v16i_lt(v16i a, v16i b) {
    v16m m;
    EACH(l) m.lane[l] = (int32_t)a.lane[l] < (int32_t)b.lane[l] ? UINT32_MAX : 0;
    return m;
}
V16 v16i v16i_select(v16m m, v16i a, v16i b) {
    EACH(l) b.lane[l] = m.lane[l] != 0 ? a.lane[l] : b.lane[l];
    return b;
}
V16 v16i v16i_shl(v16i v, unsigned k) {
    EACH(l) v.lane[l] <<= k;
    return v;
}
V16 v16i v16i_shr(v16i v, unsigned k) {
    EACH(l) v.lane[l] >>= k;
    return v;
}
V16 v16i v16i_sra(v16i v, unsigned k) {
    EACH(l) v.lane[l] = (v.lane[l] >> k) | (v.lane[l] >> 31 != 0 ? ~(UINT32_MAX >> k) : 0);
    return v;
}
V16 v16 v16_cvt(v16i v) {
    v16 w;
    EACH(l) w.lane[l] = (float)(int32_t)v.lane[l];
    return w;
}

V16 v16 v16_e2m1(v16i v, unsigned shift) {
    static const float code[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    v16 w;
    EACH(l) w.lane[l] = code[v.lane[l] >> shift & 15];
    return w;
}

V16 v16 v16_e8m0(const uint8_t *bytes) {
    v16i w;
    EACH(l) w.lane[l] = bytes[l] == 0 ? 0x00400000u : (uint32_t)bytes[l] << 23;
    return v16_of(w);
}

V16 v16 v16_f16(const uint16_t *halves) {
    v16 w;
    EACH(l) {
        unsigned h = halves[l], exponent = h >> 10 & 31, fraction = h & 1023;
        float size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                     : exponent == 0 ? ldexpf((float)fraction, -24)
                                     : ldexpf((float)(1024 + fraction), (int)exponent - 25);
        w.lane[l] = h >> 15 != 0 ? -size : size;
    }
    return w;
}

V16 void v16_deinterleave(const float *p, v16 *even, v16 *odd) {
    EACH(l) {
        even->lane[l] = p[2 * l];
        odd->lane[l] = p[2 * l + 1];
    }
}

V16 void v16i_store16(uint16_t *p, v16i v) {
    EACH(l) p[l] = (uint16_t)v.lane[l];
}

#undef EACH
