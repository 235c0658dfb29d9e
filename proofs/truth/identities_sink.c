// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The sink in its other forms, in balls, for head 0: each side is computed in its own way, with
// exponentials that are not shifted unless the statement is about the shift.
#include "proofs/truth/identities_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef const sinkproof_ball_instance *instance;

static void weights(arb_ptr out, instance m, slong bits) { // alpha_j, then alpha_s
    ball_weights(out, out + m->n, m, 0, bits);
}

static void weights_at_logit(arb_ptr out, instance m, double b, slong bits) {
    sinkproof_ball_instance other = *m;
    other.b_h[0] = b;
    weights(out, &other, bits);
}

static void divide_all(arb_ptr x_k, size_t n, const arb_t by, slong bits) {
    for (size_t k = 0; k < n; k++) arb_div(x_k + k, x_k + k, by, bits);
}

// sum_j w_j u_j of head 0, with the weights from a side that has one entry per key and one more.
static void output_of_weights(arb_ptr out, instance m, ball_side_fn weights_of, slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    weights_of(w, m, bits);
    ball_weighted(out, m, 0, w, NULL, bits);
    _arb_vec_clear(w, (slong)m->n + 1);
}
static void attention_output(arb_ptr out, instance m, slong bits) {
    output_of_weights(out, m, weights, bits);
}

//> sink.concat-slice
// softmax of the row [s, b]: n + 1 exponentials over their sum
static void concat_slice(arb_ptr out, instance m, slong bits) {
    arb_t all;
    arb_init(all);
    ball_exps(out, m, 0, bits);
    ball_exp_sink(out + m->n, m, 0, bits);
    ball_sum(all, out, m->n + 1, bits);
    divide_all(out, m->n + 1, all, bits);
    arb_clear(all);
}
//< sink.concat-slice

//> sink.softmax1
// e^(s_j) / (1 + sum e^s), and the weight of no key: 1 / (1 + sum e^s)
static void softmax_1(arb_ptr out, instance m, slong bits) {
    arb_t all;
    arb_init(all);
    ball_exps(out, m, 0, bits);
    ball_sum(all, out, m->n, bits);
    arb_add_ui(all, all, 1, bits);
    arb_one(out + m->n);
    divide_all(out, m->n + 1, all, bits);
    arb_clear(all);
}
static void weights_at_zero(arb_ptr out, instance m, slong bits) {
    weights_at_logit(out, m, 0, bits);
}
//< sink.softmax1

//> sink.shifted-softmax1
// softmax_1(s - b), the differences taken exactly
static void softmax_1_shifted(arb_ptr out, instance m, slong bits) {
    arb_t all, b;
    balls_init(all, b);
    arb_set_d(b, m->b_h[0]);
    for (size_t j = 0; j < m->n; j++) {
        arb_set_d(out + j, m->s_hj[j]);
        arb_sub(out + j, out + j, b, ARF_PREC_EXACT);
        arb_exp(out + j, out + j, bits);
    }
    ball_sum(all, out, m->n, bits);
    arb_add_ui(all, all, 1, bits);
    arb_one(out + m->n);
    divide_all(out, m->n + 1, all, bits);
    balls_clear(all, b);
}
//< sink.shifted-softmax1

//> sink.zero-pad
// n + 1 keys under the ordinary softmax, the last of logit 0 and value 0
static void zero_padded(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance padded = *m;
    padded.n = m->n + 1;
    padded.heads = padded.kv_heads = 1;
    padded.b_h[0] = -INFINITY;
    padded.s_hj = ball_doubles(padded.n);
    padded.x_gjd = ball_doubles(padded.n * m->dim);
    memcpy(padded.s_hj, m->s_hj, m->n * sizeof *m->s_hj);
    memcpy(padded.x_gjd, m->x_gjd, m->n * m->dim * sizeof *m->x_gjd);
    attention_output(out, &padded, bits);
    free(padded.s_hj);
    free(padded.x_gjd);
}
static void softmax_1_output(arb_ptr out, instance m, slong bits) {
    output_of_weights(out, m, softmax_1, bits);
}
//< sink.zero-pad

//> sink.limit
// b = -inf against the ordinary softmax, in which the sink's weight is exactly 0
static void weights_without_sink(arb_ptr out, instance m, slong bits) {
    weights_at_logit(out, m, -INFINITY, bits);
}
static void softmax(arb_ptr out, instance m, slong bits) {
    arb_t all;
    arb_init(all);
    ball_exps(out, m, 0, bits);
    ball_sum(all, out, m->n, bits);
    divide_all(out, m->n, all, bits);
    arb_zero(out + m->n);
    arb_clear(all);
}
//< sink.limit

static void lse(arb_ptr out, instance m, slong bits) { // log sum_j e^(s_j)
    arb_ptr e = _arb_vec_init((slong)m->n);
    ball_exps(e, m, 0, bits);
    ball_sum(out, e, m->n, bits);
    arb_log(out, out, bits);
    _arb_vec_clear(e, (slong)m->n);
}

//> sink.lse
static void lse_sink(arb_ptr out, instance m, slong bits) { // over the row [s, b]
    arb_ptr e = _arb_vec_init((slong)m->n + 1);
    ball_exps(e, m, 0, bits);
    ball_exp_sink(e + m->n, m, 0, bits);
    ball_sum(out, e, m->n + 1, bits);
    arb_log(out, out, bits);
    _arb_vec_clear(e, (slong)m->n + 1);
}
static void log_of_two(arb_ptr out, instance m, slong bits) { // log(e^LSE + e^b)
    arb_t e_b;
    arb_init(e_b);
    lse(out, m, bits);
    arb_exp(out, out, bits);
    ball_exp_sink(e_b, m, 0, bits);
    arb_add(out, out, e_b, bits);
    arb_log(out, out, bits);
    arb_clear(e_b);
}
//< sink.lse

//> sink.gate
// sigmoid(LSE - b) = 1 / (1 + e^(b - LSE))
static void sigmoid_gate(arb_ptr out, instance m, slong bits) {
    if (m->b_h[0] == -INFINITY) {
        arb_one(out); // the gate is open
        return;
    }
    arb_t b;
    arb_init(b);
    arb_set_d(b, m->b_h[0]);
    lse(out, m, bits);
    arb_sub(out, b, out, bits);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, 1, bits);
    arb_inv(out, out, bits);
    arb_clear(b);
}
static void one_minus_sink(arb_ptr out, instance m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    weights(a, m, bits);
    arb_sub_ui(out, a + m->n, 1, bits);
    arb_neg(out, out);
    _arb_vec_clear(a, (slong)m->n + 1);
}
static void gated_output(arb_ptr out, instance m, slong bits) { // sigmoid(LSE - b) o_softmax
    arb_t gate;
    arb_init(gate);
    sigmoid_gate(gate, m, bits);
    output_of_weights(out, m, softmax, bits);
    for (size_t d = 0; d < m->dim; d++) arb_mul(out + d, out + d, gate, bits);
    arb_clear(gate);
}
//< sink.gate

// A running maximum m (an exact score, or none yet), l and acc.
typedef struct state {
    arf_t top;
    arb_t l;
    arb_ptr acc;
} state;

static void state_init(state *s) {
    arf_init(s->top);
    arf_neg_inf(s->top);
    arb_init(s->l);
    s->acc = _arb_vec_init(SINKPROOF_BALL_DIM);
}
static void state_clear(state *s) {
    arf_clear(s->top);
    arb_clear(s->l);
    _arb_vec_clear(s->acc, SINKPROOF_BALL_DIM);
}
static void exp_difference(arb_t out, const arf_t x, const arf_t top, slong bits) {
    if (arf_is_neg_inf(x)) {
        arb_zero(out);
        return;
    }
    arb_set_arf(out, x);
    arb_sub_arf(out, out, top, bits);
    arb_exp(out, out, bits);
}

//> sink.online sink.split-kv
// Merges two states: both are scaled to the larger maximum. A key is the state (s_j, 1, u_j), the
// sink (b, 1, 0).
static void merge_states(state *into, const state *other, size_t dim, slong bits) {
    arf_t top;
    arb_t keep, join;
    arf_init(top);
    balls_init(keep, join);
    arf_max(top, into->top, other->top);
    exp_difference(keep, into->top, top, bits);
    exp_difference(join, other->top, top, bits);
    arb_mul(into->l, into->l, keep, bits);
    arb_addmul(into->l, other->l, join, bits);
    for (size_t d = 0; d < dim; d++) {
        arb_mul(into->acc + d, into->acc + d, keep, bits);
        arb_addmul(into->acc + d, other->acc + d, join, bits);
    }
    arf_set(into->top, top);
    arf_clear(top);
    balls_clear(keep, join);
}
static void set_key(state *s, instance m, size_t j) {
    arf_set_d(s->top, m->s_hj[j]);
    arb_one(s->l);
    for (size_t d = 0; d < m->dim; d++) arb_set_d(s->acc + d, m->x_gjd[j * m->dim + d]);
}
static void set_sink(state *s, instance m) {
    arf_set_d(s->top, m->b_h[0]);
    if (arf_is_neg_inf(s->top))
        arb_zero(s->l);
    else
        arb_one(s->l);
    for (size_t d = 0; d < m->dim; d++) arb_zero(s->acc + d);
}
static void output_of_state(arb_ptr out, const state *s, size_t dim, slong bits) {
    for (size_t d = 0; d < dim; d++) arb_div(out + d, s->acc + d, s->l, bits);
}
//< sink.online sink.split-kv

//> sink.online
static void online_output(arb_ptr out, instance m, bool sink_first, slong bits) {
    state s, next;
    state_init(&s);
    state_init(&next);
    if (sink_first) set_sink(&s, m);
    for (size_t j = 0; j < m->n; j++) {
        set_key(&next, m, j);
        merge_states(&s, &next, m->dim, bits);
    }
    if (!sink_first) {
        set_sink(&next, m);
        merge_states(&s, &next, m->dim, bits);
    }
    output_of_state(out, &s, m->dim, bits);
    state_clear(&s);
    state_clear(&next);
}
static void online_from_sink(arb_ptr out, instance m, slong bits) {
    online_output(out, m, true, bits);
}
static void online_sink_last(arb_ptr out, instance m, slong bits) {
    online_output(out, m, false, bits);
}
//< sink.online

//> sink.split-kv
// Three disjoint parts of the keys, each processed alone; the sink is added once, at the end.
static void split_kv(arb_ptr out, instance m, slong bits) {
    state whole, part, next;
    state_init(&whole);
    state_init(&part);
    state_init(&next);
    for (size_t p = 0; p < 3; p++) {
        arf_neg_inf(part.top);
        arb_zero(part.l);
        _arb_vec_zero(part.acc, SINKPROOF_BALL_DIM);
        bool any = false;
        for (size_t j = 0; j < m->n; j++) {
            if (m->part_j[j] != p) continue;
            set_key(&next, m, j);
            merge_states(&part, &next, m->dim, bits);
            any = true;
        }
        if (any) merge_states(&whole, &part, m->dim, bits);
    }
    set_sink(&next, m);
    merge_states(&whole, &next, m->dim, bits);
    output_of_state(out, &whole, m->dim, bits);
    state_clear(&whole);
    state_clear(&part);
    state_clear(&next);
}
//< sink.split-kv

//> sink.split-tree
// Merges the leaves from ... to - 1 by halves: the keys, and among them the sink.
static void merge_tree(state *out, instance m, size_t from, size_t to, slong bits) {
    size_t sink = m->n / 2;
    if (to - from == 1) {
        if (from == sink)
            set_sink(out, m);
        else
            set_key(out, m, from < sink ? from : from - 1);
        return;
    }
    state right;
    size_t middle = from + (to - from) / 2;
    state_init(&right);
    merge_tree(out, m, from, middle, bits);
    merge_tree(&right, m, middle, to, bits);
    merge_states(out, &right, m->dim, bits);
    state_clear(&right);
}
static void split_tree(arb_ptr out, instance m, slong bits) {
    state whole;
    state_init(&whole);
    merge_tree(&whole, m, 0, m->n + 1, bits);
    output_of_state(out, &whole, m->dim, bits);
    state_clear(&whole);
}
//< sink.split-tree

//> sink.value-bias-only
// softmax(s) V + v*, and v* inside the sum, whose weights sum to 1
static void value_bias_outside(arb_ptr out, instance m, slong bits) {
    arb_t star;
    arb_init(star);
    output_of_weights(out, m, softmax, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(star, m->star_d[d]);
        arb_add(out + d, out + d, star, bits);
    }
    arb_clear(star);
}
static void value_bias_inside(arb_ptr out, instance m, slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    softmax(w, m, bits);
    ball_weighted(out, m, 0, w, m->star_d, bits);
    _arb_vec_clear(w, (slong)m->n + 1);
}
//< sink.value-bias-only

// e^x of an exact x, or 0 of -infinity
static void ball_exp(arb_t out, const arb_t x, slong bits) {
    if (arf_is_neg_inf(arb_midref(x)))
        arb_zero(out);
    else
        arb_exp(out, x, bits);
}

//> law.shift
// The weights of s + t and b + t, the sums taken exactly; |t| < 1
static void weights_shifted(arb_ptr out, instance m, slong bits) {
    arb_t all, t;
    balls_init(all, t);
    arb_set_d(t, m->star_d[0] / 8);
    for (size_t k = 0; k <= m->n; k++) {
        arb_set_d(out + k, k < m->n ? m->s_hj[k] : m->b_h[0]);
        arb_add(out + k, out + k, t, ARF_PREC_EXACT);
        ball_exp(out + k, out + k, bits);
    }
    ball_sum(all, out, m->n + 1, bits);
    divide_all(out, m->n + 1, all, bits);
    balls_clear(all, t);
}
//< law.shift

//> repeat.sink
// n keys of the score c = s_0: their mass, and n / (n + e^(b - c))
static void mass_of_equal(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance equal = *m;
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    equal.s_hj = ball_doubles(m->heads * m->n);
    for (size_t j = 0; j < m->n; j++) equal.s_hj[j] = m->s_hj[0];
    weights(a, &equal, bits);
    ball_sum(out, a, m->n, bits);
    _arb_vec_clear(a, (slong)m->n + 1);
    free(equal.s_hj);
}
static void mass_by_count(arb_ptr out, instance m, slong bits) {
    arb_t c;
    arb_init(c);
    arb_set_d(c, m->s_hj[0]);
    arb_set_d(out, m->b_h[0]);
    arb_sub(out, out, c, ARF_PREC_EXACT);
    ball_exp(out, out, bits);
    arb_add_ui(out, out, m->n, bits);
    arb_ui_div(out, m->n, out, bits);
    arb_clear(c);
}
//< repeat.sink

//> law.constant-value
// Every value is v: the weighted sum, and (1 - alpha_s) v
static void output_of_equal_values(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance equal = *m;
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    equal.x_gjd = ball_doubles(m->kv_heads * m->n * m->dim);
    weights(a, m, bits);
    ball_weighted(out, &equal, 0, a, m->star_d, bits);
    _arb_vec_clear(a, (slong)m->n + 1);
    free(equal.x_gjd);
}
static void value_times_mass(arb_ptr out, instance m, slong bits) {
    arb_t mass, v;
    balls_init(mass, v);
    one_minus_sink(mass, m, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(v, m->star_d[d]);
        arb_mul(out + d, mass, v, bits);
    }
    balls_clear(mass, v);
}
//< law.constant-value

#define KEYS SINKPROOF_BALL_EQUAL, BALL_KEYS
#define HEAD SINKPROOF_BALL_EQUAL, BALL_HEAD
#define ONE  SINKPROOF_BALL_EQUAL, BALL_ONE

const sinkproof_identity identities_sink[] = {
    {"sink.concat-slice", KEYS, "softmax(cat([s, b]))", "alpha, alpha_s", concat_slice, weights,
     PLAIN},
    {"sink.softmax1", KEYS, "softmax_1(s)", "alpha at b = 0", softmax_1, weights_at_zero, PLAIN},
    {"sink.shifted-softmax1", KEYS, "softmax_1(s - b)", "alpha, alpha_s", softmax_1_shifted,
     weights, FINITE},
    {"sink.zero-pad", HEAD, "softmax with a zero logit and a zero value row", "softmax_1(s) V",
     zero_padded, softmax_1_output, PLAIN},
    {"sink.stable", KEYS, "alpha, all shifted by max(b, max s)", "alpha, not shifted", weights,
     concat_slice, PLAIN},
    {"sink.limit", KEYS, "alpha, alpha_s at b = -inf", "softmax(s), 0", weights_without_sink,
     softmax, PLAIN},
    {"sink.lse", ONE, "LSE_sink", "log(e^LSE + e^b)", lse_sink, log_of_two, PLAIN},
    {"sink.gate", ONE, "1 - alpha_s", "sigmoid(LSE - b)", one_minus_sink, sigmoid_gate, PLAIN},
    {"sink.gate", HEAD, "o_sink", "sigmoid(LSE - b) o_softmax", attention_output, gated_output,
     PLAIN},
    {"sink.online", HEAD, "the recurrence started at (b, 1, 0)", "sum_j alpha_j v_j",
     online_from_sink, attention_output, RECURRENT},
    {"sink.online", HEAD, "the recurrence started empty, the sink last", "sum_j alpha_j v_j",
     online_sink_last, attention_output, RECURRENT},
    {"sink.split-kv", HEAD, "three parts merged, the sink once", "sum_j alpha_j v_j", split_kv,
     attention_output, RECURRENT},
    {"sink.split-tree", HEAD, "a tree of single keys, the sink among them", "sum_j alpha_j v_j",
     split_tree, attention_output, RECURRENT},
    {"sink.value-bias-only", HEAD, "softmax(s) V + v*", "sum_j softmax(s)_j (v_j + v*)",
     value_bias_outside, value_bias_inside, PLAIN},
    {"law.shift", KEYS, "alpha(s + t, b + t)", "alpha(s, b)", weights_shifted, weights, PLAIN},
    {"repeat.sink", ONE, "sum_j alpha_j, all scores c", "n / (n + e^(b - c))", mass_of_equal,
     mass_by_count, PLAIN},
    {"law.constant-value", HEAD, "sum_j alpha_j v", "(1 - alpha_s) v", output_of_equal_values,
     value_times_mass, PLAIN},
    {0},
};
