// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Two traces of the same tokens, point by point: where they first differ, by how much, and which of
// them is nearer the truth. Numbers are compared, whatever the formats they are stored in: 0 and -0
// are equal, and so are two NaN. No verdict: two honest engines differ, and two wrong ones may not.
#ifndef SINKPROOF_COMPARE_H
#define SINKPROOF_COMPARE_H

#include "audit/judge/judge.h"
#include "audit/trace/trace_model.h"

typedef struct sinkproof_difference {
    sinkproof_trace_point point;
    size_t layer;
    char name[40]; // "03.A4.q"
    size_t elements, differing;
    size_t left_out; // of tokens whose experts differ: other weights made them
    size_t rank, shape[SINKPROOF_MAX_RANK], first; // the first element that differs, flat
    double a, b;                                   // the two numbers there
    double largest, ulp; // |a - b|; in ulp of the coarser of the two formats, at a; of M3: NaN
    double relative; // |a - b| over |a|, 2-norms; of M3 the share that differs; infinite where one
                     // has a number and the other none
    double error_a, error_b; // of the whole point against the truth; NaN: not asked
} sinkproof_difference;

typedef struct sinkproof_comparison {
    sinkproof_difference *points; // those that both traces hold, in the order of the forward pass
    size_t n_points, only_a, only_b;
    sinkproof_note note; // that the metadata of the two name two models; "" otherwise
    size_t rerouted;     // tokens in a layer whose chosen experts differ, where both hold M3
} sinkproof_comparison;

// Fails when a file is no trace, or the traces are of other tokens or positions, or a point has
// another shape. The model need not be there: names and shapes are the traces' own.
bool sinkproof_compare_traces(const char *a, const char *b, sinkproof_comparison *comparison,
                              sinkproof_error *error);

// Fills in error_a and error_b: each trace against the real model with that trace's own experts,
// relative in the 2-norm, estimated in binary64.
bool sinkproof_compare_truth(const sinkproof_model *model, const sinkproof_trace *a,
                             const sinkproof_trace *b, sinkproof_comparison *comparison,
                             sinkproof_error *error);
void sinkproof_comparison_free(sinkproof_comparison *comparison);

#endif
