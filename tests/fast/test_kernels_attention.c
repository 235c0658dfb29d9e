// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The one-pass attention, on every instruction set: the bits of the lane arithmetic told in scalar
// code (tests/shared/attention_shapes.h).
#include "tests/shared/attention_shapes.h"

// Scores (A6) that are wrong, or not where they are visible, or anywhere else.
static size_t wrong_scores(const sinkproof_kernels *kernels, const shape *s) {
    float sink_h[8];
    cached c = fill(s);
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    size_t keys = s->first + s->n, bad = 0;
    float *score = guarded(s->group * s->n * keys);
    double *s_ij = calloc(s->n * keys, sizeof *s_ij);
    sinkproof_attention a = attention_of(s, &c, sink_h);
    a.score = score;
    a.score_head = s->n * keys;
    a.score_row = keys;
    kernels->attend(&a, scratch);
    for (size_t h = 0; h < s->group; h++) {
        sinkproof_block block = {
            s->n, keys, s->first, s->window, s->head_dim, s->group * s->head_dim, s->head_dim};
        lanes_scores(&policy, &block, c.q_id + h * s->head_dim, c.k_jd, s_ij);
        for (size_t i = 0; i < s->n; i++)
            for (size_t j = 0; j < keys; j++) {
                float got = score[(h * s->n + i) * keys + j];
                bool visible =
                    j <= s->first + i && (s->window == 0 || j + s->window > s->first + i);
                bad += visible ? !same(got, (float)s_ij[i * keys + j]) : bits_of(got) != guard_bits;
            }
    }
    bad += !guards_hold(score, s->group * s->n * keys);
    free_guarded(score);
    free(s_ij);
    empty(&c);
    return bad;
}

static void shown(const sinkproof_kernels *kernels, sinkproof_panel_format format) {
    shape s = {.head_dim = 64, .group = 8, .first = 300, .n = 5, .window = 40, .format = format};
    ok(wrong_scores(kernels, &s) == 0, "lanes.attention %s %s: scores shown at visible keys",
       kernels->isa, format == SINKPROOF_PANEL_F32 ? "f32" : "bf16");
}

// What products of pairs, taken for many rows, would flush or round: subnormal keys, subnormal
// queries, products and sums that are subnormal, and queries that are no bf16.
static void small(const sinkproof_kernels *kernels) {
    static const float scale[][2] = {{0x1p-128f, 0x1p100f}, {0x1p100f, 0x1p-128f},
                                     {0x1p-61f, 0x1p-61f},  {0x1p-50f, 0x1p-56f},
                                     {0x1p-10f, 0x1p-10f},  {0x1p-70f, 0x1p-70f}};
    size_t bad = 0;
    for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
        for (size_t n = 1; n <= 17; n += 16) {
            shape s = {.head_dim = 64,
                       .group = 8,
                       .first = 300,
                       .n = n,
                       .format = SINKPROOF_PANEL_BF16,
                       .k_scale = scale[i][0],
                       .q_scale = scale[i][1]};
            bad += wrong_scores(kernels, &s);
        }
    for (size_t tiny = 240; tiny < 317; tiny += or_few(4, 40)) { // in each block of a ring
        shape s = {.head_dim = 64,
                   .group = 8,
                   .first = 300,
                   .n = 17,
                   .window = 64,
                   .ring = 4,
                   .format = SINKPROOF_PANEL_BF16,
                   .q_scale = 0x1p100f,
                   .tiny = tiny};
        bad += wrong_scores(kernels, &s);
    }
    ok(bad == 0, "lanes.attention %s: small keys, queries and products", kernels->isa);
    shape s = {.head_dim = 64,
               .group = 8,
               .first = 300,
               .n = 17,
               .format = SINKPROOF_PANEL_BF16,
               .any_q = true};
    ok(wrong_scores(kernels, &s) == 0, "lanes.attention %s: bf16 keys, float32 queries",
       kernels->isa);
}

static void test(const sinkproof_kernels *kernels) {
    random_state = 11;
    for (int f = SINKPROOF_PANEL_F32; f <= SINKPROOF_PANEL_BF16; f++) {
        positions(kernels, (sinkproof_panel_format)f);
        windows(kernels, (sinkproof_panel_format)f);
        widths(kernels, (sinkproof_panel_format)f);
        shown(kernels, (sinkproof_panel_format)f);
    }
    small(kernels);
}

int main(void) {
    on_every_set(test);
    return tap_done();
}
