// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lane arithmetic: the exact order of every float32 operation of the optimized path, in scalar
// code, so that a test can check for equal bits. It fixes only what float32 arithmetic leaves open
// (order, FMA, the exp); it is an honest engine under the policy f32 and is judged as one. `fast/`
// computes these bits on every instruction set, for every number of threads, every chunking and
// every neighbour in a batch, because
//   - lanes are independent: one vector holds sixteen outputs, never parts of one sum, except for
//     the two sums named below, whose sixteen partial sums are part of this definition;
//   - every order depends only on absolute indices (a column, a key's position), never on a tile.
//
// Notation: fma(a, b, c) = a b + c rounded once to float32; every other operation is one IEEE
// float32 operation. Columns beyond a matrix's edge are zeros, up to a multiple of 32.
//
//   linear      y_r = total + b_r: over the blocks B of 32 columns, ascending, from total = 0,
//               total = fma(s_B, block_B, total). Within a block, from 0, the pairs of columns
//               ascend, and of each pair the odd column comes first: block = fma(w_1, x_1, block),
//               block = fma(w_0, x_0, block), fma(w_3, ..), fma(w_2, ..), ... s_B is the block's
//               scale and w the number without it (MXFP4: the code's value and 2^(s - 127); Q8_0:
//               the int8 and its scale; otherwise s_B = 1). Without a bias nothing is added. Odd
//               before even is the order of the instruction for pairs of bf16 numbers (vdpbf16ps),
//               so that it gives the same bits for bf16 operands: the product of two bf16 numbers
//               is exact. It reads subnormal operands as zeros and flushes subnormal sums, so it is
//               used only where no operand is subnormal and every nonzero |w x| >= 2^-111: then
//               every partial sum is a multiple of 2^-126.
//   sum16       a long sum of a row: lane l sums the terms l, l + 16, l + 32, ... from 0; then the
//               halves are added, lane l and lane l + 8, then + 4, + 2, + 1.
//   rmsnorm     lanes fma(x, x, lane) over sum16's order; r = 1 / sqrt(sum / cols + eps), cols and
//               eps as float32; out = (x r) scale.
//   rope        o_1 = fma(-x_2, sin, x_1 cos), o_2 = fma(x_1, sin, x_2 cos).
//   attention   s_j = linear(k_j, q) times 1/sqrt(head_dim) rounded to float32. Keys are processed
//               in spans of 256 positions that start at multiples of 256, ascending. In a span:
//               m' = the largest visible s_j, p_j = exp(s_j - m'), l' = sum16 of the p_j (term
//               j - span), o'_d = linear over the keys (blocks of 32 positions, weight v_jd, input
//               p_j). A key that the mask hides, or that does not exist yet, has p_j = v_jd = 0.
//               The state (m, l, o) starts as the sink, (b, 1, 0), which thus enters once. Then
//                 when m' > m: r = exp(m - m'), l = fma(l, r, l'), o = fma(o, r, o'), m = m';
//                 otherwise:   r = exp(m' - m), l = fma(l', r, l), o = fma(o', r, o).
//               A span without a visible key is skipped. At the end o_d / l.
//   swiglu      alpha and limit as float32; g = min(gate, limit), u = max(-limit, min(up, limit)),
//               t = alpha g, act = (g / (1 + exp(-t))) (u + 1): the division first.
//   router      linear; the chosen in descending order of logit, the lower index first in a tie;
//               e_k = exp(z_k - z_first), w_k = e_k / sum, the sum from 0, ascending in k.
//   mixture     out = fma(w_k, y_k, out) over the chosen in the router's order, from 0.
//   residual    x + t.
// The rotation's cosines and sines are the reference's own table (sinkproof_rope_table).
//
// Rounding points: the lane arithmetic supports the policies f32 and f32 with bf16 at
// A2 and A4 (queries, keys and values in bf16), or at A1, A2, A4, A11, M1, M8 and F1 (the known
// policy bf16-operands: every operand of a matrix product in bf16, except the attention's weights
// p_j); see sinkproof_lanes_serves. Everything else is float32. Attention reads the cache as it
// was rounded at A2 (values) and A4 (keys). Equal bits are promised for finite numbers.
#ifndef SINKPROOF_LANES_H
#define SINKPROOF_LANES_H

#include "ref/stages.h"

enum {
    LANES_WIDTH = 16, // outputs side by side, and partial sums of sum16
    LANES_BLOCK = 32, // columns of a block
    LANES_SPAN = 256, // keys of a span
};

// The stages in lane arithmetic, for sinkproof_session_with. `attention` computes A11 in one pass;
// an observer sees A6 from `scores`, the same numbers, hidden keys included, but neither A9 nor
// A10: normalised weights are never stored, and softmax_sink and values are NULL.
extern const sinkproof_stages sinkproof_lanes_stages;

// Whether the lane arithmetic can follow the policy; if not, the error says which policies it can
// follow.
bool sinkproof_lanes_serves(const sinkproof_policy *policy, sinkproof_error *error);

// exp(x) for any float32: 0 below the smallest subnormal's half, infinity on overflow, gradual
// underflow, NaN for NaN. Error: bound.exp. Constants: fast/lanes/exp.h.
float sinkproof_lanes_exp(float x);

// sum16 of n terms.
float lanes_sum16(size_t n, const float *term_n);

// sum_c w_c x_c in the order of `linear`, s_B[blocks] or NULL for ones. w_c and x_c have 32 ceil(n
// / 32) elements, zeros beyond n.
float lanes_dot(size_t n, const float *w_c, const float *scale_b, const float *x_c);

#endif
