// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The model's other stages: the ball of each at p bits against MPFR at 2 p bits, one correctly
// rounded operation after another (whose error is far below the ball's radius, unless that is 0);
// and a norm that few coordinates dominate (chapter 23).
#include "proofs/truth/identities_internal.h"

#include <math.h>
#include <stdlib.h>

typedef const sinkproof_ball_instance *instance;

static const double constant_eps = 1e-5, constant_alpha = 1.702, constant_limit = 7;

// Outputs are in units of 64, so that the sizes of their terms sum to at most 1: RMSNorm's are
// below 8 sqrt(n) <= 64, the activation's below 8 times 7.
static void divide_by_64(arb_ptr out, size_t n) {
    for (size_t k = 0; k < n; k++) arb_mul_2exp_si(out + k, out + k, -6);
}

// Converts n MPFR numbers to balls, widened by the error of their precision, and frees them.
static void balls_from_mpfr(arb_ptr out, mpfr_ptr x, size_t n, slong bits) {
    for (size_t k = 0; k < n; k++) {
        arf_set_mpfr(arb_midref(out + k), x + k);
        mag_zero(arb_radref(out + k));
        arb_add_error_2exp_si(out + k, -bits - bits / 2);
    }
    truth_mpfr_vector_free(x, n);
}

static mpfr_ptr mpfr_vector_from(const double *x, size_t n) {
    mpfr_ptr v = truth_mpfr_vector(n, 53);
    for (size_t k = 0; k < n; k++) mpfr_set_d(v + k, x[k], MPFR_RNDN);
    return v;
}

static sinkproof_matrix norm_scale(instance m) { // one row of n numbers: the keys' first elements
    return (sinkproof_matrix){.dtype = SINKPROOF_DTYPE_F64,
                              .count = 1,
                              .rows = 1,
                              .cols = m->n,
                              .data = (const uint8_t *)m->k_jd,
                              .stack_stride = m->n,
                              .row_stride = m->n,
                              .col_stride = 1,
                              .name = "drawn"};
}

//> rmsnorm.forward
// The scores of head 0 as input; the last entry is 0 on both sides.
static void rmsnorm_ball(arb_ptr out, instance m, slong bits) {
    sinkproof_matrix w = norm_scale(m);
    arb_ptr x = _arb_vec_init((slong)m->n);
    for (size_t j = 0; j < m->n; j++) arb_set_d(x + j, m->s_hj[j]);
    sinkproof_truth_rmsnorm(out, x, 1, &w, constant_eps, bits);
    divide_by_64(out, m->n);
    arb_zero(out + m->n);
    _arb_vec_clear(x, (slong)m->n);
}
static void rmsnorm_mpfr(arb_ptr out, instance m, slong bits) {
    sinkproof_matrix w = norm_scale(m);
    mpfr_ptr x = mpfr_vector_from(m->s_hj, m->n), y = truth_mpfr_vector(m->n, 2 * bits);
    truth_mpfr_rmsnorm(y, x, &w, constant_eps, 2 * bits);
    balls_from_mpfr(out, y, m->n, bits);
    divide_by_64(out, m->n);
    arb_zero(out + m->n);
    truth_mpfr_vector_free(x, m->n);
}
//< rmsnorm.forward

//> rmsnorm.spike
// h: `dim` spikes x_0, in units of 2^-10, then the rest v*; weights b^V. eps = 10^-5.
typedef struct spike {
    arb_ptr h_c;        // [2 dim]
    arb_t spikes, mean; // the spikes' sum of squares; the mean of all squares, and eps
} spike;

static void spike_init(spike *s, instance m, slong bits) {
    arb_t eps;
    arb_init(eps);
    s->h_c = _arb_vec_init(2 * (slong)m->dim);
    balls_init(s->spikes, s->mean);
    for (size_t c = 0; c < m->dim; c++) {
        arb_set_d(s->h_c + c, ldexp(m->x_gjd[c], 10));
        arb_set_d(s->h_c + m->dim + c, m->star_d[c]);
    }
    arb_dot(s->spikes, NULL, 0, s->h_c, 1, s->h_c, 1, (slong)m->dim, bits);
    arb_dot(s->mean, NULL, 0, s->h_c, 1, s->h_c, 1, 2 * (slong)m->dim, bits);
    arb_div_ui(s->mean, s->mean, 2 * m->dim, bits);
    sinkproof_truth_decimal(eps, 1e-5, bits);
    arb_add(s->mean, s->mean, eps, bits);
    arb_clear(eps);
}
static void spike_clear(spike *s, instance m) {
    _arb_vec_clear(s->h_c, 2 * (slong)m->dim);
    balls_clear(s->spikes, s->mean);
}
static void normalised_coordinate(arb_t out, const spike *s, instance m, size_t c, slong bits) {
    arb_t w;
    arb_init(w);
    arb_sqrt(w, s->mean, bits);
    arb_div(out, s->h_c + c, w, bits);
    arb_set_d(w, m->bv_gd[c]);
    arb_mul(out, out, w, bits);
    arb_clear(w);
}
// h_c w_c sqrt(d) / |h_S|
static void normalised_by_spikes(arb_t out, const spike *s, instance m, size_t c, slong bits) {
    arb_t w;
    arb_init(w);
    arb_sqrt(w, s->spikes, bits);
    arb_div(out, s->h_c + c, w, bits);
    arb_sqrt_ui(w, 2 * m->dim, bits);
    arb_mul(out, out, w, bits);
    arb_set_d(w, m->bv_gd[c]);
    arb_mul(out, out, w, bits);
    arb_clear(w);
}
static void spikes_moved(arb_ptr out, instance m, slong bits) {
    spike s;
    arb_t t;
    arb_init(t);
    spike_init(&s, m, bits);
    for (size_t c = 0; c < m->dim; c++) {
        normalised_coordinate(out + c, &s, m, c, bits);
        normalised_by_spikes(t, &s, m, c, bits);
        arb_sub(out + c, out + c, t, bits);
        arb_abs(out + c, out + c);
    }
    spike_clear(&s, m);
    arb_clear(t);
}
// From the random numbers themselves: |h_c w_c| sqrt(d) / |h_S|, and rho^2 = (|h_R|^2 + d eps) /
// |h_S|^2. Squares and products are exact: 8 significant bits.
static void bound_by_spikes(arb_ptr out, arb_ptr rho_2, instance m, bool rest, slong bits) {
    double spikes = 0, others = 0;
    arb_t root;
    arb_init(root);
    for (size_t c = 0; c < m->dim; c++) {
        spikes += 0x1p20 * m->x_gjd[c] * m->x_gjd[c];
        others += m->star_d[c] * m->star_d[c];
    }
    sinkproof_truth_decimal(rho_2, 1e-5, bits);
    arb_mul_ui(rho_2, rho_2, 2 * m->dim, bits);
    arb_set_d(root, others);
    arb_add(rho_2, rho_2, root, bits);
    arb_set_d(root, spikes);
    arb_div(rho_2, rho_2, root, bits);
    arb_ui_div(root, 2 * m->dim, root, bits);
    arb_sqrt(root, root, bits);
    for (size_t c = 0; c < m->dim; c++) {
        double h = rest ? m->star_d[c] : 1024 * m->x_gjd[c], w = m->bv_gd[rest ? m->dim + c : c];
        arb_set_d(out + c, fabs(h * w));
        arb_mul(out + c, out + c, root, bits);
    }
    arb_clear(root);
}
static void spikes_may_move(arb_ptr out, instance m, slong bits) { // rho^2 / 2 |kept|
    arb_t rho_2;
    arb_init(rho_2);
    bound_by_spikes(out, rho_2, m, false, bits);
    arb_mul_2exp_si(rho_2, rho_2, -1);
    for (size_t c = 0; c < m->dim; c++) arb_mul(out + c, out + c, rho_2, bits);
    arb_clear(rho_2);
}
static void rest_after_norm(arb_ptr out, instance m, slong bits) {
    spike s;
    spike_init(&s, m, bits);
    for (size_t c = 0; c < m->dim; c++) {
        normalised_coordinate(out + c, &s, m, m->dim + c, bits);
        arb_abs(out + c, out + c);
    }
    spike_clear(&s, m);
}
static void bound_of_rest(arb_ptr out, instance m, slong bits) {
    arb_t rho_2;
    arb_init(rho_2);
    bound_by_spikes(out, rho_2, m, true, bits);
    arb_clear(rho_2);
}
//< rmsnorm.spike

// Two activations: gates from the scores (which pass every clamp) or short numbers.
static void gate_and_up_inputs(instance m, double u[4]) {
    u[0] = m->s_hj[0], u[1] = m->q_d[0];
    u[2] = m->k_star_d[0], u[3] = m->s_hj[m->n - 1];
}

//> swiglu.clamped
static void swiglu_ball(arb_ptr out, instance m, slong bits) {
    double u[4];
    gate_and_up_inputs(m, u);
    arb_ptr x = _arb_vec_init(4);
    for (size_t k = 0; k < 4; k++) arb_set_d(x + k, u[k]);
    sinkproof_truth_swiglu(out, x, 2, (sinkproof_swiglu_numbers){constant_alpha, constant_limit, 1},
                           bits);
    divide_by_64(out, 2);
    arb_zero(out + 2);
    arb_zero(out + 3);
    _arb_vec_clear(x, 4);
}
static void swiglu_mpfr(arb_ptr out, instance m, slong bits) {
    double u[4];
    gate_and_up_inputs(m, u);
    mpfr_ptr x = mpfr_vector_from(u, 4), y = truth_mpfr_vector(2, 2 * bits);
    truth_mpfr_swiglu(y, x, 2, (sinkproof_swiglu_numbers){constant_alpha, constant_limit, 1},
                      2 * bits);
    balls_from_mpfr(out, y, 2, bits);
    divide_by_64(out, 2);
    arb_zero(out + 2);
    arb_zero(out + 3);
    truth_mpfr_vector_free(x, 4);
}
//< swiglu.clamped

static sinkproof_config rope_config(instance m) {
    return (sinkproof_config){.head_dim = 64,
                              .rotation.theta = 150000,
                              .rotation.factor = 32,
                              .rotation.beta_fast = 32,
                              .rotation.beta_slow = 1,
                              .rotation.original_context = 4096,
                              .rotation.truncate = m->number % 2 == 1};
}

//> yarn.ramp yarn.concentration yarn.truncate
// Three frequencies (below, on and above the ramp, both modes) and the concentration.
static void yarn_ball(arb_ptr out, instance m, slong bits) {
    sinkproof_config config = rope_config(m);
    sinkproof_truth_yarn yarn;
    sinkproof_truth_yarn_init(&yarn, &config, bits);
    for (size_t k = 0; k < 3; k++) arb_set(out + k, yarn.inv_freq_d + (m->number + 9 * k) % 32);
    arb_set(out + 3, yarn.concentration);
    sinkproof_truth_yarn_clear(&yarn);
}
static void yarn_mpfr(arb_ptr out, instance m, slong bits) {
    sinkproof_config config = rope_config(m);
    mpfr_ptr freq = truth_mpfr_vector(32, 2 * bits), four = truth_mpfr_vector(4, 2 * bits);
    truth_mpfr_yarn(freq, four + 3, &config, 2 * bits);
    for (size_t k = 0; k < 3; k++) mpfr_set(four + k, freq + (m->number + 9 * k) % 32, MPFR_RNDN);
    balls_from_mpfr(out, four, 4, bits);
    truth_mpfr_vector_free(freq, 32);
}
//< yarn.ramp yarn.concentration yarn.truncate

static int32_t drawn_position(instance m) {
    static const int32_t positions[] = {0, 1, 127, 4095, 4096, 131071};
    return positions[m->number % 6];
}
static void drawn_vector(instance m, double x[64]) {
    for (size_t d = 0; d < 64; d++) x[d] = m->q_d[d % SINKPROOF_BALL_DIM];
}

//> rope.rotate
// Two pairs of a head of 64, divided by the position, with which an angle's error grows.
static void rotate_ball(arb_ptr out, instance m, slong bits) {
    double x[64];
    drawn_vector(m, x);
    sinkproof_config config = rope_config(m);
    sinkproof_truth_yarn yarn;
    arb_ptr in = _arb_vec_init(64), y = _arb_vec_init(64);
    int32_t position = drawn_position(m);
    for (size_t d = 0; d < 64; d++) arb_set_d(in + d, x[d]);
    sinkproof_truth_yarn_init(&yarn, &config, bits);
    sinkproof_truth_rope(y, in, 1, 1, &position, &yarn, bits);
    for (size_t k = 0; k < 4; k++)
        arb_div_ui(out + k, y + (m->number + 16 * k) % 64, 64 * ((ulong)position + 1), bits);
    sinkproof_truth_yarn_clear(&yarn);
    _arb_vec_clear(in, 64);
    _arb_vec_clear(y, 64);
}
static void rotate_mpfr(arb_ptr out, instance m, slong bits) {
    double x[64];
    drawn_vector(m, x);
    sinkproof_config config = rope_config(m);
    mpfr_ptr in = mpfr_vector_from(x, 64), y = truth_mpfr_vector(64, 2 * bits);
    mpfr_ptr freq = truth_mpfr_vector(33, 2 * bits), four = truth_mpfr_vector(4, 2 * bits);
    truth_mpfr_yarn(freq, freq + 32, &config, 2 * bits);
    truth_mpfr_rope(y, in, 32, drawn_position(m), freq, freq + 32, 2 * bits);
    for (size_t k = 0; k < 4; k++)
        mpfr_div_ui(four + k, y + (m->number + 16 * k) % 64, 64 * ((ulong)drawn_position(m) + 1),
                    MPFR_RNDN);
    balls_from_mpfr(out, four, 4, bits);
    truth_mpfr_vector_free(in, 64);
    truth_mpfr_vector_free(y, 64);
    truth_mpfr_vector_free(freq, 33);
}
//< rope.rotate

//> rope.orthogonal
// (R^i q) (R^j k) against (R^(i-j) q) k c, j = 3; lengths against c times the length. Divided by
// the position as above.
static void rotate_vector(arb_ptr y, instance m, const double *x_d, int32_t position, slong bits) {
    sinkproof_config config = rope_config(m);
    sinkproof_truth_yarn yarn;
    arb_ptr in = _arb_vec_init(64);
    for (size_t d = 0; d < 64; d++) arb_set_d(in + d, x_d[d % SINKPROOF_BALL_DIM]);
    sinkproof_truth_yarn_init(&yarn, &config, bits);
    sinkproof_truth_rope(y, in, 1, 1, &position, &yarn, bits);
    sinkproof_truth_yarn_clear(&yarn);
    _arb_vec_clear(in, 64);
}
static void rotated_dot_or_length(arb_ptr out, instance m, int32_t i, int32_t j, bool length,
                                  slong bits) {
    arb_ptr q = _arb_vec_init(64), k = _arb_vec_init(64);
    rotate_vector(q, m, m->q_d, i, bits);
    rotate_vector(k, m, length ? m->q_d : m->k_star_d, length ? i : j, bits);
    arb_dot(out, NULL, 0, q, 1, k, 1, 64, bits);
    arb_div_ui(out, out, 65536 * ((ulong)drawn_position(m) + 4), bits);
    _arb_vec_clear(q, 64);
    _arb_vec_clear(k, 64);
}
static void rotated_products(arb_ptr out, instance m, slong bits) {
    int32_t distance = drawn_position(m);
    rotated_dot_or_length(out, m, distance + 3, 3, false, bits);
    rotated_dot_or_length(out + 1, m, distance, 0, true, bits);
    arb_zero(out + 2);
    arb_zero(out + 3);
}
// c^2 (sum (q_d k_d + q_e k_e) cos + (q_d k_e - q_e k_d) sin) of the distance's angle, e = d + 32,
// and c^2 |q|^2, c the concentration.
static void relative_products(arb_ptr out, instance m, slong bits) {
    sinkproof_config config = rope_config(m);
    sinkproof_truth_yarn yarn;
    arb_t s, c, t;
    balls_init(s, c, t);
    sinkproof_truth_yarn_init(&yarn, &config, bits);
    _arb_vec_zero(out, 4);
    for (size_t d = 0; d < 32; d++) {
        size_t a = d % SINKPROOF_BALL_DIM, b = (d + 32) % SINKPROOF_BALL_DIM;
        const double *q = m->q_d, *k = m->k_star_d; // products are exact: all numbers are short
        arb_mul_ui(t, yarn.inv_freq_d + d, (ulong)drawn_position(m), bits);
        arb_sin_cos(s, c, t, bits);
        arb_set_d(t, q[a] * k[a] + q[b] * k[b]);
        arb_addmul(out, t, c, bits);
        arb_set_d(t, q[a] * k[b] - q[b] * k[a]);
        arb_addmul(out, t, s, bits);
        arb_set_d(t, q[a] * q[a] + q[b] * q[b]);
        arb_add(out + 1, out + 1, t, bits);
    }
    arb_sqr(t, yarn.concentration, bits);
    arb_div_ui(t, t, 65536 * ((ulong)drawn_position(m) + 4), bits);
    for (size_t k = 0; k < 2; k++) arb_mul(out + k, out + k, t, bits);
    sinkproof_truth_yarn_clear(&yarn);
    balls_clear(s, c, t);
}
//< rope.orthogonal

//> router.topk
// Every chosen logit is above every other. Left: the largest logit that is not chosen; exactly k
// logits precede it (larger, or equal with a lower index), which is found by counting. Right: the
// smallest of those that the truth chose. A choice of fewer than k experts is above nothing.
static double router_logit(instance m, size_t e) { // and one expert that nobody chooses
    return e < m->n ? m->s_hj[e] : -1000;
}
static size_t experts_chosen(instance m) {
    return m->n < SINKPROOF_BALL_CHOSEN ? m->n : SINKPROOF_BALL_CHOSEN;
}
static void largest_rejected(arb_ptr out, instance m, slong bits) {
    (void)bits;
    for (size_t e = 0; e <= m->n; e++) {
        size_t before = 0;
        double g = router_logit(m, e);
        for (size_t o = 0; o <= m->n; o++)
            before += router_logit(m, o) > g || (router_logit(m, o) == g && o < e);
        if (before == experts_chosen(m)) arb_set_d(out, g);
    }
}
static void least_chosen(arb_ptr out, instance m, slong bits) {
    size_t chosen_k[SINKPROOF_BALL_CHOSEN], k = experts_chosen(m);
    arb_ptr g = _arb_vec_init((slong)m->n + 1);
    arb_t margin;
    arb_init(margin);
    for (size_t e = 0; e <= m->n; e++) arb_set_d(g + e, router_logit(m, e));
    sinkproof_truth_topk(chosen_k, margin, g, m->n + 1, k, bits);
    arb_pos_inf(out);
    for (size_t at = 0; at < k; at++) {
        arb_min(out, out, g + chosen_k[at], bits);
        for (size_t other = 0; other < at; other++)
            if (chosen_k[other] == chosen_k[at]) arb_neg_inf(out);
    }
    _arb_vec_clear(g, (slong)m->n + 1);
    arb_clear(margin);
}
//< router.topk

#define KEYS      SINKPROOF_BALL_EQUAL, BALL_KEYS
#define FOUR      SINKPROOF_BALL_EQUAL, BALL_FOUR
#define LESS_HEAD SINKPROOF_BALL_LESS, BALL_HEAD

const sinkproof_identity identities_model[] = {
    {"rmsnorm.forward", KEYS, "the ball", "MPFR at twice the bits", rmsnorm_ball, rmsnorm_mpfr,
     PLAIN},
    {"swiglu.clamped", FOUR, "the ball", "MPFR at twice the bits", swiglu_ball, swiglu_mpfr, PLAIN},
    {"yarn.ramp", FOUR, "the ball", "MPFR at twice the bits", yarn_ball, yarn_mpfr, PLAIN},
    {"yarn.concentration", FOUR, "the ball", "MPFR at twice the bits", yarn_ball, yarn_mpfr, PLAIN},
    {"yarn.truncate", FOUR, "the ball, both modes", "MPFR at twice the bits", yarn_ball, yarn_mpfr,
     PLAIN},
    {"rope.rotate", FOUR, "the ball", "MPFR at twice the bits", rotate_ball, rotate_mpfr, PLAIN},
    {"rope.orthogonal", FOUR, "R^i q . R^j k and |R^i q|^2", "R^(i-j) q . R^0 k and |R^0 q|^2",
     rotated_products, relative_products, PLAIN},
    {"router.topk", SINKPROOF_BALL_LESS, BALL_ONE, "the largest logit that is not chosen",
     "the least chosen one", largest_rejected, least_chosen, PLAIN},
    {"rmsnorm.spike", LESS_HEAD, "|y - kept| at a spike", "rho^2 / 2 |kept|", spikes_moved,
     spikes_may_move, PLAIN},
    {"rmsnorm.spike", LESS_HEAD, "|y| beside the spikes", "sqrt(d) |h w| / |h_S|", rest_after_norm,
     bound_of_rest, PLAIN},
    {0},
};
