// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of weights as the bytes of a GGUF file. Private to model/.
#ifndef SINKPROOF_GGUF_ROWS_H
#define SINKPROOF_GGUF_ROWS_H

#include "model/matrix.h"

// Encodes row r of a plain matrix in `dtype` (MXFP4 only from an MXFP4 weight), as
// sinkproof_dtype_bytes_for bytes: unchanged if it is stored in that type, else rounded. Needs
// row_c [cols]. Returns false if a number would become infinite.
bool gguf_row_encode(const sinkproof_matrix *w, size_t r, sinkproof_dtype dtype, double *row_c,
                     uint8_t *bytes, sinkproof_error *error);

// Keeps the even or the odd ones of n elements of `size` bytes, contiguously.
void gguf_keep_half(size_t n, size_t size, bool odd, uint8_t *bytes);

#endif
