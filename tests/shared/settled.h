// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The gradients of a walk back through a model, by their names: as balls with the sizes of their
// terms, and as the reference has them, which are compared (backward_walk.h).
#ifndef SINKPROOF_TEST_SETTLED_H
#define SINKPROOF_TEST_SETTLED_H

#include "proofs/bounds/honest.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/backward.h"
#include "ref/backward/backward.h"
#include "tests/shared/duals.h"

#include <stdio.h>
#include <string.h>

// A quantity: balls, and the sums of the sizes of what they are made of.
typedef struct both {
    arb_ptr v, s;
    size_t n;
} both;

typedef struct named_gradient {
    char name[64];
    both of;
    double *ref; // the witness
    size_t ref_n;
} named_gradient;

enum { MOST_GRADIENTS = 512 };

typedef struct composed {
    const sinkproof_model *model;
    const sinkproof_config *c;
    size_t n, l;
    const int32_t *tokens_n;
    both *act_lp; // [layers, TRACE_POINTS]
    named_gradient list[MOST_GRADIENTS];
    size_t count;
    bool witness, reads_more;
    // Of the witness: its unit roundoff, its angles, whether its D is sum_j alpha_j dalpha_j and
    // not <dO, O>, and whether it may lack gradients of weights, which are counted.
    double unit, *cos_nd, *sin_nd;
    bool weighs, lacks_weights;
    size_t lacking;
    // The witness: elements, how many are outside, the largest share of its bound, and where.
    size_t elements, outside;
    double worst;
    char at[64];
} composed;

static both both_new(size_t n) {
    return (both){_arb_vec_init((slong)n), _arb_vec_init((slong)n), n};
}
static void both_free(both x) {
    _arb_vec_clear(x.v, (slong)x.n), _arb_vec_clear(x.s, (slong)x.n);
}
static void both_size(both x) { // a known quantity: its size is its absolute value
    for (size_t i = 0; i < x.n; i++) arb_abs(x.s + i, x.v + i);
}
static both both_part(both x, size_t from) {
    return (both){x.v + from, x.s + from, x.n - from};
}
static arb_ptr side(both x, bool sizes) {
    return sizes ? x.s : x.v;
}
static both both_row_at(const sinkproof_matrix *m, size_t r) {
    both x = both_new(m->cols);
    double *scratch = malloc(m->cols * sizeof *scratch);
    if (scratch == NULL) abort();
    sinkproof_truth_row(x.v, m, r, scratch);
    free(scratch);
    both_size(x);
    return x;
}

static both act(const composed *w, sinkproof_trace_point point) {
    return w->act_lp[w->l * TRACE_POINTS + (size_t)point];
}

static void full_name(const composed *w, const char *name, char full[64]) {
    bool ends = name[1] == 'F' || name[1] == 'T' || strncmp(name, "dW.e", 4) == 0 ||
                strncmp(name, "dW.f", 4) == 0 || strcmp(name, "dW.unembedding") == 0;
    if (ends)
        snprintf(full, 64, "%s", name);
    else
        snprintf(full, 64, "%02zu.%s", w->l, name);
}
static named_gradient *find(composed *w, const char *full) {
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->list[i].name, full) == 0) return &w->list[i];
    if (w->count == MOST_GRADIENTS) abort();
    named_gradient *g = &w->list[w->count++];
    snprintf(g->name, sizeof g->name, "%s", full);
    return g;
}

static void judge_witness(composed *w, named_gradient *g, double roundings) {
    double gamma = sinkproof_gamma(roundings, w->unit);
    double least = w->unit > 0x1p-53 ? 0x1p-126 : 0x1p-1022, lost = roundings * (1 + gamma) * least;
    for (size_t i = 0; i < g->of.n; i++) {
        double distance = sinkproof_truth_distance(g->of.v + i, g->ref[i]);
        double size = arf_get_d(arb_midref(g->of.s + i), ARF_RND_UP);
        double share = distance == 0 ? 0 : distance / (gamma * size + lost);
        w->elements++;
        w->outside += !(share <= 1);
        if (!(share <= w->worst)) {
            w->worst = share;
            snprintf(w->at, sizeof w->at, "%s", g->name);
        }
        arb_set_d(g->of.v + i, g->ref[i]);
    }
}

// Takes a gradient, made with at most so many roundings on the way from any term, and returns it as
// what follows reads it.
static both settle(composed *w, const char *name, both x, double roundings) {
    char full[64];
    full_name(w, name, full);
    named_gradient *g = find(w, full);
    g->of = x;
    bool shown = g->ref != NULL && g->ref_n == x.n;
    if (w->witness && shown) judge_witness(w, g, roundings);
    bool weight = name[1] == 'W' || name[1] == 'b';
    if (w->witness && !shown && weight && w->lacks_weights)
        w->lacking++;
    else if (w->witness && !shown)
        w->outside++, snprintf(w->at, sizeof w->at, "%s", full);
    both_size(x);
    return x;
}

// A bias's, unless the model has none.
static void settle_bias(composed *w, const char *name, both db, bool biased) {
    if (biased)
        settle(w, name, db, (double)w->n);
    else
        both_free(db);
}

#endif
