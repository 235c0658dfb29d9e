// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Operands rounded when a matrix product reads them (bound.operands, bound.q8, bound.q8-minima).
#include "ref/operands.h"

#include "model/mxfp4.h"
#include "model/q8_0.h"

#include <math.h>
#include <string.h>

enum { K_BLOCK = 256 };

static sinkproof_format weight_format(const sinkproof_matrix *weight) {
    if (weight->kept != SINKPROOF_REAL) return weight->kept;
    if (sinkproof_matrix_is_whole(weight))
        return sinkproof_dtype_block(weight->dtype) > SINKPROOF_Q8_0_BLOCK ? SINKPROOF_Q8_K
               : sinkproof_matrix_minima(weight) > 0                       ? SINKPROOF_Q8_1
                                                                           : SINKPROOF_Q8_0;
    if (weight->dtype == SINKPROOF_DTYPE_BF16) return SINKPROOF_BF16;
    if (weight->dtype == SINKPROOF_DTYPE_F16) return SINKPROOF_F16;
    return SINKPROOF_REAL; // float32 and wider: engines lose nothing
}

sinkproof_format operand_format(const sinkproof_policy *policy, sinkproof_point in,
                                const sinkproof_matrix *weight) {
    sinkproof_format format = policy->at[in].format;
    return format == SINKPROOF_OF_WEIGHT ? weight_format(weight) : format;
}

sinkproof_rounding sinkproof_operand_rounding(const sinkproof_policy *policy, sinkproof_point in,
                                              const sinkproof_matrix *weight) {
    sinkproof_rounding rounding = policy->at[in];
    rounding.format = operand_format(policy, in, weight);
    return rounding;
}

size_t sinkproof_whole_block(sinkproof_format format) {
    if (format == SINKPROOF_Q8_K) return K_BLOCK;
    return format == SINKPROOF_Q8_0 || format == SINKPROOF_Q8_1 ? SINKPROOF_Q8_0_BLOCK : 0;
}

size_t sinkproof_operand_sums(sinkproof_format format, const sinkproof_matrix *weight) {
    bool summed = format == SINKPROOF_Q8_1 || format == SINKPROOF_Q8_K;
    return summed ? sinkproof_matrix_minima(weight) : 0;
}

//> bound.q8-minima
// At most 32 numbers in the manner of a weight in blocks. The sum is that of the whole numbers
// times the scale before it is rounded, and is rounded itself.
static void quantize_block(size_t n, const double *x_c, double *out_c, double *sum) {
    double block[SINKPROOF_Q8_0_BLOCK] = {0}, d;
    uint8_t bytes[SINKPROOF_Q8_0_BYTES];
    float largest = 0;
    int whole = 0;
    memcpy(block, x_c, n * sizeof *block);
    sinkproof_q8_0_encode(block, 1, bytes);
    for (size_t c = 0; c < n; c++) largest = fmaxf(largest, fabsf((float)x_c[c]));
    for (size_t c = 0; c < n; c++) whole += (int8_t)bytes[2 + c];
    d = (double)(largest / 127);
    *sum = sinkproof_round(SINKPROOF_F16, sinkproof_round(SINKPROOF_F32, d * whole));
    sinkproof_q8_0_decode(bytes, 1, block);
    memcpy(out_c, block, n * sizeof *block);
}

// At most 256 numbers: the one of the largest size becomes -127, ties go to the even number, and
// the scale stays in float32. A sum is exact.
static void quantize_k_block(size_t n, const double *x_c, double *out_c, double *sum_p) {
    double most = 0;
    for (size_t c = 0; c < n; c++)
        if (fabs(x_c[c]) > fabs(most)) most = x_c[c];
    float inverse = most != 0 ? -127 / (float)most : 0, d = most != 0 ? 1 / inverse : 0;
    for (size_t c = 0; c < n; c++) {
        double q = fmin(nearbyint((double)((float)x_c[c] * inverse)), 127);
        if (c % SINKPROOF_SUMMED == 0) sum_p[c / SINKPROOF_SUMMED] = 0;
        out_c[c] = (double)d * q, sum_p[c / SINKPROOF_SUMMED] += out_c[c];
    }
}
//< bound.q8-minima

void sinkproof_operand_row_and_sums(sinkproof_rounding how, size_t n, size_t sums,
                                    const double *x_c, double *out_c) {
    size_t block = sinkproof_whole_block(how.format);
    if (block == 0) {
        memcpy(out_c, x_c, n * sizeof *x_c);
        sinkproof_scaled_read(how, 1, 1, n, out_c);
    }
    for (size_t c = 0; block > 0 && c < n; c += block) {
        double sum_p[K_BLOCK / SINKPROOF_SUMMED];
        size_t length = n - c < block ? n - c : block, first = c / SINKPROOF_SUMMED;
        (block == K_BLOCK ? quantize_k_block : quantize_block)(length, x_c + c, out_c + c, sum_p);
        for (size_t p = 0; p < block / SINKPROOF_SUMMED && first + p < sums; p++)
            out_c[n + first + p] = sum_p[p];
    }
    for (size_t p = 0; block == 0 && p < sums; p++) out_c[n + p] = 0;
}

void sinkproof_operand_row(sinkproof_rounding how, size_t n, const double *x_c, double *out_c) {
    sinkproof_operand_row_and_sums(how, n, 0, x_c, out_c);
}

size_t sinkproof_terms_together(const sinkproof_matrix *weight) {
    bool scaled = weight->dtype == SINKPROOF_DTYPE_MXFP4 && weight->kept == SINKPROOF_REAL;
    return scaled ? SINKPROOF_MXFP4_BLOCK : weight->cols;
}

bool sinkproof_sum_is_in_parts(sinkproof_rounding acc) {
    return acc.format == SINKPROOF_RANKS || acc.format == SINKPROOF_BLOCKS;
}

size_t sinkproof_sum_part_products(sinkproof_rounding acc, size_t n) {
    size_t each = acc.format == SINKPROOF_RANKS ? (n + acc.parts - 1) / acc.parts : acc.block;
    return each > 0 ? each : 1;
}

running_points running_points_at(const sinkproof_policy *policy, sinkproof_point term,
                                 sinkproof_point acc) {
    sinkproof_rounding sum = policy->at[acc];
    bool blocks = sum.format == SINKPROOF_TENSOR_CORE;
    return (running_points){policy->at[term].format, sum, blocks ? sum.block : 1};
}
