// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The first token, a window that excludes it, and evicted keys, in balls, for head 0; a sink logit
// inside the brackets that 1/sqrt(d') scales; the activation around zero.
#include "proofs/truth/identities_internal.h"

#include <math.h>
#include <stdlib.h>

typedef const sinkproof_ball_instance *instance;

// The keys first ... first + n - 1 of head 0 as a row of their own, sharing the instance's numbers.
static sinkproof_ball_instance row_of_keys(instance m, size_t first, size_t n) {
    sinkproof_ball_instance part = *m;
    part.heads = part.kv_heads = 1;
    part.n = n;
    part.s_hj = m->s_hj + first;
    part.x_gjd = m->x_gjd + first * m->dim;
    return part;
}

//> first.token
// The output of a row with one key, by the truth of the stage: its weight times x W^V + b^V.
static void output_of_first(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance first = row_of_keys(m, 0, 1);
    arb_ptr w = _arb_vec_init(2);
    ball_weights(w, w + 1, &first, 0, bits);
    ball_weighted(out, &first, 0, w, m->bv_gd, bits);
    _arb_vec_clear(w, 2);
}
// (1 - alpha_s) (x W^V + b^V), alpha_s = e^b / (e^b + e^s)
static void value_times_mass(arb_ptr out, instance m, slong bits) {
    arb_t e, e_b, v;
    balls_init(e, e_b, v);
    sinkproof_ball_instance first = row_of_keys(m, 0, 1);
    ball_exps(e, &first, 0, bits);
    ball_exp_sink(e_b, m, 0, bits);
    arb_add(e, e, e_b, bits);
    arb_div(e, e_b, e, bits);
    arb_sub_ui(e, e, 1, bits);
    arb_neg(e, e);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(v, m->x_gjd[d] + m->bv_gd[d]); // exact: both are short
        arb_mul(out + d, e, v, bits);
    }
    balls_clear(e, e_b, v);
}
//< first.token

//> sink.absolute
// A window of the last half: earlier weights are 0, and the sink keeps its share.
static void window_weights(arb_ptr out, instance m, slong bits) {
    size_t first = m->n / 2;
    sinkproof_ball_instance window = row_of_keys(m, first, m->n - first);
    _arb_vec_zero(out, (slong)first);
    ball_weights(out + first, out + m->n, &window, 0, bits);
}
// From the exponentials of all keys, without those before the window.
static void weights_after_removal(arb_ptr out, instance m, slong bits) {
    arb_t all;
    arb_init(all);
    ball_exps(out, m, 0, bits);
    ball_exp_sink(out + m->n, m, 0, bits);
    _arb_vec_zero(out, (slong)(m->n / 2));
    ball_sum(all, out, m->n + 1, bits);
    for (size_t j = 0; j <= m->n; j++) arb_div(out + j, out + j, all, bits);
    arb_clear(all);
}
//< sink.absolute

// The row with one more key (score q_0, value v*) after its first. A first-plus-recent mask keeps
// the first key and the last half of the others, so that the added key is always evicted.
typedef struct eviction {
    sinkproof_ball_instance all, kept;
    arb_ptr alpha, alpha_kept; // [n], then the sink's
    arb_t mass, share;         // of the evicted keys; of the others and the sink
} eviction;

static bool is_kept(instance all, size_t j) {
    size_t recent = (all->n - 1) / 2;
    return j == 0 || j + recent >= all->n;
}

static void append_key(sinkproof_ball_instance *to, instance from, size_t j) {
    to->s_hj[to->n] = from->s_hj[j];
    for (size_t d = 0; d < from->dim; d++)
        to->x_gjd[to->n * from->dim + d] = from->x_gjd[j * from->dim + d];
    to->n++;
}

static sinkproof_ball_instance empty_row(instance m) {
    sinkproof_ball_instance row = row_of_keys(m, 0, 0);
    row.s_hj = ball_doubles(m->n + 1);
    row.x_gjd = ball_doubles((m->n + 1) * m->dim);
    return row;
}

// The row of all keys, which the caller frees.
static sinkproof_ball_instance row_of_all(instance m) {
    sinkproof_ball_instance all = empty_row(m);
    append_key(&all, m, 0);
    all.s_hj[1] = m->q_d[0];
    for (size_t d = 0; d < m->dim; d++) all.x_gjd[m->dim + d] = m->star_d[d];
    all.n++;
    for (size_t j = 1; j < m->n; j++) append_key(&all, m, j);
    return all;
}
static void row_free(sinkproof_ball_instance *row) {
    free(row->s_hj);
    free(row->x_gjd);
}

static void eviction_init(eviction *e, instance m, slong bits) {
    e->all = row_of_all(m);
    e->kept = empty_row(m);
    for (size_t j = 0; j < e->all.n; j++)
        if (is_kept(&e->all, j)) append_key(&e->kept, &e->all, j);
    e->alpha = _arb_vec_init((slong)e->all.n + 1);
    e->alpha_kept = _arb_vec_init((slong)e->kept.n + 1);
    ball_weights(e->alpha, e->alpha + e->all.n, &e->all, 0, bits);
    ball_weights(e->alpha_kept, e->alpha_kept + e->kept.n, &e->kept, 0, bits);
    balls_init(e->mass, e->share);
    for (size_t j = 0; j <= e->all.n; j++) {
        bool rest = j == e->all.n || is_kept(&e->all, j);
        arb_ptr sum = rest ? e->share : e->mass;
        arb_add(sum, sum, e->alpha + j, bits);
    }
}
static void eviction_clear(eviction *e) {
    _arb_vec_clear(e->alpha, (slong)e->all.n + 1);
    _arb_vec_clear(e->alpha_kept, (slong)e->kept.n + 1);
    balls_clear(e->mass, e->share);
    row_free(&e->all);
    row_free(&e->kept);
}

// The same from the exponentials, by the places of the keys: key 0 and the last (n - 1) / 2 are
// kept, the keys between are evicted. mu, and the sink's weight among the kept keys.
static void evicted_share(arb_t mu, arb_t sink, const sinkproof_ball_instance *all, slong bits) {
    size_t from = 1, to = all->n - (all->n - 1) / 2;
    arb_ptr e = _arb_vec_init((slong)all->n);
    arb_t kept;
    arb_init(kept);
    ball_exps(e, all, 0, bits);
    ball_exp_sink(sink, all, 0, bits);
    ball_sum(mu, e + from, to - from, bits);
    ball_sum(kept, e + to, all->n - to, bits);
    arb_add(kept, kept, e, bits);
    arb_add(kept, kept, sink, bits);
    arb_div(sink, sink, kept, bits);
    arb_add(kept, kept, mu, bits);
    arb_div(mu, mu, kept, bits);
    arb_clear(kept);
    _arb_vec_clear(e, (slong)all->n);
}

//> mask.first-recent
// o of all keys, and (1 - mu) o' + sum_E alpha_j v_j
static void output_of_all(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance all = row_of_all(m);
    arb_ptr w = _arb_vec_init((slong)all.n + 1);
    ball_weights(w, w + all.n, &all, 0, bits);
    ball_weighted(out, &all, 0, w, NULL, bits);
    _arb_vec_clear(w, (slong)all.n + 1);
    row_free(&all);
}
static void output_from_kept(arb_ptr out, instance m, slong bits) {
    eviction e;
    arb_t v;
    arb_init(v);
    eviction_init(&e, m, bits);
    ball_weighted(out, &e.kept, 0, e.alpha_kept, NULL, bits);
    for (size_t d = 0; d < m->dim; d++) arb_mul(out + d, out + d, e.share, bits);
    for (size_t j = 0; j < e.all.n; j++)
        for (size_t d = 0; d < m->dim && !is_kept(&e.all, j); d++) {
            arb_set_d(v, e.all.x_gjd[j * m->dim + d]);
            arb_addmul(out + d, e.alpha + j, v, bits);
        }
    arb_clear(v);
    eviction_clear(&e);
}
// The sum of the changes of all weights, the sink's among them, and 2 mu.
static void sum_of_changes(arb_ptr out, instance m, slong bits) {
    eviction e;
    arb_t t;
    arb_init(t);
    eviction_init(&e, m, bits);
    arb_set(out, e.mass);
    for (size_t j = 0, k = 0; j <= e.all.n; j++) {
        if (j < e.all.n && !is_kept(&e.all, j)) continue;
        arb_sub(t, e.alpha_kept + k++, e.alpha + j, bits);
        arb_abs(t, t);
        arb_add(out, out, t, bits);
    }
    arb_clear(t);
    eviction_clear(&e);
}
static void twice_the_mass(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance all = row_of_all(m);
    arb_t sink;
    arb_init(sink);
    evicted_share(out, sink, &all, bits);
    arb_mul_2exp_si(out, out, 1);
    arb_clear(sink);
    row_free(&all);
}
//< mask.first-recent

//> bound.evict
// |o' - o| in each coordinate, and mu (2 - alpha'_s) max_j |v_j|
static void difference_and_bound(arb_ptr out, const eviction *e, slong bits) {
    arb_ptr o = _arb_vec_init(SINKPROOF_BALL_DIM);
    ball_weighted(o, &e->all, 0, e->alpha, NULL, bits);
    ball_weighted(out, &e->kept, 0, e->alpha_kept, NULL, bits);
    for (size_t d = 0; d < e->all.dim; d++) {
        arb_sub(out + d, out + d, o + d, bits);
        arb_abs(out + d, out + d);
    }
    _arb_vec_clear(o, SINKPROOF_BALL_DIM);
}
static void bound_eviction(arb_ptr out, instance m, bool opposite, slong bits) {
    sinkproof_ball_instance all = row_of_all(m);
    arb_t mu, rest;
    balls_init(mu, rest);
    evicted_share(mu, rest, &all, bits);
    arb_sub_ui(rest, rest, 2, bits);
    arb_neg(rest, rest);
    for (size_t d = 0; d < m->dim; d++) {
        double most = opposite ? 1 : 0;
        for (size_t j = 0; j < all.n && !opposite; j++)
            most = fmax(most, fabs(all.x_gjd[j * m->dim + d]));
        arb_set_d(out + d, most);
        arb_mul(out + d, out + d, mu, bits);
        arb_mul(out + d, out + d, rest, bits);
    }
    balls_clear(mu, rest);
    row_free(&all);
}
// The case that attains the bound: every kept value is -1, every evicted one 1.
static void set_opposite_values(eviction *e) {
    size_t dim = e->all.dim;
    for (size_t k = 0; k < e->all.n * dim; k++)
        e->all.x_gjd[k] = is_kept(&e->all, k / dim) ? -1 : 1;
    for (size_t k = 0; k < e->kept.n * dim; k++) e->kept.x_gjd[k] = -1;
}
//< bound.evict

static void measured_error(arb_ptr out, instance m, bool opposite, slong bits) {
    eviction e;
    eviction_init(&e, m, bits);
    if (opposite) set_opposite_values(&e);
    difference_and_bound(out, &e, bits);
    eviction_clear(&e);
}

static void eviction_error(arb_ptr out, instance m, slong bits) {
    measured_error(out, m, false, bits);
}
// V = max |v| would reach the bound, so V = (1 + 2^-20) max |v|.
static void eviction_bound(arb_ptr out, instance m, slong bits) {
    arb_t above;
    bound_eviction(out, m, false, bits);
    arb_init(above);
    arb_set_d(above, 1 + 0x1p-20);
    for (size_t d = 0; d < m->dim; d++) arb_mul(out + d, out + d, above, bits);
    arb_clear(above);
}
static void largest_error(arb_ptr out, instance m, slong bits) {
    measured_error(out, m, true, bits);
}
static void bound_reached(arb_ptr out, instance m, slong bits) {
    bound_eviction(out, m, true, bits);
}

//> sink.scale-inside
// softmax([q k_1 ... q k_n, b*] / sqrt(d')), and the sink b* / sqrt(d') beside scaled scores
static void raw_scores(arb_ptr z, instance m) { // exact; b* = q_0 k*_0
    arb_t t;
    arb_init(t);
    for (size_t j = 0; j <= m->n; j++) {
        arb_zero(z + j);
        for (size_t d = 0; d < (j < m->n ? m->dim : 1); d++) {
            arb_set_d(t, m->q_d[d] * (j < m->n ? m->k_jd[j * m->dim + d] : m->k_star_d[0]));
            arb_add(z + j, z + j, t, ARF_PREC_EXACT);
        }
    }
    arb_clear(t);
}
static void weights_scaled_together(arb_ptr out, instance m, slong bits) {
    arb_t root, all;
    balls_init(root, all);
    arb_sqrt_ui(root, m->dim, bits);
    raw_scores(out, m);
    for (size_t j = 0; j <= m->n; j++) {
        arb_div(out + j, out + j, root, bits);
        arb_exp(out + j, out + j, bits);
    }
    ball_sum(all, out, m->n + 1, bits);
    for (size_t j = 0; j <= m->n; j++) arb_div(out + j, out + j, all, bits);
    balls_clear(root, all);
}
static void weights_of_scaled_keys(arb_ptr out, instance m, slong bits) {
    arb_ptr q = _arb_vec_init(SINKPROOF_BALL_DIM), k = _arb_vec_init(SINKPROOF_BALL_DIM);
    arb_ptr z = _arb_vec_init((slong)m->n + 1);
    for (size_t d = 0; d < m->dim; d++) arb_set_d(q + d, m->q_d[d]);
    for (size_t j = 0; j <= m->n; j++) {
        for (size_t d = 0; d < m->dim; d++)
            arb_set_d(k + d, j < m->n ? m->k_jd[j * m->dim + d] : d == 0 ? m->k_star_d[0] : 0);
        sinkproof_truth_scores(z + j, q, k, 1, m->dim, m->dim, bits);
    }
    sinkproof_truth_softmax_sink(out, out + m->n, z, m->n, z + m->n, bits);
    _arb_vec_clear(q, SINKPROOF_BALL_DIM);
    _arb_vec_clear(k, SINKPROOF_BALL_DIM);
    _arb_vec_clear(z, (slong)m->n + 1);
}
//< sink.scale-inside

//> swiglu.plus-one
// z(u, g) of the stage, g below its clamp, in units of 64.
static void activation(arb_t out, double u, double g, slong bits) {
    arb_ptr gate_up = _arb_vec_init(2);
    arb_set_d(gate_up, g);
    arb_set_d(gate_up + 1, u);
    sinkproof_truth_swiglu(out, gate_up, 1, (sinkproof_swiglu_numbers){1.702, 7, 1}, bits);
    arb_mul_2exp_si(out, out, -6);
    _arb_vec_clear(gate_up, 2);
}
// At u = 0 the gate alone; the slope in u; the odd part in g, whose slope is 1/2 for every step;
// and z(-1, g), which is 0 since an up-projection of -1 blocks everything.
static void activation_around_zero(arb_ptr out, instance m, slong bits) {
    double g = m->q_d[0] / 2, u = m->k_star_d[0] / 4, step = m->star_d[0] / 4;
    arb_t t;
    arb_init(t);
    activation(out, 0, g, bits);
    activation(out + 1, u + step, g, bits);
    activation(t, u, g, bits);
    arb_sub(out + 1, out + 1, t, bits);
    arb_set_d(t, step);
    arb_div(out + 1, out + 1, t, bits);
    activation(out + 2, 0, g, bits);
    activation(t, 0, -g, bits);
    arb_sub(out + 2, out + 2, t, bits);
    arb_set_d(t, 2 * g);
    arb_div(out + 2, out + 2, t, bits);
    activation(out + 3, -1, g, bits);
    arb_clear(t);
}
static void swish_and_half(arb_ptr out, instance m, slong bits) {
    arb_t alpha, g;
    balls_init(alpha, g);
    arb_set_d(g, m->q_d[0] / 2);
    sinkproof_truth_decimal(alpha, 1.702, bits);
    arb_mul(out, alpha, g, bits); // g / (1 + e^(-alpha g))
    arb_neg(out, out);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, 1, bits);
    arb_div(out, g, out, bits);
    arb_mul_2exp_si(out, out, -6);
    arb_set(out + 1, out);
    arb_set_d(out + 2, 0x1p-7); // 1/2 in units of 64
    arb_zero(out + 3);
    balls_clear(alpha, g);
}
//< swiglu.plus-one

#define KEYS SINKPROOF_BALL_EQUAL, BALL_KEYS
#define HEAD SINKPROOF_BALL_EQUAL, BALL_HEAD
#define ONE  SINKPROOF_BALL_EQUAL, BALL_ONE
#define FOUR SINKPROOF_BALL_EQUAL, BALL_FOUR

const sinkproof_identity identities_first[] = {
    {"first.token", HEAD, "o of a query that sees only itself", "(1 - alpha_s) v", output_of_first,
     value_times_mass, PLAIN},
    {"sink.absolute", KEYS, "a window's weights, and 0 before it", "the row with keys struck out",
     window_weights, weights_after_removal, PLAIN},
    {"mask.first-recent", HEAD, "o of all keys", "(1 - mu) o' + sum_E alpha_j v_j", output_of_all,
     output_from_kept, PLAIN},
    {"mask.first-recent", ONE, "by how much the weights move", "2 mu", sum_of_changes,
     twice_the_mass, PLAIN},
    {"bound.evict", SINKPROOF_BALL_LESS, BALL_HEAD, "|o' - o|", "mu (2 - alpha'_s) V, V > max |v|",
     eviction_error, eviction_bound, PLAIN},
    {"bound.evict", HEAD, "|o' - o| where kept values are -1, evicted ones 1", "mu (2 - alpha'_s)",
     largest_error, bound_reached, PLAIN},
    {"sink.scale-inside", KEYS, "softmax([q K, b*] / sqrt(d'))", "the sink b* / sqrt(d')",
     weights_scaled_together, weights_of_scaled_keys, KEYED},
    {"swiglu.plus-one", FOUR, "z(0, g), its slopes in u and, odd part, in g, z(-1, g)",
     "swish(g), swish(g), 1/2, 0", activation_around_zero, swish_and_half, PLAIN},
    {0},
};
