// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Checks results of linear stages with GMP integers: an element's ball must contain the product for
// every choice of reals inside the inputs' balls. It shares no code with the stages (sliced.h).
#ifndef SINKPROOF_TRUTH_CHECK_ROWS_H
#define SINKPROOF_TRUTH_CHECK_ROWS_H

#include "model/matrix.h"
#include "proofs/truth/flint.h"

typedef enum truth_row {
    TRUTH_ROW_HOLDS,
    TRUTH_ROW_BROKEN,
    TRUTH_ROW_UNCHECKED, // an input is not finite, or has an exponent beyond some 2^24
} truth_row;

// Whether y contains b_r + sum_c W_rc x_c for all x_c in their balls; b may be NULL or have count
// 0. The whole line contains everything, NaN nothing.
truth_row truth_check_row(const sinkproof_matrix *w_rc, const sinkproof_matrix *b_r, size_t r,
                          arb_srcptr x_c, const arb_t y);

#endif
