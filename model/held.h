// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A model whose weights are the caller's arrays, without a file or generator: for questions about
// one operation with given numbers.
#ifndef SINKPROOF_HELD_H
#define SINKPROOF_HELD_H

#include "model/model.h"
#include "model/slots.h"

// The weight of a slot of layer l (0 outside the layers) as a plain float32 stack, row-major:
// [count, rows, cols] by sinkproof_slot_shape. NULL: zeros. The array must outlive the model.
typedef const float *weight_holder(void *context, size_t l, sinkproof_slot slot);

// `spec` names the model in errors. Returns false if the configuration is invalid or memory runs
// out.
bool sinkproof_model_held(const char *spec, const sinkproof_config *config, weight_holder *holder,
                          void *context, sinkproof_model **model, sinkproof_error *error);

#endif
