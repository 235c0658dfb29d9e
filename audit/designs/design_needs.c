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

static void append_missing(needs *n, const char *what) {
    size_t used = strlen(n->text);
    snprintf(n->text + used, n->size - used, "%s%s", used > 0 ? ", " : "", what);
}

static void list_if_missing(needs *n, design_tensor t) {
    if (!has_tensor(n->l, t)) append_missing(n, design_tensor_name(t));
}

static void list_missing_places(needs *n) {
    if (n->l->variant.places == SINKPROOF_PLACES_ALIBI) list_if_missing(n, AT(SLOPE));
    if (n->l->variant.places == SINKPROOF_PLACES_RELATIVE) list_if_missing(n, AT(BUCKETS));
}

static void list_missing_scores(needs *n) {
    list_if_missing(n, has_feature_map(n->l) ? AT(FQ) : AT(Q));
    list_if_missing(n, has_feature_map(n->l) ? AT(FK) : AT(K));
    if (!has_tensor(n->l, AT(BIAS))) list_missing_places(n);
    if (n->l->variant.seen == SINKPROOF_SEEN_PACKED) list_if_missing(n, AT(DOCUMENTS));
}

static void list_missing_star(needs *n) {
    if (n->l->variant.star == SINKPROOF_STAR_SCORE) list_if_missing(n, AT(STAR_LOGIT));
    if (n->l->variant.star != SINKPROOF_STAR_KEY) return;
    list_if_missing(n, AT(STAR_KEY));
    list_if_missing(n, has_feature_map(n->l) ? AT(FQ) : AT(Q));
    if (n->l->variant.feature == SINKPROOF_FEATURE_MLP) {
        list_if_missing(n, AT(MLP_1));
        list_if_missing(n, AT(MLP_2));
    }
}

static void list_missing_values(needs *n) {
    const sinkproof_variant *v = &n->l->variant;
    bool learned = v->star_value == SINKPROOF_STAR_VALUE_LEARNED;
    list_if_missing(n, AT(ALPHA));
    list_if_missing(n, AT(V));
    if (learned || v->value_bias) list_if_missing(n, AT(STAR_VALUE));
    if (v->star_value != SINKPROOF_STAR_VALUE_NONE && has_tensor(n->l, AT(ALPHA)) &&
        !has_star_column(n->l, AT(ALPHA)))
        append_missing(n, "the star's column of alpha");
}

// Lists the missing inputs of the step that computes `t`.
static void list_missing_inputs(needs *n, design_tensor t) {
    const sinkproof_variant *v = &n->l->variant;
    switch (t) {
    case AT(Q):
    case AT(K):
        list_if_missing(n, t == AT(Q) ? AT(UNTURNED_Q) : AT(UNTURNED_K));
        list_if_missing(n, AT(COS));
        list_if_missing(n, AT(SIN));
        break;
    case AT(FQ):
    case AT(FK):
        list_if_missing(n, t == AT(FQ) ? AT(Q) : AT(K));
        if (v->feature == SINKPROOF_FEATURE_MLP) list_if_missing(n, AT(MLP_1));
        if (v->feature == SINKPROOF_FEATURE_MLP) list_if_missing(n, AT(MLP_2));
        break;
    case AT(BIAS):
        list_missing_places(n);
        if (has_tensor(n->l, t) && bias_is_shared(n->l) && v->places != SINKPROOF_PLACES_ALIBI)
            append_missing(n, "a bias of each row");
        break;
    case AT(S):
        list_missing_scores(n);
        if (has_star_column(n->l, AT(S))) list_missing_star(n);
        break;
    case AT(ALPHA):
        if (!has_tensor(n->l, AT(S))) list_missing_scores(n);
        if (v->seen == SINKPROOF_SEEN_PACKED) list_if_missing(n, AT(DOCUMENTS));
        if (!has_star_column(n->l, AT(S))) list_missing_star(n);
        break;
    case AT(O):
        list_missing_values(n);
        break;
    case AT(GATE):
        list_if_missing(n, AT(G));
        if (has_tensor(n->l, t) && has_tensor(n->l, AT(G)) &&
            n->l->at[t]->shape[2] < n->l->at[AT(G)]->shape[2])
            append_missing(n, "a gate for each number of g");
        break;
    case AT(GATED):
        list_if_missing(n, AT(O));
        if (!has_tensor(n->l, AT(GATE))) list_if_missing(n, AT(G));
        break;
    default:
        break;
    }
}

void design_write_missing(const design_layer *l, design_tensor t, char *text, size_t size) {
    needs n = {l, text, size};
    text[0] = '\0';
    list_missing_inputs(&n, t);
}

void design_write_missing_star(const design_layer *l, char *text, size_t size) {
    needs n = {l, text, size};
    text[0] = '\0';
    list_missing_star(&n);
}
