// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sixteen lanes in four NEON registers (aarch64's baseline). See fast/kernels/lanes.h.
#include <arm_neon.h>

#define LANES_TILE_PANELS   1 // see lanes_avx512.h; thirty-two registers, four of them to a v16
#define LANES_TILE_TOKENS   3
#define LANES_TILE_HELD     3
#define LANES_CODE_TOKENS   3
#define LANES_STREAMS       2
#define LANES_STREAMS_CODES 2

typedef struct v16 {
    float32x4_t q[4];
} v16;
typedef struct v16i {
    int32x4_t q[4];
} v16i;
typedef struct v16m {
    uint32x4_t q[4]; // all ones or zero
} v16m;

#define EACH(i) for (int i = 0; i < 4; i++)

V16 v16 v16_load(const float *p) {
    return (v16){{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}
V16 void v16_store(float *p, v16 v) {
    EACH(i) vst1q_f32(p + 4 * i, v.q[i]);
}
V16 v16 v16_set1(float x) {
    float32x4_t v = vdupq_n_f32(x);
    return (v16){{v, v, v, v}};
}
V16 v16 v16_add(v16 a, v16 b) {
    EACH(i) a.q[i] = vaddq_f32(a.q[i], b.q[i]);
    return a;
}
V16 v16 v16_sub(v16 a, v16 b) {
    EACH(i) a.q[i] = vsubq_f32(a.q[i], b.q[i]);
    return a;
}
V16 v16 v16_mul(v16 a, v16 b) {
    EACH(i) a.q[i] = vmulq_f32(a.q[i], b.q[i]);
    return a;
}
V16 v16 v16_div(v16 a, v16 b) {
    EACH(i) a.q[i] = vdivq_f32(a.q[i], b.q[i]);
    return a;
}
V16 v16 v16_fma(v16 a, v16 b, v16 c) {
    EACH(i) c.q[i] = vfmaq_f32(c.q[i], a.q[i], b.q[i]);
    return c;
}
V16 v16m v16_lt(v16 a, v16 b) {
    v16m m;
    EACH(i) m.q[i] = vcltq_f32(a.q[i], b.q[i]);
    return m;
}
V16 v16 v16_select(v16m m, v16 a, v16 b) {
    EACH(i) b.q[i] = vbslq_f32(m.q[i], a.q[i], b.q[i]);
    return b;
}
V16 float32x4_t v4_most(float32x4_t a, float32x4_t b) { // FMAX would give NaN
    return vbslq_f32(vcltq_f32(b, a), a, b);
}
V16 v16 v16_least(v16 a, v16 b) {
    return v16_select(v16_lt(a, b), a, b);
}
V16 v16 v16_most(v16 a, v16 b) {
    EACH(i) b.q[i] = v4_most(a.q[i], b.q[i]);
    return b;
}
V16 float v16_sum(v16 v) {
    float32x4_t four = vaddq_f32(vaddq_f32(v.q[0], v.q[2]), vaddq_f32(v.q[1], v.q[3]));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
V16 float v16_max(v16 v) {
    float32x4_t four = v4_most(v4_most(v.q[3], v.q[1]), v4_most(v.q[2], v.q[0]));
    float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
    float32x2_t two = vbsl_f32(vclt_f32(low, high), high, low);
    float first = vget_lane_f32(two, 0), second = vget_lane_f32(two, 1);
    return first < second ? second : first;
}
V16 v16i v16_bits(v16 v) {
    v16i w;
    EACH(i) w.q[i] = vreinterpretq_s32_f32(v.q[i]);
    return w;
}
V16 v16 v16_of(v16i v) {
    v16 w;
    EACH(i) w.q[i] = vreinterpretq_f32_s32(v.q[i]);
    return w;
}
V16 v16i v16i_load(const void *p) {
    const uint8_t *bytes = p;
    v16i v;
    EACH(i) v.q[i] = vreinterpretq_s32_u8(vld1q_u8(bytes + 16 * i));
    return v;
}
V16 v16i v16i_set1(int32_t x) {
    int32x4_t v = vdupq_n_s32(x);
    return (v16i){{v, v, v, v}};
}
V16 v16i v16i_add(v16i a, v16i b) {
    EACH(i) a.q[i] = vaddq_s32(a.q[i], b.q[i]);
    return a;
}
V16 v16i v16i_sub(v16i a, v16i b) {
    EACH(i) a.q[i] = vsubq_s32(a.q[i], b.q[i]);
    return a;
}
V16 v16i v16i_and(v16i a, v16i b) {
    EACH(i) a.q[i] = vandq_s32(a.q[i], b.q[i]);
    return a;
}
V16 v16i v16i_or(v16i a, v16i b) {
    EACH(i) a.q[i] = vorrq_s32(a.q[i], b.q[i]);
    return a;
}
V16 v16m v16i_lt(v16i a, v16i b) {
    v16m m;
    EACH(i) m.q[i] = vcltq_s32(a.q[i], b.q[i]);
    return m;
}
V16 v16i v16i_select(v16m m, v16i a, v16i b) {
    EACH(i) b.q[i] = vbslq_s32(m.q[i], a.q[i], b.q[i]);
    return b;
}
V16 v16i v16i_shl(v16i v, unsigned k) {
    EACH(i) v.q[i] = vshlq_s32(v.q[i], vdupq_n_s32((int32_t)k));
    return v;
}
V16 v16i v16i_shr(v16i v, unsigned k) {
    EACH(i)
    v.q[i] =
        vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(v.q[i]), vdupq_n_s32(-(int32_t)k)));
    return v;
}
V16 v16i v16i_sra(v16i v, unsigned k) {
    EACH(i) v.q[i] = vshlq_s32(v.q[i], vdupq_n_s32(-(int32_t)k));
    return v;
}
V16 v16 v16_cvt(v16i v) {
    v16 w;
    EACH(i) w.q[i] = vcvtq_f32_s32(v.q[i]);
    return w;
}

// The upper two bytes of each value come from two tables of bytes; an index beyond a table gives 0.
V16 v16 v16_e2m1(v16i v, unsigned shift) {
    static const uint8_t third[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0,
                                      0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0};
    static const uint8_t fourth[16] = {0x00, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                       0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
    uint8x16_t t3 = vld1q_u8(third), t4 = vld1q_u8(fourth);
    v16 w;
    v = v16i_shr(v, shift);
    EACH(i) {
        uint32x4_t code = vandq_u32(vreinterpretq_u32_s32(v.q[i]), vdupq_n_u32(15));
        uint32x4_t i3 = vorrq_u32(vshlq_n_u32(code, 16), vdupq_n_u32(0xff00ffffu));
        uint32x4_t i4 = vorrq_u32(vshlq_n_u32(code, 24), vdupq_n_u32(0x00ffffffu));
        uint8x16_t bytes = vorrq_u8(vqtbl1q_u8(t3, vreinterpretq_u8_u32(i3)),
                                    vqtbl1q_u8(t4, vreinterpretq_u8_u32(i4)));
        w.q[i] = vreinterpretq_f32_u8(bytes);
    }
    return w;
}

V16 v16 v16_e8m0(const uint8_t *bytes) {
    uint8x16_t s = vld1q_u8(bytes);
    uint16x8_t lo = vmovl_u8(vget_low_u8(s)), hi = vmovl_u8(vget_high_u8(s));
    uint32x4_t word[4] = {vmovl_u16(vget_low_u16(lo)), vmovl_u16(vget_high_u16(lo)),
                          vmovl_u16(vget_low_u16(hi)), vmovl_u16(vget_high_u16(hi))};
    v16 w;
    EACH(i) { // 2^-127 has no normal exponent
        uint32x4_t half = vandq_u32(vceqzq_u32(word[i]), vdupq_n_u32(0x00400000u));
        w.q[i] = vreinterpretq_f32_u32(vorrq_u32(vshlq_n_u32(word[i], 23), half));
    }
    return w;
}

V16 v16 v16_f16(const uint16_t *halves) {
    v16 w;
    EACH(i) w.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves + 4 * i)));
    return w;
}

V16 void v16_deinterleave(const float *p, v16 *even, v16 *odd) {
    EACH(i) {
        float32x4x2_t pair = vld2q_f32(p + 8 * i);
        even->q[i] = pair.val[0];
        odd->q[i] = pair.val[1];
    }
}

V16 void v16i_store16(uint16_t *p, v16i v) {
    EACH(i) vst1_u16(p + 4 * i, vmovn_u32(vreinterpretq_u32_s32(v.q[i])));
}

#undef EACH
