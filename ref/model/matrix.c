// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reading rows of a stored weight. A stack of experts is a matrix with count > 1; a
// transposed container (Hugging Face's dequantized experts) is only a pair of strides.
#include "ref/model/matrix.h"

#include "ref/model/bf16.h"
#include "ref/model/mxfp4.h"
#include "ref/model/synthetic.h"

#include <math.h>
#include <stdint.h>

static const struct {
    const char *name;
    size_t size;
    int bits;
} dtypes[SINKPROOF_DTYPES] = {
    [SINKPROOF_DTYPE_BF16] = {"BF16", 2, 8},   [SINKPROOF_DTYPE_F16] = {"F16", 2, 11},
    [SINKPROOF_DTYPE_F32] = {"F32", 4, 24},    [SINKPROOF_DTYPE_F64] = {"F64", 8, 53},
    [SINKPROOF_DTYPE_MXFP4] = {"MXFP4", 0, 2}, // 1, 2, 3, 4, 6 and half of them
    [SINKPROOF_DTYPE_U8] = {"U8", 1, 8},       [SINKPROOF_DTYPE_I32] = {"I32", 4, 31},
    [SINKPROOF_DTYPE_I64] = {"I64", 8, 63},
};

const char *sinkproof_dtype_name(sinkproof_dtype dtype) {
    return (unsigned)dtype < SINKPROOF_DTYPES ? dtypes[dtype].name : "unknown";
}

size_t sinkproof_dtype_size(sinkproof_dtype dtype) {
    return dtypes[dtype].size;
}

int sinkproof_matrix_bits(const sinkproof_matrix *matrix) {
    int bits = dtypes[matrix->dtype].bits;
    if (matrix->kept == SINKPROOF_REAL) return bits;
    int kept = -ilogb(sinkproof_unit_roundoff(matrix->kept)); // u = 2^-bits
    return bits < kept ? bits : kept;
}

bool sinkproof_matrix_is_whole(const sinkproof_matrix *matrix) {
    return matrix->dtype == SINKPROOF_DTYPE_MXFP4 && matrix->kept == SINKPROOF_REAL;
}

sinkproof_matrix sinkproof_matrix_at(const sinkproof_matrix *stack, size_t e) {
    sinkproof_matrix matrix = *stack;
    matrix.count = 1;
    if (stack->data == NULL) {
        matrix.stream = stack->stream + ((uint64_t)e << SINKPROOF_STREAM_EXPERT);
    } else if (stack->dtype == SINKPROOF_DTYPE_MXFP4) {
        size_t blocks = stack->cols / SINKPROOF_MXFP4_BLOCK;
        matrix.data += e * stack->stack_stride / 2; // two codes in a byte
        matrix.scales += e * stack->rows * blocks;
    } else {
        matrix.data += e * stack->stack_stride * dtypes[stack->dtype].size;
    }
    return matrix;
}

static void stored_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    if (matrix->data == NULL) {
        sinkproof_synthetic_row(matrix, r, out_c);
    } else if (matrix->dtype == SINKPROOF_DTYPE_MXFP4) {
        size_t blocks = matrix->cols / SINKPROOF_MXFP4_BLOCK;
        sinkproof_mxfp4_decode(matrix->data + r * matrix->row_stride / 2,
                               matrix->scales + r * blocks, blocks, out_c);
    } else {
        size_t size = dtypes[matrix->dtype].size;
        sinkproof_decode_many(matrix->dtype, matrix->data + r * matrix->row_stride * size,
                              matrix->col_stride, matrix->cols, out_c);
    }
}

void sinkproof_matrix_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    stored_row(matrix, r, out_c);
    if (matrix->kept == SINKPROOF_REAL) return;
    for (size_t c = 0; c < matrix->cols; c++) out_c[c] = sinkproof_round(matrix->kept, out_c[c]);
}
