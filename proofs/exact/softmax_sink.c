// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sink in its other forms, for head 0 of one query: each function is one side. e_j is e^(s_j),
// B is e^b. Keys are those of J(i), in ascending order.
#include "proofs/exact/attention.h"

#include <math.h>

static size_t count_seen(const instance *m) {
    size_t n = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) n++;
    return n;
}

static row seen_exps(const instance *m) { // e_j over J(i)
    row e = row_zero(count_seen(m));
    size_t k = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        e.at[k++] = e_score(m, j, 0);
    return e;
}

static rational sink_of(const instance *m) { // B
    return m->e_sink.at[0];
}

static instance instance_with_sink(const instance *m, rational b) { // the same with e^b = b
    instance other = *m;
    other.e_sink = row_zero(m->heads);
    for (size_t h = 0; h < m->heads; h++) other.e_sink.at[h] = b;
    return other;
}

static row alphas(const instance *m) { // alpha_j over J(i)
    row a = row_zero(count_seen(m));
    size_t k = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        a.at[k++] = alpha(m, j, 0);
    return a;
}

static row softmax(row e) { // e_j / sum e
    return row_scale(q_div(q_int(1), row_sum(e)), e);
}

static row weigh_values(const instance *m, row weights) { // sum_j w_j u_j over J(i)
    row sum = row_zero(m->head_dim);
    size_t k = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(weights.at[k++], value_of(m, j)));
    return sum;
}

//> sink.concat-slice
// softmax(cat([s, b]))[:-1]
static row concat_slice(const instance *m) {
    row e = row_join(seen_exps(m), row_one(sink_of(m)));
    return row_slice(softmax(e), 0, e.n - 1);
}
//< sink.concat-slice

//> sink.softmax1
// (softmax_1(x))_i = e^(x_i) / (1 + sum_j e^(x_j))
static row softmax_1(row e) {
    return row_scale(q_div(q_int(1), q_add(q_int(1), row_sum(e))), e);
}
static row softmax_1_of_scores(const instance *m) {
    return softmax_1(seen_exps(m));
}
static row alphas_at_b_zero(const instance *m) {
    instance zero = instance_with_sink(m, q_int(1)); // e^0
    return alphas(&zero);
}
//< sink.softmax1

//> sink.shifted-softmax1
// softmax_1(s - b): e^(s_j - b) = e_j / B
static row softmax_1_shifted(const instance *m) {
    return softmax_1(row_scale(q_div(q_int(1), sink_of(m)), seen_exps(m)));
}
//< sink.shifted-softmax1

//> sink.zero-pad
// One more key of logit 0 whose value row is zero.
static row zero_padded(const instance *m) {
    row w = softmax(row_join(seen_exps(m), row_one(q_int(1)))); // e^0
    row sum = weigh_values(m, row_slice(w, 0, w.n - 1));
    return row_add(sum, row_scale(w.at[w.n - 1], row_zero(m->head_dim)));
}
static row softmax_1_output(const instance *m) { // sum_j e_j u_j / (1 + sum e)
    row sum = row_zero(m->head_dim);
    rational all = q_int(1);
    for (size_t j = 0; j < m->tokens; j++) {
        if (!m->sees[j]) continue;
        all = q_add(all, m->e.at[j]);
        sum = row_add(sum, row_scale(m->e.at[j], value_of(m, j)));
    }
    return row_scale(q_div(q_int(1), all), sum);
}
//< sink.zero-pad

static rational row_maximum(row e) {
    rational most = e.at[0];
    for (size_t k = 1; k < e.n; k++) most = q_max(most, e.at[k]);
    return most;
}

//> sink.stable
// (e_j / M) / (B / M + sum e / M), M = e^m, m = max(b, max_j s_j); then the largest of all shifted
// exponentials, which is e^0.
static row shifted_alphas(const instance *m) {
    rational shrink = q_div(q_int(1), q_max(sink_of(m), row_maximum(seen_exps(m))));
    row e = row_scale(shrink, seen_exps(m));
    rational e_sink = q_mul(sink_of(m), shrink), all = q_add(e_sink, row_sum(e));
    return row_join(row_scale(q_div(q_int(1), all), e), row_one(q_max(e_sink, row_maximum(e))));
}
static row alphas_and_one(const instance *m) {
    return row_join(alphas(m), row_one(q_int(1)));
}
//< sink.stable

//> sink.limit
// e^b = 0: the ordinary softmax, and no weight for the sink.
static row alphas_without_sink(const instance *m) {
    instance none = instance_with_sink(m, q_int(0));
    return row_join(alphas(&none), row_one(alpha_sink(&none, 0)));
}
static row softmax_and_zero(const instance *m) {
    return row_join(softmax(seen_exps(m)), row_one(q_int(0)));
}
//< sink.limit

//> sink.lse
// e^(LSE_sink): the sum of all exponentials of the row [s, b], against e^LSE + e^b
static row e_lse_sink(const instance *m) {
    return row_one(row_sum(row_join(row_one(sink_of(m)), seen_exps(m))));
}
static row e_lse_plus_e_b(const instance *m) {
    return row_one(q_add(sum_exp(m, 0), m->e_sink.at[0]));
}
//< sink.lse

//> sink.gate
// sigmoid(LSE - b) = 1 / (1 + e^(b - LSE)), e^LSE = sum e
static rational sigmoid_gate(const instance *m) {
    rational e_b_minus_lse = q_div(sink_of(m), row_sum(seen_exps(m)));
    return q_div(q_int(1), q_add(q_int(1), e_b_minus_lse));
}
static row one_minus_alpha_sink(const instance *m) {
    return row_one(q_sub(q_int(1), alpha_sink(m, 0)));
}
static row gate_row(const instance *m) {
    return row_one(sigmoid_gate(m));
}
static row sink_output(const instance *m) { // o_sink = sum_j alpha_j u_j
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(alpha(m, j, 0), value_of(m, j)));
    return sum;
}
static row gated_output(const instance *m) { // sigmoid(LSE - b) o_softmax
    return row_scale(sigmoid_gate(m), weigh_values(m, softmax(seen_exps(m))));
}
//< sink.gate

//> sink.gated
// Qwen3-Next: sigmoid(G) o softmax(s) V, one G per element of the head's output.
static row qwen_gated(const instance *m) {
    row o = weigh_values(m, softmax(seen_exps(m))), out = row_zero(m->head_dim);
    for (size_t d = 0; d < m->head_dim; d++) {
        rational sigmoid = q_div(m->gate.at[d], q_add(q_int(1), m->gate.at[d]));
        out.at[d] = q_mul(sigmoid, o.at[d]);
    }
    return out;
}
// With every G_d = LSE - b it is the sink: e^G = sum e / B.
static row qwen_gated_by_lse(const instance *m) {
    instance same = *m;
    same.gate = row_zero(m->head_dim);
    for (size_t d = 0; d < m->head_dim; d++)
        same.gate.at[d] = q_div(row_sum(seen_exps(m)), sink_of(m));
    return qwen_gated(&same);
}
//< sink.gated

//> sink.value-bias-only
// softmax weights and v* added: the weights still sum to 1.
static row value_bias_output(const instance *m) {
    return row_add(weigh_values(m, softmax(seen_exps(m))), m->u_star);
}
static row value_bias_inside(const instance *m) { // = sum_j w_j (u_j + v*)
    row sum = row_zero(m->head_dim);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1)) {
        rational w = q_div(e_score(m, j, 0), sum_exp(m, 0));
        sum = row_add(sum, row_scale(w, row_add(value_of(m, j), m->u_star)));
    }
    return sum;
}
//< sink.value-bias-only

#define ROW(id, left_text, right_text, left, right)                                                \
    { "sink." id, SINKPROOF_EXACT_ROW, left_text, right_text, left, right, 0 }

const sinkproof_exact_statement exact_softmax_sink[] = {
    ROW("concat-slice", "softmax(cat([s, b]))[:-1]", "alpha", concat_slice, alphas),
    ROW("softmax1", "softmax_1(s)", "alpha at b = 0", softmax_1_of_scores, alphas_at_b_zero),
    ROW("shifted-softmax1", "alpha(s, b)", "softmax_1(s - b)", alphas, softmax_1_shifted),
    ROW("zero-pad", "softmax with a zero logit and a zero value row", "softmax_1(s) V", zero_padded,
        softmax_1_output),
    ROW("stable", "alpha, 1", "alpha with m = max(b, max s) subtracted everywhere, the largest e",
        alphas_and_one, shifted_alphas),
    ROW("limit", "alpha, alpha_s at e^b = 0", "softmax(s), 0", alphas_without_sink,
        softmax_and_zero),
    ROW("lse", "e^LSE_sink", "e^LSE + e^b", e_lse_sink, e_lse_plus_e_b),
    ROW("gate", "1 - alpha_s", "sigmoid(LSE - b)", one_minus_alpha_sink, gate_row),
    ROW("gate", "o_sink", "sigmoid(LSE - b) o_softmax", sink_output, gated_output),
    ROW("gated", "sigmoid(G) o softmax(s) V at G = LSE - b", "o_sink", qwen_gated_by_lse,
        sink_output),
    ROW("value-bias-only", "softmax(s) V + v*", "sum_j softmax(s)_j (v_j + v*)", value_bias_output,
        value_bias_inside),
    {0},
};

// ---- wrong forms ----------------------------------------------------------------------------

// softmax_1 "made stable": max s is subtracted, but the literal 1 is kept.
static row softmax_1_with_literal_one(const instance *m) {
    row e = seen_exps(m);
    return softmax_1(row_scale(q_div(q_int(1), row_maximum(e)), e));
}
// Qwen3-Next's gate is free: in general it is not a sink.
static row value_bias_with_sink(const instance *m) {
    return row_add(weigh_values(m, alphas(m)), m->u_star);
}
static row value_bias_inside_sink(const instance *m) {
    row w = alphas(m), sum = row_zero(m->head_dim);
    size_t k = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        sum = row_add(sum, row_scale(w.at[k++], row_add(value_of(m, j), m->u_star)));
    return sum;
}

// Binary64, one entry per key and the sink: is the weight a finite number?
static row finite_weights(const instance *m, bool sink_in_maximum) {
    double top = sink_in_maximum ? m->float_sink : -INFINITY, all = 0;
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        top = fmax(top, m->float_scores[j]);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        all += exp(m->float_scores[j] - top);
    all += exp(m->float_sink - top);
    row finite = row_zero(0);
    for (size_t j = next_seen(m, 0); j < m->tokens; j = next_seen(m, j + 1))
        finite =
            row_join(finite, row_one(q_int(isfinite(exp(m->float_scores[j] - top) / all) != 0)));
    return row_join(finite, row_one(q_int(isfinite(exp(m->float_sink - top) / all) != 0)));
}
static row maximum_without_sink(const instance *m) {
    return finite_weights(m, false);
}
static row maximum_with_sink(const instance *m) {
    return finite_weights(m, true);
}

const sinkproof_exact_statement exact_softmax_sink_wrong[] = {
    ROW("stable", "softmax_1 with max s subtracted and the literal 1 kept", "softmax_1(s)",
        softmax_1_with_literal_one, softmax_1_of_scores),
    {"sink.stable", SINKPROOF_EXACT_FLOAT,
     "binary64 weights that are finite, m = max s without the sink",
     "the same with the sink in the maximum", maximum_without_sink, maximum_with_sink, 0},
    ROW("gated", "sigmoid(G) o softmax(s) V for a free G", "o_sink", qwen_gated, sink_output),
    ROW("value-bias-only", "with a sink: o_sink + v*", "sum_j alpha_j (v_j + v*)",
        value_bias_with_sink, value_bias_inside_sink),
    {0},
};
