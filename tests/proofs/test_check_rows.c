// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The check of a product's row by GMP: the least ball that encloses holds, the least change of it
// is found broken, and what cannot be checked is said.
#include "proofs/truth/check_rows.h"
#include "tests/shared/reference.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

enum { COLS = 12, ROWS = 3 };

// [low, high] as a ball whose ends are exactly these: its radius is a number of 2^-12 below 2^30.
static void set_ends(arb_t y, const arf_t low, const arf_t high) {
    arf_t half;
    arf_init(half);
    arf_add(arb_midref(y), low, high, ARF_PREC_EXACT, ARF_RND_DOWN);
    arf_mul_2exp_si(arb_midref(y), arb_midref(y), -1);
    arf_sub(half, high, low, ARF_PREC_EXACT, ARF_RND_DOWN);
    arf_mul_2exp_si(half, half, 11);
    mag_set_ui_2exp_si(arb_radref(y), (ulong)arf_get_si(half, ARF_RND_DOWN), -12);
    arf_clear(half);
}

// Weights and radii of few bits, so that the ends of the product fit a ball exactly.
static void least_balls(void) {
    uint64_t state = 91;
    size_t wrong = 0, kept = 0, missed = 0, rows = 0;
    for (int round = 0; round < 200; round++) {
        double w[ROWS * COLS], b[ROWS];
        fill_reals(&state, 2, ROWS * COLS, w);
        fill_reals(&state, 2, ROWS, b);
        sinkproof_matrix weight = matrix_of(w, 1, ROWS, COLS), bias = matrix_of(b, 1, 1, ROWS);
        arb_ptr x = ball_vector(COLS);
        arb_t y;
        arf_t low, high, term;
        arb_init(y);
        arf_init(low), arf_init(high), arf_init(term);
        size_t r = draw_below(&state, ROWS);
        bool biased = draw(&state) % 2;
        arf_set_d(low, biased ? b[r] : 0);
        for (size_t c = 0; c < COLS; c++) {
            w[r * COLS + c] = (double)draw_below(&state, 64) - 32;
            arb_set_d(x + c, draw_number(&state, 53, 30));
            mag_set_ui_2exp_si(arb_radref(x + c), draw_below(&state, 64), -12);
            arf_set_d(term, w[r * COLS + c]);
            arf_addmul(low, term, arb_midref(x + c), ARF_PREC_EXACT, ARF_RND_DOWN);
        }
        arf_set(high, low);
        for (size_t c = 0; c < COLS; c++) {
            arf_set_mag(term, arb_radref(x + c));
            arf_t size;
            arf_init(size);
            arf_set_d(size, fabs(w[r * COLS + c]));
            arf_addmul(high, term, size, ARF_PREC_EXACT, ARF_RND_DOWN);
            arf_submul(low, term, size, ARF_PREC_EXACT, ARF_RND_DOWN);
            arf_clear(size);
        }
        rows++;
        const sinkproof_matrix *with = biased ? &bias : NULL;
        set_ends(y, low, high);
        wrong += truth_check_row(&weight, with, r, x, y) != TRUTH_ROW_HOLDS;
        for (int side = -1; side <= 1; side += 2) { // moved by less than a part in 2^500
            arb_t moved;
            arb_init(moved);
            arb_set(moved, y);
            arf_set_si_2exp_si(term, side, -500);
            arf_add(arb_midref(moved), arb_midref(moved), term, ARF_PREC_EXACT, ARF_RND_DOWN);
            missed += truth_check_row(&weight, with, r, x, moved) != TRUTH_ROW_BROKEN;
            arb_clear(moved);
        }
        arb_add_error_2exp_si(y, -20);
        kept += truth_check_row(&weight, with, r, x, y) == TRUTH_ROW_HOLDS;
        arb_clear(y);
        arf_clear(low), arf_clear(high), arf_clear(term);
        ball_vector_release(x, COLS);
    }
    ok(wrong == 0 && kept == rows,
       "slices.exact rows=%zu: the least ball holds, refused=%zu bound=0 seed=91", rows, wrong);
    ok(missed == 0,
       "slices.exact rows=%zu: moved by 2^-500 to either side, missed=%zu bound=0 seed=91", rows,
       missed);
}

static void what_cannot_be_checked(void) {
    double w[] = {1, 2, 3, INFINITY};
    sinkproof_matrix weight = matrix_of(w, 1, 2, 2);
    arb_ptr x = ball_vector(2);
    arb_t y;
    arb_init(y);
    arb_set_d(x, 5), arb_set_d(x + 1, 7), arb_set_d(y, 19);
    ok(truth_check_row(&weight, NULL, 0, x, y) == TRUTH_ROW_HOLDS,
       "slices.exact 1 * 5 + 2 * 7 = 19");
    ok(truth_check_row(&weight, NULL, 1, x, y) == TRUTH_ROW_UNCHECKED,
       "slices.exact an infinite weight is not checked");
    arb_zero_pm_inf(y);
    ok(truth_check_row(&weight, NULL, 0, x, y) == TRUTH_ROW_HOLDS,
       "slices.exact the whole line holds");
    arb_indeterminate(y);
    ok(truth_check_row(&weight, NULL, 0, x, y) == TRUTH_ROW_BROKEN,
       "slices.exact NaN holds nothing");
    arb_set_d(y, 19);
    arb_set_d(x + 1, 1), arb_mul_2exp_si(x + 1, x + 1, -(1 << 25));
    ok(truth_check_row(&weight, NULL, 0, x, y) == TRUTH_ROW_UNCHECKED,
       "slices.exact exponents 2^25 apart are not checked");
    arb_zero_pm_inf(x + 1);
    ok(truth_check_row(&weight, NULL, 0, x, y) == TRUTH_ROW_UNCHECKED,
       "slices.exact an infinite input is not checked");
    arb_clear(y);
    ball_vector_release(x, 2);
}

int main(void) {
    least_balls();
    what_cannot_be_checked();
    flint_cleanup();
    return tap_done();
}
