// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of gradients (grad.rounded). Worst case alone: a likely set is not derived here, and
// is the worst case.
#ifndef SINKPROOF_BOUNDS_GRADIENTS_H
#define SINKPROOF_BOUNDS_GRADIENTS_H

#include "proofs/bounds/honest.h"

// A sum of products: `value`, and `size`, the sum of the sizes of its terms, both computed in
// binary64 with at most `own` roundings on the way of a term. Every value to which at most
// `roundings` roundings of unit u on the way of a term lead, in any order.
sinkproof_honest sinkproof_honest_gradient(double value, double size, double own, double roundings,
                                           double u);

// <dO_i, O_i> = sum_d do_d o_d (grad.delta), in any order; what is known of O is a set.
sinkproof_honest sinkproof_honest_delta(size_t head_dim, const double *do_d,
                                        const sinkproof_honest *o_d, double u);

// dL/db_h = -sum_i alpha_s,i <dO_i, O_i> (grad.sink) over n queries: in any order, by blocks and
// atomics or not.
sinkproof_honest sinkproof_honest_sink_gradient(size_t n, const sinkproof_honest *alpha_s_i,
                                                const sinkproof_honest *delta_i, double u);

#endif
