// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// AMX: linear layers and attention on tiles (fast/kernels/linear_amx.c, attention_amx.c), a
// separate numeric mode. Everything else is the lane arithmetic of AVX512_BF16, which every
// processor with AMX_BF16 has.
#include "fast/kernels/attention_amx.h"
#include "fast/kernels/linear_amx.h"

// Members of another table are not constants in C: each is reached through a function.
#define LANES kernels_avx512bf16

static void rmsnorm(size_t cols, const float *x_c, const float *scale_c, float eps, float *out_c) {
    LANES.rmsnorm(cols, x_c, scale_c, eps, out_c);
}

static void rope(size_t head_dim, const float *cos_d, const float *sin_d, float *x_d) {
    LANES.rope(head_dim, cos_d, sin_d, x_d);
}

static void merge_spans(size_t head_dim, float sink, size_t n_spans, size_t stride,
                        const sinkproof_span_state *state_s, const float *o_sd, float *o_d) {
    LANES.merge_spans(head_dim, sink, n_spans, stride, state_s, o_sd, o_d);
}

static void swiglu(size_t inter, sinkproof_swiglu_numbers numbers, const float *gate_up_2f,
                   float *act_f) {
    LANES.swiglu(inter, numbers, gate_up_2f, act_f);
}

static void mixture(size_t cols, size_t n_chosen, const float *weights_k, const float *const *y_k,
                    float *out_c) {
    LANES.mixture(cols, n_chosen, weights_k, y_k, out_c);
}

static void add_row(size_t cols, const float *t_c, float *x_c) {
    LANES.add(cols, t_c, x_c);
}

static void round_bf16(size_t cols, float *x_c, uint16_t *bits_c) {
    LANES.round_bf16(cols, x_c, bits_c);
}

static void exponential(size_t n, const float *x_n, float *y_n) {
    LANES.exp(n, x_n, y_n);
}

const sinkproof_kernels kernels_amx = {
    .isa = "amx",
    .pairs = true,
    .mode = "amx",
    .linear = amx_linear,
    .rmsnorm = rmsnorm,
    .rope = rope,
    .attend = amx_attend,
    .attend_spans = amx_attend_spans,
    .merge_spans = merge_spans,
    .swiglu = swiglu,
    .mixture = mixture,
    .add = add_row,
    .round_bf16 = round_bf16,
    .exp = exponential,
};
