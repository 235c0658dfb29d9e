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
// `roundings` roundings of unit u on the way of a term lead, in any order; terms are no more than
// that.
sinkproof_honest sinkproof_honest_gradient(double value, double size, double own, double roundings,
                                           double u);

// sum_k x_k y_k of numbers that are known as sets, x_k at x + k x_stride: the products and their
// sum in any order, by parts and atomics or not. <dO, O> and sum_j alpha_j dalpha_j (grad.delta),
// and what each stage adds up.
sinkproof_honest sinkproof_honest_gradient_sum(size_t n, const sinkproof_honest *x, size_t x_stride,
                                               const sinkproof_honest *y, size_t y_stride,
                                               double u);

// ds = alpha (dalpha - D) (grad.softmax).
sinkproof_honest honest_score_gradient(sinkproof_honest alpha, sinkproof_honest dalpha,
                                       sinkproof_honest delta, double u);

// dL/db_h = -sum_i alpha_s,i D_i (grad.sink) over n queries, in any order.
sinkproof_honest sinkproof_honest_sink_gradient(size_t n, const sinkproof_honest *alpha_s_i,
                                                const sinkproof_honest *delta_i, double u);

#endif
