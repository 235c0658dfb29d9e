// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The judge compares an engine's trace with the honest set of every operation, computed from the
// engine's own inputs to that operation. Errors do not accumulate from point to point, so the sets
// stay small. Where the trace lacks a point, the judge carries the set of its values on to the next
// operation. Where a set is so wide that a mistake would not show in it, the point is undecided: no
// subset of an honest trace is ever called a bug.
#ifndef SINKPROOF_JUDGE_H
#define SINKPROOF_JUDGE_H

#include "audit/judge/judge_certified.h"
#include "audit/judge/judge_meaning.h"
#include "audit/judge/judge_region.h"
#include "audit/sinkproof.h"
#include "audit/trace/trace.h"
#include "model/model.h"
#include "proofs/bounds/bounds.h"

enum { SINKPROOF_HISTOGRAM = 160 }; // bins: quarters of an octave from 2^-32 to 2^8

typedef struct sinkproof_histogram {
    size_t total, counts[SINKPROOF_HISTOGRAM];
} sinkproof_histogram;

// The middle of the last bin, which also counts everything above it: a median may be higher.
#define HISTOGRAM_TOP 240.0

void sinkproof_histogram_merge(sinkproof_histogram *into, const sinkproof_histogram *from);
double histogram_median(const sinkproof_histogram *histogram); // estimated, within 1/4 octave

// Squared 2-norms over the elements of a point, in binary64 (estimated). Over the reals error =
// local + inherited, element by element.
typedef struct sinkproof_errors {
    double truth;     // the real model's values, computed from the tokens
    double error;     // engine - truth
    double local;     // engine - the unrounded operation on the engine's own inputs
    double inherited; // the unrounded operation on the engine's own inputs - truth
} sinkproof_errors;

typedef struct sinkproof_point_report {
    sinkproof_trace_point point;
    size_t layer;
    char name[40]; // "03.A4.q"
    sinkproof_verdict verdict;
    bool bridged; // the trace lacks some input of this operation
    // several: elements whose set has more than one value
    size_t elements, several, outside, unlikely;
    size_t undecided;        // elements in rows whose sets are as wide as the values or unbounded
    size_t nans, infinities; // elements where the engine has NaN or an infinity
    size_t open_nans;        // NaN where the set is unbounded
    size_t first_nan, first_infinity;         // indices of the first ones, valid if there are any
    double share_worst, share_median;         // |engine - emulation| over the half-width of the set
    sinkproof_histogram shares, widths, gaps; // gaps: |engine - emulation|, ulp
    double power_single; // median half-width of the likely set, in ulp of the traced dtype
    sinkproof_drift drift_sums;
    sinkproof_drift_result drift;
    // Drift over several layers of this point together, this layer among them; 0: not asked.
    size_t layers_together;
    sinkproof_drift_result together;
    bool leans_together; // suspicious: together they lean too far, this layer too
    // The element that is furthest outside its set; if none is outside, the one that uses most of
    // its set.
    size_t worst_at, rank, shape[SINKPROOF_MAX_RANK];
    size_t begins;                          // position of the first row; 0 with several sequences
    size_t n_sequences, sequence, position; // of the worst element's row
    bool rows_first;                        // the first index is a token's
    // excess: distance to the set in half-widths of the set; inside: the share
    double worst_value, worst_excess;
    sinkproof_honest worst_set;
    double excess_ulp; // distance of the worst element outside its set, in ulp
    // The largest distance of an element to its set, in half-widths of the set, each taken as at
    // least half an ulp of the traced format. 0: none is outside.
    double farthest;
    char worst_inputs[320];  // in hex floats
    sinkproof_errors errors; // end to end, if the options ask for it
} sinkproof_point_report;

// The square root of `square` relative to the truth's norm; NAN if the truth's norm is 0 or was not
// asked for.
double sinkproof_error_relative(double square, const sinkproof_point_report *report);

// The layers [first, end) of a model. T0 belongs to layer 0, F1 and F2 to the last one. end 0: all.
typedef struct sinkproof_layer_range {
    size_t first, end;
} sinkproof_layer_range;

struct judge_prefix; // judge_prefix.h

typedef struct sinkproof_judgement {
    sinkproof_policy policy;
    double rate; // rate of false alarms, from the options
    size_t n_reports, n_tokens, n_layers;
    size_t begins; // position of the first token; 0 with several sequences
    size_t n_sequences;
    bool later; // a sequence begins after position 0
    // What A9.lse is: said by the metadata, or (lse_tried) found. lse_outside: elements outside
    // with the sink, and as that of the keys alone.
    sinkproof_lse lse;
    bool lse_tried;
    size_t lse_outside[2];
    size_t *unread; // [layers]: earlier positions that are read, and have no key or no value
    sinkproof_point_report *reports; // in the order of the forward pass; only points of the trace
    // The worst verdict among the decided points; UNDECIDED when no point is decided, or when no
    // point is worse and an element is NaN where the set is unbounded.
    sinkproof_verdict verdict;
    size_t undecided;                    // points
    size_t open_nans;                    // elements
    const sinkproof_point_report *first; // first divergence: the first point with a bug, or NULL
    const sinkproof_point_report *first_suspicious;
    // Smallest gap between the last chosen and the best rejected expert, where M2 or M3 is traced.
    double thinnest_margin;
    size_t margin_layer, margin_token;
    size_t *open;                    // [layers]: tokens whose experts are unknown
    int32_t *chosen;                 // [layers][n][k]: the engine's experts; -1: unknown
    certified_comparison *certified; // end to end against a file of truth; NULL: none
    sinkproof_layer_range layers;    // that were judged
    // Where a point is outside: the sets of the prefix that the trace names; else NULL.
    struct judge_prefix *prefix;
    // [layers + 1][points]: what the trace holds of the other layers, where they are not judged;
    // else NULL.
    uint8_t *held;
    // Filled by sinkproof_judge_forms: the stages that were asked about, and a bit for each form
    // that fits.
    bool forms_asked[SINKPROOF_FORMED_COUNT];
    unsigned forms_fitting[SINKPROOF_FORMED_COUNT];
} sinkproof_judgement;

// What the judge does with a point, so that a part of the model can be judged alone
// (judge_stretch.c).
typedef enum point_doing_kind {
    DOING_JUDGED,   // computed, and compared if the trace has it
    DOING_COMPUTED, // not compared: the next operation may have read it unrounded
    DOING_GIVEN,    // taken from the trace, neither computed nor compared
    DOING_LEFT_OUT
} point_doing_kind;

// One entry for each point of each layer, then one row for the points outside the layers.
typedef struct sinkproof_stretch {
    uint8_t doing[SINKPROOF_MAX_LAYERS + 1][TRACE_POINTS];
} sinkproof_stretch;

typedef enum held_kind { HELD_NOT, HELD, HELD_NOT_FINITE } held_kind;

// The rows (tokens) [first, end) of a trace.
typedef struct sinkproof_rows {
    size_t first, end;
} sinkproof_rows;

// Ends a pass early: at the first element of one of `points` whose distance to its set is at least
// `beyond` half-widths. A pass that ended early leaves a judgement without reports.
typedef struct sinkproof_refusal {
    unsigned points; // a bit for each point, in all judged layers
    double beyond;
    bool refused;
    sinkproof_rows first; // asked before all rows where these need not be computed; end 0: none
} sinkproof_refusal;

// Called for each compared element, from all threads, with its index, the engine's value and its
// set in the stored format. Of masked keys only weights other than 0 are passed.
typedef void judge_witness(void *witnessing, sinkproof_trace_point point, size_t layer, size_t at,
                           double v, const sinkproof_honest *set);

typedef struct sinkproof_judge_options {
    // Rate of false alarms per tensor, separately for the likely set, for drift, for spread, and
    // for the drift of a point's layers together.
    double rate;
    bool end_to_end; // also run the real model from the tokens and measure the errors against it
    const truth_file *truth; // of the trace's tokens, then compared too; NULL: none
    // Called now and then with the share of the work that is done, 1 at the end. May be NULL.
    void (*progress)(void *context, double share);
    void *context;
    const sinkproof_meaning *meaning; // NULL: the definition
    const sinkproof_stretch *stretch; // NULL: every point is judged
    sinkproof_layer_range layers;     // without a stretch: the layers to judge
    sinkproof_refusal *refusal;       // NULL: the pass runs to its end
    const sinkproof_rows *rows;       // NULL: all rows are compared
    const sinkproof_region *region;   // NULL: all elements are compared
    const sinkproof_moving *moving;   // NULL: nothing is moved
    // Of the trace, as a judgement has it, for a stretch or another meaning, which find none; NULL:
    // none.
    const struct judge_prefix *prefix;
    // Receives 1 for each element of the point `marked` that is outside its set; NULL: not asked
    // for.
    uint8_t *marks;
    sinkproof_trace_point marked;
    size_t marked_layer;
    judge_witness *witness; // NULL: no witness
    void *witnessing;
} sinkproof_judge_options;

// Marks the points that must be computed to judge `point` of `layer` alone: the point itself and
// its inputs, back to what the trace holds. Under a policy by which an operation may read an input
// before its rounding, that input is computed too if the trace holds its own inputs; a NULL policy
// has no such input. Call it for each point of a stretch, the first time with `fresh`.
void sinkproof_stretch_to(sinkproof_stretch *stretch, const sinkproof_config *config,
                          const sinkproof_policy *policy, const sinkproof_trace *trace,
                          sinkproof_trace_point point, size_t layer, bool fresh);

// Judges on all processors; the result is the same for any number of threads.
bool sinkproof_judge(const sinkproof_model *model, const sinkproof_trace *trace,
                     const sinkproof_policy *policy, const sinkproof_judge_options *options,
                     sinkproof_judgement *judgement, sinkproof_error *error);

// Fills the end-to-end errors of a judgement that was made without them.
bool sinkproof_judge_end_to_end(const sinkproof_model *model, const sinkproof_trace *trace,
                                const sinkproof_judge_options *options,
                                sinkproof_judgement *judgement, sinkproof_error *error);

// judge_forms.c: for each stage with several admitted forms and a decided point in the trace, finds
// every form that keeps the verdict within or exact when the policy admits that form alone. It
// judges once for each form, and does nothing unless `judgement` itself is within or exact.
bool sinkproof_judge_forms(const sinkproof_model *model, const sinkproof_trace *trace,
                           const sinkproof_judge_options *options, sinkproof_judgement *judgement,
                           sinkproof_error *error);
void sinkproof_judgement_free(sinkproof_judgement *judgement);

// What a judgement of some layers reads and keeps (judge_plan.c); no number of the trace is read.
typedef struct sinkproof_judge_size {
    size_t points;      // traced, in these layers
    size_t bytes;       // of them, and of the residual stream before the first layer
    size_t at_once;     // bytes of the trace that are in use together: of the largest layer
    size_t sets;        // bytes of the sets that are kept together, at most
    double work, layer; // multiply-adds of all, and of a layer
    // Of a prefix: multiply-adds of a layer, and bytes of the sets of its keys and values.
    double prefix_layer;
    size_t prefix_sets;
} sinkproof_judge_size;
void sinkproof_judge_measure(const sinkproof_model *model, const sinkproof_trace *trace,
                             sinkproof_layer_range layers, sinkproof_judge_size *size);

// How badly a policy fits: the number of points with a bug counts first, then that of suspicious
// points. The number of elements outside does not count, since a wider policy always has fewer.
double sinkproof_judgement_misfit(const sinkproof_judgement *judgement);

#endif
