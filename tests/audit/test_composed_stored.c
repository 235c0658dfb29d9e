// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Keys and values that a cache keeps in codes of few bits, planted in complete engines: a scale for
// a page of tokens, for each channel, for a group of channels, that of the first tokens for all.
// Codes by a scale of no group are not called so.
#include "tests/shared/attended.h"

static double largest(const double *x, size_t n, size_t stride) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i * stride]));
    return most;
}
static double in_steps(double x, double step) {
    return step > 0 ? nearbyint(x / step) * step : x;
}

// int8, one scale for all heads of a page of `by` tokens.
static void pages(const shown *s, double by, double *x, size_t width) {
    for (size_t from = 0; from < s->n; from += (size_t)by) {
        size_t rows = from + (size_t)by < s->n ? (size_t)by : s->n - from;
        double scale = largest(x + from * width, rows * width, 1) / 127;
        for (size_t i = from * width; i < (from + rows) * width; i++) x[i] = in_steps(x[i], scale);
    }
}
// 4 bits from the smallest to the largest of a channel in pages of `by` tokens; the last is kept.
static void channels(const shown *s, double by, double *x, size_t width) {
    size_t page = (size_t)by;
    for (size_t from = 0; from + page <= s->n; from += page)
        for (size_t c = 0; c < width; c++) {
            double low = INFINITY, high = -INFINITY;
            for (size_t i = from; i < from + page; i++)
                low = fmin(low, x[i * width + c]), high = fmax(high, x[i * width + c]);
            for (size_t i = from; i < from + page && high > low; i++)
                x[i * width + c] = in_steps(x[i * width + c] - low, (high - low) / 15) + low;
        }
}
// int4, a scale for each group of `by` channels.
static void groups(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < s->n * width; at += (size_t)by) {
        double scale = largest(x + at, (size_t)by, 1) / 7;
        for (size_t c = at; c < at + (size_t)by; c++) x[c] = in_steps(x[c], scale);
    }
}
// e4m3 by the scale of the first `by` tokens.
static void first_scale(const shown *s, double by, double *x, size_t width) {
    double scale = largest(x, (size_t)by * width, 1) / 448;
    for (size_t i = 0; i < s->n * width; i++)
        x[i] = sinkproof_round(SINKPROOF_E4M3, fmax(-448, fmin(448, x[i] / scale))) * scale;
}
// int8 by a scale of each number's own place: no storage.
static void scattered(const shown *s, double by, double *x, size_t width) {
    for (size_t i = 0; i < s->n * width; i++)
        x[i] = in_steps(x[i], by * (double)(1 + i * 7 % 11) / 127);
}

static void keys_in_pages(shown *s, double by) {
    attend_scores(s, pages, by);
}
static void values_in_pages(shown *s, double by) {
    attend_with(s, NULL, pages, NULL, by);
}
static void keys_by_channel(shown *s, double by) {
    attend_scores(s, channels, by);
}
static void values_in_groups(shown *s, double by) {
    attend_with(s, NULL, groups, NULL, by);
}
static void both_in_e4m3(shown *s, double by) {
    attend_scores(s, first_scale, by);
}
static void scattered_keys(shown *s, double by) {
    attend_scores(s, scattered, by);
}

static const plant plants[] = {
    {AT("A6"), .change = keys_in_pages, .by = 8, .f32 = true, .alone = true,
     .says = "keys that are kept in int8, with a scale for each page of 8 tokens and all heads"},
    {AT("A11"), .change = values_in_pages, .by = 4, .f32 = true, .alone = true,
     .says = "values that are kept in int8, with a scale for each page of 4 tokens and all heads"},
    {AT("A6"), .change = keys_by_channel, .by = 8, .f32 = true, .alone = true,
     .says = "keys that are kept in 4 bits from their smallest to their largest, with a scale for "
             "each page of 8 tokens and each channel"},
    {AT("A11"), .change = values_in_groups, .by = 4, .alone = true,
     .says = "values that are kept in int4, with a scale for each token and each group of 4"},
    {AT("A6"), .change = both_in_e4m3, .by = 5, .f32 = true, .alone = true,
     .says = "keys that are kept in e4m3, with a scale for the first 4 tokens (or up to 12)"},
    {AT("A6"), .change = scattered_keys, .by = 3, .f32 = true, .not = "kept in"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
