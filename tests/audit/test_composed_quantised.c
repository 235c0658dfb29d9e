// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights and inputs as quantisers, layouts and adapters leave them, planted in complete engines:
// tiles and blocks in another order, scales that are shared by other numbers, clipped weights, zero
// points, rotated blocks, inputs with a scale that is not their own, merged adapters. Mistakes that
// look like one are not called by its name.
#include "tests/shared/planted.h"

// Row r of matrix e of a stack; the caller frees it.
static double *row_of(const sinkproof_matrix *stack, size_t e, size_t r) {
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    double *row = malloc(stack->cols * sizeof *row);
    must(row != NULL);
    sinkproof_matrix_row(&one, r, row);
    return row;
}
static double largest_of(const double *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

// ---- orders

// The tile that stands in each place, tiles of 32 by 32.
typedef size_t tile_from(size_t t, size_t down, size_t across);
static void retile(const sinkproof_matrix *stack, size_t e, size_t r, double *row,
                   tile_from *from) {
    size_t across = stack->cols / 32, down = stack->rows / 32;
    for (size_t c = 0; c < stack->cols; c++) {
        size_t t = from(r / 32 * across + c / 32, down, across);
        double *other = row_of(stack, e, t / across * 32 + r % 32);
        row[c] = other[t % across * 32 + c % 32];
        free(other);
    }
}
static size_t by_columns(size_t t, size_t down, size_t across) {
    return t % across * down + t / across;
}
static size_t two_exchanged(size_t t, size_t down, size_t across) {
    (void)down, (void)across;
    return t == 2 ? 9 : t == 9 ? 2 : t;
}
static size_t transposed_grid(size_t t, size_t down, size_t across) {
    return t % down * across + t / down;
}
static void tiles_by_columns(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    retile(stack, e, r, row, by_columns);
}
static void two_tiles(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    retile(stack, e, r, row, two_exchanged);
}
static void grid_of_tiles(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    retile(stack, e, r, row, transposed_grid);
}
static void columns_in_blocks(size_t cols, double *row) {
    double *old = malloc(cols * sizeof *old);
    must(old != NULL);
    memcpy(old, row, cols * sizeof *old);
    for (size_t c = 0; c < cols; c++) {
        size_t in = c % 16 / 2;
        row[c] = old[c / 16 * 16 + (in % 2 * 4 + in / 2) * 2 + c % 2];
    }
    free(old);
}

// ---- rotated blocks

static void rotate(double *x, size_t block) {
    double *old = malloc(block * sizeof *old);
    must(old != NULL);
    memcpy(old, x, block * sizeof *old);
    for (size_t i = 0; i < block; i++) {
        x[i] = 0;
        for (size_t k = 0; k < block; k++) {
            size_t both = i & k, odd = 0;
            for (; both > 0; both /= 2) odd ^= both & 1;
            x[i] += odd ? -old[k] : old[k];
        }
        x[i] /= sqrt((double)block);
    }
    free(old);
}
static void rotated_weights(size_t cols, double *row) {
    for (size_t c = 0; c < cols; c += 32) rotate(row + c, 32);
}
static void rotated_keys(shown *s, double by) {
    (void)by;
    for (size_t at = 0; at < s->count; at += s->c->head_dim) rotate(&s->v[at], s->c->head_dim);
    for (size_t at = 0; at < s->count; at++) s->v[at] = rounded(s, s->v[at]);
}

// ---- scales, clips, zero points

static double in_codes(double w, double most, double levels) {
    double scale = (float)(most / levels);
    return scale > 0 ? (float)(nearbyint((float)(w / scale)) * scale) : 0;
}
static void scale_of_column(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    (void)r;
    double *most_c = calloc(stack->cols, sizeof *most_c);
    must(most_c != NULL);
    for (size_t k = 0; k < stack->rows; k++) {
        double *other = row_of(stack, e, k);
        for (size_t c = 0; c < stack->cols; c++) most_c[c] = fmax(most_c[c], fabs(other[c]));
        free(other);
    }
    for (size_t c = 0; c < stack->cols; c++) row[c] = in_codes(row[c], most_c[c], 127);
    free(most_c);
}
// The largest of the scales of 32 rows and 32 columns, for MXFP4's own codes.
static void largest_scale(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    float own[8], other[8];
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    must(stack->cols / 32 <= 8 && sinkproof_matrix_scales(&one, r, own));
    for (size_t b = 0; b < stack->cols / 32; b++) {
        float most = 0;
        for (size_t k = r / 32 * 32; k < r / 32 * 32 + 32; k++) {
            must(sinkproof_matrix_scales(&one, k, other));
            if (other[b] > most) most = other[b];
        }
        for (size_t c = b * 32; c < b * 32 + 32; c++) row[c] *= (double)(most / own[b]);
    }
}
static void fused_scale(shown *s, double by) {
    static const sinkproof_slot slots[] = {SINKPROOF_W_Q, SINKPROOF_W_K, SINKPROOF_W_V};
    size_t d = s->c->hidden, rows = s->count / s->n;
    double most = 0, bias[64];
    for (size_t k = 0; k < 3; k++) {
        sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, slots[k]);
        for (size_t r = 0; r < w.rows; r++) {
            double *row = row_of(&w, 0, r);
            most = fmax(most, largest_of(row, d));
            free(row);
        }
    }
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_V);
    sinkproof_matrix b = sinkproof_model_slot(s->model, s->layer, SINKPROOF_B_V);
    must(b.cols <= 64);
    sinkproof_matrix_row(&b, 0, bias);
    for (size_t r = 0; r < rows; r++) {
        double *row = row_of(&w, 0, r);
        for (size_t i = 0; i < s->n; i++) {
            double sum = 0;
            for (size_t c = 0; c < d; c++)
                sum += in_codes(row[c], most, by) * s->latest[TRACE_A1][i * d + c];
            s->v[i * rows + r] = rounded(s, sum + bias[r]);
        }
        free(row);
    }
}
static void clipped_at_size(size_t cols, double *row) {
    for (size_t c = 0; c < cols; c++) row[c] = fmax(fmin(row[c], 0.15), -0.15);
}
static void clipped_to_share(size_t cols, double *row) {
    double most = 0.75 * largest_of(row, cols);
    for (size_t c = 0; c < cols; c++) row[c] = fmax(fmin(row[c], most), -most);
}
static void zero_point_late(size_t cols, double *row) {
    for (size_t first = 0; first < cols; first += 32) {
        double high = row[first], low = row[first];
        for (size_t c = first; c < first + 32; c++)
            high = fmax(high, row[c]), low = fmin(low, row[c]);
        double step = (float)((high - low) / 15), zero = nearbyint((float)(-low / step));
        for (size_t c = first; c < first + 32; c++) {
            double code = fmax(fmin(nearbyint((float)(row[c] / step)) + zero, 15), 0);
            row[c] = (float)((code - zero - 1) * step);
        }
    }
}
static void scattered_clips(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    double most = (0.4 + (double)(r * r % 7) / 12) * largest_of(row, stack->cols);
    (void)e;
    for (size_t c = 0; c < stack->cols; c++) row[c] = fmax(fmin(row[c], most), -most);
}

// ---- adapters

static double scattered(size_t i, size_t by) {
    uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u + by;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return (double)(x >> 40) * 0x1p-24 - 0.5;
}
static void merged(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    for (size_t c = 0; c < stack->cols; c++)
        row[c] = sinkproof_round(SINKPROOF_BF16,
                                 row[c] + 0.3 * scattered(r, 3 * e) * scattered(c, 7 + e));
}
// Noise, which no adapter is, of half a step of bfloat16.
static void noisy(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    (void)e;
    for (size_t c = 0; c < stack->cols; c++)
        row[c] *= 1 + 0x1p-8 * scattered(r * stack->cols + c, 5);
}
static void one_expert(const sinkproof_matrix *stack, size_t e, size_t r, double *row) {
    for (size_t c = 0; c < stack->cols; c++) row[c] += 0.3 * scattered(r, e) * scattered(c, 7);
}
// Two coordinates of the input are others: what is added is of rank 2 too.
static void two_channels(shown *s, double by) {
    size_t rows = s->count / s->n;
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, SINKPROOF_W_K);
    for (size_t r = 0; r < rows; r++) {
        double *row = row_of(&w, 0, r);
        for (size_t i = 0; i < s->n; i++)
            s->v[i * rows + r] = rounded(s, s->v[i * rows + r] + row[3] * by * scattered(i, 1) +
                                                row[40] * by * scattered(i, 2));
        free(row);
    }
}

// ---- inputs

// The product of the experts' weights with rows that `code` changes.
typedef void code_rows(const double *x, size_t rows, size_t cols, double by, double *y);
static void project(shown *s, sinkproof_slot slot, code_rows *code, double by) {
    sinkproof_matrix w = sinkproof_model_slot(s->model, s->layer, slot);
    bool up = slot == SINKPROOF_W_UP;
    size_t k = s->c->n_chosen, rows = s->n * (up ? 1 : k);
    double *y = malloc(rows * w.cols * sizeof *y);
    must(y != NULL);
    code(s->latest[up ? TRACE_M1 : TRACE_M8], rows, w.cols, by, y);
    for (size_t q = 0; q < s->n * k; q++) {
        const double *x = &y[(up ? q / k : q) * w.cols];
        for (size_t r = 0; r < w.rows; r++) {
            double *row = row_of(&w, (size_t)s->latest[TRACE_M3][q], r), sum = 0;
            for (size_t c = 0; c < w.cols; c++) sum += row[c] * x[c];
            s->v[q * w.rows + r] = rounded(s, sum);
            free(row);
        }
    }
    free(y);
}
static double in_e4m3(double x, double scale) {
    double at = fmax(fmin((float)(x / scale), 448), -448);
    return (float)(sinkproof_round(SINKPROOF_E4M3, at) * scale);
}
static void stale(const double *x, size_t rows, size_t cols, double by, double *y) {
    for (size_t r = 0; r < rows; r++) {
        double scale = (float)(largest_of(&x[(r > 0 ? r - 1 : 0) * cols], cols) / by);
        for (size_t c = r * cols; c < (r + 1) * cols; c++) y[c] = in_e4m3(x[c], scale);
    }
}
static void one_scale(const double *x, size_t rows, size_t cols, double by, double *y) {
    for (size_t at = 0; at < rows * cols; at++) y[at] = in_e4m3(x[at], by);
}
static void any_scale(const double *x, size_t rows, size_t cols, double by, double *y) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = r * cols; c < (r + 1) * cols; c++)
            y[c] = in_e4m3(x[c], by * (1 + (double)(r * r % 5)));
}
static void stale_scale(shown *s, double by) {
    project(s, SINKPROOF_W_UP, stale, by);
}
static void static_scale(shown *s, double by) {
    project(s, SINKPROOF_W_DOWN, one_scale, by);
}
static void scattered_scale(shown *s, double by) { // no rule
    project(s, SINKPROOF_W_DOWN, any_scale, by);
}

static const plant plants[] = {
    {IN(W_Q, -1, -1, 0, 1), .reread = tiles_by_columns, .f32 = true,
     .says = "tiles of 32 by 32, stored row by row of tiles, are read column by column"},
    {IN(W_Q, -1, -1, 0, 1), .reread = two_tiles,
     .says = "two tiles of 32 by 32 are exchanged, number 2 in row 0 of tiles and number 0 in row "
             "3"},
    {IN(W_DOWN, -1, -1, 0, 1), .reread = grid_of_tiles, .f32 = true, .alone = true,
     .says = "in another order of memory: the grid of tiles of 32 by 32 is transposed"},
    {IN(W_V, -1, -1, 0, 1), .rewrite = columns_in_blocks,
     .says = "each block of 16 columns is 2 by 4 groups of 2"},
    {IN(W_Q, -1, -1, 0, 1), .rewrite = rotated_weights, .f32 = true,
     .says = "multiplied by a Hadamard matrix in each block of 32"},
    {AT("A2.k"), .change = rotated_keys,
     .says = "is multiplied by a Hadamard matrix in each block of 16: a rotation that is not "
             "undone"},
    {IN(W_DOWN, -1, -1, 0, 1), .reread = scale_of_column, .f32 = true, .alone = true,
     .says = "rounded to int8 with one scale for each column of a matrix, the wrong axis"},
    {IN(W_UP, -1, -1, 0, 1), .reread = largest_scale, .f32 = true, .alone = true,
     .says = "whose codes have one scale for each block of 32 by 32, the largest of theirs"},
    {AT("A2.v"), .change = fused_scale, .by = 127, .f32 = true,
     .says = "rounded to int8 with one scale for queries, keys and values together"},
    {IN(W_K, -1, -1, 0, 1), .rewrite = clipped_at_size,
     .says = "clipped: none is larger than 0.15 on either side"},
    {IN(W_Q, -1, -1, 0, 1), .rewrite = clipped_to_share, .f32 = true,
     .says = "clipped to 0.75 times the largest of each row"},
    {IN(W_V, -1, -1, 0, 1), .rewrite = zero_point_late, .f32 = true,
     .says = "codes of 0 to 15 with a scale and a zero point for each row and group of 32 columns, "
             "which are read with a zero point that is 1 too large"},
    {IN(W_V, -1, -1, 0, 1), .reread = scattered_clips, .f32 = true, .not = "clipped"},
    {IN(W_V, -1, -1, 0, 1), .reread = merged, .f32 = true,
     .says = "has a matrix of rank 1 added, and differs by no more than a rounding of the weights "
             "to bfloat16"},
    {IN(W_V, -1, -1, 0, 1), .reread = noisy, .f32 = true, .not = "adapter"},
    {IN(W_UP, 3, -1, 0, 1), .reread = one_expert, .f32 = true, .alone = true, .not = "rank 2"},
    {AT("A2.k"), .change = two_channels, .by = 3, .f32 = true, .not = "adapter"},
    {AT("M5"), .change = stale_scale, .by = 448, .f32 = true, .alone = true,
     .says = "rounded to e4m3 with a scale that is not the row's own but that of the row before"},
    {AT("M9"), .change = static_scale, .by = 0.02, .f32 = true, .alone = true,
     .says = "rounded to e4m3 with one scale for all rows, about 0.02, and clamped at 8.96"},
    {AT("M9"), .change = scattered_scale, .by = 0.02, .f32 = true, .not = "scale for all rows"},
};

int main(int argc, char **argv) {
    return try_plants(plants, sizeof plants / sizeof plants[0], argc, argv);
}
