// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The diagnosis of a trace with points outside their honest sets: which known mistake, or which two
// together, put every element of those points inside. It is local, like the judge: each point is
// computed from the trace's own inputs, so that two mistakes at different points are found one by
// one.
#ifndef SINKPROOF_DIAGNOSE_H
#define SINKPROOF_DIAGNOSE_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge.h"

enum {
    DIAGNOSE_MOST_TOGETHER = 2, // most mistakes at one point
    DIAGNOSE_MOST_ALIKE = 12,   // most explanations that are listed
    DIAGNOSE_PATTERN_TEXT = 640
};

// Mistakes that explain points together.
typedef struct mistakes_together {
    size_t n;
    const known_mistake *mistakes[DIAGNOSE_MOST_TOGETHER];
} mistakes_together;

// Why some suppositions were not tried.
typedef enum search_limit {
    LIMIT_NONE,  // all were tried: each mistake, and every pair
    LIMIT_PAIRS, // only as many pairs as the options allow
    // no pair: none was found for the same points of an earlier layer, or for `patience` others
    LIMIT_BEFORE,
    LIMIT_OVERFLOW, // where NaN or infinity is reached: only mistakes that may overflow
    LIMIT_BUDGET,   // the options' budget was spent
    LIMIT_PLACES,   // only the explanations of earlier layers
    LIMIT_SET,      // none: the worst element's set is not finite
    LIMIT_ALONE,    // none: judged alone, the points have wider sets
    LIMIT_FOLLOWS   // no pair: the points are outside where an isolated element is read
} search_limit;

// The possible causes of an isolated element. A wrong operation makes more than one element differ,
// with exceptions.
typedef enum isolation_kind {
    ISOLATED_PLAIN,   // no exception applies
    ISOLATED_STEP,    // outside by at most one step of the format it is rounded to
    ISOLATED_EXTREME, // it, or one of its operands, is the largest or the smallest of all
    ISOLATED_NAN,     // it is NaN or infinite
} isolation_kind;

// The finding about points that are outside, in one layer or in several layers alike.
typedef struct diagnosed_finding {
    sinkproof_trace_point point; // the first of them
    size_t layer;                // the first layer; for T0, F1 and F2 the number of layers
    unsigned points;             // bits
    bool layers[SINKPROOF_MAX_LAYERS + 1];
    // All explanations: with them no element of these points, nor of the other points that the
    // mistakes reach, is outside. None, and no limit: unknown; none, and a limit: undecided.
    size_t n_alike, more_alike; // listed, and further ones
    // tokens at which the mistakes act; the others are right. end 0: all tokens
    sinkproof_rows rows;
    bool open; // some elements of these points are undecided: they read what the trace lacks
    mistakes_together alike[DIAGNOSE_MOST_ALIKE];
    size_t common; // the same number: findings whose first explanation is one cause; 0: none
    // The nearest supposition that does not explain the points, and the distance of its farthest
    // element to the set, in half-widths of the set, each taken as at least half an ulp of the
    // traced format. n 0: none; where nothing explains the points, none is as near as half the
    // distance of the definition.
    mistakes_together next;
    double next_bounds;
    // For points that nothing explains: the number of suppositions that reach them, the number of
    // those that were tried, and why not all were.
    size_t suppositions, searched;
    search_limit limit;
    // The number of isolated elements outside, of `elements`, where no single mistake explains the
    // point (isolated.c); then no pairs are tried. 0: they are not isolated.
    size_t isolated, elements;
    isolation_kind isolation;
    // for unexplained points: where the outside elements are; else ""
    char pattern[DIAGNOSE_PATTERN_TEXT];
} diagnosed_finding;

struct composed_mistake; // composed.h
struct composed_marks;

struct diagnosed_sequence; // sequences.h

typedef struct sinkproof_diagnosis {
    struct composed_mistake *composed; // those that were made for this trace
    struct composed_marks *marks;      // that their places read
    size_t n;
    diagnosed_finding *findings; // in the order of the forward pass
    size_t tried, budget;        // judgements of stretches
    size_t tokens;
    bool packed; // the rows of findings are those of several sequences, and no positions
    // Of a packed trace: what was found in sequences by themselves.
    size_t n_alone;
    struct diagnosed_sequence *alone;
} sinkproof_diagnosis;

typedef struct sinkproof_diagnose_options {
    double rate;     // of false alarms, as in the judgement
    size_t places;   // layers searched in full; the others only try what was found. 0: 3
    size_t pairs;    // pairs tried at one point; 0: 400
    size_t patience; // points whose pairs are tried in vain before no more are; 0: 4
    size_t
        budget; // judgements of a stretch of any size, and a quarter for each later layer; 0: 2000
    // Called with the share of the work that is done. May be NULL.
    void (*progress)(void *context, double share);
    void *context;
} sinkproof_diagnose_options;

// `judgement` is the result of sinkproof_judge on the trace. If nothing is outside, there are no
// findings.
bool sinkproof_diagnose(const sinkproof_model *model, const sinkproof_trace *trace,
                        const sinkproof_judgement *judgement,
                        const sinkproof_diagnose_options *options, sinkproof_diagnosis *diagnosis,
                        sinkproof_error *error);
// Of a diagnosis of several sequences: diagnoses those by themselves in which points fail that no
// finding explains (sequences.h). A finding that they explain wherever it fails is taken out.
bool sinkproof_diagnose_alone(const sinkproof_model *model, const sinkproof_trace *trace,
                              const sinkproof_judgement *judgement,
                              const sinkproof_diagnose_options *options,
                              sinkproof_diagnosis *diagnosis, sinkproof_error *error);
// Once: its rows become positions in a trace that begins at one, and stay rows in one of several
// sequences.
void sinkproof_diagnosis_place(sinkproof_diagnosis *diagnosis, size_t begins, size_t sequences);
void sinkproof_diagnosis_free(sinkproof_diagnosis *diagnosis);

// Whether there are findings and all of them are isolated elements: then no arithmetic explains the
// trace.
bool sinkproof_diagnosis_isolates(const sinkproof_diagnosis *diagnosis);

// isolated.c: whether the marked elements are few and have nothing in common: no two of them share
// an index or lie on a diagonal of two dimensions.
bool marks_are_isolated(const sinkproof_point_report *report, const uint8_t *marks);

// pattern.c: describes in words where the marked elements of a point are. Returns false if memory
// runs out.
bool pattern_describe(const sinkproof_point_report *report, const uint8_t *marks, char *text,
                      size_t size);

#endif
