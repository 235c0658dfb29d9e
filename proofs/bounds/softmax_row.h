// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One row of the softmax in its bounds: shared by softmax_sink.c and unnormalised.c.
#ifndef SINKPROOF_SOFTMAX_ROW_H
#define SINKPROOF_SOFTMAX_ROW_H

#include "proofs/bounds/bounds.h"

typedef struct numerator {
    double lo, hi, likely_lo, likely_hi, mid;
    double own; // largest ratio of a term of the denominator to its numerator
} numerator;

// A row of n keys; term n is the sink. Sums are of the numerators.
typedef struct softmax_row {
    const sinkproof_setting *s;
    size_t n;
    bool base_2, running, lse_subtracted, lse_gated; // operations that an engine may use
    bool quotient;                                   // e_i divided by the sum: every other form
    const sinkproof_honest *z_j;                     // logits, unshifted
    sinkproof_honest b, *t_j;                        // t_j [n + 1]: shifted, if A9.max rounds
    numerator *e_j;                                  // [n + 1]
    sinkproof_honest *kept_j;               // [n]: as multiplied by the values; NULL: unchanged
    double m, m_lo, m_hi, keys_lo, keys_hi; // the shift; the maximum of the keys alone
    double top, keys_top;                   // the largest size of these maxima
    double one;  // the least that an engine's e^0 may be, the exponential of its own maximum
    double lift; // factor from the loss of an underflow under m_hi to that under m
    double declared, growth, declared_log; // growth: error of exp in proportion to its argument
    numerator keys, sink;                  // the sum of the keys' numerators, and the sink's
    double log_sum, log_keys; // the largest logarithms of the sums, each over its maximum
    double subtraction, gate; // errors of an exponent: of z - LSE, and of LSE - b
} softmax_row;

// The ends of one weight's set, worst case or likely; also a pair of factors for them.
typedef struct range {
    double lo, hi;
} range;

// What rescalings of a running maximum may add to a sum, relatively.
typedef struct rescaling {
    double worst, likely;
} rescaling;

// ---- softmax_sink.c and gated.c, for the log-sum-exp in lse.c

softmax_row softmax_row_begin(const sinkproof_setting *s, sinkproof_point point, size_t n,
                              const sinkproof_honest *z_j, sinkproof_honest b);
void shift_by_maximum(softmax_row *row, sinkproof_point point);
void fill_exponentials(softmax_row *row);
void add_numerator(numerator *sum, const numerator *e);
double lse_error(const softmax_row *row, double top, double log_sum);
rescaling row_rescaling(const softmax_row *row, double n);
// What was subtracted from all logits of the row before: its maximum, where that is rounded.
sinkproof_honest subtracted_before(const softmax_row *row);

// ---- softmax_maximum.c: the row's maximum, subtracted first

// The set of the maximum of two numbers, without its statistics.
sinkproof_honest set_larger(sinkproof_honest x, sinkproof_honest y);

// Whether the weights of n logits and a sink may be NaN.
bool weights_may_be_nan(size_t n, const sinkproof_honest *z_j, sinkproof_honest b);

// Whether a logit's set is so wide that nothing is known of its exponential.
bool scores_exceed_exp(size_t n, const sinkproof_honest *z_j, sinkproof_honest b);

// Subtracts the maximum from n logits in place, the sink's among them; masked ones stay -infinity.
void logits_subtract_maximum(const sinkproof_setting *s, size_t n, sinkproof_honest *z_j);

// ---- gated.c: the log-sum-exp of the keys, rounded before the sink's gate (bound.lse-rounded)

// Whether the sink's gate reads a rounded LSE.
bool lse_is_rounded(const sinkproof_setting *s, sinkproof_point point);

// Once the keys' numerators are added up: what that rounding does to the sink's numerator.
void gate_round_lse(softmax_row *row);

// ---- unnormalised.c: exponentials that are rounded before they meet the values
// (bound.unnormalised)

// Whether an engine may round the exponentials; not if the weights are no quotients.
bool rounds_exponentials(const softmax_row *row, sinkproof_point point);

// Key j's exponential as multiplied by its value, from the set of the exponential.
sinkproof_honest kept_exponential(const softmax_row *row, size_t j, double var);

// Its share of a sum that contains the unrounded exponential.
range kept_range_share(range kept, range e, range others);

// What that share is at most, however small the sum's lower end.
double most_of_kept_share(const softmax_row *row, size_t j);

#endif
