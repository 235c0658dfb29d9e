// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The backward pass of a whole model, composed of the truth's stages. Alone it encloses every
// gradient. With a witness, the reference's gradients by their names, it asks of each whether it is
// what its stage makes of the reference's own inputs, within the rounding of so many operations
// (grad.rounded), and goes on from the reference's numbers.
#ifndef SINKPROOF_TEST_BACKWARD_WALK_H
#define SINKPROOF_TEST_BACKWARD_WALK_H

#include "tests/shared/settled.h"

// ---- stages, values and sizes alike ----------------------------------------------------------

static void back_linear(const sinkproof_matrix *m, both x, both dy, size_t n, both dx, both dw,
                        both db) {
    for (int sizes = 0; sizes < 2; sizes++)
        sinkproof_truth_linear_backward(side(dx, sizes), side(dw, sizes), side(db, sizes), m,
                                        side(x, sizes), side(dy, sizes), n, sizes, DUAL_BITS);
}

// Of `rows` rows as wide as the scale; dx is added to.
static void back_norm(composed *w, const char *weight, const sinkproof_matrix *scale, size_t rows,
                      both x, both dt, both dx) {
    size_t width = scale->cols;
    both row = both_row_at(scale, 0), dscale = both_new(width);
    for (size_t t = 0; t < rows; t++)
        for (int sizes = 0; sizes < 2; sizes++)
            sinkproof_truth_rmsnorm_backward(
                side(dx, sizes) + t * width, side(dscale, sizes), side(row, sizes), w->c->rms_eps,
                side(x, sizes) + t * width, side(dt, sizes) + t * width, width, sizes, DUAL_BITS);
    both_free(row);
    settle(w, weight, dscale, (double)(width + 8 + rows));
}
static double norm_roundings(size_t width) {
    return 4 * (double)width + 28;
}

// A3 to A2: a norm of each head's query or key.
static both back_heads(composed *w, const char *name, const char *weight,
                       const sinkproof_matrix *scale, size_t heads, both x, both dt) {
    both dx = both_new(dt.n);
    dt = settle(w, name, dt, 2);
    back_norm(w, weight, scale, w->n * heads, x, dt, dx);
    return dx;
}

static both copy_of(both x) {
    both y = both_new(x.n);
    _arb_vec_set(y.v, x.v, (slong)x.n);
    _arb_vec_set(y.s, x.s, (slong)x.n);
    return y;
}

static bool slot_is_of(const composed *w, size_t slot, size_t e) {
    return w->c->dense || arb_equal_si(act(w, TRACE_M3).v + slot, (slong)e);
}

// Of a gate at t = alpha g the exponential errs by the rounding of t too, which is 2 |t| roundings
// of the exponential; with the exponential's own 2, a sum, a quotient and two products.
static double gate_roundings(const composed *w, both up) {
    double most = 0;
    for (size_t i = 0; i < up.n; i += 2) {
        double g = fabs(arf_get_d(arb_midref(up.v + i), ARF_RND_UP));
        most = fmax(most, fmin(g, w->c->swiglu.limit));
        if (arf_sgn(arb_midref(up.v + i)) < 0) most = fmax(most, g);
    }
    return 4 * w->c->swiglu.alpha * most + 20;
}

// M8 and M6 of one slot.
static void back_gate(const composed *w, both up, both dact, both dup) {
    for (size_t f = 0; f < w->c->inter; f++)
        for (int sizes = 0; sizes < 2; sizes++)
            sinkproof_truth_swiglu_backward(side(dup, sizes) + 2 * f, side(dup, sizes) + 2 * f + 1,
                                            w->c->swiglu, up.v + 2 * f, up.v + 2 * f + 1,
                                            side(dact, sizes) + f, sizes, DUAL_BITS);
}

// The experts from ddown on; returns their share of dM1.
static both back_experts(composed *w, const sinkproof_layer *layer, both ddown) {
    const sinkproof_config *c = w->c;
    size_t k = c->dense ? 1 : c->n_chosen, experts = c->dense ? 1 : c->n_experts;
    size_t hidden = c->hidden, inter = c->inter, slots = w->n * k, wide = layer->w_up.rows;
    both dact = both_new(slots * inter), dup = both_new(slots * wide), dt = both_new(w->n * hidden);
    both dwd = both_new(experts * hidden * inter), dbd = both_new(experts * hidden);
    both dwu = both_new(experts * wide * hidden), dbu = both_new(experts * wide);
    bool biased = layer->b_up.count > 0;
    for (int pass = 0; pass < 2; pass++) { // the gates' gradients are settled between
        for (size_t e = 0; e < experts; e++)
            for (size_t s = 0; s < slots; s++) {
                sinkproof_matrix down = sinkproof_matrix_at(&layer->w_down, e);
                sinkproof_matrix up = sinkproof_matrix_at(&layer->w_up, e);
                if (!slot_is_of(w, s, e)) continue;
                if (pass == 0)
                    back_linear(&down, both_part(act(w, TRACE_M8), s * inter),
                                both_part(ddown, s * hidden), 1, both_part(dact, s * inter),
                                both_part(dwd, e * hidden * inter), both_part(dbd, e * hidden));
                else
                    back_linear(&up, both_part(act(w, TRACE_M1), s / k * hidden),
                                both_part(dup, s * wide), 1, both_part(dt, s / k * hidden),
                                both_part(dwu, e * wide * hidden), both_part(dbu, e * wide));
            }
        if (pass > 0) break;
        dact = settle(w, "dM8", dact, (double)hidden + 1);
        for (size_t s = 0; s < slots; s++)
            back_gate(w, both_part(act(w, TRACE_M6), s * wide), both_part(dact, s * inter),
                      both_part(dup, s * wide));
        dup = settle(w, "dM6", dup, gate_roundings(w, act(w, TRACE_M6)));
    }
    settle(w, "dW.down", dwd, (double)w->n + 1);
    settle(w, "dW.up", dwu, (double)w->n + 1);
    settle_bias(w, "db.down", dbd, biased);
    settle_bias(w, "db.up", dbu, biased);
    return dt;
}

// M11 to M2; returns M10's gradient, and adds the router's share to dt once the experts have.
static both back_mixture(composed *w, both dx, both *dlogits) {
    const sinkproof_config *c = w->c;
    size_t k = c->n_chosen, hidden = c->hidden;
    both dweights = both_new(w->n * k), ddown = both_new(w->n * k * hidden);
    *dlogits = both_new(w->n * c->n_experts);
    for (size_t t = 0; t < w->n; t++)
        for (int sizes = 0; sizes < 2; sizes++)
            sinkproof_truth_mixture_backward(side(dweights, sizes) + t * k,
                                             side(ddown, sizes) + t * k * hidden,
                                             side(act(w, TRACE_M4), sizes) + t * k,
                                             side(act(w, TRACE_M10), sizes) + t * k * hidden,
                                             side(dx, sizes) + t * hidden, k, hidden, DUAL_BITS);
    ddown = settle(w, "dM10", ddown, 1);
    dweights = settle(w, "dM4", dweights, (double)hidden + 1);
    arb_t delta, none;
    balls_init(delta, none);
    for (size_t t = 0; t < w->n; t++) // a softmax without a sink, over the chosen
        for (int sizes = 0; sizes < 2; sizes++) {
            arb_ptr ds = _arb_vec_init((slong)k), p = side(act(w, TRACE_M4), sizes) + t * k;
            arb_ptr dp = side(dweights, sizes) + t * k;
            sinkproof_truth_delta(delta, p, dp, k, DUAL_BITS);
            sinkproof_truth_softmax_sink_backward(ds, none, p, none, dp, delta, k, sizes,
                                                  DUAL_BITS);
            for (size_t i = 0; i < k; i++)
                for (size_t e = 0; e < c->n_experts; e++)
                    if (slot_is_of(w, t * k + i, e))
                        arb_set(side(*dlogits, sizes) + t * c->n_experts + e, ds + i);
            arb_zero(none);
            _arb_vec_clear(ds, (slong)k);
        }
    balls_clear(delta, none);
    *dlogits = settle(w, "dM2", *dlogits, (double)k + 3);
    return ddown;
}

// dx: of M12 before, of A13 after.
static both back_mlp(composed *w, const sinkproof_layer *layer, both dx) {
    const sinkproof_config *c = w->c;
    both dlogits = {NULL, NULL, 0}, ddown = c->dense ? dx : back_mixture(w, dx, &dlogits);
    if (c->dense) ddown = copy_of(dx);
    both dt = back_experts(w, layer, ddown);
    if (c->dense) both_free(ddown);
    if (!c->dense) {
        both dw = both_new(c->n_experts * c->hidden), db = both_new(c->n_experts);
        back_linear(&layer->w_router, act(w, TRACE_M1), dlogits, w->n, dt, dw, db);
        settle(w, "dW.router", dw, (double)w->n + 1);
        settle(w, "db.router", db, (double)w->n);
    }
    size_t k = c->dense ? 1 : c->n_chosen;
    dt = settle(w, "dM1", dt, (double)(layer->w_up.rows + k + c->n_experts + 2));
    both out = copy_of(dx);
    back_norm(w, "dW.mlp_norm", &layer->mlp_norm, w->n, act(w, TRACE_A13), dt, out);
    return settle(w, "dA13", out, norm_roundings(w->c->hidden));
}

// ---- attention -------------------------------------------------------------------------------

typedef struct attention_sums {
    both do_nhd, dq, dk, dv, dalpha, ds, dsink;
} attention_sums;

static void add_loss_of_lse(const composed *w, size_t h, size_t i, both ds, both db, both alpha_j,
                            both alpha_sink, size_t seen) {
    arb_t dlse;
    arb_init(dlse);
    for (int with_sink = 0; w->reads_more && with_sink < 2; with_sink++)
        for (int sizes = 0; sizes < 2; sizes++) {
            double of = loss_factor(with_sink ? OF_LSE : OF_LSE_KEYS, w->l, h * w->n + i);
            arb_set_d(dlse, sizes ? fabs(of) : of);
            truth_lse_backward(side(ds, sizes), side(db, sizes), side(alpha_j, sizes),
                               side(alpha_sink, sizes), dlse, with_sink, seen, DUAL_BITS);
        }
    arb_clear(dlse);
}

// A sink's logit is the same in every row, or the score of one more key.
static void back_sink(composed *w, attention_sums *a, size_t h, size_t at_q, both db) {
    size_t d = w->c->head_dim;
    bool keyed = sinkproof_sinks_stored(w->c) == SINKPROOF_SINK_KEY;
    sinkproof_matrix sinks = sinkproof_model_slot(w->model, w->l, SINKPROOF_SINKS);
    both key = both_row_at(&sinks, keyed ? h : 0);
    for (int sizes = 0; sizes < 2; sizes++) {
        arb_ptr of = side(a->dsink, sizes);
        if (keyed)
            sinkproof_truth_scores_backward(side(a->dq, sizes) + at_q, of + h * d,
                                            side(act(w, TRACE_A4_Q), sizes) + at_q,
                                            side(key, sizes), side(db, sizes), 1, d, d, DUAL_BITS);
        else
            arb_add(of + h, of + h, side(db, sizes), DUAL_BITS);
    }
    both_free(key);
}

// dalpha_j of one query and head; then, when those are settled, ds_j and the sink.
static void back_query(composed *w, attention_sums *a, size_t h, size_t i, int pass) {
    const sinkproof_config *c = w->c;
    size_t n = w->n, d = c->head_dim, g = h / (c->n_heads / c->n_kv_heads);
    size_t window = c->sliding[w->l] ? c->window : 0, stride = c->n_kv_heads * d;
    size_t first = window > 0 && i + 1 > window ? i + 1 - window : 0, seen = i + 1 - first;
    size_t row = (h * n + i) * n + first, at_q = (i * c->n_heads + h) * d;
    size_t at_k = first * stride + g * d;
    both alpha = act(w, TRACE_A9), alpha_j = both_part(alpha, (h * n + i) * (n + 1) + first);
    both alpha_sink = both_part(alpha, (h * n + i) * (n + 1) + n), delta = both_new(1);
    both db = both_new(1), ds = both_part(a->ds, row);
    for (int sizes = 0; sizes < 2; sizes++) {
        if (pass == 0) {
            sinkproof_truth_values_backward(
                side(a->dalpha, sizes) + row, side(a->dv, sizes) + at_k, side(alpha_j, sizes),
                side(act(w, TRACE_A2_V), sizes) + at_k, side(a->do_nhd, sizes) + at_q, seen, stride,
                d, DUAL_BITS);
        } else if (pass == 1) {
            // The reference's D is of its own output; over the reals it is sum_j alpha_j dalpha_j.
            if (w->witness && !w->weighs)
                arb_dot(side(delta, sizes), NULL, 0, side(a->do_nhd, sizes) + at_q, 1,
                        side(act(w, TRACE_A11), sizes) + at_q, 1, (slong)d, DUAL_BITS);
            else
                sinkproof_truth_delta(side(delta, sizes), side(alpha_j, sizes),
                                      side(a->dalpha, sizes) + row, seen, DUAL_BITS);
            sinkproof_truth_softmax_sink_backward(
                side(ds, sizes), side(db, sizes), side(alpha_j, sizes), side(alpha_sink, sizes),
                side(a->dalpha, sizes) + row, side(delta, sizes), seen, sizes, DUAL_BITS);
        } else {
            sinkproof_truth_scores_backward(side(a->dq, sizes) + at_q, side(a->dk, sizes) + at_k,
                                            side(act(w, TRACE_A4_Q), sizes) + at_q,
                                            side(act(w, TRACE_A4_K), sizes) + at_k, side(ds, sizes),
                                            seen, stride, d, DUAL_BITS);
        }
    }
    if (pass == 1) add_loss_of_lse(w, h, i, ds, db, alpha_j, alpha_sink, seen);
    if (pass == 1 && a->dsink.n > 0) back_sink(w, a, h, at_q, db);
    both_free(delta), both_free(db);
}

static void rotate_back(const composed *w, const sinkproof_truth_yarn *yarn, both dx, size_t heads,
                        both out) {
    size_t half = w->c->head_dim / 2;
    arb_ptr c = _arb_vec_init((slong)half), s = _arb_vec_init((slong)half);
    arb_t angle;
    arb_init(angle);
    for (size_t i = 0; i < w->n; i++) {
        for (int sizes = 0; sizes < 2; sizes++) {
            for (size_t d = 0; d < half; d++) {
                arb_mul_ui(angle, yarn->inv_freq_d + d, i, DUAL_BITS);
                arb_sin_cos(s + d, c + d, angle, DUAL_BITS);
                arb_mul(c + d, c + d, yarn->concentration, DUAL_BITS);
                arb_mul(s + d, s + d, yarn->concentration, DUAL_BITS);
                if (w->witness) arb_set_d(c + d, w->cos_nd[i * half + d]);
                if (w->witness) arb_set_d(s + d, w->sin_nd[i * half + d]);
                if (sizes) arb_abs(c + d, c + d), arb_abs(s + d, s + d);
            }
            for (size_t h = 0; h < heads; h++)
                sinkproof_truth_rope_backward(side(out, sizes) + (i * heads + h) * 2 * half,
                                              side(dx, sizes) + (i * heads + h) * 2 * half, c, s,
                                              half, sizes, DUAL_BITS);
        }
    }
    arb_clear(angle);
    _arb_vec_clear(c, (slong)half), _arb_vec_clear(s, (slong)half);
}

// A4 to A1.
static both back_projections(composed *w, const sinkproof_layer *layer, attention_sums *a) {
    const sinkproof_config *c = w->c;
    size_t heads = c->n_heads * c->head_dim, groups = c->n_kv_heads * c->head_dim;
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, c, DUAL_BITS);
    both dq = both_new(w->n * heads), dk = both_new(w->n * groups);
    rotate_back(w, &yarn, a->dq, c->n_heads, dq);
    rotate_back(w, &yarn, a->dk, c->n_kv_heads, dk);
    sinkproof_truth_yarn_clear(&yarn);
    if (c->head_norms) {
        dq =
            back_heads(w, "dA3.q", "dW.q_norm", &layer->q_norm, c->n_heads, act(w, TRACE_A2_Q), dq);
        dk = back_heads(w, "dA3.k", "dW.k_norm", &layer->k_norm, c->n_kv_heads, act(w, TRACE_A2_K),
                        dk);
    }
    dq = settle(w, "dA2.q", dq, c->head_norms ? norm_roundings(c->head_dim) : 2);
    dk = settle(w, "dA2.k", dk, c->head_norms ? norm_roundings(c->head_dim) : 2);
    both dt = both_new(w->n * c->hidden);
    const sinkproof_matrix *m[] = {&layer->w_q, &layer->w_k, &layer->w_v};
    const char *const names[][2] = {{"dW.q", "db.q"}, {"dW.k", "db.k"}, {"dW.v", "db.v"}};
    const both dy[] = {dq, dk, a->dv};
    for (int p = 0; p < 3; p++) {
        both dw = both_new(m[p]->rows * c->hidden), db = both_new(m[p]->rows);
        back_linear(m[p], act(w, TRACE_A1), dy[p], w->n, dt, dw, db);
        settle(w, names[p][0], dw, (double)w->n + 1);
        settle_bias(w, names[p][1], db, layer->b_q.count > 0);
    }
    return settle(w, "dA1", dt, (double)(heads + 2 * groups) + 1);
}

// dx: of A13 before; returns that of the layer's input.
static both back_attention(composed *w, const sinkproof_layer *layer, both dx) {
    const sinkproof_config *c = w->c;
    size_t n = w->n, d = c->head_dim, group = c->n_heads / c->n_kv_heads;
    size_t heads = n * c->n_heads * d, groups = n * c->n_kv_heads * d, square = c->n_heads * n * n;
    size_t of_delta = w->weighs ? n + 1 : d; // what D adds up
    attention_sums a = {both_new(heads),
                        both_new(heads),
                        both_new(groups),
                        both_new(groups),
                        both_new(square),
                        both_new(square),
                        both_new(layer->sinks.count * layer->sinks.rows * layer->sinks.cols)};
    both dw = both_new(c->hidden * c->n_heads * d), db = both_new(c->hidden);
    back_linear(&layer->w_o, act(w, TRACE_A11), dx, n, a.do_nhd, dw, db);
    settle(w, "dW.o", dw, (double)n + 1);
    settle_bias(w, "db.o", db, layer->b_o.count > 0);
    for (size_t i = 0; w->reads_more && i < heads; i++) {
        arb_t given;
        arb_init(given);
        arb_set_d(given, loss_factor(OF_OUTPUT, w->l, i));
        arb_add(a.do_nhd.v + i, a.do_nhd.v + i, given, DUAL_BITS);
        arb_abs(given, given);
        arb_add(a.do_nhd.s + i, a.do_nhd.s + i, given, DUAL_BITS);
        arb_clear(given);
    }
    a.do_nhd = settle(w, "dA11", a.do_nhd, (double)c->hidden + 2);
    for (int pass = 0; pass < 3; pass++) {
        for (size_t h = 0; h < c->n_heads; h++)
            for (size_t i = 0; i < n; i++) back_query(w, &a, h, i, pass);
        // A loss that reads the keys' log-sum-exp takes a softmax of its own: a difference, whose
        // rounding the exponential makes 2 |s - max s| <= 64 of, and a sum.
        if (pass == 0) a.dalpha = settle(w, "dA10", a.dalpha, (double)d + 1);
        if (pass == 1)
            a.ds = settle(w, "dA6", a.ds, (double)(of_delta + 3 + (w->reads_more ? 70 + n : 0)));
    }
    a.dq = settle(w, "dA4.q", a.dq, (double)(n + of_delta) + 8); // a key of the sink's, with its D
    a.dk = settle(w, "dA4.k", a.dk, (double)(n * group) + 4);
    a.dv = settle(w, "dA2.v", a.dv, (double)(n * group) + 1);
    if (a.dsink.n > 0)
        settle(w, "dsink", a.dsink, (double)(of_delta + n + 8));
    else
        both_free(a.dsink);
    both dt = back_projections(w, layer, &a);
    both out = copy_of(dx);
    both x = w->l == 0 ? act(w, TRACE_T0) : w->act_lp[(w->l - 1) * TRACE_POINTS + TRACE_M12];
    back_norm(w, "dW.attn_norm", &layer->attn_norm, w->n, x, dt, out);
    if (w->l == 0) return settle(w, "dT0", out, norm_roundings(w->c->hidden));
    w->l--;
    both result = settle(w, "dM12", out, norm_roundings(w->c->hidden));
    w->l++;
    return result;
}

// ---- the ends --------------------------------------------------------------------------------

static void compose(composed *w) {
    const sinkproof_config *c = w->c;
    size_t n = w->n, last = c->n_layers - 1;
    sinkproof_matrix unembedding = sinkproof_model_unembedding(w->model);
    sinkproof_matrix final = sinkproof_model_final_norm(w->model);
    both dz = both_new(n * c->vocab), dt = both_new(n * c->hidden), dx = both_new(n * c->hidden);
    both dun = both_new(c->vocab * c->hidden), none = {NULL, NULL, 0};
    double spread = 0;
    w->l = 0;
    for (size_t i = 0; i + 1 < n; i++)
        for (int sizes = 0; sizes < 2; sizes++) {
            arb_ptr z = act(w, TRACE_F2).v + i * c->vocab;
            for (size_t v = 0; v < c->vocab; v++)
                spread = fmax(spread, 2 * fabs(arf_get_d(arb_midref(z + v), ARF_RND_UP)));
            sinkproof_truth_cross_entropy_backward(side(dz, sizes) + i * c->vocab, z, c->vocab,
                                                   (size_t)w->tokens_n[i + 1], n - 1, sizes,
                                                   DUAL_BITS);
        }
    dz = settle(w, "dF2", dz, 2 * spread + (double)c->vocab + 8);
    back_linear(&unembedding, act(w, TRACE_F1), dz, n, dt, dun, none);
    dt = settle(w, "dF1", dt, (double)c->vocab + 1);
    w->l = last;
    back_norm(w, "dW.final_norm", &final, n, act(w, TRACE_M12), dt, dx);
    dx = settle(w, "dM12", dx, norm_roundings(w->c->hidden));
    for (w->l = c->n_layers; w->l-- > 0;) {
        sinkproof_layer layer = sinkproof_model_layer(w->model, w->l);
        dx = back_mlp(w, &layer, dx);
        dx = back_attention(w, &layer, dx);
        if (w->l == 0) break;
    }
    both demb = c->tied ? dun : both_new(c->vocab * c->hidden);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c->hidden; k++)
            for (int sizes = 0; sizes < 2; sizes++) {
                arb_ptr e = side(demb, sizes) + (size_t)w->tokens_n[i] * c->hidden + k;
                arb_add(e, e, side(dx, sizes) + i * c->hidden + k, DUAL_BITS);
            }
    settle(w, "dW.embedding", demb, 2 * (double)n + 1);
    if (!c->tied) settle(w, "dW.unembedding", dun, (double)n + 1);
}

#endif
