// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A linear layer for the tests of the mode "amx": weights and tokens from a seed, the expected
// outputs by the mode's rule, and the comparison with the kernel's outputs. Every array ends at a
// protected page.
#ifndef SINKPROOF_TESTS_AMX_LAYER_H
#define SINKPROOF_TESTS_AMX_LAYER_H

#if defined(__x86_64__)

#include "base/splitmix.h"
#include "fast/kernels/linear_amx.h"
#include "fast/lanes/amx.h"
#include "fast/lanes/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 100, TOKENS = 200, PANELS = (ROWS + 15) / 16 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below) {
    return (uint32_t)((sinkproof_draw(&state) >> 33) % below);
}

static float float_of(uint16_t bf16) {
    uint32_t bits = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// A bf16 number of either sign between 2^low and 2^(high + 1), or, one time in 16, a zero of either
// sign.
static uint16_t draw_bf16(int low, int high) {
    uint16_t sign = (uint16_t)(draw(2) << 15);
    if (draw(16) == 0) return sign;
    return (uint16_t)(sign | (uint32_t)(127 + low + (int)draw((uint32_t)(high - low + 1))) << 7 |
                      draw(128));
}

// ---- a layer with guarded arrays -----------------------------------------------------------

// Allocates `bytes` that end at a protected page, aligned to 64 if bytes is a multiple of 64.
static void *guarded(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    uint8_t *at =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + whole, page, PROT_NONE) != 0) exit(1);
    return at + whole - bytes;
}

static void release(void *memory, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    munmap((uint8_t *)memory + bytes - whole, whole + page);
}

typedef struct layer {
    sinkproof_panel_format format;
    size_t cols, wide; // wide: a multiple of 32
    uint8_t *stored, *scales;
    float *w;     // [ROWS][wide], scales included: the numbers of the packed matrix
    float *codes; // MXFP4: the same without scales
    float *scale; // MXFP4: [ROWS][wide / 32]
    float bias[16 * PANELS];
    uint16_t *x16[TOKENS]; // each in an array of its own, whose last number is at a protected page
    float *x[TOKENS];
    float *expected;     // [TOKENS][ROWS] without bias
    size_t tiles, lanes; // (panel, token) pairs that each computed
} layer;

static const float code_value[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                     -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

static void make_bf16(layer *l) {
    l->stored = malloc(ROWS * l->cols * 2);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < l->cols; c++) {
            uint16_t w = draw_bf16(-12, 2);
            memcpy(l->stored + (r * l->cols + c) * 2, &w, sizeof w);
            l->w[r * l->wide + c] = float_of(w);
        }
}

static void make_mxfp4(layer *l) {
    l->stored = malloc(ROWS * l->cols / 2);
    l->scales = malloc(ROWS * l->cols / 32);
    for (size_t i = 0; i < ROWS * l->cols / 2; i++) l->stored[i] = (uint8_t)draw(256);
    for (size_t i = 0; i < ROWS * l->cols / 32; i++) l->scales[i] = (uint8_t)(118 + draw(10));
}

// Decodes the stored MXFP4 numbers: element c of a block is a nibble, the even ones are low.
static void read_mxfp4(layer *l) {
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < l->cols; c++) {
            uint8_t byte = l->stored[(r * l->cols + c) / 2];
            size_t at = r * l->wide + c;
            l->codes[at] = code_value[c % 2 == 0 ? byte & 15 : byte >> 4];
            double scale = ldexp(1, l->scales[(r * l->cols + c) / 32] - 127);
            l->scale[at / 32] = (float)scale;
            l->w[at] = (float)(l->codes[at] * scale);
        }
}

static void make(layer *l, sinkproof_panel_format format, size_t cols) {
    memset(l, 0, sizeof *l);
    l->format = format;
    l->cols = cols;
    l->wide = (cols + 31) / 32 * 32;
    l->w = calloc(ROWS * l->wide, sizeof *l->w);
    l->codes = calloc(ROWS * l->wide, sizeof *l->codes);
    l->scale = calloc(ROWS * l->wide / 32, sizeof *l->scale);
    l->expected = malloc(TOKENS * ROWS * sizeof *l->expected);
    if (format == SINKPROOF_PANEL_MXFP4) {
        make_mxfp4(l);
        read_mxfp4(l);
    } else {
        make_bf16(l);
    }
    for (size_t r = 0; r < 16 * PANELS; r++) l->bias[r] = float_of(draw_bf16(-4, 4));
    for (size_t i = 0; i < TOKENS; i++) {
        l->x16[i] = guarded(l->wide * sizeof **l->x16);
        l->x[i] = guarded(l->wide * sizeof **l->x);
        for (size_t c = 0; c < l->cols; c++) l->x16[i][c] = draw_bf16(-20, 6);
    }
}

static void drop(layer *l) {
    for (size_t i = 0; i < TOKENS; i++) {
        release(l->x16[i], l->wide * sizeof **l->x16);
        release(l->x[i], l->wide * sizeof **l->x);
    }
    free(l->stored), free(l->scales), free(l->w), free(l->codes), free(l->scale), free(l->expected);
}

// The largest power of two that is at most the smallest nonzero magnitude.
static double least_of(const float *x, size_t n) {
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0) least = fmin(least, fabs((double)x[i]));
    return isinf(least) ? least : ldexp(1, ilogb(least));
}

static double least_weight(const layer *l, size_t panel) {
    size_t first = 16 * panel, rows = first + 16 < ROWS ? 16 : ROWS - first;
    if (l->format != SINKPROOF_PANEL_MXFP4) return least_of(l->w + first * l->wide, rows * l->wide);
    double least = INFINITY;
    for (size_t block = first * l->wide / 32; block < (first + rows) * l->wide / 32; block++) {
        if (isinf(least_of(l->codes + block * 32, 32))) continue;
        uint8_t s = l->scales[block];
        least = fmin(least, s < 2 || s > 252 ? 0 : ldexp(1, s - 128));
    }
    return least;
}

// Computes the outputs of the first rows and tokens by the rule of the mode.
static void expect_some(layer *l, size_t rows, size_t tokens) {
    for (size_t i = 0; i < tokens; i++)
        for (size_t c = 0; c < l->cols; c++) l->x[i][c] = float_of(l->x16[i][c]);
    l->tiles = l->lanes = 0;
    for (size_t p = 0; 16 * p < rows; p++) {
        double least = least_weight(l, p);
        for (size_t i = 0; i < tokens; i++) {
            bool served = amx_can_multiply(least, least_of(l->x[i], l->cols));
            *(served ? &l->tiles : &l->lanes) += 1;
            for (size_t r = 16 * p; r < rows && r < 16 * (p + 1); r++) {
                const float *w = l->w + r * l->wide, *codes = l->codes + r * l->wide;
                bool coded = l->format == SINKPROOF_PANEL_MXFP4;
                l->expected[i * ROWS + r] =
                    served  ? amx_dot(l->cols, w, l->x[i])
                    : coded ? lanes_dot(l->cols, codes, l->scale + r * l->wide / 32, l->x[i])
                            : lanes_dot(l->cols, w, NULL, l->x[i]);
            }
        }
    }
}

static void expect(layer *l) {
    expect_some(l, ROWS, TOKENS);
}

static bool same(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

// Fills the stack of the next call, so that nothing there is zero by chance.
static __attribute__((noinline)) void paint_stack(void) {
    volatile uint8_t room[32768];
    for (size_t i = 0; i < sizeof room; i++) room[i] = 0xa5;
}

static void *scratch; // SINKPROOF_SCRATCH bytes before a protected page

// Computes the product of the first `rows` rows and tokens from..from + n - 1 over panels first ..
// last - 1, and returns how many outputs differ from the expected ones. Everything around the
// outputs must stay unchanged.
static size_t wrong(const layer *l, size_t rows, size_t from, size_t n, size_t first, size_t last,
                    bool biased) {
    sinkproof_matrix matrix = {.dtype =
                                   l->scales != NULL ? SINKPROOF_DTYPE_MXFP4 : SINKPROOF_DTYPE_BF16,
                               .count = 1,
                               .rows = rows,
                               .cols = l->cols,
                               .data = l->stored,
                               .scales = l->scales,
                               .stack_stride = rows * l->cols,
                               .row_stride = l->cols,
                               .col_stride = 1,
                               .name = "test"};
    size_t bytes = sinkproof_panels_bytes(l->format, rows, l->cols);
    void *packed = guarded(bytes);
    double *work = malloc((l->cols + 32) * sizeof *work);
    sinkproof_panels panels = sinkproof_panels_at(l->format, rows, l->cols, packed);
    sinkproof_panels_pack(&matrix, l->format, 0, panels.panels, packed, work);
    const float *x[TOKENS];
    const uint16_t *x16[TOKENS];
    float *y[TOKENS];
    size_t room = 16 * panels.panels * sizeof(float), differ = 0;
    uint32_t paint = 0x7fc0beef, found;
    for (size_t i = 0; i < n; i++) {
        x[i] = l->x[from + i], x16[i] = l->x16[from + i];
        y[i] = guarded(room);
        for (size_t r = 0; r < 16 * panels.panels; r++) memcpy(y[i] + r, &paint, sizeof paint);
    }
    sinkproof_product product = {&panels, biased ? l->bias : NULL, n, x, x16, y};
    paint_stack();
    amx_linear(&product, first, last < panels.panels ? last : panels.panels, scratch);
    for (size_t i = 0; i < n; i++) {
        for (size_t r = 0; r < 16 * panels.panels; r++) {
            memcpy(&found, y[i] + r, sizeof found);
            if (r / 16 < first || r / 16 >= last) {
                differ += found != paint;
            } else if (r < rows) {
                float e = l->expected[(from + i) * ROWS + r];
                differ += !same(y[i][r], biased ? e + l->bias[r] : e);
            }
        }
        release(y[i], room);
    }
    release(packed, bytes);
    free(work);
    return differ;
}

#endif
#endif
