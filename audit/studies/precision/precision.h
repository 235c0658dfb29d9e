// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The cost of a choice of precision, before the kernel is written: the reference under a policy is
// compared with the same model over the reals (binary64, no rounding points). Every error is
// relative, in the 2-norm over a point's elements, and estimated: both runs are in binary64.
//
// A run executes every rounding point of the policy, and nothing else: the reference sums and
// evaluates functions in binary64, so these errors do not contain what a narrower accumulator adds
// inside an operation (the judge's honest set does).
//
// Both runs use the experts that the real model chooses, since a choice that flips is a jump and
// not a rounding error. The flips are counted separately.
#ifndef SINKPROOF_PRECISION_H
#define SINKPROOF_PRECISION_H

#include "ref/forward.h"

// One point in one layer.
typedef struct precision_point {
    sinkproof_trace_point point;
    size_t layer;
    double truth, error; // squared 2-norms of the real values and of the differences
    double largest;      // largest |value| of the real model
} precision_point;

// The error relative to the truth, in norms: infinite where the policy overflows, NAN where the
// truth is 0.
double precision_error(const precision_point *point);
enum { PRECISION_NAME = 40 };
const char *precision_name(const precision_point *point,
                           char name[PRECISION_NAME]); // "03.A13"

// One rounding alone; everything else is over the reals.
typedef struct precision_part {
    char name[48];    // "A13", or "weights" for what is not a rounding point
    const char *what; // "residual after attention"
    double error;     // relative, at F1; infinite where it overflows
    double share; // squared error over the sum of the squares of all finite parts; NAN if infinite
} precision_part;

typedef struct precision_audit {
    sinkproof_policy policy;
    precision_point *points; // in the order in which the reference shows them
    size_t n_points;
    // choices: pairs of a token and a layer; flips: those with other experts than the real model's
    size_t choices, flips;
    double final, logits;            // relative errors at F1 and F2; infinite where they overflow
    const precision_point *overflow; // the first point that overflows; NULL: none
    double kib;                      // size of one token's traced points as stored, in KiB
    precision_part *parts;           // largest first; empty without a budget
    size_t n_parts;
    // The parts that do not overflow.
    size_t n_finite;
    double quadrature;  // sqrt of the sum of their squares
    double linear;      // norm of the sum of their error vectors
    double correlation; // cosine between that sum and the whole error
} precision_audit;

// About the real model alone.
typedef struct precision_row {
    size_t layer, token;
    double margin; // between the logits of the last chosen and the best rejected expert
} precision_row;

enum { PRECISION_ROWS = 5 };

typedef struct precision_layer {
    double mass_least, mass_median; // 1 - alpha_s over heads and queries
    // growth of a random relative perturbation of the embedding, up to the end of the layer
    double growth;
} precision_layer;

typedef struct sinkproof_precision_study {
    const sinkproof_model *model;
    size_t n, n_layers;
    double perturbed; // relative size of the perturbation of T0
    precision_layer *layers;
    precision_row thinnest[PRECISION_ROWS]; // infinite if there are fewer
    precision_audit *policies;
    size_t n_policies;
} sinkproof_precision_study;

typedef struct sinkproof_precision_options {
    bool budget; // also run each rounding point alone: as many runs as the policies have points
    void (*progress)(void *context, double share); // or NULL
    void *context;
} sinkproof_precision_options;

// Runs on all processors; the result is the same for any number of threads.
bool sinkproof_precision_run(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                             size_t n_policies, const sinkproof_policy *policies,
                             const sinkproof_precision_options *options,
                             sinkproof_precision_study *study, sinkproof_error *error);
void sinkproof_precision_free(sinkproof_precision_study *study);

// log2 of the distance between the largest value and the largest finite number of the point's
// stored format; infinite where nothing is stored.
double precision_headroom(const sinkproof_policy *policy, const precision_point *point);

#endif
