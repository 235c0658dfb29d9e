// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The search. A place is a layer with points outside their sets. Every mistake that reaches one of
// those points is tried alone, the costliest only where no other explains the points; the points
// that are left are searched in pairs. A later layer is first tried with the explanations of
// earlier layers.
#include "audit/diagnose/common.h"
#include "audit/diagnose/composed.h"
#include "audit/trace/trace_points.h"
#include "proofs/bounds/worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- findings

// Points that were not searched in full; one finding covers all such layers.
static diagnosed_finding *add_limited(search *s, size_t place, unsigned points,
                                      search_limit limit) {
    for (size_t i = 0; i < s->out->n; i++) {
        diagnosed_finding *f = &s->out->findings[i];
        if (f->limit != limit || f->points != points || f->n_alike > 0) continue;
        f->layers[place] = true;
        return f;
    }
    diagnosed_finding *f = add_finding(s, place, points);
    if (f != NULL) f->limit = limit;
    return f;
}

// ---- single mistakes

// Whether it can explain all that it reaches. Only a mistake that may overflow explains NaN or
// infinity.
static bool is_worth_trying(const search *s, size_t place, const candidate *c) {
    if (c->reached & failing_points_unbounded(&s->trials, place)) return false;
    return (c->reached & failing_points_not_finite(&s->trials, place)) == 0 ||
           mistake_may_overflow(c->what.mistakes[0]);
}

static bool try_single(search *s, size_t place, candidate *c) {
    mistake_trial *t = &s->fitting[s->n_fitting];
    bool possible;
    *t = (mistake_trial){.what = c->what};
    if (!trial_try_whether(&s->trials, place, t, &possible)) return false;
    c->tried = true;
    c->fits = !t->refused && trial_explains(t, 0);
    c->alone = c->alone || t->blind;
    s->n_fitting += c->fits;
    return true;
}

// Lists the mistakes that reach a failing point.
static void list_candidates(search *s, size_t place) {
    s->n_candidates = s->n_fitting = 0;
    for (size_t m = 0; m < mistake_count(); m++) {
        candidate *c = &s->of[s->n_candidates];
        *c = (candidate){.what = {1, {mistake_at(m)}}};
        c->reached = failing_points_reached(&s->trials, place, &c->what);
        c->alone = mistake_stands_alone(c->what.mistakes[0]);
        s->n_candidates +=
            c->reached != 0 && suspect_can_suppose(&s->trials.suspect, c->what.mistakes[0]);
    }
}

static bool try_singles(search *s, size_t place, bool alone) {
    bool fine = true;
    for (size_t i = 0; fine && i < s->n_candidates; i++) {
        candidate *c = &s->of[i];
        if (c->alone != alone || c->tried) continue;
        trials_show_progress(&s->trials, 1);
        if (!budget_is_spent(s) && is_worth_trying(s, place, c)) fine = try_single(s, place, c);
    }
    return fine;
}

// Finds the nearest of the single mistakes that do not explain f.
static bool find_next(search *s, size_t place, diagnosed_finding *f) {
    bool fine = true, possible;
    for (size_t i = 0; fine && i < s->n_candidates && !budget_is_spent(s); i++) {
        const candidate *c = &s->of[i];
        mistake_trial t = {.what = c->what, .rows = f->rows};
        if (!c->tried || c->fits || c->alone || (c->reached & f->points) == 0) continue;
        fine = trial_try_points(&s->trials, place, f->points, f->next_bounds, &t, &possible);
        if (fine && possible) keep_if_nearer(f, &t);
        trials_show_progress(&s->trials, 1);
    }
    return fine;
}

// The largest set of the points in `left` that one mistake explains.
static unsigned most_explained(const search *s, unsigned left) {
    unsigned best = 0;
    for (size_t i = 0; i < s->n_fitting; i++) {
        unsigned here = s->fitting[i].inside & left;
        if (__builtin_popcount(here) > __builtin_popcount(best)) best = here;
    }
    return best;
}

static bool explain_by_singles(search *s, size_t place, unsigned *left) {
    for (unsigned points; (points = most_explained(s, *left)) != 0; *left &= ~points) {
        diagnosed_finding *f = add_finding(s, place, points);
        if (f == NULL) return false;
        for (size_t i = 0; i < s->n_fitting; i++)
            if (trial_explains(&s->fitting[i], points))
                finding_add_alike(f, &s->fitting[i].what);
            else
                keep_if_nearer(f, &s->fitting[i]);
        if (!find_next(s, place, f)) return false;
    }
    return true;
}

// ---- single mistakes in some rows: a kernel for prompts, or for single tokens

// Whether the points are inside except in those rows.
static bool fail_in_rows(search *s, size_t place, unsigned points, sinkproof_rows rows,
                         bool *within) {
    *within = true;
    for (int p = 0; p < TRACE_POINTS && rows.end > 0; p++) {
        sinkproof_rows here;
        if ((points >> p & 1) == 0) continue;
        if (!failing_rows_find(&s->trials, place, (sinkproof_trace_point)p, &here)) return false;
        *within = *within && here.first >= rows.first && here.end <= rows.end;
    }
    return true;
}

static bool explain_rows(search *s, size_t place, sinkproof_trace_point point, sinkproof_rows rows,
                         unsigned *left) {
    size_t at = s->out->n;
    bool fine = true, possible;
    for (size_t i = 0; fine && i < s->n_candidates && !budget_is_spent(s); i++) {
        candidate *c = &s->of[i];
        mistake_trial t = {.what = c->what, .rows = rows};
        unsigned points = s->out->n > at ? s->out->findings[at].points : point_bit(point);
        if (!c->tried || (c->reached & point_bit(point)) == 0) continue;
        // a trial asks all points that it reaches: it was the same for an earlier one
        if (c->in_vain.first == rows.first && c->in_vain.end == rows.end) continue;
        fine = trial_try_whether(&s->trials, place, &t, &possible);
        bool explains = fine && possible && trial_explains(&t, 0), within = true;
        // what it reaches elsewhere has another cause, or one that holds in more rows
        if (explains) fine = fail_in_rows(s, place, t.inside, rows, &within);
        if (fine && !(explains && within)) c->in_vain = rows;
        if (!fine || !explains || !within || !trial_explains(&t, points)) continue;
        if (s->out->n == at && add_finding(s, place, t.inside & *left) == NULL) return false;
        s->out->findings[at].rows = rows;
        finding_add_alike(&s->out->findings[at], &t.what);
    }
    if (!fine || s->out->n == at) return fine;
    *left &= ~s->out->findings[at].points;
    return find_next(s, place, &s->out->findings[at]);
}

static bool explain_by_rows(search *s, size_t place, unsigned *left) {
    size_t n = s->trials.j->n_tokens;
    bool fine = true;
    for (int p = 0; fine && p < TRACE_POINTS; p++) {
        sinkproof_trace_point point = (sinkproof_trace_point)p;
        sinkproof_rows rows;
        if ((*left & point_bit(point)) == 0) continue;
        fine = failing_rows_find(&s->trials, place, point, &rows);
        if (fine && (rows.first > 0 || rows.end < n))
            fine = explain_rows(s, place, point, rows, left);
    }
    return fine;
}

// ---- isolated elements, where no single mistake explains them

static bool separate_lone_points(search *s, size_t place, unsigned *left) {
    for (int p = 0; p < TRACE_POINTS && !budget_is_spent(s); p++) {
        diagnosed_finding apart = {0};
        unsigned point = *left & 1u << p;
        if (point == 0) continue;
        const sinkproof_point_report *r = place_report(&s->trials, (sinkproof_trace_point)p, place);
        if (!point_stands_apart(&s->trials, s->out, r, &apart)) return false;
        if (apart.isolated == 0 && apart.limit == LIMIT_NONE) continue;
        diagnosed_finding *f = add_finding(s, place, point);
        if (f == NULL) return false;
        f->isolated = apart.isolated, f->elements = apart.elements;
        f->isolation = apart.isolation, f->limit = apart.limit;
        *left &= ~point;
    }
    return true;
}

// ---- points that nothing explains

static bool describe_finding(search *s, diagnosed_finding *f) {
    const sinkproof_point_report *r = place_report(&s->trials, f->point, f->layer);
    uint8_t *marks = mark_outside_elements(&s->trials, r);
    bool fine = marks != NULL;
    if (fine && !pattern_describe(r, marks, f->pattern, sizeof f->pattern))
        fine = fail_for_memory(s);
    free(marks);
    return fine;
}

// A supposition is told as the nearest only if it takes half of the distance away: one that leaves
// all as it is is none.
static void forget_far_next(const search *s, diagnosed_finding *f) {
    double defined = 0;
    for (int p = 0; p < TRACE_POINTS; p++) {
        const sinkproof_point_report *r =
            f->points >> p & 1 ? place_report(&s->trials, (sinkproof_trace_point)p, f->layer)
                               : NULL;
        if (r != NULL) defined = sinkproof_keep_worst(defined, r->farthest);
    }
    if (f->next_bounds <= defined / 2) return;
    f->next.n = 0, f->next_bounds = INFINITY;
}

// ---- places

// Tries the explanations of the same points in other layers.
static bool explain_as_before(search *s, size_t place, unsigned *left) {
    for (size_t i = 0; i < s->out->n; i++) {
        diagnosed_finding *f = &s->out->findings[i];
        if (f->n_alike == 0 || (f->points & ~*left) != 0) continue;
        size_t kept = 0;
        bool possible, within;
        mistakes_together still[DIAGNOSE_MOST_ALIKE];
        if (!fail_in_rows(s, place, f->points, f->rows, &within)) return false;
        if (!within) continue;
        for (size_t a = 0; a < f->n_alike; a++) {
            mistake_trial t = {.what = f->alike[a], .rows = f->rows};
            if (!trial_try_whether(&s->trials, place, &t, &possible)) return false;
            trials_show_progress(&s->trials, 1);
            if (possible && trial_explains(&t, f->points)) still[kept++] = f->alike[a];
        }
        if (kept == 0) continue;
        memcpy(f->alike, still, kept * sizeof *still); // explain all these layers
        f->n_alike = kept;
        f->layers[place] = true;
        *left &= ~f->points;
    }
    return true;
}

// Whether all explanations of f explain its points in another layer too.
static bool explains_there(search *s, const diagnosed_finding *f, size_t place, bool *explains) {
    bool fine = true, possible;
    *explains = f->n_alike > 0 && f->rows.end == 0;
    for (size_t a = 0; a < f->n_alike && fine && *explains; a++) {
        mistake_trial t = {.what = f->alike[a]};
        fine = trial_try_whether(&s->trials, place, &t, &possible);
        *explains = fine && possible && trial_explains(&t, f->points);
    }
    return fine;
}

// Tries what explains points in later layers where nothing explained the same points: numbers that
// are fitted may miss them in one layer. Findings without layers leave.
static bool explain_as_after(search *s) {
    sinkproof_diagnosis *d = s->out;
    bool fine = true, explains;
    for (size_t u = 0; u < d->n; u++)
        for (size_t i = 0; i < d->n && fine; i++) {
            diagnosed_finding *f = &d->findings[i], *open = &d->findings[u];
            if (open->n_alike > 0 || open->isolated > 0 || open->limit >= LIMIT_SET) break;
            for (size_t l = 0; l < s->trials.config->n_layers && fine; l++) {
                if (f->points != open->points || !open->layers[l] || budget_is_spent(s)) continue;
                fine = explains_there(s, f, l, &explains);
                if (!fine || !explains) continue;
                open->layers[l] = false, f->layers[l] = true;
                f->layer = l < f->layer ? l : f->layer;
            }
        }
    for (size_t i = 0; i < d->n;) {
        bool any = false;
        for (size_t l = 0; l <= s->trials.config->n_layers; l++)
            any = any || d->findings[i].layers[l];
        if (any)
            i++;
        else
            memmove(&d->findings[i], &d->findings[i + 1], (--d->n - i) * sizeof *d->findings);
    }
    return fine;
}

// The points that no pair explained in another layer; every point once that happened `patience`
// times.
static unsigned points_tried_in_vain(const search *s) {
    unsigned points = 0;
    size_t often = 0;
    for (size_t i = 0; i < s->out->n; i++) {
        const diagnosed_finding *f = &s->out->findings[i];
        if (f->n_alike > 0 || f->isolated > 0 || f->limit > LIMIT_PAIRS) continue;
        points |= f->points, often++;
    }
    return often < s->trials.options->patience ? points : ~0u;
}

static bool note_pairs_not_searched(search *s, size_t place, unsigned points) {
    if (points == 0) return true;
    diagnosed_finding *f = add_limited(s, place, points, LIMIT_BEFORE);
    for (int p = 0; f != NULL && p < TRACE_POINTS; p++)
        if (points >> p & 1) count_suppositions(s, f, (sinkproof_trace_point)p);
    return f != NULL;
}

static bool search_explanations(search *s, size_t place, unsigned left) {
    list_candidates(s, place);
    if (!try_singles(s, place, false) || !explain_by_singles(s, place, &left)) return false;
    if (left != 0 && !try_singles(s, place, true)) return false;
    if (!explain_by_singles(s, place, &left) || !separate_lone_points(s, place, &left) ||
        !explain_attention(s, place, &left) || !explain_by_rows(s, place, &left) ||
        !explain_by_composing(s, place, &left))
        return false;
    unsigned before = points_tried_in_vain(s), some;
    while ((some = left & ~before) != 0 && points_tried_in_vain(s) != ~0u) {
        unsigned rest = left & before;
        if (!explain_by_pairs(s, place, &some) || !explain_attention_joined(s, place)) return false;
        left = some | rest;
    }
    return note_pairs_not_searched(s, place, left);
}

static bool leave_unsearched(search *s, size_t place, unsigned points, search_limit limit) {
    return points == 0 || add_limited(s, place, points, limit) != NULL;
}

static bool place_is_explained(const search *s, size_t place) {
    bool all = true;
    for (size_t i = 0; i < s->out->n; i++)
        all = all && (s->out->findings[i].n_alike > 0 || !s->out->findings[i].layers[place]);
    return all;
}

// What earlier places have spent leaves each later one a part of the budget.
static void allow_place(search *s) {
    enum { PARTS = 4 };
    size_t budget = s->trials.options->budget, part = s->trials.tried + budget / PARTS;
    s->allowed = part > budget ? part : budget;
}

// searched: the number of layers that were searched in full.
static bool diagnose_place(search *s, size_t place, size_t *searched) {
    unsigned unbounded = failing_points_unbounded(&s->trials, place);
    unsigned failing = failing_points(&s->trials, place) & ~unbounded, left = failing;
    size_t before = s->out->n;
    allow_place(s);
    if (!failing_points_alone(&s->trials, place, &left)) return false;
    failing &= ~left;
    if (!explain_as_before(s, place, &left)) return false;
    bool isolated; // not searched: the layer does not count
    if (!points_are_isolated(&s->trials, place, left, &isolated)) return false;
    bool anew = left != 0 && (isolated || *searched < s->trials.options->places);
    *searched += anew && !isolated;
    if (anew && !search_explanations(s, place, left)) return false;
    // layers that are explained, each perhaps with its own numbers, let a few more be searched
    bool explained = anew && !isolated && place_is_explained(s, place);
    s->explained += explained;
    if (explained && s->explained <= 2 * s->trials.options->places) *searched -= 1;
    if (!leave_unsearched(s, place, anew ? 0 : left, LIMIT_PLACES) ||
        !leave_unsearched(s, place, unbounded, LIMIT_SET) ||
        !leave_unsearched(s, place, failing, LIMIT_ALONE))
        return false;
    for (size_t i = before; i < s->out->n; i++) {
        diagnosed_finding *f = &s->out->findings[i];
        bool whole = f->limit != LIMIT_BEFORE && f->limit < LIMIT_PLACES;
        if (f->n_alike == 0) forget_far_next(s, f);
        if (whole && f->n_alike == 0 && !describe_finding(s, f)) return false;
    }
    return true;
}

// T0 first, then the layers, then F1 and F2, which share a place with T0.
static bool diagnose_places(search *s) {
    size_t layers = s->trials.config->n_layers, searched = 0, ends_searched = 0;
    unsigned ends = failing_points(&s->trials, layers);
    bool fine = true;
    if (ends & point_bit(TRACE_T0)) fine = diagnose_place(s, layers, &ends_searched);
    for (size_t l = 0; fine && l < layers; l++)
        if (failing_points(&s->trials, l) != 0) fine = diagnose_place(s, l, &searched);
    if (fine && ends != 0 && !(ends & point_bit(TRACE_T0)))
        fine = diagnose_place(s, layers, &ends_searched);
    return fine;
}

// Notes the findings about points that are undecided in part.
static void note_open_points(const place_trials *s, sinkproof_diagnosis *d) {
    for (size_t i = 0; i < d->n; i++)
        for (size_t r = 0; r < s->j->n_reports; r++) {
            const sinkproof_point_report *report = &s->j->reports[r];
            diagnosed_finding *f = &d->findings[i];
            bool here = f->layers[report_place(s, report)] && f->points >> report->point & 1;
            f->open = f->open || (here && report->undecided > 0);
        }
}

bool sinkproof_diagnose(const sinkproof_model *model, const sinkproof_trace *trace,
                        const sinkproof_judgement *judgement,
                        const sinkproof_diagnose_options *options, sinkproof_diagnosis *diagnosis,
                        sinkproof_error *error) {
    sinkproof_diagnose_options o = *options;
    if (o.places == 0) o.places = 3;
    if (o.pairs == 0) o.pairs = 400;
    if (o.patience == 0) o.patience = 4;
    if (o.budget == 0) o.budget = 2000;
    *diagnosis = (sinkproof_diagnosis){.budget = o.budget, .tokens = judgement->n_tokens};
    if (judgement->first == NULL) return true;
    search s = {.trials = {.suspect = {.model = model,
                                       .trace = trace,
                                       .policy = &judgement->policy,
                                       .rate = o.rate,
                                       .prefix = judgement->prefix},
                           .config = sinkproof_model_config(model),
                           .j = judgement,
                           .options = &o,
                           .stretch = malloc(sizeof *s.trials.stretch),
                           .error = error},
                .out = diagnosis,
                .of = malloc(mistake_count() * sizeof *s.of),
                .fitting = malloc(mistake_count() * sizeof *s.fitting)};
    s.trials.all = (double)o.places * (double)(2 * mistake_count() + o.pairs);
    bool fine = s.trials.stretch != NULL && s.of != NULL && s.fitting != NULL;
    fine = fine ? diagnose_places(&s) : fail_for_memory(&s);
    fine = fine && explain_as_after(&s);
    for (size_t i = 0; fine && i < diagnosis->n; i++)
        if (diagnosis->findings[i].n_alike > 1)
            fine = diagnose_prefer_everywhere(&s.trials, &diagnosis->findings[i]);
    findings_prefer_common(diagnosis);
    note_open_points(&s.trials, diagnosis);
    fine = fine && composed_say_layers(&s);
    if (fine && o.progress != NULL) o.progress(o.context, 1);
    diagnosis->tried = s.trials.tried;
    attention_forget_guesses(&s);
    free(s.memory);
    free(s.trials.stretch);
    free(s.of);
    free(s.fitting);
    if (!fine) sinkproof_diagnosis_free(diagnosis);
    return fine;
}
