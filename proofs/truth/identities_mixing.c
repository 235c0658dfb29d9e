// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums over paths against the exact Jacobian of a stack with given attention weights, and a cache
// of few bits (chapter 26), in balls.
#include "proofs/truth/identities_internal.h"

#include <math.h>
#include <stdlib.h>

typedef const sinkproof_ball_instance *instance;

// ---- a stack of residual attention layers over four tokens -----------------------------------

enum { TOKENS = 4, LAYERS = 3, DIM = SINKPROOF_BALL_DIM, BLOCK = DIM * DIM };

// A^lh_ij with the sink's weight after them: rows of the instance's scores and sinks, in another
// order for each layer, head and row; W^h are W^O's blocks of the heads over 8.
typedef struct stack {
    instance m;
    bool scalar;        // W^h = 2^-2 I instead
    arb_ptr alpha_lhij; // [LAYERS, heads, TOKENS, TOKENS + 1]
    arb_ptr w_h;        // the norm of W^h: the largest sum of a row's sizes
    arb_ptr paths_ij;   // the entries of the product of I + sum_h w_h A^h
    arb_ptr jacobian;   // [TOKENS, TOKENS, DIM, DIM]: row i's state by token j's, as x_j J
    slong bits;
} stack;

static arb_ptr row_of(const stack *s, size_t l, size_t h, size_t i) {
    return s->alpha_lhij + ((l * s->m->heads + h) * TOKENS + i) * (TOKENS + 1);
}

static void weigh_row(stack *s, size_t l, size_t h, size_t i) {
    arb_ptr z = _arb_vec_init(TOKENS), row = row_of(s, l, h, i);
    arb_t sink;
    arb_init(sink);
    arb_set_d(sink, s->m->b_h[h]);
    for (size_t j = 0; j <= i; j++)
        arb_set_d(z + j, s->m->s_hj[(7 * l + 5 * i + 3 * j + h) % (s->m->heads * s->m->n)]);
    sinkproof_truth_softmax_sink(row, row + TOKENS, z, i + 1, sink, s->bits);
    arb_clear(sink);
    _arb_vec_clear(z, TOKENS);
}

static double drawn_weight(const stack *s, size_t h, size_t d,
                           size_t c) { // exact: 8 significant bits
    if (s->scalar) return d == c ? 0.25 : 0;
    return d < s->m->dim && c < s->m->dim ? s->m->wo_hdc[(h * DIM + d) * DIM + c] / 8 : 0;
}

//> mix.paths
// The least w with |x W| <= w |x| for every x, where |x| is the sum of the sizes.
static void norm_of_block(arb_t w, arb_srcptr block, slong bits) {
    arb_t sum, size;
    balls_init(sum, size);
    arb_zero(w);
    for (size_t d = 0; d < DIM; d++) {
        arb_zero(sum);
        for (size_t c = 0; c < DIM; c++) {
            arb_abs(size, block + d * DIM + c);
            arb_add(sum, sum, size, bits);
        }
        arb_max(w, w, sum, bits);
    }
    balls_clear(sum, size);
}

// The w of W^h in double: few numbers of 8 significant bits are summed exactly.
static void largest_row(arb_t w, const stack *s, size_t h) {
    double most = 0;
    for (size_t d = 0; d < DIM; d++) {
        double sum = 0;
        for (size_t c = 0; c < DIM; c++) sum += fabs(drawn_weight(s, h, d, c));
        most = fmax(most, sum);
    }
    arb_set_d(w, most);
}

// P <- P + sum_h w_h A^h P. Runs from the last row, because a row reads the earlier rows' old
// values.
static void step_paths(stack *s, size_t l) {
    arb_t t;
    arb_init(t);
    for (size_t i = TOKENS; i-- > 0;)
        for (size_t j = 0; j < TOKENS; j++) {
            arb_ptr p = s->paths_ij + i * TOKENS + j;
            arb_zero(t);
            for (size_t h = 0; h < s->m->heads; h++)
                for (size_t k = 0; k <= i; k++) {
                    arb_ptr a = row_of(s, l, h, i) + k;
                    arb_t term;
                    arb_init(term);
                    arb_mul(term, a, s->w_h + h, s->bits);
                    arb_addmul(t, term, s->paths_ij + k * TOKENS + j, s->bits);
                    arb_clear(term);
                }
            arb_add(p, p, t, s->bits);
        }
    arb_clear(t);
}

// J_ij <- J_ij + sum_h sum_k A^h_ik J_kj W^h
static void step_jacobian(stack *s, size_t l) {
    arb_ptr in = _arb_vec_init(BLOCK);
    arb_t w;
    arb_init(w);
    for (size_t i = TOKENS; i-- > 0;)
        for (size_t j = 0; j < TOKENS; j++) {
            arb_ptr out = s->jacobian + (i * TOKENS + j) * BLOCK;
            arb_ptr sum = _arb_vec_init(BLOCK);
            for (size_t h = 0; h < s->m->heads; h++) {
                _arb_vec_zero(in, BLOCK);
                for (size_t k = 0; k <= i; k++)
                    _arb_vec_scalar_addmul(in, s->jacobian + (k * TOKENS + j) * BLOCK, BLOCK,
                                           row_of(s, l, h, i) + k, s->bits);
                for (size_t e = 0; e < BLOCK * DIM; e++) { // sum += in W
                    arb_set_d(w, drawn_weight(s, h, e % DIM, e / DIM % DIM));
                    arb_addmul(sum + e / BLOCK * DIM + e / DIM % DIM,
                               in + e / BLOCK * DIM + e % DIM, w, s->bits);
                }
            }
            _arb_vec_add(out, out, sum, BLOCK, s->bits);
            _arb_vec_clear(sum, BLOCK);
        }
    arb_clear(w);
    _arb_vec_clear(in, BLOCK);
}
//< mix.paths

static void stack_init(stack *s, instance m, bool scalar, slong bits) {
    *s = (stack){.m = m, .scalar = scalar, .bits = bits};
    s->alpha_lhij = _arb_vec_init((slong)(LAYERS * m->heads * TOKENS * (TOKENS + 1)));
    s->w_h = _arb_vec_init((slong)m->heads);
    s->paths_ij = _arb_vec_init(TOKENS * TOKENS);
    s->jacobian = _arb_vec_init(TOKENS * TOKENS * BLOCK);
    for (size_t i = 0; i < TOKENS; i++) {
        arb_one(s->paths_ij + i * TOKENS + i);
        for (size_t d = 0; d < DIM; d++)
            arb_one(s->jacobian + (i * TOKENS + i) * BLOCK + d * DIM + d);
    }
    for (size_t l = 0; l < LAYERS; l++)
        for (size_t h = 0; h < m->heads; h++)
            for (size_t i = 0; i < TOKENS; i++) weigh_row(s, l, h, i);
}

static void stack_clear(stack *s) {
    _arb_vec_clear(s->alpha_lhij, (slong)(LAYERS * s->m->heads * TOKENS * (TOKENS + 1)));
    _arb_vec_clear(s->w_h, (slong)s->m->heads);
    _arb_vec_clear(s->paths_ij, TOKENS * TOKENS);
    _arb_vec_clear(s->jacobian, TOKENS * TOKENS * BLOCK);
}

// For the last row's state by each token's: the Jacobian's norm, and the path sum.
static void norms_of_last_row(arb_ptr out, instance m, bool scalar, slong bits) {
    stack s;
    stack_init(&s, m, scalar, bits);
    for (size_t l = 0; l < LAYERS; l++) step_jacobian(&s, l);
    for (size_t j = 0; j < TOKENS; j++)
        norm_of_block(out + j, s.jacobian + ((TOKENS - 1) * TOKENS + j) * BLOCK, bits);
    stack_clear(&s);
}
static void paths_of_last_row(arb_ptr out, instance m, bool scalar, slong bits) {
    stack s;
    stack_init(&s, m, scalar, bits);
    for (size_t h = 0; h < m->heads; h++) largest_row(s.w_h + h, &s, h);
    for (size_t l = 0; l < LAYERS; l++) step_paths(&s, l);
    _arb_vec_set(out, s.paths_ij + (TOKENS - 1) * TOKENS, TOKENS);
    stack_clear(&s);
}

// Raises x slightly above a value that may be reached.
static void raise_slightly(arb_ptr x, size_t n, slong bits) {
    arb_t above;
    arb_init(above);
    arb_set_d(above, 1 + 0x1p-20);
    for (size_t k = 0; k < n; k++) arb_mul(x + k, x + k, above, bits);
    arb_clear(above);
}

static void jacobian_norms(arb_ptr out, instance m, slong bits) {
    norms_of_last_row(out, m, false, bits);
}
static void path_sums(arb_ptr out, instance m, slong bits) {
    paths_of_last_row(out, m, false, bits);
    raise_slightly(out, TOKENS, bits);
}
static void scalar_jacobian(arb_ptr out, instance m, slong bits) {
    norms_of_last_row(out, m, true, bits);
}
static void scalar_path_sums(arb_ptr out, instance m, slong bits) {
    paths_of_last_row(out, m, true, bits);
}

// The sum of all that reaches the last row, and (1 + (1 - a) sum_h w_h)^L, where a is the smallest
// weight of a sink.
static void arriving_sum_and_bound(arb_ptr out, instance m, slong bits) {
    arb_ptr sums = _arb_vec_init(TOKENS);
    paths_of_last_row(sums, m, false, bits);
    ball_sum(out, sums, TOKENS, bits);
    _arb_vec_clear(sums, TOKENS);
}
static void row_bound(arb_ptr out, instance m, slong bits) {
    stack s;
    arb_t least, w;
    balls_init(least, w);
    arb_one(least);
    stack_init(&s, m, false, bits);
    for (size_t l = 0; l < LAYERS; l++)
        for (size_t h = 0; h < m->heads; h++)
            for (size_t i = 0; i < TOKENS; i++)
                arb_min(least, least, row_of(&s, l, h, i) + TOKENS, bits);
    for (size_t h = 0; h < m->heads; h++) { // w_h
        arb_ptr size = _arb_vec_init(BLOCK);
        for (size_t e = 0; e < BLOCK; e++)
            arb_set_d(size + e, drawn_weight(&s, h, e / DIM, e % DIM));
        norm_of_block(s.w_h + h, size, bits);
        arb_add(w, w, s.w_h + h, bits);
        _arb_vec_clear(size, BLOCK);
    }
    arb_sub_ui(least, least, 1, bits);
    arb_mul(out, w, least, bits);
    arb_sub_ui(out, out, 1, bits);
    arb_neg(out, out);
    arb_pow_ui(out, out, LAYERS, bits);
    raise_slightly(out, 1, bits);
    stack_clear(&s);
    balls_clear(least, w);
}

// ---- keys and values in few bits ------------------------------------------------------------

// Head 0's exact row, and its row from a cache: key 1 is exact, the scores of the others err by 1/4
// up or down, their values by 1/8.
typedef struct cached {
    sinkproof_ball_instance row; // with the cached numbers
    arb_ptr alpha, alpha_kept;   // [n], then the sink's
} cached;

static bool key_is_exact(size_t j) {
    return j == 1;
}

static void cached_init(cached *c, instance m, slong bits) {
    c->row = *m;
    c->row.heads = c->row.kv_heads = 1;
    c->row.s_hj = ball_doubles(m->n);
    c->row.x_gjd = ball_doubles(m->n * m->dim);
    for (size_t j = 0; j < m->n; j++) {
        double off = key_is_exact(j) ? 0 : m->part_j[j] > 0 ? 0.25 : -0.25;
        c->row.s_hj[j] = m->s_hj[j] + off;
        for (size_t d = 0; d < m->dim; d++)
            c->row.x_gjd[j * m->dim + d] =
                m->x_gjd[j * m->dim + d] + off * (d % 2 == 0 ? 0.5 : -0.5);
    }
    c->alpha = _arb_vec_init((slong)m->n + 1);
    c->alpha_kept = _arb_vec_init((slong)m->n + 1);
    ball_weights(c->alpha, c->alpha + m->n, m, 0, bits);
    ball_weights(c->alpha_kept, c->alpha_kept + m->n, &c->row, 0, bits);
}

static void cached_clear(cached *c) {
    _arb_vec_clear(c->alpha, (slong)c->row.n + 1);
    _arb_vec_clear(c->alpha_kept, (slong)c->row.n + 1);
    free(c->row.s_hj);
    free(c->row.x_gjd);
}

//> bound.quantized-cache
// |o' - o| in each coordinate
static void cache_error(arb_ptr out, instance m, slong bits) {
    cached c;
    cached_init(&c, m, bits);
    arb_ptr o = _arb_vec_init(DIM);
    ball_weighted(out, &c.row, 0, c.alpha_kept, NULL, bits);
    ball_weighted(o, m, 0, c.alpha, NULL, bits);
    for (size_t d = 0; d < m->dim; d++) {
        arb_sub(out + d, out + d, o + d, bits);
        arb_abs(out + d, out + d);
    }
    _arb_vec_clear(o, DIM);
    cached_clear(&c);
}
// sum_j alpha'_j eps_j + (2 - alpha_s) B sum_j alpha'_j (e^delta_j - 1)
static void cache_bound(arb_ptr out, instance m, slong bits) {
    cached c;
    arb_t off, grown, b;
    balls_init(off, grown, b);
    cached_init(&c, m, bits);
    for (size_t j = 0; j < m->n; j++)
        if (!key_is_exact(j)) arb_add(off, off, c.alpha_kept + j, bits);
    arb_set_d(grown, 0.25);
    arb_expm1(grown, grown, bits);
    arb_mul(grown, grown, off, bits);
    arb_sub_ui(b, c.alpha + m->n, 2, bits);
    arb_neg(b, b);
    arb_mul(grown, grown, b, bits);
    arb_mul_2exp_si(off, off, -3);
    for (size_t d = 0; d < m->dim; d++) {
        double most = 0;
        for (size_t j = 0; j < m->n; j++) most = fmax(most, fabs(m->x_gjd[j * m->dim + d]));
        arb_set_d(b, most);
        arb_mul(out + d, grown, b, bits);
        arb_add(out + d, out + d, off, bits);
    }
    raise_slightly(out, m->dim, bits);
    balls_clear(off, grown, b);
    cached_clear(&c);
}
//< bound.quantized-cache

// Two keys without a sink: key 1 of score -t and value 1, read as -t + 2^-6, and key 0 of score 0
// and value -1, read exactly. The output changes by 2 (alpha' - alpha); with 1 - alpha_s in place
// of 2 - alpha_s the bound would be alpha' (e^delta - 1).
static void two_key_alpha(arb_t alpha, double score, slong bits) { // e^s / (1 + e^s)
    arb_t e;
    arb_init(e);
    arb_set_d(e, score);
    arb_exp(e, e, bits);
    arb_add_ui(alpha, e, 1, bits);
    arb_div(alpha, e, alpha, bits);
    arb_clear(e);
}
static double low_score(instance m) {
    return -1 - (double)(m->number % 8);
}
static void one_share(arb_ptr out, instance m, slong bits) { // (e^delta - 1) / (1 + e^-s)
    arb_t e;
    arb_init(e);
    arb_set_d(e, 0x1p-6);
    arb_expm1(e, e, bits);
    arb_set_d(out, -low_score(m) - 0x1p-6);
    arb_exp(out, out, bits);
    arb_add_ui(out, out, 1, bits);
    arb_div(out, e, out, bits);
    arb_clear(e);
}
static void moved_output(arb_ptr out, instance m, slong bits) {
    arb_t alpha;
    arb_init(alpha);
    two_key_alpha(out, low_score(m) + 0x1p-6, bits);
    two_key_alpha(alpha, low_score(m), bits);
    arb_sub(out, out, alpha, bits);
    arb_mul_2exp_si(out, out, 1);
    arb_clear(alpha);
}

const sinkproof_identity identities_mixing[] = {
    {"mix.paths", SINKPROOF_BALL_LESS, BALL_FOUR, "norms of the last row's Jacobian",
     "its path sums (1 + 2^-20)", jacobian_norms, path_sums, PLAIN},
    {"mix.paths", SINKPROOF_BALL_EQUAL, BALL_FOUR, "norms where W = I / 4", "the path sums",
     scalar_jacobian, scalar_path_sums, PLAIN},
    {"mix.paths", SINKPROOF_BALL_LESS, BALL_ONE, "all path sums of the last row",
     "(1 + (1 - a) sum_h w_h)^L (1 + 2^-20)", arriving_sum_and_bound, row_bound, PLAIN},
    {"bound.quantized-cache", SINKPROOF_BALL_LESS, BALL_HEAD, "|o' - o|",
     "sum alpha' eps + (2 - alpha_s) B sum alpha' (e^delta - 1), (1 + 2^-20)", cache_error,
     cache_bound, PLAIN},
    {"bound.quantized-cache", SINKPROOF_BALL_LESS, BALL_ONE,
     "with 1 - alpha_s for 2 - alpha_s, a row of two keys", "|o' - o|", one_share, moved_output,
     PLAIN},
    {0}};
