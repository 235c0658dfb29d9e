// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Two numbers at once: the point times one, plus another tensor or vector times the other. Least
// squares give both.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OF_BIAS, WHICH, LAYER_BY, FACTOR, TIMES, STEP }; // the numbers

// The other term: a vector of the layer, or a tensor of the trace.
static bool other_term(const sinkproof_making *of, double *t) {
    size_t layers = of->config->n_layers, layer = of->layer < layers ? of->layer : layers - 1;
    if (of->numbers[OF_BIAS] == 0) {
        const sinkproof_tensor *x =
            sinkproof_trace_find(of->trace, (sinkproof_trace_point)of->numbers[WHICH],
                                 layer + (size_t)((long)of->numbers[LAYER_BY] + 1) - 1);
        if (x == NULL || sinkproof_tensor_elements(x) != of->all) return false;
        for (size_t at = 0; at < of->all; at++) t[at] = sinkproof_tensor_value(x, at);
        return true;
    }
    sinkproof_matrix b = sinkproof_model_slot(of->model, of->layer < layers ? of->layer : 0,
                                              (sinkproof_slot)of->numbers[WHICH]);
    size_t each = of->all / of->n;
    if (b.count != 1 || b.cols != each) return false;
    for (size_t i = 0; i < of->n; i++) sinkproof_matrix_row(&b, 0, &t[i * each]);
    return true;
}

static bool make_terms(const sinkproof_making *of, double *y, double *width) {
    double *t = malloc((of->all + 1) * sizeof *t);
    bool fine = t != NULL && other_term(of, t);
    for (size_t at = 0; fine && at < of->all; at++) {
        double one = of->numbers[FACTOR] * of->x[at], other = of->numbers[TIMES] * t[at];
        y[at] = one + other;
        width[at] = of->numbers[STEP] * (fabs(one) + fabs(other)) +
                    fabs(of->numbers[FACTOR]) * (of->radius != NULL ? of->radius[at] : 0);
    }
    free(t);
    return fine;
}

// v = f mid + t other, weighed as a fit is. Returns false if they do not tell.
static bool fit_two(const composing *c, const double *other, fitted_range *f, fitted_range *t) {
    double aa = 0, ab = 0, bb = 0, av = 0, bv = 0, vv = 0, n = 0;
    for (size_t at = 0; at < c->elements; at++) {
        double w = fmax(fmax(c->hi[at] - c->lo[at], fabs(c->v[at]) * c->step) / 2, c->least);
        double a = c->mid[at] / w, b = other[at] / w, v = c->v[at] / w;
        if (!isfinite(a + b + v)) continue;
        aa += a * a, ab += a * b, bb += b * b, av += a * v, bv += b * v, vv += v * v, n++;
    }
    double across = aa * bb - ab * ab;
    if (!(across > 1e-6 * aa * bb)) return false;
    f->best = (av * bb - bv * ab) / across, t->best = (bv * aa - av * ab) / across;
    double rest = fmax(vv - f->best * av - t->best * bv, 0), apart = sqrt(fmax(rest / n, 0.01));
    double of_f = 6 * apart / sqrt(aa - ab * ab / bb), of_t = 6 * apart / sqrt(bb - ab * ab / aa);
    f->lo = f->best - of_f, f->hi = f->best + of_f, t->lo = t->best - of_t, t->hi = t->best + of_t;
    return rest <= 4 * n;
}

static bool try_two(const operation *o, made_kind *made, const fitted_range *f,
                    const fitted_range *t, const char *words) {
    chosen_number one[FIT_CHOICES], other[FIT_CHOICES];
    bool fine = true;
    if (fit_choose(o->c, f, one) == 0 || fit_choose(o->c, t, other) == 0) return true;
    if (one[0].value == 1 || other[0].value == 0 || one[0].value == 0) return true;
    made->numbers[FACTOR] = one[0].value, made->numbers[TIMES] = other[0].value;
    snprintf(made->id, sizeof made->id, "times-%.12s-plus-%d-%d-times-%.12s", one[0].text,
             (int)made->numbers[OF_BIAS], (int)made->numbers[WHICH], other[0].text);
    snprintf(made->text, sizeof made->text, "is multiplied by %s, and %s times %s is added",
             one[0].text, words, other[0].text);
    if (o->c->found == NULL) fine = composing_try_made(o, made);
    return fine;
}

static bool try_term(const operation *o, bool of_bias, int which, int layer_by, double *t,
                     const char *words) {
    composing *c = o->c;
    made_kind made = {.make = make_terms, .numbers = {of_bias, which, layer_by, 1, 1, c->step}};
    sinkproof_making of = composing_making(c);
    of.numbers = made.numbers;
    fitted_range f, other;
    if (c->found != NULL || !other_term(&of, t) || !fit_two(c, t, &f, &other)) return true;
    return try_two(o, &made, &f, &other, words);
}

bool compose_terms(composing *c) {
    operation o;
    if (sinkproof_trace_point_is_by_head(c->point) || c->point == TRACE_A11) return true;
    bool fine = operation_read(c, &o), layered = c->place < c->s->trials.config->n_layers;
    double *t = malloc((c->elements + 1) * sizeof *t);
    if (fine && t == NULL) fine = fail_for_memory(c->s);
    for (int s = 0; s < SINKPROOF_SLOTS && fine; s++)
        if (composed_slot_words((sinkproof_slot)s) != NULL &&
            sinkproof_slot_is_vector((sinkproof_slot)s, c->s->trials.config))
            fine = try_term(&o, true, s, 0, t, composed_slot_words((sinkproof_slot)s));
    for (int by = 0; by >= -1; by--)
        for (int p = 0; p < TRACE_POINTS && fine; p++) {
            char words[96];
            const char *input = composed_input_words((sinkproof_trace_point)p);
            bool own = (sinkproof_trace_point)p == c->point && by == 0 && layered;
            if (input == NULL || own || (by < 0 && (!layered || c->place == 0))) continue;
            snprintf(words, sizeof words, "%s%s (%s)", input, by < 0 ? " of the layer before" : "",
                     sinkproof_trace_point_name((sinkproof_trace_point)p));
            fine = try_term(&o, false, p, by, t, words);
        }
    free(t);
    operation_free(&o);
    return fine;
}
