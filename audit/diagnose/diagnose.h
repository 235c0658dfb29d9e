// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The diagnosis of a trace with points outside their honest sets: which known mistake, or which two
// together, put every element of those points inside. Local, as the judge is: each point from the
// trace's own inputs, so that two mistakes at different points are found one by one.
#ifndef SINKPROOF_DIAGNOSE_H
#define SINKPROOF_DIAGNOSE_H

#include "audit/diagnose/mistakes.h"
#include "audit/judge/judge.h"

enum {
    SINKPROOF_TOGETHER = 2, // mistakes at one point
    SINKPROOF_ALIKE = 12,   // explanations that are told
    SINKPROOF_PATTERN = 640
};

// Mistakes that explain points together.
typedef struct sinkproof_explanation {
    size_t n;
    const sinkproof_mistake *mistakes[SINKPROOF_TOGETHER];
} sinkproof_explanation;

// Why not every supposition was tried.
typedef enum sinkproof_limit {
    SINKPROOF_LIMIT_NONE,     // every one was: each mistake, and every two
    SINKPROOF_LIMIT_PAIRS,    // as many pairs as the options say
    SINKPROOF_LIMIT_BEFORE,   // no pair: none was found for the same points of an earlier layer, or
                              // for `patience` others
    SINKPROOF_LIMIT_OVERFLOW, // what reaches a NaN or an infinity: no more than what may overflow
    SINKPROOF_LIMIT_BUDGET,   // the options' budget was spent
    SINKPROOF_LIMIT_PLACES,   // no more than what explains an earlier layer
    SINKPROOF_LIMIT_SET,      // none at all: the worst element's set is not finite
    SINKPROOF_LIMIT_ALONE,    // none at all: judged by themselves they have wider sets
    SINKPROOF_LIMIT_FOLLOWS   // no pair: they are outside where an isolated element is read
} sinkproof_limit;

// What an isolated element may be. An operation that is wrong makes more than one element differ,
// with exceptions.
typedef enum sinkproof_isolation {
    SINKPROOF_ISOLATED,         // none of them
    SINKPROOF_ISOLATED_STEP,    // no farther outside than a step of the format it is rounded to
    SINKPROOF_ISOLATED_EXTREME, // it, or what it is made of, is the largest or the smallest of all
    SINKPROOF_ISOLATED_NAN,     // it is no finite number
} sinkproof_isolation;

// What is known of points that are outside, in one layer or in several alike.
typedef struct sinkproof_finding_of {
    sinkproof_trace_point point; // the first of them
    size_t layer;                // the first; of T0, F1 and F2 the number of layers
    unsigned points;             // bits
    bool layers[SINKPROOF_MAX_LAYERS + 1];
    // Everything that explains them: no element of these points, nor of those that the mistakes
    // reach too, is outside. None, and no limit: unknown; none, and a limit: undecided.
    size_t n_alike, more_alike; // told, and further ones
    sinkproof_rows rows; // tokens at which they act: at the others it is right. end 0: at all
    sinkproof_explanation alike[SINKPROOF_ALIKE];
    // The nearest of those that do not, and how far its farthest element is outside: in half-widths
    // of its set, each at least half a unit in the last place of the traced format. n 0: there is
    // none.
    sinkproof_explanation next;
    double next_bounds;
    // Of points that nothing explains: the suppositions that reach them, of these those that were
    // tried, and why not all.
    size_t suppositions, searched;
    sinkproof_limit limit;
    // Elements outside that have nothing in common, of so many, where no single mistake explains
    // the point (isolated.c): pairs are not tried. 0: there are more, or they have.
    size_t isolated, elements;
    sinkproof_isolation isolation;
    char pattern[SINKPROOF_PATTERN]; // of points that nothing explains, where they are; "" else
} sinkproof_finding_of;

typedef struct sinkproof_diagnosis {
    size_t n;
    sinkproof_finding_of *findings; // in the order of the forward pass
    size_t tried, budget;           // judgements of stretches
    size_t tokens;
} sinkproof_diagnosis;

typedef struct sinkproof_diagnose_options {
    double rate;   // of the judgement
    size_t places; // layers that are searched in full: others are held against what was found. 0: 3
    size_t pairs;  // tried at one point; 0: 400
    size_t patience; // points for which pairs are tried in vain before no more are; 0: 4
    size_t budget;   // judgements of a stretch, of whatever size; 0: 2000
    // Called with the share of the work that is done. May be NULL.
    void (*progress)(void *context, double share);
    void *context;
} sinkproof_diagnose_options;

// `judgement` is what sinkproof_judge said of the trace. Nothing outside: no findings.
bool sinkproof_diagnose(const sinkproof_model *model, const sinkproof_trace *trace,
                        const sinkproof_judgement *judgement,
                        const sinkproof_diagnose_options *options, sinkproof_diagnosis *diagnosis,
                        sinkproof_error *error);
void sinkproof_diagnosis_free(sinkproof_diagnosis *diagnosis);

// Whether there are findings, and each is of isolated elements: no arithmetic explains the trace.
bool sinkproof_diagnosis_isolates(const sinkproof_diagnosis *diagnosis);

// isolated.c: whether the marked elements are few and have nothing in common: no two of them have
// an index in common, nor lie on a diagonal of two dimensions.
bool sinkproof_marks_are_isolated(const sinkproof_point_report *report, const uint8_t *marks);

// pattern.c: where the marked elements of a point are, in words. False: no memory.
bool sinkproof_describe_pattern(const sinkproof_point_report *report, const uint8_t *marks,
                                char *text, size_t size);

#endif
