// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A model whose weights the caller holds: no file, no generator. For who wants to ask about one
// operation with numbers of his own.
#ifndef SINKPROOF_HELD_H
#define SINKPROOF_HELD_H

#include "model/model.h"
#include "model/slots.h"

// The weight of a slot of layer l (0 outside the layers) as a plain stack in float32, row-major:
// [count, rows, cols] as sinkproof_slot_shape says. NULL: zeros. It outlives the model.
typedef const float *sinkproof_weight_holder(void *context, size_t l, sinkproof_slot slot);

// `spec` names it in sentences. False: the configuration cannot be, or no memory.
bool sinkproof_model_held(const char *spec, const sinkproof_config *config,
                          sinkproof_weight_holder *holder, void *context, sinkproof_model **model,
                          sinkproof_error *error);

#endif
