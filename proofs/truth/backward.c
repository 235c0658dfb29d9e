// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of the stages over the reals.
#include "proofs/truth/backward.h"

#include <math.h>
#include <stdlib.h>

// out = a - b, or a + b of sizes.
static void subtract(arb_t out, const arb_t a, const arb_t b, bool sizes, slong bits) {
    if (sizes)
        arb_add(out, a, b, bits);
    else
        arb_sub(out, a, b, bits);
}

//> grad.linear
void sinkproof_truth_linear_backward(arb_ptr dx_nc, arb_ptr dw_rc, arb_ptr db_r,
                                     const sinkproof_matrix *w_rc, arb_srcptr x_nc,
                                     arb_srcptr dy_nr, size_t n, bool sizes, slong bits) {
    size_t rows = w_rc->rows, cols = w_rc->cols;
    double *row = malloc(cols * sizeof *row);
    if (row == NULL) abort();
    arb_t w;
    arb_init(w);
    for (size_t r = 0; r < rows; r++) {
        sinkproof_matrix_row(w_rc, r, row);
        for (size_t c = 0; c < cols; c++) {
            arb_set_d(w, sizes ? fabs(row[c]) : row[c]);
            for (size_t t = 0; t < n; t++) { // W^T dy, and dy x^T
                if (dx_nc != NULL) arb_addmul(dx_nc + t * cols + c, w, dy_nr + t * rows + r, bits);
                if (dw_rc != NULL)
                    arb_addmul(dw_rc + r * cols + c, dy_nr + t * rows + r, x_nc + t * cols + c,
                               bits);
            }
        }
        for (size_t t = 0; db_r != NULL && t < n; t++)
            arb_add(db_r + r, db_r + r, dy_nr + t * rows + r, bits);
    }
    arb_clear(w);
    free(row);
}
//< grad.linear

//> grad.rmsnorm
// y_c = w_c x_c r, r = m^(-1/2), m = mean x^2 + eps: dr/dx_c = -x_c r^3 / n.
void sinkproof_truth_rmsnorm_backward(arb_ptr dx_c, arb_ptr dscale_c, arb_srcptr scale_c,
                                      double eps, arb_srcptr x_c, arb_srcptr dy_c, size_t cols,
                                      bool sizes, slong bits) {
    arb_t m, r, dr, t;
    balls_init(m, r, dr, t);
    sinkproof_truth_decimal(m, eps, bits);
    arb_dot(r, NULL, 0, x_c, 1, x_c, 1, (slong)cols, bits);
    arb_div_ui(r, r, cols, bits);
    arb_add(m, m, r, bits);
    arb_rsqrt(r, m, bits);
    for (size_t c = 0; c < cols; c++) { // dL/dr = sum_c w_c x_c dy_c
        arb_mul(t, scale_c + c, x_c + c, bits);
        arb_addmul(dr, t, dy_c + c, bits);
    }
    arb_mul(dr, dr, r, bits);
    arb_div(dr, dr, m, bits); // r^3 = r / m
    arb_div_ui(dr, dr, cols, bits);
    for (size_t c = 0; c < cols; c++) {
        arb_mul(t, scale_c + c, r, bits);
        arb_mul(t, t, dy_c + c, bits);
        arb_add(dx_c + c, dx_c + c, t, bits);
        arb_mul(t, x_c + c, dr, bits);
        subtract(dx_c + c, dx_c + c, t, sizes, bits);
        arb_mul(t, x_c + c, r, bits);
        arb_addmul(dscale_c + c, t, dy_c + c, bits);
    }
    balls_clear(m, r, dr, t);
}
//< grad.rmsnorm

//> grad.rotation
void sinkproof_truth_rope_backward(arb_ptr dx_d, arb_srcptr dy_d, arb_srcptr cos_d,
                                   arb_srcptr sin_d, size_t half, bool sizes, slong bits) {
    arb_t t, u;
    balls_init(t, u);
    for (size_t d = 0; d < half; d++) { // (x1, x2) -> (c x1 - s x2, c x2 + s x1), transposed
        arb_mul(t, cos_d + d, dy_d + d, bits);
        arb_addmul(t, sin_d + d, dy_d + half + d, bits);
        arb_mul(u, sin_d + d, dy_d + d, bits);
        arb_mul(dx_d + half + d, cos_d + d, dy_d + half + d, bits);
        subtract(dx_d + half + d, dx_d + half + d, u, sizes, bits);
        arb_set(dx_d + d, t);
    }
    balls_clear(t, u);
}
//< grad.rotation

//> grad.values grad.group
void sinkproof_truth_values_backward(arb_ptr dalpha_j, arb_ptr dv_jd, arb_srcptr alpha_j,
                                     arb_srcptr v_jd, arb_srcptr do_d, size_t n_keys, size_t stride,
                                     size_t head_dim, slong bits) {
    for (size_t j = 0; j < n_keys; j++) {
        arb_dot(dalpha_j + j, NULL, 0, do_d, 1, v_jd + j * stride, 1, (slong)head_dim, bits);
        for (size_t d = 0; d < head_dim; d++)
            arb_addmul(dv_jd + j * stride + d, alpha_j + j, do_d + d, bits);
    }
}
//< grad.values grad.group

//> grad.delta
void sinkproof_truth_delta(arb_t delta, arb_srcptr alpha_j, arb_srcptr dalpha_j, size_t n_keys,
                           slong bits) {
    arb_dot(delta, NULL, 0, alpha_j, 1, dalpha_j, 1, (slong)n_keys, bits);
}
//< grad.delta

//> grad.softmax grad.sink grad.router

void sinkproof_truth_softmax_sink_backward(arb_ptr ds_j, arb_t db, arb_srcptr alpha_j,
                                           const arb_t alpha_sink, arb_srcptr dalpha_j,
                                           const arb_t delta, size_t n_keys, bool sizes,
                                           slong bits) {
    for (size_t j = 0; j < n_keys; j++) {
        subtract(ds_j + j, dalpha_j + j, delta, sizes, bits);
        arb_mul(ds_j + j, ds_j + j, alpha_j + j, bits);
    }
    arb_mul(db, alpha_sink, delta, bits);
    if (!sizes) arb_neg(db, db);
}
//< grad.softmax grad.sink grad.router

//> grad.lse
void truth_lse_backward(arb_ptr ds_j, arb_t db, arb_srcptr alpha_j, const arb_t alpha_sink,
                        const arb_t dlse, bool with_sink, size_t n_keys, slong bits) {
    arb_t whole, p;
    balls_init(whole, p);
    for (size_t j = 0; j < n_keys; j++) arb_add(whole, whole, alpha_j + j, bits);
    for (size_t j = 0; j < n_keys; j++) {
        if (with_sink)
            arb_set(p, alpha_j + j);
        else
            arb_div(p, alpha_j + j, whole, bits);
        arb_addmul(ds_j + j, p, dlse, bits);
    }
    if (with_sink) arb_addmul(db, alpha_sink, dlse, bits);
    balls_clear(whole, p);
}
//< grad.lse

//> grad.qkv grad.group
void sinkproof_truth_scores_backward(arb_ptr dq_d, arb_ptr dk_jd, arb_srcptr q_d, arb_srcptr k_jd,
                                     arb_srcptr ds_j, size_t n_keys, size_t stride, size_t head_dim,
                                     slong bits) {
    arb_t scaled, root;
    balls_init(scaled, root);
    arb_sqrt_ui(root, head_dim, bits);
    for (size_t j = 0; j < n_keys; j++) {
        arb_div(scaled, ds_j + j, root, bits);
        for (size_t d = 0; d < head_dim; d++) {
            arb_addmul(dq_d + d, scaled, k_jd + j * stride + d, bits);
            arb_addmul(dk_jd + j * stride + d, scaled, q_d + d, bits);
        }
    }
    balls_clear(scaled, root);
}
//< grad.qkv grad.group

// Multiplies by the derivative of a clamp at x: 1 up to the limit, 0 beyond, either where the ball
// has both.
static void through_clamp(arb_t out, const arb_t x, const arb_t limit, bool below) {
    arb_t zero;
    arb_init(zero);
    bool inside = below ? arb_ge(x, limit) : arb_le(x, limit);
    bool outside = below ? arb_lt(x, limit) : arb_gt(x, limit);
    if (outside)
        arb_zero(out);
    else if (!inside)
        arb_union(out, out, zero, ARF_PREC_EXACT);
    arb_clear(zero);
}

static void logistic(arb_t out, const arb_t x, slong bits) { // 1 / (1 + e^-x)
    arb_neg(out, x);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, 1, bits);
    arb_inv(out, out, bits);
}

//> grad.swiglu
void sinkproof_truth_swiglu_backward(arb_t dgate, arb_t dup, sinkproof_swiglu_numbers numbers,
                                     const arb_t gate, const arb_t up, const arb_t dact, bool sizes,
                                     slong bits) {
    arb_t limit, low, g, u, a, s, t;
    balls_init(limit, low, g, u, a, s, t);
    arb_pos_inf(limit);
    if (isfinite(numbers.limit)) sinkproof_truth_decimal(limit, numbers.limit, bits);
    arb_neg(low, limit);
    if (arb_le(gate, limit))
        arb_set(g, gate);
    else
        arb_min(g, gate, limit, bits);
    arb_set(u, up);
    if (!arb_le(up, limit)) arb_min(u, up, limit, bits);
    if (!arb_ge(up, low)) arb_max(u, u, low, bits);
    sinkproof_truth_decimal(a, numbers.alpha, bits);
    arb_mul(a, a, g, bits);
    logistic(s, a, bits);
    arb_neg(t, a);
    logistic(t, t, bits); // 1 - sigmoid
    arb_mul(a, a, t, bits);
    arb_set_d(t, numbers.offset);
    arb_add(u, u, t, bits);
    if (sizes) { // only the result's sign is left: the exponentials need the gate's own
        arb_abs(a, a);
        arb_abs(g, g);
        arb_abs(u, u);
    }
    arb_mul(dup, g, s, bits);
    arb_mul(dup, dup, dact, bits);
    arb_add_ui(a, a, 1, bits); // (g sigmoid(a g))' = sigmoid + a g sigmoid (1 - sigmoid)
    arb_mul(dgate, a, s, bits);
    arb_mul(dgate, dgate, u, bits);
    arb_mul(dgate, dgate, dact, bits);
    if (sizes) arb_abs(dgate, dgate);
    if (sizes) arb_abs(dup, dup);
    through_clamp(dgate, gate, limit, false);
    through_clamp(dup, up, limit, false);
    through_clamp(dup, up, low, true);
    balls_clear(limit, low, g, u, a, s, t);
}
//< grad.swiglu

//> grad.mixture
void sinkproof_truth_mixture_backward(arb_ptr dweights_k, arb_ptr ddown_kc, arb_srcptr weights_k,
                                      arb_srcptr down_kc, arb_srcptr dout_c, size_t n_chosen,
                                      size_t hidden, slong bits) {
    for (size_t k = 0; k < n_chosen; k++) {
        arb_dot(dweights_k + k, NULL, 0, dout_c, 1, down_kc + k * hidden, 1, (slong)hidden, bits);
        for (size_t c = 0; c < hidden; c++)
            arb_mul(ddown_kc + k * hidden + c, weights_k + k, dout_c + c, bits);
    }
}
//< grad.mixture

//> grad.cross-entropy
void sinkproof_truth_cross_entropy_backward(arb_ptr dz_v, arb_srcptr z_v, size_t vocab,
                                            size_t target, size_t count, bool sizes, slong bits) {
    arb_t none, rest, one;
    balls_init(none, rest, one);
    arb_neg_inf(none);
    arb_one(one);
    sinkproof_truth_softmax_sink(dz_v, rest, z_v, vocab, none, bits);
    subtract(dz_v + target, dz_v + target, one, sizes, bits);
    for (size_t v = 0; v < vocab; v++) arb_div_ui(dz_v + v, dz_v + v, count, bits);
    balls_clear(none, rest, one);
}
//< grad.cross-entropy
