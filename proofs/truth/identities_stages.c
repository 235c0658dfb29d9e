// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Learned keys and values (scores from q and k), and the model's stages: the ball of each against
// MPFR at twice the precision, and the identities that a stage must obey.
#include "proofs/truth/identities_internal.h"

#include <math.h>
#include <stdlib.h>

typedef const sinkproof_ball_instance *instance;

// z_j = q k_j / sqrt(d') for the keys, then for k*.
static void key_scores(arb_ptr z, instance m, const double *k_star_d, slong bits) {
    arb_ptr q = _arb_vec_init(SINKPROOF_BALL_DIM), k = _arb_vec_init(SINKPROOF_BALL_DIM);
    for (size_t d = 0; d < m->dim; d++) arb_set_d(q + d, m->q_d[d]);
    for (size_t j = 0; j <= m->n; j++) {
        for (size_t d = 0; d < m->dim; d++)
            arb_set_d(k + d, j < m->n ? m->k_jd[j * m->dim + d] : k_star_d[d]);
        sinkproof_truth_scores(z + j, q, k, 1, m->dim, m->dim, bits);
    }
    _arb_vec_clear(q, SINKPROOF_BALL_DIM);
    _arb_vec_clear(k, SINKPROOF_BALL_DIM);
}

// Ordinary softmax over the keys and k*, the n + 1-th key.
static void key_weights(arb_ptr w, instance m, const double *k_star_d, slong bits) {
    arb_ptr z = _arb_vec_init((slong)m->n + 1);
    arb_t none, rest;
    balls_init(none, rest);
    arb_neg_inf(none);
    key_scores(z, m, k_star_d, bits);
    sinkproof_truth_softmax_sink(w, rest, z, m->n + 1, none, bits);
    balls_clear(none, rest);
    _arb_vec_clear(z, (slong)m->n + 1);
}

// sum_j w_j u_j + scale w_* v*
static void attend_with_key(arb_ptr out, instance m, const double *k_star_d, double scale,
                            slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    arb_t star;
    arb_init(star);
    key_weights(w, m, k_star_d, bits);
    ball_weighted(out, m, 0, w, NULL, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(star, scale * m->star_d[d]); // exact: both are short
        arb_addmul(out + d, w + m->n, star, bits);
    }
    arb_clear(star);
    _arb_vec_clear(w, (slong)m->n + 1);
}

// The other side: q k_j / sqrt(d') product by product, and a sink with the logit q k* / sqrt(d')
// over the first `rank` coordinates. e^z of the keys, then of the sink.
static void exps_beside_sink(arb_ptr e, instance m, size_t rank, slong bits) {
    arb_t root, t;
    balls_init(root, t);
    arb_sqrt_ui(root, m->dim, bits);
    for (size_t j = 0; j <= m->n; j++) {
        arb_zero(e + j);
        for (size_t d = 0; d < (j < m->n ? m->dim : rank); d++) {
            arb_set_d(t, m->q_d[d] * (j < m->n ? m->k_jd[j * m->dim + d] : m->k_star_d[d]));
            arb_add(e + j, e + j, t, ARF_PREC_EXACT);
        }
        arb_div(e + j, e + j, root, bits);
        arb_exp(e + j, e + j, bits);
    }
    balls_clear(root, t);
}
// sum_j alpha_j u_j, and alpha_*
static void sink_output(arb_ptr out, arb_t alpha_star, instance m, size_t rank, slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n + 1);
    arb_t all, v;
    balls_init(all, v);
    exps_beside_sink(e, m, rank, bits);
    ball_sum(all, e, m->n + 1, bits);
    arb_div(alpha_star, e + m->n, all, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_zero(out + d);
        for (size_t j = 0; j < m->n; j++) {
            arb_set_d(v, m->x_gjd[j * m->dim + d]);
            arb_addmul(out + d, e + j, v, bits);
        }
        arb_div(out + d, out + d, all, bits);
    }
    balls_clear(all, v);
    _arb_vec_clear(e, (slong)m->n + 1);
}
// ... + scale alpha_* v*
static void sink_and_star(arb_ptr out, instance m, double scale, slong bits) {
    arb_t alpha_star, v;
    balls_init(alpha_star, v);
    sink_output(out, alpha_star, m, m->dim, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(v, scale * m->star_d[d]); // exact: both are short
        arb_addmul(out + d, alpha_star, v, bits);
    }
    balls_clear(alpha_star, v);
}

static const double no_key[SINKPROOF_BALL_DIM];

//> sink.key-bias
static void zero_value_key(arb_ptr out, instance m, slong bits) {
    attend_with_key(out, m, m->k_star_d, 0, bits);
}
static void sink_of_query(arb_ptr out, instance m, slong bits) {
    sink_and_star(out, m, 0, bits);
}
static void zero_key(arb_ptr out, instance m, slong bits) {
    key_weights(out, m, no_key, bits);
}
static void softmax_1(arb_ptr out, instance m, slong bits) { // e^z / (1 + sum e^z)
    arb_t all;
    arb_init(all);
    exps_beside_sink(out, m, 0, bits); // over no coordinate: e^0
    ball_sum(all, out, m->n + 1, bits);
    for (size_t j = 0; j <= m->n; j++) arb_div(out + j, out + j, all, bits);
    arb_clear(all);
}
//< sink.key-bias

//> sink.kv-bias
static void key_and_value(arb_ptr out, instance m, slong bits) {
    attend_with_key(out, m, m->k_star_d, 1, bits);
}
static void sink_plus_star(arb_ptr out, instance m, slong bits) {
    sink_and_star(out, m, 1, bits);
}
//< sink.kv-bias

//> sink.sink-token
// v* = x* W^V + b^V and v_j = x_j W^V + b^V: all weights sum to 1, so b^V has the factor 1.
static void token_inside(arb_ptr out, instance m, slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    arb_t v;
    arb_init(v);
    key_weights(w, m, m->k_star_d, bits);
    ball_weighted(out, m, 0, w, m->bv_gd, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(v, m->star_d[d] + m->bv_gd[d]); // exact: both are short
        arb_addmul(out + d, w + m->n, v, bits);
    }
    arb_clear(v);
    _arb_vec_clear(w, (slong)m->n + 1);
}
static void token_outside(arb_ptr out, instance m, slong bits) {
    arb_t v;
    arb_init(v);
    sink_and_star(out, m, 1, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(v, m->bv_gd[d]);
        arb_add(out + d, out + d, v, bits);
    }
    arb_clear(v);
}
//< sink.sink-token

//> sink.low-rank-key
// k* = [k_a 0], against the sink logit q_a k_a / sqrt(d')
static void low_rank(arb_ptr out, instance m, slong bits) {
    double k_a[SINKPROOF_BALL_DIM] = {0};
    for (size_t d = 0; d < m->low_rank; d++) k_a[d] = m->k_star_d[d];
    attend_with_key(out, m, k_a, 0, bits);
}
static void sink_of_first_coordinates(arb_ptr out, instance m, slong bits) {
    arb_t rest;
    arb_init(rest);
    sink_output(out, rest, m, m->low_rank, bits);
    arb_clear(rest);
}
//< sink.low-rank-key

//> sink.fixed-value
// v* = a v', a in 0, 1, 5, 20
static void fixed_value(arb_ptr out, instance m, slong bits) {
    attend_with_key(out, m, m->k_star_d, m->scale, bits);
}
static void zero_plus_fixed(arb_ptr out, instance m, slong bits) {
    sink_and_star(out, m, m->scale, bits);
}
//< sink.fixed-value

//> sink.hybrid
// A full layer without a sink, and a sliding one (here the last 3 keys) with it: the mass of the
// keys.
static void layer_mass(arb_ptr out, instance m, bool sliding, slong bits) {
    sinkproof_ball_instance layer = *m;
    size_t first = sliding && m->n > 3 ? m->n - 3 : 0;
    layer.n = m->n - first, layer.heads = 1;
    layer.s_hj = m->s_hj + first;
    if (!sliding) layer.b_h[0] = -INFINITY;
    arb_ptr a = _arb_vec_init((slong)layer.n + 1);
    ball_weights(a, a + layer.n, &layer, 0, bits);
    ball_sum(out, a, layer.n, bits);
    arb_sub_ui(out + 1, a + layer.n, 1, bits);
    arb_neg(out + 1, out + 1);
    _arb_vec_clear(a, (slong)layer.n + 1);
}
static void hybrid_masses(arb_ptr out, instance m, slong bits) {
    layer_mass(out, m, false, bits);
    layer_mass(out + 2, m, true, bits);
}
// Sum e^s / (e^b + sum e^s) over the last three keys, for 1 - alpha_s and for the mass.
static void hybrid_expected(arb_ptr out, instance m, slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n);
    size_t keys = m->n < 3 ? m->n : 3;
    ball_exps(e, m, 0, bits);
    ball_sum(out + 2, e + m->n - keys, keys, bits);
    ball_exp_sink(out + 3, m, 0, bits);
    arb_add(out + 3, out + 3, out + 2, bits);
    arb_div(out + 2, out + 2, out + 3, bits);
    arb_set(out + 3, out + 2);
    arb_one(out); // the full layer
    arb_one(out + 1);
    _arb_vec_clear(e, (slong)m->n);
}
//< sink.hybrid

// ---- the router ----------------------------------------------------------------------------

static size_t choose_experts(size_t chosen_k[SINKPROOF_BALL_CHOSEN], arb_srcptr g_e, instance m) {
    size_t k = m->n < SINKPROOF_BALL_CHOSEN ? m->n : SINKPROOF_BALL_CHOSEN;
    arb_t margin;
    arb_init(margin);
    sinkproof_truth_topk(chosen_k, margin, g_e, m->n, k, 64);
    arb_clear(margin);
    return k;
}

//> router.softmax-after
// The scores of head 0 are the router's logits: softmax over the chosen, and over all renormalised.
static void softmax_after(arb_ptr out, instance m, slong bits) {
    arb_ptr g = _arb_vec_init((slong)m->n);
    size_t chosen_k[SINKPROOF_BALL_CHOSEN];
    for (size_t e = 0; e < m->n; e++) arb_set_d(g + e, m->s_hj[e]);
    sinkproof_truth_router_weights(out, chosen_k, g, choose_experts(chosen_k, g, m), bits);
    _arb_vec_clear(g, (slong)m->n);
}
static void softmax_before(arb_ptr out, instance m, slong bits) {
    arb_ptr g = _arb_vec_init((slong)m->n), e = _arb_vec_init((slong)m->n);
    size_t chosen_k[SINKPROOF_BALL_CHOSEN];
    arb_t all;
    arb_init(all);
    for (size_t j = 0; j < m->n; j++) arb_set_d(g + j, m->s_hj[j]);
    size_t n_chosen = choose_experts(chosen_k, g, m);
    ball_exps(e, m, 0, bits);
    ball_sum(all, e, m->n, bits);
    for (size_t k = 0; k < n_chosen; k++) arb_div(out + k, e + chosen_k[k], all, bits);
    ball_sum(all, out, n_chosen, bits); // the chosen share
    for (size_t k = 0; k < n_chosen; k++) arb_div(out + k, out + k, all, bits);
    arb_clear(all);
    _arb_vec_clear(g, (slong)m->n);
    _arb_vec_clear(e, (slong)m->n);
}
//< router.softmax-after

#define HEAD SINKPROOF_BALL_EQUAL, BALL_HEAD

const sinkproof_identity identities_stages[] = {
    {"sink.key-bias", HEAD, "a key k* with a zero value", "a sink logit q k* / sqrt(d')",
     zero_value_key, sink_of_query, KEYED},
    {"sink.key-bias", SINKPROOF_BALL_EQUAL, BALL_KEYS, "k* = 0", "softmax_1(s)", zero_key,
     softmax_1, KEYED},
    {"sink.kv-bias", HEAD, "a key k* with a value v*", "sum_j alpha_j v_j + alpha_* v*",
     key_and_value, sink_plus_star, KEYED},
    {"sink.sink-token", HEAD, "a learned token x*", "(sum alpha_j x_j + alpha_* x*) W^V + b^V",
     token_inside, token_outside, KEYED},
    {"sink.low-rank-key", HEAD, "k* = [k_a 0]", "a sink logit of the first d_a coordinates",
     low_rank, sink_of_first_coordinates, KEYED},
    {"sink.fixed-value", HEAD, "v* = a v'", "o(0) + a alpha_* v'", fixed_value, zero_plus_fixed,
     KEYED},
    {"sink.hybrid", SINKPROOF_BALL_EQUAL, BALL_FOUR,
     "mass and 1 - alpha_s of a full and a sliding layer",
     "1, 1, and sum e^s / (e^b + sum e^s) for both", hybrid_masses, hybrid_expected, PLAIN},
    {"router.softmax-after", SINKPROOF_BALL_EQUAL, BALL_FOUR, "softmax over the chosen logits",
     "softmax over all, the chosen renormalised", softmax_after, softmax_before, PLAIN},
    {0},
};
