// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Mistakes that are one override of the policy: a rounding that the policy does not state, or one
// that it states and the engine leaves out. There are three for every point of the forward pass:
// rounded to bfloat16, to binary16, or kept in float32; operands of a stored weight have a fourth,
// rounded to blocks of int8.
#ifndef SINKPROOF_ROUNDINGS_H
#define SINKPROOF_ROUNDINGS_H

#include "audit/diagnose/mistakes.h"

// Where mistakes act first, a bit for each sinkproof_trace_point.
#define AT(point)    (1u << TRACE_##point)
#define WEIGHTS      (AT(A9) | AT(A10) | AT(A11))
#define ROTATED      (AT(A4_Q) | AT(A4_K))
#define NORMS        (AT(A1) | AT(M1) | AT(F1))
#define PROJECTED    (AT(A2_Q) | AT(A2_K) | AT(A2_V))
#define PRODUCTS     (PROJECTED | AT(A12) | AT(M2) | AT(M5) | AT(M9) | AT(F2))
#define BIASED       (AT(M6) | AT(M10)) // the bias is a point after the product
#define EVERY_WEIGHT (AT(T0) | NORMS | PRODUCTS | BIASED | WEIGHTS)

// By how much the policy rounds there, relative to the number; 0: not at all.
double policy_roundoff(const sinkproof_policy *policy, sinkproof_point point);

#endif
