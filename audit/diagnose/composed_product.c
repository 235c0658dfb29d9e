// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_product.h"
#include "audit/trace/trace_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool dense_product_is(sinkproof_trace_point point) {
    return point == TRACE_A2_Q || point == TRACE_A2_K || point == TRACE_A2_V ||
           point == TRACE_A12 || point == TRACE_M2;
}

static bool is_of_experts(sinkproof_trace_point point) {
    return point == TRACE_M5 || point == TRACE_M9;
}

const double *dense_matrix(const dense_product *p, size_t i) {
    size_t e = p->expert_n != NULL ? (size_t)p->expert_n[i] : 0;
    return p->w_rc + e * p->outs * p->ins;
}

double *dense_weights(const sinkproof_model *model, size_t layer, sinkproof_slot slot, size_t ins,
                      size_t *rows) {
    sinkproof_matrix w = sinkproof_model_slot(model, layer, slot);
    if (w.count != 1 || w.cols != ins) return NULL;
    double *w_rc = malloc((w.rows * w.cols + 1) * sizeof *w_rc);
    for (size_t r = 0; w_rc != NULL && r < w.rows; r++)
        sinkproof_matrix_row(&w, r, w_rc + r * w.cols);
    *rows = w.rows;
    return w_rc;
}

double dense_rounding(const sinkproof_making *of, double product) {
    const sinkproof_tensor *v = sinkproof_trace_find(of->trace, of->point, of->layer);
    double u = v != NULL ? sinkproof_unit_roundoff(sinkproof_trace_format(v->dtype)) : 0;
    return u > 0x1p-13 ? u * fabs(product) : 0;
}

double dense_dot(const double *x_c, const double *w_c, size_t cols) {
    double sum = 0;
    for (size_t c = 0; c < cols; c++) sum += x_c[c] * w_c[c];
    return sum;
}

void dense_widths(const sinkproof_making *of, const dense_product *p, const double *y,
                  double *width) {
    for (size_t i = 0; i < p->n; i++) {
        double most = 0;
        for (size_t r = 0; r < p->outs && of->radius != NULL; r++)
            most = fmax(most, of->radius[i * p->outs + r]);
        for (size_t r = 0; r < p->outs; r++)
            width[i * p->outs + r] = 2 * most + dense_rounding(of, y[i * p->outs + r] - p->b_r[r]);
    }
}

static bool read_product(const sinkproof_making *of, const sinkproof_matrix *w,
                         const sinkproof_slot *slots, size_t n_slots, const sinkproof_tensor *x,
                         const sinkproof_tensor *v, dense_product *p) {
    size_t each = p->n * p->ins / sinkproof_tensor_elements(x); // rows that share an input
    p->x_nc = malloc((p->n * p->ins + 1) * sizeof *p->x_nc);
    p->v_nr = malloc((of->all + 1) * sizeof *p->v_nr);
    p->b_r = calloc(p->outs + 1, sizeof *p->b_r);
    p->w_rc = malloc((w->count * w->rows * w->cols + 1) * sizeof *p->w_rc);
    if (p->x_nc == NULL || p->v_nr == NULL || p->b_r == NULL || p->w_rc == NULL) return false;
    for (size_t e = 0; e < w->count; e++) {
        sinkproof_matrix one = sinkproof_matrix_at(w, e);
        for (size_t r = 0; r < w->rows; r++)
            sinkproof_matrix_row(&one, r, p->w_rc + (e * w->rows + r) * w->cols);
    }
    for (size_t at = 0; at < p->n * p->ins; at++)
        p->x_nc[at] = sinkproof_tensor_value(x, at / p->ins / each * p->ins + at % p->ins);
    for (size_t at = 0; at < of->all; at++) p->v_nr[at] = sinkproof_tensor_value(v, at);
    sinkproof_matrix b = {.count = 0};
    if (n_slots > 1) b = sinkproof_model_slot(of->model, of->layer, slots[1]);
    if (b.count == 1 && b.cols == p->outs) sinkproof_matrix_row(&b, 0, p->b_r);
    return true;
}

static bool are_experts(const int32_t *expert_n, size_t n, size_t count) {
    for (size_t i = 0; i < n; i++)
        if (expert_n[i] < 0 || (size_t)expert_n[i] >= count) return false;
    return true;
}

bool dense_product_read(const sinkproof_making *of, dense_product *p, bool *known) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    sinkproof_slot slots[SINKPROOF_MAX_WEIGHTS];
    bool experts = is_of_experts(of->point) && !of->config->dense && of->chosen_nk != NULL;
    *p = (dense_product){.n = of->n};
    *known = false;
    if (!dense_product_is(of->point) && !experts) return true;
    if (of->layer >= of->config->n_layers) return true;
    size_t n_slots = sinkproof_trace_weights(of->config, of->point, slots);
    if (n_slots == 0 || sinkproof_trace_inputs(of->config, of->point, of->layer, inputs) == 0)
        return true;
    sinkproof_matrix w = sinkproof_model_slot(of->model, of->layer, slots[0]);
    const sinkproof_tensor *x = sinkproof_trace_find(of->trace, inputs[0].point, inputs[0].layer);
    const sinkproof_tensor *v = sinkproof_trace_find(of->trace, of->point, of->layer);
    if (experts) p->n *= of->config->n_chosen, p->expert_n = of->chosen_nk;
    p->outs = w.rows, p->ins = w.cols;
    if (x == NULL || v == NULL || p->n == 0 || w.cols == 0 || w.rows == 0) return true;
    size_t shared = of->point == TRACE_M5 ? of->config->n_chosen : 1;
    bool fits =
        (experts ? are_experts(p->expert_n, p->n, w.count) : w.count == 1) &&
        w.rows == of->all / p->n && sinkproof_tensor_elements(x) == p->n / shared * w.cols &&
        sinkproof_tensor_elements(v) == of->all && (double)of->all * (double)w.cols <= DENSE_WORK &&
        (double)w.count * (double)w.rows * (double)w.cols <= DENSE_WORK / 8;
    if (!fits) return true;
    *known = read_product(of, &w, slots, n_slots, x, v, p);
    return *known;
}

void dense_product_free(dense_product *p) {
    free(p->x_nc);
    free(p->v_nr);
    free(p->b_r);
    free(p->w_rc);
}

size_t write_runs(char *text, size_t size, size_t n, const uint8_t *marks, size_t most) {
    size_t used = 0, runs = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n && used < size; i++) {
        if (!marks[i]) continue;
        size_t end = i + 1;
        while (end < n && marks[end]) end++;
        const char *before = runs > 0 ? ", " : "";
        if (runs++ == most) {
            snprintf(text + used, size - used, ", ...");
            break;
        }
        int wrote = end > i + 1
                        ? snprintf(text + used, size - used, "%s%zu-%zu", before, i, end - 1)
                        : snprintf(text + used, size - used, "%s%zu", before, i);
        used += (size_t)wrote;
        i = end;
    }
    return runs;
}

bool compose_products(composing *c, size_t n, dense_search *const *searches) {
    if (!dense_product_is(c->point) && !is_of_experts(c->point)) return true;
    operation o;
    dense_product p = {.n = 0};
    bool known = false, fine = operation_read(c, &o);
    const sinkproof_making of = composing_making(c);
    if (fine && !dense_product_read(&of, &p, &known)) fine = fail_for_memory(c->s);
    known = known && fine && o.whole && o.n > 0 && c->n >= 4;
    for (size_t i = 0; i < n && known && fine && c->found == NULL; i++) fine = searches[i](&o, &p);
    dense_product_free(&p);
    operation_free(&o);
    return fine;
}

bool compose_dense(composing *c, size_t n, dense_search *const *searches) {
    return !dense_product_is(c->point) || compose_products(c, n, searches);
}
