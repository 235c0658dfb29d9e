// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A weight as it is stored: a view into a mapped file, or rows made on the fly by the
// synthetic generator. Rows are outputs, columns are inputs: y_r = sum_c W_rc x_c.
// Reading a row decodes it exactly into binary64; rounded only where an engine keeps its weights in
// a narrower format than the container does.
#ifndef SINKPROOF_MATRIX_H
#define SINKPROOF_MATRIX_H

#include "ref/error.h"
#include "ref/round.h"

#include <stddef.h>
#include <stdint.h>

typedef enum sinkproof_dtype {
    SINKPROOF_DTYPE_BF16,
    SINKPROOF_DTYPE_F16,
    SINKPROOF_DTYPE_F32,
    SINKPROOF_DTYPE_F64,
    SINKPROOF_DTYPE_MXFP4, // blocks of 32 along the columns: 16 bytes of codes, one scale byte
    SINKPROOF_DTYPE_U8,
    SINKPROOF_DTYPE_I32,
    SINKPROOF_DTYPE_I64,
    SINKPROOF_DTYPES
} sinkproof_dtype;

const char *sinkproof_dtype_name(sinkproof_dtype dtype); // "BF16", ...
size_t sinkproof_dtype_size(sinkproof_dtype dtype);      // bytes per element; MXFP4: 0

struct sinkproof_synthetic; // ref/model/synthetic.h

typedef struct sinkproof_matrix {
    sinkproof_dtype dtype;
    size_t count;          // matrices in the stack (experts), 1 for a plain matrix
    size_t rows, cols;     // of each matrix; a vector is [1, cols]
    const uint8_t *data;   // element (0, 0); MXFP4: the codes. NULL when synthetic
    const uint8_t *scales; // MXFP4: [count, rows, cols / 32]
    size_t stack_stride, row_stride, col_stride; // in elements; MXFP4 needs col_stride 1
    const struct sinkproof_synthetic *synthetic; // makes the rows when data is NULL
    uint64_t stream;                             // which tensor of the generator
    const char *name;                            // as in the container, for error sentences
    sinkproof_format kept;                       // what an engine keeps it in; REAL (0): as it is
} sinkproof_matrix;

// The e-th matrix of a stack, as a plain matrix (count 1).
sinkproof_matrix sinkproof_matrix_at(const sinkproof_matrix *stack, size_t e);

// Decodes row r of a plain matrix into out_c[cols], rounded to what it is kept in.
void sinkproof_matrix_row(const sinkproof_matrix *matrix, size_t r, double *out_c);

// The largest number of significant bits of an element (bf16 8, f16 11, f32 24, MXFP4 2):
// products of short numbers are exact in binary32, and bounds use that.
int sinkproof_matrix_bits(const sinkproof_matrix *matrix);

// Whether it is stored, and kept, as whole numbers in blocks that share a scale.
bool sinkproof_matrix_is_whole(const sinkproof_matrix *matrix);

#endif
