// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is added to a point is a product of few numbers of each token and few numbers of each place:
// a bias behind a rotation, a step in all weights of a row (a zero point), an adapter of low rank.
#include "audit/diagnose/composed_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, ROUNDS = 60 };

typedef struct low_rank {
    composing *c;
    size_t n, each, ranks;
    double *left, *right; // [MOST_RANKS, n], [MOST_RANKS, each]
    double *rest;         // what remains, [n, each]
    double noise;         // the root mean square of what the sets leave open
} low_rank;

static double root_mean(const double *x, size_t count) {
    double square = 0;
    for (size_t i = 0; i < count; i++) square += x[i] * x[i];
    return sqrt(square / (double)count);
}

static void multiply(const low_rank *l, const double *t_i, double *u_k) {
    for (size_t k = 0; k < l->each; k++) u_k[k] = 0;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->each; k++) u_k[k] += t_i[i] * l->rest[i * l->each + k];
}

static void multiply_back(const low_rank *l, const double *u_k, double *t_i) {
    for (size_t i = 0; i < l->n; i++) {
        t_i[i] = 0;
        for (size_t k = 0; k < l->each; k++) t_i[i] += l->rest[i * l->each + k] * u_k[k];
    }
}

static double normalise(double *x, size_t n) {
    double length = root_mean(x, n) * sqrt((double)n);
    for (size_t i = 0; i < n && length > 0; i++) x[i] /= length;
    return length;
}

// Takes the largest product from what remains; t_i begins as it is, and stays if `given`.
static void take_rank(low_rank *l, bool given) {
    double *t_i = &l->left[l->ranks * l->n], *u_k = &l->right[l->ranks * l->each];
    for (int round = 0; round < (given ? 1 : ROUNDS); round++) {
        if (!given) normalise(t_i, l->n);
        multiply(l, t_i, u_k);
        if (!given) normalise(u_k, l->each), multiply_back(l, u_k, t_i);
    }
    double square = 0;
    for (size_t i = 0; i < l->n; i++) square += t_i[i] * t_i[i];
    for (size_t k = 0; given && k < l->each; k++) u_k[k] /= square > 0 ? square : 1;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->each; k++) l->rest[i * l->each + k] -= t_i[i] * u_k[k];
    l->ranks++;
}

static void begin(low_rank *l) {
    const composing *c = l->c;
    double square = 0;
    l->ranks = 0;
    for (size_t at = 0; at < c->elements; at++) {
        double size = fmax(fabs(c->v[at]), fabs(c->mid[at]));
        double width = fmax(c->hi[at] - c->lo[at], 2 * c->step * size);
        l->rest[at] = c->v[at] - c->mid[at], square += width * width / 4;
    }
    l->noise = sqrt(square / (double)c->elements) + c->least;
}

// Whether most tokens and most places have a part in each product: one wrong row or column of
// anything has rank 1 too.
static bool is_spread(const low_rank *l) {
    for (size_t r = 0; r < l->ranks; r++) {
        size_t tokens = 0, places = 0;
        const double *t_i = &l->left[r * l->n], *u_k = &l->right[r * l->each];
        double t = root_mean(t_i, l->n), u = root_mean(u_k, l->each);
        for (size_t i = 0; i < l->n; i++) tokens += fabs(t_i[i]) > t / 100;
        for (size_t k = 0; k < l->each; k++) places += fabs(u_k[k]) > u / 100;
        if (4 * tokens < 3 * l->n || 4 * places < l->each) return false;
    }
    return true;
}

static bool is_explained(const low_rank *l) {
    return root_mean(l->rest, l->c->elements) <= 2 * l->noise;
}

static bool try_ranks(low_rank *l, const char *id, const char *text) {
    composing *c = l->c;
    size_t rows = l->ranks * l->n, columns = l->ranks * l->each;
    double size = 0;
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->moving = (sinkproof_moving){
        .on = true, .point = c->point, .along = ALONG_ROWS, .factor = 1, .ranks = l->ranks};
    m->moving.rank_i = (const double *)(const void *)composing_keep_marks(
        c, rows * sizeof *l->left, (const uint8_t *)(const void *)l->left);
    m->moving.rank_k = (const double *)(const void *)composing_keep_marks(
        c, columns * sizeof *l->right, (const uint8_t *)(const void *)l->right);
    if (m->moving.rank_i == NULL || m->moving.rank_k == NULL) return fail_for_memory(c->s);
    for (size_t r = 0; r < l->ranks; r++)
        size += root_mean(&l->left[r * l->n], l->n) * root_mean(&l->right[r * l->each], l->each);
    // each number of a product is a mean over tokens or places
    m->moving.rank_error = fmin(2 * l->noise / size, 0.05);
    m->moving.rounds_more = true;
    composed_name(m, "%s-%s", sinkproof_trace_point_name(c->point), id);
    composed_say(m, "%s", text);
    return composing_try(c, m);
}

// The product of known numbers of the tokens, and what fits them.
static bool try_known(low_rank *l, const double *t_i, const char *id, const char *text) {
    begin(l);
    memcpy(l->left, t_i, l->n * sizeof *t_i);
    take_rank(l, true);
    return !is_explained(l) || !is_spread(l) || try_ranks(l, id, text);
}

// The bias itself, behind the rotation.
static bool try_bias(low_rank *l) {
    const composing *c = l->c;
    sinkproof_slot slot = c->point == TRACE_A4_Q ? SINKPROOF_B_Q : SINKPROOF_B_K;
    if (c->point != TRACE_A4_Q && c->point != TRACE_A4_K) return true;
    sinkproof_matrix bias = sinkproof_model_slot(c->s->trials.suspect.model, c->place, slot);
    if (bias.count == 0 || bias.cols != l->each) return true;
    begin(l);
    for (size_t i = 0; i < l->n; i++) l->left[i] = 1;
    sinkproof_matrix_row(&bias, 0, l->right);
    for (size_t at = 0; at < c->elements; at++) l->rest[at] -= l->right[at % l->each];
    l->ranks = 1;
    return !is_explained(l) ||
           try_ranks(l, "bias-after-rotation",
                     c->point == TRACE_A4_Q
                         ? "the biases of the queries are added after the rotation, not before it"
                         : "the biases of the keys are added after the rotation, not before it");
}

static bool try_ones(low_rank *l, double *t_i) {
    const composing *c = l->c;
    const char *name = sinkproof_trace_point_name(c->point);
    bool rotated = c->point == TRACE_A4_Q || c->point == TRACE_A4_K;
    char text[COMPOSED_TEXT];
    for (size_t i = 0; i < l->n; i++) t_i[i] = 1;
    snprintf(text, sizeof text, "the same numbers are added to %s of every token, as %s", name,
             rotated ? "a bias that is added after the rotation, not before it" : "a bias would");
    return try_known(l, t_i, rotated ? "bias-after-rotation" : "plus-bias", text);
}

static bool try_sums(low_rank *l, double *t_i) {
    const composing *c = l->c;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    size_t n =
        sinkproof_trace_inputs(c->s->trials.config, c->point,
                               sinkproof_trace_point_is_layered(c->point) ? c->place : 0, inputs);
    const sinkproof_tensor *x =
        n > 0 ? sinkproof_trace_find(c->s->trials.suspect.trace, inputs[0].point, inputs[0].layer)
              : NULL;
    if (x == NULL || sinkproof_trace_operation(c->s->trials.config, c->point) != SINKPROOF_LINEAR)
        return true;
    size_t width = sinkproof_tensor_elements(x) / l->n;
    for (size_t i = 0; i < l->n; i++) {
        t_i[i] = 0;
        for (size_t k = 0; k < width; k++) t_i[i] += sinkproof_tensor_value(x, i * width + k);
    }
    return try_known(l, t_i, "weights-plus-constant",
                     "a constant is added to all weights of each row, so that each number gets it "
                     "times the sum of the inputs: a zero point that is off");
}

bool compose_ranks(composing *c) {
    low_rank l = {.c = c, .n = c->n, .each = c->elements / c->n};
    bool index = sinkproof_trace_point_is_index(c->point);
    if (index || sinkproof_trace_point_is_by_head(c->point) || c->n < 12 || l.each < 12)
        return true;
    l.left = malloc((MOST_RANKS * (l.n + l.each) + c->elements + l.n) * sizeof *l.left);
    if (l.left == NULL) return fail_for_memory(c->s);
    l.right = l.left + MOST_RANKS * l.n, l.rest = l.right + MOST_RANKS * l.each;
    double *t_i = l.rest + c->elements;
    bool fine = try_bias(&l);
    if (fine && c->found == NULL) fine = try_ones(&l, t_i);
    if (fine && c->found == NULL) fine = try_sums(&l, t_i);
    free(l.left);
    return fine;
}
