// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A supposition tried on the points of a place: a layer, or what lies outside the layers.
#ifndef SINKPROOF_TRIAL_H
#define SINKPROOF_TRIAL_H

#include "audit/diagnose/diagnose.h"
#include "audit/diagnose/supposition.h"

// What a supposition does to the points of a place.
typedef struct sinkproof_trial {
    sinkproof_explanation what;
    sinkproof_rows rows; // that are compared; end 0: all
    unsigned reached;    // failing points that the mistakes reach
    unsigned inside;     // of these: every element is inside, and nothing is suspicious
    bool refused;        // left before its end
    bool breaks;         // a point that was inside is not
    bool blind; // it would explain them, but the trace does not show what it makes different
    double bounds[SINKPROOF_TRACE_POINTS]; // of failing points: how far the farthest element is
    size_t outside[SINKPROOF_TRACE_POINTS];
} sinkproof_trial;

// What is asked, and what was spent on it.
typedef struct sinkproof_trials {
    sinkproof_suspect suspect;
    const sinkproof_config *config;
    const sinkproof_judgement *j;
    const sinkproof_diagnose_options *options;
    sinkproof_stretch *stretch;
    size_t tried;     // judgements
    double done, all; // the same for progress
    sinkproof_error *error;
} sinkproof_trials;

size_t sinkproof_place_of(const sinkproof_trials *s, const sinkproof_point_report *report);
const sinkproof_point_report *sinkproof_report_at(const sinkproof_trials *s,
                                                  sinkproof_trace_point point, size_t place);
void sinkproof_trials_show(sinkproof_trials *s, double work);

// The points of a place with elements outside; of them those that hold NaN or an infinity in a
// finite set, and those whose farthest element has a set that is not finite.
unsigned sinkproof_failing(const sinkproof_trials *s, size_t place);
unsigned sinkproof_failing_not_finite(const sinkproof_trials *s, size_t place);
unsigned sinkproof_failing_unbounded(const sinkproof_trials *s, size_t place);

// Leaves of some points those whose elements outside are so too when the point is judged by itself,
// as a trial judges it. False: an error.
bool sinkproof_failing_alone(const sinkproof_trials *s, size_t place, unsigned *points);

// 1 for each element of a failing point that is outside; to be freed. NULL: an error.
uint8_t *sinkproof_marks_of(const sinkproof_trials *s, const sinkproof_point_report *report);
// The rows of a failing point from the first that has one to the last. False: an error.
bool sinkproof_failing_rows(const sinkproof_trials *s, size_t place, sinkproof_trace_point point,
                            sinkproof_rows *rows);

// The failing points of a place that the mistakes reach.
unsigned sinkproof_reached(const sinkproof_trials *s, size_t place,
                           const sinkproof_explanation *what);

// The trials of t->what. *possible: the model and the policy have a place for it, and it reaches
// what is asked about. False: an error.
// All that it reaches; elsewhere: also where nothing fails.
bool sinkproof_try_all(sinkproof_trials *s, size_t place, bool elsewhere, sinkproof_trial *t,
                       bool *possible);
// The same, left at the first element that is outside: only t->refused is known then.
bool sinkproof_try_whether(sinkproof_trials *s, size_t place, sinkproof_trial *t, bool *possible);
// Those of `points` alone that it reaches, left at the first element that is `beyond` half-widths
// outside or more.
bool sinkproof_try_points(sinkproof_trials *s, size_t place, unsigned points, double beyond,
                          sinkproof_trial *t, bool *possible);

// evidence.c: does the trace show what the mistakes make different at the place? Of two mistakes
// each is asked beside the other. The stretch is that of the trial. False: an error.
bool sinkproof_trial_tells(sinkproof_trials *s, size_t place, const sinkproof_trial *t,
                           bool *tells);

// isolated.c: for a failing point that no single mistake explains, before pairs are tried. Sets in
// *f `isolated`, `elements` and `isolation` where its elements outside are isolated; the limit
// FOLLOWS where the point is computed from one isolated element of the findings and is outside only
// at positions that read this element; else nothing. False: an error.
bool sinkproof_stands_apart(const sinkproof_trials *s, const sinkproof_diagnosis *findings,
                            const sinkproof_point_report *report, sinkproof_finding_of *f);
// Whether these points fail, and all by isolated elements.
bool sinkproof_all_isolated(const sinkproof_trials *s, size_t place, unsigned points, bool *all);

// alike.c: leaves of what explains a finding that which puts nothing outside in the other layers,
// if there is any. False: an error.
bool sinkproof_prefer_everywhere(sinkproof_trials *s, sinkproof_finding_of *f);

#endif
