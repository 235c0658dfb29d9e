// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The exact rung of the truth ladder: dot products of stored numbers without any rounding. They are
// computed in binary64 where a certificate shows that nothing was rounded (bound.dot-exact), else
// in GMP integers.
#ifndef SINKPROOF_TRUTH_EXACT_DOT_H
#define SINKPROOF_TRUTH_EXACT_DOT_H

#include "proofs/truth/flint.h"

#include <stdbool.h>
#include <stddef.h>

// sum_k a_k b_k over n terms. Returns true if the sum in *value is certainly exact. Let L be the
// smallest exponent of a product's last bit. If sum_k |a_k b_k| < 2^(53+L), then every partial sum,
// in every order, with or without FMA, is a multiple of 2^L below 2^(53+L), which is a binary64
// number (bound.dot-exact). Returns false unless -1074 <= L <= 970, and for infinities and NaN.
bool sinkproof_dot_certified(size_t n, const double *a_k, const double *b_k, double *value);

// The same sum, exact for any finite a and b and any spread of their exponents (up to some 4,400
// bits). Infinities and NaN give NaN. Returns true if the certificate sufficed, false if GMP was
// needed.
bool sinkproof_exact_dot(arf_t out, size_t n, const double *a_k, const double *b_k);

// The GMP path alone (what exact_dot falls back on), for tests.
void sinkproof_exact_dot_gmp(arf_t out, size_t n, const double *a_k, const double *b_k);

#endif
