// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A loss of a whole model and its derivative along one direction of one weight, in forward mode:
// every number is a pair of balls, a value and its derivative, and every operation is the chain
// rule's. Written from the formulas of the book, without the truth's or the reference's functions:
// it is what the backward pass is compared with.
#ifndef SINKPROOF_TEST_DUALS_H
#define SINKPROOF_TEST_DUALS_H

#include "base/splitmix.h"
#include "model/model.h"
#include "model/sinks.h"
#include "proofs/truth/flint.h"
#include "proofs/truth/truth.h"

#include <math.h>
#include <stdlib.h>

typedef struct dual {
    arb_struct v, d;
} dual;

enum { DUAL_BITS = 192 };

static dual *duals_new(size_t n) {
    dual *x = malloc((n + 1) * sizeof *x);
    if (x == NULL) abort();
    for (size_t i = 0; i < n; i++) arb_init(&x[i].v), arb_init(&x[i].d);
    return x;
}
static void duals_free(dual *x, size_t n) {
    for (size_t i = 0; i < n; i++) arb_clear(&x[i].v), arb_clear(&x[i].d);
    free(x);
}
static void dual_add(dual *out, const dual *a, const dual *b) {
    arb_add(&out->v, &a->v, &b->v, DUAL_BITS);
    arb_add(&out->d, &a->d, &b->d, DUAL_BITS);
}
static void dual_addmul(dual *out, const dual *a, const dual *b) { // out += a b
    arb_addmul(&out->d, &a->v, &b->d, DUAL_BITS);
    arb_addmul(&out->d, &a->d, &b->v, DUAL_BITS);
    arb_addmul(&out->v, &a->v, &b->v, DUAL_BITS);
}
static void dual_scale(dual *x, const arb_t by) {
    arb_mul(&x->v, &x->v, by, DUAL_BITS);
    arb_mul(&x->d, &x->d, by, DUAL_BITS);
}
static void dual_mul(dual *out, const dual *a, const dual *b) { // out is another
    arb_zero(&out->v), arb_zero(&out->d);
    dual_addmul(out, a, b);
}
static void dual_exp(dual *x) {
    arb_exp(&x->v, &x->v, DUAL_BITS);
    arb_mul(&x->d, &x->d, &x->v, DUAL_BITS);
}
static void dual_log(dual *x) {
    arb_div(&x->d, &x->d, &x->v, DUAL_BITS);
    arb_log(&x->v, &x->v, DUAL_BITS);
}
static void dual_inv(dual *x) { // (1/x)' = -x' / x^2
    arb_inv(&x->v, &x->v, DUAL_BITS);
    arb_mul(&x->d, &x->d, &x->v, DUAL_BITS);
    arb_mul(&x->d, &x->d, &x->v, DUAL_BITS);
    arb_neg(&x->d, &x->d);
}
static void dual_rsqrt(dual *x) { // (x^(-1/2))' = -x' x^(-1/2) / (2 x)
    arb_div(&x->d, &x->d, &x->v, DUAL_BITS);
    arb_rsqrt(&x->v, &x->v, DUAL_BITS);
    arb_mul(&x->d, &x->d, &x->v, DUAL_BITS);
    arb_mul_2exp_si(&x->d, &x->d, -1);
    arb_neg(&x->d, &x->d);
}

// The weight that moves, and how: element i by direction_at(i).
typedef struct direction {
    sinkproof_slot slot;
    size_t layer;
} direction;

static double direction_at(size_t i) { // a whole number from -4 to 4
    uint64_t state = 977 + i;
    return (double)sinkproof_draw_from_to(&state, 0, 8) - 4;
}

// What a loss reads beside the logits: fixed numbers, of A11 and of the log-sum-exps.
static double loss_factor(int kind, size_t layer, size_t i) {
    uint64_t state = (uint64_t)kind * 1000003 + layer * 10007 + i;
    return ((double)sinkproof_draw_from_to(&state, 0, 16) - 8) / 4;
}
enum { OF_OUTPUT, OF_LSE, OF_LSE_KEYS };

typedef struct dual_run {
    const sinkproof_model *model;
    const sinkproof_config *c;
    direction along;
    size_t n;
    const int32_t *tokens_n;
    bool reads_more; // the loss reads A11 and both log-sum-exps too
    dual *x_nc, *t_nc, *out_nc, *q, *k, *v, *o, loss;
    sinkproof_truth_yarn yarn;
} dual_run;

// Row r of matrix e of a slot.
static void dual_row(const dual_run *r, size_t layer, sinkproof_slot slot, size_t e, size_t row,
                     dual *out_c) {
    sinkproof_matrix stack = sinkproof_model_slot(r->model, layer, slot);
    sinkproof_matrix m = sinkproof_matrix_at(&stack, e);
    bool moves =
        r->along.slot == slot && (slot >= SINKPROOF_LAYER_SLOTS || r->along.layer == layer);
    double *stored = malloc(m.cols * sizeof *stored);
    if (stored == NULL) abort();
    sinkproof_matrix_row(&m, row, stored);
    for (size_t c = 0; c < m.cols; c++) {
        arb_set_d(&out_c[c].v, stored[c]);
        arb_set_d(&out_c[c].d, moves ? direction_at((e * m.rows + row) * m.cols + c) : 0);
    }
    free(stored);
}

// y_r = sum_c W_rc x_c + b_r of one token; a model without the bias has none.
static void dual_linear(const dual_run *r, size_t layer, sinkproof_slot w, sinkproof_slot b,
                        size_t e, const dual *x_c, dual *y_r) {
    sinkproof_matrix shape = sinkproof_model_slot(r->model, layer, w);
    dual *row = duals_new(shape.cols > shape.rows ? shape.cols : shape.rows);
    size_t room = shape.cols > shape.rows ? shape.cols : shape.rows;
    bool biased = b != SINKPROOF_SLOTS && sinkproof_model_slot(r->model, layer, b).count > 0;
    for (size_t i = 0; i < shape.rows; i++) {
        dual_row(r, layer, w, e, i, row);
        arb_zero(&y_r[i].v), arb_zero(&y_r[i].d);
        for (size_t c = 0; c < shape.cols; c++) dual_addmul(&y_r[i], &row[c], &x_c[c]);
    }
    if (biased) dual_row(r, layer, b, e, 0, row);
    for (size_t i = 0; biased && i < shape.rows; i++) dual_add(&y_r[i], &y_r[i], &row[i]);
    duals_free(row, room);
}

// Over n coordinates; x and y may be one array.
static void dual_norm(const dual_run *r, size_t layer, sinkproof_slot slot, size_t n,
                      const dual *x_c, dual *y_c) {
    dual *scale = duals_new(n), *mean = duals_new(2);
    arb_t eps;
    arb_init(eps);
    dual_row(r, layer, slot, 0, 0, scale);
    for (size_t c = 0; c < n; c++) dual_addmul(mean, &x_c[c], &x_c[c]);
    arb_set_ui(eps, n);
    arb_inv(eps, eps, DUAL_BITS);
    dual_scale(mean, eps);
    sinkproof_truth_decimal(eps, r->c->rms_eps, DUAL_BITS);
    arb_add(&mean->v, &mean->v, eps, DUAL_BITS);
    dual_rsqrt(mean);
    for (size_t c = 0; c < n; c++) {
        dual_mul(mean + 1, &x_c[c], mean);
        dual_mul(&y_c[c], mean + 1, &scale[c]);
    }
    arb_clear(eps);
    duals_free(scale, n), duals_free(mean, 2);
}

static void dual_rotate(const dual_run *r, size_t position, dual *x_d) {
    size_t half = r->c->head_dim / 2;
    arb_t angle, c, s;
    balls_init(angle, c, s);
    dual *pair = duals_new(2);
    for (size_t d = 0; d < half; d++) {
        arb_mul_ui(angle, r->yarn.inv_freq_d + d, position, DUAL_BITS);
        arb_sin_cos(s, c, angle, DUAL_BITS);
        arb_mul(c, c, r->yarn.concentration, DUAL_BITS);
        arb_mul(s, s, r->yarn.concentration, DUAL_BITS);
        for (int part = 0; part < 2; part++) { // of value and derivative alike: it is linear
            arb_ptr x1 = part == 0 ? &x_d[d].v : &x_d[d].d;
            arb_ptr x2 = part == 0 ? &x_d[half + d].v : &x_d[half + d].d;
            arb_ptr t1 = &pair[0].v, t2 = &pair[1].v;
            arb_mul(t1, x1, c, DUAL_BITS), arb_submul(t1, x2, s, DUAL_BITS);
            arb_mul(t2, x2, c, DUAL_BITS), arb_addmul(t2, x1, s, DUAL_BITS);
            arb_set(x1, t1), arb_set(x2, t2);
        }
    }
    balls_clear(angle, c, s);
    duals_free(pair, 2);
}

static void loss_reads(dual_run *r, int kind, size_t layer, size_t i, const dual *x) {
    dual *factor = duals_new(1);
    arb_set_d(&factor->v, loss_factor(kind, layer, i));
    if (r->reads_more) dual_addmul(&r->loss, factor, x);
    duals_free(factor, 1);
}

// One query and head: exponentials without a shift, since balls do not overflow.
static void dual_attend(dual_run *r, size_t layer, size_t i, size_t h) {
    const sinkproof_config *c = r->c;
    size_t d = c->head_dim, g = h / (c->n_heads / c->n_kv_heads);
    size_t window = c->sliding[layer] ? c->window : 0;
    size_t first = window > 0 && i + 1 > window ? i + 1 - window : 0, seen = i + 1 - first;
    dual *e = duals_new(seen + 4), *keys = e + seen, *all = keys + 1, *sink = keys + 2,
         *w = keys + 3;
    dual *o_d = r->o + (i * c->n_heads + h) * d, *sinks = duals_new(c->n_heads + d);
    arb_t root;
    arb_init(root);
    arb_set_ui(root, d);
    arb_rsqrt(root, root, DUAL_BITS);
    for (size_t j = 0; j < seen; j++) {
        for (size_t k = 0; k < d; k++)
            dual_addmul(&e[j], &r->q[(i * c->n_heads + h) * d + k],
                        &r->k[((first + j) * c->n_kv_heads + g) * d + k]);
        dual_scale(&e[j], root);
        dual_exp(&e[j]);
        dual_add(keys, keys, &e[j]);
    }
    sinkproof_stored_sink kind = sinkproof_sinks_stored(c);
    if (kind == SINKPROOF_SINK_NUMBER) {
        dual_row(r, layer, SINKPROOF_SINKS, 0, 0, sinks);
        dual_add(sink, sink, &sinks[h]);
        dual_exp(sink);
    }
    if (kind == SINKPROOF_SINK_KEY) { // a key of its own, which is not rotated
        dual_row(r, layer, SINKPROOF_SINKS, 0, h, sinks);
        for (size_t k = 0; k < d; k++)
            dual_addmul(sink, &r->q[(i * c->n_heads + h) * d + k], &sinks[k]);
        dual_scale(sink, root);
        dual_exp(sink);
    }
    dual_add(all, keys, sink);
    for (size_t k = 0; k < d; k++) arb_zero(&o_d[k].v), arb_zero(&o_d[k].d);
    for (size_t j = 0; j < seen; j++)
        for (size_t k = 0; k < d; k++)
            dual_addmul(&o_d[k], &e[j], &r->v[((first + j) * c->n_kv_heads + g) * d + k]);
    arb_set(&w->v, &all->v), arb_set(&w->d, &all->d);
    dual_inv(w);
    for (size_t k = 0; k < d; k++) {
        dual *scaled = duals_new(1);
        dual_mul(scaled, &o_d[k], w);
        arb_swap(&o_d[k].v, &scaled->v), arb_swap(&o_d[k].d, &scaled->d);
        loss_reads(r, OF_OUTPUT, layer, (i * c->n_heads + h) * d + k, &o_d[k]);
        duals_free(scaled, 1);
    }
    dual_log(all), dual_log(keys);
    loss_reads(r, OF_LSE, layer, h * r->n + i, all);
    loss_reads(r, OF_LSE_KEYS, layer, h * r->n + i, keys);
    arb_clear(root);
    duals_free(e, seen + 4), duals_free(sinks, c->n_heads + d);
}

static void dual_attention(dual_run *r, size_t layer) {
    const sinkproof_config *c = r->c;
    size_t d = c->head_dim, heads = c->n_heads, groups = c->n_kv_heads, hidden = c->hidden;
    for (size_t i = 0; i < r->n; i++) {
        dual *t_c = r->t_nc + i * hidden;
        dual_norm(r, layer, SINKPROOF_ATTN_NORM, hidden, r->x_nc + i * hidden, t_c);
        dual_linear(r, layer, SINKPROOF_W_Q, SINKPROOF_B_Q, 0, t_c, r->q + i * heads * d);
        dual_linear(r, layer, SINKPROOF_W_K, SINKPROOF_B_K, 0, t_c, r->k + i * groups * d);
        dual_linear(r, layer, SINKPROOF_W_V, SINKPROOF_B_V, 0, t_c, r->v + i * groups * d);
        for (size_t h = 0; c->head_norms && h < heads; h++) {
            dual *q_d = r->q + (i * heads + h) * d, *k_d = r->k + (i * groups + h) * d;
            dual_norm(r, layer, SINKPROOF_Q_NORM, d, q_d, q_d);
            if (h < groups) dual_norm(r, layer, SINKPROOF_K_NORM, d, k_d, k_d);
        }
        for (size_t h = 0; h < heads; h++) dual_rotate(r, i, r->q + (i * heads + h) * d);
        for (size_t g = 0; g < groups; g++) dual_rotate(r, i, r->k + (i * groups + g) * d);
    }
    for (size_t i = 0; i < r->n; i++) {
        dual *out_c = r->out_nc + i * hidden, *x_c = r->x_nc + i * hidden;
        for (size_t h = 0; h < heads; h++) dual_attend(r, layer, i, h);
        dual_linear(r, layer, SINKPROOF_W_O, SINKPROOF_B_O, 0, r->o + i * heads * d, out_c);
        for (size_t k = 0; k < hidden; k++) dual_add(&x_c[k], &x_c[k], &out_c[k]);
    }
}

// z = g sigmoid(alpha g) (u + offset); a clamp that holds has the derivative 0.
static void dual_activate(const sinkproof_swiglu_numbers *numbers, const dual *gate, const dual *up,
                          dual *out) {
    dual *x = duals_new(4), *g = x, *u = x + 1, *s = x + 2, *t = x + 3;
    arb_t limit, alpha;
    balls_init(limit, alpha);
    arb_pos_inf(limit);
    if (isfinite(numbers->limit)) sinkproof_truth_decimal(limit, numbers->limit, DUAL_BITS);
    sinkproof_truth_decimal(alpha, numbers->alpha, DUAL_BITS);
    if (arb_gt(&gate->v, limit))
        arb_set(&g->v, limit);
    else
        dual_add(g, g, gate);
    arb_neg(&t->v, limit);
    if (arb_gt(&up->v, limit))
        arb_set(&u->v, limit);
    else if (arb_lt(&up->v, &t->v))
        arb_set(&u->v, &t->v);
    else
        dual_add(u, u, up);
    dual_add(s, s, g); // 1 / (1 + e^(-alpha g))
    arb_neg(alpha, alpha);
    dual_scale(s, alpha);
    dual_exp(s);
    arb_add_ui(&s->v, &s->v, 1, DUAL_BITS);
    dual_inv(s);
    arb_set_d(limit, numbers->offset);
    arb_add(&u->v, &u->v, limit, DUAL_BITS);
    dual_mul(t, g, s);
    dual_mul(out, t, u);
    balls_clear(limit, alpha);
    duals_free(x, 4);
}

// out_c += weight times the expert's result for t_c.
static void dual_expert(const dual_run *r, size_t layer, size_t e, const dual *t_c,
                        const dual *weight, dual *out_c) {
    const sinkproof_config *c = r->c;
    size_t inter = c->inter, hidden = c->hidden;
    dual *up = duals_new(2 * inter), *act = duals_new(inter), *down = duals_new(hidden);
    dual_linear(r, layer, SINKPROOF_W_UP, SINKPROOF_B_UP, e, t_c, up);
    for (size_t f = 0; f < inter; f++)
        dual_activate(&c->swiglu, &up[2 * f], &up[2 * f + 1], &act[f]);
    dual_linear(r, layer, SINKPROOF_W_DOWN, SINKPROOF_B_DOWN, e, act, down);
    for (size_t k = 0; k < hidden; k++) dual_addmul(&out_c[k], weight, &down[k]);
    duals_free(up, 2 * inter), duals_free(act, inter), duals_free(down, hidden);
}

// The chosen experts of one token, by the middles of the logits' balls.
static void dual_mix(const dual_run *r, size_t layer, const dual *t_c, dual *out_c) {
    const sinkproof_config *c = r->c;
    size_t n = c->n_experts;
    dual *logits = duals_new(n), *all = duals_new(2);
    bool *taken = calloc(n, sizeof *taken);
    if (taken == NULL) abort();
    dual_linear(r, layer, SINKPROOF_W_ROUTER, SINKPROOF_B_ROUTER, 0, t_c, logits);
    for (size_t k = 0; k < c->n_chosen; k++) {
        size_t best = n;
        for (size_t e = 0; e < n; e++)
            if (!taken[e] && (best == n || arb_gt(&logits[e].v, &logits[best].v))) best = e;
        taken[best] = true;
    }
    for (size_t e = 0; e < n; e++) {
        if (!taken[e]) continue;
        dual_exp(&logits[e]);
        dual_add(all, all, &logits[e]);
    }
    dual_inv(all);
    for (size_t e = 0; e < n; e++) {
        if (!taken[e]) continue;
        dual_mul(all + 1, &logits[e], all);
        dual_expert(r, layer, e, t_c, all + 1, out_c);
    }
    free(taken);
    duals_free(logits, n), duals_free(all, 2);
}

static void dual_mlp(dual_run *r, size_t layer) {
    const sinkproof_config *c = r->c;
    dual *one = duals_new(1);
    arb_one(&one->v);
    for (size_t i = 0; i < r->n; i++) {
        dual *t_c = r->t_nc + i * c->hidden, *x_c = r->x_nc + i * c->hidden;
        dual_norm(r, layer, SINKPROOF_MLP_NORM, c->hidden, x_c, t_c);
        if (c->dense) // the residual is where the result is added
            dual_expert(r, layer, 0, t_c, one, x_c);
        else
            dual_mix(r, layer, t_c, x_c);
    }
    duals_free(one, 1);
}

// Adds the mean of -log softmax(logits)_next over the tokens that have a next one.
static void dual_cross_entropy(dual_run *r) {
    const sinkproof_config *c = r->c;
    dual *z = duals_new(c->vocab), *t = duals_new(2);
    arb_t mean;
    arb_init(mean);
    for (size_t i = 0; i + 1 < r->n; i++) {
        dual_norm(r, 0, SINKPROOF_FINAL_NORM, c->hidden, r->x_nc + i * c->hidden, r->t_nc);
        dual_linear(r, 0, c->tied ? SINKPROOF_EMBEDDING : SINKPROOF_UNEMBEDDING, SINKPROOF_SLOTS, 0,
                    r->t_nc, z);
        arb_set(&t[1].v, &z[r->tokens_n[i + 1]].v), arb_set(&t[1].d, &z[r->tokens_n[i + 1]].d);
        arb_zero(&t[0].v), arb_zero(&t[0].d);
        for (size_t v = 0; v < c->vocab; v++) {
            dual_exp(&z[v]);
            dual_add(&t[0], &t[0], &z[v]);
        }
        dual_log(&t[0]);
        arb_sub(&t[0].v, &t[0].v, &t[1].v, DUAL_BITS);
        arb_sub(&t[0].d, &t[0].d, &t[1].d, DUAL_BITS);
        arb_set_ui(mean, r->n - 1);
        arb_inv(mean, mean, DUAL_BITS);
        dual_scale(&t[0], mean);
        dual_add(&r->loss, &r->loss, &t[0]);
    }
    arb_clear(mean);
    duals_free(z, c->vocab), duals_free(t, 2);
}

// derivative: of the loss along the direction.
__attribute__((unused)) static void dual_loss(const sinkproof_model *model, direction along,
                                              size_t n, const int32_t *tokens_n, bool reads_more,
                                              arb_t derivative) {
    const sinkproof_config *c = sinkproof_model_config(model);
    size_t wide = n * c->hidden, heads = n * c->n_heads * c->head_dim;
    size_t groups = n * c->n_kv_heads * c->head_dim;
    dual_run r = {.model = model,
                  .c = c,
                  .along = along,
                  .n = n,
                  .tokens_n = tokens_n,
                  .reads_more = reads_more,
                  .x_nc = duals_new(wide),
                  .t_nc = duals_new(wide),
                  .out_nc = duals_new(wide),
                  .q = duals_new(heads),
                  .o = duals_new(heads),
                  .k = duals_new(groups),
                  .v = duals_new(groups)};
    arb_init(&r.loss.v), arb_init(&r.loss.d);
    sinkproof_truth_yarn_init(&r.yarn, c, DUAL_BITS);
    for (size_t i = 0; i < n; i++)
        dual_row(&r, 0, SINKPROOF_EMBEDDING, 0, (size_t)tokens_n[i], r.x_nc + i * c->hidden);
    for (size_t l = 0; l < c->n_layers; l++) {
        dual_attention(&r, l);
        dual_mlp(&r, l);
    }
    dual_cross_entropy(&r);
    arb_set(derivative, &r.loss.d);
    sinkproof_truth_yarn_clear(&r.yarn);
    arb_clear(&r.loss.v), arb_clear(&r.loss.d);
    duals_free(r.x_nc, wide), duals_free(r.t_nc, wide), duals_free(r.out_nc, wide);
    duals_free(r.q, heads), duals_free(r.o, heads);
    duals_free(r.k, groups), duals_free(r.v, groups);
}

#endif
