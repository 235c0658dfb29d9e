// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What the product, its plan and its test share.
#ifndef SINKPROOF_TRUTH_SLICED_INTERNAL_H
#define SINKPROOF_TRUTH_SLICED_INTERNAL_H

#include "proofs/truth/sliced.h"
#include "proofs/truth/slices.h"
#include "proofs/truth/slices_lanes.h"
#include "proofs/truth/truth.h"

enum {
    SLICE_ROOM = 54, // |h| sums below 2^(54 - s), digits of s bits are at most 2^(s - 1)
    SPARSE_SHARE =
        40, // a slice with fewer than one nonzero integer in 40 is not multiplied densely
};

// The digits with which a product of so many tokens, with activations of `size` bits, costs least.
// It is asked on a few rows: another answer costs time, never exactness. plan: what was seen, or
// NULL.
int sliced_choose(const sinkproof_matrix *w_rc, slong size, size_t tokens, sliced_plan *plan);

// sinkproof_sliced_linear with the multiplications of these lanes: the same bits with all.
void sliced_linear_by(const slice_lanes *lanes, arb_ptr out_nr, arb_srcptr x_nc, size_t n,
                      const sinkproof_matrix *w_rc, const sinkproof_matrix *b_r, slong bits,
                      size_t threads, sliced_account *account);

#endif
