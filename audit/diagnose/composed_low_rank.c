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
    OF_RANK       // any matrix of rank a
} added_kind;

enum { KIND, A, STEP }; // the numbers
enum { MOST_RANK = 4, ROWS_FOR_RANK = 8, NUMBERS_OF_RANK = 4, MOST_CELLS = 1 << 20 };

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

// y: the nearest matrix of that rank to v - x, by powers of a few vectors, which begin as rows.
static bool add_of_rank(const sinkproof_making *of, const product *p, size_t rank, double *y) {
    size_t n = p->cols;
    double *rest = malloc((of->all + 1 + 2 * rank * n + rank) * sizeof *rest);
    double *base = rest + of->all, *next = base + rank * n, *along = next + rank * n;
    if (rest == NULL) return false;
    for (size_t at = 0; at < of->all; at++)
        rest[at] = sinkproof_tensor_value(p->v, at) - of->x[at], y[at] = 0;
    for (size_t k = 0; k < rank; k++)
        for (size_t c = 0; c < n; c++)
            base[k * n + c] = rest[(k + 1) * (p->rows - 1) / (rank + 1) * n + c];
    for (int power = 0; power <= POWERS; power++) {
        make_orthogonal(base, rank, n);
        memset(next, 0, rank * n * sizeof *next);
        for (size_t r = 0; r < p->rows; r++) {
            for (size_t k = 0; k < rank; k++) {
                along[k] = 0;
                for (size_t c = 0; c < n; c++) along[k] += rest[r * n + c] * base[k * n + c];
                for (size_t c = 0; c < n; c++) next[k * n + c] += along[k] * rest[r * n + c];
            }
            for (size_t k = 0; power == POWERS && k < rank; k++)
                for (size_t c = 0; c < n; c++) y[r * n + c] += along[k] * base[k * n + c];
        }
        memcpy(base, next, rank * n * sizeof *base);
    }
    free(rest);
    return true;
}

static bool make_added(const sinkproof_making *of, double *y, double *width) {
    product p;
    size_t rank = (size_t)of->numbers[A];
    bool low = of->numbers[KIND] == OF_RANK, fine = product_of(of, &p);
    if (fine) fine = low ? add_of_rank(of, &p, rank, y) : add_regression(of, &p, y);
    // what is fitted has the errors of what it was fitted to
    for (size_t at = 0; fine && at < of->all; at++)
        width[at] =
            of->numbers[STEP] * (fabs(y[at]) + (low ? fabs(sinkproof_tensor_value(p.v, at)) : 0)) +
            (of->radius != NULL ? 4 * (low ? (double)rank + 1 : 1) * of->radius[at] : 0);
    free(p.expert_r);
    return fine;
}

// ---- trials

static bool try_added(const operation *o, added_kind kind, size_t a, const char *id,
                      const char *text) {
    made_kind made = {.make = make_added, .adds = true};
    made.numbers[KIND] = kind, made.numbers[A] = (double)a, made.numbers[STEP] = o->c->step;
    if (o->c->found != NULL) return true;
    snprintf(made.id, sizeof made.id, "%s", id);
    snprintf(made.text, sizeof made.text, "%s", text);
    return composing_try_made(o, &made);
}

// Whether the elements outside are spread over rows and columns: what is of one row or of a few
// columns is of low rank whatever it is.
static bool is_spread(const composing *c, size_t rows, size_t cols) {
    size_t outside = 0;
    for (size_t at = 0; at < c->elements; at++) outside += c->marks[at];
    return 4 * outside > rows * cols && rows >= ROWS_FOR_RANK && cols >= ROWS_FOR_RANK;
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
    if (fine && o.whole && is_spread(c, rows, cols)) {
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
        for (size_t rank = 1; rank <= MOST_RANK && linear && fine && c->found == NULL; rank++) {
            if (rows < ROWS_FOR_RANK * rank || cols < ROWS_FOR_RANK * rank) break;
            if (NUMBERS_OF_RANK * rank * (rows + cols) > rows * cols) break;
            snprintf(id, sizeof id, "rank-%zu", rank);
            snprintf(text, sizeof text,
                     "has a matrix of rank %zu added, as an adapter (LoRA) adds that is not in the "
                     "model's weights",
                     rank);
            fine = try_added(&o, OF_RANK, rank, id, text);
        }
    }
    operation_free(&o);
    return fine;
}
