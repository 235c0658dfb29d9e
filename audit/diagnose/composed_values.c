// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_values.h"

#include "ref/operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- what the operation reads

// A sample of the elements outside: some rows from the first to the last, and elements spread over
// each.
static void draw_sample(operation *o) {
    const composing *c = o->c;
    size_t each = c->elements / c->n, rows = 0, failing = 0, taken[SAMPLED_ROWS];
    for (size_t i = 0; i < c->n; i++) failing += memchr(&c->marks[i * each], 1, each) != NULL;
    for (size_t i = 0, seen = 0; i < c->n && rows < SAMPLED_ROWS; i++) {
        if (memchr(&c->marks[i * each], 1, each) == NULL) continue;
        if (seen++ * SAMPLED_ROWS >= rows * failing) taken[rows++] = i;
    }
    for (size_t r = 0; r < rows; r++) {
        size_t outside = 0, seen = 0, some = SAMPLES / rows, got = 0;
        const uint8_t *marks = &c->marks[taken[r] * each];
        for (size_t k = 0; k < each; k++) outside += marks[k];
        for (size_t k = 0; k < each && got < some; k++)
            if (marks[k] && seen++ * some >= got * outside)
                o->at[o->n++] = taken[r] * each + k, got++;
    }
}

// The activations of a product as the policy lets it read them, where each number is rounded or
// each block.
static void round_operands(operation *o) {
    const sinkproof_policy *policy = o->c->s->trials.suspect.policy;
    bool product = o->kind == SINKPROOF_LINEAR || o->kind == SINKPROOF_MULTIPLY;
    sinkproof_point at;
    if (!product || o->x[0] == NULL || !sinkproof_trace_rounding(o->c->point, &at)) return;
    sinkproof_rounding how =
        sinkproof_operand_rounding(policy, sinkproof_product_points_at(at).in, &o->weights[0]);
    size_t cols = o->weights[0].cols, all = o->width[0] * o->c->n;
    if (sinkproof_is_scaled(how) || all % cols != 0) return;
    for (size_t row = 0; row < all; row += cols)
        sinkproof_operand_row(how, cols, &o->x[0][row], &o->x[0][row]);
}

static bool read_inputs(operation *o) {
    const composing *c = o->c;
    const sinkproof_trace *trace = c->s->trials.suspect.trace;
    o->n_inputs = sinkproof_trace_inputs(c->s->trials.config, c->point, o->layer, o->inputs);
    for (size_t i = 0; i < o->n_inputs; i++) {
        const sinkproof_tensor *t =
            sinkproof_trace_find(trace, o->inputs[i].point, o->inputs[i].layer);
        size_t all = t != NULL ? sinkproof_tensor_elements(t) : 0;
        if (t == NULL || all > COMPOSED_ELEMENTS) {
            o->whole = false;
            continue;
        }
        o->width[i] = all / c->n;
        o->x[i] = malloc((all + 1) * sizeof *o->x[i]);
        if (o->x[i] == NULL) return fail_for_memory(c->s);
        for (size_t at = 0; at < all; at++) o->x[i][at] = sinkproof_tensor_value(t, at);
    }
    round_operands(o);
    return true;
}

bool operation_read(composing *c, operation *o) {
    const sinkproof_config *config = c->s->trials.config;
    bool layered = sinkproof_trace_point_is_layered(c->point);
    *o = (operation){.c = c,
                     .kind = sinkproof_trace_operation(config, c->point),
                     .whole = true,
                     .layer = layered ? c->place : 0};
    o->n_weights = sinkproof_trace_weights(config, c->point, o->slots);
    for (size_t i = 0; i < o->n_weights; i++)
        o->weights[i] = sinkproof_model_slot(c->s->trials.suspect.model, o->layer, o->slots[i]);
    draw_sample(o);
    return read_inputs(o);
}

void operation_free(operation *o) {
    for (size_t i = 0; i < SINKPROOF_MAX_INPUTS; i++) free(o->x[i]);
}

// ---- one value

// A sample's row of a token, and its place in it.
typedef struct element {
    size_t i, slot, k; // token, slot, the last index
    int32_t expert;    // -1: none
} element;

static element element_at(const operation *o, const int32_t *chosen_nk, size_t at) {
    const composing *c = o->c;
    sinkproof_place place = sinkproof_place_of(c->s->trials.config, c->point, c->n, chosen_nk, at);
    size_t slot = place.along[ALONG_SLOTS], expert = place.along[ALONG_EXPERTS];
    return (element){.i = place.along[ALONG_ROWS],
                     .slot = slot == SIZE_MAX ? 0 : slot,
                     .k = place.along[ALONG_COORDINATES],
                     .expert = expert == SIZE_MAX ? -1 : (int32_t)expert};
}

static const double *input_row(const operation *o, const operation_change *change, size_t input,
                               size_t i) {
    const double *x = change->x != NULL && change->input == input ? change->x : o->x[input];
    return &x[i * o->width[input]];
}

// Row r of a weight; false: no memory.
static bool weight_row(const operation *o, const operation_change *change, size_t which, size_t e,
                       size_t r, double *row_c) {
    const sinkproof_matrix *stack = &o->weights[which];
    sinkproof_matrix one = sinkproof_matrix_at(stack, e);
    sinkproof_matrix_row(&one, r, row_c);
    if (change->edit != NULL && (change->edited == which || change->edited == SIZE_MAX))
        weight_row_rewrite(change->edit, stack, change->largest_e, e, r, row_c);
    return true;
}

static double dot(size_t n, const double *a, const double *b) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double swiglu(sinkproof_swiglu_numbers s, double gate, double up) {
    gate = fmin(gate, s.limit), up = fmin(fmax(up, -s.limit), s.limit);
    return gate / (1 + exp(-s.alpha * gate)) * (up + 1);
}

// Softmax over the chosen experts.
static double share_of(const operation *o, const double *g_e, const element *at) {
    size_t k = o->c->s->trials.config->n_chosen;
    const int32_t *chosen = &o->c->chosen_nk[at->i * k];
    double sum = 0;
    for (size_t s = 0; s < k; s++)
        sum += chosen[s] >= 0 ? exp(g_e[chosen[s]] - g_e[at->expert]) : NAN;
    return 1 / sum;
}

static double mixture(const operation *o, const double *d, const double *w, const element *at) {
    const sinkproof_config *config = o->c->s->trials.config;
    double sum = 0;
    for (size_t s = 0; s < config->n_chosen; s++) sum += w[s] * d[s * config->hidden + at->k];
    return sum;
}

// The row of the first weight that the element reads, and its number.
static size_t row_read(const operation *o, const element *at, size_t index) {
    switch (o->kind) {
    case SINKPROOF_EMBED:
        return (size_t)sinkproof_trace_tokens(o->c->s->trials.suspect.trace)[at->i];
    case SINKPROOF_LINEAR:
    case SINKPROOF_MULTIPLY:
        return index;
    default:
        return 0;
    }
}

// Of a point whose weights are not asked, or with those in `row`: W, and the bias in `bias`.
static double value_with(const operation *o, const operation_change *change, const element *at,
                         size_t index, const double *row, const double *bias) {
    const sinkproof_config *config = o->c->s->trials.config;
    const double *x = o->n_inputs > 0 ? input_row(o, change, 0, at->i) : NULL;
    size_t cols = o->n_weights > 0 ? o->weights[0].cols : 0;
    switch (o->kind) {
    case SINKPROOF_EMBED:
        return row[at->k];
    case SINKPROOF_NORM:
        return config->norm == SINKPROOF_LAYERNORM
                   ? NAN
                   : row[at->k] * x[at->k] / sqrt(dot(cols, x, x) / (double)cols + config->rms_eps);
    case SINKPROOF_LINEAR:
        return dot(cols, row, x) + (bias != NULL ? bias[index] : 0);
    case SINKPROOF_ADD:
        return x[at->k] + input_row(o, change, 1, at->i)[at->k];
    case SINKPROOF_MULTIPLY:
        return dot(cols, row, o->c->point == TRACE_M9 ? x + at->slot * cols : x);
    case SINKPROOF_ADD_BIAS:
        return x[at->slot * cols + at->k] + row[at->k];
    case SINKPROOF_ACTIVATE:
        if (config->activation != SINKPROOF_SWIGLU) return NAN;
        x += at->slot * 2 * config->inter + 2 * at->k;
        return swiglu(config->swiglu, x[0], x[1]);
    case SINKPROOF_SHARE:
        return at->expert >= 0 ? share_of(o, x, at) : NAN;
    case SINKPROOF_MIX:
        return mixture(o, x, input_row(o, change, 1, at->i), at);
    default:
        return NAN;
    }
}

double operation_value(const operation *o, const operation_change *change, size_t index) {
    element at =
        element_at(o, change->chosen_nk != NULL ? change->chosen_nk : o->c->chosen_nk, index);
    bool experts = o->kind == SINKPROOF_MULTIPLY || o->kind == SINKPROOF_ADD_BIAS;
    if (!o->whole || (experts && at.expert < 0)) return NAN;
    size_t each = o->c->elements / o->c->n, cols = 1, e = experts ? (size_t)at.expert : 0;
    size_t in_row = o->kind == SINKPROOF_LINEAR ? index % each : at.k;
    for (size_t i = 0; i < o->n_weights; i++) cols += o->weights[i].cols;
    double *row = malloc(cols * sizeof *row), value = NAN;
    if (row == NULL) return NAN;
    double *bias = o->n_weights > 1 ? row + o->weights[0].cols : NULL;
    if (o->n_weights > 0) weight_row(o, change, 0, e, row_read(o, &at, in_row), row);
    if (bias != NULL) weight_row(o, change, 1, e, 0, bias);
    value = value_with(o, change, &at, in_row, row, bias);
    free(row);
    return value;
}

// ---- the sample

bool value_is_near(const composing *c, size_t at, double value) {
    double width = fmax(fmax(c->hi[at] - c->lo[at], fabs(c->v[at]) * c->step), c->least);
    return fabs(value - c->v[at]) <= 4 * width;
}

bool operation_is_near(const operation *o, const operation_change *change) {
    size_t far = 0;
    for (size_t s = 0; s < o->n && 8 * far <= o->n; s++)
        far += !value_is_near(o->c, o->at[s], operation_value(o, change, o->at[s]));
    return o->n > 0 && 8 * far <= o->n;
}
