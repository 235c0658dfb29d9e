// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The value-bias identity and the gate from one key to a full context. The scores of one head are
// random, and their exponentials are enclosed once; for each length n and each sink logit b
//     sum_j alpha_j (x_j + b^V) = sum_j alpha_j x_j + (1 - alpha_s) b^V,   per element of a head
//     1 - alpha_s = sigmoid(LSE - b),   o_sink = sigmoid(LSE - b) o_softmax
// with alpha_j = e^(s_j) / (e^b + S_n), every quotient and every sum computed anew.
#include "proofs/bounds/worst.h"
#include "proofs/truth/identities_internal.h"

#include <math.h>

typedef struct cell {
    arb_ptr alpha_j, left, right, plain; // [n], [d'] each
    arb_t all, alpha_s, gate, t;
} cell;

// t: scratch. Each vector except alpha_j is as long as a head's width.
static void cell_init(cell *c, size_t n) {
    c->alpha_j = _arb_vec_init((slong)n);
    c->left = _arb_vec_init(SINKPROOF_BALL_DIM);
    c->right = _arb_vec_init(SINKPROOF_BALL_DIM);
    c->plain = _arb_vec_init(SINKPROOF_BALL_DIM);
    balls_init(c->all, c->alpha_s, c->gate, c->t);
}

static void cell_clear(cell *c, size_t n) {
    _arb_vec_clear(c->alpha_j, (slong)n);
    _arb_vec_clear(c->left, SINKPROOF_BALL_DIM);
    _arb_vec_clear(c->right, SINKPROOF_BALL_DIM);
    _arb_vec_clear(c->plain, SINKPROOF_BALL_DIM);
    balls_clear(c->all, c->alpha_s, c->gate, c->t);
}

static void judge(const arb_t left, const arb_t right, double allowed_log2, double size,
                  double *share, double *radius_log2, size_t *broken) {
    double radius =
        fmax(sinkproof_truth_radius_log2(left), sinkproof_truth_radius_log2(right)) - log2(size);
    double part = exp2(radius - allowed_log2);
    *broken +=
        !(arb_is_finite(left) && arb_is_finite(right) && arb_overlaps(left, right) && part <= 1);
    *share = sinkproof_worst(*share, part);
    if (!(radius <= *radius_log2)) *radius_log2 = radius;
}

// 1 - alpha_s and sigmoid(log S - b).
static void gate_sides(cell *c, arb_ptr one_minus, const arb_t sum, double b, slong bits) {
    arb_sub_ui(one_minus, c->alpha_s, 1, bits);
    arb_neg(one_minus, one_minus);
    if (b == -INFINITY) {
        arb_one(c->gate);
        return;
    }
    arb_log(c->gate, sum, bits);
    arb_set_d(c->t, b);
    arb_sub(c->gate, c->t, c->gate, bits);
    arb_exp(c->gate, c->gate, bits);
    arb_add_ui(c->gate, c->gate, 1, bits);
    arb_inv(c->gate, c->gate, bits);
}

static void try_cell(cell *c, sinkproof_ball_instance *m, arb_srcptr e_j, const arb_t sum,
                     const arb_t e_b, slong bits, sinkproof_grid_outcome *outcome) {
    double b = m->b_h[0];
    sinkproof_identity head = {.size = BALL_HEAD}, one = {.size = BALL_ONE};
    double allowed = identity_allowed_log2(&one, m, bits);
    double size = identity_allowance_unit(&head, m);
    size_t broken = 0;
    arb_add(c->all, sum, e_b, bits);
    for (size_t j = 0; j < m->n; j++) arb_div(c->alpha_j + j, e_j + j, c->all, bits);
    arb_div(c->alpha_s, e_b, c->all, bits);
    arb_t one_minus;
    arb_init(one_minus);
    gate_sides(c, one_minus, sum, b, bits);
    judge(one_minus, c->gate, allowed, 1, &outcome->gate_share, &outcome->gate_radius_log2,
          &broken);
    ball_weighted(c->left, m, 0, c->alpha_j, m->bv_gd, bits);
    ball_weighted(c->plain, m, 0, c->alpha_j, NULL, bits);
    ball_weighted(c->right, m, 0, e_j, NULL, bits); // S times o_softmax
    for (size_t d = 0; d < m->dim; d++) {
        arb_div(c->right + d, c->right + d, sum, bits);
        arb_mul(c->right + d, c->right + d, c->gate, bits);
        judge(c->plain + d, c->right + d, allowed, size, &outcome->gate_share,
              &outcome->gate_radius_log2, &broken);
        arb_set_d(c->t, m->bv_gd[d]);
        arb_mul(c->t, c->t, one_minus, bits);
        arb_add(c->plain + d, c->plain + d, c->t, bits);
        judge(c->left + d, c->plain + d, allowed, size, &outcome->mass_share,
              &outcome->mass_radius_log2, &broken);
    }
    arb_clear(one_minus);
    outcome->cases++;
    outcome->broken += broken > 0;
}

sinkproof_grid_outcome sinkproof_identity_grid(size_t counts, const size_t *n_k, size_t sinks,
                                               const double *b_k, double spread, uint64_t seed,
                                               slong bits) {
    sinkproof_grid_outcome outcome = {.mass_radius_log2 = -INFINITY, .gate_radius_log2 = -INFINITY};
    size_t most = 0;
    for (size_t k = 0; k < counts; k++) most = n_k[k] > most ? n_k[k] : most;
    sinkproof_ball_instance whole =
        sinkproof_ball_draw((sinkproof_ball_ranges){most, 1, spread, 0}, seed, 0);
    if (whole.dim > 2) whole.dim = 2; // two elements of the head are as good as four
    arb_ptr e = _arb_vec_init((slong)most);
    cell c;
    cell_init(&c, most);
    arb_t sum, e_b;
    balls_init(sum, e_b);
    ball_exps(e, &whole, 0, bits);
    for (size_t k = 0; k < counts; k++) {
        sinkproof_ball_instance m = whole;
        m.n = n_k[k];
        ball_sum(sum, e, m.n, bits);
        for (size_t s = 0; s < sinks; s++) {
            m.b_h[0] = b_k[s];
            ball_exp_sink(e_b, &m, 0, bits);
            try_cell(&c, &m, e, sum, e_b, bits, &outcome);
        }
    }
    _arb_vec_clear(e, (slong)most);
    cell_clear(&c, most);
    balls_clear(sum, e_b);
    sinkproof_ball_clear(&whole);
    return outcome;
}

// The running form: sums over the first n keys are updated from key to key, so that
//     (T + S b^V) / (e^b + S) = T / (e^b + S) + (1 - alpha_s) b^V,  T = sum_j e^(s_j) x_j,
// and the gate follows from log S.
typedef struct running {
    size_t n;
    double size; // of an element of the head
    arb_t s, e;  // S, and scratch
    arb_ptr t_d;
} running;

static void running_init(running *r, const sinkproof_ball_instance *m) {
    sinkproof_identity head = {.size = BALL_HEAD};
    r->n = 0;
    r->size = identity_allowance_unit(&head, m);
    balls_init(r->s, r->e);
    r->t_d = _arb_vec_init(SINKPROOF_BALL_DIM);
}

static void running_clear(running *r) {
    balls_clear(r->s, r->e);
    _arb_vec_clear(r->t_d, SINKPROOF_BALL_DIM);
}

static void add_key(running *r, const sinkproof_ball_instance *m, arb_ptr t, slong bits) {
    arb_set_d(r->e, m->s_hj[r->n]);
    arb_exp(r->e, r->e, bits);
    arb_add(r->s, r->s, r->e, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(t, m->x_gjd[r->n * m->dim + d]);
        arb_addmul(r->t_d + d, r->e, t, bits);
    }
    r->n++;
}

// One length under one sink logit. argument: 4 T + 32 for the logit, the part of the allowance
// besides 3 n.
static void try_running(cell *c, const sinkproof_ball_instance *m, const running *r,
                        const arb_t e_b, double argument, slong bits,
                        sinkproof_grid_outcome *outcome) {
    double allowed_log2 = log2(1.01 * (argument + 3 * (double)r->n)) + 1 - (double)bits;
    size_t broken = 0;
    arb_t one_minus;
    arb_init(one_minus);
    arb_add(c->all, r->s, e_b, bits);
    arb_div(c->alpha_s, e_b, c->all, bits);
    gate_sides(c, one_minus, r->s, m->b_h[0], bits);
    judge(one_minus, c->gate, allowed_log2, 1, &outcome->gate_share, &outcome->gate_radius_log2,
          &broken);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(c->t, m->bv_gd[d]);
        arb_mul(c->left + d, c->t, r->s, bits);
        arb_add(c->left + d, c->left + d, r->t_d + d, bits);
        arb_div(c->left + d, c->left + d, c->all, bits);
        arb_div(c->right + d, r->t_d + d, c->all, bits);
        arb_addmul(c->right + d, c->t, one_minus, bits);
        judge(c->left + d, c->right + d, allowed_log2, r->size, &outcome->mass_share,
              &outcome->mass_radius_log2, &broken);
    }
    arb_clear(one_minus);
    outcome->cases++;
    outcome->broken += broken > 0;
}

enum { MOST_SINKS = 64 };

// 4 T + 32 for the sink logit of m, in a row of `most` keys.
static double argument_of(sinkproof_ball_instance *m, size_t most, slong bits) {
    sinkproof_identity head = {.size = BALL_HEAD};
    double k = exp2(identity_allowed_log2(&head, m, bits) + (double)bits - 1);
    return k / 1.01 - 3 * (double)most;
}

sinkproof_grid_outcome identity_every(size_t most, size_t sinks, const double *b_k, double spread,
                                      uint64_t seed, slong bits) {
    sinkproof_grid_outcome outcome = {.mass_radius_log2 = -INFINITY, .gate_radius_log2 = -INFINITY};
    sinkproof_ball_instance m =
        sinkproof_ball_draw((sinkproof_ball_ranges){most, 1, spread, 0}, seed, 0);
    if (m.dim > 2) m.dim = 2;
    double argument[MOST_SINKS];
    arb_ptr e_b = _arb_vec_init((slong)sinks);
    cell c;
    running r;
    cell_init(&c, 1);
    running_init(&r, &m);
    for (size_t s = 0; s < sinks && s < MOST_SINKS; s++) {
        m.b_h[0] = b_k[s];
        ball_exp_sink(e_b + s, &m, 0, bits);
        argument[s] = argument_of(&m, most, bits);
    }
    while (r.n < most) {
        add_key(&r, &m, c.t, bits);
        for (size_t s = 0; s < sinks && s < MOST_SINKS; s++) {
            m.b_h[0] = b_k[s];
            try_running(&c, &m, &r, e_b + s, argument[s], bits, &outcome);
        }
    }
    _arb_vec_clear(e_b, (slong)sinks);
    running_clear(&r);
    cell_clear(&c, 1);
    sinkproof_ball_clear(&m);
    return outcome;
}

void truth_mpfr_mass_and_gate(mpfr_ptr out, const sinkproof_ball_instance *m, mpfr_prec_t bits) {
    mpfr_ptr z = truth_mpfr_vector(m->n, 53), alpha = truth_mpfr_vector(m->n + 1, bits);
    mpfr_t b, lse;
    mpfr_init2(b, 53);
    mpfr_init2(lse, bits);
    for (size_t j = 0; j < m->n; j++) mpfr_set_d(z + j, m->s_hj[j], MPFR_RNDN);
    mpfr_set_d(b, m->b_h[0], MPFR_RNDN);
    truth_mpfr_softmax_sink(alpha, alpha + m->n, z, m->n, b, bits);
    mpfr_set_zero(out, 1);
    for (size_t j = 0; j < m->n; j++) mpfr_add(out, out, alpha + j, MPFR_RNDN);
    mpfr_set_zero(lse, 1); // out + 1 = 1 / (1 + e^(b - log sum e^s))
    for (size_t j = 0; j < m->n; j++) {
        mpfr_exp(alpha, z + j, MPFR_RNDN);
        mpfr_add(lse, lse, alpha, MPFR_RNDN);
    }
    mpfr_log(lse, lse, MPFR_RNDN);
    mpfr_sub(lse, b, lse, MPFR_RNDN);
    mpfr_exp(lse, lse, MPFR_RNDN);
    mpfr_add_ui(lse, lse, 1, MPFR_RNDN);
    mpfr_ui_div(out + 1, 1, lse, MPFR_RNDN);
    mpfr_clear(b);
    mpfr_clear(lse);
    truth_mpfr_vector_free(z, m->n);
    truth_mpfr_vector_free(alpha, m->n + 1);
}
