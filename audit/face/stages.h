// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Which points of a run a function of the caller's makes, from what, and what a trace must then
// leave out, so that it stays the trace of one engine.
#ifndef SINKPROOF_FACE_STAGES_H
#define SINKPROOF_FACE_STAGES_H

#include "audit/sinkproof.h"
#include "ref/policy.h"

// Sets of points as bits: 1 << point, and one more for the residual stream.
typedef uint32_t sinkproof_point_set;
enum { SINKPROOF_RESIDUAL = SINKPROOF_TRACE_POINTS, SINKPROOF_INPUTS };

typedef struct sinkproof_replaced {
    sinkproof_stage_function *stage; // NULL: the engine's own
    void *context;
    sinkproof_point_set from, left_out;
} sinkproof_replaced;

// "A4.q,RESIDUAL" as a set. NULL and "" are the empty one.
bool sinkproof_point_set_parse(const char *text, sinkproof_point_set *set, sinkproof_error *error);

// What lies between `from` and the point, and what repeats it: the points that a trace leaves out.
// An error when the point cannot be computed from these, or not all are needed.
bool sinkproof_left_out(const sinkproof_config *config, sinkproof_trace_point point, size_t layer,
                        sinkproof_point_set from, sinkproof_point_set *left_out,
                        sinkproof_error *error);

// The replaced points of a layer agree with what the engine has computed before it showed them.
bool sinkproof_replaced_agree(const sinkproof_replaced replaced_p[SINKPROOF_TRACE_POINTS],
                              size_t layer, sinkproof_error *error);

#endif
