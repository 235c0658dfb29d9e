// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What a choice of precision costs before anyone writes the kernel: the reference under a policy
// beside the same model over the reals (binary64, no rounding points). Every error is relative, in
// the 2-norm over a point's elements, and estimated: both runs are in binary64.
//
// Every rounding point of a policy is executed, and nothing else: the reference sums and evaluates
// functions in binary64, so what a narrower accumulator adds inside of an operation is not in these
// errors (it is in the honest set of the judge).
//
// The experts are those that the real model chooses, in both: a choice that flips is a jump, and
// no rounding error. How many would have flipped is counted beside it.
#ifndef SINKPROOF_PRECISION_H
#define SINKPROOF_PRECISION_H

#include "ref/forward.h"

// One point in one layer.
typedef struct sinkproof_precision_point {
    sinkproof_trace_point point;
    size_t layer;
    double truth, error; // squared 2-norms, of the real values and of the differences
    double largest;      // |value| of the real model, at most
} sinkproof_precision_point;

// The error over the truth, as norms: infinite where the policy overflows, NAN where that is 0.
double sinkproof_precision_error(const sinkproof_precision_point *point);
enum { SINKPROOF_PRECISION_NAME = 40 };
const char *sinkproof_precision_name(const sinkproof_precision_point *point,
                                     char name[SINKPROOF_PRECISION_NAME]); // "03.A13"

// One rounding alone, all else over the reals.
typedef struct sinkproof_precision_part {
    char name[48];    // "A13", or "weights" for what is no rounding point
    const char *what; // "residual after attention"
    double error;     // relative, at F1; infinite where it overflows
    double share; // its square, of the sum of the squares of those that do not; NAN where it does
} sinkproof_precision_part;

typedef struct sinkproof_precision {
    sinkproof_policy policy;
    sinkproof_precision_point *points; // as the reference shows them
    size_t n_points;
    size_t choices, flips; // of experts: a token in a layer; other sets than the real model's
    double final, logits;  // relative errors at F1 and F2; infinite where they overflow
    const sinkproof_precision_point *overflow; // the first in the forward pass; NULL: none
    double kib; // what the traced points of one token take as the policy stores them
    sinkproof_precision_part *parts; // largest first; empty when no budget was asked for
    size_t n_parts;
    // Of the parts that do not overflow.
    size_t n_finite;
    double quadrature;  // sqrt of the sum of their squares
    double linear;      // of the sum of their error vectors
    double correlation; // of that sum and the whole error, as vectors: a cosine
} sinkproof_precision;

// Of the real model alone.
typedef struct sinkproof_precision_row {
    size_t layer, token;
    double margin; // between the last chosen and the best rejected expert's logit
} sinkproof_precision_row;

enum { SINKPROOF_PRECISION_ROWS = 5 };

typedef struct sinkproof_precision_layer {
    double mass_least, mass_median; // 1 - alpha_s over heads and queries
    double growth; // of a random perturbation of the embedding, relative, up to the layer's end
} sinkproof_precision_layer;

typedef struct sinkproof_precision_study {
    const sinkproof_model *model;
    size_t n, n_layers;
    double perturbed; // relative size of the perturbation of T0
    sinkproof_precision_layer *layers;
    sinkproof_precision_row thinnest[SINKPROOF_PRECISION_ROWS]; // infinite where there are fewer
    sinkproof_precision *policies;
    size_t n_policies;
} sinkproof_precision_study;

typedef struct sinkproof_precision_options {
    bool budget; // each rounding point alone: as many runs as the policies have points
    void (*progress)(void *context, double share); // or NULL
    void *context;
} sinkproof_precision_options;

// Runs on all processors, with the same result for any number of them.
bool sinkproof_precision_run(const sinkproof_model *model, size_t n, const int32_t *tokens_n,
                             size_t n_policies, const sinkproof_policy *policies,
                             const sinkproof_precision_options *options,
                             sinkproof_precision_study *study, sinkproof_error *error);
void sinkproof_precision_free(sinkproof_precision_study *study);

// log2 of how far the largest value is from the largest finite number of what the policy stores
// there; infinite where nothing is stored.
double sinkproof_precision_headroom(const sinkproof_policy *policy,
                                    const sinkproof_precision_point *point);

#endif
