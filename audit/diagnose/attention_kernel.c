// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/attention_kernel.h"
#include "ref/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what is read

static double *numbers_of(const sinkproof_making *of, sinkproof_trace_point point, size_t all) {
    const sinkproof_tensor *t = sinkproof_trace_find(of->trace, point, of->layer);
    if (t == NULL || sinkproof_tensor_elements(t) != all) return NULL;
    double *x = malloc((all + 1) * sizeof *x);
    for (size_t i = 0; x != NULL && i < all; i++) x[i] = sinkproof_tensor_value(t, i);
    return x;
}

static double *sinks_of(const sinkproof_making *of) {
    const sinkproof_config *c = of->config;
    double *sink_h = calloc(c->n_heads + 1, sizeof *sink_h);
    double *work = calloc(sinkproof_normaliser_work(c) + 1, sizeof *work);
    sinkproof_layer layer = sinkproof_model_layer(of->model, of->layer);
    for (size_t h = 0; sink_h != NULL && work != NULL && h < c->n_heads; h++)
        sink_h[h] = sinkproof_head_normaliser(c, &layer, h, work).logit;
    if (work == NULL) {
        free(sink_h);
        sink_h = NULL;
    }
    free(work);
    return sink_h;
}

static const sinkproof_tensor *weights_of(const sinkproof_making *of, size_t *columns) {
    const sinkproof_tensor *t = sinkproof_trace_find(of->trace, TRACE_A10, of->layer);
    if (t == NULL) t = sinkproof_trace_find(of->trace, TRACE_A9, of->layer);
    bool whole = t != NULL && t->rank == 3 && t->shape[0] == of->config->n_heads &&
                 t->shape[1] == of->n && t->shape[2] >= of->n;
    *columns = whole ? t->shape[2] : 0;
    return whole ? t : NULL;
}

bool kernel_open(const sinkproof_making *of, kernel *x) {
    const sinkproof_config *c = of->config;
    *x = (kernel){.of = of, .n = of->n, .heads = c->n_heads, .groups = c->n_kv_heads};
    x->d = c->head_dim;
    x->each = x->heads / x->groups, x->window = c->sliding[of->layer] ? c->window : 0;
    if (sinkproof_trace_first(of->trace) != 0 || sinkproof_trace_sequences(of->trace) > 1)
        return false;
    x->q = numbers_of(of, TRACE_A4_Q, x->n * x->heads * x->d);
    x->k = numbers_of(of, TRACE_A4_K, x->n * x->groups * x->d);
    x->v = numbers_of(of, TRACE_A2_V, x->n * x->groups * x->d);
    x->sink_h = sinks_of(of), x->z = calloc(3 * x->n + x->d + 4, sizeof *x->z);
    x->v_at = calloc(x->n + 1, sizeof *x->v_at);
    x->weights = weights_of(of, &x->columns);
    bool there = x->q != NULL && x->k != NULL && x->v != NULL && x->sink_h != NULL &&
                 x->z != NULL && x->v_at != NULL;
    if (!there) kernel_close(x);
    if (there) x->terms = x->z + x->n + 1, x->a = x->terms + x->n + 1;
    if (there) x->y_c = x->a + x->n + 1;
    return there;
}

void kernel_close(kernel *x) {
    free(x->q);
    free(x->k);
    free(x->v);
    free(x->sink_h);
    free(x->z);
    free(x->v_at);
}

// ---- one row

size_t kernel_first(const kernel *x, size_t i) {
    return x->window > 0 && i + 1 > x->window ? i + 1 - x->window : 0;
}

void kernel_read(kernel *x, const double *k, const double *v, size_t h, size_t i, size_t j) {
    const double *q_c = x->q + (i * x->heads + h) * x->d;
    const double *k_c = k + (j * x->groups + h / x->each) * x->d;
    double sum = 0, size = 0;
    for (size_t c = 0; c < x->d; c++) sum += q_c[c] * k_c[c], size += fabs(q_c[c] * k_c[c]);
    x->z[j] = sum / sqrt((double)x->d), x->terms[j] = size / sqrt((double)x->d);
    x->v_at[j] = v + (j * x->groups + h / x->each) * x->d;
}

size_t kernel_read_all(kernel *x, const double *k, const double *v, size_t h, size_t i) {
    size_t first = kernel_first(x, i);
    for (size_t j = first; j <= i; j++) kernel_read(x, k, v, h, i, j);
    return first;
}

void kernel_weigh(kernel *x, size_t h, size_t i, size_t first) {
    double top = x->sink_h[h], sum;
    if (x->weights != NULL) {
        for (size_t j = first; j <= i; j++)
            x->a[j] = sinkproof_tensor_value(x->weights, (h * x->n + i) * x->columns + j);
        return;
    }
    for (size_t j = first; j <= i; j++) top = fmax(top, x->z[j]);
    sum = exp(x->sink_h[h] - top);
    for (size_t j = first; j <= i; j++) sum += x->a[j] = exp(x->z[j] - top);
    for (size_t j = first; j <= i; j++) x->a[j] /= sum;
}

void kernel_sum(const kernel *x, size_t i, size_t first, double *y_c) {
    memset(y_c, 0, x->d * sizeof *y_c);
    for (size_t j = first; j <= i; j++)
        for (size_t c = 0; c < x->d; c++) y_c[c] += x->a[j] * x->v_at[j][c];
}

// By how much the roundings may move each weight, for its size.
static double moved_weight(const kernel *x, size_t j, double top) {
    const double *by = x->of->table;
    return x->weights != NULL ? 0
                              : by[KERNEL_SCORES] * (fabs(x->z[j]) + fabs(top - x->z[j])) +
                                    by[KERNEL_TERMS] * x->terms[j];
}

void kernel_widths(const kernel *x, double step, size_t h, size_t i, size_t first,
                   const double *y_c, double *width_c) {
    const sinkproof_making *of = x->of;
    const double *by = of->table;
    size_t at = (i * x->heads + h) * x->d;
    double most = 0, own = 0, radius = 0, top = x->sink_h[h];
    for (size_t j = first; j <= i; j++) top = fmax(top, x->z[j]);
    for (size_t c = 0; c < x->d; c++) {
        most = fmax(most, fabs(y_c[c])), own = fmax(own, fabs(of->x[at + c]));
        if (of->radius != NULL) radius = fmax(radius, of->radius[at + c]);
    }
    double size = own > 0 ? fmin(most / own, 4) : 1;
    for (size_t c = 0; c < x->d; c++) width_c[c] = (2 * radius + step * own) * size;
    for (size_t j = first; j <= i; j++) {
        double moved = moved_weight(x, j, top);
        for (size_t c = 0; c < x->d; c++)
            width_c[c] +=
                x->a[j] * (moved * fabs(x->v_at[j][c] - y_c[c]) +
                           (by[KERNEL_WEIGHTS] + by[KERNEL_VALUES]) * fabs(x->v_at[j][c]));
    }
}

void kernel_onto(kernel *x, size_t h, size_t i, double *y_c) {
    size_t first = kernel_read_all(x, x->k, x->v, h, i), at = (i * x->heads + h) * x->d;
    kernel_weigh(x, h, i, first);
    kernel_sum(x, i, first, x->y_c);
    for (size_t c = 0; c < x->d; c++) y_c[c] += x->of->x[at + c] - x->y_c[c];
}
