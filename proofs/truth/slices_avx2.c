// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX2 and FMA. Of many columns the library's product is as fast.
#include "proofs/truth/slices_lanes.h"

enum { WIDTH = 4 };
#include "proofs/truth/slices_lanes.inc"
#include "proofs/truth/slices_multiply.inc"

const slice_lanes slice_lanes_avx2 = {.sum_of_sizes = sum_of_sizes,
                                      .take = take,
                                      .bound = bound,
                                      .multiply = multiply,
                                      .panel = PANEL,
                                      .panel_rows = PANEL_ROWS,
                                      .columns_most = 160};
