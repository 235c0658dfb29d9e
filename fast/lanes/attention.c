// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Attention in one pass, in lane arithmetic. Keys are processed in spans of 256 positions; a span
// computes its own softmax (largest score m', sum l', weighted values o', none of them divided
// yet), which is merged into the state that began as the sink, rescaled to the larger of the two
// maxima. The sink precedes the first key: its logit is in the maximum, 1 in the sum, and nothing
// in the values. Spans begin at multiples of 256 of the position, so that a query's numbers depend
// neither on the chunks of its prompt nor on the number of threads that shared the keys.
#include "fast/lanes/amx.h"
#include "fast/lanes/stages.h"

#include <math.h>
#include <string.h>

enum { BLOCK = LANES_BLOCK, SPAN = LANES_SPAN };

// A6 of one query and one key, summed in the order of lanes or of tiles.
static float query_key_score(size_t head_dim, const double *q_d, const double *k_d, bool tiles) {
    float total = 0, k_c[BLOCK], q_c[BLOCK];
    for (size_t b = 0; b * BLOCK < head_dim; b++) {
        lanes_gather_block(head_dim, b, k_d, 1, k_c);
        lanes_gather_block(head_dim, b, q_d, 1, q_c);
        total += tiles ? amx_block_sum(k_c, q_c) : lanes_block_sum(k_c, q_c);
    }
    return total * (float)(1 / sqrt((double)head_dim));
}

void lanes_scores(const sinkproof_policy *policy, const sinkproof_block *block, const double *q_id,
                  const double *k_jd, double *s_ij) {
    for (size_t i = 0; i < block->rows; i++)
        for (size_t j = 0; j < block->keys; j++) {
            float s = query_key_score(block->head_dim, q_id + i * block->q_stride,
                                      k_jd + j * block->kv_stride, false);
            s_ij[i * block->keys + j] = round_at(policy, AT_A6, s);
        }
}

// The visible part of one span: places first .. last - 1 of its 256.
typedef struct span {
    size_t start; // position of place 0
    size_t first, last;
    bool tiles;      // in the mode amx: tiles are used for the query here
    float p_j[SPAN]; // exp(s_j - max), 0 at hidden places
    float max, sum;  // m', l'
} span;

// The smallest nonzero and the largest magnitude of n numbers; and whether all are bf16 numbers.
typedef struct sizes {
    double least, most;
    bool bf16;
} sizes;

static bool is_bf16(double x) {
    float narrow = (float)x;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (double)narrow == x && (bits & 0xffff) == 0;
}

static void sizes_include(size_t n, const double *x, sizes *of) {
    for (size_t c = 0; c < n; c++) {
        double size = fabs(x[c]);
        if (size > 0 && size < of->least) of->least = size;
        if (size > of->most) of->most = size;
        of->bf16 = of->bf16 && is_bf16(x[c]);
    }
}

// The largest power of two that is at most the smallest magnitude.
static double sizes_floor_power(const sizes *of) {
    return isinf(of->least) ? of->least : ldexp(1, ilogb(of->least));
}

static bool tiles_can_attend(const sinkproof_block *block, const double *q_d, const double *k_jd,
                             const double *v_jd, const span *s) {
    sizes q = {INFINITY, 0, true}, k = q, v = q;
    sizes_include(block->head_dim, q_d, &q);
    for (size_t j = s->first; j < s->last; j++) {
        sizes_include(block->head_dim, k_jd + (s->start + j) * block->kv_stride, &k);
        sizes_include(block->head_dim, v_jd + (s->start + j) * block->kv_stride, &v);
    }
    return q.bf16 && k.bf16 && v.bf16 &&
           amx_can_attend(sizes_floor_power(&k), sizes_floor_power(&q), v.least, v.most);
}

//> lanes.attention
static void span_weights(const sinkproof_block *block, const double *q_d, const double *k_jd,
                         span *s) {
    for (size_t j = 0; j < SPAN; j++) s->p_j[j] = 0;
    for (size_t j = s->first; j < s->last; j++) {
        float s_j = query_key_score(block->head_dim, q_d, k_jd + (s->start + j) * block->kv_stride,
                                    s->tiles);
        if (j == s->first || s_j > s->max) s->max = s_j;
        s->p_j[j] = s_j;
    }
    for (size_t j = s->first; j < s->last; j++) s->p_j[j] = sinkproof_lanes_exp(s->p_j[j] - s->max);
    s->sum = lanes_sum16(SPAN, s->p_j);
}
//< lanes.attention

// o'_d: v_jd[j kv_stride] is coordinate d of the span's values. Blocks of 32 without a visible key
// would add zero and are skipped.
static float span_value(const sinkproof_block *block, const double *v_jd, const span *s) {
    float v_j[SPAN] = {0};
    for (size_t j = s->first; j < s->last; j++)
        v_j[j] = (float)v_jd[(s->start + j) * block->kv_stride];
    size_t from = s->first / BLOCK * BLOCK;
    return s->tiles ? amx_weighted_sum(s->last - from, v_j + from, s->p_j + from)
                    : lanes_dot(s->last - from, v_j + from, NULL, s->p_j + from);
}

//> lanes.attention
// Merges a span into the state m, l, o_d; o_d is kept in the output itself.
static void merge_span(const sinkproof_block *block, const double *v_jd, const span *s, float *m,
                       float *l, double *o_d) {
    bool larger = s->max > *m;
    float r = larger ? sinkproof_lanes_exp(*m - s->max) : sinkproof_lanes_exp(s->max - *m);
    for (size_t d = 0; d < block->head_dim; d++) {
        float o = (float)o_d[d], o_span = span_value(block, v_jd + d, s);
        o_d[d] = larger ? fmaf(o, r, o_span) : fmaf(o_span, r, o);
    }
    *l = larger ? fmaf(*l, r, s->sum) : fmaf(s->sum, r, *l);
    if (larger) *m = s->max;
}

// Attention of one query at `position`, which sees the keys from `first` on, in mode lanes or amx.
static void attend_query(const sinkproof_policy *policy, const sinkproof_block *block, bool amx,
                         float sink, size_t first, size_t position, const double *q_d,
                         const double *k_jd, const double *v_jd, double *o_d) {
    float m = sink, l = 1;
    for (size_t d = 0; d < block->head_dim; d++) o_d[d] = 0;
    for (size_t start = first / SPAN * SPAN; start <= position; start += SPAN) {
        span s = {.start = start};
        s.first = first > start ? first - start : 0;
        s.last = position - start < SPAN ? position - start + 1 : SPAN;
        s.tiles = amx && tiles_can_attend(block, q_d, k_jd, v_jd, &s);
        span_weights(block, q_d, k_jd, &s);
        merge_span(block, v_jd, &s, &m, &l, o_d);
    }
    for (size_t d = 0; d < block->head_dim; d++)
        o_d[d] = round_at(policy, AT_A11, (float)o_d[d] / l);
}
//< lanes.attention

static void attend_block(const sinkproof_policy *policy, const sinkproof_block *block, bool amx,
                         const double *b_i, const double *q_id, const double *k_jd,
                         const double *v_jd, double *o_id) {
    for (size_t i = 0; i < block->rows; i++) {
        float b = (float)round_at(policy, AT_A8, b_i[i]);
        size_t position = block->first + i;
        attend_query(policy, block, amx, b, sinkproof_mask_first(block->window, position), position,
                     q_id + i * block->q_stride, k_jd, v_jd, o_id + i * block->q_stride);
    }
}

void lanes_attention(const sinkproof_policy *policy, const sinkproof_block *block,
                     const double *b_i, const double *q_id, const double *k_jd, const double *v_jd,
                     double *o_id) {
    attend_block(policy, block, false, b_i, q_id, k_jd, v_jd, o_id);
}

void amx_attention(const sinkproof_policy *policy, const sinkproof_block *block, const double *b_i,
                   const double *q_id, const double *k_jd, const double *v_jd, double *o_id) {
    attend_block(policy, block, true, b_i, q_id, k_jd, v_jd, o_id);
}
