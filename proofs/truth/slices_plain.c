// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Vectors of two numbers, which every processor has.
#include "proofs/truth/slices_lanes.h"

enum { WIDTH = 2 };
#include "proofs/truth/slices_lanes.inc"

const slice_lanes slice_lanes_plain = {.sum_of_sizes = sum_of_sizes, .take = take, .bound = bound};
