// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What is added to a point beside what belongs there: another tensor of the trace, times a number.
// And the embedding of some tokens.
#include "audit/diagnose/composed_changes.h"
#include "audit/diagnose/composed_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- another tensor

static bool try_added(composing *c, sinkproof_trace_point from, int layer_by,
                      const sinkproof_region *region, const chosen_number *by) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    const char *name = sinkproof_trace_point_name(from);
    m->moving = (sinkproof_moving){.on = true,
                                   .point = c->point,
                                   .region = *region,
                                   .along = ALONG_ROWS,
                                   .factor = 1,
                                   .plus = from,
                                   .plus_layer_by = layer_by,
                                   .plus_times = by->value};
    const char *before = layer_by < 0 ? " of the layer before" : "";
    composed_name(m, "%s-plus-%s%s-times-%s", sinkproof_trace_point_name(c->point), name,
                  layer_by < 0 ? "-before" : "", by->text);
    if (by->value == 1)
        composed_say(m, "%s%s (%s) is added to %s once more", composed_input_words(from), before,
                     name, sinkproof_trace_point_name(c->point));
    else if (by->value == -1)
        composed_say(m, "%s%s (%s) is subtracted from %s", composed_input_words(from), before, name,
                     sinkproof_trace_point_name(c->point));
    else
        composed_say(m, "%s%s (%s) times %s is added to %s", composed_input_words(from), before,
                     name, by->text, sinkproof_trace_point_name(c->point));
    composed_say_moved(c, m);
    return composing_try(c, m);
}

static bool try_adding(composing *c, const sinkproof_tensor *t, sinkproof_trace_point from,
                       int layer_by, double *with) {
    bool fine = true;
    for (size_t at = 0; at < c->elements; at++)
        with[at] = c->mid[at] + sinkproof_tensor_value(t, at);
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fitted_range range;
        chosen_number by[FIT_CHOICES];
        if (!fit_number(c, &c->regions[r], c->mid, with, &range) || !range.good) continue;
        size_t n = fit_choose(c, &range, by);
        for (size_t i = 0; i < n && fine && c->found == NULL; i++)
            if (by[i].value != 0) fine = try_added(c, from, layer_by, &c->regions[r], &by[i]);
    }
    return fine;
}

bool compose_added(composing *c) {
    const sinkproof_config *config = c->s->trials.config;
    size_t layer = c->place < config->n_layers ? c->place : config->n_layers - 1;
    double *with = malloc((c->elements + 1) * sizeof *with);
    bool fine = with != NULL || fail_for_memory(c->s);
    for (int layer_by = 0; layer_by >= -1; layer_by--)
        for (int p = 0; p < TRACE_POINTS && fine && c->found == NULL; p++) {
            sinkproof_trace_point from = (sinkproof_trace_point)p;
            bool ends = !sinkproof_trace_point_is_layered(from);
            if (composed_input_words(from) == NULL || (ends && layer_by < 0)) continue;
            if (layer == 0 && layer_by < 0) continue;
            if (from == c->point && layer_by == 0 && layer == c->place) continue;
            const sinkproof_tensor *t = sinkproof_trace_find(c->s->trials.suspect.trace, from,
                                                             layer + (size_t)(layer_by + 1) - 1);
            if (t != NULL && sinkproof_tensor_elements(t) == c->elements)
                fine = try_adding(c, t, from, layer_by, with);
        }
    free(with);
    return fine;
}

// ---- the embedding of some tokens

typedef struct vocabulary {
    size_t first, end;   // the tokens with a mistake: [first, end) if range
    size_t after, until; // where their lower end may be
    bool range;
} vocabulary;

// The tokens whose rows have an element outside, and whether they are above or below all others.
static bool tokens_outside(composing *c, vocabulary *v) {
    size_t vocab = c->s->trials.config->vocab, each = c->elements / c->n;
    const int32_t *tokens = sinkproof_trace_tokens(c->s->trials.suspect.trace);
    size_t bad_least = vocab, bad_most = 0, good_least = vocab, good_most = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t t = (size_t)tokens[i];
        bool bad = false;
        for (size_t k = 0; k < each && !bad; k++) bad = c->marks[i * each + k];
        if (bad && t < bad_least) bad_least = t;
        if (bad && t > bad_most) bad_most = t;
        if (!bad && t < good_least) good_least = t;
        if (!bad && t > good_most) good_most = t;
    }
    bool upper = bad_least > good_most, lower = bad_most < good_least;
    *v = (vocabulary){.first = 0, .end = vocab, .range = upper || lower};
    if (upper) v->after = good_most, v->until = bad_least;
    if (upper) v->first = bad_least;
    if (lower && !upper) v->end = bad_most + 1;
    return v->range && (upper || lower) && good_least < vocab;
}

static bool try_tokens(composing *c, const operation *o, const vocabulary *v,
                       mistake_weight_edit *edit, const char *id, const char *text) {
    edit->slots = 1u << SINKPROOF_EMBEDDING, edit->rewritten = true;
    edit->rows = (sinkproof_indices){.first = v->first, .end = v->end};
    const operation_change change = {.edit = edit};
    if (!operation_is_near(o, &change)) return true;
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->edit = *edit;
    composed_name(m, "embedding-%s@token=%zu-%zu", id, v->first, v->end - 1);
    if (v->end == c->s->trials.config->vocab)
        composed_say(m, "%s for the embedding of each of the trace's tokens from %zu on", text,
                     v->first);
    else
        composed_say(m, "%s for the embedding of each of the trace's tokens before %zu", text,
                     v->end);
    return composing_try(c, m);
}

bool compose_tokens(composing *c) {
    operation o;
    vocabulary v;
    if (c->point != TRACE_T0 || !tokens_outside(c, &v)) return true;
    bool fine = operation_read(c, &o);
    mistake_weight_edit zero = {.change = {.kind = SINKPROOF_CHANGE_CLAMP}};
    if (fine) fine = try_tokens(c, &o, &v, &zero, "zero", "zeros stand");
    for (long by = -(long)v.until; by <= 1 && fine && c->found == NULL; by++) {
        char id[32], text[80];
        // the next one, the one before, or the number within a rank that begins at the boundary
        if (by == 0 || (by < -1 && -by <= (long)v.after)) continue;
        mistake_weight_edit shifted = {.row_from = {.source = SINKPROOF_FROM_SHIFTED, .by = by}};
        snprintf(id, sizeof id, "rows%+ld", by);
        if (by == 1 || by == -1)
            snprintf(text, sizeof text, "that of the %s stands",
                     by > 0 ? "next token" : "token before");
        else
            snprintf(text, sizeof text,
                     "that of the token %ld before (its number in a rank) stands", -by);
        fine = try_tokens(c, &o, &v, &shifted, id, text);
    }
    for (size_t one = 0; one <= v.until && fine && c->found == NULL; one++) {
        char id[32], text[64];
        mistake_weight_edit edit = {.row_from = {.source = SINKPROOF_FROM_FIXED, .by = (long)one}};
        if (one > 1 && one < v.after) one = v.after; // 0 and 1, and those at the boundary
        snprintf(id, sizeof id, "row-%zu", one);
        snprintf(text, sizeof text, "that of token %zu stands", one);
        fine = try_tokens(c, &o, &v, &edit, id, text);
    }
    operation_free(&o);
    return fine;
}
