// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Metamorphic laws: what an engine's output must do when its input is changed in a known way.
#include "proofs/exact/attention.h"

static row weights(const instance *m) { // alpha_j over J(i), then alpha_s
    row w = row_zero(0);
    for (size_t j = seen(m, 0); j < m->tokens; j = seen(m, j + 1))
        w = row_join(w, row_one(alpha(m, j, 0)));
    return row_join(w, row_one(alpha_sink(m, 0)));
}

static row output(const instance *m) { // sum_j alpha_j u_j, head 0
    row sum = row_zero(m->head_dim);
    for (size_t j = seen(m, 0); j < m->tokens; j = seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(m, j, 0), value_of(m, j)));
    return sum;
}

static instance shifted(const instance *m, bool sink_too) { // e^(s + t) = e^s e^t
    instance other = *m;
    row e = {m->e.rows * m->e.cols, m->e.at};
    other.e.at = row_scale(m->shift, e).at;
    if (sink_too) other.e_sink = row_scale(m->shift, m->e_sink);
    return other;
}

//> law.shift
static row weights_of_shifted(const instance *m) { // alpha(s + t, b + t)
    instance other = shifted(m, true);
    return weights(&other);
}
//< law.shift

//> law.permute
// Keys, values and mask reordered together.
static row output_permuted(const instance *m) {
    instance other = *m;
    other.e = matrix_zero(m->e.rows, m->e.cols);
    other.u = matrix_zero(m->u.rows, m->u.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        other.sees[j] = m->sees[m->order[j]];
        other.e.at[j] = e_score(m, m->order[j], 0);
        for (size_t d = 0; d < m->head_dim; d++)
            other.u.at[j * m->head_dim + d] = value_of(m, m->order[j]).at[d];
    }
    return output(&other);
}
//< law.permute

//> law.constant-value
// Every value row is v: the output is that row times the mass, not the row.
static row output_of_constant(const instance *m) {
    instance other = *m;
    other.u = matrix_zero(m->u.rows, m->u.cols);
    for (size_t k = 0; k < m->tokens * m->head_dim; k++)
        other.u.at[k] = m->u_star.at[k % m->head_dim];
    return output(&other);
}
static row constant_times_mass(const instance *m) {
    return row_scale(q_sub(q_int(1), alpha_sink(m, 0)), m->u_star);
}
//< law.constant-value

static row layer_output(const instance *m) { // [head_1 ... head_H] W^O + b^O
    row heads = row_zero(0);
    for (size_t h = 0; h < m->heads; h++) {
        row sum = row_zero(m->head_dim);
        for (size_t j = seen(m, 0); j < m->tokens; j = seen(m, j + 1)) {
            row v = row_add(row_times(x_of(m, j), w_value(m, h)), b_value(m, h));
            sum = row_add(sum, row_scale(alpha(m, j, h), v));
        }
        heads = row_join(heads, sum);
    }
    return row_add(row_times(heads, m->wo), m->bo);
}

//> law.gqa-repeat
// Each key/value head written out H / G times: one per query head.
static row output_repeated(const instance *m) {
    instance other = *m;
    other.kv_heads = m->heads;
    for (size_t h = 0; h < m->heads; h++) {
        other.wv[h] = m->wv[kv_head(m, h)];
        other.bv[h] = m->bv[kv_head(m, h)];
    }
    return layer_output(&other);
}
//< law.gqa-repeat

//> law.linear-value
// o(a U + b V) = a o(U) + b o(V), V the rows x_j W^V_0
static row output_of_combination(const instance *m) {
    instance other = *m;
    other.u = matrix_zero(m->u.rows, m->u.cols);
    for (size_t j = 0; j < m->tokens; j++) {
        row v = row_times(x_of(m, j), m->wv[0]);
        row both = row_add(row_scale(m->a, value_of(m, j)), row_scale(m->b, v));
        for (size_t d = 0; d < m->head_dim; d++) other.u.at[j * m->head_dim + d] = both.at[d];
    }
    return output(&other);
}
static row combination_of_outputs(const instance *m) {
    row o_v = row_zero(m->head_dim);
    for (size_t j = seen(m, 0); j < m->tokens; j = seen(m, j + 1))
        o_v = row_add(o_v, row_scale(alpha(m, j, 0), row_times(x_of(m, j), m->wv[0])));
    return row_add(row_scale(m->a, output(m)), row_scale(m->b, o_v));
}
//< law.linear-value

//> rope.orthogonal
// Rotation by halves: pair (d, d + half) turns by i theta_d. A rational point of the circle,
// ((1 - t^2) / (1 + t^2), 2t / (1 + t^2)), stands for (cos theta_d, sin theta_d); e^t stands for
// the concentration that multiplies both.
static row rotated(const instance *m, const long *x, long position, rational concentration) {
    size_t half = 2;
    row y = row_zero(2 * half);
    for (size_t d = 0; d < half; d++) {
        rational t = d == 0 ? m->base : q_neg(m->shift), tt = q_mul(t, t);
        rational c = q_div(q_sub(q_int(1), tt), q_add(q_int(1), tt));
        rational s = q_div(q_mul(q_int(2), t), q_add(q_int(1), tt));
        rational a = q_int(x[d]), b = q_int(x[d + half]);
        if (position < 0) s = q_neg(s);
        for (long i = 0; i != position; i += position < 0 ? -1 : 1) {
            rational turned = q_sub(q_mul(a, c), q_mul(b, s));
            b = q_add(q_mul(b, c), q_mul(a, s));
            a = turned;
        }
        y.at[d] = q_mul(concentration, a);
        y.at[d + half] = q_mul(concentration, b);
    }
    return y;
}
// q at position i, k at position j: their product, and the length of q.
static row rotated_products(const instance *m) {
    long i = (long)m->query, j = (long)m->order[0];
    row q = rotated(m, m->q, i, m->shift), k = rotated(m, m->k[0], j, m->shift);
    return row_join(row_one(row_dot(q, k)), row_one(row_dot(q, q)));
}
// Only i - j counts, and the concentration squared.
static row relative_products(const instance *m) {
    long i = (long)m->query, j = (long)m->order[0];
    row q = rotated(m, m->q, i - j, q_int(1)), k = rotated(m, m->k[0], 0, q_int(1));
    row plain = rotated(m, m->q, 0, q_int(1));
    return row_scale(q_mul(m->shift, m->shift),
                     row_join(row_one(row_dot(q, k)), row_one(row_dot(plain, plain))));
}
//< rope.orthogonal

#define LAW(id, left_text, right_text, left, right)                                                \
    { "law." id, SINKPROOF_EXACT_ROW, left_text, right_text, left, right, 0 }

const sinkproof_exact_statement sinkproof_exact_laws[] = {
    LAW("shift", "alpha(s + t, b + t)", "alpha(s, b)", weights_of_shifted, weights),
    LAW("permute", "o with keys reordered", "o", output_permuted, output),
    LAW("constant-value", "o with v_j = v", "(1 - alpha_s) v", output_of_constant,
        constant_times_mass),
    {"law.gqa-repeat", SINKPROOF_EXACT_LAYER, "ATTN with repeated key/value heads",
     "ATTN with g(h) = h / (H / G)", output_repeated, layer_output, 0},
    {"law.linear-value", SINKPROOF_EXACT_LAYER, "o(a U + b V)", "a o(U) + b o(V)",
     output_of_combination, combination_of_outputs, 0},
    {"rope.orthogonal", SINKPROOF_EXACT_QK, "R^i q . R^j k and |R^i q|^2",
     "c^2 R^(i-j) q . k and c^2 |q|^2", rotated_products, relative_products, 0},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

static row scores_shifted_alone(const instance *m) {
    instance other = shifted(m, false);
    return weights(&other);
}
static row the_constant(const instance *m) {
    return m->u_star;
}

const sinkproof_exact_statement sinkproof_exact_laws_wrong[] = {
    LAW("shift", "alpha(s + t, b): the scores shifted alone", "alpha(s, b)", scores_shifted_alone,
        weights),
    LAW("constant-value", "o with v_j = v", "v", output_of_constant, the_constant),
    {0},
};
