// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sinks that are a learned key: their logit is q k* / sqrt(d'), which depends on the query. Here q
// and k are integers and e^(1/sqrt(d')) is a free positive rational, so that e^(q k / sqrt(d')) is
// a power of it: rational, and still a homomorphism of q k.
#include "proofs/exact/attention.h"

static rational exp_score(const instance *m, const long *q, const long *k) { // e^(q k / sqrt(d'))
    long dot = 0;
    for (size_t d = 0; d < m->qk_dim; d++) dot += q[d] * k[d];
    return q_power(m->base, dot);
}

// The same as a product over the coordinates, for the keys and the logit on the sink's side: then a
// mistake in one function is not on both sides.
static rational e_by_coordinates(const instance *m, const long *q, const long *k) {
    rational product = q_int(1);
    for (size_t d = 0; d < m->qk_dim; d++) product = q_mul(product, q_power(m->base, q[d] * k[d]));
    return product;
}

// softmax over the keys of J(i) and one more with the exponential e_star, times the values value(j)
// and v_star.
static row attend(const instance *m, rational e_star, row v_star,
                  row (*value)(const instance *, size_t)) {
    row sum = row_scale(e_star, v_star);
    rational all = e_star;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational e = exp_score(m, m->q, m->k[j]);
        sum = row_add(sum, row_scale(e, value(m, j)));
        all = q_add(all, e);
    }
    return row_scale(q_div(q_int(1), all), sum);
}

// The same scores as a row of head 0 with the sink logit b.
static instance key_as_sink(const instance *m, rational e_b) {
    instance other = *m;
    other.e = matrix_zero(m->heads, m->tokens);
    other.e_sink = row_zero(m->heads);
    other.e_sink.at[0] = e_b;
    for (size_t j = 0; j < m->tokens; j++) other.e.at[j] = e_by_coordinates(m, m->q, m->k[j]);
    return other;
}

static row sink_output(const instance *m, rational e_b) { // sum_j alpha_j u_j
    instance other = key_as_sink(m, e_b);
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(&other, j, 0), value_of(m, j)));
    return sum;
}

//> sink.key-bias
// A key k* whose value is zero, against a sink logit b = q k* / sqrt(d').
static row zero_value_key(const instance *m) {
    return attend(m, exp_score(m, m->q, m->k_star), row_zero(m->head_dim), value_of);
}
static row sink_of_query(const instance *m) {
    return sink_output(m, e_by_coordinates(m, m->q, m->k_star));
}
// k* = 0, against softmax_1.
static row zero_key(const instance *m) {
    const long zero[4] = {0};
    return attend(m, exp_score(m, m->q, zero), row_zero(m->head_dim), value_of);
}
static row softmax_1_output(const instance *m) {
    row sum = row_zero(m->head_dim);
    rational all = q_int(1);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        all = q_add(all, e_by_coordinates(m, m->q, m->k[j]));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational weight = q_div(e_by_coordinates(m, m->q, m->k[j]), all);
        sum = row_add(sum, row_scale(weight, value_of(m, j)));
    }
    return sum;
}
//< sink.key-bias

//> sink.scale-inside
// One row [q K, b*] of raw scores, the whole of it scaled: e^(b*/sqrt(d')) is the base to the b*.
static row output_scaled_together(const instance *m) {
    return attend(m, q_power(m->base, m->k_star[0]), row_zero(m->head_dim), value_of);
}
static row sink_of_scaled(const instance *m) { // the model's logit b = b* / sqrt(d')
    return sink_output(m, q_power(m->base, m->k_star[0]));
}
// d' = 4, so that e^b is the square of the base to the b: the model's b is b* = 2 b inside.
static row output_of_doubled_bias(const instance *m) {
    return attend(m, q_power(m->base, 2 * m->k_star[0]), row_zero(m->head_dim), value_of);
}
static row sink_outside(const instance *m) {
    return sink_output(m, q_power(q_mul(m->base, m->base), m->k_star[0]));
}
//< sink.scale-inside

//> sink.kv-bias
// One more key k* and value v*, against sum_j alpha_j v_j + alpha_* v*.
static row key_and_value(const instance *m) {
    return attend(m, exp_score(m, m->q, m->k_star), m->u_star, value_of);
}
static row sink_plus_star(const instance *m) {
    rational e_star = e_by_coordinates(m, m->q, m->k_star);
    instance other = key_as_sink(m, e_star);
    return row_add(sink_output(m, e_star), row_scale(alpha_sink(&other, 0), m->u_star));
}
//< sink.kv-bias

static row value_of_token(const instance *m, size_t j) { // v_h(x_j), head 0
    return row_add(row_times(x_of(m, j), m->wv[0]), m->bv[0]);
}

//> sink.sink-token
// A learned input x*: v* = x* W^V + b^V, and its key is one more key of the row.
static row output_with_token(const instance *m) {
    row v_star = row_add(row_times(m->x_star, m->wv[0]), m->bv[0]);
    return attend(m, exp_score(m, m->q, m->k_star), v_star, value_of_token);
}
// All weights together sum to 1, so the value bias enters unscaled.
static row output_of_token_outside(const instance *m) {
    instance other = key_as_sink(m, e_by_coordinates(m, m->q, m->k_star));
    row sum = row_scale(alpha_sink(&other, 0), row_times(m->x_star, m->wv[0]));
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(&other, j, 0), row_times(x_of(m, j), m->wv[0])));
    return row_add(sum, m->bv[0]);
}
//< sink.sink-token

//> sink.low-rank-key
// k* = [k_a 0]: only the first d_a coordinates of the query count.
static row low_rank(const instance *m) {
    long k_a[4] = {0};
    for (size_t d = 0; d < m->low_rank; d++) k_a[d] = m->k_star[d];
    return attend(m, exp_score(m, m->q, k_a), row_zero(m->head_dim), value_of);
}
static row sink_of_first_coordinates(const instance *m) {
    instance first = *m;
    first.qk_dim = m->low_rank;
    return sink_output(m, e_by_coordinates(&first, m->q, m->k_star));
}
//< sink.low-rank-key

//> sink.fixed-value
// v* = a v': o(a) = o(0) + a alpha_* v'; a = 0 is the key bias alone.
static row output_of_fixed_value(const instance *m) {
    return attend(m, exp_score(m, m->q, m->k_star), row_scale(m->a, m->u_star), value_of);
}
static row zero_plus_fixed(const instance *m) {
    rational e_star = e_by_coordinates(m, m->q, m->k_star);
    instance other = key_as_sink(m, e_star);
    rational weight = q_mul(m->a, alpha_sink(&other, 0));
    return row_add(sink_output(m, e_star), row_scale(weight, m->u_star));
}
//< sink.fixed-value

//> sink.hybrid
// Sliding layers with a sink; every sixth layer and layer 0 are full and have none. The mass of the
// keys in each of 12 layers (a window of 2 stands for 128) equals 1 - alpha_s or 1.
enum { LAYERS = 12, WINDOW = 2 };
static instance hybrid_layer(const instance *m, size_t layer) {
    bool full = layer == 0 || (layer + 1) % 6 == 0;
    instance l = key_as_sink(m, full ? q_int(0) : e_by_coordinates(m, m->q, m->k_star));
    for (size_t j = 0; j < m->tokens; j++)
        l.sees[j] = j <= m->query && (full || j + WINDOW > m->query);
    return l;
}
static row hybrid_masses(const instance *m) {
    row masses = row_zero(LAYERS);
    for (size_t layer = 0; layer < LAYERS; layer++) {
        instance l = hybrid_layer(m, layer);
        for (size_t j = next_seen(&l, 0); j < l.tokens; j = next_seen(&l, j + 1))
            masses.at[layer] = q_add(masses.at[layer], alpha(&l, j, 0));
    }
    return masses;
}
static row hybrid_expected(const instance *m) {
    row expected = row_zero(LAYERS);
    for (size_t layer = 0; layer < LAYERS; layer++) {
        rational window = exp_score(m, m->q, m->k[m->query]);
        if (m->query > 0) window = q_add(window, exp_score(m, m->q, m->k[m->query - 1]));
        rational sink = exp_score(m, m->q, m->k_star);
        bool sliding = layer % 6 != 5 && layer > 0;
        expected.at[layer] = sliding ? q_div(window, q_add(window, sink)) : q_int(1);
    }
    return expected;
}
//< sink.hybrid

#define QK(id, left_text, right_text, left, right)                                                 \
    { "sink." id, SINKPROOF_EXACT_QK, left_text, right_text, left, right, 0 }

const sinkproof_exact_statement exact_key_bias[] = {
    QK("key-bias", "a key k* with a zero value", "a sink logit b = q k* / sqrt(d')", zero_value_key,
       sink_of_query),
    QK("key-bias", "k* = 0", "softmax_1(s) V", zero_key, softmax_1_output),
    QK("scale-inside", "softmax([q K, b*] / sqrt(d')) [V, 0]", "a sink logit b = b* / sqrt(d')",
       output_scaled_together, sink_of_scaled),
    QK("scale-inside", "b* = 2 b inside, d' = 4", "a sink logit b", output_of_doubled_bias,
       sink_outside),
    QK("kv-bias", "a key k* with a value v*", "sum_j alpha_j v_j + alpha_* v*", key_and_value,
       sink_plus_star),
    QK("sink-token", "a learned token x* before the others",
       "(alpha_* x* + sum_j alpha_j x_j) W^V + b^V", output_with_token, output_of_token_outside),
    QK("low-rank-key", "k* = [k_a 0]", "a sink logit of the first d_a coordinates of q", low_rank,
       sink_of_first_coordinates),
    QK("fixed-value", "v* = a v'", "o(0) + a alpha_* v'", output_of_fixed_value, zero_plus_fixed),
    QK("hybrid", "mass of the keys in 12 layers, 5:1, sinks on sliding layers",
       "1 - alpha_s where sliding, 1 where full", hybrid_masses, hybrid_expected),
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

// The sink logit of the key bias as a constant of the head: right for q, wrong for -q.
static row constant_logit(const instance *m) {
    instance other = *m;
    for (size_t d = 0; d < m->qk_dim; d++) other.q[d] = -m->q[d];
    return sink_output(&other, exp_score(m, m->q, m->k_star));
}
static row negated_query(const instance *m) {
    instance other = *m;
    for (size_t d = 0; d < m->qk_dim; d++) other.q[d] = -m->q[d];
    return zero_value_key(&other);
}

const sinkproof_exact_statement exact_key_bias_wrong[] = {
    QK("key-bias", "query -q with the sink logit of q", "query -q with the key k*", constant_logit,
       negated_query),
    QK("scale-inside", "the model's b taken inside as it is, d' = 4", "a sink logit b",
       output_scaled_together, sink_outside),
    {0},
};
