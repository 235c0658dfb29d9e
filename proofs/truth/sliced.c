// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A block of rows is decoded once. From its weights slice after slice is taken, until nothing is
// left: the first is a matrix of short integers, and what it leaves of the smallest weights is
// sparse. Each slice is multiplied by the digits of all tokens, one column for a digit. A token's
// sums are then joined to one integer, exactly. The sizes of the weights, rounded up, are
// multiplied by the radii, which are short integers too.
#include "proofs/truth/sliced.h"

#include "proofs/bounds/bounds.h"
#include "proofs/truth/share_work.h"
#include "proofs/truth/sliced_internal.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_ROWS = 96,
    FEW_ROWS = 8,          // of a block, and
    FEW_DIGITS = 160,      // columns of digits at most, with which the rows stay in the cache
    BLAS_BYTES = 1 << 25,  // of a thread's buffer in OpenBLAS
    CHUNK_BYTES = 1 << 28, // of the digits of the tokens that are multiplied together
};

// The memory of a thread, and what it counted.
typedef struct scratch {
    // A block's weights, or what is left of them, their integers, upper bounds and sums.
    double *rest_rc, *h_rc, *up_rc, *sum_rk, *sizes_r;
    double *few_k, *few_h; // what is left of a row in a few places, and its integers
    uint32_t *left_at;
    int *exponent_r, *up_exponent_r;
    bool *refused_r;
    mp_ptr limb_k;
    arf_t term;
    arb_t rounded;
    size_t slices, dense, sparse, plain_rows; // dense: weights times slices
} scratch;

// Columns of integers in panels of so many, which lie beside each other; those behind the last are
// 0. The library multiplies one panel of all.
typedef struct panels {
    size_t wide, panel;
    double *at_pck;
} panels;

typedef struct product {
    arb_ptr out_nr;
    arb_srcptr x_nc, bias_r; // bias_r may be NULL
    size_t n, rows, cols, block;
    const sinkproof_matrix *w_rc;
    slong bits;
    int digit_bits;
    slice_point *point_i;
    size_t *first_i;       // a token's first column of digits
    panels digits, radius; // a column of radii for each token,
    slice_radii radii;     // or the radii of a few tokens,
    double *few_radius_ic; // here
    const slice_lanes *lanes;
    bool balls, refused; // some token has a radius; is refused
    bool own;            // the lanes multiply, not the library
    scratch *scratch_t;
} product;

static void *room_for(size_t n, size_t size) {
    void *made = calloc(n + 1, size);
    if (made == NULL) abort();
    return made;
}

// ---- a block of rows

static panels make_panels(const product *p, size_t wide) {
    panels of = {wide, p->own ? p->lanes->panel : wide > 0 ? wide : 1, NULL};
    of.at_pck = room_for((wide + of.panel - 1) / of.panel * of.panel * p->cols, sizeof(double));
    return of;
}

static double *panels_at(const panels *of, size_t cols, size_t c, size_t k) {
    return &of->at_pck[(k / of->panel * cols + c) * of->panel + k % of->panel];
}

// sum_rk = the product of a block's integers with the columns. A panel stays in the cache while all
// rows pass.
static void multiply_panels(const product *p, const double *h_rc, size_t count, const panels *of,
                            double *block_rk) {
    const slice_lanes *lanes = p->lanes;
    double sum_rk[SLICE_PANEL_ROWS_MOST * SLICE_PANEL_MOST];
    for (size_t k = 0; k < of->wide; k += lanes->panel)
        for (size_t first = 0; first < count; first += lanes->panel_rows) {
            size_t rows = count - first < lanes->panel_rows ? count - first : lanes->panel_rows;
            size_t columns = of->wide - k < lanes->panel ? of->wide - k : lanes->panel;
            lanes->multiply(h_rc + first * p->cols, rows, p->cols, of->at_pck + k * p->cols,
                            columns, sum_rk);
            for (size_t r = 0; r < rows; r++)
                memcpy(block_rk + (first + r) * of->wide + k, sum_rk + r * lanes->panel,
                       columns * sizeof *sum_rk);
        }
}

static void multiply_dense(const product *p, const double *h_rc, size_t count, const panels *of,
                           double *sum_rk) {
    const int wide = (int)of->wide, cols = (int)p->cols;
    if (p->own)
        multiply_panels(p, h_rc, count, of, sum_rk);
    else
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count, wide, cols, 1.0, h_rc,
                    cols, of->at_pck, wide, 0.0, sum_rk, wide);
}

// sum_k += h times the digits of column c.
static void add_integer(const product *p, double h, size_t c, double *sum_k) {
    const panels *of = &p->digits;
    for (size_t k = 0; k < of->wide; k += of->panel) {
        const double *digit_j = panels_at(of, p->cols, c, k);
        size_t columns = of->wide - k < of->panel ? of->wide - k : of->panel;
        for (size_t j = 0; j < columns; j++) sum_k[k + j] += h * digit_j[j];
    }
}

static void multiply_sparse(const product *p, const scratch *s, size_t count) {
    memset(s->sum_rk, 0, count * p->digits.wide * sizeof *s->sum_rk);
    for (size_t r = 0; r < count; r++)
        for (size_t c = 0; c < p->cols; c++) {
            double h = s->h_rc[r * p->cols + c];
            if (h != 0) add_integer(p, h, c, s->sum_rk + r * p->digits.wide);
        }
}

static void set_radius(const product *p, const scratch *s, size_t row, size_t r, size_t i,
                       double units) {
    slong unit = s->up_exponent_r[r] + p->point_i[i].radius_low;
    if (units > 0)
        mag_set_ui_2exp_si(arb_radref(p->out_nr + i * p->rows + row), (ulong)units, unit);
}

static void add_radii(const product *p, scratch *s, size_t first, size_t count) {
    multiply_dense(p, s->up_rc, count, &p->radius, s->sum_rk);
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < p->n && !s->refused_r[r]; i++)
            set_radius(p, s, first + r, r, i, s->sum_rk[r * p->n + i]);
}

// Of a row's slice, the sums of all tokens: joined and added to the midpoints, exactly.
static void add_row(const product *p, scratch *s, size_t row, int exponent, const double *sum_k) {
    for (size_t i = 0; i < p->n; i++) {
        const slice_point *point = &p->point_i[i];
        arf_ptr middle = arb_midref(p->out_nr + i * p->rows + row);
        size_t digits = p->first_i[i + 1] - p->first_i[i];
        if (digits == 0) continue;
        slice_join(s->term, sum_k + p->first_i[i], digits, p->digit_bits, s->limb_k);
        arf_mul_2exp_si(s->term, s->term, exponent + point->low);
        if (arf_is_zero(middle))
            arf_swap(middle, s->term);
        else
            arf_add(middle, middle, s->term, ARF_PREC_EXACT, ARF_RND_DOWN);
    }
}

// What the first slice of row r left in a few places: slice after slice, an integer at a time.
static void add_left(const product *p, scratch *s, size_t row, size_t r, size_t left) {
    const double *rest_c = s->rest_rc + r * p->cols;
    double *sum_k = s->sum_rk; // free until the block is multiplied
    slice_found found = {.left_at = NULL};
    slice_outcome outcome = SLICE_TAKEN;
    size_t number = 1;
    for (size_t k = 0; k < left; k++) s->few_k[k] = rest_c[s->left_at[k]];
    for (; number < SLICES_MOST; number++) {
        int exponent;
        outcome = slice_take(s->few_k, &s->sizes_r[r], left, SLICE_ROOM - p->digit_bits, s->few_h,
                             &exponent, &found);
        if (outcome != SLICE_TAKEN) break;
        s->sparse += found.count;
        if (p->digits.wide == 0) continue;
        memset(sum_k, 0, p->digits.wide * sizeof *sum_k);
        for (size_t k = 0; k < left; k++)
            if (s->few_h[k] != 0) add_integer(p, s->few_h[k], s->left_at[k], sum_k);
        add_row(p, s, row, exponent, sum_k);
    }
    s->refused_r[r] = outcome != SLICE_NONE;
    s->sizes_r[r] = 0;
    if (number > s->slices) s->slices = number;
}

// A slice of row r; returns the number of its nonzero integers.
static size_t take_slice(const product *p, scratch *s, size_t first, size_t r, size_t number) {
    double *h_c = s->h_rc + r * p->cols;
    slice_found found = {.left_at = number == 0 ? s->left_at : NULL};
    slice_outcome outcome = SLICE_NONE;
    if (!s->refused_r[r])
        outcome = slice_take(s->rest_rc + r * p->cols, &s->sizes_r[r], p->cols,
                             SLICE_ROOM - p->digit_bits, h_c, &s->exponent_r[r], &found);
    if (outcome == SLICE_TAKEN && number < SLICES_MOST) {
        if (found.left > 0 && found.left <= p->cols / SPARSE_SHARE)
            add_left(p, s, first + r, r, found.left);
        return found.count;
    }
    if (outcome != SLICE_NONE) s->refused_r[r] = true;
    memset(h_c, 0, p->cols * sizeof *h_c);
    return 0;
}

// The upper bounds of a row's sizes, or what they make of the radii of a few tokens.
static void bound_row(const product *p, scratch *s, size_t first, size_t r) {
    double *up_c = s->up_rc + r * p->cols, dot_i[SLICE_FEW_TOKENS];
    slice_radii radii = p->radii;
    radii.dot_i = dot_i;
    slice_outcome outcome =
        slice_bound(s->rest_rc + r * p->cols, s->sizes_r[r], p->cols, SLICE_ROOM - RADIUS_BITS,
                    up_c, &s->up_exponent_r[r], radii.tokens > 0 ? &radii : NULL);
    s->refused_r[r] = outcome == SLICE_REFUSED;
    if (radii.tokens == 0 && outcome != SLICE_TAKEN) memset(up_c, 0, p->cols * sizeof *up_c);
    for (size_t i = 0; i < radii.tokens && outcome == SLICE_TAKEN; i++)
        set_radius(p, s, first + r, r, i, dot_i[i]);
}

// Decodes a row; its upper bounds and its first slice.
static size_t begin_row(const product *p, scratch *s, size_t first, size_t r) {
    double *rest_c = s->rest_rc + r * p->cols;
    for (size_t i = 0; i < p->n; i++) arb_zero(p->out_nr + i * p->rows + first + r);
    sinkproof_matrix_row(p->w_rc, first + r, rest_c);
    s->sizes_r[r] = slice_sum_of_sizes(rest_c, p->cols);
    s->refused_r[r] = false;
    if (p->balls) bound_row(p, s, first, r);
    return take_slice(p, s, first, r, 0);
}

// A row or a token that no slices hold.
static void multiply_plainly(const product *p, size_t r, const bool *whole_row) {
    arb_ptr row_c = ball_vector(p->cols);
    double *scratch_c = room_for(p->cols, sizeof *scratch_c);
    sinkproof_truth_row(row_c, p->w_rc, r, scratch_c);
    for (size_t i = 0; i < p->n; i++) {
        if (!*whole_row && !p->point_i[i].refused) continue;
        arb_dot(p->out_nr + i * p->rows + r, p->bias_r != NULL ? p->bias_r + r : NULL, 0, row_c, 1,
                p->x_nc + i * p->cols, 1, (slong)p->cols, p->bits);
    }
    free(scratch_c);
    ball_vector_release(row_c, p->cols);
}

// The only rounding.
static void finish_row(const product *p, scratch *s, size_t first, size_t r) {
    for (size_t i = 0; i < p->n && !s->refused_r[r]; i++) {
        arb_ptr out = p->out_nr + i * p->rows + first + r;
        if (p->bias_r != NULL) arb_add(out, out, p->bias_r + first + r, ARF_PREC_EXACT);
        arb_set_round(s->rounded, out, p->bits);
        arb_trim(s->rounded, s->rounded);
        arb_clear(out); // its memory was of the exact sum's size
        arb_init(out);
        arb_set(out, s->rounded);
    }
    if (s->refused_r[r] || p->refused) multiply_plainly(p, first + r, &s->refused_r[r]);
}

static void multiply_slice(const product *p, scratch *s, size_t first, size_t count,
                           size_t nonzero) {
    bool dense = nonzero > count * p->cols / SPARSE_SHARE;
    *(dense ? &s->dense : &s->sparse) += dense ? count * p->cols : nonzero;
    if (p->digits.wide == 0) return;
    if (dense)
        multiply_dense(p, s->h_rc, count, &p->digits, s->sum_rk);
    else
        multiply_sparse(p, s, count);
    for (size_t r = 0; r < count; r++)
        if (!s->refused_r[r])
            add_row(p, s, first + r, s->exponent_r[r], s->sum_rk + r * p->digits.wide);
}

static bool is_left(const scratch *s, size_t count) {
    bool left = false;
    for (size_t r = 0; r < count; r++) left = left || (s->sizes_r[r] != 0 && !s->refused_r[r]);
    return left;
}

static void multiply_block(void *context, size_t piece, size_t worker) {
    const product *p = context;
    scratch *s = &p->scratch_t[worker];
    size_t first = piece * p->block, nonzero = 0;
    size_t count = p->rows - first < p->block ? p->rows - first : p->block;
    for (size_t r = 0; r < count; r++) nonzero += begin_row(p, s, first, r);
    if (p->balls && p->radii.tokens == 0) add_radii(p, s, first, count);
    for (size_t number = 1; nonzero > 0; number++) {
        multiply_slice(p, s, first, count, nonzero);
        if (number > s->slices) s->slices = number;
        nonzero = 0;
        if (!is_left(s, count)) break;
        for (size_t r = 0; r < count; r++) nonzero += take_slice(p, s, first, r, number);
    }
    for (size_t r = 0; r < count; r++) {
        s->plain_rows += s->refused_r[r];
        finish_row(p, s, first, r);
    }
}

// ---- the tokens

static void set_numbers(void *context, size_t i, size_t worker) {
    const product *p = context;
    const slice_point *point = &p->point_i[i];
    size_t first = p->first_i[i], digits = p->first_i[i + 1] - first;
    double *digit_j = p->scratch_t[worker].sum_rk; // free until a block is multiplied
    for (size_t c = 0; c < p->cols && !point->refused; c++) {
        double *radius = p->few_radius_ic != NULL ? &p->few_radius_ic[i * p->radii.stride + c]
                                                  : panels_at(&p->radius, p->cols, c, i);
        slice_number(point, p->x_nc + i * p->cols + c, p->digit_bits, digit_j, digits, radius);
        for (size_t j = 0, run; j < digits; j += run) {
            run = p->digits.panel - (first + j) % p->digits.panel; // that lie beside each other
            if (run > digits - j) run = digits - j;
            memcpy(panels_at(&p->digits, p->cols, c, first + j), digit_j + j,
                   run * sizeof *digit_j);
        }
    }
}

static void set_point(void *context, size_t i, size_t worker) {
    const product *p = context;
    (void)worker;
    p->point_i[i] = slice_fixed_point(p->x_nc + i * p->cols, p->cols, p->bits);
}

static void multiply(product *p, size_t threads, sliced_account *account) {
    for (size_t i = 0; i < p->n; i++) {
        const slice_point *point = &p->point_i[i];
        size_t digits = point->refused ? 0 : slice_digits(point, p->digit_bits);
        p->first_i[i + 1] = p->first_i[i] + digits;
        p->balls = p->balls || point->ball;
        p->refused = p->refused || point->refused;
        account->plain_tokens += point->refused;
        if (digits > account->digits) account->digits = digits;
    }
    p->digits = make_panels(p, p->first_i[p->n]);
    if (p->n <= SLICE_FEW_TOKENS) {
        size_t stride = (p->cols + SLICE_LANES - 1) / SLICE_LANES * SLICE_LANES;
        p->few_radius_ic = room_for(stride * p->n, sizeof *p->few_radius_ic);
        p->radii = (slice_radii){.tokens = p->n, .radius_ic = p->few_radius_ic, .stride = stride};
    } else
        p->radius = make_panels(p, p->n);
    truth_share(threads, p->n, set_numbers, p);
    truth_share(threads, (p->rows + p->block - 1) / p->block, multiply_block, p);
    free(p->digits.at_pck);
    free(p->radius.at_pck);
    free(p->few_radius_ic);
}

static void make_scratch(product *p, size_t threads, size_t wide, size_t digits) {
    p->scratch_t = room_for(threads, sizeof *p->scratch_t);
    for (size_t t = 0; t < threads; t++) {
        scratch *s = &p->scratch_t[t];
        s->rest_rc = room_for(p->block * p->cols, sizeof *s->rest_rc);
        s->h_rc = room_for(p->block * p->cols, sizeof *s->h_rc);
        s->up_rc = room_for(p->block * p->cols, sizeof *s->up_rc);
        s->sizes_r = room_for(p->block, sizeof *s->sizes_r);
        s->few_k = room_for(p->cols, sizeof *s->few_k);
        s->few_h = room_for(p->cols, sizeof *s->few_h);
        s->left_at = room_for(p->cols, sizeof *s->left_at);
        s->sum_rk = room_for(p->block * wide, sizeof *s->sum_rk);
        s->exponent_r = room_for(p->block, sizeof *s->exponent_r);
        s->up_exponent_r = room_for(p->block, sizeof *s->up_exponent_r);
        s->refused_r = room_for(p->block, sizeof *s->refused_r);
        s->limb_k = room_for(slice_limbs(digits, p->digit_bits), sizeof *s->limb_k);
        arf_init(s->term);
        arb_init(s->rounded);
    }
}

static void release_scratch(product *p, size_t threads, sliced_account *account) {
    double weights = (double)p->rows * (double)p->cols;
    for (size_t t = 0; t < threads; t++) {
        scratch *s = &p->scratch_t[t];
        account->slices = s->slices > account->slices ? s->slices : account->slices;
        account->dense += (double)s->dense / weights;
        account->sparse += (double)s->sparse / weights;
        account->plain_rows += s->plain_rows;
        free(s->rest_rc);
        free(s->h_rc);
        free(s->up_rc);
        free(s->sizes_r);
        free(s->few_k);
        free(s->few_h);
        free(s->left_at);
        free(s->sum_rk);
        free(s->exponent_r);
        free(s->up_exponent_r);
        free(s->refused_r);
        free(s->limb_k);
        arf_clear(s->term);
        arb_clear(s->rounded);
    }
    free(p->scratch_t);
}

// Tokens that are multiplied together, with so many digits each.
static size_t tokens_together(size_t cols, size_t each, size_t n) {
    size_t most = CHUNK_BYTES / sizeof(double) / cols + 1, together = most / each + 1;
    return together < n ? together : n;
}

double sinkproof_sliced_bytes(size_t rows, size_t cols, size_t n, slong bits, size_t threads) {
    size_t each = (size_t)(bits + SLICED_GUARD_BITS + 1) / DIGIT_BITS_LEAST + 1;
    size_t together = tokens_together(cols, each, n);
    double wide = (double)(together * each + SLICE_PANEL_MOST),
           block = rows < BLOCK_ROWS ? (double)rows : BLOCK_ROWS;
    double numbers = sizeof(double) * (double)cols * (wide + (double)together + SLICE_PANEL_MOST);
    double packed = sizeof(double) * (double)cols * (block + wide); // both operands, by OpenBLAS
    if (packed > BLAS_BYTES) packed = BLAS_BYTES;
    double of_thread = sizeof(double) * block * (3 * (double)cols + wide) + packed;
    return numbers + (double)threads * of_thread;
}

void sliced_linear_by(const slice_lanes *lanes, arb_ptr out_nr, arb_srcptr x_nc, size_t n,
                      const sinkproof_matrix *w_rc, const sinkproof_matrix *b_r, slong bits,
                      size_t threads, sliced_account *account) {
    size_t rows = w_rc->rows, cols = w_rc->cols, wide = n, digits = 0;
    slong size = 0;
    sliced_account counted = {0};
    product all = {.x_nc = x_nc, .cols = cols, .w_rc = w_rc, .bits = bits};
    if (threads == 0) threads = 1;
    all.point_i = room_for(n, sizeof *all.point_i);
    all.first_i = room_for(n + 1, sizeof *all.first_i);
    truth_share(threads, n, set_point, &all);
    for (size_t i = 0; i < n; i++)
        if (!all.point_i[i].refused && all.point_i[i].size > size) size = all.point_i[i].size;
    all.digit_bits = counted.digit_bits = sliced_choose(w_rc, size, n, NULL);
    for (size_t i = 0; i < n; i++)
        if (!all.point_i[i].refused) digits += slice_digits(&all.point_i[i], all.digit_bits);
    size_t each = (size_t)(size + 1) / (size_t)all.digit_bits + 1;
    size_t together = tokens_together(cols, each, n);
    if (wide < digits) wide = digits;
    if (wide > together * each) wide = together * each;
    all.rows = rows;
    all.lanes = lanes;
    all.own = all.lanes->multiply != NULL && digits <= all.lanes->columns_most;
    size_t most = all.own && digits > 0 && digits <= FEW_DIGITS ? FEW_ROWS : BLOCK_ROWS;
    all.block = (rows + threads - 1) / threads < most ? (rows + threads - 1) / threads : most;
    arb_ptr bias_r = NULL;
    if (b_r != NULL && b_r->count > 0) {
        double *scratch_r = room_for(rows, sizeof *scratch_r);
        bias_r = ball_vector(rows);
        sinkproof_truth_row(bias_r, b_r, 0, scratch_r);
        free(scratch_r);
    }
    all.bias_r = bias_r;
    make_scratch(&all, threads, wide > together ? wide : together, each);
    sinkproof_times_begin();
    for (size_t first = 0; first < n; first += together) {
        product part = all;
        part.n = n - first < together ? n - first : together;
        part.out_nr = out_nr + first * rows;
        part.x_nc = x_nc + first * cols;
        part.point_i = all.point_i + first;
        multiply(&part, threads, &counted);
    }
    sinkproof_times_end();
    release_scratch(&all, threads, &counted);
    ball_vector_release(bias_r, rows);
    free(all.point_i);
    free(all.first_i);
    if (account != NULL) *account = counted;
}

void sinkproof_sliced_linear(arb_ptr out_nr, arb_srcptr x_nc, size_t n,
                             const sinkproof_matrix *w_rc, const sinkproof_matrix *b_r, slong bits,
                             size_t threads, sliced_account *account) {
    sliced_linear_by(slice_lanes_here(), out_nr, x_nc, n, w_rc, b_r, bits, threads, account);
}
