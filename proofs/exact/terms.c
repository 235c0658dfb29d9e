// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The four terms of a score. For statements about matrices, those of the layer are used: for head h
// W_K is W^V_h, W_Q the transposed block of W^O, b_K = b^V_h, and b_Q = (h + 1) v* + e^G. For
// statements about exponentials, a_t = q, c_j = k_j, b_Q = k* and b_K = k_o in reverse order are
// integers.
#include "proofs/exact/attention.h"

// ---- matrices ----------------------------------------------------------------------------------

static matrix transpose(matrix w) {
    matrix t = matrix_zero(w.cols, w.rows);
    for (size_t r = 0; r < w.rows; r++)
        for (size_t c = 0; c < w.cols; c++) t.at[c * w.rows + r] = w.at[r * w.cols + c];
    return t;
}
static matrix w_key(const instance *m, size_t h) { // [d, d']
    return w_value(m, h);
}
static matrix w_query(const instance *m, size_t h) { // [d, d']
    return transpose(w_output(m, h));
}
static row b_query(const instance *m, size_t h) {
    return row_add(row_scale(q_int((long)h + 1), m->u_star), m->gate);
}
static row over_each_key(const instance *m, rational (*of)(const instance *, size_t j)) {
    row all = row_zero(m->tokens);
    for (size_t j = 0; j < m->tokens; j++) all.at[j] = of(m, j);
    return all;
}

//> gpt2.expand
// Head 0, query i against every key: the product, and the sum of four.
static rational product(const instance *m, size_t j) {
    row q = row_add(row_times(x_of(m, m->query), w_query(m, 0)), b_query(m, 0));
    return row_dot(q, row_add(row_times(x_of(m, j), w_key(m, 0)), b_value(m, 0)));
}
static rational four_terms(const instance *m, size_t j) {
    row a = row_times(x_of(m, m->query), w_query(m, 0)), c = row_times(x_of(m, j), w_key(m, 0));
    row b_q = b_query(m, 0), b_k = b_value(m, 0);
    return q_add(q_add(row_dot(a, c), row_dot(a, b_k)), q_add(row_dot(b_q, c), row_dot(b_q, b_k)));
}
static row products_of_keys(const instance *m) {
    return over_each_key(m, product);
}
static row sums_of_four(const instance *m) {
    return over_each_key(m, four_terms);
}
//< gpt2.expand

//> gpt2.delta
// q_t k_j - a_t k_j for every query t and every key j; Delta_j + b_Q b_K does not depend on t.
static row what_the_bias_adds(const instance *m) {
    row all = row_zero(0);
    for (size_t t = 0; t < m->tokens; t++)
        for (size_t j = 0; j < m->tokens; j++) {
            row a = row_times(x_of(m, t), w_query(m, 0));
            row k = row_add(row_times(x_of(m, j), w_key(m, 0)), b_value(m, 0));
            rational with = row_dot(row_add(a, b_query(m, 0)), k);
            all = row_join(all, row_one(q_sub(with, row_dot(a, k))));
        }
    return all;
}
static rational delta(const instance *m, size_t j) { // head 0
    return row_dot(b_query(m, 0), row_times(x_of(m, j), w_key(m, 0)));
}
static row deltas_and_constants(const instance *m) {
    row one = over_each_key(m, delta), all = row_zero(0);
    rational constant = row_dot(b_query(m, 0), b_value(m, 0));
    for (size_t j = 0; j < m->tokens; j++) one.at[j] = q_add(one.at[j], constant);
    for (size_t t = 0; t < m->tokens; t++) all = row_join(all, one);
    return all;
}
//< gpt2.delta

//> gpt2.gamma
static rational delta_by_gamma(const instance *m, size_t j) {
    return row_dot(row_times(b_query(m, 0), transpose(w_key(m, 0))), x_of(m, j));
}
static row deltas(const instance *m) {
    return over_each_key(m, delta);
}
static row deltas_by_gamma(const instance *m) {
    return over_each_key(m, delta_by_gamma);
}
//< gpt2.gamma

//> gpt2.unsplit
// W_K of all heads side by side, b_Q likewise: Delta of every key, then gamma.
static row before_the_split(const instance *m) {
    row all = row_zero(0), b_q = row_zero(0), gamma = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) b_q = row_join(b_q, b_query(m, h));
    for (size_t j = 0; j < m->tokens; j++) {
        row c = row_zero(0);
        for (size_t h = 0; h < m->heads; h++) c = row_join(c, row_times(x_of(m, j), w_key(m, h)));
        all = row_join(all, row_one(row_dot(b_q, c)));
    }
    for (size_t c = 0; c < m->hidden; c++)
        for (size_t r = 0; r < b_q.n; r++) {
            rational w = w_key(m, r / m->head_dim).at[c * m->head_dim + r % m->head_dim];
            gamma.at[c] = q_add(gamma.at[c], q_mul(b_q.at[r], w));
        }
    return row_join(all, gamma);
}
static row sum_over_heads(const instance *m) {
    row all = row_zero(m->tokens), gamma = row_zero(m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        row gamma_h = row_times(b_query(m, h), transpose(w_key(m, h)));
        gamma = row_add(gamma, gamma_h);
        for (size_t j = 0; j < m->tokens; j++)
            all.at[j] = q_add(all.at[j], row_dot(gamma_h, x_of(m, j)));
    }
    return row_join(all, gamma);
}
//< gpt2.unsplit

// ---- exponentials ------------------------------------------------------------------------------

typedef struct terms {
    long content[EXACT_TOKENS], key[EXACT_TOKENS]; // a_t c_j, b_Q c_j
    long query, constant;                          // a_t b_K, b_Q b_K
} terms;

static terms terms_of(const instance *m) {
    terms s = {0};
    for (size_t d = 0; d < m->qk_dim; d++) {
        long a = m->q[d], b_q = m->k_star[d], b_k = m->k[m->order[0]][m->qk_dim - 1 - d];
        s.query += a * b_k;
        s.constant += b_q * b_k;
        for (size_t j = 0; j < m->tokens; j++) {
            s.content[j] += a * m->k[j][d];
            s.key[j] += b_q * m->k[j][d];
        }
    }
    return s;
}

// alpha_j over J(i) of the scores log_base, then alpha_s.
static row weights(const instance *m, const long *s_j, rational e_b) {
    row e = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        e = row_join(e, row_one(q_power(m->base, s_j[j])));
    e = row_join(e, row_one(e_b));
    return row_scale(q_div(q_int(1), row_sum(e)), e);
}
// The same from one product (a_t + [b_Q]) (c_j + b_K), without the four terms: e^(product) as a
// product over the coordinates, over the sum of all.
static row weights_of_product(const instance *m, bool with_b_q, rational e_b) {
    row e = row_zero(0);
    rational all = e_b;
    for (size_t j = 0; j < m->tokens; j++) {
        rational one = q_int(1);
        for (size_t d = 0; d < m->qk_dim; d++) {
            long b_k = m->k[m->order[0]][m->qk_dim - 1 - d];
            long q = m->q[d] + (with_b_q ? m->k_star[d] : 0);
            one = q_mul(one, q_power(m->base, q * (m->k[j][d] + b_k)));
        }
        if (!m->sees[j]) continue;
        e = row_join(e, row_one(one));
        all = q_add(all, one);
    }
    return row_scale(q_div(q_int(1), all), row_join(e, row_one(e_b)));
}
static row weights_of_all(const instance *m, rational e_b) {
    return weights_of_product(m, true, e_b);
}
static row weights_of_two(const instance *m, rational e_b) { // terms 1 and 3 alone
    terms s = terms_of(m);
    for (size_t j = 0; j < m->tokens; j++) s.content[j] += s.key[j];
    return weights(m, s.content, e_b);
}

//> gpt2.irrelevant
static row all_without_sink(const instance *m) {
    return weights_of_all(m, q_int(0));
}
static row two_without_sink(const instance *m) {
    return weights_of_two(m, q_int(0));
}
//< gpt2.irrelevant

//> terms.sink
static rational e_of_constants(const instance *m) { // e^c_t
    terms s = terms_of(m);
    return q_power(m->base, s.query + s.constant);
}
static row all_beside_sink(const instance *m) {
    return weights_of_all(m, m->e_sink.at[0]);
}
static row two_beside_another(const instance *m) {
    return weights_of_two(m, q_div(m->e_sink.at[0], e_of_constants(m)));
}
static row all_off_by_one(const instance *m) {
    return weights_of_all(m, q_int(1));
}
static row two_beside_minus_c(const instance *m) {
    return weights_of_two(m, q_div(q_int(1), e_of_constants(m)));
}
//< terms.sink

//> terms.zeroed
// b_Q = 0: scores a_t k_j. Against the weights with b_Q, each times e^-(Delta_j + b_Q b_K).
static row weights_without_bias(const instance *m, rational e_b) {
    return weights_of_product(m, false, e_b);
}
static row weights_renormalised(const instance *m, rational e_b, bool constant_too) {
    terms s = terms_of(m);
    long all[EXACT_TOKENS];
    for (size_t j = 0; j < m->tokens; j++) all[j] = s.content[j] + s.query + s.key[j] + s.constant;
    row w = weights(m, all, e_b);
    size_t at = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1), at++)
        w.at[at] = q_mul(w.at[at], q_power(m->base, -s.key[j] - (constant_too ? s.constant : 0)));
    return row_scale(q_div(q_int(1), row_sum(w)), w);
}
static row zeroed_without_sink(const instance *m) {
    return weights_without_bias(m, q_int(0));
}
static row renormalised_without_sink(const instance *m) { // b_Q b_K cancels
    return weights_renormalised(m, q_int(0), false);
}
static row zeroed_beside_sink(const instance *m) {
    return weights_without_bias(m, m->e_sink.at[0]);
}
static row renormalised_beside_sink(const instance *m) {
    return weights_renormalised(m, m->e_sink.at[0], true);
}
//< terms.zeroed

#define LAYER SINKPROOF_EXACT_LAYER
#define QK    SINKPROOF_EXACT_QK

const sinkproof_exact_statement exact_terms[] = {
    {"gpt2.expand", LAYER, "(x_t W_Q + b_Q) (x_j W_K + b_K)^T", "the sum of four terms",
     products_of_keys, sums_of_four, 0},
    {"gpt2.delta", LAYER, "q_t k_j^T - a_t k_j^T of all t, j", "Delta_j + b_Q b_K^T, for every t",
     what_the_bias_adds, deltas_and_constants, 0},
    {"gpt2.gamma", LAYER, "Delta_j", "gamma x_j^T", deltas, deltas_by_gamma, 0},
    {"gpt2.irrelevant", QK, "softmax of all four terms", "of terms 1 and 3", all_without_sink,
     two_without_sink, 0},
    {"gpt2.unsplit", LAYER, "Delta_j and gamma of all heads at once", "sums over the heads",
     before_the_split, sum_over_heads, 0},
    {"terms.sink", QK, "all four terms beside a sink b", "terms 1 and 3 beside b - c_t",
     all_beside_sink, two_beside_another, 0},
    {"terms.sink", QK, "softmax_1 of all four terms", "terms 1 and 3 beside -c_t", all_off_by_one,
     two_beside_minus_c, 0},
    {"terms.zeroed", QK, "b_Q = 0, no sink", "alpha_j e^-Delta_j, renormalised",
     zeroed_without_sink, renormalised_without_sink, 0},
    {"terms.zeroed", QK, "b_Q = 0 beside a sink",
     "alpha_j e^-(Delta_j + b_Q b_K) and alpha_s, renormalised", zeroed_beside_sink,
     renormalised_beside_sink, 0},
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

static row two_beside_sink(const instance *m) {
    return weights_of_two(m, m->e_sink.at[0]);
}
static row two_off_by_one(const instance *m) {
    return weights_of_two(m, q_int(1));
}
static row renormalised_by_delta(const instance *m) {
    return weights_renormalised(m, m->e_sink.at[0], false);
}
// The key with the largest Delta: over all heads together, and in head 0.
static row largest(const instance *m, row delta_j) {
    size_t at = 0;
    for (size_t j = 1; j < m->tokens; j++)
        if (mpq_cmp(delta_j.at[j], delta_j.at[at]) > 0) at = j;
    return row_one(q_int((long)at));
}
static row largest_of_all(const instance *m) {
    return largest(m, before_the_split(m));
}
static row largest_of_first(const instance *m) {
    return largest(m, deltas(m));
}

const sinkproof_exact_statement exact_terms_wrong[] = {
    {"terms.sink", QK, "terms 1 and 3 beside the same sink", "all four", two_beside_sink,
     all_beside_sink, 0},
    {"terms.sink", QK, "softmax_1 of terms 1 and 3", "of all four", two_off_by_one, all_off_by_one,
     0},
    {"terms.zeroed", QK, "alpha_j e^-Delta_j and alpha_s, renormalised", "b_Q = 0 beside a sink",
     renormalised_by_delta, zeroed_beside_sink, 0},
    {"gpt2.unsplit", LAYER, "the largest Delta_j of all heads", "the largest in head 0",
     largest_of_all, largest_of_first, 0},
    {0},
};
