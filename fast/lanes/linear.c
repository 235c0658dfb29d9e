// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Linear layers in lane arithmetic: y_nr = sum_c W_rc x_nc + b_r in float32, in blocks of 32
// columns. In fast/ a lane is one output r; this is the computation of that lane. A block's scale
// (MXFP4, Q8_0) multiplies the block's sum once, when it is added to the total, so that inside a
// block the weights are the few small numbers of the code.
#include "fast/lanes/stages.h"

#include <math.h>

enum { BLOCK = LANES_BLOCK };

static size_t block_count(size_t n) {
    return (n + BLOCK - 1) / BLOCK;
}

//> lanes.linear
float lanes_block_sum(const float *w_c, const float *x_c) {
    float sum = 0;
    for (size_t c = 0; c < BLOCK; c += 2) {
        sum = fmaf(w_c[c + 1], x_c[c + 1], sum);
        sum = fmaf(w_c[c], x_c[c], sum);
    }
    return sum;
}

float lanes_dot(size_t n, const float *w_c, const float *scale_b, const float *x_c) {
    float total = 0;
    for (size_t b = 0; b < block_count(n); b++) {
        float scale = scale_b != NULL ? scale_b[b] : 1;
        total = fmaf(scale, lanes_block_sum(w_c + b * BLOCK, x_c + b * BLOCK), total);
    }
    return total;
}
//< lanes.linear

void lanes_gather_block(size_t n, size_t b, const double *from, size_t stride, float *to_c) {
    for (size_t c = 0; c < BLOCK; c++) {
        size_t column = b * BLOCK + c;
        to_c[c] = column < n ? (float)from[column * stride] : 0;
    }
}

// One row of a weight: its numbers, and the scales of its blocks (NULL: the format has none).
typedef struct weight_row {
    size_t cols;
    const double *w_c;
    const float *scale_b;
} weight_row;

// work: room for the row, followed by the scales.
static weight_row read_row(const sinkproof_matrix *weight_rc, size_t r, double *work) {
    size_t cols = weight_rc->cols;
    float *scale_b = (float *)(void *)(work + cols);
    sinkproof_matrix_row(weight_rc, r, work);
    bool scaled = sinkproof_matrix_scales(weight_rc, r, scale_b);
    return (weight_row){.cols = cols, .w_c = work, .scale_b = scaled ? scale_b : NULL};
}

// w_c[32]: block b of the row without its scale, zeros beyond the edge. Returns the scale, or 1.
// The quotient is the code's value or the byte, which is a number of binary64: the division is
// exact.
static float weight_block(const weight_row *row, size_t b, float *w_c) {
    float scale = row->scale_b != NULL ? row->scale_b[b] : 1;
    for (size_t c = 0; c < BLOCK; c++) {
        size_t column = b * BLOCK + c;
        bool there = column < row->cols && scale != 0; // a scale of 0 makes all zeros
        w_c[c] = there ? (float)(row->w_c[column] / scale) : 0;
    }
    return scale;
}

// The products of one row with every token: y_n[n stride]. A token's total is kept in y while the
// row's next block is read.
static void row_products(const weight_row *row, size_t n, const double *x_nc, size_t stride,
                         double *y_n) {
    float w_c[BLOCK], x_c[BLOCK];
    for (size_t t = 0; t < n; t++) y_n[t * stride] = 0;
    for (size_t b = 0; b < block_count(row->cols); b++) {
        float scale = weight_block(row, b, w_c);
        for (size_t t = 0; t < n; t++) {
            lanes_gather_block(row->cols, b, x_nc + t * row->cols, 1, x_c);
            float total = (float)y_n[t * stride];
            y_n[t * stride] = fmaf(scale, lanes_block_sum(w_c, x_c), total);
        }
    }
}

void lanes_linear(const sinkproof_policy *policy, sinkproof_point point, size_t n,
                  const sinkproof_matrix *weight_rc, const sinkproof_matrix *bias_r,
                  const double *x_nc, double *y_nr, double *work) {
    size_t rows = weight_rc->rows;
    for (size_t r = 0; r < rows; r++) {
        weight_row row = read_row(weight_rc, r, work);
        row_products(&row, n, x_nc, rows, y_nr + r);
    }
    bool biased = bias_r != NULL && bias_r->count > 0;
    double *b_r = work; // the row is done with
    if (biased) sinkproof_matrix_row(bias_r, 0, b_r);
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < rows; r++) {
            float y = (float)y_nr[t * rows + r];
            if (biased) y += (float)b_r[r];
            y_nr[t * rows + r] = round_at(policy, point, y);
        }
}

// ---- the stages that are linear layers --------------------------------------------------------

void lanes_qkv(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
               const double *t_nc, double *q_nhd, double *k_ngd, double *v_ngd, double *work) {
    const sinkproof_point at = AT_A2;
    lanes_linear(policy, at, n, &layer->w_q, &layer->b_q, t_nc, q_nhd, work);
    lanes_linear(policy, at, n, &layer->w_k, &layer->b_k, t_nc, k_ngd, work);
    lanes_linear(policy, at, n, &layer->w_v, &layer->b_v, t_nc, v_ngd, work);
}

void lanes_output(const sinkproof_policy *policy, const sinkproof_layer *layer, size_t n,
                  const double *o_nhd, double *out_nc, double *work) {
    lanes_linear(policy, AT_A12, n, &layer->w_o, &layer->b_o, o_nhd, out_nc, work);
}

void lanes_unembed(const sinkproof_policy *policy, const sinkproof_matrix *unembedding, size_t n,
                   const double *x_nc, double *logits_nv, double *work) {
    lanes_linear(policy, AT_F2, n, unembedding, NULL, x_nc, logits_nv, work);
}
