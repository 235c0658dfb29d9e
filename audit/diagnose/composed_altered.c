// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A point, or an input of its operation, whose numbers are changed (rounded, clamped, normalised)
// or stand in another order. Binary64 numbers of a sample refute most of them before the judge
// asks.
#include "audit/diagnose/composed_changes.h"
#include "audit/diagnose/composed_made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- what is altered: the point, or an input

typedef struct altering {
    composing *c;
    operation o;
    bool of_input;
    size_t input;
    sinkproof_trace_point point;
    size_t elements, each; // each: of a token
    const double *x;
    double *y; // as altered; only in the rows of the sample
    double largest;
} altering;

static bool altering_begin(altering *a) {
    a->each = a->elements / a->c->n;
    a->y = malloc((a->elements + 1) * sizeof *a->y);
    a->largest = 0;
    for (size_t at = 0; at < a->elements; at++)
        if (isfinite(a->x[at])) a->largest = fmax(a->largest, fabs(a->x[at]));
    return a->y != NULL || fail_for_memory(a->c->s);
}

// Whether the sample is near under the change.
static bool alters_to(altering *a, const sinkproof_moving *how, bool *near) {
    composing *c = a->c;
    const sinkproof_tensor_numbers of = {.config = c->s->trials.config,
                                         .n = c->n,
                                         .chosen_nk = c->chosen_nk,
                                         .largest = a->largest,
                                         .x = a->x};
    size_t far = 0;
    for (size_t s = 0, last = SIZE_MAX; s < a->o.n; s++) {
        size_t i = a->o.at[s] / (c->elements / c->n);
        if (i != last && !sinkproof_moved_numbers(how, &of, i * a->each, (i + 1) * a->each, a->y))
            return fail_for_memory(c->s);
        last = i;
        if (!a->of_input) far += !value_is_near(c, a->o.at[s], a->y[a->o.at[s]]);
    }
    const operation_change change = {.input = a->input, .x = a->y};
    *near = a->of_input ? operation_is_near(&a->o, &change) : 8 * far <= a->o.n;
    *near = *near && a->o.n > 0;
    return true;
}

// ---- a trial

static bool keep_unrounded(supposed_engine *s, const known_mistake *k) {
    const composed_mistake *m = (const composed_mistake *)(const void *)k;
    sinkproof_point at;
    if (!sinkproof_trace_rounding(m->moving.point, &at)) return false;
    s->policy.at[at] = (sinkproof_rounding){.format = SINKPROOF_REAL};
    return true;
}

// The same of numbers that were not rounded to the point's format before, and are after.
static bool try_unrounded(altering *a, const sinkproof_moving *how, const char *id,
                          const char *text) {
    composing *c = a->c;
    bool fine = true;
    sinkproof_point at;
    if (!sinkproof_trace_rounding(a->point, &at)) return true;
    sinkproof_format format = c->s->trials.suspect.policy->at[at].format;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = composing_new(c);
        if (m == NULL) return false;
        m->operate = keep_unrounded;
        m->moving = *how, m->moving.region = c->regions[r];
        m->moving.then = (sinkproof_change){.kind = SINKPROOF_CHANGE_ROUND, .format = format};
        composed_name(m, "%s-%s", sinkproof_trace_point_name(c->point), id);
        composed_say(m, "%s is %s", sinkproof_trace_point_name(c->point), text);
        composed_say_moved(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_output(altering *a, const sinkproof_moving *how, const char *id, const char *text) {
    char is[280];
    snprintf(is, sizeof is, "is %s", text);
    if (!composing_try_moving(a->c, how, id, is)) return false;
    bool narrow = a->c->step > 0x1p-12 && how->change.kind == SINKPROOF_CHANGE_ROUND;
    return a->c->found != NULL || !narrow || try_unrounded(a, how, id, text);
}

static bool try_input_kept(altering *a, const sinkproof_moving *how, sinkproof_format kept,
                           const sinkproof_region *region, const char *id, const char *text) {
    composing *c = a->c;
    const sinkproof_input *input = &a->o.inputs[a->input];
    composed_mistake *m = composing_reads(c, input);
    if (m == NULL) return false;
    m->input.moving = *how, m->input.kept = kept, m->region = *region;
    composed_name(m, "%s-reads-%s-%s", sinkproof_trace_point_name(c->point),
                  sinkproof_trace_point_name(input->point), id);
    composed_say_reads(c, m, input);
    composed_say(m, "%s", text);
    composed_say_part(c, m, input->point, &how->region, ", in its ");
    composed_say_region(c, m);
    return composing_try(c, m);
}

static bool try_input(altering *a, const sinkproof_moving *how, const char *id, const char *text) {
    composing *c = a->c;
    bool fine = true;
    sinkproof_point rounding;
    sinkproof_format format = SINKPROOF_REAL;
    if (sinkproof_trace_rounding(a->point, &rounding))
        format = c->s->trials.suspect.policy->at[rounding].format;
    bool narrow = format > SINKPROOF_F32;
    if (!narrow && how->change.scale != SINKPROOF_UNSCALED) format = SINKPROOF_F32, narrow = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        fine = try_input_kept(a, how, SINKPROOF_REAL, &c->regions[r], id, text);
        if (fine && narrow && c->found == NULL)
            fine = try_input_kept(a, how, format, &c->regions[r], id, text);
    }
    return fine;
}

static bool try_altering(altering *a, const sinkproof_moving *how, const char *id,
                         const char *text) {
    bool near = false;
    if (!alters_to(a, how, &near)) return false;
    if (!near) return true;
    return a->of_input ? try_input(a, how, id, text) : try_output(a, how, id, text);
}

static sinkproof_moving altering_new(const altering *a) {
    return (sinkproof_moving){.on = true, .point = a->point, .along = ALONG_ROWS, .factor = 1};
}

// ---- numbers

enum { CAP, STEP }; // the numbers

static bool make_capped(const sinkproof_making *of, double *y, double *width) {
    double a = of->numbers[CAP];
    for (size_t at = 0; at < of->all; at++) {
        y[at] = a * tanh(of->x[at] / a);
        width[at] = 2 * of->numbers[STEP] * fabs(y[at]); // the quotient, its tanh, the product
        if (of->radius != NULL) width[at] += of->radius[at];
    }
    return true;
}

// A cap of the point whose steps are each rounded to a narrow format.
static bool try_capped(const altering *a, const named_change *named) {
    made_kind made = {.make = make_capped, .numbers = {named->change.a, a->c->step}};
    if (a->of_input || named->change.kind != SINKPROOF_CHANGE_CAP || a->c->step < 0x1p-12)
        return true;
    snprintf(made.id, sizeof made.id, "%s", named->id);
    snprintf(made.text, sizeof made.text, "is %s", named->text);
    return composing_try_made(&a->o, &made);
}

static bool try_changes(altering *a, const change_list *list) {
    bool fine = true;
    for (size_t i = 0; i < list->n && fine && a->c->found == NULL; i++) {
        sinkproof_moving how = altering_new(a);
        how.change = list->of[i].change;
        fine = try_altering(a, &how, list->of[i].id, list->of[i].text);
        if (fine && a->c->found == NULL) fine = try_capped(a, &list->of[i]);
    }
    return fine;
}

// The largest number of the point may be where a clamp ends it.
static bool try_ends(altering *a) {
    const composing *c = a->c;
    double most = -INFINITY, least = INFINITY;
    for (size_t at = 0; at < c->elements; at++)
        if (c->marks[at]) most = fmax(most, c->v[at]), least = fmin(least, c->v[at]);
    const double ends[3][2] = {
        {-fmax(most, -least), fmax(most, -least)}, {-INFINITY, most}, {least, INFINITY}};
    bool fine = true;
    for (int e = 0; e < 3 && fine && c->found == NULL && isfinite(most); e++) {
        char id[40], text[96];
        sinkproof_moving how = altering_new(a);
        how.change =
            (sinkproof_change){.kind = SINKPROOF_CHANGE_CLAMP, .a = ends[e][0], .b = ends[e][1]};
        snprintf(id, sizeof id, "clamp%+.5g%+.5g", ends[e][0], ends[e][1]);
        if (e == 0)
            snprintf(text, sizeof text, "clamped to about %.5g on both sides", ends[e][1]);
        else
            snprintf(text, sizeof text, "clamped to %s %.5g", e == 1 ? "at most" : "at least",
                     ends[e][2 - e]);
        fine = try_altering(a, &how, id, text);
    }
    return fine;
}

static bool try_numbers(altering *a) {
    size_t shape[SINKPROOF_MAX_RANK];
    bool wide = sinkproof_trace_shape(a->c->s->trials.config, a->point, 1, shape) == 3;
    change_list *list = malloc(sizeof *list);
    bool fine = list != NULL || fail_for_memory(a->c->s);
    for (int kind = 0; kind < 5 && fine && a->c->found == NULL; kind++) {
        list->n = 0;
        if (kind == 0) list_clamps(list, a->largest);
        if (kind == 1) list_roundings(list, false);
        if (kind == 2 && wide) list_roundings(list, true);
        if (kind == 3) list_functions(list, false, a->c->s->trials.config->rms_eps);
        if (kind == 4 && wide) list_functions(list, true, a->c->s->trials.config->rms_eps);
        fine = try_changes(a, list);
    }
    free(list);
    if (fine && a->c->found == NULL && !a->of_input) fine = try_ends(a);
    return fine;
}

// ---- orders

static const char *place_word(sinkproof_dimension along) {
    static const char *const words[SINKPROOF_DIMENSIONS] = {
        [ALONG_ROWS] = "position", [ALONG_HEADS] = "head",     [ALONG_GROUPS] = "key/value head",
        [ALONG_SLOTS] = "slot",    [ALONG_EXPERTS] = "expert", [ALONG_COORDINATES] = "coordinate",
        [ALONG_KEYS] = "key"};
    return words[along];
}

// The unit within a dimension: a group's heads; of the output projection's input a head.
static size_t unit_of(const composing *c, sinkproof_dimension along) {
    const sinkproof_config *config = c->s->trials.config;
    return along == ALONG_HEADS ? config->n_heads / config->n_kv_heads : 1;
}

static bool try_rules(altering *a, const rule_list *list, sinkproof_dimension along) {
    bool fine = true;
    for (size_t i = 0; i < list->n && fine && a->c->found == NULL; i++) {
        char id[64], text[240];
        sinkproof_moving how = altering_new(a);
        how.along = along, how.from = list->of[i].from;
        snprintf(id, sizeof id, "%ss-%s", place_word(along), list->of[i].id);
        snprintf(text, sizeof text, "with its %ss %s", place_word(along), list->of[i].text);
        fine = try_altering(a, &how, id, text);
    }
    return fine;
}

static bool try_orders(altering *a) {
    static const sinkproof_dimension order[] = {ALONG_HEADS, ALONG_GROUPS, ALONG_SLOTS,
                                                ALONG_COORDINATES, ALONG_ROWS};
    composing *c = a->c;
    bool fine = true;
    rule_list *list = malloc(sizeof *list);
    if (list == NULL) return fail_for_memory(c->s);
    for (int more = 0; more < 2; more++)
        for (size_t d = 0; d < sizeof order / sizeof order[0] && fine && c->found == NULL; d++) {
            const sinkproof_config *config = c->s->trials.config;
            size_t size = sinkproof_region_size(config, a->point, c->n, order[d]);
            bool heads = sinkproof_region_size(config, a->point, c->n, ALONG_HEADS) > 0;
            if (size < 2 || (order[d] == ALONG_GROUPS && heads)) continue;
            if (more)
                list_more_rules(list, size, place_word(order[d]));
            else
                list_rules(list, size, unit_of(c, order[d]), place_word(order[d]), "group");
            fine = try_rules(a, list, order[d]);
        }
    free(list);
    return fine;
}

// A tensor of three axes that is written in one order of them and read in another.
static bool try_layouts(altering *a) {
    const composing *c = a->c;
    size_t shape[SINKPROOF_MAX_RANK];
    bool fine = true;
    if (sinkproof_trace_shape(c->s->trials.config, a->point, c->n, shape) != 3) return true;
    const char *words[] = {
        "positions",
        sinkproof_region_size(c->s->trials.config, a->point, c->n, ALONG_SLOTS) > 0 ? "slots"
                                                                                    : "heads",
        "coordinates"};
    for (size_t i = 0; i < SINKPROOF_LAYOUTS && fine && c->found == NULL; i++) {
        const sinkproof_layout l = sinkproof_layout_at(i);
        char id[40], text[160];
        sinkproof_moving how = altering_new(a);
        how.from = (sinkproof_from){.source = SINKPROOF_FROM_LAYOUT, .by = (long)i};
        snprintf(id, sizeof id, "layout-%zu", i);
        snprintf(text, sizeof text,
                 "with its axes exchanged: written as [%s, %s, %s], read as [%s, %s, %s]",
                 words[l.written[0]], words[l.written[1]], words[l.written[2]], words[l.read[0]],
                 words[l.read[1]], words[l.read[2]]);
        fine = try_altering(a, &how, id, text);
    }
    return fine;
}

// ---- both

static bool alter(altering *a) {
    return try_numbers(a) && (a->c->found != NULL || try_orders(a)) &&
           (a->c->found != NULL || try_layouts(a));
}

bool compose_altered_outputs(composing *c) {
    altering a = {.c = c, .point = c->point, .elements = c->elements, .x = c->mid};
    if (sinkproof_trace_point_is_by_head(c->point)) return true;
    bool fine = operation_read(c, &a.o) && altering_begin(&a) && alter(&a);
    operation_free(&a.o);
    free(a.y);
    return fine;
}

bool compose_altered_inputs(composing *c) {
    altering a = {.c = c, .of_input = true};
    if (sinkproof_trace_point_is_by_head(c->point) || c->point == TRACE_A11) return true;
    bool fine = operation_read(c, &a.o);
    for (size_t i = 0; fine && a.o.whole && i < a.o.n_inputs && c->found == NULL; i++) {
        if (a.o.inputs[i].point == TRACE_M3) continue;
        a.input = i, a.point = a.o.inputs[i].point, a.x = a.o.x[i];
        a.elements = a.o.width[i] * c->n;
        fine = altering_begin(&a) && alter(&a);
        free(a.y);
    }
    operation_free(&a.o);
    return fine;
}
