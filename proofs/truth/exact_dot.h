// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The exact rung of the ladder: dot products of stored numbers without any rounding.
// Binary64 where a certificate shows that nothing was rounded (bound.dot-exact), GMP
// integers where it does not.
#ifndef SINKPROOF_TRUTH_EXACT_DOT_H
#define SINKPROOF_TRUTH_EXACT_DOT_H

#include "proofs/truth/flint.h"

#include <stdbool.h>
#include <stddef.h>

// sum_k a_k b_k over n terms. Returns true when the sum in *value is exact: with L the smallest
// exponent of a product's last bit, sum_k |a_k b_k| < 2^(53+L), so that every partial sum in
// every order, with or without FMA, is a multiple of 2^L below 2^(53+L): a binary64 number
// (bound.dot-exact). Needs -1074 <= L <= 970; otherwise, and for infinities and NaN, false.
bool sinkproof_dot_certified(size_t n, const double *a_k, const double *b_k, double *value);

// The same sum for any finite a and b, exactly, whatever the spread of the exponents: up to
// some 4,400 bits. Infinities and NaN give NaN. Returns true when the certificate sufficed,
// false when GMP was needed.
bool sinkproof_exact_dot(arf_t out, size_t n, const double *a_k, const double *b_k);

// The GMP path alone (what exact_dot falls back on), for tests.
void sinkproof_exact_dot_gmp(arf_t out, size_t n, const double *a_k, const double *b_k);

#endif
