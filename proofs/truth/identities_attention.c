// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The mass of the keys and the value bias, in balls (sink.mass to sink.bf16-mass), and the grid
// over lengths and sink logits. x_gj stands for x_j W^V_g.
#include "proofs/truth/identities_internal.h"

#include "model/round.h"

#include <math.h>
#include <stdlib.h>

void ball_weights(arb_ptr alpha_j, arb_ptr alpha_sink, const sinkproof_ball_instance *m, size_t h,
                  slong bits) {
    arb_ptr z = _arb_vec_init((slong)m->n + 1);
    for (size_t j = 0; j < m->n; j++) arb_set_d(z + j, m->s_hj[h * m->n + j]);
    arb_set_d(z + m->n, m->b_h[h]);
    sinkproof_truth_softmax_sink(alpha_j, alpha_sink, z, m->n, z + m->n, bits);
    _arb_vec_clear(z, (slong)m->n + 1);
}

static void ball_exp(arb_ptr out, double x, slong bits) {
    if (x == -INFINITY) {
        arb_zero(out);
        return;
    }
    arb_set_d(out, x);
    arb_exp(out, out, bits);
}

void ball_exps(arb_ptr e_j, const sinkproof_ball_instance *m, size_t h, slong bits) {
    for (size_t j = 0; j < m->n; j++) ball_exp(e_j + j, m->s_hj[h * m->n + j], bits);
}

void ball_exp_sink(arb_ptr e_b, const sinkproof_ball_instance *m, size_t h, slong bits) {
    ball_exp(e_b, m->b_h[h], bits);
}

void ball_sum(arb_ptr out, arb_srcptr x_k, size_t n, slong bits) {
    arb_t sum;
    arb_init(sum);
    for (size_t k = 0; k < n; k++) arb_add(sum, sum, x_k + k, bits);
    arb_set(out, sum);
    arb_clear(sum);
}

void ball_weighted(arb_ptr out_d, const sinkproof_ball_instance *m, size_t g, arb_srcptr w_j,
                   const double *bias_d, slong bits) {
    arb_t v;
    arb_init(v);
    for (size_t d = 0; d < m->dim; d++) {
        arb_zero(out_d + d);
        for (size_t j = 0; j < m->n; j++) {
            arb_set_d(v, m->x_gjd[(g * m->n + j) * m->dim + d] + (bias_d != NULL ? bias_d[d] : 0));
            arb_addmul(out_d + d, w_j + j, v, bits);
        }
    }
    arb_clear(v);
}

static size_t kv_group(const sinkproof_ball_instance *m, size_t h) { // g(h)
    return h / (m->heads / m->kv_heads);
}

// out_c += x_d W^O_h
static void add_times_output(arb_ptr out_c, const sinkproof_ball_instance *m, size_t h,
                             arb_srcptr x_d, slong bits) {
    arb_t w;
    arb_init(w);
    for (size_t d = 0; d < m->dim; d++)
        for (size_t c = 0; c < m->hidden; c++) {
            arb_set_d(w, m->wo_hdc[(h * m->dim + d) * m->hidden + c]);
            arb_addmul(out_c + c, x_d + d, w, bits);
        }
    arb_clear(w);
}

static void set_doubles(arb_ptr out, const double *x, size_t n) {
    for (size_t k = 0; k < n; k++) arb_set_d(out + k, x[k]);
}

//> sink.mass
static void mass_left(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    ball_weights(a, a + m->n, m, 0, bits);
    ball_sum(out, a, m->n, bits); // sum_j alpha_j
    _arb_vec_clear(a, (slong)m->n + 1);
}
static void mass_right(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    ball_weights(a, a + m->n, m, 0, bits);
    arb_sub_ui(out, a + m->n, 1, bits); // 1 - alpha_s
    arb_neg(out, out);
    _arb_vec_clear(a, (slong)m->n + 1);
}
//< sink.mass

//> sink.mass-below-one
// 0 < alpha_s, alpha_s < 1, 0 < sum_j alpha, sum_j alpha < 1
static void below_one_left(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    ball_weights(a, a + m->n, m, 0, bits);
    arb_zero(out);
    arb_set(out + 1, a + m->n);
    arb_zero(out + 2);
    mass_left(out + 3, m, bits);
    _arb_vec_clear(a, (slong)m->n + 1);
}
// alpha_s, 1, sum_j alpha, 1: e^b and sum e^s over their sum
static void below_one_right(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n);
    arb_t all;
    arb_init(all);
    ball_exps(e, m, 0, bits);
    ball_sum(out + 2, e, m->n, bits);
    ball_exp_sink(out, m, 0, bits);
    arb_add(all, out, out + 2, bits);
    arb_div(out, out, all, bits);
    arb_div(out + 2, out + 2, all, bits);
    arb_one(out + 1);
    arb_one(out + 3);
    arb_clear(all);
    _arb_vec_clear(e, (slong)m->n);
}
//< sink.mass-below-one

// sum_h sum_j alpha x_j W^V W^O_h + b^O, plus `bias` times b^V_h W^O_h for every head.
static void attn_with_bias(arb_ptr out, const sinkproof_ball_instance *m,
                           void (*bias)(arb_ptr, const sinkproof_ball_instance *, arb_srcptr,
                                        slong),
                           slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1), head = _arb_vec_init(SINKPROOF_BALL_DIM);
    arb_ptr b_v = _arb_vec_init(SINKPROOF_BALL_DIM), factor = _arb_vec_init(1);
    set_doubles(out, m->bo_c, m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        size_t g = kv_group(m, h);
        ball_weights(a, a + m->n, m, h, bits);
        ball_weighted(head, m, g, a, NULL, bits);
        add_times_output(out, m, h, head, bits);
        bias(factor, m, a, bits);
        set_doubles(b_v, m->bv_gd + g * m->dim, m->dim);
        for (size_t d = 0; d < m->dim; d++) arb_mul(b_v + d, b_v + d, factor, bits);
        add_times_output(out, m, h, b_v, bits);
    }
    _arb_vec_clear(a, (slong)m->n + 1);
    _arb_vec_clear(head, SINKPROOF_BALL_DIM);
    _arb_vec_clear(b_v, SINKPROOF_BALL_DIM);
    _arb_vec_clear(factor, 1);
}

//> sink.attn-mass
static void key_mass(arb_ptr out, const sinkproof_ball_instance *m, arb_srcptr a_j, slong bits) {
    ball_sum(out, a_j, m->n, bits); // sum_j alpha_j
}
static void sink_mass(arb_ptr out, const sinkproof_ball_instance *m, arb_srcptr a_j, slong bits) {
    arb_sub_ui(out, a_j + m->n, 1, bits); // 1 - alpha_s
    arb_neg(out, out);
}
static void attn_factor(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    attn_with_bias(out, m, key_mass, bits);
}
static void attn_mass(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    attn_with_bias(out, m, sink_mass, bits);
}
//< sink.attn-mass

// [head_1 ... head_H] W^O + b^O
static void attn_concat(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1), head = _arb_vec_init(SINKPROOF_BALL_DIM);
    set_doubles(out, m->bo_c, m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        size_t g = kv_group(m, h);
        ball_weights(a, a + m->n, m, h, bits);
        ball_weighted(head, m, g, a, m->bv_gd + g * m->dim, bits);
        add_times_output(out, m, h, head, bits);
    }
    _arb_vec_clear(a, (slong)m->n + 1);
    _arb_vec_clear(head, SINKPROOF_BALL_DIM);
}

//> sink.attn-final sink.general
// ... + sum_h alpha_s (-b^V_g(h) W^O_h) + b^V W^O + b^O
static void minus_sink(arb_ptr out, const sinkproof_ball_instance *m, arb_srcptr a_j, slong bits) {
    arb_neg_round(out, a_j + m->n, bits);
}
static void attn_final(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr b_v = _arb_vec_init(SINKPROOF_BALL_DIM);
    attn_with_bias(out, m, minus_sink, bits);
    for (size_t h = 0; h < m->heads; h++) {
        set_doubles(b_v, m->bv_gd + kv_group(m, h) * m->dim, m->dim);
        add_times_output(out, m, h, b_v, bits);
    }
    _arb_vec_clear(b_v, SINKPROOF_BALL_DIM);
}
//< sink.attn-final sink.general

//> sink.attn-gate
// sum_h (1 - alpha_s,h) [sum_j softmax_j x_j W^V_h + b^V_h] W^O_h + b^O
static void attn_gate(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1), head = _arb_vec_init(SINKPROOF_BALL_DIM);
    arb_ptr b_v = _arb_vec_init(SINKPROOF_BALL_DIM);
    arb_t left, sum;
    balls_init(left, sum);
    set_doubles(out, m->bo_c, m->hidden);
    for (size_t h = 0; h < m->heads; h++) {
        size_t g = kv_group(m, h);
        ball_weights(a, a + m->n, m, h, bits);
        sink_mass(left, m, a, bits); // 1 - alpha_s
        ball_exps(a, m, h, bits);
        ball_sum(sum, a, m->n, bits);
        for (size_t j = 0; j < m->n; j++) arb_div(a + j, a + j, sum, bits); // softmax_j
        ball_weighted(head, m, g, a, NULL, bits);
        set_doubles(b_v, m->bv_gd + g * m->dim, m->dim);
        for (size_t d = 0; d < m->dim; d++) {
            arb_add(head + d, head + d, b_v + d, bits);
            arb_mul(head + d, head + d, left, bits);
        }
        add_times_output(out, m, h, head, bits);
    }
    _arb_vec_clear(a, (slong)m->n + 1);
    _arb_vec_clear(head, SINKPROOF_BALL_DIM);
    _arb_vec_clear(b_v, SINKPROOF_BALL_DIM);
    balls_clear(left, sum);
}
//< sink.attn-gate

// (1 - alpha_s) of head 0 with its sink logit the ball b.
static void one_minus_alpha(arb_ptr out, const sinkproof_ball_instance *m, const arb_t b,
                            slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n);
    arb_t sum, e_b;
    balls_init(sum, e_b);
    ball_exps(e, m, 0, bits);
    ball_sum(sum, e, m->n, bits);
    arb_exp(e_b, b, bits);
    arb_div(out, e_b, sum, bits); // 1 / (1 + e^b / S)
    arb_add_ui(out, out, 1, bits);
    arb_inv(out, out, bits);
    balls_clear(sum, e_b);
    _arb_vec_clear(e, (slong)m->n);
}

static void scaled_bias(arb_ptr out, const sinkproof_ball_instance *m, const arb_t factor,
                        slong bits) { // factor b^V_0 W^O_0
    arb_ptr b_v = _arb_vec_init(SINKPROOF_BALL_DIM);
    set_doubles(b_v, m->bv_gd, m->dim);
    for (size_t d = 0; d < m->dim; d++) arb_mul(b_v + d, b_v + d, factor, bits);
    for (size_t c = 0; c < m->hidden; c++) arb_zero(out + c);
    add_times_output(out, m, 0, b_v, bits);
    _arb_vec_clear(b_v, SINKPROOF_BALL_DIM);
}

//> sink.bias-intensity
// (F(b + h) - F(b)) / h of the bias term F = (1 - alpha_s) b^V W^O lies in the range of its
// derivative -alpha_s (1 - alpha_s) b^V W^O over [b, b + h] (mean value theorem), h = 2^(-bits/4).
static void intensity_quotient(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_t b, here, there;
    balls_init(b, here, there);
    arb_set_d(b, m->b_h[0]);
    one_minus_alpha(here, m, b, bits);
    arb_one(there);
    arb_mul_2exp_si(there, there, -(bits / 4));
    arb_add(b, b, there, ARF_PREC_EXACT);
    one_minus_alpha(there, m, b, bits);
    arb_sub(there, there, here, bits);
    arb_mul_2exp_si(there, there, bits / 4);
    scaled_bias(out, m, there, bits);
    balls_clear(b, here, there);
}
static void intensity_derivative(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_t b, step, all, w;
    balls_init(b, step, all, w);
    arb_set_d(b, m->b_h[0]);
    arb_one(step);
    arb_mul_2exp_si(step, step, -(bits / 4));
    arb_add(step, b, step, ARF_PREC_EXACT);
    arb_union(b, b, step, bits);        // every point between
    for (size_t j = 0; j < m->n; j++) { // e^LSE
        arb_set_d(w, m->s_hj[j]);
        arb_exp(w, w, bits);
        arb_add(all, all, w, bits);
    }
    arb_log(all, all, bits);
    arb_sub(b, all, b,
            bits); // alpha_s = 1 / (1 + e^(LSE - b)), and 1 - alpha_s = 1 / (1 + e^(b - LSE))
    arb_neg(step, b);
    arb_exp(b, b, bits);
    arb_exp(step, step, bits);
    arb_add_ui(b, b, 1, bits);
    arb_add_ui(step, step, 1, bits);
    arb_mul(b, b, step, bits);
    arb_inv(b, b, bits);
    for (size_t c = 0; c < m->hidden; c++) {
        arb_zero(all); // - b^V_0 W^O_0
        for (size_t d = 0; d < m->dim; d++) {
            arb_set_d(w, m->bv_gd[d] * m->wo_hdc[d * m->hidden + c]); // exact: both are short
            arb_sub(all, all, w, bits);
        }
        arb_mul(out + c, b, all, bits);
    }
    balls_clear(b, step, all, w);
}
//< sink.bias-intensity

// A bound on every output: the heads' largest value |x_j W^V + b^V| summed over the rows of W^O.
static double output_bound(const sinkproof_ball_instance *m) {
    sinkproof_identity whole = {.size = BALL_HIDDEN};
    return identity_allowance_unit(&whole, m);
}

//> sink.bias-limits
// |ATTN - b^O| < max_h e^(LSE_h - b_h) A and |ATTN - ATTN at b = -inf| < max_h e^(b_h - LSE_h) A:
// both limits, with their rates.
static void distance_to_bias(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_t bias;
    arb_init(bias);
    attn_concat(out, m, bits);
    for (size_t c = 0; c < m->hidden; c++) {
        arb_set_d(bias, m->bo_c[c]);
        arb_sub(out + c, out + c, bias, bits);
        arb_abs(out + c, out + c);
    }
    arb_clear(bias);
}
static void distance_to_full_bias(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    sinkproof_ball_instance none = *m;
    for (size_t h = 0; h < m->heads; h++) none.b_h[h] = -INFINITY;
    arb_ptr with_sink = _arb_vec_init((slong)m->hidden);
    attn_concat(with_sink, m, bits);
    attn_concat(out, &none, bits);
    for (size_t c = 0; c < m->hidden; c++) {
        arb_sub(out + c, out + c, with_sink + c, bits);
        arb_abs(out + c, out + c);
    }
    _arb_vec_clear(with_sink, (slong)m->hidden);
}
static void convergence_bound(arb_ptr out, const sinkproof_ball_instance *m, bool to_sink,
                              slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n);
    arb_t sum, e_b, most;
    balls_init(sum, e_b, most);
    for (size_t h = 0; h < m->heads; h++) {
        ball_exps(e, m, h, bits);
        ball_sum(sum, e, m->n, bits);
        ball_exp_sink(e_b, m, h, bits);
        if (to_sink)
            arb_div(sum, sum, e_b, bits);
        else
            arb_div(sum, e_b, sum, bits);
        arb_max(most, most, sum, bits);
    }
    arb_set_d(sum, output_bound(m));
    for (size_t c = 0; c < m->hidden; c++) arb_mul(out + c, most, sum, bits);
    balls_clear(sum, e_b, most);
    _arb_vec_clear(e, (slong)m->n);
}
static void bound_to_bias(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    convergence_bound(out, m, true, bits);
}
static void bound_to_full_bias(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    convergence_bound(out, m, false, bits);
}
//< sink.bias-limits

static double round_to_bf16(const arb_t weight) { // the midpoint, rounded twice
    return sinkproof_round(SINKPROOF_BF16, arf_get_d(arb_midref(weight), ARF_RND_NEAR));
}

//> sink.bf16-mass
// |sum_j bf16(alpha_j) - (1 - bf16(alpha_s))| < u + (n + 1) 2^-134, u = 2^-8: every weight errs
// by at most u / (1 + u) of itself (or half the least subnormal), and all weights sum to 1.
static void bf16_mass_gap(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    arb_t w;
    arb_init(w);
    ball_weights(a, a + m->n, m, 0, bits);
    arb_set_si(out, -1);
    for (size_t j = 0; j <= m->n; j++) {
        arb_set_d(w, round_to_bf16(a + j));
        arb_add(out, out, w, ARF_PREC_EXACT);
    }
    arb_abs(out, out);
    arb_clear(w);
    _arb_vec_clear(a, (slong)m->n + 1);
}
static void bf16_mass_bound(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_set_ui(out, m->n + 1);
    arb_mul_2exp_si(out, out, -134);
    arb_t u;
    arb_init(u);
    arb_set_d(u, sinkproof_unit_roundoff(SINKPROOF_BF16));
    arb_add(out, out, u, bits);
    arb_clear(u);
}
//< sink.bf16-mass

#define EQUAL SINKPROOF_BALL_EQUAL
#define LESS  SINKPROOF_BALL_LESS

const sinkproof_identity identities_attention[] = {
    {"sink.mass", EQUAL, BALL_ONE, "sum_j alpha_j", "1 - alpha_s", mass_left, mass_right, PLAIN},
    {"sink.mass-below-one", LESS, BALL_FOUR, "0, alpha_s, 0, sum_j alpha",
     "alpha_s, 1, sum_j alpha, 1", below_one_left, below_one_right, FINITE},
    {"sink.attn-mass", EQUAL, BALL_HIDDEN, "the bias term times sum_j alpha",
     "the bias term times 1 - alpha_s", attn_factor, attn_mass, PLAIN},
    {"sink.attn-final", EQUAL, BALL_HIDDEN, "[head_1 ... head_H] W^O + b^O", "the last line",
     attn_concat, attn_final, PLAIN},
    {"sink.attn-gate", EQUAL, BALL_HIDDEN, "[head_1 ... head_H] W^O + b^O",
     "ordinary heads and biases times 1 - alpha_s", attn_concat, attn_gate, PLAIN},
    {"sink.general", EQUAL, BALL_HIDDEN, "[head_1 ... head_H] W^O + b^O, heads grouped",
     "the last line, b^V through g(h)", attn_concat, attn_final, PLAIN},
    {"sink.bias-intensity", SINKPROOF_BALL_DERIVATIVE, BALL_HIDDEN,
     "difference quotient in b of the bias term", "-alpha_s (1 - alpha_s) b^V W^O",
     intensity_quotient, intensity_derivative, FINITE},
    {"sink.bias-limits", LESS, BALL_HIDDEN, "|ATTN - b^O|", "max_h e^(LSE - b) A", distance_to_bias,
     bound_to_bias, FINITE},
    {"sink.bias-limits", LESS, BALL_HIDDEN, "|ATTN - ATTN at b = -inf|", "max_h e^(b - LSE) A",
     distance_to_full_bias, bound_to_full_bias, FINITE},
    {"sink.bf16-mass", LESS, BALL_ONE, "|sum_j bf16(alpha_j) + bf16(alpha_s) - 1|",
     "2^-8 + (n + 1) 2^-134", bf16_mass_gap, bf16_mass_bound, PLAIN},
    {0},
};
