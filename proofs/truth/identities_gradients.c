// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Gradients of a row with a sink, in balls: in forward mode, as the linear coefficient of a power
// series, against the formula. The letters: dO is star / 256, the direction of score j the first
// coordinate of key j over 16, that of the sink the query's. Both are short, so that no side is
// larger than the terms that an identity's allowance counts.
#include "proofs/truth/identities_internal.h"

#include <math.h>

// A number and its derivative along the direction.
typedef struct jet {
    arb_t v, d;
} jet;

static void jet_init(jet *x) {
    balls_init(x->v, x->d);
}
static void jet_clear(jet *x) {
    balls_clear(x->v, x->d);
}
// out = x / y: (x' - (x / y) y') / y
static void jet_divide(jet *out, const jet *x, const jet *y, slong bits) {
    arb_div(out->v, x->v, y->v, bits);
    arb_mul(out->d, out->v, y->d, bits);
    arb_sub(out->d, x->d, out->d, bits);
    arb_div(out->d, out->d, y->v, bits);
}

static double score_step(const sinkproof_ball_instance *m, size_t j) {
    return m->k_jd[j * m->dim] / 16;
}
static double sink_step(const sinkproof_ball_instance *m) {
    return m->q_d[0] / 16;
}
static void set_do(arb_t out, const sinkproof_ball_instance *m, size_t d) { // dO_d
    arb_set_d(out, m->star_d[d] / 256);
}

// e^x along x' = step
static void jet_exp(jet *out, double x, double step, slong bits) {
    arb_zero(out->v);
    if (x != -INFINITY) {
        arb_set_d(out->v, x);
        arb_exp(out->v, out->v, bits);
    }
    arb_set_d(out->d, step);
    arb_mul(out->d, out->d, out->v, bits);
}

// The sum of the exponentials of head 0, with the sink or without; `scores`: whether they move.
static void jet_sum(jet *out, const sinkproof_ball_instance *m, bool sink, bool scores,
                    double of_sink, slong bits) {
    jet e;
    jet_init(&e);
    balls_init(out->v, out->d);
    for (size_t j = 0; j < m->n; j++) {
        jet_exp(&e, m->s_hj[j], scores ? score_step(m, j) : 0, bits);
        arb_add(out->v, out->v, e.v, bits);
        arb_add(out->d, out->d, e.d, bits);
    }
    if (sink) {
        jet_exp(&e, m->b_h[0], of_sink, bits);
        arb_add(out->v, out->v, e.v, bits);
        arb_add(out->d, out->d, e.d, bits);
    }
    jet_clear(&e);
}

//> grad.softmax
static void weights_in_forward_mode(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    jet all, e, share;
    jet_init(&e), jet_init(&share);
    jet_sum(&all, m, true, true, sink_step(m), bits);
    for (size_t j = 0; j <= m->n; j++) {
        bool key = j < m->n;
        jet_exp(&e, key ? m->s_hj[j] : m->b_h[0], key ? score_step(m, j) : sink_step(m), bits);
        jet_divide(&share, &e, &all, bits);
        arb_set(out + j, share.d);
    }
    jet_clear(&all), jet_clear(&e), jet_clear(&share);
}
// alpha_j (sigma_j - mean)
static void weights_by_jacobian(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    arb_t mean, t;
    balls_init(mean, t);
    ball_weights(a, a + m->n, m, 0, bits);
    for (int pass = 0; pass < 2; pass++)
        for (size_t j = 0; j <= m->n; j++) {
            arb_set_d(t, j < m->n ? m->k_jd[j * m->dim] / 16 : m->q_d[0] / 16);
            if (pass == 0)
                arb_addmul(mean, a + j, t, bits);
            else {
                arb_sub(t, t, mean, bits);
                arb_mul(out + j, a + j, t, bits);
            }
        }
    balls_clear(mean, t);
    _arb_vec_clear(a, (slong)m->n + 1);
}
//< grad.softmax

//> grad.sink
// The derivative of O_d in b, in forward mode.
static void output_moved_by_sink(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    jet all, e, share;
    arb_t v;
    arb_init(v);
    jet_init(&e), jet_init(&share);
    jet_sum(&all, m, true, false, 1, bits);
    for (size_t d = 0; d < m->dim; d++) arb_zero(out + d);
    for (size_t j = 0; j < m->n; j++) {
        jet_exp(&e, m->s_hj[j], 0, bits);
        jet_divide(&share, &e, &all, bits);
        for (size_t d = 0; d < m->dim; d++) {
            arb_set_d(v, m->x_gjd[j * m->dim + d]);
            arb_addmul(out + d, share.d, v, bits);
        }
    }
    arb_clear(v);
    jet_clear(&all), jet_clear(&e), jet_clear(&share);
}
static void minus_sink_times_output(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    ball_weights(a, a + m->n, m, 0, bits);
    ball_weighted(out, m, 0, a, NULL, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_mul(out + d, out + d, a + m->n, bits);
        arb_neg(out + d, out + d);
    }
    _arb_vec_clear(a, (slong)m->n + 1);
}
//< grad.sink

//> grad.delta
static void delta_over_keys(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    arb_t da, t, v;
    balls_init(da, t, v);
    ball_weights(a, a + m->n, m, 0, bits);
    arb_zero(out);
    for (size_t j = 0; j < m->n; j++) {
        arb_zero(da); // <dO, v_j>
        for (size_t d = 0; d < m->dim; d++) {
            set_do(t, m, d);
            arb_set_d(v, m->x_gjd[j * m->dim + d]);
            arb_addmul(da, t, v, bits);
        }
        arb_addmul(out, a + j, da, bits);
    }
    balls_clear(da, t, v);
    _arb_vec_clear(a, (slong)m->n + 1);
}
static void delta_of_output(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1), o = _arb_vec_init((slong)m->dim);
    arb_t t;
    arb_init(t);
    ball_weights(a, a + m->n, m, 0, bits);
    ball_weighted(o, m, 0, a, NULL, bits);
    arb_zero(out);
    for (size_t d = 0; d < m->dim; d++) {
        set_do(t, m, d);
        arb_addmul(out, t, o + d, bits);
    }
    arb_clear(t);
    _arb_vec_clear(a, (slong)m->n + 1), _arb_vec_clear(o, (slong)m->dim);
}
//< grad.delta

//> grad.lse
static void lse_moved(arb_ptr out, const sinkproof_ball_instance *m, bool sink, slong bits) {
    jet all;
    jet_sum(&all, m, sink, true, sink_step(m), bits);
    arb_div(out, all.d, all.v, bits); // (log z)' = z' / z
    jet_clear(&all);
}
static void lse_with_sink_moved(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    lse_moved(out, m, true, bits);
}
static void lse_of_keys_moved(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    lse_moved(out, m, false, bits);
}
// The mean of the directions under the weights, of keys and sink or of keys that sum to 1.
static void mean_with_sink(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    arb_t t;
    arb_init(t);
    ball_weights(a, a + m->n, m, 0, bits);
    arb_set_d(t, m->q_d[0] / 16);
    arb_mul(out, a + m->n, t, bits);
    for (size_t j = 0; j < m->n; j++) {
        arb_set_d(t, m->k_jd[j * m->dim] / 16);
        arb_addmul(out, a + j, t, bits);
    }
    arb_clear(t);
    _arb_vec_clear(a, (slong)m->n + 1);
}
static void mean_of_keys(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    sinkproof_ball_instance none = *m; // a sink of -infinity: the ordinary softmax
    none.b_h[0] = -INFINITY;
    mean_with_sink(out, &none, bits);
}
//< grad.lse

//> grad.value-bias
// The derivative of O_d as b^V moves by (b^V_d): each value has it.
static void output_moved_by_bias(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    jet all, e, share;
    arb_t b;
    arb_init(b);
    jet_init(&e), jet_init(&share);
    jet_sum(&all, m, true, false, 0, bits);
    for (size_t d = 0; d < m->dim; d++) arb_zero(out + d);
    for (size_t j = 0; j < m->n; j++) {
        jet_exp(&e, m->s_hj[j], 0, bits);
        jet_divide(&share, &e, &all, bits);
        for (size_t d = 0; d < m->dim; d++) {
            arb_set_d(b, m->bv_gd[d]);
            arb_addmul(out + d, share.v, b, bits);
        }
    }
    arb_clear(b);
    jet_clear(&all), jet_clear(&e), jet_clear(&share);
}
static void bias_by_mass(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    ball_weights(a, a + m->n, m, 0, bits);
    arb_sub_ui(a, a + m->n, 1, bits);
    arb_neg(a, a); // 1 - alpha_s
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(out + d, m->bv_gd[d]);
        arb_mul(out + d, out + d, a, bits);
    }
    _arb_vec_clear(a, (slong)m->n + 1);
}
//< grad.value-bias

//> grad.vanishing
// |alpha_s D|, and alpha_s (1 - alpha_s) M with M just above the largest |<dO, v_j>|.
static void sink_gradient_size(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_ptr a = _arb_vec_init((slong)m->n + 1);
    ball_weights(a, a + m->n, m, 0, bits);
    delta_of_output(out, m, bits);
    arb_mul(out, out, a + m->n, bits);
    arb_abs(out, out);
    _arb_vec_clear(a, (slong)m->n + 1);
}
static void vanishing_bound(arb_ptr out, const sinkproof_ball_instance *m, slong bits) {
    arb_t keys, b, t;
    balls_init(keys, b, t);
    double most = 0;
    for (size_t j = 0; j < m->n; j++) {
        double dot = 0; // exact: few products of short numbers
        for (size_t d = 0; d < m->dim; d++) dot += m->star_d[d] / 256 * m->x_gjd[j * m->dim + d];
        most = fmax(most, fabs(dot));
        arb_set_d(t, m->s_hj[j]);
        arb_exp(t, t, bits);
        arb_add(keys, keys, t, bits);
    }
    arb_set_d(b, m->b_h[0]);
    arb_exp(b, b, bits);
    arb_add(t, keys, b, bits); // e^b sum e / (e^b + sum e)^2 M
    arb_div(keys, keys, t, bits);
    arb_div(b, b, t, bits);
    arb_mul(out, keys, b, bits);
    arb_set_d(t, most + 0x1p-10);
    arb_mul(out, out, t, bits);
    balls_clear(keys, b, t);
}
//< grad.vanishing

#define EQUAL SINKPROOF_BALL_EQUAL

const sinkproof_identity identities_gradients[] = {
    {"grad.softmax", EQUAL, BALL_KEYS, "the derivatives of alpha, alpha_s",
     "alpha (sigma - mean), alpha_s (beta - mean)", weights_in_forward_mode, weights_by_jacobian,
     PLAIN},
    {"grad.delta", EQUAL, BALL_ONE, "sum_j alpha_j <dO, v_j>", "<dO, O>", delta_over_keys,
     delta_of_output, PLAIN},
    {"grad.sink", EQUAL, BALL_HEAD, "the derivative of O in b", "-alpha_s O", output_moved_by_sink,
     minus_sink_times_output, PLAIN},
    {"grad.lse", EQUAL, BALL_ONE, "the derivative of LSE with the sink",
     "sum_j alpha_j sigma_j + alpha_s beta", lse_with_sink_moved, mean_with_sink, PLAIN},
    {"grad.lse", EQUAL, BALL_ONE, "the derivative of LSE of the keys", "sum_j softmax_j sigma_j",
     lse_of_keys_moved, mean_of_keys, PLAIN},
    {"grad.value-bias", EQUAL, BALL_HEAD, "the derivative of O in b^V", "(1 - alpha_s) b^V",
     output_moved_by_bias, bias_by_mass, PLAIN},
    {"grad.vanishing", SINKPROOF_BALL_LESS, BALL_ONE, "|alpha_s D|", "alpha_s (1 - alpha_s) M",
     sink_gradient_size, vanishing_bound, FINITE},
    {0},
};
