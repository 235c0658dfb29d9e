// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Operands rounded when a matrix product reads them (bound.operands, bound.q8).
#include "ref/operands.h"

#include <math.h>

static sinkproof_format format_of_weight(const sinkproof_matrix *weight) {
    if (weight->kept != SINKPROOF_REAL) return weight->kept;
    if (sinkproof_matrix_is_whole(weight)) return SINKPROOF_Q8_0;
    if (weight->dtype == SINKPROOF_DTYPE_BF16) return SINKPROOF_BF16;
    if (weight->dtype == SINKPROOF_DTYPE_F16) return SINKPROOF_F16;
    return SINKPROOF_REAL; // float32 and wider: nothing is lost that engines keep
}

sinkproof_format sinkproof_operand_format(const sinkproof_policy *policy, sinkproof_point in,
                                          const sinkproof_matrix *weight) {
    sinkproof_format format = policy->at[in].format;
    return format == SINKPROOF_OF_WEIGHT ? format_of_weight(weight) : format;
}

// At most 32 numbers: d = max |x| / 127 in float32 and q = round(x / d), from -127 to 127, by the
// reciprocal of that d. The scale that is kept is d rounded once more, to float16.
static void quantize_block(size_t n, const double *x_c, double *out_c) {
    //> bound.q8
    float largest = 0;
    for (size_t c = 0; c < n; c++) largest = fmaxf(largest, fabsf((float)x_c[c]));
    float d = largest / 127, per_d = d > 0 ? 1 / d : 0;
    double kept = sinkproof_round(SINKPROOF_F16, (double)d);
    for (size_t c = 0; c < n; c++) out_c[c] = (double)roundf((float)x_c[c] * per_d) * kept;
    //< bound.q8
}

void sinkproof_operand_row(sinkproof_format format, size_t n, const double *x_c, double *out_c) {
    if (format != SINKPROOF_Q8_0) {
        for (size_t c = 0; c < n; c++) out_c[c] = sinkproof_round(format, x_c[c]);
        return;
    }
    for (size_t c = 0; c < n; c += SINKPROOF_OPERAND_BLOCK) {
        size_t left = n - c;
        quantize_block(left < SINKPROOF_OPERAND_BLOCK ? left : SINKPROOF_OPERAND_BLOCK, x_c + c,
                       out_c + c);
    }
}

size_t sinkproof_terms_together(const sinkproof_matrix *weight) {
    return sinkproof_matrix_is_whole(weight) ? SINKPROOF_OPERAND_BLOCK : weight->cols;
}

sinkproof_running sinkproof_running_at(const sinkproof_policy *policy, sinkproof_point term,
                                       sinkproof_point acc) {
    return (sinkproof_running){policy->at[term].format, policy->at[acc].format};
}
