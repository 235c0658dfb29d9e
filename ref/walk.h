// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The walk through a model by the table of points (points.h): every point in the order of the
// forward pass, with its operation, its inputs and its weights. It computes nothing. The truth and
// the judge compute along it, each with arithmetic of its own; forward.c has the same walk written
// out, and tests/ref/test_walk.c compares the two.
#ifndef SINKPROOF_WALK_H
#define SINKPROOF_WALK_H

#include "model/model.h"
#include "ref/points.h"

// A point, and what it is computed from.
typedef struct sinkproof_walk_step {
    sinkproof_trace_point point;
    size_t layer; // 0 for T0, F1 and F2
    point_operation operation;
    size_t n_inputs;
    sinkproof_input inputs[SINKPROOF_MAX_INPUTS];
    bool last[SINKPROOF_MAX_INPUTS];                 // no later point has this input
    sinkproof_matrix weights[SINKPROOF_MAX_WEIGHTS]; // count 0: the model has none
} sinkproof_walk_step;

sinkproof_walk_step sinkproof_walk_step_at(const sinkproof_model *model,
                                           sinkproof_trace_point point, size_t layer);

// Hands every point of the model to `work`, until that returns false; then it returns false too.
typedef bool sinkproof_walk_work(void *context, const sinkproof_walk_step *step);
bool sinkproof_walk(const sinkproof_model *model, sinkproof_walk_work *work, void *context);

#endif
