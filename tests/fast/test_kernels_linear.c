// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The products, on every instruction set: the bits of the lane arithmetic told in scalar code, for
// every format of weights, around every tile (panels of 16 rows, two and four and six of them;
// three, four and six tokens), for each range of panels, with nothing touched beyond the edges.
#include "tests/shared/kernels.h"

// A random matrix as it is stored, packed, and as numbers with its blocks' scales apart.
typedef struct weights {
    sinkproof_panels panels;
    uint8_t *stored;
    float *w_rc, *scale_rb; // [rows, 32 blocks], [rows, blocks] or NULL
} weights;

static const char *const format_names[] = {"f32", "bf16", "mxfp4", "q8_0"};
static const sinkproof_dtype dtypes[] = {SINKPROOF_DTYPE_F32, SINKPROOF_DTYPE_BF16,
                                         SINKPROOF_DTYPE_MXFP4, SINKPROOF_DTYPE_Q8_0};

static float e2m1(unsigned code) {
    static const float size[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code < 8 ? size[code] : -size[code - 8];
}

// One stored element of a float format.
static float draw(sinkproof_panel_format format, bool edge, uint8_t *at) {
    float x = random_float();
    if (edge) x = ldexpf(x, -120 - (int)(random_word() % 8)); // subnormal too
    if (format == SINKPROOF_PANEL_F32) {
        memcpy(at, &x, 4);
        return x;
    }
    x = bf16_of(x);
    uint32_t bits = bits_of(x) >> 16;
    memcpy(at, &bits, 2);
    return x;
}

// `edge`: scale bytes and scales at the ends of their range.
static void draw_blocks(weights *w, size_t rows, size_t cols, bool edge) {
    size_t blocks = (cols + 31) / 32;
    sinkproof_panel_format format = w->panels.format;
    for (size_t r = 0; r < rows; r++)
        for (size_t b = 0; b < blocks; b++) {
            float *out = w->w_rc + (r * blocks + b) * 32, *scale = w->scale_rb + r * blocks + b;
            if (format == SINKPROOF_PANEL_MXFP4) {
                uint8_t *codes = w->stored + (r * blocks + b) * 16;
                uint8_t byte =
                    (uint8_t)(edge ? (random_word() % 2 == 0 ? 0 : 1) : 110 + random_word() % 20);
                w->stored[rows * blocks * 16 + r * blocks + b] = byte;
                *scale = ldexpf(1, byte - 127);
                for (int i = 0; i < 16; i++) {
                    codes[i] = (uint8_t)random_word();
                    out[2 * i] = e2m1(codes[i] & 15);
                    out[2 * i + 1] = e2m1(codes[i] >> 4);
                }
            } else { // Q8_0: binary16 scale 2^-14 .. 2 with a fraction, or subnormal
                uint8_t *block = w->stored + (r * blocks + b) * 34;
                uint16_t half = (uint16_t)(edge ? random_word() % 1024 : random_word() % 0x4000);
                memcpy(block, &half, 2);
                *scale = half >> 10 == 0 ? ldexpf(half, -24)
                                         : ldexpf((float)(1024 + (half & 1023)), (half >> 10) - 25);
                for (int i = 0; i < 32; i++) {
                    int q = (int)(random_word() % 255) - 127;
                    block[2 + i] = (uint8_t)q;
                    out[i] = (float)q;
                }
            }
        }
}

static weights make(sinkproof_panel_format format, size_t rows, size_t cols, bool edge) {
    size_t blocks = (cols + 31) / 32;
    weights w = {.panels.format = format, .stored = calloc(rows * blocks, 128)};
    w.w_rc = calloc(rows * blocks * 32, sizeof *w.w_rc);
    bool scaled = format == SINKPROOF_PANEL_MXFP4 || format == SINKPROOF_PANEL_Q8_0;
    if (scaled) {
        w.scale_rb = calloc(rows * blocks, sizeof *w.scale_rb);
        draw_blocks(&w, rows, cols, edge);
    } else {
        size_t size = format == SINKPROOF_PANEL_F32 ? 4 : 2;
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < cols; c++)
                w.w_rc[r * blocks * 32 + c] = draw(format, edge, w.stored + (r * cols + c) * size);
    }
    size_t bytes = sinkproof_panels_bytes(format, rows, cols);
    void *memory = aligned_alloc(64, bytes);
    size_t panels = (rows + 15) / 16;
    sinkproof_matrix matrix = {.dtype = dtypes[format],
                               .count = 1,
                               .rows = rows,
                               .cols = cols,
                               .data = w.stored,
                               .scales = w.stored + rows * blocks * 16,
                               .row_stride = cols,
                               .col_stride = 1};
    double *work = calloc(cols + 32, sizeof *work);
    sinkproof_panels_pack(&matrix, format, 0, panels, memory, work);
    free(work);
    w.panels = sinkproof_panels_at(format, rows, cols, memory);
    return w;
}

static void free_weights(weights *w) {
    free(w->stored);
    free(w->w_rc);
    free(w->scale_rb);
    free((void *)(uintptr_t)w->panels.data);
}

// What a product takes and gives, each output row between guards.
typedef struct case_of {
    size_t n;
    float *x_n[600], *y_n[600];
    uint16_t *x16_n[600];
    float *bias;
} case_of;

enum {
    EXACT,
    RANDOM,
    BF16,
    TINY
}; // inputs: small powers of two; all bits; bf16; huge and tiny bf16

static void fill(case_of *c, const weights *w, size_t n, int inputs) {
    size_t width = w->panels.blocks * 32;
    c->n = n;
    c->bias = calloc(w->panels.panels * 16, sizeof *c->bias);
    for (size_t r = 0; r < w->panels.rows; r++) c->bias[r] = random_float();
    for (size_t i = 0; i < n; i++) {
        c->x_n[i] = calloc(width, sizeof(float));
        c->x16_n[i] = calloc(width, sizeof(uint16_t));
        c->y_n[i] = guarded(w->panels.panels * 16);
        for (size_t k = 0; k < w->panels.cols; k++) {
            float x = inputs == EXACT ? ldexpf(1, (int)(random_word() % 4)) : random_float();
            if (inputs == TINY) x = ldexpf(x, i % 2 == 0 ? 32 : -122);
            if (inputs >= BF16) x = bf16_of(x);
            c->x_n[i][k] = x;
            c->x16_n[i][k] = (uint16_t)(bits_of(bf16_of(x)) >> 16);
        }
    }
}

static void empty(case_of *c) {
    for (size_t i = 0; i < c->n; i++) {
        free(c->x_n[i]);
        free(c->x16_n[i]);
        free_guarded(c->y_n[i]);
    }
    free(c->bias);
}

// Elements whose bits differ from the scalar code's; guards count.
static size_t wrong(const weights *w, const case_of *c, bool biased) {
    size_t blocks = w->panels.blocks, count = 0;
    for (size_t i = 0; i < c->n; i++) {
        count += !guards_hold(c->y_n[i], w->panels.panels * 16);
        for (size_t r = 0; r < w->panels.rows; r++) {
            float y = lanes_dot(blocks * 32, w->w_rc + r * blocks * 32,
                                w->scale_rb == NULL ? NULL : w->scale_rb + r * blocks, c->x_n[i]);
            if (biased) y += c->bias[r];
            count += !same(y, c->y_n[i][r]);
        }
    }
    return count;
}

static size_t run_one(const sinkproof_kernels *kernels, sinkproof_panel_format format, size_t rows,
                      size_t cols, size_t n, int inputs, bool edge) {
    static _Alignas(64) unsigned char scratch[SINKPROOF_SCRATCH];
    weights w = make(format, rows, cols, edge);
    static case_of c;
    fill(&c, &w, n, inputs);
    bool biased = random_word() % 2 == 0;
    sinkproof_product product = {.weight = &w.panels,
                                 .bias_r = biased ? c.bias : NULL,
                                 .n = n,
                                 .x_n = (const float *const *)c.x_n,
                                 .x16_n = inputs >= BF16 ? (const uint16_t *const *)c.x16_n : NULL,
                                 .y_n = c.y_n};
    // In two ranges, as two threads would take it.
    size_t cut = random_word() % (w.panels.panels + 1);
    kernels->linear(&product, 0, cut, scratch);
    kernels->linear(&product, cut, w.panels.panels, scratch);
    size_t count = wrong(&w, &c, biased);
    if (count > 0)
        note("%s %s rows=%zu cols=%zu n=%zu inputs=%d edge=%d cut=%zu: %zu wrong", kernels->isa,
             format_names[format], rows, cols, n, inputs, edge, cut, count);
    empty(&c);
    free_weights(&w);
    return count;
}

static void shapes(const sinkproof_kernels *kernels) {
    static const size_t all_rows[] = {1, 15, 16, 17, 48, 100, 200};
    static const size_t all_cols[] = {32, 64, 96, 160, 192, 352, 33, 80};
    static const size_t all_n[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 25};
    for (int f = 0; f < SINKPROOF_PANEL_FORMATS; f++)
        for (int inputs = EXACT; inputs <= BF16; inputs++) {
            size_t cases = 0, bad = 0;
            bool floats = f == SINKPROOF_PANEL_F32 || f == SINKPROOF_PANEL_BF16;
            for (size_t i = 0; i < sizeof all_n / sizeof *all_n; i++)
                for (size_t c = 0; c < (floats ? 8u : 6u); c++) {
                    size_t rows = all_rows[random_word() % 7];
                    bad += run_one(kernels, (sinkproof_panel_format)f, rows, all_cols[c], all_n[i],
                                   inputs, false);
                    cases++;
                }
            ok(bad == 0,
               "lanes.linear products %s %s, inputs %s: equal to the scalar code, %zu shapes",
               kernels->isa, format_names[f],
               inputs == EXACT    ? "exact"
               : inputs == RANDOM ? "random"
                                  : "bf16",
               cases);
        }
}

// The widths of the full model; and wider than what is decoded at once.
static void widths(const sinkproof_kernels *kernels) {
    static const size_t of_cols[] = {2880, 4096, 4128, 8256}, of_n[] = {1, 9, 10, 13};
    size_t bad = 0;
    for (int f = 0; f < SINKPROOF_PANEL_FORMATS; f++)
        for (int k = 0; k < (f == SINKPROOF_PANEL_MXFP4 ? 4 : 2); k++)
            for (int inputs = RANDOM; inputs <= BF16; inputs++)
                bad += run_one(kernels, (sinkproof_panel_format)f, 33, of_cols[k], of_n[k], inputs,
                               false);
    ok(bad == 0,
       "lanes.linear products %s: equal to the scalar code at widths 2880 and 4096, and of MXFP4 "
       "at "
       "4128 and 8256",
       kernels->isa);
}

static void edges(const sinkproof_kernels *kernels) {
    size_t bad = 0;
    for (size_t n = 1; n <= 13; n += 6) {
        for (int f = 0; f < SINKPROOF_PANEL_FORMATS; f++) {
            bad += run_one(kernels, (sinkproof_panel_format)f, 40, 96, n, RANDOM, true);
            bad += run_one(kernels, (sinkproof_panel_format)f, 40, 96, n, TINY, false);
            bad += run_one(kernels, (sinkproof_panel_format)f, 40, 96, n, TINY, true);
        }
    }
    ok(bad == 0, "lanes.linear products %s: least scales, subnormal weights and inputs",
       kernels->isa);
}

static void test(const sinkproof_kernels *kernels) {
    random_state = 7; // every set meets the same numbers
    shapes(kernels);
    widths(kernels);
    edges(kernels);
}

int main(void) {
    on_every_set(test);
    return tap_done();
}
