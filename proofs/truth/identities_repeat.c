// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One repeated token, a normaliser with a power, and a row split at its first key (chapter 23), in
// balls, for head 0.
#include "proofs/truth/identities_internal.h"
#include "proofs/truth/repeat.h"

#include <math.h>
#include <stdlib.h>

typedef const sinkproof_ball_instance *instance;

// The weights of a row whose scores are balls: alpha_j [n], alpha_s.
static void softmax_of_balls(arb_ptr out, arb_srcptr z_j, size_t n, double b, slong bits) {
    arb_t sink;
    arb_init(sink);
    arb_set_d(sink, b);
    sinkproof_truth_softmax_sink(out, out + n, z_j, n, sink, bits);
    arb_clear(sink);
}

// n keys of the score s_0.
static void weights_of_equal(arb_ptr out, instance m, size_t n, double b, slong bits) {
    arb_ptr z = _arb_vec_init((slong)n);
    for (size_t j = 0; j < n; j++) arb_set_d(z + j, m->s_hj[0]);
    softmax_of_balls(out, z, n, b, bits);
    _arb_vec_clear(z, (slong)n);
}

//> repeat.lemma
// Every key has the first one's value: the row's output, without a sink.
static void output_of_equal_values(arb_ptr out, instance m, slong bits) {
    sinkproof_ball_instance equal = *m;
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    equal.x_gjd = ball_doubles(m->kv_heads * m->n * m->dim);
    for (size_t k = 0; k < m->n * m->dim; k++) equal.x_gjd[k] = m->x_gjd[k % m->dim];
    equal.b_h[0] = -INFINITY;
    ball_weights(w, w + m->n, &equal, 0, bits);
    ball_weighted(out, &equal, 0, w, m->bv_gd, bits);
    _arb_vec_clear(w, (slong)m->n + 1);
    free(equal.x_gjd);
}
static void equal_value(arb_ptr out, instance m, slong bits) {
    (void)bits;
    for (size_t d = 0; d < m->dim; d++) arb_set_d(out + d, m->x_gjd[d] + m->bv_gd[d]); // exact
}
// With a sink: the mass of n equal keys, and of one more.
static void mass_of_row(arb_ptr out, instance m, slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    weights_of_equal(w, m, m->n, m->b_h[0], bits);
    ball_sum(out, w, m->n, bits);
    _arb_vec_clear(w, (slong)m->n + 1);
}
// n + 1 keys, counted: (n + 1) / (n + 1 + e^(b - c))
static void mass_of_next_row(arb_ptr out, instance m, slong bits) {
    arb_t c;
    arb_init(c);
    arb_set_d(c, m->s_hj[0]);
    arb_set_d(out, m->b_h[0]);
    arb_sub(out, out, c, ARF_PREC_EXACT);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, m->n + 1, bits);
    arb_ui_div(out, m->n + 1, out, bits);
    arb_clear(c);
}
//< repeat.lemma

//> repeat.nope
static void weights_of_equal_scores(arb_ptr out, instance m, slong bits) {
    weights_of_equal(out, m, m->n, -INFINITY, bits);
}
static void shares_one_over_n(arb_ptr out, instance m, slong bits) {
    for (size_t j = 0; j < m->n; j++) {
        arb_one(out + j);
        arb_div_ui(out + j, out + j, m->n, bits);
    }
    arb_zero(out + m->n);
}
static void mean_of_rows(arb_ptr out, instance m, slong bits) {
    arb_ptr g = _arb_vec_init((slong)m->n);
    repeat_first(g, g, m->n, bits);
    repeat_mean(out, g, m->n, bits);
    _arb_vec_clear(g, (slong)m->n);
}
static void harmonic_mean(arb_ptr out, instance m, slong bits) {
    repeat_even_mean(out, m->n, bits);
}
//< repeat.nope

//> repeat.relative
// Scores q_0 + g(n - 1 - j), g(d) = s_d: the content q_0 cancels.
static void relative_weights(arb_ptr out, instance m, slong bits) {
    arb_ptr z = _arb_vec_init((slong)m->n + 1);
    arb_set_d(z + m->n, m->q_d[0]);
    for (size_t j = 0; j < m->n; j++) {
        arb_set_d(z + j, m->s_hj[m->n - 1 - j]);
        arb_add(z + j, z + j, z + m->n, ARF_PREC_EXACT);
    }
    softmax_of_balls(out, z, m->n, -INFINITY, bits);
    _arb_vec_clear(z, (slong)m->n + 1);
}
static void relative_shares(arb_ptr out, instance m, slong bits) {
    arb_t all;
    arb_init(all);
    ball_exps(out, m, 0, bits);
    ball_sum(all, out, m->n, bits);
    for (size_t j = 0; j < m->n; j++) arb_div(out + j, out + j, all, bits);
    for (size_t j = 0; j < m->n / 2; j++) arb_swap(out + j, out + m->n - 1 - j);
    arb_zero(out + m->n);
    arb_clear(all);
}
//< repeat.relative

//> repeat.alibi
static void draw_slope(arb_t slope, instance m) { // 2^-1 ... 2^-8
    arb_one(slope);
    arb_mul_2exp_si(slope, slope, -1 - (slong)(m->number % 8));
}
// The first of n keys with scores -slope (n - 1 - j).
static void alibi_first(arb_ptr out, instance m, size_t n, slong bits) {
    arb_ptr z = _arb_vec_init((slong)n), w = _arb_vec_init((slong)n + 1);
    arb_t slope;
    arb_init(slope);
    draw_slope(slope, m);
    repeat_alibi(z, n, slope, bits);
    for (size_t j = 0; j < n / 2; j++) arb_swap(z + j, z + n - 1 - j);
    softmax_of_balls(w, z, n, -INFINITY, bits);
    arb_set(out, w);
    arb_clear(slope);
    _arb_vec_clear(z, (slong)n);
    _arb_vec_clear(w, (slong)n + 1);
}
static void alibi_row(arb_ptr out, instance m, slong bits) {
    alibi_first(out, m, m->n, bits);
}
static void alibi_closed(arb_ptr out, instance m, slong bits) {
    arb_t slope;
    arb_init(slope);
    draw_slope(slope, m);
    repeat_alibi_closed(out, m->n, slope, bits);
    arb_clear(slope);
}
static void alibi_next_row(arb_ptr out, instance m, slong bits) {
    alibi_first(out, m, m->n + 1, bits);
}
static void next_even_share(arb_ptr out, instance m, slong bits) {
    arb_one(out);
    arb_div_ui(out, out, m->n + 1, bits);
}
//< repeat.alibi

//> repeat.rope
enum { PAIRS = SINKPROOF_BALL_DIM / 2 };
static const double base = 10000;

static void query_and_key(arb_ptr q_c, arb_ptr k_c, instance m, slong halvings) {
    for (size_t c = 0; c < SINKPROOF_BALL_DIM; c++) {
        arb_set_d(q_c + c, m->q_d[c]);
        arb_set_d(k_c + c, m->k_star_d[c]);
        arb_mul_2exp_si(q_c + c, q_c + c, -halvings);
        arb_mul_2exp_si(k_c + c, k_c + c, -halvings);
    }
}
// Query at n, key at 0, 1, n - 1 and n, by the truth of the stages.
static void rotated_scores(arb_ptr out, instance m, slong bits) {
    arb_ptr v = _arb_vec_init(4 * SINKPROOF_BALL_DIM);
    arb_ptr q = v, k = v + SINKPROOF_BALL_DIM, q_n = k + SINKPROOF_BALL_DIM;
    arb_ptr k_j = q_n + SINKPROOF_BALL_DIM;
    int32_t n = (int32_t)m->n, at[4] = {0, 1, n - 1, n};
    sinkproof_truth_yarn turn = {.half = PAIRS, .inv_freq_d = _arb_vec_init(PAIRS)};
    arb_init(turn.concentration);
    arb_one(turn.concentration);
    arb_one(turn.inv_freq_d); // base^0 and base^(-1/2)
    arb_set_d(turn.inv_freq_d + 1, base);
    arb_rsqrt(turn.inv_freq_d + 1, turn.inv_freq_d + 1, bits);
    query_and_key(q, k, m, 4);
    sinkproof_truth_rope(q_n, q, 1, 1, &n, &turn, bits);
    for (size_t e = 0; e < 4; e++) {
        sinkproof_truth_rope(k_j, k, 1, 1, &at[e], &turn, bits);
        sinkproof_truth_scores(out + e, q_n, k_j, 1, SINKPROOF_BALL_DIM, SINKPROOF_BALL_DIM, bits);
    }
    arb_clear(turn.concentration);
    _arb_vec_clear(turn.inv_freq_d, PAIRS);
    _arb_vec_clear(v, 4 * SINKPROOF_BALL_DIM);
}
static void rotary(arb_ptr g_d, instance m, slong halvings, slong bits) { // distances 0 ... n
    arb_ptr q = _arb_vec_init(SINKPROOF_BALL_DIM), k = _arb_vec_init(SINKPROOF_BALL_DIM);
    query_and_key(q, k, m, halvings);
    repeat_rotary(g_d, m->n + 1, PAIRS, q, k, base, bits);
    _arb_vec_clear(q, SINKPROOF_BALL_DIM);
    _arb_vec_clear(k, SINKPROOF_BALL_DIM);
}
static void scores_of_distance(arb_ptr out, instance m, slong bits) {
    arb_ptr g = _arb_vec_init((slong)m->n + 1);
    rotary(g, m, 4, bits);
    arb_set(out, g + m->n);
    arb_set(out + 1, g + m->n - 1);
    arb_set(out + 2, g + 1);
    arb_set(out + 3, g);
    _arb_vec_clear(g, (slong)m->n + 1);
}
// The first key of a row of n + 1, and the bounds from its score's size: lower, upper.
static void rotary_first(arb_ptr out, instance m, slong bits) {
    arb_ptr g = _arb_vec_init((slong)m->n + 1);
    rotary(g, m, 2, bits);
    repeat_first(g, g, m->n + 1, bits);
    arb_set(out, g + m->n);
    _arb_vec_clear(g, (slong)m->n + 1);
}
static void rotary_bound(arb_ptr out, instance m, bool most, slong bits) {
    arb_ptr b = _arb_vec_init((slong)m->n + 1), q = _arb_vec_init(2 * SINKPROOF_BALL_DIM);
    arb_ptr k = q + SINKPROOF_BALL_DIM;
    arb_t xi;
    arb_init(xi);
    query_and_key(q, k, m, 2);
    repeat_xi(xi, q, k, SINKPROOF_BALL_DIM, bits);
    if (!most) arb_neg(xi, xi);
    repeat_bound(b, m->n + 1, xi, bits);
    arb_set(out, b + m->n);
    arb_clear(xi);
    _arb_vec_clear(b, (slong)m->n + 1);
    _arb_vec_clear(q, 2 * SINKPROOF_BALL_DIM);
}
static void rotary_upper_bound(arb_ptr out, instance m, slong bits) {
    rotary_bound(out, m, true, bits);
}
static void rotary_lower_bound(arb_ptr out, instance m, slong bits) {
    rotary_bound(out, m, false, bits);
}
//< repeat.rope

//> norm.power
// p = 1/2, 1, 2 or 3; scores are s / 4, so that p s is at most s.
static void instance_power(arb_t p, instance m) {
    arb_set_d(p, (double[]){0.5, 1, 2, 3}[m->number % 4]);
}
// e^s_j / (sum e^(p s))^(1/p); the last entry 0
static void power_weights(arb_ptr out, instance m, slong bits) {
    arb_t p, e, sum;
    balls_init(p, e, sum);
    instance_power(p, m);
    for (size_t j = 0; j < m->n; j++) {
        arb_set_d(out + j, m->s_hj[j] / 4);
        arb_mul(e, out + j, p, bits);
        arb_exp(e, e, bits);
        arb_add(sum, sum, e, bits);
    }
    arb_log(sum, sum, bits);
    arb_div(sum, sum, p, bits);
    for (size_t j = 0; j < m->n; j++) {
        arb_exp(out + j, out + j, bits);
        arb_exp(e, sum, bits);
        arb_div(out + j, out + j, e, bits);
    }
    arb_zero(out + m->n);
    balls_clear(p, e, sum);
}
// softmax at temperature 1/p, by the truth of the stage, and its p-th root
static void root_of_softmax(arb_ptr out, instance m, slong bits) {
    arb_ptr z = _arb_vec_init((slong)m->n);
    arb_t p;
    arb_init(p);
    instance_power(p, m);
    for (size_t j = 0; j < m->n; j++) {
        arb_set_d(z + j, m->s_hj[j] / 4);
        arb_mul(z + j, z + j, p, bits);
    }
    softmax_of_balls(out, z, m->n, -INFINITY, bits);
    arb_inv(p, p, bits);
    for (size_t j = 0; j < m->n; j++) arb_pow(out + j, out + j, p, bits);
    arb_clear(p);
    _arb_vec_clear(z, (slong)m->n);
}
static void sum_of_powers(arb_ptr out, instance m, slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 1);
    arb_t p;
    arb_init(p);
    instance_power(p, m);
    power_weights(w, m, bits);
    for (size_t j = 0; j < m->n; j++) arb_pow(w + j, w + j, p, bits);
    ball_sum(out, w, m->n, bits);
    arb_clear(p);
    _arb_vec_clear(w, (slong)m->n + 1);
}
static void set_one(arb_ptr out, instance m, slong bits) {
    (void)m, (void)bits;
    arb_one(out);
}
//< norm.power

//> noop.split
// A first key of score q_0 and value v* before the n others; w: its weight, theirs, the sink's.
static void weights_with_first(arb_ptr w, instance m, slong bits) {
    arb_ptr z = _arb_vec_init((slong)m->n + 1);
    arb_set_d(z, m->q_d[0]);
    for (size_t j = 0; j < m->n; j++) arb_set_d(z + 1 + j, m->s_hj[j]);
    softmax_of_balls(w, z, m->n + 1, m->b_h[0], bits);
    _arb_vec_clear(z, (slong)m->n + 1);
}
// out = sum of the others, weighted; mass = 1 - alpha_s - alpha_1, as the sum of their weights.
static void weigh_others(arb_ptr out, arb_t mass, instance m, slong bits) {
    arb_ptr w = _arb_vec_init((slong)m->n + 2);
    weights_with_first(w, m, bits);
    if (out != NULL) ball_weighted(out, m, 0, w + 1, NULL, bits);
    ball_sum(mass, w + 1, m->n, bits);
    _arb_vec_clear(w, (slong)m->n + 2);
}
static void second_term(arb_ptr out, instance m, slong bits) {
    arb_t mass;
    arb_init(mass);
    weigh_others(out, mass, m, bits);
    for (size_t d = 0; d < m->dim; d++) arb_abs(out + d, out + d);
    arb_clear(mass);
}
// (1 - alpha_s - alpha_1) V, V slightly above max |v_j|, and alpha_s + alpha_1 = (e^b + e^q_0) /
// all
static void mass_times_largest(arb_ptr out, instance m, slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n);
    arb_t mass, v;
    balls_init(mass, v);
    ball_exps(e, m, 0, bits);
    ball_sum(mass, e, m->n, bits);
    _arb_vec_clear(e, (slong)m->n);
    arb_set_d(v, m->q_d[0]);
    arb_exp(v, v, bits);
    arb_add(v, v, mass, bits);
    ball_exp_sink(out, m, 0, bits);
    arb_add(v, v, out, bits);
    arb_div(mass, mass, v, bits);
    for (size_t d = 0; d < m->dim; d++) {
        double most = 0;
        for (size_t j = 0; j < m->n; j++) most = fmax(most, fabs(m->x_gjd[j * m->dim + d]));
        arb_set_d(v, most * (1 + 0x1p-20)); // exact: 8 significant bits
        arb_mul(out + d, mass, v, bits);
    }
    balls_clear(mass, v);
}
static void mass_of_others(arb_ptr out, instance m, slong bits) {
    weigh_others(NULL, out, m, bits);
}
// n / (n + e^m), where the first score exceeds every other by more than m
static void share_of_margin(arb_ptr out, instance m, slong bits) {
    double most = -INFINITY;
    for (size_t j = 0; j < m->n; j++) most = fmax(most, m->s_hj[j]);
    arb_t t;
    arb_init(t);
    arb_set_d(out, m->q_d[0]);
    arb_set_d(t, most);
    arb_sub(out, out, t, ARF_PREC_EXACT);
    arb_set_d(t, 0x1p-10);
    arb_sub(out, out, t, ARF_PREC_EXACT);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, m->n, bits);
    arb_ui_div(out, m->n, out, bits);
    arb_clear(t);
}
//< noop.split

#define KEYS      SINKPROOF_BALL_EQUAL, BALL_KEYS
#define HEAD      SINKPROOF_BALL_EQUAL, BALL_HEAD
#define ONE       SINKPROOF_BALL_EQUAL, BALL_ONE
#define FOUR      SINKPROOF_BALL_EQUAL, BALL_FOUR
#define LESS      SINKPROOF_BALL_LESS, BALL_ONE
#define LESS_HEAD SINKPROOF_BALL_LESS, BALL_HEAD

const sinkproof_identity identities_repeat[] = {
    {"repeat.lemma", HEAD, "o of equal values, no sink", "the value", output_of_equal_values,
     equal_value, PLAIN},
    {"repeat.lemma", LESS, "the mass of n equal keys beside a sink", "of n + 1", mass_of_row,
     mass_of_next_row, FINITE},
    {"repeat.nope", KEYS, "weights of equal scores", "1/n", weights_of_equal_scores,
     shares_one_over_n, PLAIN},
    {"repeat.nope", ONE, "the mean of A_t1, t = 1 ... n", "H_n / n", mean_of_rows, harmonic_mean,
     PLAIN},
    {"repeat.relative", KEYS, "weights of c + g(t - j)", "e^g(t-j) / sum_d e^g(d)",
     relative_weights, relative_shares, PLAIN},
    {"repeat.alibi", ONE, "A_t1 of scores -m (t - j)", "e^(-m(t-1)) (1 - e^-m) / (1 - e^-mt)",
     alibi_row, alibi_closed, PLAIN},
    {"repeat.alibi", LESS, "A_t1, t > 1", "1/t", alibi_next_row, next_even_share, PLAIN},
    {"repeat.rope", FOUR, "scores of rotated vectors", "a sum of cosines of the distance",
     rotated_scores, scores_of_distance, PLAIN},
    {"repeat.rope", LESS, "A_t1", "e^2xi / (e^2xi + t - 1)", rotary_first, rotary_upper_bound,
     PLAIN},
    {"repeat.rope", LESS, "e^-2xi / (e^-2xi + t - 1)", "A_t1", rotary_lower_bound, rotary_first,
     PLAIN},
    {"norm.power", KEYS, "e^s / (sum e^ps)^(1/p)", "softmax(p s)^(1/p)", power_weights,
     root_of_softmax, PLAIN},
    {"norm.power", ONE, "sum_j w_j^p", "1", sum_of_powers, set_one, PLAIN},
    {"noop.split", LESS_HEAD, "|sum_{j>1} alpha_j v_j|", "(1 - alpha_s - alpha_1) V, V > max |v_j|",
     second_term, mass_times_largest, PLAIN},
    {"noop.split", LESS, "1 - alpha_s - alpha_1", "n / (n + e^m), m the first's margin",
     mass_of_others, share_of_margin, PLAIN},
    {0},
};
