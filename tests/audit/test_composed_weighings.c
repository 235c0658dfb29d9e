// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights of a fused kernel by a number of the distance, the head or the position, planted in
// the first layer of complete engines whose traces show no weights. What follows no such number is
// not called so, nor what is about as small as the roundings.
#include "tests/shared/attended.h"

static double bucket(size_t distance) {
    return distance < 2 ? (double)distance : distance < 4 ? 2.5 : distance < 7 ? -1 : 0.7;
}
static void in_buckets(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)h, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] += by * bucket(i - j);
}
static void by_root(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)h, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] -= by * sqrt((double)(i - j));
}
static void of_heads(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] += by * bucket(i - j + h % 3);
}
static void windows(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; j <= i; j++)
        if (i - j >= (size_t)by + h) z[j] = -INFINITY;
}
static void slopes(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] += by / (double)(h + 1) * (double)j;
}
static void head_factors(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] *= 1 + by * (double)(h * 5 % 7);
}
static void temperature(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)h, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] *= 1 + by * log(floor((double)(i + 1) / 4) + 1);
}
static void empty_parts(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)h, (void)z;
    *sink += log((double)(1 + (s->n - 1 - i) / (size_t)by));
}
static void padding(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)h, (void)z;
    *sink = log(exp(*sink) + (by - (double)(i % (size_t)by)));
}
static void head_sinks(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)i, (void)z;
    *sink += by * (double)(1 + h * 3 % 5);
}
static void scattered(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; j <= i; j++) z[j] += by * (double)((i * 7 + j * 5 + h * 3) % 11);
}

// Small changes in some heads, about as large as the roundings.
static bool is_one_of_few(size_t h) {
    return h == 0 || h == 2 || h == 4 || h == 9;
}
static void few_sinks(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)i, (void)z;
    if (is_one_of_few(h)) *sink += by;
}
static void few_scores(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; is_one_of_few(h) && j <= i; j++) z[j] *= by;
}
static void few_slopes(const shown *s, double by, size_t h, size_t i, double *sink, double *z) {
    (void)s, (void)sink;
    for (size_t j = 0; is_one_of_few(h) && j <= i; j++) z[j] -= by * (double)(i - j);
}
// Another logit of all sinks, in the weights that an engine stores; its outputs are made of these.
static void weights_with_sinks(shown *s, double by) {
    size_t columns = s->shape[2];
    double sinks[64];
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_SINKS);
    sinkproof_matrix_row(&b, 0, sinks);
    for (size_t r = 0; s->layer == 0 && r < s->count / columns; r++) {
        const double *z = s->latest[TRACE_A6] + r * (columns - 1);
        size_t i = r % s->n, first = first_seen(s, i);
        double sink = sinks[r / s->n] + by, top = sink, sum;
        for (size_t j = first; j <= i; j++) top = fmax(top, z[j]);
        sum = exp(sink - top);
        for (size_t j = first; j <= i; j++) sum += exp(z[j] - top);
        for (size_t j = 0; j < columns; j++) {
            bool seen = j >= first && j <= i;
            double e = j + 1 == columns ? exp(sink - top) : seen ? exp(z[j] - top) : 0;
            s->v[r * columns + j] = rounded(s, e / sum);
        }
    }
}
static void weights_without_sink(shown *s, double by) {
    size_t columns = s->shape[2];
    (void)by;
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = s->latest[TRACE_A9][at / columns * (columns + 1) + at % columns];
}
static void values_by_weights(shown *s, double by) {
    size_t heads = s->shape[1], d = s->shape[2], each = heads / s->c->n_kv_heads;
    (void)by;
    for (size_t at = 0; at < s->count; at++) {
        size_t i = at / (heads * d), h = at / d % heads;
        double sum = 0;
        for (size_t j = 0; j <= i; j++)
            sum += s->latest[TRACE_A10][(h * s->n + i) * s->n + j] *
                   s->latest[TRACE_A2_V][(j * s->c->n_kv_heads + h / each) * d + at % d];
        s->v[at] = rounded(s, sum);
    }
}
static void noisy_values(const shown *s, double by, double *x, size_t width) {
    for (size_t at = 0; at < s->n * width; at++) x[at] *= 1 + by * sin((double)(at * at % 1009));
}

#define PLANTED(name)                                                                              \
    static void plant_##name(shown *s, double by) {                                                \
        if (s->layer == 0) attend_with(s, NULL, NULL, name, by);                                   \
    }
PLANTED(in_buckets)
PLANTED(by_root)
PLANTED(of_heads)
PLANTED(windows)
PLANTED(slopes)
PLANTED(head_factors)
PLANTED(temperature)
PLANTED(empty_parts)
PLANTED(padding)
PLANTED(head_sinks)
PLANTED(scattered)
PLANTED(few_sinks)
PLANTED(few_scores)
PLANTED(few_slopes)
static void plant_noisy_values(shown *s, double by) {
    if (s->layer == 0) attend_with(s, NULL, noisy_values, NULL, by);
}

static const plant plants[] = {
    {AT("A11"), .change = plant_in_buckets, .by = 0.6, .f32 = true, .fused = true,
     .says = "a number is added that depends on the distance between query and key alone, the same "
             "in all heads"},
    {AT("A11"), .change = plant_few_sinks, .by = -0.03, .fused = true, .not = "A11 has"},
    {AT("A11"), .change = plant_by_root, .by = 0.3, .f32 = true, .fused = true,
     .says = "by 0.3 times the square root of the distance"},
    {AT("A11"), .change = plant_few_scores, .by = 1.01, .fused = true, .not = "A11 has"},
    {AT("A11"), .change = plant_of_heads, .by = 0.4, .f32 = true, .fused = true,
     .says = "on the distance between query and key alone, of each head its own"},
    {AT("A11"), .change = plant_windows, .by = 2, .f32 = true, .fused = true,
     .says = "sees other keys in each head: those at the distances 0-1 in head 0; 0-2 in head 1"},
    {AT("A11"), .change = plant_slopes, .by = 0.5, .f32 = true, .fused = true,
     .says = "a slope of each head times the key's position is added"},
    {AT("A11"), .change = plant_head_factors, .by = 0.11, .f32 = true, .fused = true,
     .says = "scores that are multiplied by a number of each head: 1, 1.55, 1.33"},
    {AT("A11"), .change = plant_temperature, .by = 0.1, .f32 = true, .fused = true,
     .says = "1 + 0.1 ln(floor((position + 1) / 4) + 1): a temperature of the query's position"},
    {AT("A11"), .change = plant_noisy_values, .by = 0.01, .fused = true, .not = "A11 has"},
    {AT("A11"), .change = plant_empty_parts, .by = 4, .f32 = true, .fused = true,
     .says = "a sink that is counted so often in the sum: "},
    {AT("A11"), .change = values_by_weights, .by = 0.916, .fused = true,
     .more = {{"A9", weights_with_sinks}, {"A10", weights_without_sink}},
     .says = "has a sink that is counted about 2.5 times in the sum, not once"},
    {AT("A11"), .change = plant_few_slopes, .by = 3e-5, .f32 = true, .fused = true,
     .not = "cached"},
    {AT("A11"), .change = plant_padding, .by = 8, .f32 = true, .fused = true,
     .says = "so many more keys of score 0, without a value, in the sum (as of padding that is not "
             "masked): 8 to 1 at positions 0-7, 8"},
    {AT("A11"), .change = plant_head_sinks, .by = 0.37, .f32 = true, .fused = true,
     .says = "a sink whose logit is another in each head, by 0.37, 1.48, 0.74"},
    {AT("A11"), .change = plant_scattered, .by = 0.1, .f32 = true, .fused = true, .not = "A11"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
