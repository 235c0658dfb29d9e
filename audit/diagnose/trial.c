// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tries suppositions. Most are wrong, and one element shows it: a trial ends as soon as its
// question is answered.
#include "audit/diagnose/trial.h"
#include "audit/diagnose/unnormalised.h"

#include "audit/trace/trace_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const unsigned EVERY = ~0u;

static unsigned point_bit(sinkproof_trace_point point) {
    return 1u << point;
}

size_t report_place(const place_trials *s, const sinkproof_point_report *r) {
    return sinkproof_trace_point_is_layered(r->point) ? r->layer : s->config->n_layers;
}

const sinkproof_point_report *place_report(const place_trials *s, sinkproof_trace_point point,
                                           size_t place) {
    for (size_t i = 0; i < s->j->n_reports; i++)
        if (s->j->reports[i].point == point && report_place(s, &s->j->reports[i]) == place)
            return &s->j->reports[i];
    return NULL;
}

void trials_show_progress(place_trials *s, double work) {
    s->done += work;
    if (s->options->progress != NULL)
        s->options->progress(s->options->context, fmin(s->done / s->all, 1));
}

// ---- what fails

typedef bool failure(const sinkproof_point_report *report);

static unsigned points_failing_as(const place_trials *s, size_t place, failure *is) {
    unsigned points = 0;
    for (size_t i = 0; i < s->j->n_reports; i++) {
        const sinkproof_point_report *r = &s->j->reports[i];
        if (r->outside > 0 && report_place(s, r) == place && is(r)) points |= point_bit(r->point);
    }
    return points;
}

static bool accept_any_report(const sinkproof_point_report *r) {
    (void)r;
    return true;
}

static bool has_finite_set(const sinkproof_point_report *r) {
    return isfinite(r->worst_set.lo) && isfinite(r->worst_set.hi);
}

static bool is_not_finite(const sinkproof_point_report *r) {
    return has_finite_set(r) && !isfinite(r->worst_value);
}

static bool is_unbounded(const sinkproof_point_report *r) {
    return !has_finite_set(r);
}

unsigned failing_points(const place_trials *s, size_t place) {
    return points_failing_as(s, place, accept_any_report);
}

unsigned failing_points_not_finite(const place_trials *s, size_t place) {
    return points_failing_as(s, place, is_not_finite);
}

unsigned failing_points_unbounded(const place_trials *s, size_t place) {
    return points_failing_as(s, place, is_unbounded);
}

static size_t report_elements(const sinkproof_point_report *r) {
    size_t elements = 1;
    for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
    return elements;
}

uint8_t *mark_outside_elements(const place_trials *s, const sinkproof_point_report *r) {
    sinkproof_judgement again;
    uint8_t *marks = calloc(report_elements(r), 1);
    if (marks == NULL) {
        sinkproof_fail(s->error, "no memory for a diagnosis");
        return NULL;
    }
    sinkproof_stretch_to(s->stretch, s->config, s->suspect.policy, s->suspect.trace, r->point,
                         r->layer, true);
    const sinkproof_judge_options how = {.rate = s->suspect.rate,
                                         .stretch = s->stretch,
                                         .prefix = s->suspect.prefix,
                                         .marks = marks,
                                         .marked = r->point,
                                         .marked_layer = r->layer};
    if (sinkproof_judge(s->suspect.model, s->suspect.trace, s->suspect.policy, &how, &again,
                        s->error)) {
        sinkproof_judgement_free(&again);
        return marks;
    }
    free(marks);
    return NULL;
}

// Where an operation may read an input before its rounding, a stretch may leave more open than the
// whole pass.
static bool may_differ_alone(const place_trials *s) {
    bool any = false;
    for (int p = 0; p < AT_POINTS; p++) any = any || s->suspect.policy->unrounded[p];
    return any;
}

bool failing_points_alone(const place_trials *s, size_t place, unsigned *points) {
    for (size_t i = 0; i < s->j->n_reports && may_differ_alone(s); i++) {
        const sinkproof_point_report *r = &s->j->reports[i];
        if (report_place(s, r) != place || (*points & point_bit(r->point)) == 0) continue;
        size_t elements = report_elements(r), outside = 0;
        uint8_t *marks = mark_outside_elements(s, r);
        if (marks == NULL) return false;
        for (size_t e = 0; e < elements; e++) outside += marks[e];
        free(marks);
        if (outside != r->outside) *points &= ~point_bit(r->point);
    }
    return true;
}

bool failing_rows_find(const place_trials *s, size_t place, sinkproof_trace_point point,
                       sinkproof_rows *rows) {
    const sinkproof_point_report *r = place_report(s, point, place);
    uint8_t *marks = mark_outside_elements(s, r);
    bool by_head = sinkproof_trace_point_is_by_head(point);
    size_t elements = report_elements(r), each = 1, n = r->shape[by_head];
    for (size_t d = by_head + 1; d < r->rank; d++) each *= r->shape[d];
    *rows = (sinkproof_rows){n, 0};
    for (size_t i = 0; marks != NULL && i < elements; i++) {
        size_t row = i / each % n;
        if (!marks[i]) continue;
        rows->first = row < rows->first ? row : rows->first;
        rows->end = row >= rows->end ? row + 1 : rows->end;
    }
    free(marks);
    return marks != NULL;
}

// ---- where a mistake is

// Whether no element of the point is outside but in the region.
static bool fails_in_region(const place_trials *s, size_t place, const sinkproof_point_report *r,
                            const sinkproof_region *region, bool *within) {
    uint8_t *marks = mark_outside_elements(s, r);
    size_t n = s->j->n_tokens, elements = report_elements(r);
    const int32_t *chosen = sinkproof_trace_point_is_layered(r->point)
                                ? &s->j->chosen[place * n * s->config->n_chosen]
                                : NULL;
    for (size_t at = 0; marks != NULL && *within && at < elements; at++) {
        if (!marks[at]) continue;
        sinkproof_place of = sinkproof_place_of(s->config, r->point, n, chosen, at);
        *within = sinkproof_region_holds(region, &of);
    }
    free(marks);
    return marks != NULL;
}

bool failing_points_in_region(const place_trials *s, size_t place, unsigned points,
                              const sinkproof_region *region, bool *within) {
    *within = true;
    if (sinkproof_region_is_whole(region)) return true;
    for (size_t i = 0; i < s->j->n_reports && *within; i++) {
        const sinkproof_point_report *r = &s->j->reports[i];
        if (report_place(s, r) != place || (points >> r->point & 1) == 0 || r->outside == 0)
            continue;
        if (!fails_in_region(s, place, r, region, within)) return false;
    }
    return true;
}

// ---- what a mistake reaches

// Whether values at one of `from` reach `point` without passing another traced point.
static bool points_reach(const place_trials *s, unsigned from, sinkproof_trace_point point,
                         size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (from & point_bit(point)) return true;
    size_t n = sinkproof_trace_inputs(s->config, point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (sinkproof_trace_find(s->suspect.trace, inputs[i].point, inputs[i].layer) == NULL &&
            points_reach(s, from, inputs[i].point, inputs[i].layer))
            return true;
    return false;
}

static unsigned points_mistaken(const mistakes_together *what) {
    unsigned points = 0;
    for (size_t i = 0; i < what->n; i++) points |= what->mistakes[i]->points;
    return points;
}

static bool is_reached(const place_trials *s, size_t place, const mistakes_together *what,
                       const sinkproof_point_report *r) {
    return report_place(s, r) == place &&
           points_reach(s, points_mistaken(what), r->point, r->layer);
}

unsigned failing_points_reached(const place_trials *s, size_t place,
                                const mistakes_together *what) {
    unsigned reached = 0;
    for (size_t i = 0; i < s->j->n_reports; i++)
        if (s->j->reports[i].outside > 0 && is_reached(s, place, what, &s->j->reports[i]))
            reached |= point_bit(s->j->reports[i].point);
    return reached;
}

// ---- a trial

// The stretch of the place's points that the mistakes reach; false: there are none.
static bool stretch_for_points(place_trials *s, size_t place, unsigned points, mistake_trial *t) {
    bool fresh = true;
    for (size_t i = 0; i < s->j->n_reports; i++) {
        const sinkproof_point_report *r = &s->j->reports[i];
        if ((points & point_bit(r->point)) == 0 || !is_reached(s, place, &t->what, r)) continue;
        if (r->outside > 0) t->reached |= point_bit(r->point);
        sinkproof_stretch_to(s->stretch, s->config, s->suspect.policy, s->suspect.trace, r->point,
                             r->layer, fresh);
        fresh = false;
    }
    return !fresh;
}

// A supposition that reaches nothing changes nothing.
static void note_unchanged(const place_trials *s, size_t place, mistake_trial *t) {
    for (size_t i = 0; i < s->j->n_reports; i++) {
        const sinkproof_point_report *r = &s->j->reports[i];
        if (report_place(s, r) != place) continue;
        t->bounds[r->point] = r->farthest;
        t->outside[r->point] = r->outside;
    }
}

static void note_trial_outcome(const place_trials *s, const sinkproof_judgement *under,
                               size_t place, mistake_trial *t) {
    for (size_t i = 0; i < under->n_reports; i++) {
        const sinkproof_point_report *r = &under->reports[i];
        const sinkproof_point_report *was = place_report(s, r->point, place);
        if (report_place(s, r) != place) continue;
        if ((was == NULL || was->outside == 0) && r->outside > 0) t->breaks = true;
        if (was == NULL) continue;
        t->bounds[r->point] = r->farthest;
        t->outside[r->point] = r->outside;
        t->undecided[r->point] = r->undecided;
        bool open = r->undecided > 0, was_open = was->undecided > 0 && r->open_nans == 0;
        bool within = r->verdict <= SINKPROOF_VERDICT_WITHIN ||
                      (was_open && r->verdict == SINKPROOF_VERDICT_UNDECIDED);
        if (was->outside == 0 || !within || (open && !was_open)) continue;
        t->inside |= point_bit(r->point);
        if (open) t->open |= point_bit(r->point);
    }
}

// The row of the element that is farthest outside is asked first: mostly it alone refutes.
static sinkproof_rows row_asked_first(const place_trials *s, size_t place, unsigned points) {
    if (points == 0) return (sinkproof_rows){0, 0};
    sinkproof_trace_point point = (sinkproof_trace_point)__builtin_ctz(points);
    const sinkproof_point_report *r = place_report(s, point, place);
    size_t index[SINKPROOF_MAX_RANK];
    sinkproof_trace_index(r->rank, r->shape, r->worst_at, index);
    bool lse = point == TRACE_LSE || point == TRACE_LSE_KEYS;
    bool by_head = lse ? !sinkproof_trace_lse_by_token(s->suspect.trace)
                       : sinkproof_trace_point_is_by_head(point);
    return (sinkproof_rows){index[by_head], index[by_head] + 1};
}

static bool try_points_at_place(place_trials *s, size_t place, unsigned points,
                                sinkproof_refusal *refusal, mistake_trial *t, bool *possible) {
    sinkproof_judgement under;
    *t = (mistake_trial){.what = t->what, .rows = t->rows};
    *possible = stretch_for_points(s, place, points, t);
    if (!*possible) return true;
    note_unchanged(s, place, t);
    if (refusal != NULL && isfinite(refusal->beyond))
        refusal->first = row_asked_first(s, place, t->reached & refusal->points);
    const sinkproof_judge_options how = {
        .stretch = s->stretch, .refusal = refusal, .rows = t->rows.end > 0 ? &t->rows : NULL};
    if (!suspect_suppose_all(&s->suspect, t->what.n, t->what.mistakes, &how, &under, possible,
                             s->error))
        return false;
    if (!*possible) return true;
    s->tried++;
    t->refused = refusal != NULL && refusal->refused;
    if (!t->refused) note_trial_outcome(s, &under, place, t);
    sinkproof_judgement_free(&under);
    return true;
}

// Where the trace lacks keys and values of earlier positions, rows that read them are undecided,
// and stay so. Of those that failed few may become undecided, or the supposition rests on what is
// not known: then the point is not inside.
static bool settle_open_points(place_trials *s, size_t place, mistake_trial *t) {
    for (int p = 0; p < TRACE_POINTS; p++) {
        enum { FEW = 4 }; // a quarter
        mistake_trial again = {.what = t->what};
        bool possible;
        if ((t->open >> p & 1) == 0) continue;
        const sinkproof_point_report *r = place_report(s, (sinkproof_trace_point)p, place);
        if (!failing_rows_find(s, place, (sinkproof_trace_point)p, &again.rows) ||
            !try_points_at_place(s, place, 1u << p, NULL, &again, &possible))
            return false;
        size_t rows = again.rows.end - again.rows.first;
        size_t elements = report_elements(r) / s->j->n_tokens * rows;
        if (!possible || FEW * again.undecided[p] > elements) t->inside &= ~(1u << p);
    }
    return true;
}

static bool explains_all(const mistake_trial *t) {
    return !t->refused && !t->breaks && t->reached != 0 && (t->reached & ~t->inside) == 0;
}

// Whether A11 of the place follows exponentials that are rounded to binary16 (half) or bfloat16,
// which is asked once of each.
static bool follows_exponentials(place_trials *s, size_t place, bool half, bool *follows) {
    const sinkproof_making of = {.config = s->config,
                                 .model = s->suspect.model,
                                 .trace = s->suspect.trace,
                                 .point = TRACE_A11,
                                 .layer = place,
                                 .n = s->j->n_tokens};
    if (s->exponentials_at != place) memset(s->exponentials, 0, sizeof s->exponentials);
    s->exponentials_at = place;
    if (s->exponentials[half] == 0) {
        uint8_t *marks = mark_outside_elements(s, place_report(s, TRACE_A11, place));
        if (marks == NULL) return false;
        bool is = unnormalised_follows(&of, half ? SINKPROOF_F16 : SINKPROOF_BF16, marks);
        s->exponentials[half] = is ? 1 : -1;
        free(marks);
    }
    *follows = s->exponentials[half] > 0;
    return true;
}

// Of a rounding of exponentials before their division the majority of elements says too little.
static bool ask_exponentials(place_trials *s, size_t place, const mistake_trial *t, bool *tells) {
    if ((failing_points(s, place) & point_bit(TRACE_A11)) == 0) return true;
    for (size_t m = 0; m < t->what.n && *tells; m++) {
        const char *override = t->what.mistakes[m]->override;
        bool half = override != NULL && strcmp(override, "A9.unnorm=f16") == 0;
        bool asked = half || (override != NULL && strcmp(override, "A9.unnorm=bf16") == 0);
        if (asked && !follows_exponentials(s, place, half, tells)) return false;
    }
    return true;
}

// A supposition that explains all that it reaches must have evidence; without it, it explains
// nothing.
static bool ask_evidence(place_trials *s, size_t place, mistake_trial *t) {
    bool tells = true;
    if (!explains_all(t)) return true;
    if (!settle_open_points(s, place, t)) return false;
    if (!explains_all(t)) return true;
    sinkproof_region region = suspect_region(&s->suspect, t->what.n, t->what.mistakes);
    bool within;
    if (!failing_points_in_region(s, place, t->reached, &region, &within)) return false;
    if (!within) {
        t->inside = 0;
        return true;
    }
    if (!ask_exponentials(s, place, t, &tells)) return false;
    // the stretch of the trial again
    mistake_trial same = {.what = t->what};
    stretch_for_points(s, place, EVERY, &same);
    if (tells && !trial_shows_difference(s, place, t, &tells)) return false;
    t->blind = !tells;
    if (t->blind) t->inside = 0;
    return true;
}

bool trial_try_all(place_trials *s, size_t place, bool elsewhere, mistake_trial *t,
                   bool *possible) {
    *possible = elsewhere || failing_points_reached(s, place, &t->what) != 0;
    if (!*possible) return true;
    return try_points_at_place(s, place, EVERY, NULL, t, possible) &&
           (!*possible || ask_evidence(s, place, t));
}

bool trial_try_whether(place_trials *s, size_t place, mistake_trial *t, bool *possible) {
    sinkproof_refusal refusal = {.points = EVERY, .beyond = 0};
    *possible = failing_points_reached(s, place, &t->what) != 0;
    if (!*possible) return true;
    return try_points_at_place(s, place, EVERY, &refusal, t, possible) &&
           (!*possible || ask_evidence(s, place, t));
}

bool trial_try_points(place_trials *s, size_t place, unsigned points, double beyond,
                      mistake_trial *t, bool *possible) {
    sinkproof_refusal refusal = {.points = points, .beyond = beyond};
    return try_points_at_place(s, place, points, &refusal, t, possible);
}
