// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX-512, whose vectors a library that was not built for them leaves half empty.
#include "proofs/truth/slices_lanes.h"

enum { WIDTH = 8 };
#include "proofs/truth/slices_lanes.inc"
#include "proofs/truth/slices_multiply.inc"

const slice_lanes slice_lanes_avx512 = {.sum_of_sizes = sum_of_sizes,
                                        .take = take,
                                        .bound = bound,
                                        .multiply = multiply,
                                        .panel = PANEL,
                                        .panel_rows = PANEL_ROWS,
                                        .columns_most = SIZE_MAX};
