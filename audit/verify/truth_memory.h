// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The memory of a run over the reals, before it: the balls that are held at once, the largest sum
// over the walk, and the work space of its products. A run takes less where balls are shorter than
// the precision. The model is not in it: its file is mapped, and its pages can be given back.
#ifndef SINKPROOF_TRUTH_MEMORY_H
#define SINKPROOF_TRUTH_MEMORY_H

#include "model/model.h"
#include "ref/points.h"

typedef struct truth_memory {
    double bytes;
    sinkproof_trace_point point; // at which so much is held
} truth_memory;

truth_memory sinkproof_truth_memory(const sinkproof_model *model, size_t n, long bits,
                                    size_t threads);

#endif
