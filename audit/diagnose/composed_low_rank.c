// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is added to a product of weights and is itself of low rank: each weight of a row shifted by
// a constant, one column of weights that are others, an adapter. Its numbers are fitted to the
// trace: fewer by far than the elements that they explain.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum added_kind {
    PER_SUM,      // t_r times the sum of the input
    PER_CONSTANT, // t_r
    PER_COLUMN,   // t_r times coordinate a of the input
    OF_RANK,      // any matrix of rank a; that of each expert's rows
    MERGED        // the same, up to a rounding of the weights to bfloat16
} added_kind;

enum { KIND, A, STEP }; // the numbers
enum { MOST_RANK = 8, ROWS_FOR_RANK = 5, NUMBERS_OF_RANK = 4, MOST_CELLS = 1 << 20 };

// A product's rows. The weights of a row are those of its expert, or the same for all rows.
typedef struct product {
    size_t rows, cols, width; // of the point as rows; the input's width
    const sinkproof_tensor *v, *x;
    size_t per_input; // rows of the point for each row of the input
    int32_t *expert_r;
} product;

static bool product_of(const sinkproof_making *of, product *p) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    bool slots = of->point == TRACE_M5 || of->point == TRACE_M9;
    *p = (product){.rows = slots ? of->n * of->config->n_chosen : of->n};
    size_t layer = of->layer < of->config->n_layers ? of->layer : 0;
    sinkproof_trace_inputs(of->config, of->point, layer, inputs);
    p->cols = of->all / p->rows;
    p->v = sinkproof_trace_find(of->trace, of->point, of->layer);
    p->x = sinkproof_trace_find(of->trace, inputs[0].point, inputs[0].layer);
    if (p->v == NULL || p->x == NULL || (slots && of->chosen_nk == NULL)) return false;
    size_t all = sinkproof_tensor_elements(p->x);
    p->per_input = of->point == TRACE_M5 ? of->config->n_chosen : 1;
    p->width = all / (p->rows / p->per_input);
    p->expert_r = calloc(p->rows + 1, sizeof *p->expert_r);
    for (size_t r = 0; p->expert_r != NULL && slots && r < p->rows; r++)
        p->expert_r[r] = of->chosen_nk[r];
    return p->expert_r != NULL;
}

// What t is multiplied with in a row.
static double regressor(const sinkproof_making *of, const product *p, size_t r) {
    const added_kind kind = (added_kind)of->numbers[KIND];
    size_t first = r / p->per_input * p->width;
    double sum = 0;
    if (kind == PER_CONSTANT) return 1;
    if (kind == PER_COLUMN) return sinkproof_tensor_value(p->x, first + (size_t)of->numbers[A]);
    for (size_t c = 0; c < p->width; c++) sum += sinkproof_tensor_value(p->x, first + c);
    return sum;
}

// y: t times the regressor, where t is of least squares over the rows of one expert.
static bool add_regression(const sinkproof_making *of, const product *p, double *y) {
    double *by_r = malloc((p->rows + 1) * sizeof *by_r);
    if (by_r == NULL) return false;
    for (size_t r = 0; r < p->rows; r++) by_r[r] = regressor(of, p, r);
    for (size_t c = 0; c < p->cols; c++)
        for (size_t r = 0; r < p->rows; r++) {
            double xx = 0, xy = 0;
            size_t other = 0;
            while (other < r && p->expert_r[other] != p->expert_r[r]) other++;
            if (other < r) { // t is known
                y[r * p->cols + c] =
                    by_r[other] != 0 ? y[other * p->cols + c] / by_r[other] * by_r[r] : 0;
                continue;
            }
            for (size_t q = r; q < p->rows; q++) {
                if (p->expert_r[q] != p->expert_r[r]) continue;
                size_t at = q * p->cols + c;
                xx += by_r[q] * by_r[q];
                xy += by_r[q] * (sinkproof_tensor_value(p->v, at) - of->x[at]);
            }
            y[r * p->cols + c] = xx > 0 ? xy / xx * by_r[r] : 0;
        }
    free(by_r);
    return true;
}

// Makes the rows of x[count, n] orthogonal and of length one.
static void make_orthogonal(double *x, size_t count, size_t n) {
    for (size_t k = 0; k < count; k++) {
        double square = 0;
        for (size_t q = 0; q < k; q++) {
            double along = 0;
            for (size_t c = 0; c < n; c++) along += x[k * n + c] * x[q * n + c];
            for (size_t c = 0; c < n; c++) x[k * n + c] -= along * x[q * n + c];
        }
        for (size_t c = 0; c < n; c++) square += x[k * n + c] * x[k * n + c];
        for (size_t c = 0; c < n && square > 0; c++) x[k * n + c] /= sqrt(square);
    }
}

enum { POWERS = 12 };

// base: `rank` vectors that span the nearest matrix of that rank to rest[rows, n], by powers.
static bool span_of_rank(const double *rest, size_t rows, size_t n, size_t rank, double *base) {
    double *next = malloc((rank * n + 1) * sizeof *next);
    if (next == NULL) return false;
    for (size_t k = 0; k < rank; k++)
        memcpy(&base[k * n], &rest[(k + 1) * (rows - 1) / (rank + 1) * n], n * sizeof *base);
    for (int power = 0; power < POWERS; power++) {
        make_orthogonal(base, rank, n);
        memset(next, 0, rank * n * sizeof *next);
        for (size_t r = 0; r < rows; r++)
            for (size_t k = 0; k < rank; k++) {
                double along = 0;
                for (size_t c = 0; c < n; c++) along += rest[r * n + c] * base[k * n + c];
                for (size_t c = 0; c < n; c++) next[k * n + c] += along * rest[r * n + c];
            }
        memcpy(base, next, rank * n * sizeof *base);
    }
    make_orthogonal(base, rank, n);
    free(next);
    return true;
}

static sinkproof_matrix weights_of(const sinkproof_making *of) {
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    size_t layer = of->layer < of->config->n_layers ? of->layer : 0;
    sinkproof_trace_weights(of->config, of->point, slots);
    return sinkproof_model_slot(of->model, layer, slots[0]);
}

// Whether the span holds what a column of the weights gives: then it is the input that differs in
// some of its coordinates. Coordinates of the point where the span is 0 are not asked.
static bool holds_a_column(const sinkproof_making *of, const product *p, int32_t expert,
                           const double *base, size_t rank, bool *fine) {
    sinkproof_matrix w = weights_of(of);
    size_t n = p->cols;
    double *w_rc = malloc((n * w.cols + n + 1) * sizeof *w_rc), *column = w_rc + n * w.cols;
    bool holds = false;
    *fine = w_rc != NULL;
    if (w_rc == NULL || w.count == 0 || w.rows != n) {
        free(w_rc);
        return false;
    }
    sinkproof_matrix one = sinkproof_matrix_at(&w, (size_t)expert);
    for (size_t r = 0; r < n; r++) sinkproof_matrix_row(&one, r, w_rc + r * w.cols);
    for (size_t c = 0; c < w.cols && !holds; c++) {
        double all = 0, within = 0;
        for (size_t r = 0; r < n; r++) {
            double size = 0;
            for (size_t k = 0; k < rank; k++) size += base[k * n + r] * base[k * n + r];
            column[r] = size > 1e-9 ? w_rc[r * w.cols + c] : 0;
            all += column[r] * column[r];
        }
        for (size_t k = 0; k < rank; k++) {
            double along = 0;
            for (size_t r = 0; r < n; r++) along += base[k * n + r] * column[r];
            within += along * along;
        }
        holds = within > 0.9 * all;
    }
    free(w_rc);
    return holds;
}

// y: the nearest matrix of that rank to v - x in the rows of each expert. Returns false if some
// rows are too few for the rank, or what is added comes from the input.
static bool add_of_rank(const sinkproof_making *of, const product *p, size_t rank, double *y) {
    size_t n = p->cols;
    double *rest = malloc((of->all + rank * n + 1) * sizeof *rest), *base = rest + of->all;
    bool fine = rest != NULL;
    memset(y, 0, of->all * sizeof *y);
    for (size_t first = 0; fine && first < p->rows; first++) {
        size_t rows = 0, before = 0;
        double added = 0, size = 0;
        while (before < first && p->expert_r[before] != p->expert_r[first]) before++;
        if (before < first) continue;
        for (size_t r = first; r < p->rows; r++) {
            if (p->expert_r[r] != p->expert_r[first]) continue;
            for (size_t at = r * n; at < (r + 1) * n; at++) {
                double v = sinkproof_tensor_value(p->v, at), one = v - of->x[at];
                rest[rows * n + at - r * n] = one;
                added += one * one, size += v * v;
            }
            rows++;
        }
        if (added <= 1e-10 * size) continue; // nothing is added to this expert's
        fine = rows >= ROWS_FOR_RANK * rank && NUMBERS_OF_RANK * rank * (rows + n) <= rows * n &&
               span_of_rank(rest, rows, n, rank, base);
        if (fine && rank > 1)
            fine = !holds_a_column(of, p, p->expert_r[first], base, rank, &fine) && fine;
        for (size_t r = first, i = 0; fine && r < p->rows; r++) {
            if (p->expert_r[r] != p->expert_r[first]) continue;
            for (size_t k = 0; k < rank; k++) {
                double along = 0;
                for (size_t c = 0; c < n; c++) along += rest[i * n + c] * base[k * n + c];
                for (size_t c = 0; c < n; c++) y[r * n + c] += along * base[k * n + c];
            }
            i++;
        }
    }
    free(rest);
    return fine;
}

static double input_at(const product *p, size_t r, size_t k) {
    return sinkproof_tensor_value(p->x, r / p->per_input * p->width + k);
}

// The root mean square of what is added to the weights of one row of an expert, from what it gives.
static double added_weight(const product *p, size_t e, size_t c, const double *y) {
    double given = 0, inputs = 0;
    for (size_t r = 0; r < p->rows; r++) {
        if (p->expert_r[r] != (int32_t)e) continue;
        given += y[r * p->cols + c] * y[r * p->cols + c];
        for (size_t k = 0; k < p->width; k++) inputs += pow(input_at(p, r, k), 2);
    }
    return inputs > 0 ? sqrt(given / inputs) : 0;
}

// Adds to the widths what a rounding of each weight to bfloat16 may change: twice that of the
// weights, and eight times the deviation of that of what is added. Returns false if the trace
// differs by more than such roundings, which have no common direction, make of many weights.
static bool add_roundings(const sinkproof_making *of, const product *p, const double *y,
                          double *width) {
    sinkproof_matrix w = weights_of(of);
    double *row_c = malloc((w.cols + 1) * sizeof *row_c), u = 0x1p-9, far = 0, expected = 0;
    bool fine = row_c != NULL && w.rows == p->cols && w.cols == p->width &&
                (double)of->all * (double)w.cols <= 1 << 27;
    for (size_t ec = 0; fine && ec < w.count * w.rows; ec++) {
        size_t e = ec / w.rows, c = ec % w.rows;
        sinkproof_matrix one = sinkproof_matrix_at(&w, e);
        sinkproof_matrix_row(&one, c, row_c);
        double added = added_weight(p, e, c, y);
        for (size_t r = 0; r < p->rows; r++) {
            if (p->expert_r[r] != (int32_t)e) continue;
            double sum = 0, squares = 0, inputs = 0;
            for (size_t k = 0; k < w.cols; k++) {
                double x = input_at(p, r, k);
                sum += fabs(row_c[k] * x), squares += row_c[k] * row_c[k] * x * x;
                inputs += x * x;
            }
            size_t at = r * p->cols + c;
            double round = of->numbers[STEP] * sinkproof_tensor_value(p->v, at);
            double rest = sinkproof_tensor_value(p->v, at) - of->x[at] - y[at];
            width[at] += u * (2 * sum + 8 * added * sqrt(inputs));
            far += rest * rest;
            expected += u * u * (squares + added * added * inputs) + round * round;
        }
    }
    free(row_c);
    return fine && far <= expected;
}

static bool make_added(const sinkproof_making *of, double *y, double *width) {
    product p;
    size_t rank = (size_t)of->numbers[A];
    bool low = of->numbers[KIND] >= OF_RANK, fine = product_of(of, &p);
    if (fine) fine = low ? add_of_rank(of, &p, rank, y) : add_regression(of, &p, y);
    // what is fitted has the errors of what it was fitted to
    for (size_t at = 0; fine && at < of->all; at++)
        width[at] =
            of->numbers[STEP] * (fabs(y[at]) + (low ? fabs(sinkproof_tensor_value(p.v, at)) : 0)) +
            (of->radius != NULL ? 4 * (low ? (double)rank + 1 : 1) * of->radius[at] : 0);
    if (fine && of->numbers[KIND] == MERGED) fine = add_roundings(of, &p, y, width);
    free(p.expert_r);
    return fine;
}

// ---- trials

static bool try_added(const operation *o, added_kind kind, size_t a, const char *id,
                      const char *text) {
    made_kind made = {
        .make = make_added, .adds = true, .fitted = kind >= OF_RANK, .widened = kind == MERGED};
    made.numbers[KIND] = kind, made.numbers[A] = (double)a, made.numbers[STEP] = o->c->step;
    if (o->c->found != NULL) return true;
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "%s", text);
    return composing_try_made(o, &made);
}

// Whether the elements outside are spread over rows and columns: what is of one row or of a few
// columns is of low rank whatever it is. rows, cols: how many have any.
static bool is_spread(const composing *c, size_t *rows, size_t *cols) {
    size_t outside = 0, n = *cols, some_rows = 0, some_cols = 0;
    for (size_t r = 0; r < *rows; r++) some_rows += memchr(&c->marks[r * n], 1, n) != NULL;
    for (size_t k = 0; k < n; k++) {
        size_t r = 0;
        while (r < *rows && c->marks[r * n + k] == 0) r++;
        some_cols += r < *rows;
    }
    for (size_t at = 0; at < c->elements; at++) outside += c->marks[at];
    *rows = some_rows, *cols = some_cols;
    return 4 * outside > some_rows * some_cols && some_rows >= 8 && some_cols >= 8;
}

// rows, cols: those that have an element outside.
static bool try_ranks(const operation *o, size_t rows, size_t cols) {
    bool fine = true;
    for (int kind = OF_RANK; kind <= MERGED; kind++)
        for (size_t rank = 1; rank <= MOST_RANK && fine && o->c->found == NULL; rank++) {
            char id[48], text[240];
            if (rows < ROWS_FOR_RANK * rank || cols < ROWS_FOR_RANK * rank) break;
            if (NUMBERS_OF_RANK * rank * (rows + cols) > rows * cols) break;
            snprintf(id, sizeof id, "rank-%zu%s", rank, kind == MERGED ? "-merged" : "");
            snprintf(text, sizeof text,
                     kind == MERGED
                         ? "has a matrix of rank %zu added, and differs by no more than a rounding "
                           "of the weights to bfloat16: as an adapter (LoRA) adds that is merged "
                           "into weights of bfloat16"
                         : "has a matrix of rank %zu added, as an adapter (LoRA) adds that is not "
                           "in the model's weights",
                     rank);
            fine = try_added(o, (added_kind)kind, rank, id, text);
        }
    return fine;
}

bool compose_low_rank(composing *c) {
    operation o;
    bool experts = c->point == TRACE_M5 || c->point == TRACE_M9;
    bool linear = c->point == TRACE_A2_Q || c->point == TRACE_A2_K || c->point == TRACE_A2_V ||
                  c->point == TRACE_A12 || c->point == TRACE_M2 || c->point == TRACE_F2;
    if ((!linear && !experts) || (experts && c->chosen_nk == NULL)) return true;
    if (c->elements > MOST_CELLS) return true;
    bool fine = operation_read(c, &o);
    size_t rows = experts ? c->n * c->s->trials.config->n_chosen : c->n, cols = c->elements / rows;
    char id[48], text[160];
    if (fine && o.whole && is_spread(c, &rows, &cols)) {
        fine = try_added(&o, PER_SUM, 0, "weights-shifted",
                         "has the sum of its input added, times a number of each row: a constant "
                         "(a zero point) is added to the weights of each row") &&
               try_added(&o, PER_CONSTANT, 0, "vector-added",
                         "has a vector added to every row, which is not in the model: another "
                         "bias");
        size_t width = experts && c->point == TRACE_M9 ? c->s->trials.config->inter : o.width[0];
        for (size_t col = 0; col < width && width <= 512 && fine && c->found == NULL; col++) {
            snprintf(id, sizeof id, "column-%zu", col);
            snprintf(text, sizeof text, "is computed with other weights in column %zu", col);
            fine = try_added(&o, PER_COLUMN, col, id, text);
        }
        fine = fine && try_ranks(&o, rows, cols);
    }
    operation_free(&o);
    return fine;
}
