// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/designs/design_needs.h"

#include <stdio.h>
#include <string.h>

typedef struct needs {
    const design_layer *l;
    char *text; // the names of the missing inputs
    size_t size;
} needs;

static void needs_say(needs *n, const char *what) {
    size_t used = strlen(n->text);
    snprintf(n->text + used, n->size - used, "%s%s", used > 0 ? ", " : "", what);
}

static void needs_add(needs *n, design_tensor t) {
    if (!has(n->l, t)) needs_say(n, design_tensor_name(t));
}

static void need_places(needs *n) {
    if (n->l->variant.places == SINKPROOF_PLACES_ALIBI) needs_add(n, AT(SLOPE));
    if (n->l->variant.places == SINKPROOF_PLACES_RELATIVE) needs_add(n, AT(BUCKETS));
}

static void need_scores(needs *n) {
    needs_add(n, featured(n->l) ? AT(FQ) : AT(Q));
    needs_add(n, featured(n->l) ? AT(FK) : AT(K));
    if (!has(n->l, AT(BIAS))) need_places(n);
    if (n->l->variant.seen == SINKPROOF_SEEN_PACKED) needs_add(n, AT(DOCUMENTS));
}

static void need_star(needs *n) {
    if (n->l->variant.star == SINKPROOF_STAR_SCORE) needs_add(n, AT(STAR_LOGIT));
    if (n->l->variant.star != SINKPROOF_STAR_KEY) return;
    needs_add(n, AT(STAR_KEY));
    needs_add(n, featured(n->l) ? AT(FQ) : AT(Q));
    if (n->l->variant.feature == SINKPROOF_FEATURE_MLP) {
        needs_add(n, AT(MLP_1));
        needs_add(n, AT(MLP_2));
    }
}

static void need_values(needs *n) {
    const sinkproof_variant *v = &n->l->variant;
    bool learned = v->star_value == SINKPROOF_STAR_VALUE_LEARNED;
    needs_add(n, AT(ALPHA));
    needs_add(n, AT(V));
    if (learned || v->value_bias) needs_add(n, AT(STAR_VALUE));
    if (v->star_value != SINKPROOF_STAR_VALUE_NONE && has(n->l, AT(ALPHA)) &&
        !has_star_column(n->l, AT(ALPHA)))
        needs_say(n, "the star's column of alpha");
}

// Lists the missing inputs of the step that computes `t`.
static void needs_add_step(needs *n, design_tensor t) {
    const sinkproof_variant *v = &n->l->variant;
    switch (t) {
    case AT(Q):
    case AT(K):
        needs_add(n, t == AT(Q) ? AT(UNTURNED_Q) : AT(UNTURNED_K));
        needs_add(n, AT(COS));
        needs_add(n, AT(SIN));
        break;
    case AT(FQ):
    case AT(FK):
        needs_add(n, t == AT(FQ) ? AT(Q) : AT(K));
        if (v->feature == SINKPROOF_FEATURE_MLP) needs_add(n, AT(MLP_1));
        if (v->feature == SINKPROOF_FEATURE_MLP) needs_add(n, AT(MLP_2));
        break;
    case AT(BIAS):
        need_places(n);
        if (has(n->l, t) && one_for_all_rows(n->l) && v->places != SINKPROOF_PLACES_ALIBI)
            needs_say(n, "a bias of each row");
        break;
    case AT(S):
        need_scores(n);
        if (has_star_column(n->l, AT(S))) need_star(n);
        break;
    case AT(ALPHA):
        if (!has(n->l, AT(S))) need_scores(n);
        if (v->seen == SINKPROOF_SEEN_PACKED) needs_add(n, AT(DOCUMENTS));
        if (!has_star_column(n->l, AT(S))) need_star(n);
        break;
    case AT(O):
        need_values(n);
        break;
    case AT(GATE):
        needs_add(n, AT(G));
        if (has(n->l, t) && has(n->l, AT(G)) && n->l->at[t]->shape[2] < n->l->at[AT(G)]->shape[2])
            needs_say(n, "a gate for each number of g");
        break;
    case AT(GATED):
        needs_add(n, AT(O));
        if (!has(n->l, AT(GATE))) needs_add(n, AT(G));
        break;
    default:
        break;
    }
}

void design_write_missing(const design_layer *l, design_tensor t, char *text, size_t size) {
    needs n = {l, text, size};
    text[0] = '\0';
    needs_add_step(&n, t);
}

void design_write_missing_star(const design_layer *l, char *text, size_t size) {
    needs n = {l, text, size};
    text[0] = '\0';
    need_star(&n);
}
