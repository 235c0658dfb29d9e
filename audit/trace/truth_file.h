// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace of the truth, as `sinkproof truth --trace` writes it: each point's midpoints in F64, and
// NAME.radius, which bounds the distance of the truth to them. The metadata say what was certified.
#ifndef SINKPROOF_TRUTH_FILE_H
#define SINKPROOF_TRUTH_FILE_H

#include "audit/trace/trace.h"

typedef struct truth_file {
    sinkproof_trace *trace;             // the midpoints
    const sinkproof_tensor **radius_lp; // [n_layers, TRACE_POINTS]; NULL: not there, or experts
    size_t n_layers;
    size_t tokens, argmaxes; // of so many tokens the argmax is certified
    size_t choices, certain; // choices of experts, and those that are certified
    bool routed;             // with the experts that another trace chose
    char bits[24];           // working precision, as the file says it
} truth_file;

// Opens a file of MODEL's truth end to end and checks all that is in it. Errors name the file and
// the tensor: another model, no truth or one of single operations, a radius that is missing,
// negative or NaN.
bool sinkproof_truth_file_open(const char *path, const sinkproof_model *model, truth_file *file,
                               sinkproof_error *error);
void sinkproof_truth_file_close(truth_file *file);

// Whether every choice of experts is the model's own: then the balls contain the truth. Else they
// contain what the model computes with the choices that the file made.
bool sinkproof_truth_file_encloses(const truth_file *file);

// Whether it is the truth of a trace's tokens.
bool sinkproof_truth_file_fits(const truth_file *file, const sinkproof_trace *trace,
                               sinkproof_error *error);

// Midpoints and radii of a point; false: the file does not have it.
typedef struct truth_balls {
    const sinkproof_tensor *midpoint, *radius;
} truth_balls;
bool sinkproof_truth_file_find(const truth_file *file, sinkproof_trace_point point, size_t layer,
                               truth_balls *balls);

#endif
