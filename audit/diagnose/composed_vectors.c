// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A bias, or another vector of weights, that is added to a point where it does not belong: times a
// number that is fitted. A bias that a point lacks and that comes behind it is one cause of both.
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOT, TIMES, STEP }; // the numbers

// A vector for a point, of its layer; of a point with slots: of their experts.
static bool read_vector(const sinkproof_making *of, sinkproof_slot slot, size_t row,
                        double *row_c) {
    size_t layers = of->config->n_layers;
    sinkproof_matrix stack =
        sinkproof_model_slot(of->model, of->layer < layers ? of->layer : 0, slot);
    if (stack.count > 1 && (of->chosen_nk == NULL || of->chosen_nk[row] < 0)) return false;
    sinkproof_matrix one =
        sinkproof_matrix_at(&stack, stack.count > 1 ? (size_t)of->chosen_nk[row] : 0);
    sinkproof_matrix_row(&one, 0, row_c);
    return true;
}

// The vectors that a point may take, by their width; 0: it takes none of the slot.
static size_t vector_width(const composing *c, sinkproof_slot slot) {
    const sinkproof_config *config = c->s->trials.config;
    size_t layer = c->place < config->n_layers ? c->place : 0, count, rows, cols;
    size_t each = c->elements / c->n, slots = each / config->n_chosen;
    bool by_slot = c->point >= TRACE_M5 && c->point <= TRACE_M10 && !config->dense;
    sinkproof_slot_shape(slot, config, &count, &rows, &cols);
    if (count == 0 || !sinkproof_slot_is_vector(slot, config)) return 0;
    sinkproof_matrix stack = sinkproof_model_slot(c->s->trials.suspect.model, layer, slot);
    if (stack.count == 0 || (stack.count > 1 && !by_slot)) return 0;
    return stack.cols == each || (by_slot && stack.cols == slots) ? stack.cols : 0;
}

static bool make_vector(const sinkproof_making *of, double *y, double *width) {
    sinkproof_slot slot = (sinkproof_slot)of->numbers[SLOT];
    size_t count, rows, cols;
    sinkproof_slot_shape(slot, of->config, &count, &rows, &cols);
    sinkproof_matrix stack =
        sinkproof_model_slot(of->model, of->layer < of->config->n_layers ? of->layer : 0, slot);
    cols = stack.cols;
    double *row = cols > 0 ? malloc(cols * sizeof *row) : NULL;
    bool fine = row != NULL && of->all % cols == 0;
    for (size_t r = 0; fine && r < of->all / cols; r++) {
        fine = read_vector(of, slot, r, row);
        for (size_t c = 0; fine && c < cols; c++) {
            y[r * cols + c] = of->numbers[TIMES] * row[c];
            width[r * cols + c] = of->numbers[STEP] * fabs(of->numbers[TIMES] * row[c]);
        }
    }
    free(row);
    return fine;
}

// The bias of the rotated point's own projection, which comes behind the rotation: where it belongs
// so little of it is left that nothing shows it, and the point that takes it can still read it.
#define LEFT 0x1p-80
static bool remove_bias(supposed_engine *s, const known_mistake *k) {
    mistake_weight_edit *e = add_weight_edit(s, k->slots);
    if (e == NULL) return false;
    e->reading.factor = LEFT, e->reading.then = 1;
    return true;
}

static bool is_behind_rotation(const composing *c, sinkproof_slot slot) {
    return (c->point == TRACE_A4_K && slot == SINKPROOF_B_K) ||
           (c->point == TRACE_A4_Q && slot == SINKPROOF_B_Q);
}

// The same mistake as the one cause of the point that lacks the bias and of the one that takes it.
static bool try_both(composing *c, const sinkproof_moving *how, sinkproof_slot slot) {
    sinkproof_trace_point lacking = c->point == TRACE_A4_K ? TRACE_A2_K : TRACE_A2_Q;
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->moving = *how, m->operate = remove_bias, m->mistake.slots = 1u << slot;
    m->moving.numbers[TIMES] /= LEFT;
    m->mistake.points = point_bit(c->point) | point_bit(lacking);
    composed_name(m, "%s-behind-rotation", sinkproof_slot_name(slot));
    composed_say(m, "%s are added after the rotation (to %s), not before it (to %s)",
                 composed_slot_words(slot), sinkproof_trace_point_name(c->point),
                 sinkproof_trace_point_name(lacking));
    composed_say_moved(c, m);
    return composing_try(c, m);
}

static bool try_vector(composing *c, sinkproof_slot slot, const sinkproof_region *region,
                       const chosen_number *by) {
    sinkproof_moving how = {.on = true,
                            .point = c->point,
                            .region = *region,
                            .along = ALONG_ROWS,
                            .factor = 1,
                            .make = make_vector,
                            .adds = true};
    how.numbers[SLOT] = slot, how.numbers[TIMES] = by->value, how.numbers[STEP] = c->step;
    if (is_behind_rotation(c, slot) && by->value == 1) {
        if (!try_both(c, &how, slot)) return false;
        if (c->found != NULL) return true;
    }
    composed_mistake *m = composing_new(c);
    if (m == NULL) return false;
    m->moving = how;
    composed_name(m, "%s-plus-%s-times-%s", sinkproof_trace_point_name(c->point),
                  sinkproof_slot_name(slot), by->text);
    const char *words = composed_slot_words(slot), *point = sinkproof_trace_point_name(c->point);
    if (by->value == 1)
        composed_say(m, "%s: added to %s too%s", words, point,
                     is_behind_rotation(c, slot) ? ", behind the rotation" : "");
    else if (by->value == -1)
        composed_say(m, "%s: subtracted from %s", words, point);
    else
        composed_say(m, "%s: %s times it is added to %s", words, by->text, point);
    composed_say_moved(c, m);
    return composing_try(c, m);
}

static bool fit_vector(composing *c, sinkproof_slot slot, double *with, double *width) {
    const double once[SINKPROOF_MAKING_NUMBERS] = {[SLOT] = slot, [TIMES] = 1};
    sinkproof_making of = composing_making(c);
    of.x = c->mid, of.numbers = once;
    bool fine = true;
    if (!make_vector(&of, with, width)) return true;
    for (size_t at = 0; at < c->elements; at++) with[at] += c->mid[at];
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fitted_range t;
        chosen_number by[FIT_CHOICES];
        if (!fit_number(c, &c->regions[r], c->mid, with, &t) || !t.good) continue;
        size_t n = fit_choose(c, &t, by);
        for (size_t i = 0; i < n && fine && c->found == NULL; i++)
            if (by[i].value != 0) fine = try_vector(c, slot, &c->regions[r], &by[i]);
    }
    return fine;
}

bool compose_vectors(composing *c) {
    double *with = malloc((2 * c->elements + 1) * sizeof *with);
    bool fine = with != NULL || fail_for_memory(c->s);
    for (int s = 0; s < SINKPROOF_SLOTS && fine && c->found == NULL; s++)
        if (composed_slot_words((sinkproof_slot)s) != NULL &&
            vector_width(c, (sinkproof_slot)s) > 0)
            fine = fit_vector(c, (sinkproof_slot)s, with, with + c->elements);
    free(with);
    return fine;
}
