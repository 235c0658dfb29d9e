// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One repeated token (chapter 23): states that stay equal and states that diverge, weights in
// closed form; a scaled normaliser, and its effect on learning; a row split at its first key.
#include "proofs/exact/attention.h"

//> repeat.lemma
// Arbitrary exponentials for a row, so that any effect of its position is allowed. Row i sees the
// keys that the instance sees, rotated by i, so that rows see different numbers of keys with
// different scores.
static instance instance_of_row(const instance *m, size_t i) {
    instance row_i = *m;
    row_i.e = matrix_zero(m->e.rows, m->e.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        row_i.sees[j] = j <= i && (j == i || m->sees[j]);
        for (size_t h = 0; h < m->heads; h++)
            row_i.e.at[h * m->tokens + j] =
                q_mul(e_score(m, (j + i) % m->tokens, h), q_power(m->shift, (long)i - (long)j));
    }
    return row_i;
}
// The output of a layer for the states x [n, d]: residual, heads, W^O, b^O; with its sinks or
// without.
static matrix next_states(const instance *m, matrix x, bool sinks) {
    matrix next = matrix_zero(x.rows, x.cols);
    for (size_t i = 0; i < x.rows; i++) {
        instance row_i = instance_of_row(m, i);
        row sum = row_add(matrix_row(x, i), m->bo);
        if (!sinks) row_i.e_sink = row_zero(m->heads);
        for (size_t h = 0; h < m->heads; h++)
            for (size_t j = next_seen(&row_i, 0); j < x.rows; j = next_seen(&row_i, j + 1)) {
                row v = row_add(row_times(matrix_row(x, j), w_value(m, h)), b_value(m, h));
                row o = row_scale(alpha(&row_i, j, h), v);
                sum = row_add(sum, row_times(o, w_output(m, h)));
            }
        for (size_t c = 0; c < x.cols; c++) next.at[i * x.cols + c] = sum.at[c];
    }
    return next;
}
static matrix repeat_token(const instance *m, row x) { // the token x in every row
    matrix all = matrix_zero(m->tokens, x.n);
    for (size_t k = 0; k < m->tokens * x.n; k++) all.at[k] = x.at[k % x.n];
    return all;
}
static row entries_as_row(matrix x) {
    return (row){x.rows * x.cols, x.at};
}
static row two_layers(const instance *m) {
    return entries_as_row(
        next_states(m, next_states(m, repeat_token(m, x_of(m, 0)), false), false));
}
// One token: x + sum_h (mass_h (x W^V_h + b^V_h)) W^O_h + b^O.
static row next_state(const instance *m, row x, const rational *mass_h) {
    row sum = row_add(x, m->bo);
    for (size_t h = 0; h < m->heads; h++) {
        row v = row_add(row_times(x, w_value(m, h)), b_value(m, h));
        sum = row_add(sum, row_scale(mass_h[h], row_times(v, w_output(m, h))));
    }
    return sum;
}
static row one_token_twice(const instance *m) {
    rational one[EXACT_HEADS];
    for (size_t h = 0; h < m->heads; h++) one[h] = q_int(1);
    return entries_as_row(repeat_token(m, next_state(m, next_state(m, x_of(m, 0), one), one)));
}
// With sinks, each row by its own masses.
static row a_layer_with_sinks(const instance *m) {
    return entries_as_row(next_states(m, repeat_token(m, x_of(m, 0)), true));
}
static row outputs_by_masses(const instance *m) {
    row all = row_zero(0);
    for (size_t i = 0; i < m->tokens; i++) {
        rational mass[EXACT_HEADS];
        instance row_i = instance_of_row(m, i);
        for (size_t h = 0; h < m->heads; h++) mass[h] = q_sub(q_int(1), alpha_sink(&row_i, h));
        all = row_join(all, next_state(m, x_of(m, 0), mass));
    }
    return all;
}
//< repeat.lemma

// Keys 0 ... t - 1 with the exponentials e_d of their distance from the last, no sink.
static instance keys_by_distance(const instance *m, size_t t,
                                 rational (*e)(const instance *m, long d)) {
    instance other = *m;
    other.e = matrix_zero(m->e.rows, m->e.cols);
    other.e_sink = row_zero(m->heads);
    for (size_t j = 0; j < m->tokens; j++) {
        other.sees[j] = j < t;
        other.e.at[j] = e(m, (long)t - 1 - (long)j);
    }
    return other;
}
static rational equal_exp(const instance *m, long d) { // one score c for all
    (void)d;
    return m->shift;
}
static rational alibi_exp(const instance *m, long d) { // c - m d, e^(-m) below 1
    rational r = q_div(m->base, q_add(m->base, q_int(1)));
    return q_mul(m->shift, q_power(r, d));
}
static rational relative_exp(const instance *m, long d) { // c + g(d)
    return q_mul(m->shift, e_score(m, d < 0 ? 0 : (size_t)d, 0));
}
// The first key's weight in each row.
static row first_of_rows(const instance *m, rational (*e)(const instance *m, long d)) {
    row a = row_zero(m->tokens);
    for (size_t t = 1; t <= m->tokens; t++) {
        instance row_t = keys_by_distance(m, t, e);
        a.at[t - 1] = alpha(&row_t, 0, 0);
    }
    return a;
}
static row append_mean(row a) {
    return row_join(a, row_one(q_div(row_sum(a), q_int((long)a.n))));
}

//> repeat.nope
static row first_weights_of_equal_scores(const instance *m) {
    return append_mean(first_of_rows(m, equal_exp));
}
static row even_shares(const instance *m) { // 1/t, and H_T / T
    row a = row_zero(m->tokens);
    rational harmonic = q_int(0);
    for (size_t t = 1; t <= m->tokens; t++) {
        a.at[t - 1] = q_frac(1, t);
        harmonic = q_add(harmonic, a.at[t - 1]);
    }
    return row_join(a, row_one(q_div(harmonic, q_int((long)m->tokens))));
}
//< repeat.nope

//> repeat.relative
static row relative_rows(const instance *m) {
    return first_of_rows(m, relative_exp);
}
static row relative_shares(const instance *m) { // e^g(t-1) / sum_d e^g(d): the content is gone
    row a = row_zero(m->tokens);
    rational sum = q_int(0);
    for (size_t t = 1; t <= m->tokens; t++) {
        sum = q_add(sum, e_score(m, t - 1, 0));
        a.at[t - 1] = q_div(e_score(m, t - 1, 0), sum);
    }
    return a;
}
//< repeat.relative

//> repeat.alibi
static row alibi_rows(const instance *m) {
    return first_of_rows(m, alibi_exp);
}
static row alibi_shares(const instance *m) { // r^(t-1) (1 - r) / (1 - r^t), r = e^(-m)
    rational r = q_div(m->base, q_add(m->base, q_int(1))), rest = q_sub(q_int(1), r);
    row a = row_zero(m->tokens);
    for (size_t t = 1; t <= m->tokens; t++)
        a.at[t - 1] =
            q_div(q_mul(q_power(r, (long)t - 1), rest), q_sub(q_int(1), q_power(r, (long)t)));
    return a;
}
//< repeat.alibi

static matrix scale_matrix(rational a, matrix w) {
    row all = row_scale(a, (row){w.rows * w.cols, w.at});
    return (matrix){w.rows, w.cols, all.at};
}

//> norm.scaled
// Head 0 with the normaliser Z / a, and with a W^V or a W^O in place of W^V or W^O.
static row scaled_head_output(const instance *m, rational a, rational times_wv, rational times_wo) {
    rational z = q_div(sum_exp(m, 0), a);
    row o = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        row v = row_scale(times_wv, row_times(x_of(m, j), m->wv[0]));
        o = row_add(o, row_scale(q_div(e_score(m, j, 0), z), v));
    }
    return row_scale(times_wo, row_times(o, w_output(m, 0)));
}
static row scaled_normaliser(const instance *m) {
    row y = scaled_head_output(m, m->shift, q_int(1), q_int(1));
    return row_join(y, y);
}
// The plain normaliser, with the sum of the x_j first: by W^V times a, and by W^O times a.
static row scaled_matrices(const instance *m) {
    row x = row_zero(m->hidden);
    rational all = q_int(0);
    for (size_t j = 0; j < m->tokens; j++) {
        if (!m->sees[j]) continue;
        x = row_add(x, row_scale(m->e.at[j], x_of(m, j)));
        all = q_add(all, m->e.at[j]);
    }
    x = row_scale(q_div(q_int(1), all), x);
    matrix w_o = matrix_block(m->wo, 0, m->head_dim);
    return row_join(row_times(row_times(x, scale_matrix(m->shift, m->wv[0])), w_o),
                    row_times(row_times(x, m->wv[0]), scale_matrix(m->shift, w_o)));
}

// A loss of the matrix V in use: |x V - y|^2 / 2, and its gradient x^T (x V - y).
static rational loss(const instance *m, matrix v) {
    row miss = row_sub(row_times(m->x_star, v), m->bv[0]);
    return q_div(row_dot(miss, miss), q_int(2));
}
// The gradient of W -> loss(a W) by differences: exact for a polynomial of degree 2.
static rational gradient_entry(const instance *m, rational a, matrix w, size_t entry) {
    matrix there = scale_matrix(q_int(1), w), back = scale_matrix(q_int(1), w);
    there.at[entry] = q_add(w.at[entry], q_int(1));
    back.at[entry] = q_sub(w.at[entry], q_int(1));
    return q_div(q_sub(loss(m, scale_matrix(a, there)), loss(m, scale_matrix(a, back))), q_int(2));
}
// Gradient steps on W, where the model uses a W; returns a W.
static row learn_scaled(const instance *m, rational a, rational rate, int steps) {
    matrix w = scale_matrix(q_int(1), m->wv[0]);
    for (int s = 0; s < steps; s++) {
        matrix next = scale_matrix(q_int(1), w);
        for (size_t k = 0; k < w.rows * w.cols; k++)
            next.at[k] = q_sub(w.at[k], q_mul(rate, gradient_entry(m, a, w, k)));
        w = next;
    }
    return entries_as_row(scale_matrix(a, w));
}
// Gradient steps on V = a W itself, by the formula of the gradient.
static row learn_used(const instance *m, rational a, rational rate, int steps) {
    matrix v = scale_matrix(a, m->wv[0]);
    for (int s = 0; s < steps; s++) {
        row miss = row_sub(row_times(m->x_star, v), m->bv[0]);
        matrix next = scale_matrix(q_int(1), v);
        for (size_t k = 0; k < v.rows * v.cols; k++) {
            rational g = q_mul(m->x_star.at[k / v.cols], miss.at[k % v.cols]);
            next.at[k] = q_sub(v.at[k], q_mul(rate, g));
        }
        v = next;
    }
    return entries_as_row(v);
}
static row two_steps_scaled(const instance *m) {
    return learn_scaled(m, m->shift, m->b, 2);
}
static row two_steps_used(const instance *m) { // eta' = a^2 eta
    return learn_used(m, m->shift, q_mul(q_mul(m->shift, m->shift), m->b), 2);
}
//< norm.scaled

//> noop.split
static row whole_row(const instance *m) {
    row o = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        o = row_add(o, row_scale(alpha(m, j, 0), value_of(m, j)));
    return o;
}
// The first visible key, and the mean of the others times the remaining mass.
static row first_and_rest(const instance *m) {
    size_t f = next_seen(m, 0);
    rational left = q_sub(q_sub(q_int(1), alpha_sink(m, 0)), alpha(m, f, 0));
    row first = row_scale(alpha(m, f, 0), value_of(m, f)), sum = row_zero(m->head_dim);
    rational others = q_int(0);
    for (size_t j = f + 1; j < m->tokens; j++) {
        if (!m->sees[j]) continue;
        others = q_add(others, m->e.at[j]);
        sum = row_add(sum, row_scale(m->e.at[j], value_of(m, j)));
    }
    if (mpq_sgn(others) == 0) return first;
    return row_add(first, row_scale(q_div(left, others), sum));
}
//< noop.split

#define ROW   SINKPROOF_EXACT_ROW
#define LAYER SINKPROOF_EXACT_LAYER

const sinkproof_exact_statement exact_repeat[] = {
    {"repeat.lemma", LAYER, "two layers over one token n times, any scores", "one token, n times",
     two_layers, one_token_twice, 0},
    {"repeat.lemma", LAYER, "a layer with sinks over one token n times", "each row by its own mass",
     a_layer_with_sinks, outputs_by_masses, 0},
    {"repeat.nope", ROW, "alpha_t1 of even scores, and their mean", "1/t and H_T/T",
     first_weights_of_equal_scores, even_shares, 0},
    {"repeat.relative", ROW, "alpha_t1 of c + g(t - j)", "e^g(t-1) / sum_d e^g(d)", relative_rows,
     relative_shares, 0},
    {"repeat.alibi", ROW, "alpha_t1 of c - m (t - j)", "r^(t-1) (1 - r) / (1 - r^t)", alibi_rows,
     alibi_shares, 0},
    {"norm.scaled", LAYER, "a head with the normaliser Z/a, twice", "with a W^V, with a W^O",
     scaled_normaliser, scaled_matrices, 0},
    {"norm.scaled", LAYER, "a W after two steps of rate eta on W", "two of a^2 eta on a W",
     two_steps_scaled, two_steps_used, 0},
    {"noop.split", ROW, "o", "alpha_f v_f + (1 - alpha_s - alpha_f) mean of the others", whole_row,
     first_and_rest, 0},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

static row last_with_sinks(const instance *m) {
    return matrix_row(next_states(m, repeat_token(m, x_of(m, 0)), true), m->tokens - 1);
}
static row first_with_sinks(const instance *m) {
    return matrix_row(next_states(m, repeat_token(m, x_of(m, 0)), true), 0);
}
static row two_steps_of_the_same_rate(const instance *m) {
    return learn_used(m, m->shift, m->b, 2);
}
static row two_steps_of_a_rate(const instance *m) {
    return learn_used(m, m->shift, q_mul(m->shift, m->b), 2);
}

const sinkproof_exact_statement exact_repeat_wrong[] = {
    {"repeat.lemma", LAYER, "with sinks, the last of n equal tokens", "the first", last_with_sinks,
     first_with_sinks, 0},
    {"norm.scaled", LAYER, "two steps of rate eta on a W", "a W after two of rate eta on W",
     two_steps_of_the_same_rate, two_steps_scaled, 0},
    {"norm.scaled", LAYER, "two steps of rate a eta on a W", "a W after two of rate eta on W",
     two_steps_of_a_rate, two_steps_scaled, 0},
    {0},
};
