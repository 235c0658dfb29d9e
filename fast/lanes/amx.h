// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numeric mode "amx" in scalar code: the order in which AMX tiles sum products of bf16 numbers,
// in a linear layer and in attention. Everything else in the mode is the lane arithmetic
// (fast/lanes/lanes.h).
//
//   linear      as in amx_dot, and at the end + b_r; if amx_can_multiply.
//   attention   that of the lanes, but in a span with amx_can_attend: s_j = linear(k_j, q)
//               times 1/sqrt(head_dim), and o'_d = amx_weighted_sum of the p_j and v_jd.
#ifndef SINKPROOF_LANES_AMX_H
#define SINKPROOF_LANES_AMX_H

#include "fast/lanes/stages.h"

// sum_c w_c x_c in the order of TDPBF16PS, block by block of 32 columns. w_c and x_c hold bf16
// numbers, scales included, 32 ceil(n / 32) of them, zeros beyond n. Valid only if
// amx_can_multiply, so that nothing is subnormal and flushing to zero has no effect.
float amx_dot(size_t n, const float *w_c, const float *x_c);

// One block of it: the sum over 32 columns.
float amx_block_sum(const float *w_c, const float *x_c);

// Whether tiles multiply a panel's weights by a token, given the smallest nonzero magnitude of each
// (infinity if all are zeros), as powers of two below or equal to it: both must be normal bf16
// numbers and their product at least 2^-111. For an MXFP4 panel it is the smallest 2^(s - 128) of a
// block row that has a nonzero code; 0, so that the answer is no, if such an s is below 2 or above
// 252. Otherwise the lanes compute the panel's sixteen outputs for the token.
bool amx_can_multiply(double least_w, double least_x);

// ---- attention ------------------------------------------------------------------------------

// Splits a weight p >= 0 into three bf16 numbers, p = part[0] + part[1] + part[2]: its upper eight
// bits, the next eight and the last eight. Exact for every p that is a multiple of 2^-133; no part
// is negative, so that the parts' products with a value have the value's sign.
void amx_split_weight(float p, float *part);

// sum_j p_j v_j of a span's weights in [0, 1] and values: for each block of 32 places in turn the
// three parts' sums are added, largest part first, with every p_j multiplied by 2^96, and the total
// is scaled back at the end. Arrays as in amx_dot.
float amx_weighted_sum(size_t n, const float *v_j, const float *p_j);

// Whether tiles are used for a query in a span, given its smallest nonzero magnitude and that of
// the keys that it sees there, as for amx_can_multiply, and the smallest nonzero and the
// largest magnitude of their values: from 2^-58 up to, but not including, 2^20. Then every product
// of a part of 2^96 p_j with a value is a multiple of 2^-118, and no sum of 256 overflows.
// Otherwise the lanes compute the span for this query.
bool amx_can_attend(double least_k, double least_q, double least_v, double most_v);

// lanes_attention in the mode amx. If a query, a key or a value that it sees is not a
// bf16 number, the lanes compute the span.
void amx_attention(const sinkproof_policy *policy, const sinkproof_block *block, const double *b_i,
                   const double *q_id, const double *k_jd, const double *v_jd, double *o_id);

#endif
