// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge: an engine's trace against the honest set of every operation, computed from the
// engine's own inputs to that operation. Error does not pile up from point to point, so the
// sets stay small; a point that the trace lacks is bridged by carrying its set on. What the trace
// does not say is a set too, and where that set is so wide that a mistake would not show in it, the
// point is undecided: no subset of an honest trace is ever called a bug.
#ifndef SINKPROOF_JUDGE_H
#define SINKPROOF_JUDGE_H

#include "audit/judge/judge_meaning.h"
#include "audit/sinkproof.h"
#include "audit/trace/trace.h"
#include "model/model.h"
#include "proofs/bounds/bounds.h"

enum { SINKPROOF_HISTOGRAM = 160 }; // quarters of an octave from 2^-32 to 2^8

typedef struct sinkproof_histogram {
    size_t total, counts[SINKPROOF_HISTOGRAM];
} sinkproof_histogram;

// The middle of the last bin stands for everything from there on: a median may be above it.
#define SINKPROOF_HISTOGRAM_TOP 240.0

void sinkproof_histogram_merge(sinkproof_histogram *into, const sinkproof_histogram *from);
double
sinkproof_histogram_median(const sinkproof_histogram *histogram); // estimated, within a quarter

// Squared 2-norms over a point's elements, in binary64 (estimated). Over the reals
// error = local + inherited, element by element.
typedef struct sinkproof_errors {
    double truth;     // of the real model's values, from the tokens
    double error;     // engine - truth
    double local;     // engine - the unrounded operation on the engine's own inputs
    double inherited; // the unrounded operation on the engine's own inputs - truth
} sinkproof_errors;

typedef struct sinkproof_point_report {
    sinkproof_trace_point point;
    size_t layer;
    char name[40]; // "03.A4.q"
    sinkproof_verdict verdict;
    bool bridged; // some input of this operation was not in the trace
    size_t elements, several, outside, unlikely; // several: sets with more than one value
    size_t undecided; // elements of rows whose sets are as wide as what they hold, or without bound
    size_t nans, infinities;                  // elements where the engine has no finite number
    size_t open_nans;                         // NaN where nothing bounds what an honest engine has
    size_t first_nan, first_infinity;         // elements, where there are any
    double share_worst, share_median;         // |engine - emulation| over the half-width of the set
    sinkproof_histogram shares, widths, gaps; // gaps: |engine - emulation|, ulp
    double power_single; // median half-width of the likely set, in ulp of the traced dtype
    sinkproof_drift drift_sums;
    sinkproof_drift_result drift;
    // The same of as many layers of the point together, this one among them; 0: not asked.
    size_t layers_together;
    sinkproof_drift_result together;
    bool leans_together; // they lean too far, and this layer leans their way: suspicious
    // The element that is furthest outside (or uses most of its set).
    size_t worst_at, rank, shape[SINKPROOF_MAX_RANK];
    double worst_value, worst_excess; // excess: distance to the set in its half-widths, or share
    sinkproof_honest worst_set;
    double excess_ulp; // distance of the worst element outside its set, in ulp
    // Of the element that is most half-widths of its set outside: how many, each at least half a
    // unit in the last place of the traced format. 0: none is outside.
    double farthest;
    char worst_inputs[320];  // in hex floats
    sinkproof_errors errors; // end to end, when asked for
} sinkproof_point_report;

// One of its errors over the truth, as norms; NAN where that is 0 or was not asked for.
double sinkproof_relative(double square, const sinkproof_point_report *report);

typedef struct sinkproof_judgement {
    sinkproof_policy policy;
    double rate; // false alarms, as asked
    size_t n_reports, n_tokens, n_layers;
    sinkproof_point_report *reports; // in the order of the forward pass, present points only
    // The worst of the points that were decided; UNDECIDED when none was, or when none is worse and
    // an element is NaN that may be.
    sinkproof_verdict verdict;
    size_t undecided;                    // points
    size_t open_nans;                    // elements
    const sinkproof_point_report *first; // first divergence: the first bug, else NULL
    const sinkproof_point_report *first_suspicious;
    // Smallest gap between the last chosen and the best rejected expert, where M2 or M3 is traced.
    double thinnest_margin;
    size_t margin_layer, margin_token;
    size_t *open;    // [layers]: tokens whose experts neither the trace nor the logits' sets tell
    int32_t *chosen; // [layers][n][k]: the engine's experts; -1 where it is not known
    // By sinkproof_judge_forms: the stages that it asked about, and as bits the forms that fit.
    bool forms_asked[SINKPROOF_FORMED_COUNT];
    unsigned forms_fitting[SINKPROOF_FORMED_COUNT];
} sinkproof_judgement;

// What is done with a point (judge_stretch.c): a part of the model can be judged alone.
typedef enum sinkproof_doing {
    SINKPROOF_JUDGED,   // computed, and compared where it is traced
    SINKPROOF_COMPUTED, // and not compared: it may have been read before it was rounded
    SINKPROOF_GIVEN,    // the trace's values, neither computed nor compared
    SINKPROOF_LEFT_OUT
} sinkproof_doing;

// Points of the layers, then of what lies outside them.
typedef struct sinkproof_stretch {
    uint8_t doing[SINKPROOF_MAX_LAYERS + 1][SINKPROOF_TRACE_POINTS];
} sinkproof_stretch;

// Rows of a trace, its tokens: [first, end).
typedef struct sinkproof_rows {
    size_t first, end;
} sinkproof_rows;

// A pass that ends at the first element of one of `points` that is `beyond` half-widths of its set
// outside, or more. One that has ended leaves a judgement without reports.
typedef struct sinkproof_refusal {
    unsigned points; // bits, of whatever layers are judged
    double beyond;
    bool refused;
} sinkproof_refusal;

// Is shown each element that is compared, by all threads: its place, the engine's value, its set as
// it is stored. A weight of a masked key is shown where it is not 0.
typedef void sinkproof_witness(void *witnessing, sinkproof_trace_point point, size_t layer,
                               size_t at, double v, const sinkproof_honest *set);

typedef struct sinkproof_judge_options {
    // False alarms per tensor of the likely set, of drift and of spread each, and of the drift of a
    // point's layers together.
    double rate;
    bool end_to_end; // also run the real model from the tokens and compare
    // Called from time to time with the share of the work that is done, 1 at the end. May be NULL.
    void (*progress)(void *context, double share);
    void *context;
    const sinkproof_meaning *meaning; // NULL: the definition
    const sinkproof_stretch *stretch; // NULL: every point is judged
    sinkproof_refusal *refusal;       // NULL: the pass goes to its end
    const sinkproof_rows *rows;       // NULL: all are compared
    // Of one point the elements that are outside, 1 each; NULL: not asked for.
    uint8_t *marks;
    sinkproof_trace_point marked;
    size_t marked_layer;
    sinkproof_witness *witness; // NULL: nobody asks
    void *witnessing;
} sinkproof_judge_options;

// What it takes to judge `point` of `layer` alone: that point, whatever it is computed from up to
// what is traced, and nothing else. Under a policy by which an input may be read before it is
// rounded that one is computed too where it can be from what is traced; NULL: none is. To be called
// for each point of a stretch, the first time with `fresh`.
void sinkproof_stretch_to(sinkproof_stretch *stretch, const sinkproof_config *config,
                          const sinkproof_policy *policy, const sinkproof_trace *trace,
                          sinkproof_trace_point point, size_t layer, bool fresh);

// Judges on all processors, with the same result for any number of them.
bool sinkproof_judge(const sinkproof_model *model, const sinkproof_trace *trace,
                     const sinkproof_policy *policy, const sinkproof_judge_options *options,
                     sinkproof_judgement *judgement, sinkproof_error *error);

// The second half of a judgement that was asked without it: the reports' errors end to end.
bool sinkproof_judge_end_to_end(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                sinkproof_judgement *judgement, sinkproof_error *error);

// judge_forms.c: for each stage of which the policy admits several forms and the trace decides a
// point, every form that leaves the verdict within or exact when that stage has no other. As many
// judgements as there are forms; nothing is asked when `judgement` is not itself within or exact.
bool sinkproof_judge_forms(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, sinkproof_judgement *judgement,
                           sinkproof_error *error);
void sinkproof_judgement_free(sinkproof_judgement *judgement);

// How badly a policy fits: points with a bug count first, then suspicious ones. How many elements
// are outside does not count: a wider policy always has fewer.
double sinkproof_judgement_misfit(const sinkproof_judgement *judgement);

#endif
