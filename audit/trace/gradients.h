// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The names of gradients in a trace: "03.dA11" is the gradient of the loss with respect to 03.A11,
// "03.dW.q" that with respect to the weight w_q of layer 3, "03.dsink" that of its sinks.
#ifndef SINKPROOF_TRACE_GRADIENTS_H
#define SINKPROOF_TRACE_GRADIENTS_H

#include "model/config.h"
#include "model/slots.h"
#include "ref/points.h"

typedef struct sinkproof_gradient {
    bool of_weight;
    sinkproof_trace_point point; // of a point
    sinkproof_slot slot;         // of a weight
    size_t layer;                // 0 outside the layers
} sinkproof_gradient;

// Returns false for any name that is no gradient's, and for the gradient of indices.
bool sinkproof_gradient_parse(const char *name, sinkproof_gradient *gradient);

// The shape in a trace of n tokens that sees `first` keys before them; returns its rank, 0 if the
// model has no such point or weight.
size_t sinkproof_gradient_shape_in(const sinkproof_config *config,
                                   const sinkproof_gradient *gradient, size_t first, size_t n,
                                   size_t *shape);

#endif
