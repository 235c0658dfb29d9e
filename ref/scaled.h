// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Numbers as a product reads them in eight bits or four (bound.scaled): x is divided by a scale,
// the quotient is rounded to a code, and the product reads the code times the scale. A group of
// numbers shares a scale:
//
//   stated   the policy's number
//   dynamic  the float32 number next to amax / L: amax the largest size of the group, L the largest
//            code: 448 (e4m3), 57344 (e5m2), 6 (e2m1), 127 (int8)
//   mxfp8    blocks of 32: 2^(floor(log2 amax) - 8); codes saturate [OCP 2023]
//   mxfp8-up the least power of two that keeps amax / scale within 448
//   nvfp4    blocks of 16: an e4m3 number, next to amax / (6 s), times s, which is stated, or that
//            of a group: amax / (6 448); 1 if nothing is said
//
// A call of an engine is a whole: a scale of all tokens is that of all tokens of the call.
#ifndef SINKPROOF_SCALED_H
#define SINKPROOF_SCALED_H

#include "ref/policy.h"

enum { SINKPROOF_MXFP8_BLOCK = 32, SINKPROOF_NVFP4_BLOCK = 16 };

// x[tokens, heads, dim] lies in `count` groups. Group g is `runs` runs of `run` numbers; they start
// at g step, `stride` apart. Each run is whole rows of dim numbers.
typedef struct scale_groups {
    size_t count, step, runs, run, stride;
} scale_groups;
scale_groups sinkproof_scale_groups(sinkproof_scale scale, size_t tokens, size_t heads, size_t dim);

// Whether numbers of the format share a scale: else each is rounded on its own.
bool sinkproof_is_scaled(sinkproof_rounding how);

// Whether the scale of a block is a power of two.
bool sinkproof_scaled_by_power(sinkproof_format format);
// The numbers of a block; a row of dim numbers has none: all of them.
size_t sinkproof_scaled_block(sinkproof_format format, size_t dim);

// The largest code of a scaled format.
double sinkproof_scaled_largest(sinkproof_format format);
// The code nearest to t; what is larger than the largest code becomes the largest.
double sinkproof_scaled_code(sinkproof_format format, double t);
// The power of two of a block of MXFP8 whose largest size is amax > 0.
double sinkproof_scaled_power(sinkproof_format format, double amax);

// The same rounding, but that a tensor's scale, found from x[tokens, heads, dim], is stated: 0 if
// all is 0.
sinkproof_rounding scaled_settled(sinkproof_rounding how, size_t tokens, size_t heads, size_t dim,
                                  const double *x);

// x[tokens, heads, dim] as read, in place.
void sinkproof_scaled_read(sinkproof_rounding how, size_t tokens, size_t heads, size_t dim,
                           double *x);

#endif
