// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention in the numeric mode "amx": a weight in three parts, the order in scalar code, and the
// tiles against it, bit by bit. On the processor's tiles, or under amx_trap.h on any other with
// AVX-512.
#include "fast/lanes/amx.h"
#include "tests/shared/amx_trap.h"
#include "tests/shared/attention_shapes.h"

// ---- the scalar order on its own -----------------------------------------------------------

static bool is_bf16(float x) {
    return (bits_of(x) & 0xffff) == 0;
}

// Of every significand at the smallest exponent, and of every thirteenth at the largest and one
// between, where the same digits are cut: 2^96 p, since that is what is cut.
static void parts_of_a_weight(void) {
    static const int exponent[] = {-126, -40, 0};
    size_t bad = 0, cases = 0;
    for (size_t e = 0; e < sizeof exponent / sizeof *exponent; e++)
        for (uint32_t low = 0; low < 1u << 23; low += e == 0 ? 1 : 13, cases++) {
            float p = ldexpf(1 + (float)low * 0x1p-23f, exponent[e] + 96), part[3];
            amx_split_weight(p, part);
            double sum = (double)part[0] + (double)part[1] + (double)part[2];
            bool fits = is_bf16(part[0]) && is_bf16(part[1]) && is_bf16(part[2]);
            bool ordered = part[0] >= part[1] && part[1] >= part[2] && part[2] >= 0;
            bad += !(sum == (double)p && fits && ordered);
        }
    for (uint32_t bits = 0; bits < 1u << 23; bits += 7, cases++) { // subnormal weights
        float p, part[3];
        memcpy(&p, &bits, sizeof p);
        amx_split_weight(p * 0x1p96f, part);
        bad += (double)part[0] + (double)part[1] + (double)part[2] != (double)p * 0x1p96;
    }
    ok(bad == 0,
       "a weight is the sum of its three parts, none of them negative: %zu of %zu are not", bad,
       cases);
}

// The sum of a span once more: terms and order written out, with 24-bit weights.
static float weighted_again(size_t n, const float *v_j, const float *p_j) {
    double total = 0; // float32 numbers times 2^96
    for (size_t first = 0; first < n; first += 32)
        for (int shift = 16; shift >= 0; shift -= 8) {
            double side[2] = {0, 0};
            for (size_t j = first; j < first + 32; j++) {
                int exponent;
                double bits = frexp((double)p_j[j], &exponent) * 0x1p24;
                // The eight bits of the part begin at the first that is set among what is left.
                uint32_t left = (uint32_t)bits, part = 0;
                for (int s = 16; s >= shift && left != 0; s -= 8) {
                    int top = 31 - __builtin_clz(left);
                    part = top < 8 ? left : left >> (top - 7) << (top - 7);
                    left -= part;
                    if (s > shift && left == 0) part = 0;
                }
                double term = ldexp((double)part, exponent - 24 + 96) * (double)v_j[j];
                side[j % 2] = (double)(float)(side[j % 2] + term);
            }
            total = (double)(float)(total + (double)(float)(side[0] + side[1]));
        }
    return (float)(total * 0x1p-96);
}

static void the_order(void) {
    enum { N = 256 };
    float p[N], v[N];
    size_t bad = 0, lanes = 0;
    random_state = 5;
    for (int round = 0; round < 200; round++) {
        size_t n = 32 * (1 + random_word() % 8);
        for (size_t j = 0; j < n; j++) p[j] = fabsf(random_float()), v[j] = bf16_of(random_float());
        float found = amx_weighted_sum(n, v, p);
        bad += !same(found, weighted_again(n, v, p));
        lanes += !same(found, lanes_dot(n, v, NULL, p));
    }
    ok(bad == 0 && lanes > 0,
       "values are summed block by block, part by part: %zu of 200 are not (the lanes' order "
       "differs in %zu)",
       bad, lanes);
}

static void the_condition(void) {
    const double in = 0x1p-58, most = 0x1p19;
    ok(amx_can_attend(0x1p-60, 0x1p-51, in, most) && !amx_can_attend(0x1p-60, 0x1p-52, in, most) &&
           !amx_can_attend(1, 1, 0x1.fcp-59, 1) && !amx_can_attend(1, 1, 1, 0x1p20) &&
           amx_can_attend(INFINITY, 1, INFINITY, 0),
       "tiles serve products of at least 2^-111 and values from 2^-58 to 2^20");
}

#if defined(__x86_64__)

// ---- the kernel ----------------------------------------------------------------------------

static const sinkproof_kernels *tiles = &kernels_amx;

static size_t run_tiles(const shape *s) {
    asked_sets only = {.of = {tiles}, .n = 1};
    run_one(&only, s);
    return only.wrong[0];
}

static const shape usual = {
    .head_dim = 64, .group = 8, .first = 300, .n = 17, .format = SINKPROOF_PANEL_BF16};

// The bits are not the lanes': the tiles did run.
static void another_mode(void) {
    shape s = usual;
    scalar = lanes_attention;
    size_t other = run_tiles(&s);
    scalar = amx_attention;
    ok(other > 0, "the mode amx is not the lanes': %zu outputs differ", other);
}

// What tiles do not serve: products of queries and keys that are too small, values that are too
// small or too large, queries that are no bf16 numbers; of all keys, or of one that some of the
// queries see.
static void not_served(void) {
    static const float k_q_v[][3] = {{0x1p-128f, 0x1p100f, 1}, {0x1p-50f, 0x1p-56f, 1},
                                     {0x1p-70f, 0x1p-70f, 1},  {1, 1, 0x1p-59f},
                                     {1, 1, 0x1p-56f},         {1, 1, 0x1p-126f},
                                     {1, 1, 0x1p18f},          {1, 1, 0x1p20f}};
    size_t bad = 0, cases = 0;
    for (size_t i = 0; i < sizeof k_q_v / sizeof *k_q_v; i++)
        for (size_t n = 1; n <= 17; n += 16, cases++) {
            shape s = usual;
            s.n = n, s.k_scale = k_q_v[i][0], s.q_scale = k_q_v[i][1], s.v_scale = k_q_v[i][2];
            bad += run_tiles(&s);
        }
    for (size_t at = 230; at < 317; at += 3, cases++) { // seen by all, by some, by none
        shape s = usual;
        s.window = 64, s.ring = 4;
        *(at % 2 == 0 ? &s.tiny : &s.odd) = at;
        s.q_scale = at % 2 == 0 ? 0x1p100f : 1;
        s.odd_v = at % 3 == 0 ? 0x1p30f : 0x1p-70f;
        bad += run_tiles(&s);
    }
    shape s = usual;
    s.any_q = true;
    bad += run_tiles(&s);
    ok(bad == 0, "lanes.attention amx: what tiles do not serve, %zu cases", cases + 1);
}

// Scores (A6) where they are visible, and nothing elsewhere.
static void scores(void) {
    shape s = usual;
    s.window = 40;
    float sink_h[8];
    cached c = fill(&s);
    size_t keys = s.first + s.n, d = s.head_dim, bad = 0;
    float *score = guarded(s.group * s.n * keys), k[64], q[64];
    sinkproof_attention a = attention_of(&s, &c, sink_h);
    a.score = score, a.score_head = s.n * keys, a.score_row = keys;
    tiles->attend(&a, scratch);
    for (size_t h = 0; h < s.group; h++)
        for (size_t i = 0; i < s.n; i++)
            for (size_t j = 0; j < keys; j++) {
                for (size_t x = 0; x < d; x++) {
                    k[x] = (float)c.k_jd[j * d + x];
                    q[x] = (float)c.q_id[(i * s.group + h) * d + x];
                }
                float got = score[(h * s.n + i) * keys + j];
                bool visible = j <= s.first + i && j + s.window > s.first + i;
                bad +=
                    visible ? !same(got, amx_dot(d, k, q) * a.scale) : bits_of(got) != guard_bits;
            }
    bad += !guards_hold(score, s.group * s.n * keys);
    ok(bad == 0, "lanes.attention amx: scores shown at visible keys");
    free_guarded(score);
    empty(&c);
}

static void kernels(bool native) {
    scalar = amx_attention;
    another_mode();
    asked_sets only = {.of = {tiles}, .n = 1};
    positions(&only, SINKPROOF_PANEL_BF16);
    windows(&only, SINKPROOF_PANEL_BF16);
    widths(&only, SINKPROOF_PANEL_BF16);
    not_served();
    scores();
    scalar = lanes_attention; // a float32 cache is the lanes'
    shape s = usual;
    s.format = SINKPROOF_PANEL_F32;
    ok(run_tiles(&s) == 0, "lanes.attention amx: a float32 cache is the lanes'");
    if (!native)
        ok(amx_trap_fault == NULL && amx_trap_count[AMX_TDPBF16PS] > 0,
           "%lu products of tiles; a fault: %s", amx_trap_count[AMX_TDPBF16PS],
           amx_trap_fault == NULL ? "none" : amx_trap_fault);
}

#endif

int main(void) {
    parts_of_a_weight();
    the_order();
    the_condition();
#if defined(__x86_64__)
    const char *why = NULL;
    bool native = sinkproof_isa_runs(&kernels_amx, &why);
    if (!native && !sinkproof_isa_runs(&kernels_avx512, NULL)) {
        note("only the scalar order: the kernels need AVX-512");
        return tap_done();
    }
    if (!native) {
        note("tiles in software: %s", why);
        amx_trap_install();
    }
    tap_ran_on("amx", native);
    kernels(native);
#else
    note("only the scalar order: the tiles are x86-64's");
#endif
    return tap_done();
}
