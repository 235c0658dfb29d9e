// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The router's choice and shares from logits that are changed first, and the slots of the mixture.
#include "audit/diagnose/composed_values.h"
#include "base/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- logits that are read otherwise

typedef struct logits {
    sinkproof_moving moving;
    double less; // so many times the router's bias
    char id[48], text[112];
} logits;

static logits logits_new(const composing *c) {
    (void)c;
    return (logits){.moving = {.on = true, .point = TRACE_M2, .along = ALONG_ROWS, .factor = 1}};
}

static composed_mistake *logits_mistake(composing *c, const logits *of,
                                        const sinkproof_region *region) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->input = (mistake_input){.on = true,
                               .point = c->point,
                               .input = TRACE_M2,
                               .from = TRACE_M2,
                               .moving = of->moving,
                               .less = of->less,
                               .bias = SINKPROOF_B_ROUTER};
    m->region = *region;
    composed_name(m, "%s-of-logits-%s", sinkproof_trace_point_name(c->point), of->id);
    composed_say(m, "%s logits of the router that are %s",
                 c->point == TRACE_M3 ? "the experts are chosen by"
                                      : "the experts' shares are made of",
                 of->text);
    composed_say_part(c, m, TRACE_M2, &of->moving.region, ", in its ");
    composed_say_region(c, m);
    return m;
}

static bool try_logits(composing *c, const logits *of) {
    bool fine = true;
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        composed_mistake *m = logits_mistake(c, of, &c->regions[r]);
        if (m == NULL) return false;
        fine = composing_try(c, m);
    }
    return fine;
}

// The logits as they are read: y[n, experts].
static bool changed_logits(const composing *c, const operation *o, const logits *of, double *x,
                           double *y) {
    size_t experts = o->width[0], all = experts * c->n;
    sinkproof_matrix bias =
        sinkproof_model_slot(c->s->trials.suspect.model, c->place, SINKPROOF_B_ROUTER);
    double *b = calloc(experts + 1, sizeof *b);
    if (b == NULL) return fail_for_memory(c->s);
    if (of->less != 0 && bias.count > 0 && bias.cols == experts) sinkproof_matrix_row(&bias, 0, b);
    sinkproof_tensor_numbers numbers = {
        .config = c->s->trials.config, .n = c->n, .chosen_nk = c->chosen_nk, .x = x};
    for (size_t at = 0; at < all; at++) {
        x[at] = o->x[0][at] - of->less * b[at % experts];
        numbers.largest = fmax(numbers.largest, fabs(x[at]));
    }
    free(b);
    return sinkproof_moved_numbers(&of->moving, &numbers, 0, all, y) || fail_for_memory(c->s);
}

// ---- shares

// The factor t of the logits: log(v_a / v_b) = t (g_a - g_b), by least squares.
static bool fit_temperature(const composing *c, const operation *o, fitted_range *t) {
    size_t k = c->s->trials.config->n_chosen;
    double xx = 0, xy = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t a = 1; a < k; a++) {
            const int32_t *chosen = &c->chosen_nk[i * k];
            if (chosen[0] < 0 || chosen[a] < 0) return false;
            const double *g = &o->x[0][i * o->width[0]];
            double y = log(c->v[i * k + a] / c->v[i * k]), x = g[chosen[a]] - g[chosen[0]];
            if (isfinite(y)) xx += x * x, xy += x * y;
        }
    if (!(xx > 0)) return false;
    double best = xy / xx, apart = fmax(c->step / 4, 0x1p-20) * fabs(best);
    *t = (fitted_range){.lo = best - apart, .hi = best + apart, .best = best, .good = true};
    return true;
}

static bool try_temperature(composing *c, const operation *o) {
    fitted_range t;
    chosen_number by[FIT_CHOICES];
    bool fine = true;
    if (!fit_temperature(c, o, &t)) return true;
    size_t n = fit_choose(c, &t, by);
    for (size_t i = 0; i < n && fine && c->found == NULL; i++) {
        logits of = logits_new(c);
        of.moving.factor = by[i].value;
        snprintf(of.id, sizeof of.id, "times-%.20s", by[i].text);
        snprintf(of.text, sizeof of.text, "multiplied by %s", by[i].text);
        if (by[i].value != 1) fine = try_logits(c, &of);
    }
    return fine;
}

static logits logits_of_bias(const composing *c, bool twice) {
    logits of = logits_new(c);
    of.less = twice ? -1 : 1;
    snprintf(of.id, sizeof of.id, "%s", twice ? "with-bias-twice" : "without-bias");
    snprintf(of.text, sizeof of.text, "%s",
             twice ? "with the router's bias added twice" : "without the router's bias");
    return of;
}

static bool try_biases(composing *c) {
    const logits without = logits_of_bias(c, false), twice = logits_of_bias(c, true);
    return try_logits(c, &without) && (c->found != NULL || try_logits(c, &twice));
}

// The shares of some slots alone: the others have none.
static bool try_without_slots(composing *c) {
    size_t k = c->s->trials.config->n_chosen;
    bool fine = true;
    for (size_t first = 0; first < k; first++)
        for (size_t end = first + 1; end <= k && fine && c->found == NULL; end++) {
            composed_mistake *m = composing_new(c);
            if (m == NULL) return false;
            m->moving = (sinkproof_moving){.on = true, .point = c->point, .along = ALONG_ROWS};
            m->moving.region.along[ALONG_SLOTS] = (sinkproof_indices){.first = first, .end = end};
            m->moving.then.kind = SINKPROOF_CHANGE_OVER_SUM;
            composed_name(m, "shares-without-slots-%zu-%zu", first, end - 1);
            composed_say(m, "the share of slot%s %zu", end > first + 1 ? "s" : "", first);
            if (end > first + 1) composed_say(m, "-%zu", end - 1);
            composed_say(m, "%s is zero, and the others are divided by their sum",
                         end == k && first + 1 == k ? ", the last chosen expert," : "");
            if (end - first < k) fine = composing_try(c, m);
        }
    return fine;
}

bool compose_shares_of_logits(composing *c) {
    operation o;
    if (c->point != TRACE_M4 || c->chosen_nk == NULL) return true;
    bool fine = operation_read(c, &o);
    if (fine && o.x[0] != NULL) fine = try_temperature(c, &o);
    if (fine && c->found == NULL) fine = try_biases(c);
    if (fine && c->found == NULL) fine = try_without_slots(c);
    operation_free(&o);
    return fine;
}

// ---- choices

enum { FEWEST_ROWS = 4 }; // that a rule of the choice must change

// Whether the k largest of the logits y are the experts that the trace shows, in their order, in
// each row that is in the region; *changed: the rows in which they are not those of the definition.
static bool chooses_as_shown(const composing *c, const double *y, const sinkproof_region *region,
                             size_t *changed) {
    const sinkproof_config *config = c->s->trials.config;
    size_t k = config->n_chosen, experts = config->n_experts;
    *changed = 0;
    for (size_t i = 0; i < c->n; i++) {
        const double *g = &y[i * experts];
        sinkproof_place place = sinkproof_place_of(config, c->point, c->n, NULL, i * k);
        if (!sinkproof_indices_hold(&region->along[ALONG_ROWS], place.along[ALONG_ROWS])) continue;
        bool outside = false;
        for (size_t s = 0; s < k; s++) {
            int32_t e = c->chosen_nk[i * k + s];
            outside = outside || c->marks[i * k + s];
            if (e < 0) return false;
            size_t above = 0;
            for (size_t o = 0; o < experts; o++)
                above += g[o] > g[e] || (g[o] == g[e] && o < (size_t)e);
            if (above != s) return false;
        }
        *changed += outside;
    }
    return true;
}

static bool try_choice(composing *c, const operation *o, const logits *of, double *x, double *y) {
    bool fine = changed_logits(c, o, of, x, y);
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        size_t changed;
        const sinkproof_region *region = &c->regions[r];
        if (!chooses_as_shown(c, y, region, &changed) || changed < FEWEST_ROWS) continue;
        composed_mistake *m = logits_mistake(c, of, region);
        fine = m != NULL && composing_try(c, m);
    }
    return fine;
}

// Experts [first, end) are never chosen, or always.
static bool try_barred(composing *c, const operation *o, size_t first, size_t end, bool always,
                       double *x, double *y) {
    logits of = logits_new(c);
    of.moving.factor = 0, of.moving.addend = always ? 1e30 : -1e30;
    of.moving.region.along[ALONG_EXPERTS] = (sinkproof_indices){.first = first, .end = end};
    snprintf(of.id, sizeof of.id, "barred");
    snprintf(of.text, sizeof of.text, "those of no expert that is never chosen");
    bool fine = changed_logits(c, o, &of, x, y);
    for (size_t r = 0; r < c->n_regions && fine && c->found == NULL; r++) {
        size_t changed;
        if (!chooses_as_shown(c, y, &c->regions[r], &changed) || changed < FEWEST_ROWS) continue;
        composed_mistake *m = logits_mistake(c, &of, &c->regions[r]);
        if (m == NULL) return false;
        m->id[0] = m->text[0] = '\0';
        composed_name(m, "experts-%zu-%zu-%s-chosen", first, end - 1, always ? "always" : "never");
        if (always)
            composed_say(m, "expert %zu is always chosen", first);
        else if (end == first + 1)
            composed_say(m, "expert %zu is never chosen", first);
        else
            composed_say(m, "experts %zu-%zu are never chosen: the choice is among the others",
                         first, end - 1);
        composed_say_region(c, m);
        fine = composing_try(c, m);
    }
    return fine;
}

static bool try_choices(composing *c, const operation *o, double *x, double *y) {
    static const struct {
        sinkproof_change change;
        const char *id, *text;
    } changes[] = {
        {{.kind = SINKPROOF_CHANGE_ROUND, .format = SINKPROOF_BF16}, "bf16", "rounded to bfloat16"},
        {{.kind = SINKPROOF_CHANGE_ROUND, .format = SINKPROOF_F16}, "f16", "rounded to binary16"},
        {{.kind = SINKPROOF_CHANGE_ROUND, .format = SINKPROOF_E4M3}, "e4m3", "rounded to e4m3"},
        {{.kind = SINKPROOF_CHANGE_ROUND, .format = SINKPROOF_E5M2}, "e5m2", "rounded to e5m2"}};
    static const struct {
        sinkproof_dimension along;
        long by;
        const char *id, *text;
    } moves[] = {
        {ALONG_ROWS, -1, "row-before", "those of the position before"},
        {ALONG_ROWS, 1, "next-row", "those of the next position"},
        {ALONG_COORDINATES, 1, "next-expert", "those of the next expert, in a circle"},
        {ALONG_COORDINATES, -1, "expert-before", "those of the expert before, in a circle"}};
    size_t experts = c->s->trials.config->n_experts;
    bool fine = true;
    logits of = logits_of_bias(c, false);
    fine = try_choice(c, o, &of, x, y);
    of = logits_of_bias(c, true);
    if (fine && c->found == NULL) fine = try_choice(c, o, &of, x, y);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0] && fine && c->found == NULL; i++) {
        of = logits_new(c);
        of.moving.change = changes[i].change;
        snprintf(of.id, sizeof of.id, "%s", changes[i].id);
        snprintf(of.text, sizeof of.text, "%s", changes[i].text);
        fine = try_choice(c, o, &of, x, y);
    }
    for (size_t i = 0; i < sizeof moves / sizeof moves[0] && fine && c->found == NULL; i++) {
        of = logits_new(c);
        of.moving.along = moves[i].along;
        of.moving.from = (sinkproof_from){.source = SINKPROOF_FROM_ROLLED, .by = moves[i].by};
        snprintf(of.id, sizeof of.id, "%s", moves[i].id);
        snprintf(of.text, sizeof of.text, "%s", moves[i].text);
        fine = try_choice(c, o, &of, x, y);
    }
    for (size_t e = 0; e < experts && fine && c->found == NULL; e++)
        fine = try_barred(c, o, e, e + 1, false, x, y);
    for (size_t e = 0; e < experts && fine && c->found == NULL; e++)
        fine = try_barred(c, o, e, e + 1, true, x, y);
    for (size_t e = 1; e < experts && fine && c->found == NULL; e++) {
        fine = try_barred(c, o, e, experts, false, x, y);
        if (fine && c->found == NULL) fine = try_barred(c, o, 0, e, false, x, y);
    }
    return fine;
}

// Every row must be chosen as shown: some rule explains a few rows by chance.
bool compose_choices(composing *c) {
    operation o;
    if (c->point != TRACE_M3 || c->chosen_nk == NULL) return true;
    bool fine = operation_read(c, &o);
    double *x = malloc((2 * o.width[0] * c->n + 1) * sizeof *x);
    if (fine && x == NULL) fine = fail_for_memory(c->s);
    if (fine && o.x[0] != NULL) fine = try_choices(c, &o, x, x + o.width[0] * c->n);
    free(x);
    operation_free(&o);
    return fine;
}

// ---- slots of the mixture

static composed_mistake *slots_new(composing *c, size_t first, size_t end, double times) {
    composed_mistake *m = composing_new(c);
    if (m == NULL) return NULL;
    m->input = (mistake_input){
        .on = true,
        .point = c->point,
        .input = TRACE_M4,
        .from = TRACE_M4,
        .moving = {.on = true, .point = TRACE_M4, .along = ALONG_ROWS, .factor = times}};
    m->input.moving.region.along[ALONG_SLOTS] = (sinkproof_indices){.first = first, .end = end};
    return m;
}

static bool try_slots_in(composing *c, size_t first, size_t end, const double *base,
                         const sinkproof_region *region) {
    static const char *const numbers[] = {"first", "second", "third", "fourth"};
    bool fine = true;
    fitted_range t;
    chosen_number by[FIT_CHOICES];
    bool fits = fit_number(c, region, base, c->mid, &t) && t.good;
    size_t n = fits && fine ? fit_choose(c, &t, by) : 0;
    for (size_t i = 0; i < n && fine && c->found == NULL; i++) {
        if (by[i].value == 1) continue;
        composed_mistake *m = slots_new(c, first, end, by[i].value);
        if (m == NULL) return false;
        m->region = *region;
        composed_name(m, "slots-%zu-%zu-in-the-sum-times-%s", first, end - 1, by[i].text);
        if (end == first + 1 && first < 4)
            composed_say(m, "the %s chosen expert (slot %zu)", numbers[first], first);
        else
            composed_say(m, "the chosen experts in slots %zu-%zu", first, end - 1);
        const char *is = end == first + 1 ? "is" : "are";
        bool others = first > 0 && end == c->s->trials.config->n_chosen && by[i].value == 0;
        if (by[i].value == 0)
            composed_say(m, " %s left out of the sum over the experts%s", is,
                         others ? first == 1 ? ": it has the first choice alone"
                                             : ": it has the first choices alone"
                                : "");
        else if (by[i].value == 2)
            composed_say(m, " %s added twice to the sum over the experts", is);
        else
            composed_say(m, " %s multiplied by %s in the sum over the experts", is, by[i].text);
        composed_say_region(c, m);
        fine = composing_try(c, m);
        bool rounded = c->step > 0x1p-12 && by[i].value != 0;
        if (!fine || c->found != NULL || !rounded) continue;
        composed_mistake *again =
            slots_new(c, first, end, by[i].value); // a product that is rounded
        if (again == NULL) return false;
        memcpy(again->id, m->id, sizeof again->id);
        memcpy(again->text, m->text, sizeof again->text);
        again->input.kept = SINKPROOF_BF16, again->region = *region;
        fine = composing_try(c, again);
    }
    return fine;
}

static bool try_slots(composing *c, size_t first, size_t end) {
    composed_mistake *without = slots_new(c, first, end, 0);
    bool fine = without != NULL;
    double *base = fine ? composing_see(c, &without->mistake, &fine) : NULL;
    for (size_t r = 0; r < c->n_regions && base != NULL && fine && c->found == NULL; r++)
        fine = try_slots_in(c, first, end, base, &c->regions[r]);
    free(base);
    return fine;
}

bool compose_slots(composing *c) {
    size_t k = c->s->trials.config->n_chosen;
    bool fine = true;
    if (c->point != TRACE_M11 ||
        sinkproof_trace_find(c->s->trials.suspect.trace, TRACE_M4, c->place) == NULL)
        return true;
    for (size_t s = 0; s < k && fine && c->found == NULL; s++) fine = try_slots(c, s, s + 1);
    for (size_t end = 2; end < k && fine && c->found == NULL; end++) {
        fine = try_slots(c, 0, end);
        if (fine && c->found == NULL) fine = try_slots(c, k - end, k);
    }
    return fine;
}
