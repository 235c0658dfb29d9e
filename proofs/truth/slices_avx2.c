// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AVX2 and FMA. A few columns of digits are multiplied here: each weight is read once, and the
// library's product would first copy it. The compiler may fuse a product with a sum, because every
// sum of integers here is exact (bound.dot-exact), fused or not.
#include "proofs/truth/slices_lanes.h"

enum { WIDTH = 4 };
#include "proofs/truth/slices_lanes.inc"

// parts: vectors of columns.
static inline __attribute__((always_inline)) void
multiply_parts(const double *const *h_r, size_t cols, const double *panel_ck, const size_t parts,
               double *sum_rk) {
    part sum_rv[SLICE_PANEL_ROWS][SLICE_PANEL / WIDTH] = {{{0}}};
    for (size_t c = 0; c < cols; c++) {
        part y_v[SLICE_PANEL / WIDTH];
        for (size_t v = 0; v < parts; v++) y_v[v] = load(panel_ck + c * SLICE_PANEL + v * WIDTH);
        for (size_t r = 0; r < SLICE_PANEL_ROWS; r++)
            for (size_t v = 0; v < parts; v++) sum_rv[r][v] += h_r[r][c] * y_v[v];
    }
    for (size_t r = 0; r < SLICE_PANEL_ROWS; r++)
        for (size_t v = 0; v < parts; v++)
            store(sum_rk + r * SLICE_PANEL + v * WIDTH, sum_rv[r][v]);
}

// The rows that are missing are the first again.
static void multiply(const double *h_rc, size_t rows, size_t cols, const double *panel_ck,
                     size_t columns, double *sum_rk) {
    const double *h_r[SLICE_PANEL_ROWS];
    for (size_t r = 0; r < SLICE_PANEL_ROWS; r++) h_r[r] = h_rc + (r < rows ? r : 0) * cols;
    if (columns <= WIDTH)
        multiply_parts(h_r, cols, panel_ck, 1, sum_rk);
    else if (columns <= 2 * WIDTH)
        multiply_parts(h_r, cols, panel_ck, 2, sum_rk);
    else
        multiply_parts(h_r, cols, panel_ck, 3, sum_rk);
}

const slice_lanes slice_lanes_avx2 = {
    .sum_of_sizes = sum_of_sizes, .take = take, .bound = bound, .multiply = multiply};
