// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes of norms, activations and experts that are a part of an operation: a tail, a function, a
// block, a row. Mistakes that look like one are not called by its name.
#include "tests/shared/planted.h"

// ---- norms

static double mean_square(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum / (double)n;
}
// Row i over another mean square, in some coordinates.
static void divide(shown *s, size_t i, double square, size_t first) {
    size_t d = s->c->hidden;
    double own = mean_square(&s->residual[i * d], d) + s->c->rms_eps;
    for (size_t k = i * d + first; k < (i + 1) * d; k++)
        s->v[k] = rounded(s, s->v[k] * sqrt(own / (square + s->c->rms_eps)));
}
static void tail_undivided(shown *s, double by) {
    for (size_t i = 0; i < s->n; i++) divide(s, i, 1 - s->c->rms_eps, (size_t)by);
}
static void rows_as_they_came(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t at = (size_t)by * d; at < s->count; at++) s->v[at] = rounded(s, s->residual[at]);
}
static void with_the_row_before(shown *s, double by) {
    size_t d = s->c->hidden;
    (void)by;
    for (size_t i = s->n - 1; i > 0; i--)
        divide(s, i,
               (mean_square(&s->residual[i * d], d) + mean_square(&s->residual[(i - 1) * d], d)) /
                   2,
               0);
}
static void last_quarter_again(shown *s, double by) {
    size_t d = s->c->hidden, from = d - d / 4;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i,
               mean_square(&s->residual[i * d], d) +
                   by * mean_square(&s->residual[i * d + from], d / 4) / 4,
               0);
}
static void less_the_mean(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++) {
        const double *x = &s->residual[i * d];
        double mean = 0;
        for (size_t k = 0; k < d; k++) mean += x[k] / (double)d;
        for (size_t k = 0; k < d; k++)
            if (fabs(x[k]) > 0)
                s->v[i * d + k] = rounded(s, s->v[i * d + k] / x[k] * (x[k] - by * mean));
    }
}
static void one_more(size_t cols, double *row) {
    for (size_t k = 0; k < cols; k++) row[k] = sinkproof_round(SINKPROOF_BF16, row[k] + 1);
}
static void a_tenth_less(size_t cols, double *row) {
    for (size_t k = 0; k < cols; k++) row[k] -= 0.125;
}
static void first_again(size_t cols, double *row) {
    size_t part = cols / 4 * 3 - 2;
    for (size_t k = part; k < cols; k++) row[k] = row[k % part];
}
static void over_the_end(shown *s, double by) {
    size_t d = s->c->hidden;
    for (size_t i = s->n - 1; i > 0; i--) s->v[i * d] = s->v[i * d - (size_t)by];
}
static void scattered(shown *s, double by) { // no statistic
    size_t d = s->c->hidden;
    for (size_t i = 0; i < s->n; i++)
        divide(s, i, mean_square(&s->residual[i * d], d) * (1 + by * (double)(i * 7 % 5)), 0);
}

// ---- activations

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
typedef double activation(const sinkproof_config *c, double gate, double up, double by);
static void activate(shown *s, activation *f, size_t gates, double by) {
    size_t inter = s->c->inter;
    for (size_t i = 0; i < s->count; i++) {
        const double *row = &s->up[i / inter * 2 * inter];
        size_t k = i % inter, at = gates == 1 ? 2 * k : k / gates * 2 * gates + k % gates;
        s->v[i] = rounded(s, f(s->c, row[at], row[at + gates], by));
    }
}
static double clamped(double x, double low, double high) {
    return fmin(fmax(x, low), high);
}
static double usual(const sinkproof_config *c, double gate, double up, double by) {
    double g = fmin(gate, c->swiglu.limit);
    (void)by;
    return g * sigmoid(c->swiglu.alpha * g) * (clamped(up, -c->swiglu.limit, c->swiglu.limit) + 1);
}
static double hard(const sinkproof_config *c, double gate, double up, double by) {
    double g = fmin(gate, c->swiglu.limit);
    return g * clamped(c->swiglu.alpha * g / by + 0.5, 0, 1) *
           (clamped(up, -c->swiglu.limit, c->swiglu.limit) + 1);
}
static double one_sided(const sinkproof_config *c, double gate, double up, double by) {
    double g = fmin(gate, c->swiglu.limit);
    return g * sigmoid(c->swiglu.alpha * g) * (fmin(up, by) + 1);
}
static double one_elsewhere(const sinkproof_config *c, double gate, double up, double by) {
    double g = fmin(gate, c->swiglu.limit);
    return (g * sigmoid(c->swiglu.alpha * g) + by) * clamped(up, -c->swiglu.limit, c->swiglu.limit);
}
static double of_no_part(const sinkproof_config *c, double gate, double up, double by) {
    return usual(c, gate, up, 0) + by * gate * up;
}
static void hard_sigmoid(shown *s, double by) {
    activate(s, hard, 1, by);
}
static void up_one_sided(shown *s, double by) {
    activate(s, one_sided, 1, by);
}
static void one_to_the_swish(shown *s, double by) {
    activate(s, one_elsewhere, 1, by);
}
static void in_blocks(shown *s, double by) {
    activate(s, usual, (size_t)by, 0);
}
static void no_parts(shown *s, double by) {
    activate(s, of_no_part, 1, by);
}

// ---- experts

static const double *of(const shown *s, sinkproof_trace_point point) {
    return s->latest[point];
}
static size_t expert_at(const shown *s, size_t q) {
    return (size_t)of(s, TRACE_M3)[q];
}
static void batch_of(const shown *s, size_t q, size_t *place, size_t *size) {
    *place = *size = 0;
    for (size_t o = 0; o < s->n * s->c->n_chosen; o++) {
        *place += o < q && expert_at(s, o) == expert_at(s, q);
        *size += expert_at(s, o) == expert_at(s, q);
    }
}
static bool in_partial_block(const shown *s, size_t q, size_t block) {
    size_t place, size;
    batch_of(s, q, &place, &size);
    return place >= size / block * block;
}

// The up-projection of slot q: of that row, by that expert, rounded to codes of that step.
static void project(shown *s, size_t q, size_t row, size_t expert, double step) {
    size_t d = s->c->hidden, rows = 2 * s->c->inter;
    const double *x = &of(s, TRACE_M1)[row * d];
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_UP);
    sinkproof_matrix one = sinkproof_matrix_at(&w, expert);
    double *w_d = malloc(d * sizeof *w_d);
    must(w_d != NULL);
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        sinkproof_matrix_row(&one, r, w_d);
        for (size_t k = 0; k < d; k++)
            sum += w_d[k] * (step > 0 ? step * nearbyint(x[k] / step) : x[k]);
        s->v[q * rows + r] = rounded(s, sum);
    }
    free(w_d);
}
static void gathered_over(shown *s, double by) {
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++) {
        size_t row = by > 0 ? q / (size_t)by : (q * 7 + 3) % s->n;
        project(s, q, row < s->n ? row : s->n - 1, expert_at(s, q), 0);
    }
}
static void scale_of_batch(shown *s, double by) {
    size_t k = s->c->n_chosen, d = s->c->hidden;
    for (size_t q = 0; q < s->n * k; q++) {
        double largest = 0;
        for (size_t o = 0; o < s->n * k; o++)
            for (size_t i = 0; expert_at(s, o) == expert_at(s, q) && i < d; i++)
                largest = fmax(largest, fabs(of(s, TRACE_M1)[o / k * d + i]));
        project(s, q, q / k, expert_at(s, q), largest / by);
    }
}
static void partial_block_of_next(shown *s, double by) {
    size_t k = s->c->n_chosen, experts = s->c->n_experts;
    for (size_t q = 0; q < s->n * k; q++)
        if (in_partial_block(s, q, (size_t)by))
            project(s, q, q / k, (expert_at(s, q) + 1) % experts, 0);
}
static void partial_block_lost(shown *s, double by) {
    size_t each = s->count / (s->n * s->c->n_chosen);
    for (size_t q = 0; q < s->n * s->c->n_chosen; q++)
        if (in_partial_block(s, q, (size_t)by)) memset(&s->v[q * each], 0, each * sizeof *s->v);
}
static void bias_after_clamps(shown *s, double by) {
    size_t inter = s->c->inter, k = s->c->n_chosen;
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_UP);
    double *row = malloc(2 * inter * sizeof *row), limit = s->c->swiglu.limit;
    (void)by;
    must(row != NULL);
    for (size_t q = 0; q < s->n * k; q++) {
        sinkproof_matrix one = sinkproof_matrix_at(&b, expert_at(s, q));
        sinkproof_matrix_row(&one, 0, row);
        for (size_t f = 0; f < inter; f++) {
            const double *y = &of(s, TRACE_M5)[q * 2 * inter + 2 * f];
            double g = rounded(s, fmin(y[0], limit) + row[2 * f]);
            double u = rounded(s, clamped(y[1], -limit, limit) + row[2 * f + 1]);
            s->v[q * inter + f] = rounded(s, g * sigmoid(s->c->swiglu.alpha * g) * (u + 1));
        }
    }
    free(row);
}
// The down-projection in `by` parts of its columns, each rounded to bfloat16; by < 0: each part has
// the weights of the first.
static void in_parts(shown *s, double by) {
    size_t inter = s->c->inter, rows = s->c->hidden, parts = (size_t)fabs(by), part = inter / parts;
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_DOWN);
    double *row = malloc(inter * sizeof *row);
    must(row != NULL);
    for (size_t at = 0; at < s->count; at++) {
        const double *h = &of(s, TRACE_M8)[at / rows * inter];
        sinkproof_matrix one = sinkproof_matrix_at(&w, expert_at(s, at / rows));
        double all = 0;
        sinkproof_matrix_row(&one, at % rows, row);
        for (size_t k = 0; k < parts; k++) {
            double sum = 0;
            for (size_t c = 0; c < part; c++)
                sum += h[k * part + c] * row[by < 0 ? c : k * part + c];
            all += sinkproof_round(SINKPROOF_BF16, sum);
        }
        s->v[at] = rounded(s, all);
    }
    free(row);
}
// Codes on a grid of steps 6/7.
static void even_steps(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    float scale[64];
    sinkproof_matrix one = sinkproof_matrix_at(w, e);
    must(w->cols <= 64 * 32 && sinkproof_matrix_scales(&one, r, scale));
    for (size_t c = 0; c < w->cols; c++) {
        double step = 6.0 / 7 * (double)scale[c / 32];
        row[c] = step * nearbyint(row[c] / step);
    }
}
static void first_half_again(size_t cols, double *row) {
    for (size_t k = cols / 2; k < cols; k++) row[k] = row[k - cols / 2];
}

static const plant plants[] = {
    {AT("A1"), .change = tail_undivided, .by = 48,
     .says = "not divided by their root mean square, in coordinates from 48 on alone"},
    {AT("M1"), .change = rows_as_they_came, .by = 11, .f32 = true,
     .says = "is left out, with its scales: the rows are its input, in positions from 11 on alone"},
    {AT("M1"), .change = with_the_row_before, .f32 = true,
     .says = "the mean square of the row and the row before it"},
    {AT("A1"), .change = last_quarter_again, .by = 1, .f32 = true, .says = "1, 1, 1 and 2 times"},
    {AT("A1"), .change = less_the_mean, .by = 1, .f32 = true,
     .says = "subtracts the mean of the row, and divides by the root mean square of the row with"},
    {IN(ATTN_NORM, -1, -1, 0, 1), .rewrite = one_more,
     .says = "have 1 added, and the sum is rounded to bfloat16"},
    {IN(MLP_NORM, -1, -1, 0, 1), .rewrite = a_tenth_less, .f32 = true, .says = "have -0.125 added"},
    {IN(ATTN_NORM, -1, -1, 0, 1), .rewrite = first_again,
     .says = "at the number of the coordinate modulo "},
    {AT("A1"), .change = over_the_end, .by = 1,
     .says = "holds what stands 1 place before in memory"},
    {AT("A1"), .change = scattered, .by = 0.01, .not = "counts the squares"},
    {AT("M8"), .change = hard_sigmoid, .by = 6, .f32 = true, .alone = true,
     .says = "the sigmoid is approximated: x/6 + 1/2"},
    {AT("M8"), .change = up_one_sided, .by = 1, .f32 = true, .alone = true,
     .says = "up is clamped to at most 1"},
    {AT("M8"), .change = one_to_the_swish, .by = 1, .f32 = true, .alone = true,
     .says = "1 is added to the gate times its sigmoid"},
    {AT("M8"), .change = in_blocks, .by = 8, .f32 = true, .alone = true,
     .says = "gate and up alternate in blocks of 8"},
    {AT("M8"), .change = bias_after_clamps, .f32 = true, .alone = true,
     .says = "clamped before their biases are added"},
    {AT("M8"), .change = no_parts, .by = 0.01, .f32 = true, .alone = true,
     .not = "in the activation"},
    {AT("M5"), .change = gathered_over, .by = 5, .f32 = true, .alone = true,
     .says = "the slot's number over 5"},
    {AT("M5"), .change = scale_of_batch, .by = 127, .f32 = true, .alone = true,
     .says = "rounded to int8 with one scale for all tokens of an expert"},
    {AT("M5"), .change = gathered_over, .by = 0, .f32 = true, .alone = true,
     .not = "row of another token"},
    {AT("M5"), .change = partial_block_of_next, .by = 4, .f32 = true, .alone = true,
     .says = "of the next expert (+1) for the last, partial block of 4"},
    {AT("M9"), .change = in_parts, .by = 4, .f32 = true, .alone = true,
     .says = "in 4 equal parts (ranks, or a split of the sum), each rounded to bfloat16 before"},
    {AT("M9"), .change = in_parts, .by = -2, .f32 = true, .alone = true,
     .says = "each part has the weights of the first part"},
    {AT("M10"), .change = partial_block_lost, .by = 4, .f32 = true, .alone = true,
     .says = "is zero for the last, partial block of 4 of an expert's tokens"},
    {IN(W_UP, -1, -1, 0, 1), .reread = even_steps, .f32 = true, .says = "seven equal steps"},
    {IN(W_DOWN, -1, -1, 0, 1), .rewrite = first_half_again, .f32 = true,
     .says = "again in each later part"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
