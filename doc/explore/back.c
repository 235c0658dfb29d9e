// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of a row, and four laws of them. c = 2^-53 is binary64's unit, E the relative error
// of a weight (laws.c), dv = max_j sum_d |dO_d v_jd|. Each bound counts roundings, with one unit
// more than is counted for the bounds' own arithmetic.
#include "doc/explore/back.h"

#include "base/splitmix.h"
#include "ref/backward/backward.h"

#include <math.h>
#include <string.h>

static const double c = 0x1p-53, step = 0x1p-15; // step: h of the difference quotients

// What is computed once: the row with its weights, and what the bounds are made of.
typedef struct back_row {
    sinkproof_policy policy;
    row_operands row;
    sinkproof_block block;
    double d_out[ROW_DIM], d_lse;
    double n, pull, size; // keys that are seen, dv, and dv + |dLSE|
} back_row;

static double lse_of(const row_operands *row) {
    size_t first = sinkproof_mask_first(row->window, row->keys - 1);
    double m = row->sink, sum = 0;
    for (size_t j = first; j < row->keys; j++) m = fmax(m, row->score[j]);
    for (size_t j = first; j < row->keys; j++) sum += exp(row->score[j] - m);
    return m + log(exp(row->sink - m) + sum);
}

static double loss_of(const back_row *b, const row_operands *row) {
    double alpha[ROW_KEYS + 1], out[ROW_SHOWN], loss = 0;
    row_attend(&b->policy, FORM_RIGHT, row, alpha, out);
    for (size_t d = 0; d < ROW_SHOWN; d++) loss += b->d_out[d] * out[d];
    return loss + b->d_lse * lse_of(row);
}

static back_row read(const back_given *given) {
    const row_given *g = &given->row;
    back_row b = {.policy = row_policy(g), .d_lse = given->d_lse};
    b.row = (row_operands){.keys = (size_t)g->keys, .window = (size_t)g->window, .sink = g->sink};
    b.block = row_block(b.row.keys, b.row.window);
    for (size_t d = 0; d < ROW_SHOWN; d++) b.d_out[d] = given->d_out[d];
    size_t first = sinkproof_mask_first(b.row.window, b.row.keys - 1);
    for (size_t j = 0; j < b.row.keys; j++) {
        double pull = 0;
        b.row.score[j] = g->score[j];
        for (size_t d = 0; d < ROW_SHOWN; d++) {
            b.row.value[j * ROW_DIM + d] = g->value[j][d] + g->bias[d];
            pull += fabs(b.d_out[d] * b.row.value[j * ROW_DIM + d]);
        }
        if (j >= first) b.pull = fmax(b.pull, pull);
    }
    b.n = (double)(b.row.keys - first), b.size = b.pull + fabs(b.d_lse);
    return b;
}

// The stages of ref/backward/, each given what the mistake makes of its inputs.
static void differentiate(const back_row *b, back_form form, back_result *r) {
    double alpha[ROW_KEYS + 1], output[ROW_DIM] = {0}, d_value[ROW_KEYS * ROW_DIM] = {0};
    row_attend(&b->policy, FORM_RIGHT, &b->row, alpha, r->out);
    r->alpha_sink = alpha[b->row.keys], r->lse = lse_of(&b->row), r->loss = loss_of(b, &b->row);
    memcpy(r->alpha, alpha, b->row.keys * sizeof *alpha);
    double kept = 0;
    for (size_t j = 0; j < b->row.keys; j++) kept += alpha[j];
    if (form == BACK_SINKLESS)
        for (size_t j = 0; j < b->row.keys; j++) alpha[j] /= kept;
    for (size_t d = 0; d < ROW_SHOWN; d++)
        output[d] = form == BACK_RENORMALISED ? r->out[d] / kept : r->out[d];
    sinkproof_values_backward(&b->block, alpha, b->row.value, b->d_out, r->d_alpha, d_value);
    for (size_t j = 0; j < b->row.keys; j++)
        memcpy(r->d_value[j], d_value + j * ROW_DIM, sizeof r->d_value[j]);
    for (size_t d = 0; d < ROW_SHOWN; d++) r->delta += b->d_out[d] * output[d];
    sinkproof_softmax_sink_backward(&b->block, alpha, output, b->d_out, r->d_alpha, r->d_score,
                                    &r->d_sink);
    if (form == BACK_SIGN) r->d_sink = -r->d_sink;
    if (form == BACK_PER_PART) r->d_sink *= 2;
    if (form != BACK_LSE_LOST)
        sinkproof_lse_backward(&b->block, true, b->row.score, alpha, &b->d_lse, r->d_score,
                               &r->d_sink);
}

// law.shift read backwards: scores and sink plus t change no weight, and LSE by t. The same
// exponentials stand above and below, so the weights sum to 1 within 2 n + 6 roundings; D, each
// product and the sum of them add 3 n + 20.
static row_checked check_sum(const back_row *b, const back_result *r) {
    row_checked law = nothing_compared();
    double sum = r->d_sink;
    for (size_t j = (size_t)r->first; j < b->row.keys; j++) sum += r->d_score[j];
    compare_sides(&law, sum, b->d_lse, 2 * b->size * (5 * b->n + 27) * c);
    return law;
}

// grad.delta: sum_j alpha_j dalpha_j, and <dO, o>.
static row_checked check_delta(const back_row *b, const back_result *r) {
    row_checked law = nothing_compared();
    double sum = 0;
    for (size_t j = (size_t)r->first; j < b->row.keys; j++) sum += r->alpha[j] * r->d_alpha[j];
    compare_sides(&law, sum, r->delta, b->pull * (2 * b->n + 13) * c);
    return law;
}

// grad.value-bias: sum_j dv_j = (1 - alpha_s) dO.
static row_checked check_bias(const back_row *b, const back_result *r) {
    row_checked law = nothing_compared();
    for (size_t d = 0; d < ROW_SHOWN; d++) {
        double sum = 0;
        for (size_t j = (size_t)r->first; j < b->row.keys; j++) sum += r->d_value[j][d];
        compare_sides(&law, sum, (1 - r->alpha_sink) * b->d_out[d],
                      fabs(b->d_out[d]) * (3 * b->n + 12) * c);
    }
    return law;
}

// Each gradient beside (L(x + h) - L(x - h)) / 2h. As a function of one score, or of b, each weight
// is a sigmoid times a constant, or 1 minus one: its third derivative is at most 1/8. That of LSE
// is at most 0.0963. So the quotient is off by h^2 / 6 (dv / 4 + 0.0963 |dLSE|), and by what L errs
// over h: a weight by E, LSE by a few roundings, x + h by one.
static row_checked check_slope(const back_row *b, const back_result *r) {
    row_checked law = nothing_compared();
    double weight = row_weight_error(&b->policy, &b->row), most = fabs(b->row.sink);
    for (size_t j = 0; j < b->row.keys; j++) most = fmax(most, fabs(b->row.score[j]));
    double evaluated = b->pull * (weight + (b->n + 9) * c) +
                       fabs(b->d_lse) * (3 * most + log(b->n + 1) + b->n + 12) * c;
    double bound = step * step / 6 * (b->pull / 4 + 0.0963 * fabs(b->d_lse)) +
                   (evaluated + 2 * b->size * (most + 1) * c) / step +
                   3 * b->size * (weight + (b->n + 12) * c);
    for (size_t j = (size_t)r->first; j <= b->row.keys; j++) {
        row_operands up = b->row, down = b->row;
        bool sink = j == b->row.keys;
        *(sink ? &up.sink : &up.score[j]) += step;
        *(sink ? &down.sink : &down.score[j]) -= step;
        compare_sides(&law, sink ? r->d_sink : r->d_score[j],
                      (loss_of(b, &up) - loss_of(b, &down)) / (2 * step), bound);
    }
    return law;
}

void back_compute(const back_given *given, back_result *result) {
    back_row b = read(given), along = b;
    memset(result, 0, sizeof *result);
    result->first = (double)sinkproof_mask_first(b.row.window, b.row.keys - 1);
    differentiate(&b, (back_form)given->form, result);
    for (size_t k = 0; k < BACK_CURVE; k++) {
        along.row.sink = -8 + (double)k / 4;
        result->curve[k] = loss_of(&b, &along.row);
    }
    result->law[BACK_SUM] = check_sum(&b, result);
    result->law[BACK_DELTA] = check_delta(&b, result);
    result->law[BACK_BIAS] = check_bias(&b, result);
    result->law[BACK_SLOPE] = check_slope(&b, result);
}

void back_draw(double form, double number, back_given *given) {
    uint64_t state = sinkproof_draw_nth(43, (uint64_t)number);
    memset(given, 0, sizeof *given);
    row_draw(ROW_REAL, FORM_RIGHT, number, &given->row);
    given->form = form;
    for (size_t d = 0; d < ROW_SHOWN; d++)
        given->d_out[d] = 6 * (double)(sinkproof_draw(&state) >> 11) * 0x1p-53 - 3;
    given->d_lse = number / 3 == floor(number / 3)
                       ? 0
                       : 4 * (double)(sinkproof_draw(&state) >> 11) * 0x1p-53 - 2;
}

#ifdef __wasm__
#define DOOR(name) __attribute__((export_name(#name)))
static back_given given;
static back_result result;
DOOR(back_given) double *page_back_given(void);
DOOR(back_result) double *page_back_result(void);
DOOR(back_compute) void page_back_compute(void);
DOOR(back_draw) void page_back_draw(double form, double number);

double *page_back_given(void) {
    return (double *)&given;
}
double *page_back_result(void) {
    return (double *)&result;
}
void page_back_compute(void) {
    back_compute(&given, &result);
}
void page_back_draw(double form, double number) {
    back_draw(form, number, &given);
}
#endif
