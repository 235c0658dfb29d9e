// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What an operation reads in the place of its input: another tensor of the trace. And how much of
// its two terms a residual adds.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdlib.h>

// ---- another tensor

// In the place of a layer: the residual that enters the layer, which is T0 or M12 of the one
// before.
enum { LAYER_INPUT = -100 };

static bool same_shape(const composing *c, sinkproof_trace_point a, sinkproof_trace_point b) {
    const sinkproof_config *config = c->s->trials.config;
    size_t x[SINKPROOF_MAX_RANK], y[SINKPROOF_MAX_RANK];
    size_t rank = sinkproof_trace_shape(config, a, c->n, x);
    bool same = rank == sinkproof_trace_shape(config, b, c->n, y);
    for (size_t d = 0; same && d < rank; d++) same = x[d] == y[d];
    return same;
}

static bool try_input(composing *c, const sinkproof_input *input, sinkproof_trace_point from,
                      int layer_by, const sinkproof_region *region) {
    composed_mistake *m = composing_reads(c, input);
    if (m == NULL) return false;
    m->input.from = from, m->input.layer_by = layer_by, m->input.moving.on = false;
    m->region = *region;
    const char *of = layer_by < 0 ? " of the layer before" : "";
    if (layer_by == LAYER_INPUT) {
        m->input.layer_by = 0, m->input.residual = true;
        composed_name(m, "%s-reads-the-layer's-input", sinkproof_trace_point_name(c->point));
        composed_say(m, "%s reads the layer's input in the place of %s (%s)",
                     sinkproof_trace_point_name(c->point), composed_input_words(input->point),
                     sinkproof_trace_point_name(input->point));
        composed_say_region(c, m);
        return composing_try(c, m);
    }
    composed_name(m, "%s-reads-%s%s", sinkproof_trace_point_name(c->point),
                  sinkproof_trace_point_name(from), layer_by < 0 ? "-before" : "");
    composed_say(m, "%s reads %s%s (%s) in the place of %s (%s)",
                 sinkproof_trace_point_name(c->point), composed_input_words(from), of,
                 sinkproof_trace_point_name(from), composed_input_words(input->point),
                 sinkproof_trace_point_name(input->point));
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_inputs_from(composing *c, const sinkproof_input *input, int layer_by) {
    bool fine = true, last = c->place == c->s->trials.config->n_layers;
    for (int p = 0; p < TRACE_POINTS && fine && c->found == NULL; p++) {
        sinkproof_trace_point from = (sinkproof_trace_point)p;
        size_t layer = last ? c->place - 1 : c->place;
        bool ends = !sinkproof_trace_point_is_layered(from);
        if (from == c->point && layer_by == 0 && !last) continue;
        if (from == TRACE_F1 || from == TRACE_F2 || composed_input_words(from) == NULL) continue;
        if (ends ? layer_by < 0
                 : from == input->point && layer + (size_t)(layer_by + 1) - 1 == input->layer)
            continue;
        if (ends && input->point == from) continue;
        if (!same_shape(c, from, input->point)) continue;
        for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++)
            fine = try_input(c, input, from, layer_by, &c->regions[r]);
    }
    return fine;
}

bool compose_inputs(composing *c) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    const sinkproof_config *config = c->s->trials.config;
    size_t layer = c->place < config->n_layers ? c->place : 0;
    size_t n = sinkproof_trace_inputs(config, c->point, layer, inputs);
    bool fine = true;
    for (size_t i = 0; i < n && fine && c->found == NULL; i++) {
        if (composed_input_words(inputs[i].point) == NULL) continue;
        bool layered = c->place < config->n_layers;
        bool own = c->point == TRACE_A1 || (c->point == TRACE_A13 && i == 1);
        for (size_t r = 0; r < c->n_regions && layered && !own && fine && c->found == NULL; r++)
            fine = same_shape(c, inputs[i].point, TRACE_T0) == false ||
                   try_input(c, &inputs[i], TRACE_T0, LAYER_INPUT, &c->regions[r]);
        if (fine && c->found == NULL) fine = try_inputs_from(c, &inputs[i], 0);
        if (fine && c->found == NULL && c->place > 0) fine = try_inputs_from(c, &inputs[i], -1);
    }
    return fine;
}

// ---- the terms of a residual

// numbers: what multiplies x, and t.
static bool join_otherwise(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_joining how = {m->numbers[0], m->numbers[1]};
    *(m->mistake.slots == TRACE_A13 ? &s->meaning.after_values : &s->meaning.after_experts) = how;
    return true;
}

static composed_mistake *joined_new(composing *c, double kept, double added) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->operate = join_otherwise, m->mistake.slots = c->point;
    m->numbers[0] = kept, m->numbers[1] = added;
    return m;
}

static bool try_joined(composing *c, int term, const sinkproof_region *region,
                       const chosen_number *by) {
    bool attention = c->point == TRACE_A13;
    composed_mistake *m = joined_new(c, 1, 1);
    if (m == NULL) return false;
    m->numbers[term] = by->value, m->by = m->fitted = &m->numbers[term], m->region = *region;
    composed_name(m, "%s-%s-times-%s", sinkproof_trace_point_name(c->point),
                  term == 0 ? "residual" : "added", by->text);
    if (term == 0)
        composed_say(m, "the residual is multiplied by %s after %s", by->text,
                     attention ? "attention" : "the experts");
    else
        composed_say(m, "what %s is multiplied by %s where the residual takes it",
                     attention ? "attention gives" : "the experts give", by->text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

// The values of an input; NULL: the trace lacks it, or *fine is false.
static double *read_input(composing *c, const sinkproof_input *input, bool *fine) {
    const sinkproof_tensor *t =
        sinkproof_trace_find(c->s->trials.suspect.trace, input->point, input->layer);
    if (t == NULL) return NULL;
    double *x = malloc(c->elements * sizeof *x);
    if (x == NULL) *fine = fail_for_memory(c->s);
    for (size_t at = 0; x != NULL && at < c->elements; at++) x[at] = sinkproof_tensor_value(t, at);
    return x;
}

// term 0: x, term 1: what the sublayer adds. `other` is the other term, `sum` both.
static bool try_term(composing *c, int term, const double *other, const double *sum) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fitted_range t;
        chosen_number by[FIT_CHOICES];
        if (!fit_number(c, &c->regions[r], other, sum, &t) || !t.good) continue;
        size_t n = fit_choose(c, &t, by);
        for (size_t i = 0; i < n && fine && c->found == NULL; i++)
            fine = by[i].value == 1 || try_joined(c, term, &c->regions[r], &by[i]);
    }
    return fine;
}

bool compose_residuals(composing *c) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (c->point != TRACE_A13 && c->point != TRACE_M12) return true;
    sinkproof_trace_inputs(c->s->trials.config, c->point, c->place, inputs);
    bool fine = true;
    double *t = read_input(c, &inputs[0], &fine), *x = read_input(c, &inputs[1], &fine);
    double *sum = t != NULL && x != NULL ? malloc(c->elements * sizeof *sum) : NULL;
    for (size_t at = 0; sum != NULL && at < c->elements; at++) sum[at] = x[at] + t[at];
    if (fine && sum != NULL) fine = try_term(c, 1, x, sum);
    if (fine && sum != NULL && c->found == NULL) fine = try_term(c, 0, t, sum);
    free(t);
    free(x);
    free(sum);
    return fine;
}
