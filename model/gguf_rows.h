// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of weights as the bytes of a GGUF file. Private to model/.
#ifndef SINKPROOF_GGUF_ROWS_H
#define SINKPROOF_GGUF_ROWS_H

#include "model/matrix.h"

// Row r of a plain matrix in `dtype` (MXFP4 of an MXFP4 weight only), as sinkproof_dtype_bytes
// bytes: stored ones as they are, others rounded. Needs row_c [cols]. False: a number that becomes
// infinite.
bool sinkproof_gguf_row(const sinkproof_matrix *w, size_t r, sinkproof_dtype dtype, double *row_c,
                        uint8_t *bytes, sinkproof_error *error);

// Keeps the even or the odd ones of n elements of `size` bytes, side by side.
void sinkproof_gguf_half(size_t n, size_t size, bool odd, uint8_t *bytes);

#endif
