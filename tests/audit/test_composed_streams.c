// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of norms and of the residual stream that no catalogue lists, planted in complete
// engines: other divisors of a row, a factor for each coordinate, sums and norms of other states.
// Mistakes that look like one are not called by its name.
#include "tests/shared/planted.h"

// ---- norms

static double mean_square(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum / (double)n;
}
// The norm of a row over the root of another number, which has epsilon.
static void divide(shown *s, size_t row, double square) {
    size_t d = s->c->hidden;
    double own = mean_square(&s->residual[row * d], d) + s->c->rms_eps;
    for (size_t k = row * d; k < (row + 1) * d; k++)
        s->v[k] = rounded(s, s->v[k] * sqrt(own / square));
}
static void sum_in_bf16(shown *s, double by) {
    size_t d = s->c->hidden;
    (void)by;
    for (size_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (size_t k = i * d; k < (i + 1) * d; k++) {
            double one = sinkproof_round(SINKPROOF_BF16, s->residual[k] * s->residual[k]);
            sum = sinkproof_round(SINKPROOF_BF16, sum + one);
        }
        divide(s, i, sum / (double)d + s->c->rms_eps);
    }
}
static void root_by_bits(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++) {
        float x = (float)(mean_square(&s->residual[i * d], d) + s->c->rms_eps), y;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits = 0x5f3759df - (bits >> 1);
        memcpy(&y, &bits, sizeof y);
        for (int step = 0; step < (int)by; step++) y = y * (1.5F - 0.5F * x * y * y);
        divide(s, i, 1 / ((double)y * (double)y));
    }
}
static void of_two_rows(shown *s, double by) {
    size_t d = s->c->hidden, block = (size_t)by;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i, mean_square(&s->residual[i / block * block * d], block * d) + s->c->rms_eps);
}
static void of_shards(shown *s, double by) {
    size_t d = s->c->hidden, each = d / (size_t)by;
    for (size_t i = 0; i < s->n; i++) {
        double root = 0;
        for (size_t p = 0; p < (size_t)by; p++)
            root += sqrt(mean_square(&s->residual[i * d + p * each], each) + s->c->rms_eps) / by;
        divide(s, i, root * root);
    }
}
static void power_of_two(shown *s, double by) {
    size_t d = s->c->hidden;
    (void)by;
    for (size_t i = 0; i < s->n; i++) {
        double root = sqrt(mean_square(&s->residual[i * d], d) + s->c->rms_eps);
        divide(s, i, pow(exp2(ceil(log2(root))), 2));
    }
}
static void over_wider(shown *s, double by) { // the width as padded
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i, mean_square(&s->residual[i * d], d) * (double)d / by + s->c->rms_eps);
}
static void scattered(shown *s, double by) { // a number of each row
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i,
               (mean_square(&s->residual[i * d], d) + s->c->rms_eps) *
                   (1 + by * (double)(i * 7 % 5)));
}
static void scattered_elements(shown *s, double by) { // of each element
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->v[i] * (1 + by * (double)(i * 7 % 11)));
}

// ---- a number for each coordinate

static void by_coordinate(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->v[i] * (1 + by * (double)(i % d * 5 % 7)));
}
static void term_by_coordinate(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->residual[i] +
                                 rounded(s, s->added[i] * (0.5 + by * (double)(i % d * 5 % 7))));
}
static void vector_added(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->count; i++)
        s->v[i] = rounded(s, s->v[i] + by * (double)(i % d * 5 % 7 + 1));
}

// ---- the residual stream

static double *normed(const shown *s, const double *x) {
    size_t d = s->c->hidden;
    double *y = malloc(s->n * d * sizeof *y);
    must(y != NULL);
    for (size_t i = 0; i < s->n * d; i++)
        y[i] = rounded(s, x[i] / sqrt(mean_square(&x[i / d * d], d) + s->c->rms_eps));
    return y;
}
static const double *layer_input(const shown *s) {
    return s->layer == 0 ? s->latest[TRACE_T0] : s->latest[TRACE_M12];
}
static void residual_normed(shown *s, double by) {
    double *y = normed(s, s->residual);
    (void)by;
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, y[i] + s->added[i]);
    free(y);
}
static void added_normed(shown *s, double by) {
    double *y = normed(s, s->added);
    (void)by;
    for (size_t i = 0; i < s->count; i++) s->v[i] = rounded(s, s->residual[i] + y[i]);
    free(y);
}
static void two_for_the_residual(shown *s, double by) {
    (void)by;
    for (size_t i = 0; i < s->count; i++)
        s->v[i] =
            rounded(s, rounded(s, s->latest[TRACE_M1][i] + s->latest[TRACE_A12][i]) + s->added[i]);
}
static void route(shown *s, const double *x) {
    size_t d = s->c->hidden, experts = s->c->n_experts;
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_ROUTER);
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_ROUTER);
    double *row = malloc((d + experts) * sizeof *row);
    must(row != NULL);
    sinkproof_matrix_row(&b, 0, row + d);
    for (size_t e = 0; e < experts; e++) {
        sinkproof_matrix_row(&w, e, row);
        for (size_t i = 0; i < s->n; i++) {
            double sum = row[d + e];
            for (size_t k = 0; k < d; k++) sum += row[k] * x[i * d + k];
            s->v[i * experts + e] = rounded(s, sum);
        }
    }
    free(row);
}
static void routed_by_the_input(shown *s, double by) {
    double *y = normed(s, layer_input(s));
    (void)by;
    route(s, y);
    free(y);
}
static void routed_by_noise(shown *s, double by) { // of no state
    size_t d = s->c->hidden;
    double *y = normed(s, layer_input(s));
    for (size_t i = 0; i < s->n * d; i++) y[i] *= 1 + by * (double)(i * 13 % 17);
    route(s, y);
    free(y);
}

static const plant plants[] = {
    {AT("A1"), .change = sum_in_bf16, .f32 = true,
     .says = "adds up the squares in bfloat16, one after the other, each square rounded to it"},
    {AT("A1"), .change = root_by_bits, .by = 1, .f32 = true, .says = "with one step of Newton"},
    {AT("M1"), .change = root_by_bits, .by = 0, .says = "without a step of Newton"},
    {AT("M1"), .change = of_two_rows, .by = 2, .f32 = true, .says = "rows of each block of 2"},
    {AT("A1"), .change = of_shards, .by = 2, .f32 = true,
     .says = "the mean of the root mean squares of 2 equal parts (shards)"},
    {AT("M1"), .change = power_of_two, .f32 = true, .says = "rounded up to a power of two"},
    {AT("A1"), .change = over_wider, .by = 128, .f32 = true, .says = "is divided by 128, not by"},
    {AT("F1"), .change = scattered, .by = 0.01, .f32 = true,
     .says = "divides each row by a number of its own"},
    {AT("A1"), .change = scattered_elements, .by = 0.01, .not = "of its own"},
    {AT("M1"), .change = by_coordinate, .by = 0.1, .says = "has other scales than the norm's"},
    {AT("A13"), .change = term_by_coordinate, .by = 0.1,
     .says = "adds the output projection multiplied by a number of its own in each coordinate"},
    {AT("T0"), .change = vector_added, .by = 0.25, .says = "one vector added to every row"},
    {AT("A13"), .change = residual_normed,
     .says = "reads, in the place of the layer's input, the norm, without scales, of the layer's"},
    {AT("M12"), .change = added_normed,
     .says =
         "in the place of the sum over the experts (M11), the norm, without scales, of the sum"},
    {AT("M12"), .change = two_for_the_residual,
     .says = "the sum of the norm before the experts (M1) and the output of attention (A12)"},
    {AT("M2"), .change = routed_by_the_input, .alone = true,
     .says = "in the place of the norm before the experts (M1), the norm, without scales, of the"},
    {AT("M2"), .change = routed_by_noise, .by = 0.01, .not = "the norm, without"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
