// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The one-pass attention, on every instruction set: the bits of the lane arithmetic told in scalar
// code (tests/shared/attention_shapes.h).
#include "tests/shared/attention_shapes.h"

// Scores [group, n, keys] that are wrong, or not where they are visible, or anywhere else.
static size_t wrong_scores(const shape *s, const float *score, const double *expected_hij) {
    size_t keys = s->first + s->n, bad = 0;
    for (size_t at = 0; at < s->group * s->n * keys; at++) {
        size_t i = at / keys % s->n, j = at % keys;
        bool visible = j <= s->first + i && (s->window == 0 || j + s->window > s->first + i);
        bad +=
            visible ? !same(score[at], (float)expected_hij[at]) : bits_of(score[at]) != guard_bits;
    }
    return bad + !guards_hold(score, s->group * s->n * keys);
}

// The scores (A6) of one case on every set.
static void run_scores(asked_sets *sets, const shape *s) {
    float sink_h[8];
    cached c = fill(s);
    sinkproof_policy policy;
    sinkproof_policy_known("f32", &policy);
    size_t keys = s->first + s->n, each = s->n * keys;
    float *score = guarded(s->group * each);
    double *expected_hij = calloc(s->group * each, sizeof *expected_hij);
    sinkproof_attention a = attention_of(s, &c, sink_h);
    a.score = score;
    a.score_head = each;
    a.score_row = keys;
    for (size_t h = 0; h < s->group; h++) {
        sinkproof_block block = {
            s->n, keys, s->first, s->window, s->head_dim, s->group * s->head_dim, s->head_dim};
        lanes_scores(&policy, &block, c.q_id + h * s->head_dim, c.k_jd, expected_hij + h * each);
    }
    for (size_t k = 0; k < sets->n; k++) {
        paint(score, s->group * each);
        sets->of[k]->attend(&a, scratch);
        sets->wrong[k] += wrong_scores(s, score, expected_hij);
    }
    free_guarded(score);
    free(expected_hij);
    empty(&c);
}

static void shown(asked_sets *sets, sinkproof_panel_format format) {
    shape s = {.head_dim = 64, .group = 8, .first = 300, .n = 5, .window = 40, .format = format};
    run_scores(sets, &s);
    tell_shapes(sets, format, "scores shown at visible keys", 1);
}

// What products of pairs, taken for many rows, would flush or round: subnormal keys, subnormal
// queries, products and sums that are subnormal, and queries that are no bf16.
static void small(asked_sets *sets) {
    static const float scale[][2] = {{0x1p-128f, 0x1p100f}, {0x1p100f, 0x1p-128f},
                                     {0x1p-61f, 0x1p-61f},  {0x1p-50f, 0x1p-56f},
                                     {0x1p-10f, 0x1p-10f},  {0x1p-70f, 0x1p-70f}};
    size_t cases = 0;
    for (size_t i = 0; i < sizeof scale / sizeof *scale; i++)
        for (size_t n = 1; n <= 17; n += 16, cases++) {
            shape s = {.head_dim = 64,
                       .group = 8,
                       .first = 300,
                       .n = n,
                       .format = SINKPROOF_PANEL_BF16,
                       .k_scale = scale[i][0],
                       .q_scale = scale[i][1]};
            run_scores(sets, &s);
        }
    for (size_t tiny = 240; tiny < 317; tiny += or_few(4, 40), cases++) { // in each block of a ring
        shape s = {.head_dim = 64,
                   .group = 8,
                   .first = 300,
                   .n = 17,
                   .window = 64,
                   .ring = 4,
                   .format = SINKPROOF_PANEL_BF16,
                   .q_scale = 0x1p100f,
                   .tiny = tiny};
        run_scores(sets, &s);
    }
    tell_sets(sets, "small keys, queries and products", cases);
    shape s = {.head_dim = 64,
               .group = 8,
               .first = 300,
               .n = 17,
               .format = SINKPROOF_PANEL_BF16,
               .any_q = true};
    run_scores(sets, &s);
    tell_sets(sets, "bf16 keys, float32 queries", 1);
}

int main(void) {
    asked_sets sets = sets_here();
    random_state = 11;
    for (int f = SINKPROOF_PANEL_F32; f <= SINKPROOF_PANEL_BF16; f++) {
        positions(&sets, (sinkproof_panel_format)f);
        windows(&sets, (sinkproof_panel_format)f);
        widths(&sets, (sinkproof_panel_format)f);
        shown(&sets, (sinkproof_panel_format)f);
    }
    small(&sets);
    return tap_done();
}
