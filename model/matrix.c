// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Reads rows of a stored weight. A stack of experts is a matrix with count > 1; a transposed
// container (Hugging Face's dequantized experts) differs only in its strides.
#include "model/matrix.h"

#include "model/bf16.h"
#include "model/ggml_blocks.h"
#include "model/mxfp4.h"
#include "model/q8_0.h"
#include "model/synthetic.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 32 }; // elements of MXFP4 and of Q8_0 with a common scale

static const struct {
    const char *name;
    size_t size;
    int bits;
} dtypes[SINKPROOF_DTYPES] = {
    [SINKPROOF_DTYPE_BF16] = {"BF16", 2, 8},
    [SINKPROOF_DTYPE_F16] = {"F16", 2, 11},
    [SINKPROOF_DTYPE_F32] = {"F32", 4, 24},
    [SINKPROOF_DTYPE_F64] = {"F64", 8, 53},
    [SINKPROOF_DTYPE_MXFP4] = {"MXFP4", 0, 2}, // 1, 2, 3, 4, 6 and half of them
    [SINKPROOF_DTYPE_U8] = {"U8", 1, 8},
    [SINKPROOF_DTYPE_I32] = {"I32", 4, 31},
    [SINKPROOF_DTYPE_I64] = {"I64", 8, 63},
    [SINKPROOF_DTYPE_Q8_0] = {"Q8_0", 0, 18}, // 11 of the scale, 7 of the byte
    [SINKPROOF_DTYPE_Q4_0] = {"Q4_0", 0, 14},
    [SINKPROOF_DTYPE_Q4_1] = {"Q4_1", 0, 24}, // rounded to float32
    [SINKPROOF_DTYPE_Q5_0] = {"Q5_0", 0, 15},
    [SINKPROOF_DTYPE_Q5_1] = {"Q5_1", 0, 24},
    [SINKPROOF_DTYPE_Q4_K] = {"Q4_K", 0, 24},
    [SINKPROOF_DTYPE_Q5_K] = {"Q5_K", 0, 24},
    [SINKPROOF_DTYPE_Q6_K] = {"Q6_K", 0, 23}, // 11 of the scale, 7 of the part's, 5
};

const char *sinkproof_dtype_name(sinkproof_dtype dtype) {
    return (unsigned)dtype < SINKPROOF_DTYPES ? dtypes[dtype].name : "unknown";
}

size_t sinkproof_dtype_size(sinkproof_dtype dtype) {
    return dtypes[dtype].size;
}

size_t sinkproof_dtype_block(sinkproof_dtype dtype) {
    const ggml_blocks *blocks = sinkproof_ggml_blocks_of(dtype);
    return blocks != NULL ? blocks->elements : dtype == SINKPROOF_DTYPE_MXFP4 ? BLOCK : 1;
}

size_t sinkproof_dtype_bytes_for(sinkproof_dtype dtype, size_t n) {
    const ggml_blocks *blocks = sinkproof_ggml_blocks_of(dtype);
    if (blocks != NULL) return n / blocks->elements * blocks->bytes;
    if (dtype == SINKPROOF_DTYPE_MXFP4) return n / BLOCK * SINKPROOF_MXFP4_GGML_BYTES;
    return n * dtypes[dtype].size;
}

int sinkproof_matrix_bits(const sinkproof_matrix *matrix) {
    int bits = dtypes[matrix->dtype].bits;
    for (const sinkproof_reading *r = matrix->reading; r != NULL; r = r->below)
        if (frexp(r->factor, &(int){0}) != 0.5 || r->addend != 0 || r->some_end > 0 ||
            r->change != NULL)
            bits = 53;
    if (matrix->kept == SINKPROOF_REAL) return bits;
    int kept = round_bits(matrix->kept);
    return bits < kept ? bits : kept;
}

bool sinkproof_matrix_is_whole(const sinkproof_matrix *matrix) {
    bool blocks =
        matrix->dtype == SINKPROOF_DTYPE_MXFP4 || sinkproof_ggml_blocks_of(matrix->dtype) != NULL;
    return blocks && matrix->kept == SINKPROOF_REAL;
}

size_t sinkproof_matrix_minima(const sinkproof_matrix *matrix) {
    const ggml_blocks *blocks = sinkproof_ggml_blocks_of(matrix->dtype);
    bool any = blocks != NULL && blocks->split != NULL && sinkproof_matrix_is_whole(matrix);
    return any ? matrix->cols / GGML_PART : 0;
}

// Whether the codes of MXFP4 are stored separately from their scales.
static bool scales_are_separate(const sinkproof_matrix *matrix) {
    return matrix->dtype == SINKPROOF_DTYPE_MXFP4 && matrix->scales != NULL;
}

// Bytes from an element of a stored matrix to the n-th element after it.
static size_t element_distance(const sinkproof_matrix *matrix, size_t n) {
    return scales_are_separate(matrix) ? n / 2 : sinkproof_dtype_bytes_for(matrix->dtype, n);
}

sinkproof_matrix sinkproof_matrix_at(const sinkproof_matrix *stack, size_t e) {
    sinkproof_matrix matrix = *stack;
    if (stack->count == 0) return matrix; // none
    matrix.number = e;
    for (const sinkproof_reading *r = stack->reading; r != NULL; r = r->below)
        e = (e + r->expert_by) % stack->count;
    matrix.count = 1;
    if (stack->data == NULL) {
        matrix.stream = stack->stream + ((uint64_t)e << STREAM_EXPERT);
        return matrix;
    }
    size_t next = element_distance(stack, e * stack->stack_stride);
    matrix.data += next;
    if (stack->odd != NULL) matrix.odd += next;
    if (scales_are_separate(stack)) matrix.scales += e * stack->rows * (stack->cols / BLOCK);
    return matrix;
}

// The address of row r of a stored matrix.
static const uint8_t *row_address(const sinkproof_matrix *matrix, size_t r) {
    if (matrix->odd == NULL) return matrix->data + element_distance(matrix, r * matrix->row_stride);
    return (r % 2 == 0 ? matrix->data : matrix->odd) +
           element_distance(matrix, r / 2 * matrix->row_stride);
}

const uint8_t *sinkproof_matrix_stored(const sinkproof_matrix *matrix, size_t r) {
    bool halves = matrix->odd != NULL && matrix->rows == 1;
    if (matrix->reading != NULL || matrix->data == NULL || matrix->col_stride != 1 ||
        scales_are_separate(matrix) || halves)
        return NULL;
    return row_address(matrix, r);
}

void sinkproof_matrix_codes(const sinkproof_matrix *matrix, size_t r, uint8_t *codes,
                            uint8_t *scales) {
    size_t blocks = matrix->cols / BLOCK;
    if (matrix->data == NULL) {
        synthetic_codes(matrix, r, codes, scales);
    } else if (matrix->scales == NULL) {
        sinkproof_mxfp4_from_ggml(row_address(matrix, r), blocks, codes, scales);
    } else {
        if (codes != NULL) memcpy(codes, row_address(matrix, r), blocks * SINKPROOF_MXFP4_BYTES);
        memcpy(scales, matrix->scales + r * blocks, blocks);
    }
}

bool sinkproof_matrix_scales(const sinkproof_matrix *matrix, size_t r, float *scale_b) {
    size_t blocks = matrix->cols / BLOCK;
    if (matrix->reading != NULL) return false;
    if (matrix->dtype == SINKPROOF_DTYPE_Q8_0) {
        const uint8_t *at = row_address(matrix, r);
        for (size_t b = 0; b < blocks; b++)
            scale_b[b] = (float)q8_0_scale(at + b * SINKPROOF_Q8_0_BYTES);
        return true;
    }
    if (matrix->dtype != SINKPROOF_DTYPE_MXFP4) return false;
    uint8_t *byte_b = (uint8_t *)scale_b; // read from the last on, so that none is overwritten
    sinkproof_matrix_codes(matrix, r, NULL, byte_b);
    for (size_t b = blocks; b-- > 0;) scale_b[b] = (float)sinkproof_mxfp4_value(2, byte_b[b]);
    return true;
}

// Decodes blocks of MXFP4, whatever their storage.
static void mxfp4_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    const uint8_t *at = row_address(matrix, r);
    size_t blocks = matrix->cols / BLOCK;
    if (matrix->scales != NULL) {
        sinkproof_mxfp4_decode(at, matrix->scales + r * blocks, blocks, out_c);
        return;
    }
    for (size_t b = 0; b < blocks; b++) {
        uint8_t codes[SINKPROOF_MXFP4_BYTES], scale;
        sinkproof_mxfp4_from_ggml(at + b * SINKPROOF_MXFP4_GGML_BYTES, 1, codes, &scale);
        sinkproof_mxfp4_decode(codes, &scale, 1, out_c + b * BLOCK);
    }
}

// Decodes a vector whose even and odd elements are stored separately.
static void decode_interleaved_halves(const sinkproof_matrix *matrix, double *out_c) {
    size_t size = dtypes[matrix->dtype].size;
    for (size_t c = 0; c < matrix->cols; c++)
        out_c[c] = element_decode(matrix->dtype, (c % 2 == 0 ? matrix->data : matrix->odd) +
                                                     c / 2 * matrix->col_stride * size);
}

static void stored_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    const ggml_blocks *blocks = sinkproof_ggml_blocks_of(matrix->dtype);
    if (matrix->data == NULL)
        synthetic_row(matrix, r, out_c);
    else if (matrix->dtype == SINKPROOF_DTYPE_MXFP4)
        mxfp4_row(matrix, r, out_c);
    else if (blocks != NULL)
        ggml_blocks_decode(matrix->dtype, row_address(matrix, r), matrix->cols / blocks->elements,
                           out_c);
    else if (matrix->odd != NULL && matrix->rows == 1)
        decode_interleaved_halves(matrix, out_c);
    else
        sinkproof_decode_many(matrix->dtype, row_address(matrix, r), matrix->col_stride,
                              matrix->cols, out_c);
}

// x_i = x[from(i)]: each cycle of the permutation once, starting at its smallest index.
static void permute_in_place(const sinkproof_reading *reading, size_t count, double *x) {
    for (size_t first = 0; first < count; first++) {
        size_t at = reading->column(first, count, reading->column_by);
        while (at > first) at = reading->column(at, count, reading->column_by);
        if (at < first) continue;
        double kept = x[first];
        for (size_t next; (next = reading->column(at, count, reading->column_by)) != first;
             at = next)
            x[at] = x[next];
        x[at] = kept;
    }
}

static void read_row(const sinkproof_matrix *matrix, const sinkproof_reading *reading, size_t r,
                     double *out_c) {
    size_t asked = r;
    if (reading == NULL) {
        stored_row(matrix, r, out_c);
        return;
    }
    if (reading->row != NULL) r = reading->row(r, matrix->rows, reading->row_by);
    read_row(matrix, reading->below, r, out_c);
    if (reading->column != NULL) permute_in_place(reading, matrix->cols, out_c);
    for (size_t c = 0; c < matrix->cols; c++)
        out_c[c] = reading->factor == 0 ? 0 : reading->factor * out_c[c];
    for (size_t c = 0; reading->addend != 0 && c < matrix->cols; c++) // a zero keeps its sign
        out_c[c] += reading->addend;
    for (size_t c = 0; reading->product != SINKPROOF_REAL && c < matrix->cols; c++)
        out_c[c] = sinkproof_round(reading->product, out_c[c]) * reading->then;
    for (size_t c = 0; reading->gone_c != NULL && c < matrix->cols; c++)
        if (reading->gone_c[c]) out_c[c] = 0;
    for (size_t c = reading->some_first; c < reading->some_end && c < matrix->cols;
         c += reading->some_step)
        out_c[c] *= reading->some_times;
    if (reading->change != NULL)
        reading->change(reading->changing, matrix->number, asked, matrix->cols, out_c);
}

void sinkproof_matrix_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    read_row(matrix, matrix->reading, r, out_c);
    if (matrix->kept == SINKPROOF_REAL) return;
    for (size_t c = 0; c < matrix->cols; c++) out_c[c] = sinkproof_round(matrix->kept, out_c[c]);
}

// Whether a reading only takes other rows, or multiplies all by one number.
static bool keeps_parts(const sinkproof_reading *r) {
    return r->column == NULL && r->addend == 0 && r->product == SINKPROOF_REAL &&
           r->gone_c == NULL && r->some_end == 0 && r->change == NULL;
}

void sinkproof_matrix_split_row(const sinkproof_matrix *matrix, size_t r, double *out_c) {
    const ggml_blocks *blocks = sinkproof_ggml_blocks_of(matrix->dtype);
    size_t minima = sinkproof_matrix_minima(matrix), from = r;
    bool parts = minima > 0;
    double factor = 1;
    for (const sinkproof_reading *of = matrix->reading; of != NULL; of = of->below) {
        parts = parts && keeps_parts(of);
        if (of->row != NULL) from = of->row(from, matrix->rows, of->row_by);
        factor *= of->factor;
    }
    if (!parts) {
        sinkproof_matrix_row(matrix, r, out_c);
        for (size_t p = 0; p < minima; p++) out_c[matrix->cols + p] = 0;
        return;
    }
    const uint8_t *at = row_address(matrix, from);
    double *minimum_p = out_c + matrix->cols;
    for (size_t c = 0; c < matrix->cols; c += blocks->elements, at += blocks->bytes)
        blocks->split(at, out_c + c, minimum_p + c / GGML_PART);
    for (size_t c = 0; c < matrix->cols + minima; c++) out_c[c] *= factor;
}
