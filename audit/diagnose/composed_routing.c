// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shares from logits that are changed first, and the slots of the mixture.
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
    composed_say(m, "the experts' shares are made of logits of the router that are %s", of->text);
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
