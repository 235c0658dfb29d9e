// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which points a caller's functions compute in a run and from which inputs, and which points a
// trace must then leave out so that it remains the trace of one engine.
#ifndef SINKPROOF_FACE_STAGES_H
#define SINKPROOF_FACE_STAGES_H

#include "audit/sinkproof.h"
#include "ref/policy.h"

// Sets of points as bits: 1 << point, and one bit more for the residual stream.
typedef uint32_t point_set;
enum { POINT_RESIDUAL = TRACE_POINTS, FACE_MOST_INPUTS };

typedef struct replaced_point {
    sinkproof_stage_function *stage; // NULL: the engine's own
    void *context;
    point_set from, left_out;
} replaced_point;

// Parses "A4.q,RESIDUAL" to a set. NULL and "" are the empty set.
bool point_set_parse(const char *text, point_set *set, sinkproof_error *error);

// The points that a trace leaves out: those between `from` and the point, and their repetitions. It
// is an error if the point cannot be computed from `from`, or if not all of `from` are needed.
bool points_left_out(const sinkproof_config *config, sinkproof_trace_point point, size_t layer,
                     point_set from, point_set *left_out, sinkproof_error *error);

// Whether the replaced points of a layer are consistent with points that the engine computes before
// it shows them.
bool replaced_points_agree(const replaced_point replaced_p[TRACE_POINTS], size_t layer,
                           sinkproof_error *error);

#endif
