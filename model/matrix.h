// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A weight as stored: a view into a mapped file, or rows generated on demand by the synthetic
// generator. Rows are outputs, columns are inputs: y_r = sum_c W_rc x_c. Reading a row decodes it
// exactly into binary64, and rounds it only if an engine stores its weights in a narrower format
// than the container.
#ifndef SINKPROOF_MATRIX_H
#define SINKPROOF_MATRIX_H

#include "base/error.h"
#include "model/round.h"

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
    SINKPROOF_DTYPE_Q8_0, // blocks of 32 along the columns: an f16 scale, 32 signed bytes
    // blocks of 32 or 256 along the columns (model/ggml_blocks.h)
    SINKPROOF_DTYPE_Q4_0,
    SINKPROOF_DTYPE_Q4_1,
    SINKPROOF_DTYPE_Q5_0,
    SINKPROOF_DTYPE_Q5_1,
    SINKPROOF_DTYPE_Q4_K,
    SINKPROOF_DTYPE_Q5_K,
    SINKPROOF_DTYPE_Q6_K,
    SINKPROOF_DTYPES
} sinkproof_dtype;

const char *sinkproof_dtype_name(sinkproof_dtype dtype); // "BF16", ...
size_t sinkproof_dtype_size(sinkproof_dtype dtype);      // bytes per element; 0 for block formats
// Elements of a block, 1 where there are none; bytes of n contiguous elements of any dtype, n a
// multiple of that: ggml's blocks include their scales.
size_t sinkproof_dtype_block(sinkproof_dtype dtype);
size_t sinkproof_dtype_bytes_for(sinkproof_dtype dtype, size_t n);

struct synthetic_model; // model/synthetic.h

// A weight that an engine reads differently than it is stored, as a diagnosis supposes. The value
// at row r and column c of matrix e of a stack is factor * stored + addend, with the stored value
// of (e + expert_by, row(r), column(c)). With a factor of 0 only the addend is left. That may be
// rounded, and then multiplied once more. In the columns marked in `gone_c` the value is 0, and
// some columns are multiplied by a number of their own.
typedef size_t sinkproof_read_from(size_t i, size_t count, size_t by);
typedef struct sinkproof_reading {
    size_t expert_by;                  // modulo the stack's count
    sinkproof_read_from *row, *column; // NULL: as stored; `column` is a permutation
    size_t row_by, column_by;          // their last argument
    double factor, addend;
    sinkproof_format product; // what factor and addend give is rounded to; REAL (0): nothing is
    double then;              // and what multiplies it after that, if it is rounded
    const bool *gone_c;       // [cols], or NULL
    size_t some_first, some_end,
        some_step; // columns first, first + step, ... below end; end 0: none
    double some_times;
    // NULL, or what then changes row r of matrix e
    void (*change)(const void *changing, size_t e, size_t r, size_t cols, double *row_c);
    const void *changing;
    const struct sinkproof_reading *below; // the reading of the stored value; or NULL
} sinkproof_reading;

typedef struct sinkproof_matrix {
    sinkproof_dtype dtype;
    size_t count;          // matrices in the stack (experts), 1 for a plain matrix
    size_t rows, cols;     // of each matrix; a vector is [1, cols]
    const uint8_t *data;   // element (0, 0); MXFP4: the codes. NULL if synthetic
    const uint8_t *scales; // MXFP4: [count, rows, cols / 32]; NULL: in ggml's blocks of 17 bytes
    // if gate and up are stored separately: the first of the odd rows, or of a vector's odd
    // elements; `data` holds the even ones. Else NULL
    const uint8_t *odd;
    size_t stack_stride, row_stride, col_stride; // in elements; blocks need col_stride 1
    const struct synthetic_model *synthetic;     // generates the rows if data is NULL
    uint64_t stream;                             // the generator's tensor
    const char *name;                            // as in the container, for errors
    sinkproof_format kept; // the format in which an engine stores it; REAL (0): unchanged
    const sinkproof_reading *reading; // how an engine reads it; NULL: unchanged
    size_t number;                    // of a plain matrix: its place in the stack
} sinkproof_matrix;

// The e-th matrix of a stack, as a plain matrix (count 1).
sinkproof_matrix sinkproof_matrix_at(const sinkproof_matrix *stack, size_t e);

// Decodes row r of a plain matrix into out_c[cols], rounded to the format in which the engine
// stores it.
void sinkproof_matrix_row(const sinkproof_matrix *matrix, size_t r, double *out_c);

// Row r of a plain MXFP4 matrix as bytes in the order of safetensors: codes [cols / 2] (NULL: only
// the scales), scales [cols / 32].
void sinkproof_matrix_codes(const sinkproof_matrix *matrix, size_t r, uint8_t *codes,
                            uint8_t *scales);
// The scales of row r's blocks as numbers, scale_b[cols / 32]; returns whether its format has any.
bool sinkproof_matrix_scales(const sinkproof_matrix *matrix, size_t r, float *scale_b);
// The address of row r of a plain matrix if it is stored as sinkproof_dtype_bytes_for contiguous
// bytes; else NULL (synthetic, transposed, codes and scales separate, gate and up of a vector
// separate).
const uint8_t *sinkproof_matrix_stored(const sinkproof_matrix *matrix, size_t r);

// The largest number of significant bits of an element (bf16 8, f16 11, f32 24, MXFP4 2, Q8_0 18):
// products of short numbers are exact in binary32, and bounds use that.
int sinkproof_matrix_bits(const sinkproof_matrix *matrix);

// Whether it is stored, and kept by the engine, as whole numbers in blocks with a common scale;
// and then how many minima a row has, one for 32 elements or none, which are added to these.
bool sinkproof_matrix_is_whole(const sinkproof_matrix *matrix);
size_t sinkproof_matrix_minima(const sinkproof_matrix *matrix);
// Row r without its minima, and the minima behind it: out_c[cols + minima], exactly. A reading that
// changes more than rows and a factor has no parts: its minima are 0.
void sinkproof_matrix_split_row(const sinkproof_matrix *matrix, size_t r, double *out_c);

#endif
