// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One table of kernels per instruction set. Each kernel is single-threaded work over a range;
// fast/engine/engine.c shares ranges among threads. All tables compute the lane arithmetic of
// fast/lanes/lanes.h with the same bits; only `amx` is a separate numeric mode
// (fast/kernels/linear_amx.c). A kernel's body is written once, over sixteen lanes
// (fast/kernels/NAME.inc), and compiled once per instruction set (fast/kernels/kernels_ISA.c) with
// that set's definition of a lane (fast/kernels/lanes.h).
#ifndef SINKPROOF_KERNELS_H
#define SINKPROOF_KERNELS_H

#include "fast/kernels/panels.h"
#include "model/architecture.h"

enum {
    SINKPROOF_SCRATCH =
        1152 << 10, // bytes of scratch that a thread passes to a kernel, 64-byte aligned
    SINKPROOF_WIDEST_HEAD = 1024, // largest head_dim, limited by attention's scratch
    SINKPROOF_SPAN_BLOCKS = 8,    // blocks of 32 positions in a span
};

// y_i = W x_i (+ b) for i < n. Rows are given by pointers, so that an expert's tokens are gathered
// without a copy.
typedef struct sinkproof_product {
    const sinkproof_panels *weight;
    const float *bias_r; // [16 panels], or NULL
    size_t n;
    const float *const *x_n; // x_n[i]: [32 blocks] floats, zeros beyond cols
    const uint16_t *const
        *x16_n;        // the same numbers as bf16, 32 blocks each; NULL: they are not bf16
    float *const *y_n; // y_n[i]: room for [16 panels] floats
} sinkproof_product;

// The sizes of the numbers in a BF16 block of the cache, as exponent fields (127 for 1), over the
// numbers written since the block was cleared: they tell where products of pairs and of tiles flush
// nothing.
typedef struct sinkproof_sizes {
    uint8_t least_k, least_v; // of the smallest nonzero key and value; 0: subnormal, 255: none
    uint8_t most_v;           // of the largest value
} sinkproof_sizes;

// Keys and values of one key/value head, in blocks of 32 positions: `format` F32 or BF16. Key block
// b (positions 32 b ..) is two panels (16 keys each) of ceil(head_dim / 32) blocks of columns,
// panel after panel; value block b is one block of columns (the 32 positions) of ceil(head_dim /
// 16) panels, panel after panel. In a ring, block b is at place b % ring. head_dim is at most
// SINKPROOF_WIDEST_HEAD. Eight places are a span: they are contiguous for each head if a layer
// keeps all positions, so that a span is one stream.
typedef struct sinkproof_cache_view {
    sinkproof_panel_format format;
    size_t head_dim;
    size_t ring;         // places
    size_t place_stride; // bytes from one place to the next, the same for keys and values
    size_t span_stride;  // bytes from one span's places to the next span's, the same for both
    const uint8_t *k, *v;
    const sinkproof_sizes *sizes; // [ring]; NULL: unknown, and neither pairs nor tiles are used
} sinkproof_cache_view;

// Bytes from k and from v to block b.
static inline size_t block_offset(const sinkproof_cache_view *cache, size_t b) {
    enum { BLOCKS = SINKPROOF_SPAN_BLOCKS };
    size_t place = b < cache->ring ? b : b % cache->ring;
    return place / BLOCKS * cache->span_stride + place % BLOCKS * cache->place_stride;
}

// The queries of one key/value head: query i has position first + i and `group` heads.
typedef struct sinkproof_attention {
    sinkproof_cache_view cache;
    size_t group, n, first;
    size_t window;       // keys that a query sees, itself included; 0: all up to itself
    float scale;         // 1 / sqrt(head_dim)
    const float *sink_h; // [group]; -inf: no sink
    const float *q;      // q + i q_stride + h head_dim: query head h of the group
    size_t q_stride;
    float *o; // the same for the output
    size_t o_stride;
    // The score (A6) of each visible key is written to score[(h score_head) + i score_row +
    // position], unless score is NULL.
    float *score;
    size_t score_head, score_row;
} sinkproof_attention;

// The result of one span for one query head: see lanes.h, attention.
typedef struct sinkproof_span_state {
    float max, sum; // m', l'; max = -inf if no key was visible
} sinkproof_span_state;

typedef struct sinkproof_kernels {
    const char *isa;  // "avx512"
    bool pairs;       // `linear` uses x16_n if it is given
    const char *mode; // "lanes", or "amx": tables of one mode give the same bits

    // Panels first .. last - 1 of the product.
    void (*linear)(const sinkproof_product *product, size_t first, size_t last, void *scratch);
    // One row; x and out have room for a multiple of 32, with zeros beyond cols.
    void (*rmsnorm)(size_t cols, const float *x_c, const float *scale_c, float eps, float *out_c);
    // One head, in place; cos_d, sin_d [head_dim / 2].
    void (*rope)(size_t head_dim, const float *cos_d, const float *sin_d, float *x_d);
    // All queries of `attention`, spans in ascending order, the sink first.
    void (*attend)(const sinkproof_attention *attention, void *scratch);
    // The spans first .. last - 1 (keys from 256 first on) of a single query (n = 1), each into its
    // own place: state_sh[(s - first) group + h], o_shd[((s - first) group + h) head_dim rounded up
    // to 16].
    void (*attend_spans)(const sinkproof_attention *attention, size_t first, size_t last,
                         sinkproof_span_state *state_sh, float *o_shd, void *scratch);
    // Merges the spans of one query head, in ascending order, into o_d[head_dim]: n_spans states,
    // `stride` states apart, and their outputs, `stride` rows apart.
    void (*merge_spans)(size_t head_dim, float sink, size_t n_spans, size_t stride,
                        const sinkproof_span_state *state_s, const float *o_sd, float *o_d);
    // act_f from gate and up interleaved, [2 inter]; act has room for a multiple of 32, zeros
    // beyond.
    void (*swiglu)(size_t inter, sinkproof_swiglu_numbers numbers, const float *gate_up_2f,
                   float *act_f);
    // out_c = sum_k w_k y_k,c from 0.
    void (*mixture)(size_t cols, size_t n_chosen, const float *weights_k, const float *const *y_k,
                    float *out_c);
    void (*add)(size_t cols, const float *t_c, float *x_c); // x += t
    // Rounds x in place to bf16, ties to even; also writes its bits if bits_c is not NULL.
    void (*round_bf16)(size_t cols, float *x_c, uint16_t *bits_c);
    void (*exp)(size_t n, const float *x_n, float *y_n); // for the tests and the bench
} sinkproof_kernels;

extern const sinkproof_kernels kernels_portable;
#if defined(__x86_64__)
extern const sinkproof_kernels kernels_avx2;
extern const sinkproof_kernels kernels_avx512;
extern const sinkproof_kernels kernels_avx512bf16;
extern const sinkproof_kernels kernels_amx;
#elif defined(__aarch64__)
extern const sinkproof_kernels kernels_neon;
#endif

#endif
