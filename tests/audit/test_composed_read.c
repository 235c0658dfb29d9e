// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys and values that attention reads otherwise, planted in one layer of complete engines: those
// of other tokens and heads, transposed in squares, clamped, multiplied, of another layer, rotated
// by other positions, and those that the trace has none of. What looks like them is not called so.
#include "ref/stages.h"
#include "tests/shared/attended.h"

enum { MOST = 4096 };
static double kept[MOST];

static void copy(const double *x, size_t all) {
    must(all <= MOST);
    memcpy(kept, x, all * sizeof *kept);
}

static void second_half_stale(const shown *s, double by, double *x, size_t width) {
    size_t tile = (size_t)by, half = tile / 2;
    for (size_t j = 0; j < s->n; j++)
        if (j % tile >= half) memcpy(x + j * width, x + (j - half) * width, width * sizeof *x);
}
static void half_of_next_head(const shown *s, double by, double *x, size_t width) {
    size_t d = s->c->head_dim;
    (void)by;
    copy(x, s->n * width);
    for (size_t at = 0; at < s->n * width; at++)
        if (at % d >= d / 2) x[at] = kept[at - at % width + (at % width + d) % width];
}
static void squares(const shown *s, double by, double *x, size_t width) {
    size_t side = (size_t)by, d = s->c->head_dim;
    copy(x, s->n * width);
    for (size_t j = 0; j < s->n / side * side; j++)
        for (size_t at = 0; at < width; at++) {
            size_t c = at % d, row = j / side * side + c % side;
            x[j * width + at] = kept[row * width + at - c + c / side * side + j % side];
        }
}
static void ahead(const shown *s, double by, double *x, size_t width) {
    copy(x, s->n * width);
    for (size_t j = 0; j < s->n; j++) {
        size_t from = j + j / (size_t)by;
        memcpy(x + j * width, kept + (from < s->n ? from : s->n - 1) * width, width * sizeof *x);
    }
}
static void clamps(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < s->n * width; at++) x[at] = fmax(-by, fmin(by, x[at]));
}
static void token_scales(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < s->n * width; at++) x[at] *= 1 + by * (double)(at / width * 5 % 7);
}
static void one_factor(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < s->n * width; at++) x[at] = rounded(s, x[at] * by);
}
static void head_factors(const shown *s, double by, double *x, size_t width) {
    size_t d = s->c->head_dim;
    for (size_t at = 0; at < s->n * width; at++) x[at] *= at % width / d == 1 ? by : 1;
}
static void foreign(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < (size_t)by * width && at < s->n * width; at++)
        x[at] = (double)(at * 37 % 101) / 25 - 2;
}
// Key p as if it stood at position p % by.
static void ring(const shown *s, double by, double *x, size_t width) {
    sinkproof_policy policy;
    double frequency_p[64];
    size_t d = s->c->head_dim, half = d / 2;
    must(half <= 64 && sinkproof_policy_known("f32", &policy));
    sinkproof_yarn_frequencies(&policy, s->c, frequency_p);
    for (size_t at = 0; at < s->n * width; at += d)
        for (size_t p = 0; p < half; p++) {
            double to = fmod((double)(at / width), by) - (double)(at / width);
            double c = cos(to * frequency_p[p]), r = sin(to * frequency_p[p]);
            double a = x[at + p], b = x[at + half + p];
            x[at + p] = a * c - b * r, x[at + half + p] = b * c + a * r;
        }
}
static void scattered(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < s->n * width; at++) x[at] += by * (double)((at * 7 + at / width) % 11);
}

#define VALUES(name)                                                                               \
    static void values_##name(shown *s, double by) {                                               \
        if (s->layer == 0) attend_with(s, NULL, name, NULL, by);                                   \
    }
#define KEYS(name)                                                                                 \
    static void keys_##name(shown *s, double by) {                                                 \
        if (s->layer == 0) attend_with(s, name, NULL, NULL, by);                                   \
    }
#define SCORES(name)                                                                               \
    static void scores_##name(shown *s, double by) {                                               \
        if (s->layer == 1) attend_scores(s, name, by);                                             \
    }
VALUES(second_half_stale)
VALUES(half_of_next_head)
VALUES(squares)
VALUES(ahead)
VALUES(clamps)
VALUES(token_scales)
VALUES(one_factor)
VALUES(head_factors)
VALUES(scattered)
KEYS(ring)
SCORES(ring)
SCORES(scattered)
SCORES(foreign)

static const plant plants[] = {
    {AT("A11"), .change = values_second_half_stale, .by = 8, .f32 = true, .fused = true,
     .says = "values in other places: for tokens 4-7 of head 0 those of tokens 0-3 of head 0; "
             "for tokens 12-15 of head 0 those of tokens 8-11"},
    {AT("A11"), .change = values_half_of_next_head, .fused = true,
     .says = "of head 1, coordinates"},
    {AT("A11"), .change = values_squares, .by = 4, .fused = true,
     .says = "values whose squares of 4 tokens and as many coordinates are transposed"},
    {AT("A11"), .change = values_ahead, .by = 6, .n = MOST_TOKENS, .f32 = true, .fused = true,
     .says = "for token 21 of head 0 those of token 23 of head 0"},
    {AT("A11"), .change = values_clamps, .by = 1.75, .fused = true,
     .says = "values that are clamped to 1.75 on both sides"},
    {AT("A11"), .change = values_token_scales, .by = 0.1, .f32 = true, .fused = true,
     .says = "values that are multiplied by a number of each token, about 1 to 1.6"},
    {AT("A11"), .change = keys_ring, .by = 5, .f32 = true, .fused = true,
     .says = "keys that are rotated by their position modulo 5 (their slot in a ring)"},
    {AT("A11"), .change = values_one_factor, .by = 1.25,
     .says = "values that are multiplied by 1.25 (within"},
    {AT("A6"), .change = scores_ring, .by = 5, .f32 = true, .alone = true,
     .says = "keys that are rotated by their position modulo 5 (their slot in a ring)"},
    {AT("A6"), .change = scores_scattered, .by = 0.1, .f32 = true,
     .not = "that the trace has none"},
    {AT("A11"), .change = values_scattered, .by = 0.1, .f32 = true, .fused = true,
     .not = "that the trace has none"},
    {AT("A11"), .change = values_head_factors, .by = 1.25, .fused = true,
     .says = "values that are multiplied by a number of each key/value head, about 1 and 1.25"},
    {AT("A6"), .change = scores_foreign, .by = 3, .f32 = true, .alone = true,
     .says = "keys of tokens 0-2 that the trace has none of"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
