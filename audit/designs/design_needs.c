// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/designs/design_needs.h"

#include <stdio.h>
#include <string.h>

typedef struct needs {
    const sinkproof_design_layer *l;
    char *text; // the names of the missing inputs
    size_t size;
} needs;

static void say(needs *n, const char *what) {
    size_t used = strlen(n->text);
    snprintf(n->text + used, n->size - used, "%s%s", used > 0 ? ", " : "", what);
}

static void need(needs *n, sinkproof_design_tensor t) {
    if (!has(n->l, t)) say(n, sinkproof_design_tensor_name(t));
}

static void need_places(needs *n) {
    if (n->l->variant.places == SINKPROOF_PLACES_ALIBI) need(n, AT(SLOPE));
    if (n->l->variant.places == SINKPROOF_PLACES_RELATIVE) need(n, AT(BUCKETS));
}

static void need_scores(needs *n) {
    need(n, featured(n->l) ? AT(FQ) : AT(Q));
    need(n, featured(n->l) ? AT(FK) : AT(K));
    if (!has(n->l, AT(BIAS))) need_places(n);
    if (n->l->variant.seen == SINKPROOF_SEEN_PACKED) need(n, AT(DOCUMENTS));
}

static void need_star(needs *n) {
    if (n->l->variant.star == SINKPROOF_STAR_SCORE) need(n, AT(STAR_LOGIT));
    if (n->l->variant.star != SINKPROOF_STAR_KEY) return;
    need(n, AT(STAR_KEY));
    need(n, featured(n->l) ? AT(FQ) : AT(Q));
    if (n->l->variant.feature == SINKPROOF_FEATURE_MLP) {
        need(n, AT(MLP_1));
        need(n, AT(MLP_2));
    }
}

static void need_values(needs *n) {
    const sinkproof_variant *v = &n->l->variant;
    bool learned = v->star_value == SINKPROOF_STAR_VALUE_LEARNED;
    need(n, AT(ALPHA));
    need(n, AT(V));
    if (learned || v->value_bias) need(n, AT(STAR_VALUE));
    if (v->star_value != SINKPROOF_STAR_VALUE_NONE && has(n->l, AT(ALPHA)) &&
        !has_star_column(n->l, AT(ALPHA)))
        say(n, "the star's column of alpha");
}

// Lists the missing inputs of the step that computes `t`.
static void need_of_step(needs *n, sinkproof_design_tensor t) {
    const sinkproof_variant *v = &n->l->variant;
    switch (t) {
    case AT(Q):
    case AT(K):
        need(n, t == AT(Q) ? AT(UNTURNED_Q) : AT(UNTURNED_K));
        need(n, AT(COS));
        need(n, AT(SIN));
        break;
    case AT(FQ):
    case AT(FK):
        need(n, t == AT(FQ) ? AT(Q) : AT(K));
        if (v->feature == SINKPROOF_FEATURE_MLP) need(n, AT(MLP_1));
        if (v->feature == SINKPROOF_FEATURE_MLP) need(n, AT(MLP_2));
        break;
    case AT(BIAS):
        need_places(n);
        if (has(n->l, t) && one_for_all_rows(n->l) && v->places != SINKPROOF_PLACES_ALIBI)
            say(n, "a bias of each row");
        break;
    case AT(S):
        need_scores(n);
        if (has_star_column(n->l, AT(S))) need_star(n);
        break;
    case AT(ALPHA):
        if (!has(n->l, AT(S))) need_scores(n);
        if (v->seen == SINKPROOF_SEEN_PACKED) need(n, AT(DOCUMENTS));
        if (!has_star_column(n->l, AT(S))) need_star(n);
        break;
    case AT(O):
        need_values(n);
        break;
    case AT(GATE):
        need(n, AT(G));
        if (has(n->l, t) && has(n->l, AT(G)) && n->l->at[t]->shape[2] < n->l->at[AT(G)]->shape[2])
            say(n, "a gate for each number of g");
        break;
    case AT(GATED):
        need(n, AT(O));
        if (!has(n->l, AT(GATE))) need(n, AT(G));
        break;
    default:
        break;
    }
}

void sinkproof_design_missing(const sinkproof_design_layer *l, sinkproof_design_tensor t,
                              char *text, size_t size) {
    needs n = {l, text, size};
    text[0] = '\0';
    need_of_step(&n, t);
}

void sinkproof_design_missing_star(const sinkproof_design_layer *l, char *text, size_t size) {
    needs n = {l, text, size};
    text[0] = '\0';
    need_star(&n);
}
