// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Compares two traces of the same tokens, point by point: where they first differ, by how much, and
// which is nearer the truth. Numbers are compared whatever the formats in which they are stored: 0
// and -0 are equal, and so are two NaN. There is no verdict: two honest engines may differ, and two
// wrong ones may agree.
#ifndef SINKPROOF_COMPARE_H
#define SINKPROOF_COMPARE_H

#include "audit/judge/judge.h"
#include "audit/trace/trace_model.h"

typedef struct sinkproof_difference {
    sinkproof_trace_point point;
    size_t layer;
    char name[40]; // "03.A4.q"
    size_t elements, differing;
    size_t left_out; // rows of tokens whose experts differ: other weights made them
    // first: flat index of the first element that differs
    size_t rank, shape[SINKPROOF_MAX_RANK], first;
    double a, b;         // the two numbers at that element
    double largest, ulp; // |a - b|; and in ulp of the coarser format at a; M3: NaN
    // |a - b| over |a|, 2-norms; M3: the share of elements that differ; infinite where exactly one
    // is NaN or infinite
    double relative;
    double error_a, error_b; // of the whole point against the truth; NaN: not asked for
} sinkproof_difference;

typedef struct sinkproof_comparison {
    sinkproof_difference *points; // the points in both traces, in the order of the forward pass
    size_t n_points, only_a, only_b;
    sinkproof_note note; // says that the metadata name two models; else ""
    size_t rerouted;     // tokens, counted per layer, whose experts differ, if both traces have M3
} sinkproof_comparison;

// Returns false when a file is not a trace, the traces have other tokens or positions, or a point
// has different shapes. No model is needed: names and shapes come from the traces.
bool sinkproof_compare_traces(const char *a, const char *b, sinkproof_comparison *comparison,
                              sinkproof_error *error);

// The same of traces that are open.
bool sinkproof_compare_opened(const sinkproof_trace *a, const sinkproof_trace *b,
                              sinkproof_comparison *comparison, sinkproof_error *error);

// Fills error_a and error_b: each trace is compared with the real model that uses that trace's
// experts, relative in the 2-norm, estimated in binary64.
bool sinkproof_compare_truth(const sinkproof_model *model, const sinkproof_trace *a,
                             const sinkproof_trace *b, sinkproof_comparison *comparison,
                             sinkproof_error *error);
void sinkproof_comparison_free(sinkproof_comparison *comparison);

#endif
