// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The forms in which kernels evaluate the same weights, and the same sigmoid, in balls, for head 0:
// only the balls round, so each form must agree with the definition.
#include "proofs/truth/identities_internal.h"

#include <math.h>

typedef const sinkproof_ball_instance *instance;

static void weights(arb_ptr out, instance m, slong bits) { // alpha_j, then alpha_s
    ball_weights(out, out + m->n, m, 0, bits);
}

static bool has_sink(instance m) {
    return m->b_h[0] != -INFINITY;
}

// The logit of term k of the row [s, b].
static void row_logit(arb_t out, instance m, size_t k) {
    arb_set_d(out, k < m->n ? m->s_hj[k] : m->b_h[0]);
}

static void divide_by_sum(arb_ptr x_k, size_t n, slong bits) {
    arb_t all;
    arb_init(all);
    ball_sum(all, x_k, n, bits);
    for (size_t k = 0; k < n; k++) arb_div(x_k + k, x_k + k, all, bits);
    arb_clear(all);
}

//> form.base2
// 2^(y_j) over the sum of them, y = s log2(e)
static void softmax_by_exp2(arb_ptr out, instance m, slong bits) {
    arb_t y, two, ln_2;
    balls_init(y, two, ln_2);
    arb_set_ui(two, 2);
    arb_const_log2(ln_2, bits);
    arb_zero(out + m->n);
    for (size_t k = 0; k < m->n + (has_sink(m) ? 1 : 0); k++) {
        row_logit(y, m, k);
        arb_div(y, y, ln_2, bits);
        arb_pow(out + k, two, y, bits);
    }
    divide_by_sum(out, m->n + 1, bits);
    balls_clear(y, two, ln_2);
}
//< form.base2

// log of the sum of e^(s_j), and of e^b when the sink is in it
static void log_sum_exp(arb_t out, instance m, bool sink, slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n + 1);
    ball_exps(e, m, 0, bits);
    ball_exp_sink(e + m->n, m, 0, bits);
    ball_sum(out, e, m->n + (sink ? 1 : 0), bits);
    arb_log(out, out, bits);
    _arb_vec_clear(e, (slong)m->n + 1);
}

//> form.lse-subtract
// e^(s_j - LSE_sink), e^(b - LSE_sink)
static void lse_subtracted(arb_ptr out, instance m, slong bits) {
    arb_t all;
    arb_init(all);
    log_sum_exp(all, m, true, bits);
    arb_zero(out + m->n);
    for (size_t k = 0; k < m->n + (has_sink(m) ? 1 : 0); k++) {
        row_logit(out + k, m, k);
        arb_sub(out + k, out + k, all, bits);
        arb_exp(out + k, out + k, bits);
    }
    arb_clear(all);
}
//< form.lse-subtract

//> form.lse-gate
// softmax(s)_j sigmoid(LSE - b), and sigmoid(b - LSE)
static void lse_gated(arb_ptr out, instance m, slong bits) {
    arb_t ratio, gate, b;
    balls_init(ratio, gate, b);
    if (has_sink(m)) { // e^(b - LSE); without a sink 0
        log_sum_exp(ratio, m, false, bits);
        arb_set_d(b, m->b_h[0]);
        arb_sub(ratio, b, ratio, bits);
        arb_exp(ratio, ratio, bits);
    }
    arb_add_ui(gate, ratio, 1, bits);
    arb_inv(gate, gate, bits);
    ball_exps(out, m, 0, bits);
    divide_by_sum(out, m->n, bits);
    for (size_t j = 0; j < m->n; j++) arb_mul(out + j, out + j, gate, bits);
    arb_mul(out + m->n, ratio, gate, bits);
    balls_clear(ratio, gate, b);
}
//< form.lse-gate

static void exp_difference(arb_t out, double x, double top, slong bits) {
    arb_t t;
    arb_init(t);
    arb_set_d(out, x);
    arb_set_d(t, top);
    arb_sub(out, out, t, bits);
    arb_exp(out, out, bits);
    arb_clear(t);
}

//> form.running-max
// Key after key: at a new maximum all earlier numerators are multiplied by e^(old - new).
static void running_maximum(arb_ptr out, instance m, slong bits) {
    arb_t factor;
    arb_init(factor);
    double top = -INFINITY;
    size_t terms = m->n + (has_sink(m) ? 1 : 0);
    arb_zero(out + m->n);
    for (size_t k = 0; k < terms; k++) {
        double x = k < m->n ? m->s_hj[k] : m->b_h[0];
        if (x > top && k > 0) {
            exp_difference(factor, top, x, bits);
            for (size_t j = 0; j < k; j++) arb_mul(out + j, out + j, factor, bits);
        }
        top = fmax(top, x);
        exp_difference(out + k, x, top, bits);
    }
    divide_by_sum(out, m->n + 1, bits);
    arb_clear(factor);
}
//< form.running-max

//> form.sigmoid-tanh
// sigmoid(t) and (1 + tanh(t / 2)) / 2 at t = s_0
static void sigmoid(arb_ptr out, instance m, slong bits) {
    arb_set_d(out, -m->s_hj[0]);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, 1, bits);
    arb_inv(out, out, bits);
}
static void sigmoid_by_tanh(arb_ptr out, instance m, slong bits) {
    arb_set_d(out, m->s_hj[0] / 2);
    arb_tanh(out, out, bits);
    arb_add_ui(out, out, 1, bits);
    arb_mul_2exp_si(out, out, -1);
}
//< form.sigmoid-tanh

#define KEYS SINKPROOF_BALL_EQUAL, BALL_KEYS
#define ONE  SINKPROOF_BALL_EQUAL, BALL_ONE

const sinkproof_identity identities_forms[] = {
    {"form.base2", KEYS, "2^(s log2 e) over their sum", "alpha, alpha_s", softmax_by_exp2, weights,
     PLAIN},
    {"form.lse-subtract", KEYS, "e^(s - LSE_sink)", "alpha, alpha_s", lse_subtracted, weights,
     PLAIN},
    {"form.lse-gate", KEYS, "softmax(s) sigmoid(LSE - b), sigmoid(b - LSE)", "alpha, alpha_s",
     lse_gated, weights, PLAIN},
    {"form.running-max", KEYS, "numerators rescaled at each new maximum", "alpha, alpha_s",
     running_maximum, weights, RECURRENT},
    {"form.sigmoid-tanh", ONE, "(1 + tanh(t / 2)) / 2", "sigmoid(t)", sigmoid_by_tanh, sigmoid,
     PLAIN},
    {0},
};
