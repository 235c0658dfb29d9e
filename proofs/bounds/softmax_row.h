// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One row of the softmax as its bounds see it: what softmax_sink.c and unnormalised.c share.
#ifndef SINKPROOF_SOFTMAX_ROW_H
#define SINKPROOF_SOFTMAX_ROW_H

#include "proofs/bounds/bounds.h"

typedef struct numerator {
    double lo, hi, likely_lo, likely_hi, mid;
    double own; // how far a term of the denominator may be from its numerator, as a factor
} numerator;

// A row of n keys; the sink is term n. Sums are of the numerators.
typedef struct softmax_row {
    const sinkproof_setting *s;
    size_t n;
    bool base_2, running, lse_subtracted, lse_gated; // what an engine may do
    bool quotient;                                   // e_i over their sum: what all others do
    const sinkproof_honest *z_j;                     // logits, unshifted
    sinkproof_honest b, *t_j;                        // t_j [n + 1]: shifted, where A9.max rounds
    numerator *e_j;                                  // [n + 1]
    sinkproof_honest *kept_j;               // [n]: as they meet the values; NULL: as they are
    double m, m_lo, m_hi, keys_lo, keys_hi; // the shift; the maximum of the keys alone
    double top, keys_top;                   // the largest size of these maxima
    double lift;                            // what underflows beside m_hi, as large beside m
    double declared, growth, declared_log;  // growth: of exp's error, with its argument's size
    numerator keys, sink;                   // the sum of the keys' numerators, the sink's
    double log_sum, log_keys;               // the largest logs of the sums, each over its maximum
    double subtraction, gate;               // errors of an exponent: z - LSE, LSE - b
} softmax_row;

// The ends of one weight's set, worst case or likely. Factors: what is left beside the numerators.
typedef struct range {
    double lo, hi;
} range;

// ---- softmax_maximum.c: the row's maximum, subtracted first

// The set of the larger of two numbers, without its statistics.
sinkproof_honest sinkproof_larger_of(sinkproof_honest x, sinkproof_honest y);

// Whether the weights of n logits and a sink may be NaN.
bool sinkproof_may_be_nan(size_t n, const sinkproof_honest *z_j, sinkproof_honest b);

// Of n logits in place, the sink's among them; what is masked stays -infinity.
void sinkproof_subtract_maximum(const sinkproof_setting *s, size_t n, sinkproof_honest *z_j);

// ---- unnormalised.c: exponentials that are rounded before they meet the values
// (bound.unnormalised)

// May an engine round them? Not where the weights are no quotients.
bool sinkproof_rounds_exponentials(const softmax_row *row, sinkproof_point point);

// Key j's exponential as it meets its value, from the set of the exponential itself.
sinkproof_honest sinkproof_kept_exponential(const softmax_row *row, size_t j, double var);

// Its share of a sum that has the unrounded one in it.
range sinkproof_kept_share(range kept, range e, range others);

#endif
