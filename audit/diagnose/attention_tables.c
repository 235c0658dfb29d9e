// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How often each query read each key: least squares over the equations of all heads.
//
// With E_s = e^(z_s - m) of key s and c_s the times that it is read, the output y of a query is
// sum_s c_s E_s v_s over sum_s c_s E_s + e^(b - m). Hence sum_s c_s E_s (v_s - y) = e^(b - m) y,
// which is linear in c. All heads of a row share c.
#include "audit/diagnose/attention_tables.h"
#include "audit/diagnose/normal_equations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The normal equations of a row: [all, all], of the counts of n keys and of keys of zeros.
typedef struct count_fit {
    size_t all;
    double *square, *along, *counts, *room, *terms, *e_s;
    double residual, equations;
} count_fit;

static void add_equation(count_fit *f, const double *terms, double right, double noise) {
    for (size_t i = 0; i < f->all; i++) {
        double t = terms[i] / (noise * noise);
        if (t == 0) continue;
        f->along[i] += t * right;
        for (size_t j = i; j < f->all; j++) f->square[i * f->all + j] += t * terms[j];
    }
    f->residual += right * right / (noise * noise), f->equations++;
}

// The counts, what each may be off by (room), and the squares that are left. Returns false if the
// equations do not tell.
static bool solve(count_fit *f) {
    size_t n = f->all;
    memcpy(f->counts, f->along, n * sizeof *f->counts);
    if (solve_normal(n, f->square, f->counts, 0) > 0) return false;
    for (size_t i = 0; i < n; i++) f->residual -= f->along[i] * f->counts[i];
    normal_variances(n, f->square, f->room, f->terms);
    for (size_t i = 0; i < n; i++) f->room[i] = sqrt(f->room[i]);
    return true;
}

// The score of a key: of the trace where it shows them.
static double score_at(const attention_view *v, size_t head, size_t row, size_t key) {
    if (v->scores != NULL)
        return sinkproof_tensor_value(v->scores, (head * v->n + row) * v->columns + key);
    size_t g = head / (v->heads / v->groups);
    const double *q = v->q_nhd + (row * v->heads + head) * v->dim;
    const double *k = v->k_cgd + (key * v->groups + g) * v->dim;
    double sum = 0;
    for (size_t i = 0; i < v->dim; i++) sum += q[i] * k[i];
    return sum / sqrt((double)v->dim);
}

static bool is_seen(const attention_view *v, size_t row, size_t key) {
    size_t own = v->begin + row;
    return key <= own && (v->layer_window == 0 || key + v->layer_window > own);
}

// The half-width of an element, or what its format leaves open.
static double noise_of(const attention_view *v, size_t element) {
    double half = (v->of->hi[element] - v->of->lo[element]) / 2;
    double value = fabs(v->of->v[element]);
    return fmax(half, fmax(v->roundoff * value, v->roundoff * 1e-3));
}

// The equations of one head at A11.
static void add_outputs(const attention_view *v, count_fit *f, size_t head, size_t row, double sink,
                        double sum) {
    size_t g = head / (v->heads / v->groups), n = f->all - 1;
    for (size_t k = 0; k < v->dim; k++) {
        size_t element = (row * v->heads + head) * v->dim + k;
        double y = v->of->v[element];
        for (size_t s = 0; s < n; s++)
            f->terms[s] = f->e_s[s] * (v->v_cgd[(s * v->groups + g) * v->dim + k] - y);
        f->terms[n] = -f->e_s[n] * y;
        add_equation(f, f->terms, sink * y, noise_of(v, element) * sum);
    }
}

// The equations of one head at A9 or A10: a_j sum_s c_s E_s - c_j E_j = -a_j e^(b - m).
static void add_weights(const attention_view *v, count_fit *f, size_t head, size_t row, double sink,
                        double sum) {
    size_t n = f->all - 1;
    for (size_t j = 0; j < v->width; j++) {
        size_t element = (head * v->n + row) * v->width + j;
        double a = v->of->v[element];
        for (size_t s = 0; s <= n; s++) f->terms[s] = a * f->e_s[s];
        if (j < n) f->terms[j] -= f->e_s[j];
        add_equation(f, f->terms, (j < n ? 0 : sink) - a * sink, noise_of(v, element) * sum);
    }
}

static void add_head(const attention_view *v, count_fit *f, size_t head, size_t row) {
    size_t n = f->all - 1;
    double b = v->sink_lh[v->of->layer * v->heads + head], top = fmax(b, 0), sum;
    for (size_t s = 0; s < n; s++) {
        f->e_s[s] = score_at(v, head, row, s);
        if (s <= v->begin + row) top = fmax(top, f->e_s[s]);
    }
    double sink = exp(b - top);
    sum = sink;
    for (size_t s = 0; s < n; s++) {
        f->e_s[s] = exp(fmin(f->e_s[s] - top, 40));
        if (is_seen(v, row, s)) sum += f->e_s[s];
    }
    f->e_s[n] = exp(-top);
    if (v->of->point == TRACE_A11)
        add_outputs(v, f, head, row, sink, sum);
    else
        add_weights(v, f, head, row, sink, sum);
}

static bool is_asked(const attention_view *v, size_t head) {
    return head >= 64 || (v->heads_failing >> head & 1) != 0;
}

// The counts of a row that whole numbers explain. Returns whether the row is explained so.
static bool fit_counts(const attention_view *v, count_fit *f, size_t row, short *out) {
    size_t all = f->all;
    memset(f->square, 0, all * all * sizeof *f->square);
    memset(f->along, 0, all * sizeof *f->along);
    f->residual = f->equations = 0;
    for (size_t h = 0; h < v->heads; h++)
        if (is_asked(v, h)) add_head(v, f, h, row);
    for (size_t s = 0; s < all; s++) { // what little weight leaves open is as defined
        double as = s + 1 < all && is_seen(v, row, s);
        f->square[s * all + s] += 1, f->along[s] += as, f->residual += as * as;
    }
    if (!solve(f)) return false;
    // the sets of the definition are narrower than those of what was computed may be
    double spread = sqrt(fmax(f->residual / f->equations, 1));
    bool whole = true;
    for (size_t s = 0; s < all; s++) {
        double near = nearbyint(f->counts[s]);
        bool told = f->room[s] * spread < 0.1;
        whole = whole && (!told || (fabs(f->counts[s] - near) < 0.3 && near > -1 && near < 5000));
        out[s] = told ? (short)near : COUNT_OPEN;
    }
    return whole;
}

// ---- the tokens whose keys are read, from the scores

// How far the scores of key j are from the products with token s, or from 0, over their widths.
static double token_distance(const attention_view *v, size_t row, size_t j, size_t s,
                             double worst) {
    double sum = 0;
    for (size_t h = 0; h < v->heads && sum < worst; h++) {
        if (!is_asked(v, h)) continue;
        size_t g = h / (v->heads / v->groups), element = (h * v->n + row) * v->columns + j;
        const double *q = v->q_nhd + (row * v->heads + h) * v->dim;
        double z = 0;
        for (size_t i = 0; s < v->columns && i < v->dim; i++)
            z += q[i] * v->k_cgd[(s * v->groups + g) * v->dim + i];
        double off = (v->of->v[element] - z / sqrt((double)v->dim)) / noise_of(v, element);
        sum += off * off;
    }
    return sum;
}

static bool find_tokens(const attention_view *v, size_t row, short *out) {
    double asked = 0;
    for (size_t h = 0; h < v->heads; h++) asked += is_asked(v, h);
    bool found = true;
    for (size_t j = 0; j < v->columns; j++) {
        out[j] = TOKEN_OPEN;
        if (!is_seen(v, row, j)) continue;
        double least = token_distance(v, row, j, j, INFINITY);
        out[j] = (short)j;
        for (size_t s = 0; s <= v->columns && least > 4 * asked; s++) {
            double distance = token_distance(v, row, j, s, least);
            if (distance < least) least = distance, out[j] = s < v->columns ? (short)s : TOKEN_NONE;
        }
        found = found && least <= 4 * asked;
    }
    return found;
}

// ---- the rows

static void choose_rows(const attention_view *v, const uint8_t *fails, key_table *t) {
    enum { FAILING = 28 };
    size_t there = 0, met = 0, taken = 0;
    for (size_t i = 0; i < v->n; i++) there += fails[i];
    for (size_t i = 0; i < v->n; i++) {
        if (!fails[i] || met++ * FAILING / there < taken || taken == FAILING) continue;
        t->rows[t->n_rows++] = (key_row){i, true}, taken++;
    }
    t->n_failing = t->n_rows;
    // those beside rows that fail tell most
    for (int beside = 1; beside >= 0; beside--)
        for (size_t i = 0; i < v->n && t->n_rows < TABLE_ROWS; i++) {
            bool is = (i > 0 && fails[i - 1]) || (i + 1 < v->n && fails[i + 1]);
            if (!fails[i] && is == (beside != 0)) t->rows[t->n_rows++] = (key_row){i, false};
        }
}

static void mark_rows(const attention_view *v, uint8_t *fails) {
    size_t all = v->n * v->heads * v->width;
    for (size_t e = 0; e < all; e++) {
        size_t row = v->of->point == TRACE_A11 ? e / v->width / v->heads : e / v->width % v->n;
        if (!(v->of->v[e] >= v->of->lo[e] && v->of->v[e] <= v->of->hi[e])) fails[row] = 1;
    }
}

static bool fit_rows(key_table *t, count_fit *f) {
    bool fine = true;
    for (size_t r = 0; r < t->n_rows && fine; r++) {
        short *out = t->of_rk + r * (t->n + 1);
        fine = t->of_tokens ? find_tokens(t->view, t->rows[r].row, out)
                            : fit_counts(t->view, f, t->rows[r].row, out);
    }
    return fine;
}

bool key_table_open(const attention_view *view, key_table *t, bool *there) {
    size_t n = view->columns, all = n + 1;
    *t = (key_table){.view = view, .n = n, .of_tokens = view->of->point == TRACE_A6};
    *there = view->plain && view->from == 0 && n <= TABLE_KEYS && n > 2 &&
             (view->of->point != TRACE_A11 || view->weights == NULL);
    if (!*there) return true;
    uint8_t *fails = calloc(view->n, 1);
    double *room = calloc(all * all + 5 * all, sizeof *room);
    t->of_rk = calloc(TABLE_ROWS * all, sizeof *t->of_rk);
    bool fine = fails != NULL && room != NULL && t->of_rk != NULL;
    double *vectors = room != NULL ? room + all * all : NULL;
    if (fine) {
        count_fit f = {.all = all,
                       .square = room,
                       .along = vectors,
                       .counts = vectors + all,
                       .room = vectors + 2 * all,
                       .terms = vectors + 3 * all,
                       .e_s = vectors + 4 * all};
        mark_rows(view, fails);
        choose_rows(view, fails, t);
        size_t at = view->begin; // a pass may begin with the trace
        for (size_t i = 0; i < view->n; i++)
            t->turns[at + i] = i > 0 ? fails[i] != fails[i - 1] : at > 0 && fails[i];
        *there = t->n_failing > 0 && fit_rows(t, &f);
    }
    free(fails);
    free(room);
    if (!fine || !*there) key_table_close(t);
    return fine;
}

void key_table_close(key_table *t) {
    free(t->of_rk);
    t->of_rk = NULL;
}

// How often the row at a position reads each key, and keys of zeros; in the order of the keys the
// tokens.
typedef struct read_row {
    short counts[TABLE_KEYS + 1], tokens[TABLE_KEYS];
} read_row;

static void read_keys(const key_table *t, size_t own, const sinkproof_attending *how,
                      read_row *out) {
    const attention_view *v = t->view;
    const sinkproof_sight sight = {v->columns, v->config->window, v->layer_window};
    size_t first, end;
    memset(out, 0, sizeof *out);
    for (size_t j = 0; t->of_tokens && j < t->n; j++) out->tokens[j] = TOKEN_OPEN;
    if (!sinkproof_attending_is_at(how, v->first_head, own - v->begin))
        how = &sinkproof_attending_as_defined;
    sinkproof_attending_seen(how, &sight, own, &first, &end);
    for (size_t j = first; j < end; j++) {
        sinkproof_key_read read = sinkproof_attending_key(how, &sight, own, first, j);
        out->tokens[j] = read.zero_key ? TOKEN_NONE : (short)read.key;
        out->counts[read.zero_key ? t->n : read.key] += (short)read.times;
    }
    out->counts[t->n] += (short)sinkproof_empty_count(&how->summing, how->zero_keys, first, end);
}

static bool row_holds(const key_table *t, size_t r, const sinkproof_attending *how) {
    const short *as = t->of_rk + r * (t->n + 1);
    read_row row;
    read_keys(t, t->view->begin + t->rows[r].row, how, &row);
    const short *is = t->of_tokens ? row.tokens : row.counts;
    for (size_t s = 0; s < t->n + !t->of_tokens; s++)
        if (as[s] != COUNT_OPEN && is[s] != as[s] && (!t->of_tokens || is[s] != TOKEN_OPEN))
            return false;
    return true;
}

bool key_table_holds(const key_table *t, const sinkproof_attending *how) {
    for (size_t r = 0; r < t->n_rows; r++)
        if (!row_holds(t, r, how)) return false;
    return true;
}

bool key_table_same(const key_table *t, const sinkproof_attending *a,
                    const sinkproof_attending *b) {
    read_row x, y;
    for (size_t own = t->view->begin; own < t->n; own++) {
        read_keys(t, own, a, &x), read_keys(t, own, b, &y);
        if (memcmp(x.counts, y.counts, sizeof x.counts) != 0) return false;
    }
    return true;
}
