// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is computed from keys or values that are a table.
#include "audit/diagnose/composed_read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { OF_KEYS, FIRST, ROWS, STEP, TIMES }; // the numbers

// ---- what is computed from a table

static bool is_read(read_passes p, size_t i, size_t j) {
    if (p.rows == 0) return true;
    return i >= p.first && j < p.first + (i - p.first) / p.rows * p.rows;
}

static void read_key(kernel *x, bool of_keys, read_passes p, const double *numbers, size_t h,
                     size_t i, size_t j) {
    bool other = is_read(p, i, j);
    kernel_read(x, of_keys && other ? numbers : x->k, !of_keys && other ? numbers : x->v, h, i, j);
}

static size_t output_of(kernel *x, bool of_keys, read_passes p, const double *numbers, size_t h,
                        size_t i, double *y_c) {
    size_t first = kernel_first(x, i);
    for (size_t j = first; j <= i; j++) read_key(x, of_keys, p, numbers, h, i, j);
    kernel_weigh(x, h, i, first);
    kernel_sum(x, i, first, y_c);
    return first;
}

// What is read may have been rounded to the format of the trace, by u.
static void widen(const kernel *x, bool of_keys, double u, size_t i, size_t first,
                  const double *y_c, double *width_c) {
    for (size_t j = first; j <= i; j++)
        for (size_t c = 0; c < x->d; c++)
            width_c[c] +=
                x->a[j] * u *
                (of_keys ? x->terms[j] * fabs(x->v_at[j][c] - y_c[c]) : fabs(x->v_at[j][c]));
}

static bool make_from(const sinkproof_making *of, const double *numbers, double *y, double *width) {
    const read_passes p = {(size_t)of->numbers[FIRST], (size_t)of->numbers[ROWS]};
    const sinkproof_tensor *v = sinkproof_trace_find(of->trace, of->point, of->layer);
    bool of_keys = of->numbers[OF_KEYS] != 0, scores = of->point == TRACE_A6;
    size_t n = of->n;
    kernel x;
    if (v == NULL || !kernel_open(of, &x)) return false;
    for (size_t at = 0; !scores && at < n * x.heads; at++) {
        size_t h = at % x.heads, i = at / x.heads, c = at * x.d;
        size_t first = output_of(&x, of_keys, p, numbers, h, i, y + c);
        kernel_widths(&x, of->numbers[STEP], h, i, first, y + c, width + c);
        widen(&x, of_keys, of->numbers[STEP] / 4, i, first, y + c, width + c);
        kernel_onto(&x, h, i, y + c);
    }
    for (size_t at = 0; scores && at < of->all; at++) {
        size_t i = at / n % n, j = at % n;
        // scores that are masked have no sets, and are not looked at
        bool masked = of->radius != NULL && of->x[at] == 0 && of->radius[at] == 0;
        y[at] = sinkproof_tensor_value(v, at);
        if (masked || j > i) continue;
        read_key(&x, true, p, numbers, at / n / n, i, j);
        y[at] = x.z[j];
        kernel_read(&x, x.k, x.v, at / n / n, i, j);
        y[at] += of->x[at] - x.z[j];
        width[at] = (of->radius != NULL ? 2 * of->radius[at] : 0) +
                    of->numbers[STEP] * fabs(y[at]) +
                    (of->table[KERNEL_TERMS] + of->numbers[STEP] / 4) * x.terms[j];
    }
    kernel_close(&x);
    return true;
}

// From the numbers of the table, each times one number.
static bool make_read(const sinkproof_making *of, double *y, double *width) {
    const size_t all = of->n * of->config->n_kv_heads * of->config->head_dim;
    const double times = of->numbers[TIMES], *table = of->table;
    if (table == NULL) return false;
    if (times == 1) return make_from(of, table + KERNEL_HEADER, y, width);
    double *numbers = malloc((all + 1) * sizeof *numbers);
    for (size_t at = 0; numbers != NULL && at < all; at++)
        numbers[at] = times * table[KERNEL_HEADER + at];
    bool made = numbers != NULL && make_from(of, numbers, y, width);
    free(numbers);
    return made;
}

static bool sample_is_near(const reading *r, read_passes p, const double *numbers) {
    const operation *o = r->o;
    size_t far = 0, row = SIZE_MAX, d = r->x->d, n = r->x->n;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++) {
        size_t at = o->at[s];
        if (o->c->point == TRACE_A6) {
            read_key(r->x, true, p, numbers, at / n / n, at / n % n, at % n);
            far += !value_is_near(o->c, at, r->x->z[at % n]);
            continue;
        }
        if (at / d != row)
            output_of(r->x, r->of_keys, p, numbers, at / d % r->x->heads, at / d / r->x->heads,
                      r->y_c);
        row = at / d, far += !value_is_near(o->c, at, r->y_c[at % d]);
    }
    return o->n > 0 && 8 * far <= o->n;
}

bool reading_try(const reading *r, read_passes passes, const double *numbers, const char *id,
                 const char *text) {
    made_kind made = {.make = make_read, .measured = true};
    if (r->o->c->found != NULL || !sample_is_near(r, passes, numbers)) return true;
    if (r->times != 0) numbers = r->of_keys ? r->x->k : r->x->v;
    made.table = kernel_table(r->o->c, r->x->n * r->x->groups * r->x->d, numbers);
    made.numbers[TIMES] = r->times != 0 ? r->times : 1;
    made.ranged = r->times != 0 ? TIMES : 0;
    made.numbers[OF_KEYS] = r->of_keys;
    made.numbers[FIRST] = (double)passes.first, made.numbers[ROWS] = (double)passes.rows;
    made.numbers[STEP] = 2 * r->o->c->step;
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "is computed from %s", text);
    return made.table != NULL && composing_try_made(r->o, &made);
}

bool reading_try_passes(const reading *r, const double *numbers, const char *id, const char *text) {
    const read_passes all = {0, 0}, cached = {0, 1};
    char said[320], name[80];
    size_t first = r->first;
    if (!reading_try(r, all, numbers, id, text)) return false;
    snprintf(said, sizeof said, "cached %s", text);
    snprintf(name, sizeof name, "cached-%s", id);
    if (!reading_try(r, cached, numbers, name, said)) return false;
    if (first < 2 || first >= r->x->n) return true;
    const read_passes of[] = {{first, r->x->n}, {first, first}, {first, 1}};
    for (size_t i = 0; i < sizeof of / sizeof of[0] && r->o->c->found == NULL; i++) {
        if (i == 1 && 2 * first >= r->x->n) continue;
        snprintf(said, sizeof said, "cached %s (passes: the rows before position %zu, then %s)",
                 text, first,
                 i == 0   ? "all others"
                 : i == 1 ? "as many each"
                          : "one at a time");
        snprintf(name, sizeof name, "cached-%s-%zu-%zu", id, first, of[i].rows);
        if (!reading_try(r, of[i], numbers, name, said)) return false;
    }
    return true;
}
