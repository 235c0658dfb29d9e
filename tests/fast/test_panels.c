// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Packing weights: every format comes back exactly, at the tails of rows and of columns, from every
// kind of storage; what lies beyond the edge is zero; ranges of panels packed apart are the whole.
#include "fast/kernels/panels.h"
#include "model/bf16.h"
#include "model/mxfp4.h"
#include "model/synthetic.h"
#include "tests/shared/reference.h"

static uint64_t state = 2027;

static const size_t row_counts[] = {1, 7, 16, 17, 40};
enum { ROW_COUNTS = sizeof row_counts / sizeof row_counts[0] };

static void *aligned(size_t bytes) {
    void *memory = aligned_alloc(64, bytes);
    if (memory == NULL) exit(1);
    memset(memory, 0xa5, bytes); // packing must write every byte
    return memory;
}

// Elements that differ from the matrix's own row; packed in two ranges when there are two panels.
static size_t wrong_elements(const sinkproof_matrix *matrix, sinkproof_panel_format format) {
    size_t rows = matrix->rows, cols = matrix->cols, wrong = 0;
    uint8_t *memory = aligned(sinkproof_panels_bytes(format, rows, cols));
    double *work = malloc((cols + 32) * sizeof *work), *row = malloc(2 * cols * sizeof *row);
    sinkproof_panels p = sinkproof_panels_at(format, rows, cols, memory);
    sinkproof_panels_pack(matrix, format, p.panels / 2, p.panels, memory, work);
    sinkproof_panels_pack(matrix, format, 0, p.panels / 2, memory, work);
    for (size_t r = 0; r < rows; r++) {
        sinkproof_matrix_row(matrix, r, row);
        panels_decode_row(&p, r, row + cols);
        wrong += differing(cols, row, row + cols);
    }
    // Seen as a matrix of whole panels and blocks, everything outside is plus zero.
    sinkproof_panels whole = p;
    whole.cols = 32 * p.blocks;
    double *padded = malloc(whole.cols * sizeof *padded);
    for (size_t r = 0; r < 16 * p.panels; r++) {
        panels_decode_row(&whole, r, padded);
        for (size_t c = r < rows ? cols : 0; c < whole.cols; c++) {
            const double zero = 0;
            wrong += memcmp(&padded[c], &zero, sizeof zero) != 0;
        }
    }
    free(padded);
    free(memory);
    free(work);
    free(row);
    return wrong;
}

// Bytes whose order shows: every bf16 and code pattern turns up, no two neighbours alike.
static uint8_t *random_bytes(size_t n) {
    uint8_t *bytes = malloc(n);
    if (bytes == NULL) exit(1);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(next_bits(&state) >> 20);
    return bytes;
}

static sinkproof_matrix plain(sinkproof_dtype dtype, const uint8_t *data, size_t rows,
                              size_t cols) {
    return (sinkproof_matrix){.dtype = dtype,
                              .count = 1,
                              .rows = rows,
                              .cols = cols,
                              .data = data,
                              .stack_stride = rows * cols,
                              .row_stride = cols,
                              .col_stride = 1,
                              .name = "test"};
}

// Random bits without NaN (a NaN has many bit patterns): the exponent loses a bit.
static uint8_t *random_numbers(sinkproof_dtype dtype, size_t n) {
    size_t size = sinkproof_dtype_size(dtype);
    uint8_t *bytes = random_bytes(n * size + 1);
    for (size_t i = 0; i < n; i++)
        bytes[(i + 1) * size] &= 0xbf; // the next one's last, at odd bytes
    return bytes;
}

static void test_plain(sinkproof_dtype dtype, sinkproof_panel_format format) {
    static const size_t cols[] = {1, 31, 32, 33, 64, 96, 2880};
    size_t wrong = 0, cases = 0;
    for (size_t i = 0; i < ROW_COUNTS; i++)
        for (size_t j = 0; j < sizeof cols / sizeof cols[0]; j++, cases++) {
            uint8_t *bytes = random_numbers(dtype, row_counts[i] * cols[j]);
            sinkproof_matrix m = plain(dtype, bytes + 1, row_counts[i], cols[j]); // unaligned
            wrong += wrong_elements(&m, format);
            wrong += sinkproof_panels_format(&m) != format;
            m.row_stride = 1; // the transposed one
            m.col_stride = row_counts[i];
            wrong += wrong_elements(&m, format);
            free(bytes);
        }
    ok(wrong == 0, "panels %s comes back, and transposed, worst=%zu bound=0 of %zu shapes",
       sinkproof_dtype_name(dtype), wrong, cases);
}

static void test_mxfp4(void) {
    static const size_t cols[] = {32, 64, 96, 2880};
    size_t wrong = 0, wide = 0;
    for (size_t i = 0; i < ROW_COUNTS; i++)
        for (size_t j = 0; j < 4; j++) {
            size_t rows = row_counts[i], blocks = rows * cols[j] / 32;
            uint8_t *codes = random_bytes(blocks * 16), *scales = random_bytes(blocks);
            for (size_t b = 0; b < blocks; b++) scales[b] %= 255;
            sinkproof_matrix m = plain(SINKPROOF_DTYPE_MXFP4, codes, rows, cols[j]);
            m.scales = scales;
            wrong += wrong_elements(&m, SINKPROOF_PANEL_MXFP4);
            wrong += sinkproof_panels_format(&m) != SINKPROOF_PANEL_MXFP4;
            for (size_t b = 0; b < blocks; b++) scales[b] = (uint8_t)(100 + scales[b] % 50);
            wide += wrong_elements(&m, SINKPROOF_PANEL_BF16);
            wide += wrong_elements(&m, SINKPROOF_PANEL_F32);
            free(codes);
            free(scales);
        }
    ok(wrong == 0, "panels MXFP4 comes back, worst=%zu bound=0", wrong);
    ok(wide == 0, "panels MXFP4 as bf16 and as float32 comes back, worst=%zu bound=0", wide);
}

static size_t from_the_end(size_t i, size_t count, size_t by) {
    (void)by;
    return count - 1 - i;
}

// A matrix whose rows are read in reverse, negated: those numbers are packed, not the stored ones.
static void test_reading(void) {
    const sinkproof_reading reading = {.row = from_the_end, .factor = -1};
    static const size_t cols[] = {31, 64};
    size_t wrong = 0;
    for (size_t i = 0; i < ROW_COUNTS; i++)
        for (size_t j = 0; j < 2; j++) {
            uint8_t *bytes = random_numbers(SINKPROOF_DTYPE_BF16, row_counts[i] * cols[j]);
            sinkproof_matrix m = plain(SINKPROOF_DTYPE_BF16, bytes + 1, row_counts[i], cols[j]);
            m.reading = &reading;
            wrong += sinkproof_panels_format(&m) != SINKPROOF_PANEL_F32;
            wrong += wrong_elements(&m, SINKPROOF_PANEL_F32);
            wrong += wrong_elements(&m, SINKPROOF_PANEL_BF16);
            m.dtype = SINKPROOF_DTYPE_MXFP4;
            wrong += sinkproof_panels_format(&m) != SINKPROOF_PANEL_F32;
            free(bytes);
        }
    ok(wrong == 0, "panels of a matrix as it is read come back, worst=%zu bound=0", wrong);
}

static void test_q8_0(void) {
    static const size_t cols[] = {32, 64, 96, 2880};
    size_t wrong = 0;
    for (size_t i = 0; i < ROW_COUNTS; i++)
        for (size_t j = 0; j < 4; j++) {
            size_t rows = row_counts[i], blocks = cols[j] / 32;
            uint8_t *bytes = random_bytes(rows * blocks * 34);
            for (size_t b = 0; b < rows * blocks; b++) bytes[34 * b + 1] &= 0xbf;
            uint8_t *memory = aligned(sinkproof_panels_bytes(SINKPROOF_PANEL_Q8_0, rows, cols[j]));
            sinkproof_panels p = sinkproof_panels_at(SINKPROOF_PANEL_Q8_0, rows, cols[j], memory);
            double *row = malloc(cols[j] * sizeof *row);
            sinkproof_matrix matrix = {.dtype = SINKPROOF_DTYPE_Q8_0,
                                       .count = 1,
                                       .rows = rows,
                                       .cols = cols[j],
                                       .data = bytes,
                                       .row_stride = cols[j],
                                       .col_stride = 1};
            wrong += sinkproof_panels_format(&matrix) != SINKPROOF_PANEL_Q8_0;
            sinkproof_panels_pack(&matrix, SINKPROOF_PANEL_Q8_0, 0, p.panels, memory, row);
            for (size_t r = 0; r < rows; r++) {
                panels_decode_row(&p, r, row);
                for (size_t c = 0; c < cols[j]; c++) {
                    const uint8_t *block = bytes + (r * blocks + c / 32) * 34;
                    double scale = sinkproof_f16_value((uint16_t)(block[0] | block[1] << 8));
                    wrong += !(row[c] == scale * (int8_t)block[2 + c % 32]);
                }
            }
            free(row);
            free(memory);
            free(bytes);
        }
    ok(wrong == 0, "panels Q8_0 comes back, worst=%zu bound=0", wrong);
}

// The layout itself, number by number, as fast/kernels/panels.h states it.
static void test_layout(void) {
    size_t rows = 32, cols = 64, wrong = 0;
    uint8_t *codes = random_bytes(rows * cols / 2), *scales = random_bytes(rows * cols / 32);
    sinkproof_matrix m = plain(SINKPROOF_DTYPE_MXFP4, codes, rows, cols);
    m.scales = scales;
    double work[96];
    uint8_t *memory = aligned(sinkproof_panels_bytes(SINKPROOF_PANEL_MXFP4, rows, cols));
    sinkproof_panels_pack(&m, SINKPROOF_PANEL_MXFP4, 0, 2, memory, work);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            unsigned code = codes[(r * cols + c) / 2] >> 4 * (c % 2) & 15;
            size_t block = r / 16 * 2 + c / 32, q = c % 32 / 8, k = c % 8 / 2;
            uint32_t dword;
            memcpy(&dword, memory + block * 256 + (q * 16 + r % 16) * 4, 4);
            wrong += (dword >> (16 * (c % 2) + 4 * k) & 15) != code;
            wrong += memory[4 * 256 + block * 16 + r % 16] != scales[r * 2 + c / 32];
        }
    ok(wrong == 0, "panels MXFP4 lies as stated, worst=%zu bound=0", wrong);
    free(memory);
    uint8_t *bytes = random_bytes(rows * cols * 2);
    m = plain(SINKPROOF_DTYPE_BF16, bytes, rows, cols);
    memory = aligned(sinkproof_panels_bytes(SINKPROOF_PANEL_BF16, rows, cols));
    sinkproof_panels_pack(&m, SINKPROOF_PANEL_BF16, 0, 2, memory, work);
    wrong = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            size_t block = r / 16 * 2 + c / 32;
            const uint8_t *at = memory + block * 1024 + (c % 32 / 2 * 16 + r % 16) * 4 + c % 2 * 2;
            wrong += memcmp(at, bytes + 2 * (r * cols + c), 2) != 0;
        }
    ok(wrong == 0, "panels BF16 lies as stated, worst=%zu bound=0", wrong);
    free(memory);
    free(bytes);
    free(codes);
    free(scales);
}

// Float32 into bf16 rounds to nearest even, each number once.
static void test_rounding(void) {
    size_t rows = 17, cols = 33, wrong = 0;
    uint8_t *bytes = random_numbers(SINKPROOF_DTYPE_F32, rows * cols);
    sinkproof_matrix m = plain(SINKPROOF_DTYPE_F32, bytes + 1, rows, cols);
    uint8_t *memory = aligned(sinkproof_panels_bytes(SINKPROOF_PANEL_BF16, rows, cols));
    sinkproof_panels p = sinkproof_panels_at(SINKPROOF_PANEL_BF16, rows, cols, memory);
    double work[65], want[33], found[33];
    sinkproof_panels_pack(&m, SINKPROOF_PANEL_BF16, 0, 2, memory, work);
    for (size_t r = 0; r < rows; r++) {
        sinkproof_matrix_row(&m, r, want);
        for (size_t c = 0; c < cols; c++) want[c] = sinkproof_round(SINKPROOF_BF16, want[c]);
        panels_decode_row(&p, r, found);
        wrong += differing(cols, want, found);
    }
    ok(wrong == 0, "panels bf16.round of float32 weights, worst=%zu bound=0", wrong);
    free(memory);
    free(bytes);
}

static void test_synthetic(void) {
    sinkproof_config config;
    synthetic_model synthetic;
    size_t wrong = 0, count = 0;
    if (!sinkproof_config_named("tiny", &config)) exit(1);
    synthetic_recipes_init(&synthetic, &config, 3);
    for (int slot = 0; slot < SINKPROOF_SLOTS; slot++, count++) {
        sinkproof_matrix m = synthetic_matrix(&synthetic, &config, 1, (sinkproof_slot)slot, "test");
        m = sinkproof_matrix_at(&m, m.count - 1);
        wrong += wrong_elements(&m, sinkproof_panels_format(&m));
    }
    ok(wrong == 0, "panels of %zu synthetic weights come back, worst=%zu bound=0", count, wrong);
}

int main(void) {
    test_plain(SINKPROOF_DTYPE_BF16, SINKPROOF_PANEL_BF16);
    test_plain(SINKPROOF_DTYPE_F16, SINKPROOF_PANEL_F32);
    test_plain(SINKPROOF_DTYPE_F32, SINKPROOF_PANEL_F32);
    test_mxfp4();
    test_reading();
    test_q8_0();
    test_layout();
    test_rounding();
    test_synthetic();
    return tap_done();
}
