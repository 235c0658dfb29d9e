// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numeric mode "amx" in scalar code: the order in which AMX tiles sum a linear layer whose
// operands are bf16 numbers. Everything else of the mode is the lane arithmetic
// (ref/lanes/lanes.h).
#ifndef SINKPROOF_LANES_AMX_H
#define SINKPROOF_LANES_AMX_H

#include <stdbool.h>
#include <stddef.h>

// sum_c w_c x_c as TDPBF16PS sums it, block by block of 32 columns. w_c and x_c hold bf16 numbers,
// scales included, 32 ceil(n / 32) of them, zeros beyond n. Only where sinkproof_amx_serves, so
// that nothing is subnormal and flushing to zero cannot show.
float sinkproof_amx_dot(size_t n, const float *w_c, const float *x_c);

// Whether tiles multiply a panel's weights and a token, given the smallest nonzero magnitude of
// each (infinity where all are zeros), as powers of two below or equal to it: both normal bf16
// numbers and their product at least 2^-111. An MXFP4 panel's is the least 2^(s - 128) of a block
// row that has a nonzero code; 0, so that the answer is no, where such an s is below 2 or above
// 252. Otherwise the lanes compute the panel's sixteen outputs of the token.
bool sinkproof_amx_serves(double least_w, double least_x);

#endif
