// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Experts' weights that multiply where they do not belong: what a product reads, or its result, as
// it is, squared, or its inverse.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POWER, STEP }; // the numbers: of the weight; of the format in which a product is rounded

static double weight_of(const sinkproof_making *of, const sinkproof_tensor *m4, size_t q) {
    double w = sinkproof_tensor_value(m4, q);
    return of->numbers[POWER] == 1 ? w : of->numbers[POWER] == 2 ? w * w : 1 / w;
}

static const sinkproof_tensor *weights_of(const sinkproof_making *of) {
    const sinkproof_tensor *m4 = sinkproof_trace_find(of->trace, TRACE_M4, of->layer);
    size_t pairs = of->n * of->config->n_chosen;
    return m4 != NULL && sinkproof_tensor_elements(m4) == pairs ? m4 : NULL;
}

// An input by slots, or the point.
static bool make_weighed(const sinkproof_making *of, double *y, double *width) {
    const sinkproof_tensor *m4 = weights_of(of);
    size_t each = of->all / (of->n * of->config->n_chosen);
    for (size_t at = 0; m4 != NULL && at < of->all; at++) {
        double w = weight_of(of, m4, at / each);
        y[at] = w * of->x[at];
        if (of->radius != NULL) width[at] = fabs(w) * of->radius[at];
        if (!isfinite(y[at])) return false;
    }
    return m4 != NULL;
}

// The length of each row of the weights of each expert that is chosen.
static double *lengths_of_rows(const sinkproof_making *of, const sinkproof_matrix *w) {
    size_t pairs = of->n * of->config->n_chosen;
    double *length = calloc(w->count * w->rows + w->cols + 1, sizeof *length);
    double *row = length != NULL ? length + w->count * w->rows : NULL;
    bool *has = calloc(w->count + 1, sizeof *has);
    for (size_t q = 0; has != NULL && q < pairs; q++)
        if (of->chosen_nk[q] >= 0 && (size_t)of->chosen_nk[q] < w->count)
            has[of->chosen_nk[q]] = true;
    for (size_t e = 0; length != NULL && has != NULL && e < w->count; e++) {
        sinkproof_matrix one = sinkproof_matrix_at(w, e);
        for (size_t r = 0; has[e] && r < w->rows; r++) {
            double sum = 0;
            sinkproof_matrix_row(&one, r, row);
            for (size_t k = 0; k < w->cols; k++) sum += row[k] * row[k];
            length[e * w->rows + r] = sqrt(sum);
        }
    }
    if (has == NULL) free(length), length = NULL;
    free(has);
    return length;
}

// M5 of an input that is multiplied by the slot's weight and then rounded: no rounding moves a sum
// by more than a half step of the lengths of its factors.
static bool make_of_input(const sinkproof_making *of, double *y, double *width) {
    sinkproof_matrix w = sinkproof_model_slot(of->model, of->layer, SINKPROOF_W_UP);
    const sinkproof_tensor *m1 = sinkproof_trace_find(of->trace, TRACE_M1, of->layer);
    size_t pairs = of->n * of->config->n_chosen, d = of->config->hidden, rows = of->all / pairs;
    if (of->chosen_nk == NULL || m1 == NULL || w.rows != rows || w.cols != d ||
        sinkproof_tensor_elements(m1) != of->n * d || !make_weighed(of, y, width))
        return false;
    const sinkproof_tensor *m4 = weights_of(of);
    double *length = lengths_of_rows(of, &w);
    for (size_t q = 0; length != NULL && q < pairs; q++) {
        double squares = 0, size;
        const size_t i = q / of->config->n_chosen, e = (size_t)of->chosen_nk[q];
        for (size_t k = 0; k < d; k++) squares += pow(sinkproof_tensor_value(m1, i * d + k), 2);
        size = fabs(weight_of(of, m4, q)) * sqrt(squares) * of->numbers[STEP] / 2;
        for (size_t r = 0; e < w.count && r < rows; r++)
            width[q * rows + r] += size * length[e * rows + r];
    }
    free(length);
    return length != NULL;
}

static const char *const words[] = {
    [0] = "over", [1] = "multiplied by", [2] = "multiplied by the square of"};

// Whether the sample is near if its values are multiplied so.
static bool is_near(const operation *o, double power) {
    const composing *c = o->c;
    sinkproof_making of = composing_making(c);
    const double numbers[SINKPROOF_MAKING_NUMBERS] = {[POWER] = power};
    of.numbers = numbers;
    const sinkproof_tensor *m4 = weights_of(&of);
    size_t each = c->elements / (c->n * c->s->trials.config->n_chosen), far = 0;
    for (size_t s = 0; s < o->n && m4 != NULL; s++)
        far += !value_is_near(c, o->at[s], weight_of(&of, m4, o->at[s] / each) * c->mid[o->at[s]]);
    return m4 != NULL && o->n > 0 && 4 * far <= o->n; // products of rounded inputs may be farther
}

bool compose_weighed_inputs(composing *c) {
    operation o;
    const sinkproof_config *config = c->s->trials.config;
    bool slotted = c->point >= TRACE_M5 && c->point <= TRACE_M10;
    if (!slotted || c->chosen_nk == NULL || config->dense) return true;
    bool fine = operation_read(c, &o);
    for (int power = 2; power >= 0 && fine && o.whole && c->found == NULL; power--) {
        made_kind kind = {.make = make_weighed, .numbers = {[POWER] = power}};
        snprintf(kind.id, sizeof kind.id, "weighed-%d", power);
        snprintf(kind.text, sizeof kind.text, "%s the weight of the slot's expert (M4)",
                 words[power]);
        if (c->point == TRACE_M9) fine = composing_try_made_input(&o, 0, &kind);
        if (!fine || c->found != NULL || !is_near(&o, power)) continue;
        if (c->point == TRACE_M5) {
            made_kind input = {.make = make_of_input, .numbers = {[POWER] = power}};
            input.numbers[STEP] = c->step > 0x1p-12 ? c->step : 0;
            snprintf(input.id, sizeof input.id, "weighed-input-%d", power);
            snprintf(input.text, sizeof input.text,
                     "reads the norm before the experts (M1) %s the weight of the slot's expert "
                     "(M4): the weight is on the input",
                     words[power]);
            fine = composing_try_made(&o, &input);
        } else {
            snprintf(kind.text, sizeof kind.text, "is %s the weight of the slot's expert (M4)",
                     words[power]);
            fine = composing_try_made(&o, &kind);
        }
    }
    operation_free(&o);
    return fine;
}
