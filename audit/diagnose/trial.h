// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Tries a supposition on the points of a place: a layer, or the points outside the layers.
#ifndef SINKPROOF_TRIAL_H
#define SINKPROOF_TRIAL_H

#include "audit/diagnose/diagnose.h"
#include "audit/diagnose/supposition.h"

// The effect of a supposition on the points of a place.
typedef struct mistake_trial {
    mistakes_together what;
    sinkproof_rows rows; // rows that are compared; end 0: all
    unsigned reached;    // failing points that the mistakes reach
    unsigned inside;     // of those, the points with every element inside and nothing suspicious
    bool refused;        // ended early
    bool breaks;         // a point that was inside is now outside
    // would explain the points, but the trace does not show the difference that it makes
    bool blind;
    unsigned open; // points inside of which some rows are undecided, and were without the mistakes
    // for failing points: the distance of the farthest element
    double bounds[TRACE_POINTS];
    size_t outside[TRACE_POINTS], undecided[TRACE_POINTS];
} mistake_trial;

// The question, and the effort spent on it.
typedef struct place_trials {
    suspect_engine suspect;
    const sinkproof_config *config;
    const sinkproof_judgement *j;
    const sinkproof_diagnose_options *options;
    sinkproof_stretch *stretch;
    size_t tried;     // judgements
    double done, all; // the same, for the progress display
    // whether A11 of a place follows a rounding of exponentials to bfloat16 and to binary16: 1; it
    // does not: -1; not asked yet: 0
    size_t exponentials_at;
    int exponentials[2];
    sinkproof_error *error;
} place_trials;

size_t report_place(const place_trials *s, const sinkproof_point_report *report);
const sinkproof_point_report *place_report(const place_trials *s, sinkproof_trace_point point,
                                           size_t place);
void trials_show_progress(place_trials *s, double work);

// The points of a place with elements outside; those of them with NaN or infinity in a finite set;
// and those whose farthest element has a set that is not finite.
unsigned failing_points(const place_trials *s, size_t place);
unsigned failing_points_not_finite(const place_trials *s, size_t place);
unsigned failing_points_unbounded(const place_trials *s, size_t place);

// Keeps of *points only those that also fail when judged alone, as in a trial. Returns false on
// error.
bool failing_points_alone(const place_trials *s, size_t place, unsigned *points);

// 1 for each element of a failing point that is outside; the caller frees it. NULL on error.
uint8_t *mark_outside_elements(const place_trials *s, const sinkproof_point_report *report);
// The rows of a failing point, from the first to the last with an element outside. Returns false on
// error.
bool failing_rows_find(const place_trials *s, size_t place, sinkproof_trace_point point,
                       sinkproof_rows *rows);

// Whether the elements outside of these points are all in the region. Returns false on error.
bool failing_points_in_region(const place_trials *s, size_t place, unsigned points,
                              const sinkproof_region *region, bool *within);

// The failing points of a place that the mistakes reach.
unsigned failing_points_reached(const place_trials *s, size_t place, const mistakes_together *what);

// Tries t->what on all points that it reaches; `elsewhere`: also in layers where nothing fails.
// *possible: the mistakes can occur in the model and the policy, and reach such points. Returns
// false on error.
bool trial_try_all(place_trials *s, size_t place, bool elsewhere, mistake_trial *t, bool *possible);
// The same, ended at the first element outside: only t->refused is valid then.
bool trial_try_whether(place_trials *s, size_t place, mistake_trial *t, bool *possible);
// The same for those of `points` that it reaches, ended at the first element whose distance is at
// least `beyond` half-widths.
bool trial_try_points(place_trials *s, size_t place, unsigned points, double beyond,
                      mistake_trial *t, bool *possible);

// evidence.c: whether the trace shows the difference that the mistakes make at the place; each of
// two mistakes is asked beside the other. The stretch is that of the trial. Returns false on error.
bool trial_shows_difference(place_trials *s, size_t place, const mistake_trial *t, bool *tells);
// Adds the counts of one mistake, so that several traces are asked together.
bool trial_add_evidence(place_trials *s, size_t place, const mistake_trial *t,
                        sinkproof_evidence *evidence);

// isolated.c: classifies a failing point that no single mistake explains, before pairs are tried.
// Sets `isolated`, `elements` and `isolation` in *f if its elements outside are isolated. Sets the
// limit FOLLOWS if the point is computed from one isolated element of the findings and is outside
// only at positions that read this element. Otherwise sets nothing. Returns false on error.
bool point_stands_apart(const place_trials *s, const sinkproof_diagnosis *findings,
                        const sinkproof_point_report *report, diagnosed_finding *f);
// Whether these points fail, and only by isolated elements.
bool points_are_isolated(const place_trials *s, size_t place, unsigned points, bool *all);

// alike.c: keeps only the explanations of a finding that put nothing outside in other layers, if
// there are any. Returns false on error.
bool diagnose_prefer_everywhere(place_trials *s, diagnosed_finding *f);

#endif
