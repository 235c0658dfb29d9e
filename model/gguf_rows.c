// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows of weights as the bytes of a GGUF file, rounded to the requested type.
#include "model/gguf_rows.h"

#include "model/bf16.h"
#include "model/mxfp4.h"
#include "model/q8_0.h"

#include <math.h>
#include <string.h>

// Encodes one number in a plain float format, little-endian; false if it would become infinite or
// is NaN.
static bool encode_element(sinkproof_dtype dtype, double x, uint8_t *bytes) {
    float single = (float)x;
    uint32_t bits;
    if (dtype == SINKPROOF_DTYPE_F32)
        memcpy(&bits, &single, sizeof bits);
    else
        bits = dtype == SINKPROOF_DTYPE_BF16 ? sinkproof_bf16_bits(x) : f16_bits_rounded(x);
    for (size_t i = 0; i < sinkproof_dtype_size(dtype); i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    return !isfinite(x) || isfinite(element_decode(dtype, bytes));
}

static bool row_fails(const sinkproof_matrix *w, size_t r, sinkproof_dtype dtype,
                      sinkproof_error *error) {
    return sinkproof_fail(error, "tensor %s: row %zu: expected numbers that %s keeps finite",
                          w->name, r, sinkproof_dtype_name(dtype));
}

bool gguf_row_encode(const sinkproof_matrix *w, size_t r, sinkproof_dtype dtype, double *row_c,
                     uint8_t *bytes, sinkproof_error *error) {
    size_t blocks = w->cols / SINKPROOF_Q8_0_BLOCK, size = sinkproof_dtype_size(dtype);
    uint8_t *codes = (uint8_t *)row_c;
    if (dtype == SINKPROOF_DTYPE_MXFP4) {
        sinkproof_matrix_codes(w, r, codes, codes + w->cols / 2);
        mxfp4_to_ggml(codes, codes + w->cols / 2, blocks, bytes);
        return true;
    }
    const uint8_t *stored = w->dtype == dtype ? sinkproof_matrix_stored(w, r) : NULL;
    if (stored != NULL) {
        memcpy(bytes, stored, sinkproof_dtype_bytes_for(dtype, w->cols));
        return true;
    }
    sinkproof_matrix_row(w, r, row_c);
    if (dtype == SINKPROOF_DTYPE_Q8_0)
        return sinkproof_q8_0_encode(row_c, blocks, bytes) || row_fails(w, r, dtype, error);
    for (size_t c = 0; c < w->cols; c++)
        if (!encode_element(dtype, row_c[c], bytes + c * size))
            return row_fails(w, r, dtype, error);
    return true;
}

void gguf_keep_half(size_t n, size_t size, bool odd, uint8_t *bytes) {
    for (size_t i = 0; i < n / 2; i++)
        memmove(bytes + i * size, bytes + (2 * i + odd) * size, size);
}
