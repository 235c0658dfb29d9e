// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes in the weights of projections that no catalogue lists, planted in complete engines:
// scales and zero points of rows and groups, columns, rows of a fused weight, orders of memory,
// partial sums. Mistakes that look like one are not called by its name.
#include "tests/shared/planted.h"

static double largest_of(const double *x, size_t n) {
    double most = 0;
    for (size_t c = 0; c < n; c++) most = fmax(most, fabs(x[c]));
    return most;
}

static double *row_of(const sinkproof_matrix *w, size_t r) {
    double *row = malloc((w->cols + 1) * sizeof *row);
    must(row != NULL);
    sinkproof_matrix_row(w, r, row);
    return row;
}

static void scale_of_row_before(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    (void)e;
    double *other = row_of(w, (r + w->rows - 1) % w->rows);
    double by = largest_of(other, w->cols) / largest_of(row, w->cols);
    for (size_t c = 0; c < w->cols; c++) row[c] *= by;
    free(other);
}
static void scale_of_group_before(size_t cols, double *row) {
    enum { GROUP = 32 };
    double scale[256];
    must(cols / GROUP <= 256);
    for (size_t g = 0; g < cols / GROUP; g++) scale[g] = largest_of(row + g * GROUP, GROUP);
    for (size_t c = 0; c < cols; c++)
        row[c] *= scale[(c / GROUP + cols / GROUP - 1) % (cols / GROUP)] / scale[c / GROUP];
}
static void scattered_scales(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    (void)e;
    for (size_t c = 0; c < w->cols; c++) row[c] *= 1 + 0.1 * (double)(r * 7 % 5);
}
static void scattered_weights(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    (void)e;
    for (size_t c = 0; c < w->cols; c++) row[c] *= 1 + 0.1 * (double)((r * 7 + c * 13 + r * c) % 5);
}
static void zero_point_of_groups(size_t cols, double *row) {
    for (size_t first = 0; first + 32 <= cols; first += 32) {
        double step = largest_of(row + first, 32) / 7;
        for (size_t c = first; c < first + 32; c++) row[c] += step;
    }
}
static void smoothed(size_t cols, double *row) {
    for (size_t c = 0; c < cols; c++) row[c] *= 0.7 + 0.1 * (double)(c * 5 % 11);
}
static void without_two_columns(size_t cols, double *row) {
    must(cols > 30);
    row[5] = row[30] = 0;
}
static void without_some_columns(size_t cols, double *row) {
    for (size_t c = 9; c < 14 && c < cols; c++) row[c] = 0;
}
static void permuted_columns(size_t cols, double *row) {
    double *kept = malloc(cols * sizeof *kept);
    must(kept != NULL);
    memcpy(kept, row, cols * sizeof *kept);
    for (size_t c = 0; c < cols; c++) row[c] = kept[(c * 35 + 3) % cols];
    free(kept);
}
static void tiles_transposed(const sinkproof_matrix *w, size_t e, size_t r, double *row) {
    enum { TILE = 8 };
    (void)e;
    for (size_t c = 0; c < w->cols; c++) {
        double *other = row_of(w, r / TILE * TILE + c % TILE);
        row[c] = other[c / TILE * TILE + r % TILE];
        free(other);
    }
}

// v = x w + b of the layer's projection, with the rows that the function gives.
typedef sinkproof_slot source(const shown *s, size_t r, size_t *row);
static void project(shown *s, source *from) {
    const double *x = s->latest[TRACE_A1];
    size_t d = s->c->hidden, outs = s->count / s->n;
    for (size_t r = 0; r < outs; r++) {
        size_t row = r;
        sinkproof_slot slot = from(s, r, &row);
        sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, slot);
        sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, (sinkproof_slot)(slot + 1));
        double *w_c = row_of(&w, row), *b_r = row_of(&b, 0);
        for (size_t i = 0; i < s->n; i++) {
            double sum = b_r[row];
            for (size_t c = 0; c < d; c++) sum += w_c[c] * x[i * d + c];
            s->v[i * outs + r] = rounded(s, sum);
        }
        free(w_c);
        free(b_r);
    }
}
static sinkproof_slot head_early(const shown *s, size_t r, size_t *row) {
    size_t d = s->c->head_dim, heads = s->c->n_heads;
    *row = r < d ? (heads - 1) * d + r : r - d;
    return r < d ? SINKPROOF_W_Q : SINKPROOF_W_K;
}
static void keys_too_early(shown *s, double by) {
    (void)by;
    project(s, head_early);
}
static sinkproof_slot any_row(const shown *s, size_t r, size_t *row) {
    *row = (r * 7 + 3) % (s->count / s->n);
    return SINKPROOF_W_V;
}
static void rows_permuted(shown *s, double by) {
    (void)by;
    project(s, any_row);
}

static void bias_of_head_0(shown *s, double by) {
    size_t d = s->c->head_dim, outs = s->count / s->n;
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_Q);
    double *b_r = row_of(&b, 0);
    (void)by;
    for (size_t at = 0; at < s->count; at++)
        s->v[at] = rounded(s, s->v[at] - b_r[at % outs] + b_r[at % outs % d]);
    free(b_r);
}

static void sums_of_ranks(shown *s, double by) {
    size_t ins = s->c->n_heads * s->c->head_dim, outs = s->c->hidden, parts = (size_t)by;
    const double *x = s->latest[TRACE_A11];
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_O);
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_O);
    double *b_r = row_of(&b, 0);
    for (size_t r = 0; r < outs; r++) {
        double *w_c = row_of(&w, r);
        for (size_t i = 0; i < s->n; i++) {
            double all = b_r[r];
            for (size_t p = 0; p < parts; p++) {
                double sum = 0;
                for (size_t c = p * (ins / parts); c < (p + 1) * (ins / parts); c++)
                    sum += w_c[c] * x[i * ins + c];
                all += sinkproof_round(SINKPROOF_E4M3, sum);
            }
            s->v[i * outs + r] = rounded(s, all);
        }
        free(w_c);
    }
    free(b_r);
}

static const plant plants[] = {
    {IN(W_Q, -1, -1, 0, 1), .reread = scale_of_row_before, .f32 = true,
     .says = "scales (the largest weight of each row) are those of the row before"},
    {IN(W_V, -1, -1, 0, 1), .rewrite = scale_of_group_before,
     .says = "each row and group of 32 columns) are those of the group before"},
    {IN(W_Q, -1, -1, 0, 1), .reread = scattered_scales, .f32 = true,
     .says = "multiplied by a number of their own in each row: other scales"},
    {IN(W_Q, -1, -1, 0, 1), .reread = scattered_weights, .f32 = true, .not = "is computed with"},
    {IN(W_K, -1, -1, 0, 1), .reread = scattered_weights, .not = "is computed with"},
    {IN(W_K, -1, -1, 0, 1), .rewrite = zero_point_of_groups,
     .says = "a constant of their own in each row and group of 32 columns: other zero points"},
    {IN(W_Q, -1, -1, 0, 1), .rewrite = smoothed, .f32 = true,
     .says = "a factor for each column (channel) of its input: smoothing factors"},
    {IN(W_Q, -1, -1, 0, 1), .rewrite = without_two_columns, .f32 = true,
     .says = "without columns 5, 30 of its input, which are left out"},
    {IN(W_K, -1, -1, 0, 1), .rewrite = without_some_columns,
     .says = "without columns 9-13 of its input, left out of the sum"},
    {IN(W_Q, -1, -1, 0, 1), .rewrite = permuted_columns, .f32 = true,
     .says = "whose columns stand in another order (3, 38, 73, 12, ...)"},
    {IN(W_Q, -1, -1, 0, 1), .reread = tiles_transposed,
     .says = "in another order of memory: each tile of 8 by 8 is transposed"},
    {AT("A2.k"), .change = keys_too_early, .f32 = true, .says = "rows too early in one weight of"},
    {AT("A2.v"), .change = rows_permuted, .says = "other rows of the weights: row 0 is row 3"},
    {AT("A2.q"), .change = bias_of_head_0, .f32 = true,
     .says = "has biases of other heads, the weights are its own: rows 16-31 have those of rows "
             "0-15"},
    {AT("A12"), .change = sums_of_ranks, .by = 2, .f32 = true,
     .says = "the partial sums of 2 ranks (equal parts of the input), each rounded to E4M3"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
