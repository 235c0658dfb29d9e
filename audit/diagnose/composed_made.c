// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_made.h"
#include "audit/diagnose/gains.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *composed_input_words(sinkproof_trace_point point) {
    static const char *const words[TRACE_POINTS] = {
        [TRACE_T0] = "the embedding",
        [TRACE_A1] = "the norm before attention",
        [TRACE_A12] = "the output projection",
        [TRACE_A13] = "the residual after attention",
        [TRACE_M1] = "the norm before the experts",
        [TRACE_M11] = "the sum over the experts",
        [TRACE_M12] = "the residual after the experts",
        [TRACE_F1] = "the last norm",
        [TRACE_A2_Q] = "the queries before their rotation",
        [TRACE_A2_K] = "the keys before their rotation",
        [TRACE_A2_V] = "the values",
        [TRACE_A4_Q] = "the queries",
        [TRACE_A4_K] = "the keys",
        [TRACE_A11] = "the weighted values",
        [TRACE_M2] = "the logits of the router",
        [TRACE_M4] = "the experts' weights",
        [TRACE_M5] = "gate and up before their bias",
        [TRACE_M6] = "gate and up",
        [TRACE_M8] = "the activations",
        [TRACE_M9] = "the experts' outputs before their bias",
        [TRACE_M10] = "the experts' outputs",
    };
    return words[point];
}

composed_mistake *composing_reads(composing *c, const sinkproof_input *input) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->input = (mistake_input){
        .on = true,
        .point = c->point,
        .input = input->point,
        .from = input->point,
        .moving = {.on = true, .point = input->point, .along = ALONG_ROWS, .factor = 1}};
    if (c->place < c->s->trials.config->n_layers)
        m->input.layer_by = (int)((long)input->layer - (long)c->place);
    return m;
}

void composed_say_reads(const composing *c, composed_mistake *m, const sinkproof_input *input) {
    composed_say(m, "%s reads %s (%s) ", sinkproof_trace_point_name(c->point),
                 composed_input_words(input->point), sinkproof_trace_point_name(input->point));
}

const double *composing_keep_numbers(composing *c, size_t n, const double *numbers) {
    const uint8_t *kept =
        composing_keep_marks(c, n * sizeof *numbers, (const uint8_t *)(const void *)numbers);
    if (kept == NULL) fail_for_memory(c->s);
    return (const double *)(const void *)kept;
}

sinkproof_making composing_making(const composing *c) {
    return (sinkproof_making){.config = c->s->trials.config,
                              .model = c->s->trials.suspect.model,
                              .trace = c->s->trials.suspect.trace,
                              .point = c->point,
                              .layer = c->place,
                              .n = c->n,
                              .all = c->elements,
                              .chosen_nk = c->chosen_nk};
}

// y[2, all]: what is made of a tensor, then its widths. *made: it can be.
static void make(const composing *c, const made_kind *kind, const sinkproof_input *of, size_t all,
                 const double *x, double *y, bool *made) {
    double *width = y + all;
    sinkproof_making how = composing_making(c);
    how.point = of->point, how.layer = of->layer, how.all = all;
    how.x = x, how.numbers = kind->numbers, how.table = kind->table;
    memset(width, 0, all * sizeof *width);
    for (size_t at = 0; at < all; at++) y[at] = kind->adds ? 0 : x[at];
    *made = kind->make(&how, y, width);
    for (size_t at = 0; at < all && kind->adds; at++) y[at] += x[at];
}

// Whether the point differs from its definition in a region along what is made, by half to one and
// a half times as much, and is nearer to it, by six times what chance gives. Sets about as wide as
// the differences hold what has nothing to do with them. What is fitted lies along whatever it was
// fitted to: it must hold at least four times the squares that it leaves. Of noise its numbers hold
// about their share of the elements, of another mistake a part. Squares are in units of what a
// rounding may change.
static bool is_measured(const composing *c, const made_kind *kind, const sinkproof_region *region,
                        const double *y) {
    double all = 0, left = 0, along = 0, square = 0;
    gains nearer = {0};
    for (size_t at = 0; at < c->elements; at++) {
        double round = fmax(fmax(c->hi[at] - c->lo[at], c->step * fabs(c->v[at])), c->least);
        double off = (c->v[at] - c->mid[at]) / round, by = (y[at] - c->mid[at]) / round;
        bool asked = c->lo[at] != 0 || c->hi[at] != 0; // scores that are masked have no sets
        if (!asked || !isfinite(off) || !isfinite(by) || !composing_holds(c, region, at)) continue;
        all += off * off, left += (off - by) * (off - by);
        along += off * by, square += by * by;
        gains_add(&nearer, off, off - by);
    }
    if (kind->fitted && !(all >= 5 * left)) return false;
    return fabs(along - square) <= square / 2 && gain_of(&nearer) >= GAIN_SURE;
}

// Tries it in the regions where it is measured, or in all.
static bool try_moving(composing *c, const sinkproof_moving *how, const made_kind *kind,
                       const double *y) {
    sinkproof_region kept[sizeof c->regions / sizeof c->regions[0]];
    size_t all = c->n_regions, some = 0;
    memcpy(kept, c->regions, sizeof kept);
    for (size_t r = 0; r < all; r++)
        if (!(kind->measured || kind->fitted) || is_measured(c, kind, &kept[r], y))
            c->regions[some++] = kept[r];
    c->n_regions = some;
    bool fine = composing_try_fitted(c, how, kind->ranged, kind->id, kind->text);
    memcpy(c->regions, kept, sizeof kept);
    c->n_regions = all;
    return fine;
}

// Whether the point is near to what is made of it: nearly all elements of a sample, or all of the
// point within the widths.
static bool is_near(const operation *o, const made_kind *kind, const double *y) {
    const composing *c = o->c;
    const double *width = y + c->elements;
    size_t far = 0;
    for (size_t s = 0; s < o->n && !kind->widened; s++)
        far += !value_is_near(c, o->at[s], y[o->at[s]]);
    for (size_t at = 0; at < c->elements && kind->widened; at++)
        far += !(fabs(c->v[at] - y[at]) <=
                 width[at] + c->hi[at] - c->lo[at] + c->step * fabs(c->v[at]));
    return o->n > 0 && (kind->widened ? far == 0 : 8 * far <= o->n);
}

bool composing_try_made(const operation *o, const made_kind *kind) {
    composing *c = o->c;
    const sinkproof_input own = {.point = c->point, .layer = c->place};
    double *y = malloc((2 * c->elements + 1) * sizeof *y);
    bool made = false;
    if (y == NULL) return fail_for_memory(c->s);
    make(c, kind, &own, c->elements, c->mid, y, &made);
    sinkproof_moving how = {.on = true,
                            .point = c->point,
                            .along = ALONG_ROWS,
                            .factor = 1,
                            .make = kind->make,
                            .adds = kind->adds,
                            .table = kind->table};
    memcpy(how.numbers, kind->numbers, sizeof how.numbers);
    bool fine = !made || !is_near(o, kind, y) || try_moving(c, &how, kind, y);
    free(y);
    return fine;
}

static bool try_input_kept(composing *c, const sinkproof_input *input, const made_kind *kind,
                           sinkproof_format kept, const sinkproof_region *region) {
    composed_mistake *m = composing_reads(c, input);
    if (m == NULL) return false;
    m->input.make = kind->make, m->input.kept = kept, m->region = *region;
    m->input.table = kind->table;
    memcpy(m->input.numbers, kind->numbers, sizeof m->input.numbers);
    composed_name(m, "%s-reads-%s-%s", sinkproof_trace_point_name(c->point),
                  sinkproof_trace_point_name(input->point), kind->id);
    if (input->point != TRACE_M3) composed_say_reads(c, m, input);
    composed_say(m, "%s", kind->text);
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_input(composing *c, const sinkproof_input *input, const made_kind *kind) {
    bool fine = true, narrow = c->step > 0x1p-12 && input->point != TRACE_M3;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fine = try_input_kept(c, input, kind, SINKPROOF_REAL, &c->regions[r]);
        if (fine && narrow && c->found == NULL)
            fine = try_input_kept(c, input, kind, SINKPROOF_BF16, &c->regions[r]);
    }
    return fine;
}

bool composing_try_made_input(const operation *o, size_t input, const made_kind *kind) {
    composing *c = o->c;
    size_t all = o->width[input] * c->n;
    double *y = malloc((2 * all + 1) * sizeof *y);
    bool made = false;
    if (y == NULL) return fail_for_memory(c->s);
    make(c, kind, &o->inputs[input], all, o->x[input], y, &made);
    const operation_change change = {.input = input, .x = y};
    bool near = made && operation_is_near(o, &change);
    free(y);
    return !near || try_input(c, &o->inputs[input], kind);
}

bool composing_try_made_experts(const operation *o, const made_kind *kind) {
    composing *c = o->c;
    const sinkproof_input chosen = {.point = TRACE_M3, .layer = c->place};
    size_t all = c->n * c->s->trials.config->n_chosen;
    double *y = calloc(3 * all + 1, sizeof *y), *x = y + 2 * all;
    int32_t *to = malloc((all + 1) * sizeof *to);
    bool made = false, fine = (y != NULL && to != NULL) || fail_for_memory(c->s);
    for (size_t q = 0; fine && q < all; q++) x[q] = c->chosen_nk[q];
    if (fine) make(c, kind, &chosen, all, x, y, &made);
    for (size_t q = 0; fine && made && q < all; q++) {
        made = y[q] >= 0 && y[q] < (double)c->s->trials.config->n_experts;
        to[q] = made ? (int32_t)y[q] : 0;
    }
    const operation_change change = {.chosen_nk = to};
    bool near = fine && made && operation_is_near(o, &change);
    free(y);
    free(to);
    return near ? try_input(c, &chosen, kind) : fine;
}
