// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The search. A place is a layer with points outside. Every mistake that reaches one of them is
// supposed by itself; what is left is searched in pairs. A later layer is first held against what
// explained an earlier one.
#include "audit/diagnose/diagnose.h"

#include "audit/diagnose/supposition.h"
#include "audit/trace/trace_points.h"
#include "proofs/bounds/worst.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What a supposition does to the points of a place.
typedef struct trial {
    sinkproof_explanation what;
    unsigned reached; // failing points that the mistakes reach
    unsigned inside;  // of these: every element is inside, and nothing is suspicious
    bool breaks;      // a point that was inside is not
    double bounds[SINKPROOF_TRACE_POINTS]; // of failing points: how far the worst element is
    size_t outside[SINKPROOF_TRACE_POINTS];
} trial;

typedef struct search {
    sinkproof_suspect suspect;
    const sinkproof_config *config;
    const sinkproof_judgement *j;
    const sinkproof_diagnose_options *options;
    sinkproof_diagnosis *out;
    sinkproof_stretch *stretch;
    trial *singles; // of the place at hand
    size_t n_singles;
    double done, all; // trials, for progress
    sinkproof_error *error;
} search;

static unsigned bit(sinkproof_trace_point point) {
    return 1u << point;
}

static size_t place_of(const search *s, const sinkproof_point_report *r) {
    return sinkproof_trace_point_is_layered(r->point) ? r->layer : s->config->n_layers;
}

// ---- what a mistake reaches

// Does what is computed at one of `from` come to a point with nothing traced in between?
static bool reaches(const search *s, unsigned from, sinkproof_trace_point point, size_t layer) {
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    if (from & bit(point)) return true;
    size_t n = sinkproof_trace_inputs(s->config, point, layer, inputs);
    for (size_t i = 0; i < n; i++)
        if (sinkproof_trace_find(s->suspect.trace, inputs[i].point, inputs[i].layer) == NULL &&
            reaches(s, from, inputs[i].point, inputs[i].layer))
            return true;
    return false;
}

// ---- one supposition

// How far the worst element is outside, in half-widths of its set.
static double bounds_away(const sinkproof_point_report *r, sinkproof_format format) {
    const sinkproof_honest *x = &r->worst_set;
    double v = r->worst_value, gap = v > x->hi ? v - x->hi : x->lo - v;
    double half = fmax(sinkproof_radius(x), sinkproof_ulp(format, x->mid) / 2);
    if (r->outside == 0) return 0;
    return gap < INFINITY && half > 0 ? gap / half : INFINITY;
}

static const sinkproof_point_report *report_of(const sinkproof_judgement *j,
                                               sinkproof_trace_point point, size_t layer) {
    for (size_t i = 0; i < j->n_reports; i++) {
        bool here = !sinkproof_trace_point_is_layered(point) || j->reports[i].layer == layer;
        if (j->reports[i].point == point && here) return &j->reports[i];
    }
    return NULL;
}

// The stretch of all points of the place that the mistakes reach; false: none.
static bool stretch_for(search *s, size_t place, trial *t) {
    unsigned from = 0;
    bool fresh = true;
    for (size_t i = 0; i < t->what.n; i++) from |= t->what.mistakes[i]->points;
    for (size_t i = 0; i < s->j->n_reports; i++) {
        const sinkproof_point_report *r = &s->j->reports[i];
        if (place_of(s, r) != place || !reaches(s, from, r->point, r->layer)) continue;
        if (r->outside > 0) t->reached |= bit(r->point);
        sinkproof_stretch_to(s->stretch, s->config, s->suspect.trace, r->point, r->layer, fresh);
        fresh = false;
    }
    return !fresh;
}

static void read_trial(search *s, const sinkproof_judgement *under, size_t place, trial *t) {
    for (size_t i = 0; i < under->n_reports; i++) {
        const sinkproof_point_report *r = &under->reports[i];
        const sinkproof_point_report *was = report_of(s->j, r->point, r->layer);
        const sinkproof_tensor *tensor = sinkproof_trace_find(s->suspect.trace, r->point, r->layer);
        if (was == NULL || tensor == NULL || place_of(s, r) != place) continue;
        t->bounds[r->point] = bounds_away(r, sinkproof_trace_format(tensor->dtype));
        t->outside[r->point] = r->outside;
        if (was->outside == 0 && r->outside > 0) t->breaks = true;
        if (was->outside > 0 && r->verdict <= SINKPROOF_VERDICT_WITHIN && r->undecided == 0)
            t->inside |= bit(r->point);
    }
}

// *reaches_it: t says something about the place, of which some point fails unless it is looked at
// for what t does elsewhere. False: an error.
static bool try_at(search *s, size_t place, bool elsewhere, trial *t, bool *reaches_it) {
    sinkproof_judgement under;
    t->reached = t->inside = 0, t->breaks = false;
    *reaches_it = stretch_for(s, place, t) && (elsewhere || t->reached != 0);
    if (!*reaches_it) return true;
    for (size_t i = 0; i < s->j->n_reports; i++) { // where it reaches nothing, it changes nothing
        const sinkproof_point_report *r = &s->j->reports[i];
        if (place_of(s, r) != place) continue;
        const sinkproof_tensor *tensor = sinkproof_trace_find(s->suspect.trace, r->point, r->layer);
        t->bounds[r->point] = bounds_away(r, sinkproof_trace_format(tensor->dtype));
        t->outside[r->point] = r->outside;
    }
    if (!sinkproof_suppose_all(&s->suspect, t->what.n, t->what.mistakes, s->stretch, &under,
                               reaches_it, s->error))
        return false;
    if (!*reaches_it) return true;
    s->out->tried++;
    read_trial(s, &under, place, t);
    sinkproof_judgement_free(&under);
    return true;
}

static bool try_out(search *s, size_t place, trial *t, bool *reaches_it) {
    return try_at(s, place, false, t, reaches_it);
}

static void show(search *s, double work) {
    s->done += work;
    if (s->options->progress != NULL)
        s->options->progress(s->options->context, fmin(s->done / s->all, 1));
}

// ---- findings

static sinkproof_finding_of *add_finding(search *s, size_t place, unsigned points) {
    sinkproof_finding_of *grown =
        realloc(s->out->findings, (s->out->n + 1) * sizeof *s->out->findings);
    if (grown == NULL) {
        sinkproof_fail(s->error, "no memory for a diagnosis");
        return NULL;
    }
    s->out->findings = grown;
    sinkproof_finding_of *f = &grown[s->out->n++];
    *f = (sinkproof_finding_of){.layer = place, .points = points, .next_bounds = INFINITY};
    f->point = (sinkproof_trace_point)__builtin_ctz(points);
    f->layers[place] = true;
    return f;
}

static void tell(sinkproof_finding_of *f, const sinkproof_explanation *what) {
    if (f->n_alike < SINKPROOF_ALIKE)
        f->alike[f->n_alike++] = *what;
    else
        f->more_alike++;
}

// The farthest of the points of f under a supposition that does not explain them.
static void consider_next(sinkproof_finding_of *f, const trial *t) {
    double worst = 0;
    if ((t->reached & f->points) == 0) return;
    for (int p = 0; p < SINKPROOF_TRACE_POINTS; p++)
        if (f->points >> p & 1) worst = sinkproof_worst(worst, t->bounds[p]);
    if (worst == 0 || !(worst < f->next_bounds)) return;
    f->next = t->what;
    f->next_bounds = worst;
}

// All that the mistakes reach is inside under them, and the points are among it.
static bool explains(const trial *t, unsigned points) {
    return !t->breaks && ((points | t->reached) & ~t->inside) == 0;
}

// ---- single mistakes

static bool try_singles(search *s, size_t place) {
    s->n_singles = 0;
    for (size_t m = 0; m < sinkproof_mistakes(); m++) {
        bool reached;
        trial *t = &s->singles[s->n_singles];
        *t = (trial){.what = {1, {sinkproof_mistake_at(m)}}};
        if (!try_out(s, place, t, &reached)) return false;
        s->n_singles += reached;
        show(s, 1);
    }
    return true;
}

// The points of `left` that one mistake explains, as many as one can.
static unsigned most_explained(const search *s, unsigned left) {
    unsigned best = 0;
    for (size_t i = 0; i < s->n_singles; i++) {
        unsigned here = explains(&s->singles[i], 0) ? s->singles[i].inside & left : 0;
        if (__builtin_popcount(here) > __builtin_popcount(best)) best = here;
    }
    return best;
}

static bool explain_by_singles(search *s, size_t place, unsigned *left) {
    for (unsigned points; (points = most_explained(s, *left)) != 0; *left &= ~points) {
        sinkproof_finding_of *f = add_finding(s, place, points);
        if (f == NULL) return false;
        f->looked = true;
        for (size_t i = 0; i < s->n_singles; i++)
            if (explains(&s->singles[i], points))
                tell(f, &s->singles[i].what);
            else
                consider_next(f, &s->singles[i]);
    }
    return true;
}

// ---- pairs

typedef struct ranked {
    const trial *t;
    size_t outside;
} ranked;

static int by_outside(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->outside != y->outside) return x->outside < y->outside ? -1 : 1;
    return x->t < y->t ? -1 : x->t > y->t;
}

// Those that reach the point, the ones that leave fewest elements outside first.
static size_t rank(const search *s, sinkproof_trace_point point, ranked *r) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_singles; i++)
        if (s->singles[i].reached & bit(point))
            r[n++] = (ranked){&s->singles[i], s->singles[i].outside[point]};
    qsort(r, n, sizeof *r, by_outside);
    return n;
}

static bool try_pair(search *s, size_t place, const ranked *a, const ranked *b,
                     sinkproof_finding_of *f, unsigned left) {
    bool reached;
    trial t = {.what = {2, {a->t->what.mistakes[0], b->t->what.mistakes[0]}}};
    if (!try_out(s, place, &t, &reached)) return false;
    show(s, 1);
    if (!reached) return true;
    if (!explains(&t, f->points)) {
        consider_next(f, &t);
        return true;
    }
    if (f->n_alike == 0) f->points = t.inside & left; // the first takes all that it can
    tell(f, &t.what);
    return true;
}

// Pairs for the first of the points that are left; the others that the pair explains go with it.
static bool explain_by_pairs(search *s, size_t place, unsigned *left) {
    sinkproof_trace_point point = (sinkproof_trace_point)__builtin_ctz(*left);
    sinkproof_finding_of *f = add_finding(s, place, bit(point));
    ranked *r = malloc(s->n_singles * sizeof *r + 1);
    if (f == NULL || r == NULL) {
        free(r);
        return f == NULL ? false : sinkproof_fail(s->error, "no memory for a diagnosis");
    }
    size_t n = rank(s, point, r), limit = s->options->pairs, tried = 0;
    bool fine = true;
    f->looked = true;
    for (size_t i = 0; i < n; i++) consider_next(f, r[i].t);
    for (size_t sum = 1; fine && n > 1 && sum <= 2 * n - 3; sum++) // by the sum of the ranks
        for (size_t a = sum >= n ? sum - n + 1 : 0; fine && 2 * a < sum; a++) {
            f->pairs_cut = tried == limit;
            if (tried == limit) continue;
            fine = try_pair(s, place, &r[a], &r[sum - a], f, *left);
            tried++;
        }
    show(s, (double)(limit - tried));
    free(r);
    *left &= ~f->points;
    return fine;
}

// ---- unknown points

static bool describe(search *s, sinkproof_finding_of *f) {
    const sinkproof_point_report *r = report_of(s->j, f->point, f->layer);
    sinkproof_judgement again;
    size_t elements = 1;
    for (size_t d = 0; d < r->rank; d++) elements *= r->shape[d];
    uint8_t *marks = calloc(elements, 1);
    if (marks == NULL) return sinkproof_fail(s->error, "no memory for a diagnosis");
    sinkproof_stretch_to(s->stretch, s->config, s->suspect.trace, r->point, r->layer, true);
    const sinkproof_judge_options how = {.rate = s->suspect.rate,
                                         .stretch = s->stretch,
                                         .marks = marks,
                                         .marked = r->point,
                                         .marked_layer = r->layer};
    bool fine = sinkproof_judge(s->suspect.model, s->suspect.trace, s->suspect.policy, &how, &again,
                                s->error);
    if (fine) sinkproof_judgement_free(&again);
    if (fine && !sinkproof_describe_pattern(r, marks, f->pattern, sizeof f->pattern))
        fine = sinkproof_fail(s->error, "no memory for a diagnosis");
    free(marks);
    return fine;
}

// ---- several explanations

// Would the mistakes put a point outside, in a layer that is not f's, that is inside?
static bool breaks_others(search *s, const sinkproof_finding_of *f,
                          const sinkproof_explanation *what, bool *breaks) {
    enum { LAYERS = 8 }; // that are asked
    size_t asked = 0;
    *breaks = false;
    for (size_t l = 0; l < s->config->n_layers && asked < LAYERS && !*breaks; l++) {
        trial t = {.what = *what};
        bool reached;
        if (f->layers[l] || f->layer == s->config->n_layers) continue;
        if (!try_at(s, l, true, &t, &reached)) return false;
        *breaks = reached && t.breaks;
        asked += reached;
    }
    return true;
}

// Of explanations that are alike, those that leave the other layers as they are, if there are any:
// an engine rarely has a mistake in one layer alone.
static bool prefer_everywhere(search *s, sinkproof_finding_of *f) {
    sinkproof_explanation kept[SINKPROOF_ALIKE];
    size_t n = 0;
    for (size_t a = 0; a < f->n_alike; a++) {
        bool breaks;
        if (!breaks_others(s, f, &f->alike[a], &breaks)) return false;
        if (!breaks) kept[n++] = f->alike[a];
    }
    if (n == 0) return true;
    memcpy(f->alike, kept, n * sizeof *kept);
    f->n_alike = n;
    return true;
}

// ---- places

static unsigned failing(const search *s, size_t place) {
    unsigned points = 0;
    for (size_t i = 0; i < s->j->n_reports; i++)
        if (s->j->reports[i].outside > 0 && place_of(s, &s->j->reports[i]) == place)
            points |= bit(s->j->reports[i].point);
    return points;
}

// What explained the same points elsewhere, here.
static bool explain_as_before(search *s, size_t place, unsigned *left) {
    for (size_t i = 0; i < s->out->n; i++) {
        sinkproof_finding_of *f = &s->out->findings[i];
        if (f->n_alike == 0 || (f->points & ~*left) != 0) continue;
        size_t kept = 0;
        bool reached;
        sinkproof_explanation still[SINKPROOF_ALIKE];
        for (size_t a = 0; a < f->n_alike; a++) {
            trial t = {.what = f->alike[a]};
            if (!try_out(s, place, &t, &reached)) return false;
            show(s, 1);
            if (reached && explains(&t, f->points)) still[kept++] = f->alike[a];
        }
        if (kept == 0) continue;
        memcpy(f->alike, still, kept * sizeof *still); // what explains all these layers
        f->n_alike = kept;
        f->layers[place] = true;
        *left &= ~f->points;
    }
    return true;
}

static bool explain_anew(search *s, size_t place, unsigned left) {
    if (!try_singles(s, place) || !explain_by_singles(s, place, &left)) return false;
    while (left != 0)
        if (!explain_by_pairs(s, place, &left)) return false;
    return true;
}

static bool look_at(search *s, size_t place, bool in_full) {
    unsigned left = failing(s, place);
    size_t before = s->out->n;
    if (!explain_as_before(s, place, &left)) return false;
    if (left != 0 && in_full && !explain_anew(s, place, left)) return false;
    if (left != 0 && !in_full && add_finding(s, place, left) == NULL) return false;
    for (size_t i = before; i < s->out->n; i++)
        if (s->out->findings[i].looked && s->out->findings[i].n_alike == 0 &&
            !describe(s, &s->out->findings[i]))
            return false;
    return true;
}

// T0 first, then the layers, then F1 and F2, of which the place is the same.
static bool look_everywhere(search *s) {
    size_t layers = s->config->n_layers, searched = 0;
    unsigned ends = failing(s, layers);
    bool fine = true;
    if (ends & bit(SINKPROOF_TRACE_T0)) fine = look_at(s, layers, true);
    for (size_t l = 0; fine && l < layers; l++) {
        size_t before = s->out->n;
        if (failing(s, l) == 0) continue;
        fine = look_at(s, l, searched < s->options->places);
        searched += s->out->n > before;
    }
    if (fine && ends != 0 && !(ends & bit(SINKPROOF_TRACE_T0))) fine = look_at(s, layers, true);
    return fine;
}

bool sinkproof_diagnose(const sinkproof_model *model, const sinkproof_trace *trace,
                        const sinkproof_judgement *judgement,
                        const sinkproof_diagnose_options *options, sinkproof_diagnosis *diagnosis,
                        sinkproof_error *error) {
    sinkproof_diagnose_options o = *options;
    if (o.places == 0) o.places = 3;
    if (o.pairs == 0) o.pairs = 400;
    *diagnosis = (sinkproof_diagnosis){.n = 0};
    if (judgement->first == NULL) return true;
    search s = {.suspect = {model, trace, &judgement->policy, o.rate},
                .config = sinkproof_model_config(model),
                .j = judgement,
                .options = &o,
                .out = diagnosis,
                .stretch = malloc(sizeof *s.stretch),
                .singles = malloc(sinkproof_mistakes() * sizeof *s.singles),
                .error = error};
    s.all = (double)o.places * (double)(sinkproof_mistakes() + o.pairs);
    bool fine = s.stretch != NULL && s.singles != NULL;
    fine = fine ? look_everywhere(&s) : sinkproof_fail(error, "no memory for a diagnosis");
    for (size_t i = 0; fine && i < diagnosis->n; i++)
        if (diagnosis->findings[i].n_alike > 1)
            fine = prefer_everywhere(&s, &diagnosis->findings[i]);
    if (fine && o.progress != NULL) o.progress(o.context, 1);
    free(s.stretch);
    free(s.singles);
    if (!fine) sinkproof_diagnosis_free(diagnosis);
    return fine;
}

void sinkproof_diagnosis_free(sinkproof_diagnosis *diagnosis) {
    free(diagnosis->findings);
    *diagnosis = (sinkproof_diagnosis){.n = 0};
}
