// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One repeated token, enclosed (chapter 23). All content scores are equal. So the scores of a row
// of t keys depend on the distances alone, g(t - 1), ..., g(1), g(0), and one pass over the
// distances gives every row. Distances d count from 0, rows t from 1.
#ifndef SINKPROOF_TRUTH_REPEAT_H
#define SINKPROOF_TRUTH_REPEAT_H

#include "proofs/truth/flint.h"

#include <stddef.h>

// first_t[t - 1] = A_t1 = e^g(t-1) / sum_{d<t} e^g(d), t = 1 ... n.
void repeat_first(arb_ptr first_t, arb_srcptr g_d, size_t n, slong bits);
// alpha_1 as the metric defines it: the mean over n rows.
void repeat_mean(arb_t mean, arb_srcptr first_t, size_t n, slong bits);

// --- position terms of the scores --------------------------------------------------------

// g(d) = -d slope: ALiBi.
void repeat_alibi(arb_ptr g_d, size_t n, const arb_t slope, slong bits);
// T5's bucket of a distance in causal rows: exact below buckets / 2, then logarithmic up to the
// distance `far`, and buckets - 1 beyond. Computed in integers, without a rounded logarithm.
size_t repeat_t5_bucket(size_t distance, size_t buckets, size_t far);
// g(d) = the index of d's bucket: the relative positions of the lecture's published code.
void repeat_buckets(arb_ptr g_d, size_t n, size_t buckets, size_t far);
// g(d) = |q| |k| cos-sum / sqrt(2 half): for a query and a key of 2 half coordinates; a position
// turns pair p, the coordinates (p, p + half), by base^(-p / half).
void repeat_rotary(arb_ptr g_d, size_t n, size_t half, arb_srcptr q_c, arb_srcptr k_c, double base,
                   slong bits);

// --- the bound of rotary positions -------------------------------------------------------

// xi = |q| |k| / sqrt(c) of vectors of c coordinates.
void repeat_xi(arb_t xi, arb_srcptr q_c, arb_srcptr k_c, size_t c, slong bits);
// bound_t[t - 1] = e^(2 xi) / (e^(2 xi) + t - 1).
void repeat_bound(arb_ptr bound_t, size_t n, const arb_t xi, slong bits);

// --- closed forms ------------------------------------------------------------------------

// e^(-slope (t-1)) (1 - e^-slope) / (1 - e^(-slope t)).
void repeat_alibi_closed(arb_t a, size_t t, const arb_t slope, slong bits);
// H_n / n.
void repeat_even_mean(arb_t mean, size_t n, slong bits);

#endif
