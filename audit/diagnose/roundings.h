// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes that are one override of the policy: a rounding that it does not state, or one that it
// states and the engine leaves out. Of every point of the forward pass three: rounded to bfloat16,
// to binary16, kept in float32; of an operand that meets a stored weight a fourth, rounded to
// blocks of int8.
#ifndef SINKPROOF_ROUNDINGS_H
#define SINKPROOF_ROUNDINGS_H

#include "audit/diagnose/mistakes.h"

// Where mistakes act first, as bits of sinkproof_trace_point.
#define AT(point)    (1u << SINKPROOF_TRACE_##point)
#define WEIGHTS      (AT(A9) | AT(A10) | AT(A11))
#define ROTATED      (AT(A4_Q) | AT(A4_K))
#define NORMS        (AT(A1) | AT(M1) | AT(F1))
#define PROJECTED    (AT(A2_Q) | AT(A2_K) | AT(A2_V))
#define PRODUCTS     (PROJECTED | AT(A12) | AT(M2) | AT(M5) | AT(M9) | AT(F2))
#define BIASED       (AT(M6) | AT(M10)) // apart from the product
#define EVERY_WEIGHT (AT(T0) | NORMS | PRODUCTS | BIASED | WEIGHTS)

// The policy with the mistake's override; false where it says that already.
sinkproof_suppose sinkproof_overrides;

size_t sinkproof_roundings(void);
const sinkproof_mistake *sinkproof_rounding_at(size_t i); // NULL: there are fewer

#endif
