// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The row, stage by stage, and what the page may call.
#include "doc/explore/lines.h"

#include "base/splitmix.h"

#include <math.h>
#include <string.h>

static const char *const policies[ROW_POLICIES] = {"real-f64", "f32", "openai-bf16", "f16"};

sinkproof_policy row_policy(const row_given *given) {
    sinkproof_policy policy;
    sinkproof_policy_known(policies[(size_t)given->policy], &policy);
    return policy;
}

sinkproof_block row_block(size_t keys, size_t window) {
    return (sinkproof_block){.rows = 1,
                             .keys = keys,
                             .first = keys - 1,
                             .window = window,
                             .head_dim = ROW_DIM,
                             .q_stride = ROW_DIM,
                             .kv_stride = ROW_DIM};
}

// A query of one coordinate, sqrt(head_dim), and keys whose first coordinate is the score that is
// asked: the scaled dot product is this score, since 64 has an exact root.
static void make_scores(const sinkproof_policy *policy, const row_given *given, double *score) {
    double query[ROW_DIM] = {sqrt((double)ROW_DIM)}, key[ROW_KEYS * ROW_DIM] = {0};
    sinkproof_block block = row_block((size_t)given->keys, (size_t)given->window);
    for (size_t j = 0; j < block.keys; j++) key[j * ROW_DIM] = given->score[j];
    sinkproof_scores(policy, &block, query, key, score);
}

void row_attend(const sinkproof_policy *policy, row_form form, const row_operands *row,
                double *alpha, double out[ROW_SHOWN]) {
    double output[ROW_DIM];
    sinkproof_block block = row_block(row->keys, row->window);
    form_softmax(policy, form, &block, row->sink, row->score, alpha);
    sinkproof_values(policy, &block, alpha, row->value, output);
    memcpy(out, output, ROW_SHOWN * sizeof *out);
}

// m and Z of sink.stable in the order of ref/softmax_sink.c, which keeps them to itself; the
// log-sum-exp of the keys, and the gate.
static void explain(const sinkproof_policy *policy, const row_operands *row, row_result *result) {
    size_t first = (size_t)result->first;
    double m = row->sink;
    for (size_t j = first; j < row->keys; j++) m = fmax(m, row->score[j]);
    double z = exp(round_at(policy, AT_A9_MAX, row->sink - m)), most = -INFINITY, sum = 0;
    for (size_t j = first; j < row->keys; j++)
        z += exp(round_at(policy, AT_A9_MAX, row->score[j] - m)), most = fmax(most, row->score[j]);
    for (size_t j = first; j < row->keys; j++) sum += exp(row->score[j] - most);
    result->most = m, result->divisor = z;
    result->lse = most + log(sum), result->gate = 1 / (1 + exp(row->sink - result->lse));
}

void row_compute(const row_given *given, row_result *result) {
    sinkproof_policy policy = row_policy(given);
    row_operands row = {.keys = (size_t)given->keys, .window = (size_t)given->window};
    memset(result, 0, sizeof *result);
    make_scores(&policy, given, row.score);
    row.sink = round_at(&policy, AT_A8, given->sink);
    for (size_t j = 0; j < row.keys; j++)
        for (size_t d = 0; d < ROW_SHOWN; d++)
            row.value[j * ROW_DIM + d] = result->value[j][d] =
                round_at(&policy, AT_A2, given->value[j][d] + given->bias[d]);
    double alpha[ROW_KEYS + 1];
    row_attend(&policy, (row_form)given->form, &row, alpha, result->out);
    memcpy(result->score, row.score, row.keys * sizeof *row.score);
    memcpy(result->alpha, alpha, row.keys * sizeof *alpha);
    result->sink = row.sink, result->alpha_sink = alpha[row.keys];
    result->first = (double)sinkproof_mask_first(row.window, row.keys - 1);
    explain(&policy, &row, result);
    check_laws(&policy, (row_form)given->form, given->shift, &row, result);
}

// ---- drawn rows ---------------------------------------------------------------------------------

static double draw_between(uint64_t *state, double least, double most) {
    return least + (most - least) * (double)(sinkproof_draw(state) >> 11) * 0x1p-53;
}

void row_draw(double policy, double form, double number, row_given *given) {
    uint64_t state = sinkproof_draw_nth(41, (uint64_t)number);
    memset(given, 0, sizeof *given);
    given->policy = policy, given->form = form;
    given->keys = (double)sinkproof_draw_from_to(&state, 1, ROW_KEYS);
    given->window = (double)sinkproof_draw_from_to(&state, 1, (size_t)given->keys);
    double spread = draw_between(&state, 0, 12);
    given->sink = draw_between(&state, -spread, spread), given->shift = 2;
    for (size_t d = 0; d < ROW_SHOWN; d++) given->bias[d] = draw_between(&state, -3, 3);
    for (size_t j = 0; j < (size_t)given->keys; j++) {
        given->score[j] = draw_between(&state, -spread, spread);
        for (size_t d = 0; d < ROW_SHOWN; d++) given->value[j][d] = draw_between(&state, -3, 3);
    }
}

#ifdef __wasm__
// ---- the pages' door: places in memory, and what fills them
#define DOOR(name) __attribute__((export_name(#name)))
static row_given given;
static row_result result;
static lines_result lines;
DOOR(given) double *page_given(void);
DOOR(result) double *page_result(void);
DOOR(lines) double *page_lines(void);
DOOR(compute) void page_compute(void);
DOOR(compute_lines) void page_compute_lines(void);
DOOR(draw) void page_draw(double policy, double form, double number);

double *page_given(void) {
    return (double *)&given;
}
double *page_result(void) {
    return (double *)&result;
}
double *page_lines(void) {
    return (double *)&lines;
}
void page_compute_lines(void) {
    lines_compute(&given, &lines);
}
void page_compute(void) {
    row_compute(&given, &result);
}
void page_draw(double policy, double form, double number) {
    row_draw(policy, form, number, &given);
}
#endif
