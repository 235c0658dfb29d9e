// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Scales and zero points of a product's weights that are wrong: a factor of each row, of each row
// and group of columns, or of each column, or a constant for each row and group. The bias stays as
// it is. Least squares over the rows of the trace give the numbers; where those of each row follow
// from the largest weights, the rule takes their place.
#include "audit/diagnose/composed_product.h"
#include "audit/diagnose/normal_equations.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum fit_kind { GROUP_FACTORS, GROUP_SHIFTS, COLUMN_FACTORS, TABLE_OF_COLUMNS } fit_kind;
// Whose scale a group has, if a scale is as the largest weight of its group.
typedef enum scale_rule {
    FITTED,
    OF_NEXT,
    OF_BEFORE,
    OF_FIRST,
    OF_LARGEST,
    OF_NEXT_ROW,
    OF_ROW_BEFORE,
    OF_FIRST_ROW,
    SCALE_RULES
} scale_rule;
enum { KIND, GROUP, STEP, RULE }; // the numbers

enum { MOST_GROUPS = 96, ROWS_FOR_EACH = 4 }; // for each number that is fitted

// ---- each row by itself

// What the numbers of a row multiply: the part of its product in each group, or the sum of the
// input there.
static void regressors(const dense_product *p, const sinkproof_making *of, size_t r, double *a_ng) {
    size_t group = (size_t)of->numbers[GROUP], groups = p->ins / group;
    const double *w_c = p->w_rc + r * p->ins;
    for (size_t i = 0; i < p->n; i++)
        for (size_t g = 0; g < groups; g++) {
            double sum = 0;
            for (size_t c = g * group; c < (g + 1) * group; c++)
                sum += (of->numbers[KIND] == GROUP_SHIFTS ? 1 : w_c[c]) * p->x_nc[i * p->ins + c];
            a_ng[i * groups + g] = sum;
        }
}

static double largest(const dense_product *p, size_t r, size_t group, size_t g) {
    double size = 0;
    for (size_t c = g * group; c < (g + 1) * group; c++)
        size = fmax(size, fabs(p->w_rc[r * p->ins + c]));
    return size;
}

// The factors of row r by a rule.
static void ruled_factors(const dense_product *p, scale_rule rule, size_t group, size_t r,
                          double *t_g) {
    size_t groups = p->ins / group, all = p->outs * groups;
    double most = 0;
    for (size_t at = 0; rule == OF_LARGEST && at < all; at++)
        most = fmax(most, largest(p, at / groups, group, at % groups));
    for (size_t g = 0; g < groups; g++) {
        size_t row = r, of = g;
        if (rule == OF_NEXT) of = (g + 1) % groups;
        if (rule == OF_BEFORE) of = (g + groups - 1) % groups;
        if (rule == OF_FIRST) of = 0;
        if (rule == OF_NEXT_ROW) row = (r + 1) % p->outs;
        if (rule == OF_ROW_BEFORE) row = (r + p->outs - 1) % p->outs;
        if (rule == OF_FIRST_ROW) row = 0;
        double own = largest(p, r, group, g),
               other = rule == OF_LARGEST ? most : largest(p, row, group, of);
        t_g[g] = own > 0 ? other / own : 1;
    }
}

// t_g: those that fit row r best.
static void fit_row(const dense_product *p, size_t groups, const double *rest_n, const double *a_ng,
                    double *square_gg, double *t_g) {
    memset(square_gg, 0, groups * groups * sizeof *square_gg);
    memset(t_g, 0, groups * sizeof *t_g);
    for (size_t i = 0; i < p->n; i++)
        for (size_t g = 0; g < groups; g++) {
            double one = a_ng[i * groups + g];
            t_g[g] += one * rest_n[i];
            for (size_t h = g; h < groups; h++)
                square_gg[g * groups + h] += one * a_ng[i * groups + h];
        }
    solve_normal(groups, square_gg, t_g, NORMAL_DEPENDENT);
}

static bool make_rows(const sinkproof_making *of, const dense_product *p, double *y,
                      double *width) {
    size_t groups = p->ins / (size_t)of->numbers[GROUP];
    bool shifts = of->numbers[KIND] == GROUP_SHIFTS, fitted = of->numbers[RULE] == FITTED;
    double *room = malloc((p->n * (groups + 1) + groups * (groups + 1) + 1) * sizeof *room);
    if (room == NULL) return false;
    double *a_ng = room, *rest_n = a_ng + p->n * groups, *t_g = rest_n + p->n,
           *square = t_g + groups;
    for (size_t r = 0; r < p->outs; r++) {
        double size = 0;
        regressors(p, of, r, a_ng);
        for (size_t i = 0; i < p->n; i++) {
            double v = p->v_nr[i * p->outs + r];
            rest_n[i] = v - (shifts ? of->x[i * p->outs + r] : p->b_r[r]);
            size = fmax(size, fabs(v));
        }
        if (fitted)
            fit_row(p, groups, rest_n, a_ng, square, t_g);
        else
            ruled_factors(p, (scale_rule)of->numbers[RULE], (size_t)of->numbers[GROUP], r, t_g);
        double most = 1;
        for (size_t g = 0; g < groups; g++) most = fmax(most, shifts ? 1 : fabs(t_g[g]));
        for (size_t i = 0; i < p->n; i++) {
            size_t at = i * p->outs + r;
            y[at] = shifts ? of->x[at] : p->b_r[r];
            for (size_t g = 0; g < groups; g++) y[at] += t_g[g] * a_ng[i * groups + g];
            // what is fitted has the errors of what it was fitted to
            width[at] = (fitted ? of->numbers[STEP] * size : 0) +
                        dense_rounding(of, y[at] - p->b_r[r]) +
                        (of->radius != NULL ? (fitted ? 4 : 2) * most * of->radius[at] : 0);
        }
    }
    free(room);
    return true;
}

// ---- columns

// t_c: the factors of the columns that fit all rows best.
static bool fit_columns(const dense_product *p, double *t_c) {
    size_t cols = p->ins;
    double *square = calloc(cols * cols + cols + 1, sizeof *square), *a_c = square + cols * cols;
    if (square == NULL) return false;
    memset(t_c, 0, cols * sizeof *t_c);
    for (size_t at = 0; at < p->n * p->outs; at++) {
        const double *x_c = p->x_nc + at / p->outs * cols, *w_c = p->w_rc + at % p->outs * cols;
        double rest = p->v_nr[at] - p->b_r[at % p->outs];
        for (size_t c = 0; c < cols; c++) a_c[c] = x_c[c] * w_c[c];
        for (size_t c = 0; c < cols; c++) {
            t_c[c] += a_c[c] * rest;
            for (size_t e = c; e < cols; e++) square[c * cols + e] += a_c[c] * a_c[e];
        }
    }
    solve_normal(cols, square, t_c, NORMAL_DEPENDENT);
    free(square);
    return true;
}

static bool make_columns(const sinkproof_making *of, const dense_product *p, double *y,
                         double *width) {
    double *t_c = malloc((p->ins + 1) * sizeof *t_c), most = 1;
    bool fitted = of->numbers[KIND] == COLUMN_FACTORS;
    bool fine = t_c != NULL && (!fitted || fit_columns(p, t_c));
    if (fine && !fitted) memcpy(t_c, of->table, p->ins * sizeof *t_c);
    for (size_t c = 0; fine && c < p->ins; c++) most = fmax(most, fabs(t_c[c]));
    for (size_t at = 0; fine && at < of->all; at++) {
        const double *x_c = p->x_nc + at / p->outs * p->ins, *w_c = p->w_rc + at % p->outs * p->ins;
        y[at] = p->b_r[at % p->outs];
        for (size_t c = 0; c < p->ins; c++) y[at] += t_c[c] * x_c[c] * w_c[c];
        width[at] = (fitted ? of->numbers[STEP] * fmax(fabs(y[at]), fabs(p->v_nr[at])) : 0) +
                    dense_rounding(of, y[at] - p->b_r[at % p->outs]) +
                    (of->radius != NULL ? (fitted ? 4 : 2) * most * of->radius[at] : 0);
    }
    free(t_c);
    return fine;
}

static bool make_projection(const sinkproof_making *of, double *y, double *width) {
    dense_product p;
    bool known, fine = dense_product_read(of, &p, &known) && known;
    size_t group = (size_t)of->numbers[GROUP];
    if (fine && of->numbers[KIND] < COLUMN_FACTORS)
        fine = group > 0 && p.ins % group == 0 && p.ins / group <= MOST_GROUPS &&
               make_rows(of, &p, y, width);
    else if (fine)
        fine = make_columns(of, &p, y, width);
    dense_product_free(&p);
    return fine;
}

// ---- trials

static made_kind made_of(const operation *o, fit_kind kind, size_t group, scale_rule rule) {
    // a table of columns is of whole numbers
    bool fitted = rule == FITTED && kind != TABLE_OF_COLUMNS;
    made_kind made = {.make = make_projection, .measured = true, .fitted = fitted};
    made.numbers[KIND] = kind, made.numbers[GROUP] = (double)group;
    made.numbers[STEP] = o->c->step, made.numbers[RULE] = rule;
    return made;
}

static bool try_rows(const operation *o, const dense_product *p, fit_kind kind, size_t group) {
    static const char *const ruled[SCALE_RULES] = {
        [OF_NEXT] = "those of the next group",    [OF_BEFORE] = "those of the group before",
        [OF_FIRST] = "that of the row's first",   [OF_LARGEST] = "one for all, the largest",
        [OF_NEXT_ROW] = "those of the next row",  [OF_ROW_BEFORE] = "those of the row before",
        [OF_FIRST_ROW] = "those of the first row"};
    static const char *const ids[SCALE_RULES] = {"fitted",  "next",     "before",     "first",
                                                 "largest", "next-row", "row-before", "first-row"};
    const char *weights = composed_slot_words(o->slots[0]);
    char each[160];
    bool whole = group == p->ins, fine = true;
    if (whole)
        snprintf(each, sizeof each, "each row");
    else
        snprintf(each, sizeof each, "each row and group of %s",
                 sinkproof_counted(group, "column").text);
    for (int rule = kind == GROUP_FACTORS ? SCALE_RULES - 1 : FITTED;
         rule >= FITTED && fine && o->c->found == NULL; rule--) {
        bool of_groups = rule >= OF_NEXT && rule <= OF_FIRST;
        made_kind made = made_of(o, kind, group, (scale_rule)rule);
        if (group == p->ins) made.fitted = false; // one number for each row
        if (of_groups && whole) continue;
        snprintf(made.id, sizeof made.id, "%s-%zu-%s",
                 kind == GROUP_FACTORS ? "weight-scales" : "zero-points", group, ids[rule]);
        if (kind == GROUP_SHIFTS)
            snprintf(made.text, sizeof made.text,
                     "is computed with %s that are shifted by a constant of their own in %s: other "
                     "zero points",
                     weights, each);
        else if (rule == FITTED)
            snprintf(
                made.text, sizeof made.text,
                "is computed with %s that are multiplied by a number of their own in %s: other "
                "scales",
                weights, each);
        else
            snprintf(made.text, sizeof made.text,
                     "is computed with %s whose scales (the largest weight of %s) are %s", weights,
                     each, ruled[rule]);
        fine = composing_try_made(o, &made);
    }
    return fine;
}

// Columns that are left out, or counted otherwise, and no others; NULL: they are not whole numbers.
static bool try_whole_columns(const operation *o, const dense_product *p, const double *t_c) {
    composing *c = o->c;
    made_kind made = made_of(o, TABLE_OF_COLUMNS, 1, FITTED);
    double *whole_c = calloc(p->ins + 1, sizeof *whole_c), by = 1;
    uint8_t *marks = calloc(p->ins + 1, 1);
    bool whole = whole_c != NULL && marks != NULL, fine = whole;
    for (size_t k = 0; whole && k < p->ins; k++) {
        whole_c[k] = nearbyint(t_c[k]) + 0.0; // no negative zero
        marks[k] = whole_c[k] != 1;
        if (marks[k] && by != 1) whole = whole_c[k] == by;
        if (marks[k]) by = whole_c[k];
        whole = whole && fabs(t_c[k] - whole_c[k]) < 0.25;
    }
    if (whole && by != 1) {
        char columns[160];
        size_t runs = write_runs(columns, sizeof columns, p->ins, marks, 8);
        bool one = runs == 1 && strchr(columns, '-') == NULL;
        made.table = composing_keep_numbers(c, p->ins, whole_c);
        snprintf(made.id, sizeof made.id, "columns-times-%g-%.24s", by, columns);
        for (char *at = made.id; *at != '\0'; at++)
            if (*at == ' ') *at = '+';
        snprintf(made.text, sizeof made.text,
                 "is computed without column%s %s of its input, which %s left out of the product",
                 one ? "" : "s", columns, one ? "is" : "are");
        if (by != 0)
            snprintf(made.text, sizeof made.text,
                     "is computed with column%s %s of its input multiplied by %g", one ? "" : "s",
                     columns, by);
        fine = made.table != NULL && composing_try_made(o, &made);
    }
    free(whole_c);
    free(marks);
    return fine;
}

static bool try_columns(const operation *o, const dense_product *p) {
    composing *c = o->c;
    double *t_c = malloc((p->ins + 1) * sizeof *t_c), least = INFINITY, most = -INFINITY;
    bool fine = t_c != NULL && fit_columns(p, t_c);
    for (size_t k = 0; fine && k < p->ins; k++)
        least = fmin(least, t_c[k]), most = fmax(most, t_c[k]);
    fine = (fine || fail_for_memory(c->s)) && try_whole_columns(o, p, t_c);
    free(t_c);
    if (!fine || c->found != NULL) return fine;
    made_kind made = made_of(o, COLUMN_FACTORS, 1, FITTED);
    snprintf(made.id, sizeof made.id, "column-factors");
    snprintf(made.text, sizeof made.text,
             "is computed with a factor for each column (channel) of its input: smoothing factors "
             "of the weights that the input is not divided by, or other scales of the columns");
    return composing_try_made(o, &made);
}

// How far the sample is if the columns [first, end) are multiplied by the number that fits best,
// which is *by. prefix_sc: the sums of the first columns of each element of the sample.
static double span_misfit(const operation *o, const double *prefix_sc, size_t cols, size_t first,
                          size_t end, double *by) {
    double pp = 0, pv = 0, vv = 0;
    for (size_t s = 0; s < o->n; s++) {
        const double *sum_c = prefix_sc + s * (cols + 2);
        double part = sum_c[end] - sum_c[first], rest = sum_c[cols + 1] - sum_c[cols];
        double w = 1 / fmax(o->c->hi[o->at[s]] - o->c->lo[o->at[s]], o->c->least);
        pp += part * part * w * w, pv += part * rest * w * w, vv += rest * rest * w * w;
    }
    *by = 1 + (pp > 0 ? pv / pp : 0);
    return pp > 0 ? vv - pv * pv / pp : INFINITY;
}

// Tries the columns [first, end) multiplied by a number.
static bool try_span(const operation *o, const dense_product *p, size_t first, size_t end,
                     double by) {
    made_kind made = made_of(o, TABLE_OF_COLUMNS, 1, FITTED);
    double half = nearbyint(2 * by) / 2 + 0.0; // no negative zero
    if (fabs(by - half) > 0.02) return true;
    double *t_c = malloc((p->ins + 1) * sizeof *t_c);
    if (t_c == NULL) return fail_for_memory(o->c->s);
    for (size_t k = 0; k < p->ins; k++) t_c[k] = k >= first && k < end ? half : 1;
    made.table = composing_keep_numbers(o->c, p->ins, t_c);
    free(t_c);
    char which[64];
    if (end > first + 1)
        snprintf(which, sizeof which, "columns %zu-%zu", first, end - 1);
    else
        snprintf(which, sizeof which, "column %zu", first);
    snprintf(made.id, sizeof made.id, "columns-%zu-%zu-times-%g", first, end - 1, half);
    if (half == 0)
        snprintf(made.text, sizeof made.text,
                 "is computed without %s of its input, left out of the sum%s", which,
                 end == p->ins ? ", which ends before the last"
                 : first == 0  ? ", which begins behind the first"
                               : "");
    else
        snprintf(made.text, sizeof made.text, "is computed with %s of its input multiplied by %g",
                 which, half);
    return made.table != NULL && composing_try_made(o, &made);
}

// The columns from one on up to another that fit best, of those that begin and end at multiples.
static bool try_spans(const operation *o, const dense_product *p) {
    size_t cols = p->ins, unit = 1 + (cols - 1) / 192, from = 0, to = 0;
    double *prefix_sc = malloc((o->n * (cols + 2) + 1) * sizeof *prefix_sc), by = 1, at_best = 1;
    double least = INFINITY;
    if (prefix_sc == NULL) return fail_for_memory(o->c->s);
    while (cols % unit != 0) unit++;
    for (size_t s = 0; s < o->n; s++) {
        size_t i = o->at[s] / p->outs, r = o->at[s] % p->outs;
        double *sum_c = prefix_sc + s * (cols + 2);
        sum_c[0] = 0;
        for (size_t k = 0; k < cols; k++)
            sum_c[k + 1] = sum_c[k] + p->w_rc[r * cols + k] * p->x_nc[i * cols + k];
        sum_c[cols + 1] = p->v_nr[i * p->outs + r] - p->b_r[r];
    }
    for (size_t first = 0; first < cols; first += unit)
        for (size_t end = first + unit; end <= cols; end += unit) {
            double misfit = span_misfit(o, prefix_sc, cols, first, end, &by);
            if (end - first < cols && misfit < least)
                least = misfit, from = first, to = end, at_best = by;
        }
    free(prefix_sc);
    return to == 0 || try_span(o, p, from, to, at_best);
}

// Whether the elements outside are spread over rows and columns.
static bool is_spread(const composing *c) {
    size_t outside = 0;
    for (size_t at = 0; at < c->elements; at++) outside += c->marks[at];
    return 4 * outside > c->elements && c->n >= 8;
}

static bool search_scales(const operation *o, const dense_product *p) {
    static const size_t sizes[] = {128, 64, 48, 32, 16};
    const composing *c = o->c;
    if (!is_spread(c)) return true;
    bool square = (double)p->n * (double)p->outs * (double)p->ins * (double)p->ins < 1e9;
    bool fine = try_spans(o, p);
    if (fine && c->found == NULL && square && p->n * p->outs >= ROWS_FOR_EACH * p->ins)
        fine = try_columns(o, p);
    for (int kind = GROUP_FACTORS; kind <= GROUP_SHIFTS && fine && c->found == NULL; kind++) {
        fine = kind == GROUP_SHIFTS || try_rows(o, p, GROUP_FACTORS, p->ins);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && fine && c->found == NULL; s++)
            if (p->ins % sizes[s] == 0 && p->ins > sizes[s] && p->ins / sizes[s] <= MOST_GROUPS &&
                p->n >= ROWS_FOR_EACH * (p->ins / sizes[s]))
                fine = try_rows(o, p, (fit_kind)kind, sizes[s]);
    }
    return fine;
}

bool compose_projection(composing *c) {
    dense_search *const searches[] = {search_scales};
    return compose_dense(c, 1, searches);
}
