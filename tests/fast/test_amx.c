// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The numeric mode "amx": the tiles' linear layer against the order of the mode in scalar code, bit
// by bit. The kernel's own machine code runs: on the processor where it has AMX, under amx_trap.h
// on any other with AVX-512.
#include "fast/kernels/isa.h"
#include "fast/lanes/amx.h"
#include "fast/lanes/lanes.h"
#include "tests/shared/amx_layer.h"
#include "tests/shared/amx_trap.h"
#include "tests/shared/ran_on.h"

#include <math.h>
#include <string.h>

// ---- the scalar order on its own -----------------------------------------------------------

static void the_order(void) {
    float w[64] = {0}, x[64] = {0};
    // Of a block: even columns 2^24 + 1 - 2^24 = 0 (the 1 is lost), odd ones 1 + 1 = 2. In the
    // lanes' order the same terms give 3.
    w[0] = 0x1p24f, w[1] = 1, w[2] = 1, w[3] = 1, w[4] = -0x1p24f;
    w[40] = 5;
    for (int c = 0; c < 64; c++) x[c] = 1;
    float tiles = amx_dot(64, w, x), lanes = lanes_dot(64, w, NULL, x);
    ok(tiles == 7, "even and odd columns of a block are summed apart: %g of 7", (double)tiles);
    note("the lanes' order gives %g, the exact sum is 8", (double)lanes);
    ok(amx_can_multiply(0x1p-60, 0x1p-51) && !amx_can_multiply(0x1p-60, 0x1p-52) &&
           !amx_can_multiply(0x1p-127, 0x1p100) && !amx_can_multiply(0x1p100, 0x1p-127) &&
           amx_can_multiply(INFINITY, 0x1p-126) && amx_can_multiply(0x1p-126, 0x1p15),
       "tiles serve normal numbers with products of at least 2^-111");
}

#if defined(__x86_64__)

// ---- the checks ----------------------------------------------------------------------------

static const char *const format_name[] = {"float32", "bf16", "MXFP4", "Q8_0"};

static void check_order(sinkproof_panel_format format, size_t cols) {
    static const size_t rows[] = {16, 17, 100},
                        ns[] = {1, 2, 3, 4, 5, 15, 16, 17, 33, 100, 150, TOKENS};
    layer l;
    make(&l, format, cols);
    expect(&l);
    size_t differ = 0, elements = 0, orders = 0;
    for (size_t r = 0; r < ROWS; r++) // of one token
        orders += !same(l.expected[r], lanes_dot(cols, l.w + r * l.wide, NULL, l.x[0]));
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof ns / sizeof *ns; b++) {
            differ += wrong(&l, rows[a], TOKENS - ns[b], ns[b], 0, PANELS, b % 2 == 0);
            elements += rows[a] * ns[b];
        }
    ok(differ == 0 && l.lanes == 0 && orders > 0,
       "%s weights, %zu columns: %zu of %zu outputs differ from the mode's order (the lanes' order "
       "differs in %zu of %d)",
       format_name[format], cols, differ, elements, orders, ROWS);
    drop(&l);
}

static void check_ranges(sinkproof_panel_format format) {
    layer l;
    make(&l, format, 96);
    expect(&l);
    size_t differ = 0, ranges = 0;
    for (size_t first = 0; first < PANELS; first++)
        for (size_t last = first; last <= PANELS; last++, ranges++) {
            size_t n = 1 + draw(40);
            differ += wrong(&l, ROWS, draw((uint32_t)(TOKENS - n)), n, first, last, true);
        }
    ok(differ == 0, "%s weights: %zu ranges of panels, %zu outputs differ in them or outside",
       format_name[format], ranges, differ);
    drop(&l);
}

// More columns than a chunk holds, and tokens as they are listed: few of them, or more than a group
// holds. The list ends with 0.
static void check_chunks(sinkproof_panel_format format, size_t cols, const size_t *ns) {
    enum { SOME = 33 };
    size_t most = 0;
    for (size_t k = 0; ns[k] > 0; k++) most = ns[k] > most ? ns[k] : most;
    layer l;
    make(&l, format, cols);
    expect_some(&l, SOME, most);
    for (size_t k = 0; ns[k] > 0; k++) {
        size_t differ = wrong(&l, SOME, 0, ns[k], 0, PANELS, true);
        ok(differ == 0, "%s weights, %zu columns, %zu tokens: %zu outputs differ across chunks",
           format_name[format], cols, ns[k], differ);
    }
    drop(&l);
}

static void set_weight(layer *l, size_t r, size_t c, uint16_t bits) {
    memcpy(l->stored + (r * l->cols + c) * 2, &bits, sizeof bits);
    l->w[r * l->wide + c] = float_of(bits);
}

// Weights and tokens so small that the tiles would flush them: the lanes take over, for the panel
// or the token that is concerned and for no other.
static void check_small(size_t cols) {
    layer l;
    make(&l, SINKPROOF_PANEL_BF16, cols);
    set_weight(&l, 20, cols - 1, 0x0001);  // panel 1: a subnormal weight, whatever the token
    set_weight(&l, 35, 0, 0x8080);         // panel 2: 2^-126
    set_weight(&l, 50, 7, 0x0f00);         // panel 3: 2^-97, good for tokens of 2^-14 and more
    for (size_t i = 0; i < 16 * cols; i++) // panel 4: zeros of both signs
        set_weight(&l, 64 + i / cols, i % cols, (uint16_t)(0x8000 * (i % 2)));
    for (size_t c = 0; c < cols; c++) {
        l.x16[3][c] = c == 8 ? 0x3880 : draw_bf16(-14, 3); // 2^-14: panel 3 by tiles
        l.x16[4][c] = c == 8 ? 0x3800 : draw_bf16(-14, 3); // 2^-15: by lanes
        l.x16[40][c] = c == 5 ? 0x8001 : l.x16[40][c];     // a subnormal number: lanes everywhere
        l.x16[41][c] = draw_bf16(-126, -120);              // products far below 2^-126
        l.x16[42][c] = 0;
        l.x16[90][c] = c == 9 ? 0x0400 : l.x16[90][c]; // 2^-119
    }
    expect(&l);
    size_t differ = wrong(&l, ROWS, 0, TOKENS, 0, PANELS, true) +
                    wrong(&l, ROWS, 30, 20, 0, 7, false) +
                    wrong(&l, ROWS, 40, 1, 0, PANELS, false) + wrong(&l, ROWS, 3, 2, 3, 4, true) +
                    wrong(&l, ROWS, 3, 4, 0, PANELS, true) + wrong(&l, ROWS, 40, 3, 0, 7, false);
    ok(differ == 0 && l.tiles > 300 && l.lanes > 200,
       "bf16 weights, %zu columns, down to the subnormal: %zu outputs differ; tiles serve %zu "
       "pairs of "
       "panel and token, lanes %zu",
       cols, differ, l.tiles, l.lanes);
    drop(&l);
}

static void set_scale(layer *l, size_t r, size_t block, uint8_t s) {
    l->scales[r * l->cols / 32 + block] = s;
}

// Every kind of scale byte: 2 and 252 are the last that fit bf16 normally.
static void check_scales(void) {
    static const uint8_t scales[PANELS] = {0, 1, 2, 252, 253, 254, 127};
    layer l;
    make(&l, SINKPROOF_PANEL_MXFP4, 96);
    for (size_t p = 0; p < PANELS; p++) {
        if (scales[p] >= 252) // alone at its height, so that sums stay finite
            for (size_t r = 16 * p; r < 16 * p + 16; r++)
                for (size_t b = 0; b < 3; b++) set_scale(&l, r, b, 120);
        set_scale(&l, 16 * p + p % 4, p % 3, scales[p]);
    }
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t c = 0; c < l.cols; c++)
            l.x16[i][c] = i % 2 == 0 ? draw_bf16(-20, -2) : draw_bf16(15, 17);
    read_mxfp4(&l);
    expect(&l);
    size_t differ = wrong(&l, ROWS, 0, TOKENS, 0, PANELS, false), infinite = 0;
    for (size_t n = 1; n <= AMX_FEW; n++)
        differ += wrong(&l, ROWS, 7 * n, n, 0, PANELS, n % 2 == 0);
    for (size_t i = 0; i < TOKENS * ROWS; i++) infinite += !isfinite(l.expected[i]);
    size_t even_lanes = 5 * TOKENS / 2, odd_lanes = 4 * TOKENS / 2; // scale 2 serves large tokens
    ok(differ == 0 && l.lanes == even_lanes + odd_lanes,
       "MXFP4 scales 0, 1, 2, 252, 253, 254: %zu outputs differ (%zu are infinite); lanes serve "
       "%zu pairs "
       "of panel and token",
       differ, infinite, l.lanes);
    // A block of zeros may have any scale.
    for (size_t p = 0; p < PANELS; p++) {
        size_t r = 16 * p + p % 4, b = p % 3;
        memset(l.stored + (r * l.cols + b * 32) / 2, p % 2 == 0 ? 0x80 : 0x08, 16);
    }
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t c = 0; c < l.cols; c++) l.x16[i][c] = draw_bf16(-20, -2);
    read_mxfp4(&l);
    expect(&l);
    differ = wrong(&l, ROWS, 0, TOKENS, 0, PANELS, false);
    for (size_t n = 1; n <= AMX_FEW; n++)
        differ += wrong(&l, ROWS, 7 * n, n, 0, PANELS, n % 2 == 0);
    ok(differ == 0 && l.lanes == 0,
       "a block of zeros has any scale: %zu outputs differ, lanes serve %zu", differ, l.lanes);
    drop(&l);
}

// MXFP4 where a scale is a factor of a block's sum and where it may not be: sums that overflow with
// their scales, terms that are no normal numbers without them.
static void check_far(int low, int high, int scale) {
    layer l;
    make(&l, SINKPROOF_PANEL_MXFP4, 160);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t b = 0; b < 5; b++) set_scale(&l, r, b, (uint8_t)(scale - (int)draw(3)));
    for (size_t i = 0; i < TOKENS; i++)
        for (size_t c = 0; c < l.cols; c++) l.x16[i][c] = draw_bf16(low, high);
    read_mxfp4(&l);
    expect(&l);
    size_t differ = 0, finite = 0;
    for (size_t i = 0; i < TOKENS * ROWS; i++) finite += isfinite(l.expected[i]);
    for (size_t n = 1; n <= AMX_FEW + 1; n++)
        for (size_t from = 0; from + n <= TOKENS; from += n)
            differ += wrong(&l, ROWS, from, n, 0, PANELS, false);
    ok(differ == 0 && l.tiles > 0,
       "MXFP4 scales up to 2^%d, tokens from 2^%d to 2^%d: %zu outputs differ (%zu of %d finite)",
       scale - 127, low, high + 1, differ, finite, TOKENS * ROWS);
    drop(&l);
}

// What is no product of bf16 numbers goes to the lanes.
static void check_others(void) {
    layer l;
    make(&l, SINKPROOF_PANEL_BF16, 96);
    expect(&l);
    size_t differ = 0;
    for (int kind = 0; kind < 2; kind++) { // float32 operands; float32 weights
        sinkproof_panel_format format = kind == 0 ? SINKPROOF_PANEL_BF16 : SINKPROOF_PANEL_F32;
        sinkproof_matrix matrix = {.dtype = SINKPROOF_DTYPE_BF16,
                                   .count = 1,
                                   .rows = ROWS,
                                   .cols = l.cols,
                                   .data = l.stored,
                                   .stack_stride = ROWS * l.cols,
                                   .row_stride = l.cols,
                                   .col_stride = 1,
                                   .name = "test"};
        size_t bytes = sinkproof_panels_bytes(format, ROWS, l.cols);
        void *packed = aligned_alloc(64, bytes);
        double work[128];
        sinkproof_panels panels = sinkproof_panels_at(format, ROWS, l.cols, packed);
        sinkproof_panels_pack(&matrix, format, 0, PANELS, packed, work);
        float out[16 * PANELS], *y = out;
        const float *x = l.x[1];
        const uint16_t *x16 = l.x16[1];
        sinkproof_product product = {&panels, NULL, 1, &x, kind == 0 ? NULL : &x16, &y};
        amx_linear(&product, 0, PANELS, scratch);
        for (size_t r = 0; r < ROWS; r++)
            differ += !same(out[r], lanes_dot(l.cols, l.w + r * l.wide, NULL, x));
        free(packed);
    }
    ok(differ == 0, "float32 operands or weights: %zu outputs differ from the lanes", differ);
    drop(&l);
}

// LDTILECFG with eight bytes of its operand stored and the rest as the stack was.
__attribute__((target("amx-tile"))) static void configure_badly(const uint8_t *config) {
    __asm__ volatile("ldtilecfg (%0)\n\ttilezero %%tmm0\n\ttilerelease" : : "r"(config) : "memory");
}

// The same from a structure of the function's own: all of it the operand, or eight bytes, so that
// the compiler may leave the others as the stack was (gcc 12 does at -O2 and -O3).
typedef struct configuration {
    uint8_t bytes[64];
} configuration;

static inline __attribute__((always_inline)) configuration all_tiles(int rows) {
    configuration c = {{1}};
    for (int t = 0; t < 8; t++) c.bytes[16 + 2 * t] = 64, c.bytes[48 + t] = (uint8_t)rows;
    return c;
}

#define CONFIGURE "ldtilecfg %0\n\ttilezero %%tmm7\n\ttilerelease"

__attribute__((target("amx-tile"), noinline)) static void configure_whole(int rows) {
    configuration c = all_tiles(rows);
    __asm__ volatile(CONFIGURE : : "m"(c) : "memory");
}

__attribute__((target("amx-tile"), noinline)) static void configure_eight(int rows) {
    _Alignas(64) configuration c = all_tiles(rows);
    __asm__ volatile(CONFIGURE : : "m"(*(const uint64_t *)(const void *)&c));
}

static void check_trap(void) {
    uint8_t config[64];
    memset(config, 0xa5, sizeof config);
    memset(config, 0, 8), config[0] = 1;
    configure_badly(config);
    ok(amx_trap_fault != NULL, "eight bytes of the configuration are not enough: %s",
       amx_trap_fault != NULL ? amx_trap_fault : "no fault");
    amx_trap_fault = NULL;
    memset(config + 8, 0, sizeof config - 8);
    configure_badly(config);
    ok(amx_trap_fault != NULL, "nor are they with zeros behind them: %s",
       amx_trap_fault != NULL ? amx_trap_fault : "no fault");
    amx_trap_fault = NULL;
    paint_stack();
    configure_whole(16);
    ok(amx_trap_fault == NULL, "with the whole structure as operand every tile is configured: %s",
       amx_trap_fault == NULL ? "no fault" : amx_trap_fault);
    amx_trap_fault = NULL;
    paint_stack();
    configure_eight(16);
    note("with eight bytes as operand, this compiler: %s",
         amx_trap_fault == NULL ? "stores all the same" : amx_trap_fault);
    amx_trap_fault = NULL;
}

static void kernels(bool native) {
    if (!native) check_trap();
    scratch = guarded(SINKPROOF_SCRATCH);
    static const size_t cols[] = {32, 64, 96, 2880};
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
        check_order(SINKPROOF_PANEL_BF16, cols[i]);
        check_order(SINKPROOF_PANEL_MXFP4, cols[i]);
    }
    check_order(SINKPROOF_PANEL_BF16, 70); // a tail within a block
    check_ranges(SINKPROOF_PANEL_BF16);
    check_ranges(SINKPROOF_PANEL_MXFP4);
    _Static_assert(AMX_FEW == 4, "every number of few tokens, and one more");
    check_chunks(SINKPROOF_PANEL_BF16, 6240, (size_t[]){1, 2, 3, 4, 5, 17, 150, 0});
    check_chunks(SINKPROOF_PANEL_MXFP4, 6240, (size_t[]){1, 2, 3, 4, 5, 17, TOKENS, 0});
    check_chunks(SINKPROOF_PANEL_MXFP4, 4128, (size_t[]){47, 0});
    check_small(70);
    check_small(320);
    check_scales();
    check_far(-126, -110, 250);
    check_far(-126, -124, 191);
    check_far(-126, -90, 191);
    check_far(38, 40, 191);
    check_far(58, 61, 191);
    check_far(0, 3, 248);
    check_others();
    if (native) return;
    ok(amx_trap_fault == NULL, "no tile instruction would fault: %s",
       amx_trap_fault == NULL ? "none" : amx_trap_fault);
    ok(amx_trap_count[AMX_TDPBF16PS] > 10000 &&
           amx_trap_count[AMX_TILERELEASE] <= amx_trap_count[AMX_LDTILECFG],
       "the kernel ran on tiles: %lu configurations, %lu releases, %lu loads, %lu products, %lu "
       "stores",
       amx_trap_count[AMX_LDTILECFG], amx_trap_count[AMX_TILERELEASE],
       amx_trap_count[AMX_TILELOADD], amx_trap_count[AMX_TDPBF16PS],
       amx_trap_count[AMX_TILESTORED]);
}

int main(void) {
    const char *why = NULL;
    the_order();
    bool native = sinkproof_isa_runs(&kernels_amx, &why);
    if (native) {
        note("on this processor's tiles");
    } else if (sinkproof_isa_runs(&kernels_avx512, NULL)) {
        note("tiles in software: %s", why);
        amx_trap_install();
    } else {
        note("only the scalar order: the kernels need AVX-512");
        return tap_done();
    }
    tap_ran_on("amx", native);
    kernels(native);
    return tap_done();
}

#else

int main(void) {
    the_order();
    note("only the scalar order: the tiles are x86-64's");
    return tap_done();
}

#endif
