// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Operands rounded when a matrix product reads them (bound.operands, bound.q8).
#include "ref/operands.h"

#include "model/mxfp4.h"
#include "model/q8_0.h"

#include <string.h>

static sinkproof_format weight_format(const sinkproof_matrix *weight) {
    if (weight->kept != SINKPROOF_REAL) return weight->kept;
    if (sinkproof_matrix_is_whole(weight)) return SINKPROOF_Q8_0;
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

// Quantizes at most 32 numbers in the manner of a weight in blocks.
static void quantize_block(size_t n, const double *x_c, double *out_c) {
    double block[SINKPROOF_Q8_0_BLOCK] = {0};
    uint8_t bytes[SINKPROOF_Q8_0_BYTES];
    memcpy(block, x_c, n * sizeof *block);
    sinkproof_q8_0_encode(block, 1, bytes);
    sinkproof_q8_0_decode(bytes, 1, block);
    memcpy(out_c, block, n * sizeof *block);
}

void sinkproof_operand_row(sinkproof_rounding how, size_t n, const double *x_c, double *out_c) {
    if (how.format != SINKPROOF_Q8_0) {
        memcpy(out_c, x_c, n * sizeof *x_c);
        sinkproof_scaled_read(how, 1, 1, n, out_c);
        return;
    }
    for (size_t c = 0; c < n; c += SINKPROOF_Q8_0_BLOCK)
        quantize_block(n - c < SINKPROOF_Q8_0_BLOCK ? n - c : SINKPROOF_Q8_0_BLOCK, x_c + c,
                       out_c + c);
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
