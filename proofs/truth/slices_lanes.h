// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The passes over a row of weights, each over sixteen numbers at a time. One body
// (slices_lanes.inc) is compiled for plain vectors, for AVX2 and for AVX-512; all give the same
// bits.
#ifndef SINKPROOF_TRUTH_SLICES_LANES_H
#define SINKPROOF_TRUTH_SLICES_LANES_H

#include "proofs/truth/slices.h"

enum {
    SLICE_LANES = 16,
    SLICE_PANEL_MOST = 24,     // of any table: columns of digits that lie beside each other,
    SLICE_PANEL_ROWS_MOST = 8, // and rows that are multiplied by them at once
};

typedef struct slice_lanes {
    double (*sum_of_sizes)(const double *w_c, size_t cols);
    slice_outcome (*take)(double *rest_c, double *sizes, size_t cols, int room, double *h_c,
                          int *exponent, slice_found *found);
    slice_outcome (*bound)(const double *w_c, double sizes, size_t cols, int room, double *up_c,
                           int *exponent, const slice_radii *radii);
    // The product of up to panel_rows rows of integers with the first columns of a panel
    // [cols][panel], to sum_rk[rows][panel]. NULL: the library's product is faster, as it is for
    // more than columns_most columns.
    void (*multiply)(const double *h_rc, size_t rows, size_t cols, const double *panel_ck,
                     size_t columns, double *sum_rk);
    size_t panel, panel_rows, columns_most;
} slice_lanes;

extern const slice_lanes slice_lanes_plain;
#if defined __x86_64__
extern const slice_lanes slice_lanes_avx2;
extern const slice_lanes slice_lanes_avx512;
#endif

// Those that this processor runs, the fastest last; returns how many. And the last.
enum { SLICE_LANES_MOST = 3 };
size_t slice_lanes_all(const slice_lanes **of);
const slice_lanes *slice_lanes_here(void);

#endif
