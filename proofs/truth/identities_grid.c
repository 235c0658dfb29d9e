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

static void judge_entry(const arb_t left, const arb_t right, double allowed_log2, double size,
                        double *share, double *radius_log2, size_t *broken) {
    double radius =
        fmax(sinkproof_truth_radius_log2(left), sinkproof_truth_radius_log2(right)) - log2(size);
    double part = exp2(radius - allowed_log2);
    *broken +=
        !(arb_is_finite(left) && arb_is_finite(right) && arb_overlaps(left, right) && part <= 1);
    *share = sinkproof_keep_worst(*share, part);
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
    judge_entry(one_minus, c->gate, allowed, 1, &outcome->gate_share, &outcome->gate_radius_log2,
                &broken);
    ball_weighted(c->left, m, 0, c->alpha_j, m->bv_gd, bits);
    ball_weighted(c->plain, m, 0, c->alpha_j, NULL, bits);
    ball_weighted(c->right, m, 0, e_j, NULL, bits); // S times o_softmax
    for (size_t d = 0; d < m->dim; d++) {
        arb_div(c->right + d, c->right + d, sum, bits);
        arb_mul(c->right + d, c->right + d, c->gate, bits);
        judge_entry(c->plain + d, c->right + d, allowed, size, &outcome->gate_share,
                    &outcome->gate_radius_log2, &broken);
        arb_set_d(c->t, m->bv_gd[d]);
        arb_mul(c->t, c->t, one_minus, bits);
        arb_add(c->plain + d, c->plain + d, c->t, bits);
        judge_entry(c->left + d, c->plain + d, allowed, size, &outcome->mass_share,
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
