// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Weights as the kernels read them: panels of 16 rows, blocks of 32 columns, so that one vector
// register holds one column of sixteen outputs and a product streams memory in order, once. Row r
// of the matrix is lane r % 16 of panel r / 16; rows and columns beyond the edge are zeros.
//
// One block of one panel is, by format (rows r = 0..15 of the panel, columns c = 0..31 of the
// block):
//   F32    float    [32 columns][16 rows]
//   BF16   uint16   [16 pairs][16 rows][2]: a dword holds columns 2i (low half) and 2i + 1
//   MXFP4  uint32   [4][16 rows]: dword q of a row holds columns 8q .. 8q + 7 as nibbles; nibble k
//                   of the low half is column 8q + 2k, of the high half column 8q + 2k + 1
//   Q8_0   int8     [8][16 rows][4]: dword q of a row holds columns 4q .. 4q + 3
// Scales of a block: MXFP4 uint8 [16 rows], 2^(s - 127); Q8_0 binary16 [16 rows].
#ifndef SINKPROOF_PANELS_H
#define SINKPROOF_PANELS_H

#include "base/error.h"
#include "model/matrix.h"

enum {
    SINKPROOF_PANEL_ROWS = 16,
    SINKPROOF_PANEL_COLS = 32, // columns of a block
};

typedef enum sinkproof_panel_format {
    SINKPROOF_PANEL_F32,
    SINKPROOF_PANEL_BF16,
    SINKPROOF_PANEL_MXFP4,
    SINKPROOF_PANEL_Q8_0,
    SINKPROOF_PANEL_FORMATS
} sinkproof_panel_format;

// A packed matrix, or a view of one: block b of panel p is at data + p panel_stride + b
// block_stride, its scales at scales + (p blocks + b) 16 (MXFP4) or 32 (Q8_0) bytes. Data is
// 64-byte aligned.
typedef struct sinkproof_panels {
    sinkproof_panel_format format;
    size_t rows, cols;                 // of the matrix
    size_t panels, blocks;             // ceil(rows / 16), ceil(cols / 32)
    size_t panel_stride, block_stride; // bytes
    const uint8_t *data, *scales;
    // BF16: for each panel the exponent field of its smallest nonzero number (0: a subnormal one,
    // 255: only zeros), which tells where products of pairs flush nothing. NULL: unknown.
    const uint8_t *least_p;
} sinkproof_panels;

// Bytes of one block, and of its scales. Inline, so that they are constants for a constant format.
static inline size_t sinkproof_panel_block_bytes(sinkproof_panel_format format) {
    return format == SINKPROOF_PANEL_F32     ? 2048
           : format == SINKPROOF_PANEL_BF16  ? 1024
           : format == SINKPROOF_PANEL_MXFP4 ? 256
                                             : 512;
}
static inline size_t sinkproof_panel_scale_bytes(sinkproof_panel_format format) {
    return format == SINKPROOF_PANEL_MXFP4 ? 16 : format == SINKPROOF_PANEL_Q8_0 ? 32 : 0;
}

// The format that holds `matrix` exactly: MXFP4, Q8_0 and BF16 as stored; F16 and F32 become F32,
// and so does a matrix that is read differently than stored.
sinkproof_panel_format sinkproof_panels_format(const sinkproof_matrix *matrix);

// Bytes of a packed rows x cols matrix, a multiple of 64: data, scales, least_p.
size_t sinkproof_panels_bytes(sinkproof_panel_format format, size_t rows, size_t cols);

// Describes a packed matrix at `memory` (64-byte aligned, sinkproof_panels_bytes long).
sinkproof_panels sinkproof_panels_at(sinkproof_panel_format format, size_t rows, size_t cols,
                                     const void *memory);

// Packs panels first .. last - 1 of the plain matrix into `memory`, exactly; several threads may
// pack disjoint ranges. Needs (cols + 32) doubles of work. If `format` cannot hold the matrix's
// format exactly (F32 into BF16), each number is rounded to nearest even.
void sinkproof_panels_pack(const sinkproof_matrix *matrix, sinkproof_panel_format format,
                           size_t first, size_t last, void *memory, double *work);

// Row r as numbers, exactly: out_c[cols]. For tests and for reading an embedding back.
void panels_decode_row(const sinkproof_panels *panels, size_t r, double *out_c);

#endif
