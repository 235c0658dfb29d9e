// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/diagnose/composed_fit.h"

#include "audit/diagnose/seen_sets.h"
#include "ref/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool composing_holds(const composing *c, const sinkproof_region *region, size_t at) {
    if (sinkproof_region_is_whole(region)) return true;
    sinkproof_place place =
        sinkproof_place_of(c->s->trials.config, c->point, c->n, c->chosen_nk, at);
    return sinkproof_region_holds(region, &place);
}

bool composing_reaches(const composing *c, sinkproof_trace_point from) {
    const known_mistake there = {.points = point_bit(from)};
    const mistakes_together what = {1, {&there}};
    return (failing_points_reached(&c->s->trials, c->place, &what) & point_bit(c->point)) != 0;
}

// ---- the sets of a supposed engine

double *composing_see(composing *c, const known_mistake *mistake, bool *fine) {
    place_trials *s = &c->s->trials;
    seen_sets seen = {
        .point = c->point, .elements = c->elements, .mid = calloc(c->elements, sizeof *seen.mid)};
    sinkproof_judgement under;
    bool possible = !composing_is_spent(c) && suspect_can_suppose(&s->suspect, mistake);
    if (seen.mid == NULL) *fine = fail_for_memory(c->s);
    if (*fine && possible) {
        sinkproof_stretch_to(s->stretch, s->config, s->suspect.policy, s->suspect.trace, c->point,
                             c->report->layer, true);
        const sinkproof_judge_options how = {
            .stretch = s->stretch, .witness = see_sets, .witnessing = &seen};
        *fine = suspect_suppose_all(&s->suspect, 1, &mistake, &how, &under, &possible, s->error);
        if (*fine && possible) sinkproof_judgement_free(&under);
        s->tried++, c->fitted++;
    }
    if (*fine && possible) return seen.mid;
    free(seen.mid);
    return NULL;
}

// ---- a number

// An element of the fit: how far v is from the base and from the definition, and what one more of t
// adds, all in widths of its set. Returns false if it says nothing.
typedef struct fit_element {
    double v, d, wrong;
} fit_element;

static bool fit_element_at(const composing *c, const double *base, const double *with, size_t at,
                           fit_element *e) {
    double from = base != NULL ? base[at] : 0, d = with[at] - from, v = c->v[at];
    double width = fmax(fmax(c->hi[at] - c->lo[at], fabs(v) * c->step) / 2, c->least);
    *e = (fit_element){(v - from) / width, d / width, (v - c->mid[at]) / width};
    return isfinite(e->v) && isfinite(e->d) && isfinite(width) && d != 0;
}

// Least squares, each value weighed by the width of its set; and from each element the numbers that
// it allows, with some room for the roundings of base and with.
bool fit_number(const composing *c, const sinkproof_region *region, const double *base,
                const double *with, fitted_range *t) {
    const double room = 4;
    double dd = 0, dv = 0, vv = 0, wrong = 0, n = 0, low = -INFINITY, high = INFINITY;
    for (size_t at = 0; at < c->elements; at++) {
        fit_element e;
        if (!fit_element_at(c, base, with, at, &e) || !composing_holds(c, region, at)) continue;
        dd += e.d * e.d, dv += e.d * e.v, vv += e.v * e.v, wrong += e.wrong * e.wrong;
        n++;
        double one = (e.v - room) / e.d, other = (e.v + room) / e.d;
        low = fmax(low, fmin(one, other)), high = fmin(high, fmax(one, other));
    }
    if (!(dd > 0) || !isfinite(dd)) return false;
    t->best = dv / dd, t->fits = low <= high;
    double rest = fmax(vv - dv * t->best, 0);
    t->good = rest <= n || rest <= 0.1 * wrong;
    if (t->fits && (t->best < low || t->best > high)) t->best = (low + high) / 2;
    // six deviations of least squares, and the precision of the fit
    double apart = 6 * sqrt(fmax(rest / n, 0.01) / dd) + 0x1p-20 * fabs(t->best);
    t->lo = t->best - apart, t->hi = t->best + apart;
    if (t->fits) t->lo = fmax(t->lo, fmin(low, t->best)), t->hi = fmin(t->hi, fmax(high, t->best));
    return true;
}

bool fit_refine(composing *c, const known_mistake *probe, const sinkproof_region *region,
                const double *base, const double *with, fitted_range *t) {
    bool fine = true;
    fitted_range more;
    double *near = composing_see(c, probe, &fine), *on = calloc(c->elements, sizeof *on);
    if (on == NULL) fine = fail_for_memory(c->s);
    for (size_t at = 0; fine && near != NULL && at < c->elements; at++)
        on[at] = near[at] + with[at] - (base != NULL ? base[at] : 0);
    if (fine && near != NULL && fit_number(c, region, near, on, &more)) {
        t->lo = t->best + more.lo, t->hi = t->best + more.hi, t->best += more.best;
        t->fits = more.fits, t->good = more.good;
    }
    free(near);
    free(on);
    return fine;
}

size_t composing_count(composing *c, const known_mistake *mistake, bool *fine) {
    mistake_trial t = {.what = {1, {mistake}}};
    bool possible = suspect_can_suppose(&c->s->trials.suspect, mistake);
    if (possible)
        *fine =
            trial_try_points(&c->s->trials, c->place, point_bit(c->point), INFINITY, &t, &possible);
    return *fine && possible && !t.refused ? t.outside[c->point] : SIZE_MAX;
}

// The end of the numbers that leave none outside, from one that does, on one side of it.
static double find_end(composing *c, number_count *count, void *of, double in, double reach,
                       bool *fine) {
    enum { DOUBLINGS = 8, HALVINGS = 5 };
    double out = in + reach;
    for (int k = 0; k < DOUBLINGS && *fine && count(c, of, out, fine) == 0; k++)
        in = out, reach *= 2, out = in + reach;
    for (int k = 0; k < HALVINGS && *fine; k++) {
        double middle = (in + out) / 2;
        *(count(c, of, middle, fine) == 0 ? &in : &out) = middle;
    }
    return in;
}

bool fit_by_count(composing *c, number_count *count, void *of, fitted_range *t) {
    enum { ROUNDS = 6, SIDE = 3 };
    double apart = fmax(2 * (t->hi - t->lo), c->step / 4 * fabs(t->best)), best = t->best;
    bool fine = true;
    size_t least = count(c, of, best, &fine);
    if (!fine || least > c->report->outside / 2) return fine; // it is another mistake
    for (int round = 0; round < ROUNDS && fine && least > 0; round++) {
        double from = best;
        for (int k = -SIDE; k <= SIDE && fine; k++) {
            double number = from + apart * k / SIDE;
            size_t outside = k != 0 ? count(c, of, number, &fine) : SIZE_MAX;
            if (outside < least) least = outside, best = number;
        }
        apart /= SIDE - 0.5;
    }
    if (!fine || least > 0) return fine;
    double reach = apart / SIDE;
    t->best = best;
    t->lo = find_end(c, count, of, best, -reach, &fine);
    t->hi = find_end(c, count, of, best, reach, &fine);
    t->best = (t->lo + t->hi) / 2;
    return fine;
}

// What it is, and its value where this is not the same.
static void name_number(chosen_number *chosen, const char *text) {
    char value[32];
    snprintf(value, sizeof value, "%.6g", chosen->value);
    if (strcmp(value, text) == 0)
        snprintf(chosen->text, sizeof chosen->text, "%s", text);
    else
        snprintf(chosen->text, sizeof chosen->text, "%s (%s)", text, value);
}

static bool take_if_inside(const fitted_range *t, double value, chosen_number *chosen,
                           const char *text) {
    if (!(value >= t->lo && value <= t->hi)) return false;
    chosen->value = value;
    name_number(chosen, text);
    return true;
}

// A power of two, or a small whole number, or 1 over it.
static bool choose_whole(const fitted_range *t, chosen_number *chosen) {
    char text[24];
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int n = 0; n <= 128; n++) {
            if (n > 16 && (n & (n - 1)) != 0) continue;
            snprintf(text, sizeof text, "%d", sign * n);
            if (take_if_inside(t, sign * n, chosen, text)) return true;
            snprintf(text, sizeof text, "%s1/%d", sign < 0 ? "-" : "", n);
            if (n > 1 && take_if_inside(t, sign / (double)n, chosen, text)) return true;
        }
    return false;
}

static bool choose_of_model(const sinkproof_config *c, const fitted_range *t,
                            chosen_number *chosen) {
    const struct {
        const char *name;
        double value;
    } of[] = {{"head_dim", (double)c->head_dim},
              {"hidden", (double)c->hidden},
              {"the number of experts", (double)c->n_experts},
              {"the number of layers", (double)c->n_layers},
              {"log2(e)", 1.4426950408889634},
              {"alpha", c->swiglu.alpha},
              {"the concentration of YaRN", sinkproof_yarn_concentration(c)}};
    char text[48];
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        double x = of[i].value;
        if (!(x > 1)) continue;
        if (take_if_inside(t, x, chosen, of[i].name)) return true;
        snprintf(text, sizeof text, "1/%s", of[i].name);
        if (take_if_inside(t, 1 / x, chosen, i == 4 ? "ln(2)" : text)) return true;
        snprintf(text, sizeof text, "sqrt(%s)", of[i].name);
        if (take_if_inside(t, sqrt(x), chosen, text)) return true;
        snprintf(text, sizeof text, "1/sqrt(%s)", of[i].name);
        if (take_if_inside(t, 1 / sqrt(x), chosen, text)) return true;
    }
    return take_if_inside(t, sqrt(2), chosen, "sqrt(2)") ||
           take_if_inside(t, sqrt(0.5), chosen, "1/sqrt(2)");
}

// The shortest decimal number in the range, or 1 over one.
static bool choose_decimal(const fitted_range *t, bool inverse, chosen_number *chosen) {
    char text[32], name[40];
    for (int digits = 1; digits < 8; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, inverse ? 1 / t->best : t->best);
        snprintf(name, sizeof name, "%s%s", inverse ? "1/" : "", text);
        double value = strtod(text, NULL);
        if (take_if_inside(t, inverse ? 1 / value : value, chosen, name)) return true;
    }
    return false;
}

// Rounded numbers may mislead the fit: a simple number is asked in a wider range.
size_t fit_choose(const composing *c, const fitted_range *t, chosen_number choices[FIT_CHOICES]) {
    const sinkproof_config *config = c->s->trials.config;
    const double wide = fmax(2 * (t->hi - t->lo), c->step / 2 * fabs(t->best));
    const fitted_range around = {.lo = t->best - wide, .hi = t->best + wide, .best = t->best};
    const double near = (t->hi - t->lo) / 16;
    const fitted_range nearer = {.lo = t->best - near, .hi = t->best + near, .best = t->best};
    size_t n = 0;
    n += choose_whole(&around, &choices[n]);
    n += choose_of_model(config, t, &choices[n]);
    n += choose_decimal(t, false, &choices[n]);
    n += choose_decimal(t, true, &choices[n]);
    n += choose_decimal(&nearer, false, &choices[n]);
    choices[n].value = t->best;
    snprintf(choices[n].text, sizeof choices[n].text, "about %.7g", t->best);
    return n + 1;
}
