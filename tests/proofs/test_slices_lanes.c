// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The passes over a row for plain vectors, for AVX2 and for AVX-512: the same bits, and the
// products of a panel are those of integers. Rows of all lengths around the sixteen lanes, of every
// spread.
#include "base/splitmix.h"
#include "proofs/truth/slices_lanes.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 70, ROUNDS = 4000, SEED = 9 };

static double draw_weight(uint64_t *state, int spread) {
    uint64_t draw = sinkproof_draw(state);
    double size =
        ldexp((double)(draw >> 40 | 1), (int)(draw % (2 * (uint64_t)spread + 1)) - spread);
    if (draw >> 20 & 1) size = 0;
    return draw >> 21 & 1 ? -size : size;
}

typedef struct seen {
    double rest_c[COLS], h_c[COLS], up_c[COLS], sizes, dot_i[SLICE_FEW_TOKENS];
    int exponent, up_exponent;
    slice_found found;
    uint32_t left_at[COLS];
    slice_outcome taken, bounded, dotted;
} seen;

static void pass(const slice_lanes *lanes, const double *w_c, size_t cols, int room,
                 const slice_radii *of, seen *s) {
    slice_radii radii = *of;
    memset(s, 0, sizeof *s);
    memcpy(s->rest_c, w_c, cols * sizeof *w_c);
    s->sizes = lanes->sum_of_sizes(w_c, cols);
    s->bounded = lanes->bound(w_c, s->sizes, cols, room, s->up_c, &s->up_exponent, NULL);
    radii.dot_i = s->dot_i;
    s->dotted = lanes->bound(w_c, s->sizes, cols, room, NULL, &s->up_exponent, &radii);
    slice_found found = {.left_at = s->left_at};
    s->taken = lanes->take(s->rest_c, &s->sizes, cols, room, s->h_c, &s->exponent, &found);
    s->found = (slice_found){.count = found.count, .left = found.left};
}

// The products of the bounds with the radii, and the places where something is left.
static bool is_right(const seen *s, const double *w_c, size_t cols, const slice_radii *radii) {
    size_t left = 0;
    bool right = s->bounded == s->dotted;
    for (size_t c = 0; c < cols && s->bounded == SLICE_TAKEN; c++)
        right = right && ldexp(s->up_c[c], s->up_exponent) >= fabs(w_c[c]);
    for (size_t i = 0; i < radii->tokens && s->bounded == SLICE_TAKEN; i++) {
        double dot = 0;
        for (size_t c = 0; c < cols; c++)
            dot += s->up_c[c] * radii->radius_ic[i * radii->stride + c];
        right = right && dot == s->dot_i[i];
    }
    for (size_t c = 0; c < cols && s->taken == SLICE_TAKEN; c++)
        if (s->rest_c[c] != 0) right = right && left < s->found.left && s->left_at[left++] == c;
    return right && (s->taken != SLICE_TAKEN || left == s->found.left);
}

static void passes(const slice_lanes *lanes, const char *name) {
    uint64_t state = SEED;
    size_t apart = 0, wrong = 0, taken = 0;
    static double radius_ic[SLICE_FEW_TOKENS * 80 + SLICE_LANES];
    seen plain, wide;
    for (size_t round = 0; round < ROUNDS; round++) {
        double w_c[COLS];
        size_t cols = 1 + round % COLS,
               stride = (cols + SLICE_LANES - 1) / SLICE_LANES * SLICE_LANES;
        int spread = (int)(round % 7) * 40, room = 14 + (int)(round % 3) * 10;
        slice_radii radii = {
            .tokens = 1 + round % SLICE_FEW_TOKENS, .radius_ic = radius_ic, .stride = stride};
        for (size_t k = 0; k < sizeof radius_ic / sizeof *radius_ic; k++)
            radius_ic[k] = k < radii.tokens * stride ? 0 : NAN; // not to be read
        for (size_t c = 0; c < cols; c++) w_c[c] = draw_weight(&state, spread);
        for (size_t i = 0; i < radii.tokens; i++)
            for (size_t c = 0; c < cols; c++)
                radius_ic[i * stride + c] = (double)(sinkproof_draw(&state) >> 45);
        if (round % 97 == 0) w_c[round % cols] = round % 2 ? NAN : INFINITY;
        pass(&slice_lanes_plain, w_c, cols, room, &radii, &plain);
        pass(lanes, w_c, cols, room, &radii, &wide);
        apart += memcmp(plain.h_c, wide.h_c, sizeof plain.h_c) != 0 ||
                 memcmp(plain.rest_c, wide.rest_c, sizeof plain.rest_c) != 0 ||
                 memcmp(plain.up_c, wide.up_c, sizeof plain.up_c) != 0 ||
                 memcmp(&plain.sizes, &wide.sizes, sizeof plain.sizes) != 0 ||
                 memcmp(plain.dot_i, wide.dot_i, sizeof plain.dot_i) != 0 ||
                 memcmp(plain.left_at, wide.left_at, sizeof plain.left_at) != 0 ||
                 plain.exponent != wide.exponent || plain.up_exponent != wide.up_exponent ||
                 plain.found.count != wide.found.count || plain.found.left != wide.found.left ||
                 plain.taken != wide.taken || plain.bounded != wide.bounded;
        wrong += !is_right(&plain, w_c, cols, &radii);
        taken += plain.taken == SLICE_TAKEN;
    }
    ok(apart == 0 && wrong == 0 && taken > ROUNDS / 2,
       "slices.exact %s rows=%d slices=%zu apart=%zu wrong=%zu bound=0 seed=%d", name, ROUNDS,
       taken, apart, wrong, SEED);
}

// Integers of 20 bits times digits of 20 bits: the sums are those of integers.
static void products(const slice_lanes *lanes, const char *name) {
    uint64_t state = SEED;
    size_t wrong = 0, sums = 0;
    const size_t panel = lanes->panel;
    static double h_rc[SLICE_PANEL_ROWS_MOST * COLS], panel_ck[COLS * SLICE_PANEL_MOST];
    for (size_t round = 0; round < 400; round++) {
        double sum_rk[SLICE_PANEL_ROWS_MOST * SLICE_PANEL_MOST];
        size_t cols = 1 + round % COLS, rows = 1 + round % lanes->panel_rows;
        size_t columns = 1 + round / lanes->panel_rows % panel;
        for (size_t k = 0; k < rows * cols; k++)
            h_rc[k] = (double)(int64_t)(sinkproof_draw(&state) >> 44) - 0x1p19;
        for (size_t k = 0; k < cols * panel; k++)
            panel_ck[k] = (double)(int64_t)(sinkproof_draw(&state) >> 44) - 0x1p19;
        lanes->multiply(h_rc, rows, cols, panel_ck, columns, sum_rk);
        for (size_t r = 0; r < rows; r++)
            for (size_t k = 0; k < columns; k++, sums++) {
                int64_t sum = 0;
                for (size_t c = 0; c < cols; c++)
                    sum += (int64_t)h_rc[r * cols + c] * (int64_t)panel_ck[c * panel + k];
                wrong += sum_rk[r * panel + k] != (double)sum;
            }
    }
    ok(wrong == 0, "slices.exact %s panels: sums=%zu wrong=%zu bound=0 seed=%d", name, sums, wrong,
       SEED);
}

int main(void) {
    static const char *const names[SLICE_LANES_MOST] = {"plain", "avx2", "avx512"};
    const slice_lanes *of[SLICE_LANES_MOST];
    size_t lanes = slice_lanes_all(of);
    for (size_t k = 0; k < lanes; k++) {
        passes(of[k], names[k]);
        if (of[k]->multiply != NULL) products(of[k], names[k]);
    }
    return tap_done();
}
