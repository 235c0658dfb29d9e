// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Packs weights into panels, and reads a row back. The code is independent of any instruction set:
// each number is moved once, from a stored row to its lane, as a dword where the format allows.
//
// The dword of row r in a block has the same place for bf16 and MXFP4: two columns or eight. A
// block of a panel is written completely from sixteen rows that are read in parallel: it stays in
// the first-level cache while the rows are read.
#include "fast/kernels/panels.h"

#include "model/bf16.h"
#include "model/mxfp4.h"
#include "model/q8_0.h"

#include <string.h>

enum { ROWS = SINKPROOF_PANEL_ROWS, COLS = SINKPROOF_PANEL_COLS };

sinkproof_panel_format sinkproof_panels_format(const sinkproof_matrix *matrix) {
    if (matrix->reading != NULL) return SINKPROOF_PANEL_F32; // its numbers are not stored
    if (matrix->dtype == SINKPROOF_DTYPE_MXFP4) return SINKPROOF_PANEL_MXFP4;
    if (matrix->dtype == SINKPROOF_DTYPE_Q8_0) return SINKPROOF_PANEL_Q8_0;
    return matrix->dtype == SINKPROOF_DTYPE_BF16 ? SINKPROOF_PANEL_BF16 : SINKPROOF_PANEL_F32;
}

static size_t count_units(size_t n, size_t unit) {
    return (n + unit - 1) / unit;
}

size_t sinkproof_panels_bytes(sinkproof_panel_format format, size_t rows, size_t cols) {
    size_t blocks = count_units(rows, ROWS) * count_units(cols, COLS);
    size_t least = format == SINKPROOF_PANEL_BF16 ? count_units(rows, ROWS) : 0;
    return count_units(blocks * (sinkproof_panel_block_bytes(format) +
                                 sinkproof_panel_scale_bytes(format)) +
                           least,
                       64) *
           64;
}

sinkproof_panels sinkproof_panels_at(sinkproof_panel_format format, size_t rows, size_t cols,
                                     const void *memory) {
    sinkproof_panels p = {
        .format = format,
        .rows = rows,
        .cols = cols,
        .panels = count_units(rows, ROWS),
        .blocks = count_units(cols, COLS),
        .block_stride = sinkproof_panel_block_bytes(format),
        .data = memory,
    };
    p.panel_stride = p.blocks * p.block_stride;
    const uint8_t *end = p.data + p.panels * p.panel_stride;
    if (sinkproof_panel_scale_bytes(format) > 0) p.scales = end;
    if (format == SINKPROOF_PANEL_BF16) p.least_p = end;
    return p;
}

// The panel being filled: `rows` of its sixteen rows are inside the matrix.
typedef struct panel {
    uint8_t *data, *scales;
    size_t first, rows; // its first row
    size_t blocks;
} panel;

static panel locate_panel(const sinkproof_panels *to, size_t p, void *memory) {
    size_t first = p * ROWS, left = to->rows - first;
    panel at = {.first = first, .rows = left < ROWS ? left : ROWS, .blocks = to->blocks};
    at.data = (uint8_t *)memory + p * to->panel_stride;
    at.scales = (uint8_t *)memory + to->panels * to->panel_stride +
                p * to->blocks * sinkproof_panel_scale_bytes(to->format);
    return at;
}

static void clear_panel(const panel *to, sinkproof_panel_format format) {
    memset(to->data, 0, to->blocks * sinkproof_panel_block_bytes(format));
    memset(to->scales, 0, to->blocks * sinkproof_panel_scale_bytes(format));
}

// ---- bf16 from bytes ------------------------------------------------------------------------

// The first `cols` columns of block b, from element (first row, 0) at `from`; strides in elements.
static inline void pack_bf16_block(const panel *to, size_t b, size_t cols, const uint8_t *from,
                                   size_t row_stride, size_t col_stride) {
    uint16_t *block =
        (uint16_t *)(void *)(to->data + b * sinkproof_panel_block_bytes(SINKPROOF_PANEL_BF16));
    for (size_t c = 0; c < cols; c++)
        for (size_t r = 0; r < to->rows; r++)
            memcpy(block + (c / 2 * ROWS + r) * 2 + c % 2,
                   from + 2 * (r * row_stride + (b * COLS + c) * col_stride), 2);
}

// A whole block of rows that are stored column after column: a pair of columns is one dword.
static inline void pack_bf16_block_pairs(const panel *to, size_t b, const uint8_t *from,
                                         size_t row_stride) {
    uint32_t *block =
        (uint32_t *)(void *)(to->data + b * sinkproof_panel_block_bytes(SINKPROOF_PANEL_BF16));
    for (size_t r = 0; r < to->rows; r++)
        for (size_t i = 0; i < COLS / 2; i++)
            memcpy(block + i * ROWS + r, from + 2 * (r * row_stride + b * COLS) + 4 * i, 4);
}

static void pack_bf16(const sinkproof_matrix *matrix, const panel *to) {
    const uint8_t *from = matrix->data + 2 * to->first * matrix->row_stride;
    size_t whole = matrix->cols / COLS;
    if (to->rows < ROWS) clear_panel(to, SINKPROOF_PANEL_BF16);
    for (size_t b = 0; b < whole; b++)
        if (matrix->col_stride == 1)
            pack_bf16_block_pairs(to, b, from, matrix->row_stride);
        else
            pack_bf16_block(to, b, COLS, from, matrix->row_stride, matrix->col_stride);
    if (whole == to->blocks) return;
    memset(to->data + whole * sinkproof_panel_block_bytes(SINKPROOF_PANEL_BF16), 0,
           sinkproof_panel_block_bytes(SINKPROOF_PANEL_BF16));
    pack_bf16_block(to, whole, matrix->cols - whole * COLS, from, matrix->row_stride,
                    matrix->col_stride);
}

// The exponent field of a panel's smallest nonzero number.
static uint8_t least_bf16_exponent(const panel *of) {
    const uint16_t *number = (const uint16_t *)(const void *)of->data;
    uint16_t least = 0x7fff; // of the numbers minus one place, so that zeros are last
    for (size_t i = 0; i < of->blocks * ROWS * COLS; i++) {
        uint16_t before = (uint16_t)((number[i] & 0x7fff) - 1);
        least = before < least ? before : least;
    }
    return (uint8_t)(least == 0x7fff ? 255 : (least + 1) >> 7);
}

// ---- MXFP4 from codes -----------------------------------------------------------------------

// The even nibbles of four bytes in the low half, the odd ones in the high half.
static inline uint32_t separate_nibbles(uint32_t codes) {
    uint32_t even = codes & 0x0f0f0f0f, odd = codes >> 4 & 0x0f0f0f0f;
    even = (even | even >> 4) & 0x00ff00ff;
    odd = (odd | odd >> 4) & 0x00ff00ff;
    even = (even | even >> 8) & 0xffff;
    odd = odd | odd >> 8;
    return even | odd << 16;
}

// Row r of the panel from its 16 bytes of codes and one scale byte per block.
static void pack_mxfp4_row(const panel *to, size_t r, const uint8_t *codes, const uint8_t *scales) {
    uint32_t *lane = (uint32_t *)(void *)to->data + r;
    for (size_t b = 0; b < to->blocks; b++) {
        uint32_t four[4];
        memcpy(four, codes + b * SINKPROOF_MXFP4_BYTES, sizeof four);
        for (size_t q = 0; q < 4; q++) lane[(4 * b + q) * ROWS] = separate_nibbles(four[q]);
        to->scales[b * ROWS + r] = scales[b];
    }
}

static void pack_mxfp4(const sinkproof_matrix *matrix, const panel *to, double *work) {
    uint8_t *codes = (uint8_t *)work, *scales = codes + matrix->cols / 2;
    if (to->rows < ROWS) clear_panel(to, SINKPROOF_PANEL_MXFP4);
    for (size_t r = 0; r < to->rows; r++) {
        sinkproof_matrix_codes(matrix, to->first + r, codes, scales);
        pack_mxfp4_row(to, r, codes, scales);
    }
}

// ---- Q8_0 from blocks -----------------------------------------------------------------------

static void pack_q8_0(const sinkproof_matrix *matrix, const panel *to) {
    if (to->rows < ROWS) clear_panel(to, SINKPROOF_PANEL_Q8_0);
    for (size_t r = 0; r < to->rows; r++) {
        const uint8_t *from = sinkproof_matrix_stored(matrix, to->first + r);
        uint32_t *lane = (uint32_t *)(void *)to->data + r;
        for (size_t b = 0; b < to->blocks; b++, from += SINKPROOF_Q8_0_BYTES) {
            memcpy(to->scales + (b * ROWS + r) * 2, from, 2);
            for (size_t q = 0; q < 8; q++) memcpy(lane + (8 * b + q) * ROWS, from + 2 + 4 * q, 4);
        }
    }
}

// ---- anything else, by its values -----------------------------------------------------------

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Fills row r of the panel from its numbers; w_c is [32 blocks], zeros beyond the matrix. `exact`:
// they are bf16 numbers, whose float32 has zeros in its lower half.
static void pack_numbers_row(const panel *to, sinkproof_panel_format format, bool exact, size_t r,
                             const double *w_c) {
    uint32_t *lane = (uint32_t *)(void *)to->data + r;
    if (format == SINKPROOF_PANEL_F32) {
        for (size_t c = 0; c < to->blocks * COLS; c++) lane[c * ROWS] = float_bits((float)w_c[c]);
    } else if (exact) {
        for (size_t i = 0; i < to->blocks * COLS / 2; i++)
            lane[i * ROWS] =
                float_bits((float)w_c[2 * i]) >> 16 | float_bits((float)w_c[2 * i + 1]);
    } else {
        for (size_t i = 0; i < to->blocks * COLS / 2; i++)
            lane[i * ROWS] = sinkproof_bf16_bits(w_c[2 * i]) |
                             (uint32_t)sinkproof_bf16_bits(w_c[2 * i + 1]) << 16;
    }
}

static void pack_numbers(const sinkproof_matrix *matrix, sinkproof_panel_format format,
                         const panel *to, double *work) {
    bool exact = matrix->dtype == SINKPROOF_DTYPE_BF16 && matrix->reading == NULL;
    if (to->rows < ROWS) clear_panel(to, format);
    for (size_t c = matrix->cols; c < to->blocks * COLS; c++) work[c] = 0;
    for (size_t r = 0; r < to->rows; r++) {
        sinkproof_matrix_row(matrix, to->first + r, work);
        pack_numbers_row(to, format, exact, r, work);
    }
}

void sinkproof_panels_pack(const sinkproof_matrix *matrix, sinkproof_panel_format format,
                           size_t first, size_t last, void *memory, double *work) {
    sinkproof_panels all = sinkproof_panels_at(format, matrix->rows, matrix->cols, memory);
    bool codes = format == SINKPROOF_PANEL_MXFP4;
    for (size_t p = first; p < last; p++) {
        panel to = locate_panel(&all, p, memory);
        if (codes)
            pack_mxfp4(matrix, &to, work);
        else if (format == SINKPROOF_PANEL_Q8_0)
            pack_q8_0(matrix, &to);
        else if (format == SINKPROOF_PANEL_BF16 && matrix->dtype == SINKPROOF_DTYPE_BF16 &&
                 matrix->data != NULL && matrix->odd == NULL && matrix->reading == NULL)
            pack_bf16(matrix, &to);
        else
            pack_numbers(matrix, format, &to, work);
        if (format == SINKPROOF_PANEL_BF16)
            ((uint8_t *)memory)[all.panels * all.panel_stride + p] = least_bf16_exponent(&to);
    }
}

// ---- reading back ---------------------------------------------------------------------------

// Column c of a block's row r.
static double panel_element(sinkproof_panel_format format, const uint8_t *data,
                            const uint8_t *scales, size_t r, size_t c) {
    uint16_t half;
    float single;
    switch (format) {
    case SINKPROOF_PANEL_F32:
        memcpy(&single, data + (c * ROWS + r) * 4, 4);
        return single;
    case SINKPROOF_PANEL_BF16:
        memcpy(&half, data + ((c / 2 * ROWS + r) * 2 + c % 2) * 2, 2);
        return sinkproof_bf16_value(half);
    case SINKPROOF_PANEL_MXFP4:
        memcpy(&half, data + ((c / 8 * ROWS + r) * 2 + c % 2) * 2, 2);
        return sinkproof_mxfp4_value(half >> c % 8 / 2 * 4 & 15, scales[r]);
    default: // Q8_0
        memcpy(&half, scales + 2 * r, 2);
        return (int8_t)data[(c / 4 * ROWS + r) * 4 + c % 4] * sinkproof_f16_value(half);
    }
}

void panels_decode_row(const sinkproof_panels *panels, size_t r, double *out_c) {
    size_t p = r / ROWS, scale_bytes = sinkproof_panel_scale_bytes(panels->format);
    for (size_t c = 0; c < panels->cols; c++) {
        size_t b = c / COLS;
        const uint8_t *data = panels->data + p * panels->panel_stride + b * panels->block_stride;
        const uint8_t *scales =
            scale_bytes > 0 ? panels->scales + (p * panels->blocks + b) * scale_bytes : NULL;
        out_c[c] = panel_element(panels->format, data, scales, r % ROWS, c % COLS);
    }
}
