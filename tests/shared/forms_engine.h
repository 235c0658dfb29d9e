// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Float32 kernels of the attention weights as engines ship them: the definition, base 2 in three
// ways, running maxima, weights from the log-sum-exp, the gate. Sums run in any order; exp and log
// have the policies' default error, 2 ulp.
#ifndef SINKPROOF_FORMS_ENGINE_H
#define SINKPROOF_FORMS_ENGINE_H

#include "tests/shared/bounds_engine.h"

enum { MOST = 4096 };

typedef struct row {
    size_t n;
    float raw[MOST], scale; // z = raw * scale, rounded: what A6 holds
    float z[MOST], b;
} row;

typedef struct machine { // how exp and log err, and in which order sums run
    uint64_t *state;
    leaning lean;
    summation order;
} machine;

static float exp_of(const machine *f, float t) {
    return fmaxf(within_ulps(f->state, exp((double)t), t == 0 ? 0 : 2, f->lean), 0);
}
static float exp2_of(const machine *f, float t) {
    return fmaxf(within_ulps(f->state, exp2((double)t), t == 0 ? 0 : 2, f->lean), 0);
}
static float log_of(const machine *f, float x) {
    return within_ulps(f->state, log((double)x), 2, f->lean);
}
static float log1p_of(const machine *f, float x) {
    return within_ulps(f->state, log1p((double)x), 2, f->lean);
}

static float top_of(size_t n, const float *x) {
    float m = -INFINITY;
    for (size_t j = 0; j < n; j++) m = fmaxf(m, x[j]);
    return m;
}

// alpha [n + 1] of terms e [n + 1].
static void divide(const machine *f, size_t n, const float *e, float *alpha) {
    float sum = engine_sum(f->state, f->order, n + 1, e);
    for (size_t j = 0; j <= n; j++) alpha[j] = e[j] / sum;
}

static float with_sink[MOST + 1], e_j[MOST + 1], y_j[MOST + 1];

static const float *joined(const row *r) {
    memcpy(with_sink, r->z, r->n * sizeof *r->z);
    with_sink[r->n] = r->b;
    return with_sink;
}

static const float log2_e = 1.44269504f;

static void definition(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    float m = top_of(r->n + 1, z);
    for (size_t j = 0; j <= r->n; j++) e_j[j] = exp_of(f, z[j] - m);
    divide(f, r->n, e_j, alpha);
}

// y = z log2(e), as a separate product.
static void base_2(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    for (size_t j = 0; j <= r->n; j++) y_j[j] = z[j] * log2_e;
    float m = top_of(r->n + 1, y_j);
    for (size_t j = 0; j <= r->n; j++) e_j[j] = exp2_of(f, y_j[j] - m);
    divide(f, r->n, e_j, alpha);
}

// The product and the difference in one FMA.
static void base_2_fused(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    float m = top_of(r->n + 1, z) * log2_e;
    for (size_t j = 0; j <= r->n; j++) e_j[j] = exp2_of(f, fmaf(z[j], log2_e, -m));
    divide(f, r->n, e_j, alpha);
}

// y = q k times fl(scale log2(e)): A6 is never computed.
static void base_2_folded(const machine *f, const row *r, float *alpha) {
    float c = r->scale * log2_e;
    for (size_t j = 0; j < r->n; j++) y_j[j] = r->raw[j] * c;
    y_j[r->n] = r->b * log2_e;
    float m = top_of(r->n + 1, y_j);
    for (size_t j = 0; j <= r->n; j++) e_j[j] = exp2_of(f, y_j[j] - m);
    divide(f, r->n, e_j, alpha);
}

// Blocks of 32 keys; the sum and the terms are rescaled at each new maximum, and the sink is added
// at the end.
static void running_max(const machine *f, const row *r, float *alpha) {
    float m = -INFINITY, sum = 0;
    for (size_t first = 0, end; first < r->n; first = end) {
        end = first + 32 < r->n ? first + 32 : r->n;
        float next = fmaxf(m, top_of(end - first, r->z + first));
        float factor = m == next ? 1 : exp_of(f, m - next), part = 0;
        for (size_t j = 0; j < first; j++) e_j[j] *= factor;
        for (size_t j = first; j < end; j++) part += e_j[j] = exp_of(f, r->z[j] - next);
        sum = fmaf(sum, factor, part), m = next;
    }
    float last = fmaxf(m, r->b), factor = exp_of(f, m - last);
    e_j[r->n] = exp_of(f, r->b - last);
    sum = sum * factor + e_j[r->n];
    for (size_t j = 0; j < r->n; j++) alpha[j] = e_j[j] * factor / sum;
    alpha[r->n] = e_j[r->n] / sum;
}

// The same in base 2, with m c rounded separately, as in a flash kernel that folds its scale.
static void running_max_base_2(const machine *f, const row *r, float *alpha) {
    float c = r->scale * log2_e, m = -INFINITY, sum = 0;
    for (size_t first = 0, end; first < r->n; first = end) {
        end = first + 64 < r->n ? first + 64 : r->n;
        float next = fmaxf(m, top_of(end - first, r->raw + first));
        float factor = m == next ? 1 : exp2_of(f, (m - next) * c), part = 0;
        for (size_t j = 0; j < first; j++) e_j[j] *= factor;
        for (size_t j = first; j < end; j++)
            part += e_j[j] = exp2_of(f, fmaf(r->raw[j], c, -(next * c)));
        sum = fmaf(sum, factor, part), m = next;
    }
    float last = fmaxf(m * c, r->b * log2_e), factor = exp2_of(f, m * c - last);
    e_j[r->n] = exp2_of(f, fmaf(r->b, log2_e, -last));
    sum = sum * factor + e_j[r->n];
    for (size_t j = 0; j < r->n; j++) alpha[j] = e_j[j] * factor / sum;
    alpha[r->n] = e_j[r->n] / sum;
}

static float lse_float(const machine *f, size_t n, const float *z) {
    float m = top_of(n, z);
    for (size_t j = 0; j < n; j++) e_j[j] = exp_of(f, z[j] - m);
    return m + log_of(f, engine_sum(f->state, f->order, n, e_j));
}

static void lse_subtracted(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    float lse = lse_float(f, r->n + 1, z);
    for (size_t j = 0; j <= r->n; j++) alpha[j] = exp_of(f, z[j] - lse);
}

// The sink is added to a finished LSE: max + log1p(exp(min - max)).
static void lse_joined(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    float keys = lse_float(f, r->n, z), most = fmaxf(keys, r->b), least = fminf(keys, r->b);
    float lse = most + log1p_of(f, exp_of(f, least - most));
    for (size_t j = 0; j <= r->n; j++) alpha[j] = exp_of(f, z[j] - lse);
}

// LSE is stored in natural units, and the weights are computed again in base 2: a flash kernel's
// backward pass.
static void lse_base_2(const machine *f, const row *r, float *alpha) {
    const float *z = joined(r);
    float c = r->scale * log2_e, lse = lse_float(f, r->n + 1, z);
    for (size_t j = 0; j < r->n; j++) alpha[j] = exp2_of(f, fmaf(r->raw[j], c, -(lse * log2_e)));
    alpha[r->n] = exp2_of(f, (r->b - lse) * log2_e);
}

static float sigmoid_of(const machine *f, float x) {
    return 1 / (1 + exp_of(f, -x));
}

static void gate_with(const machine *f, const row *r, float lse, float *alpha) {
    float gate = sigmoid_of(f, lse - r->b);
    float m = top_of(r->n, r->z);
    for (size_t j = 0; j < r->n; j++) e_j[j] = exp_of(f, r->z[j] - m);
    float sum = engine_sum(f->state, f->order, r->n, e_j), reciprocal = 1 / sum;
    for (size_t j = 0; j < r->n; j++) alpha[j] = e_j[j] * reciprocal * gate;
    alpha[r->n] = sigmoid_of(f, r->b - lse);
}

static void lse_gated(const machine *f, const row *r, float *alpha) {
    gate_with(f, r, lse_float(f, r->n, r->z), alpha);
}

typedef struct kernel {
    const char *name, *id, *forms;
    void (*run)(const machine *f, const row *r, float *alpha);
} kernel;

static const kernel kernels[] = {
    {"the definition", "bound.softmax-sink", "definition", definition},
    {"base 2 unfused", "bound.form-base2", "base-2", base_2},
    {"base 2 with FMA", "bound.form-base2", "base-2", base_2_fused},
    {"base 2 folded into the scale", "bound.form-base2", "base-2", base_2_folded},
    {"a running maximum", "bound.form-running-max", "running-max", running_max},
    {"a running maximum in base 2", "bound.form-running-max", "running-max|base-2",
     running_max_base_2},
    {"exp(s - LSE)", "bound.form-lse", "lse-subtracted", lse_subtracted},
    {"exp(s - LSE), the sink joined last", "bound.form-lse", "lse-subtracted", lse_joined},
    {"exp(s - LSE) in base 2", "bound.form-lse", "lse-subtracted|base-2", lse_base_2},
    {"sigmoid(LSE - b)", "bound.form-lse", "lse-gated", lse_gated},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static machine draw_machine(uint64_t *state) {
    uint64_t w = draw(state);
    return (machine){state, (leaning)(w % LEANS), (summation)((w >> 8) % ORDERS)};
}

#endif
