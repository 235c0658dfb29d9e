// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The four terms of a score in balls (chapter 31). Matrices: W_K of head h has the rows of W^O_h as
// columns, over 16, and W_Q the same in reverse order; x_j = k_j / 24, b_Q = (h + 1) v* / 32, b_K =
// b^V / 8. These small numbers keep every sum of sizes below that of a layer's output. Scores: a_t
// = q / 8, b_Q = +-q / 8, c_j = k_j, b_K = k*, so that no exponential has an argument above T / 4.
#include "proofs/truth/identities_internal.h"

#include <math.h>

typedef const sinkproof_ball_instance *instance;
enum { DIM = SINKPROOF_BALL_DIM };

static void dot(arb_t out, arb_srcptr x, arb_srcptr y, size_t n, slong bits) {
    arb_dot(out, NULL, 0, x, 1, y, 1, (slong)n, bits);
}
static void set_quotient(arb_t out, double x, ulong divisor, slong bits) {
    arb_set_d(out, x);
    arb_div_ui(out, out, divisor, bits);
}

// ---- matrices ----------------------------------------------------------------------------------

typedef struct layer {
    arb_ptr x_c, a_r, c_r, b_q, b_k, w_c; // x_j, x_t W_Q, x_j W_K, the biases, a column of W_K
} layer;

static layer layer_init(void) {
    arb_ptr at = _arb_vec_init(6 * DIM);
    return (layer){at, at + DIM, at + 2 * DIM, at + 3 * DIM, at + 4 * DIM, at + 5 * DIM};
}
static void layer_clear(layer *l) {
    _arb_vec_clear(l->x_c, 6 * DIM);
}
static void set_x(layer *l, instance m, size_t j, slong bits) {
    for (size_t c = 0; c < m->hidden; c++)
        set_quotient(l->x_c + c, m->k_jd[j * m->dim + c % m->dim], 24, bits);
}
static void set_column(layer *l, instance m, size_t h, size_t r, slong bits) {
    for (size_t c = 0; c < m->hidden; c++)
        set_quotient(l->w_c + c, m->wo_hdc[(h * m->dim + r) * m->hidden + c], 16, bits);
}
static void set_head(layer *l, instance m, size_t h, size_t t, size_t j, slong bits) {
    size_t g = h / (m->heads / m->kv_heads);
    for (size_t r = 0; r < m->dim; r++) {
        set_quotient(l->b_q + r, (double)(h + 1) * m->star_d[r], 32, bits);
        set_quotient(l->b_k + r, m->bv_gd[g * m->dim + r], 8, bits);
        set_x(l, m, t, bits);
        set_column(l, m, h, m->dim - 1 - r, bits);
        dot(l->a_r + r, l->x_c, l->w_c, m->hidden, bits);
        set_x(l, m, j, bits);
        set_column(l, m, h, r, bits);
        dot(l->c_r + r, l->x_c, l->w_c, m->hidden, bits);
    }
}

//> gpt2.expand
// Head 0, entry e: query e + 1, key e, both modulo n.
static void products_of_vectors(arb_ptr out, instance m, slong bits) {
    layer l = layer_init();
    for (size_t e = 0; e < m->hidden; e++) {
        set_head(&l, m, 0, (e + 1) % m->n, e % m->n, bits);
        _arb_vec_add(l.a_r, l.a_r, l.b_q, (slong)m->dim, bits);
        _arb_vec_add(l.c_r, l.c_r, l.b_k, (slong)m->dim, bits);
        dot(out + e, l.a_r, l.c_r, m->dim, bits);
    }
    layer_clear(&l);
}
static void four_terms(arb_ptr out, instance m, slong bits) {
    layer l = layer_init();
    arb_t term;
    arb_init(term);
    for (size_t e = 0; e < m->hidden; e++) {
        set_head(&l, m, 0, (e + 1) % m->n, e % m->n, bits);
        dot(out + e, l.a_r, l.c_r, m->dim, bits);
        dot(term, l.a_r, l.b_k, m->dim, bits);
        arb_add(out + e, out + e, term, bits);
        dot(term, l.b_q, l.c_r, m->dim, bits);
        arb_add(out + e, out + e, term, bits);
        dot(term, l.b_q, l.b_k, m->dim, bits);
        arb_add(out + e, out + e, term, bits);
    }
    arb_clear(term);
    layer_clear(&l);
}
//< gpt2.expand

//> gpt2.delta
// q_t k_j - a_t k_j for query e + 1 and key e, and Delta_e + b_Q b_K, which does not depend on the
// query.
static void what_the_bias_adds(arb_ptr out, instance m, slong bits) {
    layer l = layer_init();
    arb_t without;
    arb_init(without);
    for (size_t e = 0; e < m->hidden; e++) {
        set_head(&l, m, 0, (e + 1) % m->n, e % m->n, bits);
        _arb_vec_add(l.c_r, l.c_r, l.b_k, (slong)m->dim, bits);
        dot(without, l.a_r, l.c_r, m->dim, bits);
        _arb_vec_add(l.a_r, l.a_r, l.b_q, (slong)m->dim, bits);
        dot(out + e, l.a_r, l.c_r, m->dim, bits);
        arb_sub(out + e, out + e, without, bits);
    }
    arb_clear(without);
    layer_clear(&l);
}
static void delta_and_constant(arb_ptr out, instance m, slong bits) {
    layer l = layer_init();
    for (size_t e = 0; e < m->hidden; e++) {
        set_head(&l, m, 0, 0, e % m->n, bits);
        _arb_vec_add(l.c_r, l.c_r, l.b_k, (slong)m->dim, bits);
        dot(out + e, l.b_q, l.c_r, m->dim, bits);
    }
    layer_clear(&l);
}
//< gpt2.delta

//> gpt2.gamma gpt2.unsplit
// gamma_c = sum_r b_r W_rc of one head
static void head_gamma(arb_ptr gamma_c, instance m, size_t h, slong bits) {
    layer l = layer_init();
    set_head(&l, m, h, 0, 0, bits);
    _arb_vec_zero(gamma_c, (slong)m->hidden);
    for (size_t r = 0; r < m->dim; r++) {
        set_column(&l, m, h, r, bits);
        _arb_vec_scalar_addmul(gamma_c, l.w_c, (slong)m->hidden, l.b_q + r, bits);
    }
    layer_clear(&l);
}
// b_Q (x_j W_K)^T over the heads 0 ... heads - 1, entry e: key e modulo n.
static void deltas(arb_ptr out, instance m, size_t heads, slong bits) {
    layer l = layer_init();
    _arb_vec_zero(out, (slong)m->hidden);
    for (size_t e = 0; e < m->hidden; e++)
        for (size_t h = 0; h < heads; h++) {
            set_head(&l, m, h, 0, e % m->n, bits);
            for (size_t r = 0; r < m->dim; r++) arb_addmul(out + e, l.b_q + r, l.c_r + r, bits);
        }
    layer_clear(&l);
}
static void by_gamma(arb_ptr out, instance m, size_t heads, slong bits) {
    layer l = layer_init();
    arb_ptr gamma = _arb_vec_init(DIM);
    arb_t one;
    arb_init(one);
    _arb_vec_zero(out, (slong)m->hidden);
    for (size_t h = 0; h < heads; h++) {
        head_gamma(gamma, m, h, bits);
        for (size_t e = 0; e < m->hidden; e++) {
            set_x(&l, m, e % m->n, bits);
            dot(one, gamma, l.x_c, m->hidden, bits);
            arb_add(out + e, out + e, one, bits);
        }
    }
    arb_clear(one);
    _arb_vec_clear(gamma, DIM);
    layer_clear(&l);
}
//< gpt2.gamma gpt2.unsplit

//> gpt2.gamma
static void deltas_of_head(arb_ptr out, instance m, slong bits) {
    deltas(out, m, 1, bits);
}
static void by_gamma_of_head(arb_ptr out, instance m, slong bits) {
    by_gamma(out, m, 1, bits);
}
//< gpt2.gamma

//> gpt2.unsplit
static void deltas_before_the_split(arb_ptr out, instance m, slong bits) {
    deltas(out, m, m->heads, bits);
}
static void sum_over_heads(arb_ptr out, instance m, slong bits) {
    by_gamma(out, m, m->heads, bits);
}
//< gpt2.unsplit

// ---- scores ------------------------------------------------------------------------------------

typedef struct row {
    arb_ptr a_d, b_q, c_d, b_k;
    arb_t root, constants, b; // sqrt(d'), (a_t b_K + b_Q b_K) / sqrt(d'), a sink's logit
} row;

static row row_init(instance m, slong bits) {
    arb_ptr at = _arb_vec_init(4 * DIM);
    row s = {.a_d = at, .b_q = at + DIM, .c_d = at + 2 * DIM, .b_k = at + 3 * DIM};
    balls_init(s.root, s.constants, s.b);
    for (size_t d = 0; d < m->dim; d++) {
        arb_set_d(s.a_d + d, m->q_d[d] / 8);
        arb_set_d(s.b_q + d, copysign(m->q_d[d] / 8, m->star_d[d]));
        arb_set_d(s.b_k + d, m->k_star_d[d]);
    }
    arb_sqrt_ui(s.root, m->dim, bits);
    dot(s.b, s.a_d, s.b_k, m->dim, bits);
    dot(s.constants, s.b_q, s.b_k, m->dim, bits);
    arb_add(s.constants, s.constants, s.b, bits);
    arb_div(s.constants, s.constants, s.root, bits);
    return s;
}
static void row_clear(row *s) {
    _arb_vec_clear(s->a_d, 4 * DIM);
    balls_clear(s->root, s->constants, s->b);
}
// As one product: (a_t + [b_Q]) (c_j + b_K) / sqrt(d') for every key, softmax with the sink b:
// alpha_j [n], alpha_s.
static void weights_of_product(arb_ptr out, row *s, instance m, bool b_q, slong bits) {
    arb_ptr q = _arb_vec_init(DIM), z = _arb_vec_init((slong)m->n);
    _arb_vec_set(q, s->a_d, (slong)m->dim);
    if (b_q) _arb_vec_add(q, q, s->b_q, (slong)m->dim, bits);
    for (size_t j = 0; j < m->n; j++) {
        for (size_t d = 0; d < m->dim; d++) {
            arb_set_d(s->c_d + d, m->k_jd[j * m->dim + d]);
            arb_add(s->c_d + d, s->c_d + d, s->b_k + d, bits);
        }
        dot(z + j, q, s->c_d, m->dim, bits);
        arb_div(z + j, z + j, s->root, bits);
    }
    sinkproof_truth_softmax_sink(out, out + m->n, z, m->n, s->b, bits);
    _arb_vec_clear(q, DIM);
    _arb_vec_clear(z, (slong)m->n);
}

// The other side, term by term: (a_t c_j + b_Q c_j) / sqrt(d') for each key, and b_Q c_j alone.
static void two_terms(arb_t both, arb_t delta, row *s, instance m, size_t j, slong bits) {
    for (size_t d = 0; d < m->dim; d++) arb_set_d(s->c_d + d, m->k_jd[j * m->dim + d]);
    dot(both, s->a_d, s->c_d, m->dim, bits);
    dot(delta, s->b_q, s->c_d, m->dim, bits);
    arb_add(both, both, delta, bits);
    arb_div(both, both, s->root, bits);
    arb_div(delta, delta, s->root, bits);
}
// e^(terms 1 and 3) over their sum and e^b; optionally e^(-b_Q c_j) for every key.
static void weights_of_two(arb_ptr out, arb_ptr faded_j, row *s, instance m, slong bits) {
    arb_t delta, all;
    balls_init(delta, all);
    for (size_t j = 0; j < m->n; j++) {
        two_terms(out + j, delta, s, m, j, bits);
        arb_exp(out + j, out + j, bits);
        if (faded_j == NULL) continue;
        arb_neg(delta, delta);
        arb_exp(faded_j + j, delta, bits);
    }
    arb_zero(out + m->n);
    if (arb_is_finite(s->b)) arb_exp(out + m->n, s->b, bits);
    ball_sum(all, out, m->n + 1, bits);
    _arb_vec_scalar_div(out, out, (slong)m->n + 1, all, bits);
    balls_clear(delta, all);
}
static void remove_sink(row *s) {
    arb_set_d(s->b, -INFINITY);
}

//> gpt2.irrelevant
static void all_without_sink(arb_ptr out, instance m, slong bits) {
    row s = row_init(m, bits);
    remove_sink(&s);
    weights_of_product(out, &s, m, true, bits);
    row_clear(&s);
}
static void two_without_sink(arb_ptr out, instance m, slong bits) {
    row s = row_init(m, bits);
    remove_sink(&s);
    weights_of_two(out, NULL, &s, m, bits);
    row_clear(&s);
}
//< gpt2.irrelevant

//> terms.sink
static void all_beside_sink(arb_ptr out, instance m, slong bits) {
    row s = row_init(m, bits);
    weights_of_product(out, &s, m, true, bits);
    row_clear(&s);
}
static void two_beside_another(arb_ptr out, instance m, slong bits) { // b - c_t
    row s = row_init(m, bits);
    arb_sub(s.b, s.b, s.constants, bits);
    weights_of_two(out, NULL, &s, m, bits);
    row_clear(&s);
}
// alpha_s for the scores s + c, c > 0, by the truth of the stage; and for s, from its exponentials.
static void sink_of_raised(arb_ptr out, instance m, slong bits) {
    arb_ptr z = _arb_vec_init((slong)m->n), w = _arb_vec_init((slong)m->n + 1);
    arb_t b;
    arb_init(b);
    arb_set_d(b, fabs(m->star_d[0]) / 8);
    for (size_t j = 0; j < m->n; j++) {
        arb_set_d(z + j, m->s_hj[j]);
        arb_add(z + j, z + j, b, ARF_PREC_EXACT);
    }
    arb_set_d(b, m->b_h[0]);
    sinkproof_truth_softmax_sink(w, w + m->n, z, m->n, b, bits);
    arb_set(out, w + m->n);
    arb_clear(b);
    _arb_vec_clear(z, (slong)m->n);
    _arb_vec_clear(w, (slong)m->n + 1);
}
static void sink_as_it_is(arb_ptr out, instance m, slong bits) {
    arb_ptr e = _arb_vec_init((slong)m->n + 1);
    ball_exps(e, m, 0, bits);
    ball_exp_sink(e + m->n, m, 0, bits);
    ball_sum(out, e, m->n + 1, bits);
    arb_div(out, e + m->n, out, bits);
    _arb_vec_clear(e, (slong)m->n + 1);
}
//< terms.sink

//> terms.zeroed
static void weights_with_zeroed_bias(arb_ptr out, instance m, bool sink, slong bits) {
    row s = row_init(m, bits);
    if (!sink) remove_sink(&s);
    weights_of_product(out, &s, m, false, bits);
    row_clear(&s);
}
// The weights with b_Q, each key's times e^-Delta_j, and optionally the sink's times e^-(b_Q b_K).
// All four terms give the same weights as terms 1 and 3 with the sink b - c_t (terms.sink).
static void weights_renormalised(arb_ptr out, instance m, bool sink, slong bits) {
    row s = row_init(m, bits);
    arb_ptr faded = _arb_vec_init((slong)m->n);
    arb_t e;
    arb_init(e);
    if (!sink) remove_sink(&s);
    if (sink) arb_sub(s.b, s.b, s.constants, bits);
    weights_of_two(out, faded, &s, m, bits);
    dot(e, s.b_q, s.b_k, m->dim, bits);
    arb_div(e, e, s.root, bits);
    arb_neg(e, e);
    arb_exp(e, e, bits);
    for (size_t j = 0; j < m->n; j++) {
        arb_mul(out + j, out + j, faded + j, bits);
        if (sink) arb_mul(out + j, out + j, e, bits);
    }
    ball_sum(e, out, m->n + 1, bits);
    _arb_vec_scalar_div(out, out, (slong)m->n + 1, e, bits);
    arb_clear(e);
    _arb_vec_clear(faded, (slong)m->n);
    row_clear(&s);
}
static void zeroed_without_sink(arb_ptr out, instance m, slong bits) {
    weights_with_zeroed_bias(out, m, false, bits);
}
static void renormalised_without_sink(arb_ptr out, instance m, slong bits) {
    weights_renormalised(out, m, false, bits);
}
static void zeroed_beside_sink(arb_ptr out, instance m, slong bits) {
    weights_with_zeroed_bias(out, m, true, bits);
}
static void renormalised_beside_sink(arb_ptr out, instance m, slong bits) {
    weights_renormalised(out, m, true, bits);
}
//< terms.zeroed

// a_t, b_Q, c_j, b_K with four coordinates over 64; query at n, key at 0, 1, n - 1 and n.
static void term_vectors(arb_ptr v, instance m) {
    for (size_t c = 0; c < DIM; c++) {
        arb_set_d(v + c, m->q_d[c] / 64);
        arb_set_d(v + DIM + c, m->star_d[c] / 64);
        arb_set_d(v + 2 * DIM + c, m->k_star_d[c] / 64);
        arb_set_d(v + 3 * DIM + c, m->bv_gd[c] / 64);
    }
}
static sinkproof_truth_yarn rotation_table(double concentration,
                                           slong bits) { // frequencies 1, 1/100
    sinkproof_truth_yarn turn = {.half = DIM / 2, .inv_freq_d = _arb_vec_init(DIM / 2)};
    arb_init(turn.concentration);
    arb_set_d(turn.concentration, concentration);
    arb_one(turn.inv_freq_d);
    set_quotient(turn.inv_freq_d + 1, 1, 100, bits);
    return turn;
}
static void rotation_table_clear(sinkproof_truth_yarn *turn) {
    arb_clear(turn->concentration);
    _arb_vec_clear(turn->inv_freq_d, DIM / 2);
}
static int32_t key_position(instance m, size_t e) {
    return (int32_t[]){0, 1, (int32_t)m->n - 1, (int32_t)m->n}[e];
}

//> terms.rotated
static void scores_turned_whole(arb_ptr out, instance m, slong bits) {
    arb_ptr v = _arb_vec_init(6 * DIM), q_n = v + 4 * DIM, k_j = v + 5 * DIM;
    sinkproof_truth_yarn turn = rotation_table(1.25, bits);
    int32_t n = (int32_t)m->n;
    term_vectors(v, m);
    _arb_vec_add(v, v, v + DIM, DIM, bits);
    _arb_vec_add(v + 2 * DIM, v + 2 * DIM, v + 3 * DIM, DIM, bits);
    sinkproof_truth_rope(q_n, v, 1, 1, &n, &turn, bits);
    for (size_t e = 0; e < 4; e++) {
        int32_t j = key_position(m, e);
        sinkproof_truth_rope(k_j, v + 2 * DIM, 1, 1, &j, &turn, bits);
        dot(out + e, q_n, k_j, DIM, bits);
    }
    rotation_table_clear(&turn);
    _arb_vec_clear(v, 6 * DIM);
}
// m^2 times the sum of four terms, each key's side turned by j - t alone.
static void scores_turned_by_distance(arb_ptr out, instance m, slong bits) {
    arb_ptr v = _arb_vec_init(5 * DIM), k = v + 4 * DIM;
    sinkproof_truth_yarn turn = rotation_table(1, bits);
    arb_t term;
    arb_init(term);
    term_vectors(v, m);
    for (size_t e = 0; e < 4; e++) {
        int32_t distance = key_position(m, e) - (int32_t)m->n;
        arb_zero(out + e);
        for (size_t which = 0; which < 4; which++) {
            sinkproof_truth_rope(k, v + (2 + which / 2) * DIM, 1, 1, &distance, &turn, bits);
            dot(term, v + which % 2 * DIM, k, DIM, bits);
            arb_add(out + e, out + e, term, bits);
        }
        arb_set_d(term, 1.25 * 1.25);
        arb_mul(out + e, out + e, term, bits);
    }
    arb_clear(term);
    rotation_table_clear(&turn);
    _arb_vec_clear(v, 5 * DIM);
}
//< terms.rotated

#define HIDDEN SINKPROOF_BALL_EQUAL, BALL_HIDDEN
#define KEYS   SINKPROOF_BALL_EQUAL, BALL_KEYS
#define FOUR   SINKPROOF_BALL_EQUAL, BALL_FOUR
#define LESS   SINKPROOF_BALL_LESS, BALL_ONE

const sinkproof_identity identities_terms[] = {
    {"gpt2.expand", HIDDEN, "(x_t W_Q + b_Q) (x_j W_K + b_K)^T", "the sum of four terms",
     products_of_vectors, four_terms, PLAIN},
    {"gpt2.delta", HIDDEN, "q_t k_j^T - a_t k_j^T", "b_Q k_j^T, without t", what_the_bias_adds,
     delta_and_constant, PLAIN},
    {"gpt2.gamma", HIDDEN, "Delta_j", "gamma x_j^T", deltas_of_head, by_gamma_of_head, PLAIN},
    {"gpt2.irrelevant", KEYS, "softmax of all four terms", "of terms 1 and 3", all_without_sink,
     two_without_sink, KEYED},
    {"gpt2.unsplit", HIDDEN, "Delta_j of all heads at once", "the sum over heads of gamma x_j^T",
     deltas_before_the_split, sum_over_heads, PLAIN},
    {"terms.sink", KEYS, "all four terms beside a sink b", "terms 1 and 3 beside b - c_t",
     all_beside_sink, two_beside_another, KEYED},
    {"terms.sink", LESS, "alpha_s of s + c, c > 0", "alpha_s of s", sink_of_raised, sink_as_it_is,
     FINITE},
    {"terms.zeroed", KEYS, "b_Q = 0, no sink", "alpha_j e^-Delta_j, renormalised",
     zeroed_without_sink, renormalised_without_sink, KEYED},
    {"terms.zeroed", KEYS, "b_Q = 0 beside a sink",
     "alpha_j e^-(Delta_j + b_Q b_K) and alpha_s, renormalised", zeroed_beside_sink,
     renormalised_beside_sink, KEYED},
    {"terms.rotated", FOUR, "R_t (a_t + b_Q) . R_j (c_j + b_K)",
     "m^2 times four terms of the distance", scores_turned_whole, scores_turned_by_distance, PLAIN},
    {0},
};
