// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A trace without its model: what the shapes of its tensors say of the model, which is all that a
// census of maps, states, keys and values needs.
#ifndef SINKPROOF_TRACE_SHAPES_H
#define SINKPROOF_TRACE_SHAPES_H

#include "base/error.h"
#include "model/config.h"

// A configuration that fits the trace: layers and heads as the points have them, without windows
// and without a sink, since shapes say nothing of either. What no point shows is 1.
bool sinkproof_trace_shapes(const char *path, sinkproof_config *config, sinkproof_error *error);

#endif
