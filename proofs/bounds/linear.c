// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of a sum of products (bound.dot, bound.dot-likely, bound.linear).
//
// In any order, with or without FMA, a computed sum of n products differs from the real one
// by at most gamma_m A, A = sum |a_k b_k|, m the number of roundings that a term can pass.
//
// Likely, three steps. A theorem: in one order, with roundings independent and centred given the
// earlier ones, the error stays below u sqrt(2 L P) except with odds 2 exp(-L), P the sum of the
// squares of the rounded numbers (Azuma). A theorem: averaged over all n! orders the squared
// partial sums add up to (n + 1)(S^2 / 3 + Q / 6), S the sum, Q = sum (a_k b_k)^2. A heuristic:
// this average replaces P of the engine's order. It holds where the order does not depend on the
// values; a sum over sorted products has P of the order of n A^2 and leaves the set. No odds are
// claimed for it.
//
// S, A and Q of all rows are three matrix products. The centre itself is a binary64 matrix product:
// gamma_m(2^-53) A is added to the radius.
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/doubles.h"
#include "proofs/bounds/sum_sets.h"

#include <cblas.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// c[m, r] (+)= x[m, k] y[r, k]^T
static void matrix_product(size_t m, size_t r, size_t k, const double *x, const double *y, bool add,
                           double *c) {
    int next = k > 0 ? (int)k : 1; // also for a row without numbers
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)r, (int)k, 1.0, x, next, y,
                next, add ? 1.0 : 0.0, c, (int)r);
}

static double *sizes_or_squares(const double *x, size_t n, bool square) {
    double *y = allocate_doubles(n);
    for (size_t i = 0; y != NULL && i < n; i++) y[i] = square ? x[i] * x[i] : fabs(x[i]);
    return y;
}

//> bound.value
// sum |x| dy + dx |y| + dx dy over k for one kind of radius (worst, likely or bias).
static double *sum_of_radii(const sinkproof_planes *x, const sinkproof_planes *y, const double *dx,
                            const double *dy, const double *abs_x, const double *abs_y) {
    double *c = allocate_doubles(x->rows * y->rows);
    bool add = false;
    if (c == NULL) return NULL;
    if (dx != NULL) matrix_product(x->rows, y->rows, x->cols, dx, abs_y, false, c), add = true;
    if (dy != NULL) matrix_product(x->rows, y->rows, x->cols, abs_x, dy, add, c);
    if (dx != NULL && dy != NULL) matrix_product(x->rows, y->rows, x->cols, dx, dy, true, c);
    return c;
}
//< bound.value

// The largest size of each operand.
static double *largest_operand_sizes(const sinkproof_planes *x) {
    double *y = sizes_or_squares(x->mid, x->rows * x->cols, false);
    for (size_t i = 0; y != NULL && !x->known && i < x->rows * x->cols; i++) y[i] += x->worst[i];
    return y;
}

// ---- A and Q in binary32, from above

static double sum_of_sizes(size_t k, const double *x, const double *y, bool square) {
    double sum = 0;
    for (size_t i = 0; i < k; i++) {
        double part = fabs(x[i] * y[i]);
        sum += square ? part * part : part;
    }
    return sum * (1 + sinkproof_gamma((double)k + 4, 0x1p-53));
}

// c_ir is at least sum_k |x_ik y_rk|, or that of the squares, and at most 1 + 4 gamma_(k+4) times
// it.
static void bound_products(const sinkproof_planes *x, const sinkproof_planes *y, bool square,
                           float *found, double *c) {
    size_t m = x->rows, r = y->rows, k = x->cols;
    double grown = 1 + 2 * sinkproof_gamma((double)k + 4, 0x1p-24) + (double)k * 0x1p-26;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)r, (int)k, 1.0f,
                square ? x->f.square : x->f.size, (int)k, square ? y->f.square : y->f.size, (int)k,
                0.0f, found, (int)r);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < r; j++) {
            double scale = x->f.scale[i] * y->f.scale[j], sum = (double)found[i * r + j];
            c[i * r + j] = sum > 0x1p-100 ? sum * grown * (square ? scale * scale : scale)
                                          : sum_of_sizes(k, &x->mid[i * k], &y->mid[j * k], square);
        }
}

// 0 < |x| < tiny in one comparison: bit patterns of positive numbers are ordered, and 0 minus 1 is
// the largest.
static bool is_small(double x, double tiny) {
    uint64_t pattern, limit;
    memcpy(&pattern, &x, sizeof pattern), memcpy(&limit, &tiny, sizeof limit);
    return (pattern << 1) - 1 < (limit << 1) - 1;
}

//> bound.ftz
// What each operand may lose when it is read as zero: its whole size if it may be below `tiny`,
// else nothing. Leaves *lost_k unchanged if no operand may be that small.
static bool losses_when_read(const sinkproof_planes *x, double tiny, double **lost_k) {
    size_t n = x->rows * x->cols, small = 0;
    if (x->f.size != NULL && x->f.least >= tiny) return true;
    for (size_t i = 0; x->known && i < n; i++) small += is_small(x->mid[i], tiny);
    for (size_t i = 0; !x->known && i < n; i++) {
        double freedom = x->worst[i], size = fabs(x->mid[i]);
        small += size - freedom < tiny && size + freedom > 0;
    }
    if (small == 0) return true;
    double *lost = *lost_k = allocate_doubles(n);
    for (size_t i = 0; lost != NULL && i < n; i++) {
        double freedom = x->known ? 0 : x->worst[i], size = fabs(x->mid[i]);
        lost[i] = size - freedom < tiny ? fmin(size + freedom, tiny) : 0;
    }
    return lost != NULL;
}

// sum_k lost_x |y| + |x| lost_y, where |x| and |y| are the largest sizes of the operands. Leaves
// *flushed unchanged if nothing is lost.
static bool add_flushed_loss(const sinkproof_planes *x, const sinkproof_planes *y, double tiny,
                             double **flushed) {
    double *lost_x = NULL, *lost_y = NULL;
    bool fine = losses_when_read(x, tiny, &lost_x) && losses_when_read(y, tiny, &lost_y);
    if (fine && (lost_x != NULL || lost_y != NULL)) {
        double *reach_x = largest_operand_sizes(x), *reach_y = largest_operand_sizes(y);
        if (reach_x != NULL && reach_y != NULL)
            *flushed = sum_of_radii(x, y, lost_x, lost_y, reach_x, reach_y);
        fine = *flushed != NULL;
        free(reach_x);
        free(reach_y);
    }
    free(lost_x);
    free(lost_y);
    return fine;
}
//< bound.ftz

// Sums of a matrix unit that are emulated to see how they lean: in all, and of 128 rows of a
// weight.
enum { EMULATED = 64, FEWEST = 4 };

// A and Q by upper bounds in binary32.
static bool bound_sizes(const sinkproof_planes *x, const sinkproof_planes *y, sums *c) {
    float *found = malloc((x->rows * y->rows + 2) * sizeof *found);
    if (found == NULL) return false;
    bound_products(x, y, false, found, c->abs);
    bound_products(x, y, true, found, c->square);
    free(found);
    return true;
}

// The effect of the inputs' freedom, from the sizes of the operands and their squares.
static bool add_input_freedom(const sinkproof_planes *x, const sinkproof_planes *y,
                              const double *abs_x, const double *abs_y, const double *square_x,
                              const double *square_y, sums *c) {
    c->worst = sum_of_radii(x, y, x->worst, y->worst, abs_x, abs_y);
    c->likely = sum_of_radii(x, y, x->likely, y->likely, abs_x, abs_y);
    c->var = sum_of_radii(x, y, x->var, y->var, square_x, square_y);
    c->bias = sum_of_radii(x, y, x->bias, y->bias, abs_x, abs_y);
    return c->worst != NULL && c->likely != NULL && c->var != NULL && c->bias != NULL;
}

// A, Q and the effect of the inputs' freedom, in binary64.
static bool sum_sizes_and_freedom(const sinkproof_planes *x, const sinkproof_planes *y, sums *c) {
    size_t m = x->rows, r = y->rows, k = x->cols;
    double *abs_x = sizes_or_squares(x->mid, m * k, false),
           *abs_y = sizes_or_squares(y->mid, r * k, false);
    double *square_x = sizes_or_squares(x->mid, m * k, true),
           *square_y = sizes_or_squares(y->mid, r * k, true);
    bool fine = abs_x != NULL && abs_y != NULL && square_x != NULL && square_y != NULL;
    if (fine) {
        matrix_product(m, r, k, abs_x, abs_y, false, c->abs);
        matrix_product(m, r, k, square_x, square_y, false, c->square);
    }
    if (!x->known || !y->known)
        fine = fine && add_input_freedom(x, y, abs_x, abs_y, square_x, square_y, c);
    free(abs_x);
    free(abs_y);
    free(square_x);
    free(square_y);
    return fine;
}

// c must be empty at first; free it also if memory runs out. emulated: sums of a matrix unit.
static bool sums_prepare(const sinkproof_setting *s, const sinkproof_planes *x,
                         const sinkproof_planes *y, size_t emulated, sums *c) {
    size_t m = x->rows, r = y->rows;
    bool factored = x->known && y->known && x->f.size != NULL && y->f.size != NULL;
    if (x->mid == NULL || y->mid == NULL) return false;
    c->mid = allocate_doubles(m * r), c->abs = allocate_doubles(m * r),
    c->square = allocate_doubles(m * r);
    if (c->mid == NULL || c->abs == NULL || c->square == NULL) return false;
    matrix_product(m, r, x->cols, x->mid, y->mid, false, c->mid);
    if (s->policy->ftz && !add_flushed_loss(x, y, flushed_below(s), &c->flushed)) return false;
    if (s->core.bits > 0 && !core_sums_prepare(s, x, y, emulated, &c->unit)) return false;
    return factored ? bound_sizes(x, y, c) : sum_sizes_and_freedom(x, y, c);
}

static void sums_free(sums *c) {
    free(c->mid);
    free(c->abs);
    free(c->square);
    free(c->worst);
    free(c->likely);
    free(c->var);
    free(c->bias);
    free(c->flushed);
    core_sums_free(&c->unit);
}

static int significand_bits(sinkproof_format format) {
    return format == SINKPROOF_REAL ? 53 : -ilogb(sinkproof_unit_roundoff(format));
}

static bool products_are_exact(const sinkproof_setting *s, const sinkproof_planes *x, int bits) {
    return x->bits + bits <= significand_bits(s->policy->inside);
}

bool sinkproof_honest_products(const sinkproof_setting *s, const sinkproof_planes *x,
                               const sinkproof_planes *y, const double *terms_i, const double *b_r,
                               sinkproof_honest *out, size_t out_stride) {
    if (x->mid == NULL || y->mid == NULL) return false;
    if (x->rows == 0 || y->rows == 0) return true;
    sums c = {0};
    bool exact = products_are_exact(s, x, y->bits), fine = sums_prepare(s, x, y, EMULATED, &c);
    for (size_t i = 0; fine && i < x->rows; i++) {
        double n = terms_i != NULL ? terms_i[i] : (double)x->cols;
        row_terms t = row_error_terms(s, x, n, exact, b_r != NULL, terms_i != NULL);
        t.core.lean = c.unit.lean;
        sums_row(s, &c, &t, i, y->rows, b_r, out + i * out_stride);
    }
    sums_free(&c);
    return fine;
}

// ---- a stored weight

enum { BLOCK = 128 }; // rows of W decoded at a time: they and their factors fit the cache

struct sinkproof_linear_sums {
    sinkproof_setting s;
    sinkproof_policy narrow; // the accumulator's, if it is narrow
    size_t x_rows, rows;
    row_terms terms;
    const double *b_r;
    sums *blocks;
    sinkproof_honest *running; // [x_rows, rows] sums in a known order or in parts; else NULL
    sinkproof_honest *biased;  // the same with the bias in the first part; or NULL
};

static size_t count_block_rows(size_t rows, size_t first) {
    return rows - first < BLOCK ? rows - first : BLOCK;
}

// Decodes y.rows rows of W from `first` on, their columns from `col` on, and makes their factors if
// there is room. whole_c has room for a row of W and `minima` behind it; whole rows need it not.
static void decode_rows(const sinkproof_weight_rows *w, size_t col, size_t first, size_t minima,
                        double *whole_c, sinkproof_planes *y) {
    bool fine = y->f.size != NULL, whole = col == 0 && y->cols == w->w->cols + minima;
    y->f.least = INFINITY;
    for (size_t r = 0; r < y->rows; r++) {
        double *y_c = &y->mid[r * y->cols], *to_c = whole ? y_c : whole_c;
        (minima > 0 ? sinkproof_matrix_split_row : sinkproof_matrix_row)(w->w, w->first + first + r,
                                                                         to_c);
        if (!whole) memcpy(y_c, whole_c + col, y->cols * sizeof *y_c);
        fine = fine && factors_fill_row(&y->f, r, y_c);
    }
    if (!fine) factors_free(&y->f);
}

// Sums block by block. Returns false if memory runs out.
static bool sum_blocks(const sinkproof_setting *s, const sinkproof_planes *x,
                       const sinkproof_weight_rows *w, size_t col, sums *blocks) {
    sinkproof_planes y = {.cols = x->cols, .bits = sinkproof_matrix_bits(w->w), .known = true};
    y.mid = allocate_doubles(BLOCK * y.cols);
    double *whole_c = allocate_doubles(w->w->cols + x->sums);
    bool factored = x->f.size != NULL;
    size_t emulated = EMULATED * BLOCK / (w->rows + 1) + FEWEST;
    bool fine =
        y.mid != NULL && whole_c != NULL && (!factored || factors_allocate(BLOCK, y.cols, &y.f));
    for (size_t r0 = 0; fine && r0 < w->rows; r0 += BLOCK) {
        y.rows = count_block_rows(w->rows, r0);
        decode_rows(w, col, r0, x->sums, whole_c, &y);
        fine = sums_prepare(s, x, &y, emulated, &blocks[r0 / BLOCK]);
    }
    sinkproof_planes_free(&y);
    free(whole_c);
    return fine;
}

static bool compute_sums(sinkproof_linear_sums *linear, const sinkproof_accumulator *a,
                         const sinkproof_planes *x, const sinkproof_weight_rows *w, size_t col) {
    size_t all = x->rows * w->rows + 1;
    bool parts = honest_is_in_parts(a);
    if (parts || sinkproof_is_running(a)) linear->running = malloc(all * sizeof *linear->running);
    if (parts && a->b_r != NULL) linear->biased = malloc(all * sizeof *linear->biased);
    if (parts)
        return linear->running != NULL && (a->b_r == NULL || linear->biased != NULL) &&
               honest_parts(&linear->s, a, x, w, honest_sum_columns, linear->running,
                            linear->biased);
    if (sinkproof_is_running(a))
        return linear->running != NULL && honest_running(&linear->s, a, x, w, linear->running);
    linear->blocks = calloc(w->rows / BLOCK + 1, sizeof *linear->blocks);
    if (linear->blocks == NULL || !sum_blocks(&linear->s, x, w, col, linear->blocks)) return false;
    for (size_t b = 0; b * BLOCK < w->rows; b++)
        core_lean_merge(&linear->terms.core.lean, &linear->blocks[b].unit.lean);
    return true;
}

static sinkproof_linear_sums *sums_from_column(const sinkproof_setting *s,
                                               const sinkproof_accumulator *a,
                                               const sinkproof_planes *x,
                                               const sinkproof_weight_rows *w, size_t col) {
    sinkproof_linear_sums *linear = calloc(1, sizeof *linear);
    if (linear == NULL) return NULL;
    linear->s = setting_narrowed(s, a, &linear->narrow);
    bool exact = linear->s.u == s->u && products_are_exact(s, x, sinkproof_matrix_bits(w->w));
    // one more for a scale of the weight
    double terms = (double)x->cols + (linear->s.u == s->u ? 0 : 1);
    linear->x_rows = x->rows, linear->rows = w->rows, linear->b_r = w->b_r;
    linear->terms = row_error_terms(&linear->s, x, terms, exact, w->b_r != NULL, false);
    if (compute_sums(linear, a, x, w, col)) return linear;
    sinkproof_linear_sums_free(linear);
    return NULL;
}

sinkproof_linear_sums *sinkproof_linear_sums_with(const sinkproof_setting *s,
                                                  const sinkproof_accumulator *a,
                                                  const sinkproof_planes *x,
                                                  const sinkproof_weight_rows *w) {
    return sums_from_column(s, a, x, w, 0);
}

sinkproof_linear_sums *linear_sums_new(const sinkproof_setting *s, const sinkproof_planes *x,
                                       const sinkproof_weight_rows *w) {
    return sums_from_column(s, &(sinkproof_accumulator){.together = 0}, x, w, 0);
}

bool honest_sum_columns(const sinkproof_setting *s, const sinkproof_accumulator *a,
                        const sinkproof_planes *x, const sinkproof_weight_rows *w, size_t first,
                        sinkproof_honest *out) {
    const sinkproof_weight_rows unbiased = {w->w, w->first, w->rows, NULL};
    sinkproof_linear_sums *part = sums_from_column(s, a, x, &unbiased, first);
    for (size_t i = 0; part != NULL && i < x->rows; i++)
        sinkproof_linear_sums_row(part, i, out + i * w->rows);
    sinkproof_linear_sums_free(part);
    return part != NULL;
}

// A sum in a known order is finished before its bias.
static void finish_running_row(const sinkproof_linear_sums *linear, size_t i,
                               sinkproof_honest *y_r) {
    for (size_t r = 0; r < linear->rows; r++) {
        y_r[r] = linear->running[i * linear->rows + r];
        if (linear->b_r != NULL)
            y_r[r] = sinkproof_honest_add(y_r[r], sinkproof_exact_set(linear->b_r[r]));
    }
}

const sinkproof_honest *sinkproof_linear_sums_biased_row(const sinkproof_linear_sums *linear,
                                                         size_t i) {
    return linear->biased != NULL ? linear->biased + i * linear->rows : NULL;
}

void sinkproof_linear_sums_row(const sinkproof_linear_sums *linear, size_t i,
                               sinkproof_honest *y_r) {
    if (linear->running != NULL) {
        finish_running_row(linear, i, y_r);
        return;
    }
    for (size_t r0 = 0; r0 < linear->rows; r0 += BLOCK)
        sums_row(&linear->s, &linear->blocks[r0 / BLOCK], &linear->terms, i,
                 count_block_rows(linear->rows, r0), linear->b_r != NULL ? linear->b_r + r0 : NULL,
                 y_r + r0);
}

void sinkproof_linear_sums_free(sinkproof_linear_sums *linear) {
    if (linear == NULL) return;
    for (size_t r0 = 0; linear->blocks != NULL && r0 < linear->rows; r0 += BLOCK)
        sums_free(&linear->blocks[r0 / BLOCK]);
    free(linear->blocks);
    free(linear->running);
    free(linear->biased);
    free(linear);
}

bool sinkproof_honest_linear(const sinkproof_setting *s, const sinkproof_planes *x,
                             const sinkproof_weight_rows *w, sinkproof_honest *out,
                             size_t out_stride) {
    sinkproof_linear_sums *linear = linear_sums_new(s, x, w);
    if (linear == NULL) return false;
    for (size_t i = 0; i < x->rows; i++) sinkproof_linear_sums_row(linear, i, out + i * out_stride);
    sinkproof_linear_sums_free(linear);
    return true;
}
