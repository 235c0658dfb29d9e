// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// A row of sums, in vectors where its operands are known, has the sets of each sum alone, bit for
// bit: sums of any size, cancelled ones, sums that may overflow, with a bias and without.
#include "proofs/bounds/sum_sets.h"
#include "tests/shared/bounds_engine.h"

enum { LONGEST = 75 };

// S, A and Q of a sum: |S| <= A, and Q <= A^2.
static void draw_sum(uint64_t *state, double *mid, double *abs, double *square) {
    int exponent = draw(state) % 16 == 0 ? (int)(draw(state) % 300) - 150 : 0;
    *abs = ldexp(fabs(draw_gauss(state)), exponent);
    *mid = *abs * (2 * draw_unit(state) - 1) * (draw(state) % 4 == 0 ? 0x1p-20 : 1);
    *square = *abs * *abs * draw_unit(state);
    if (draw(state) % 30 == 0) *mid = *abs = *square = 0;
    if (draw(state) % 60 == 0) *mid = NAN;
    if (draw(state) % 60 == 0) *abs = 0x1p127, *mid = -0x1p126;
}

static void rows_of(const char *name) {
    sinkproof_policy policy = policy_named(name);
    sinkproof_setting s = sinkproof_setting_for(&policy, 1000, STANDARD_RATE);
    double mid[LONGEST], abs[LONGEST], square[LONGEST], freedom[LONGEST], b_r[LONGEST];
    uint64_t state = 20261130;
    size_t apart = 0, all = 0, unbounded = 0;
    for (size_t row = 0; row < 600; row++) {
        size_t n = row % (LONGEST + 1);
        for (size_t r = 0; r < n; r++) {
            draw_sum(&state, &mid[r], &abs[r], &square[r]);
            b_r[r] = draw_gauss(&state), freedom[r] = abs[r] / 1024;
        }
        sums c = {.mid = mid, .abs = abs, .square = square};
        if (row % 7 == 0) c.flushed = freedom; // no longer plain
        sinkproof_planes x = {.rows = 1, .cols = 1 + draw_below(&state, 5000), .known = true};
        const double *b = row % 2 == 0 ? b_r : NULL;
        row_terms t = row_error_terms(&s, &x, (double)x.cols, row % 3 == 0, b != NULL, false);
        sinkproof_honest out_r[LONGEST];
        sums_row(&s, &c, &t, 0, n, b, out_r);
        for (size_t r = 0; r < n; r++) {
            sinkproof_honest one = sum_set(&s, &t, b != NULL ? b[r] : 0, &c, r);
            all++, unbounded += sinkproof_is_unknown(&one);
            apart += memcmp(&one, &out_r[r], sizeof one) != 0;
        }
    }
    ok(apart == 0 && all > 0 && (policy.inside == SINKPROOF_F64 || unbounded > 0),
       "bound.linear %s: of %zu sets %zu have other bits, %zu are unbounded", name, all, apart,
       unbounded);
}

int main(void) {
    rows_of("f32");
    rows_of("real-f64");
    rows_of("bf16");
    rows_of("flash-bf16");
    rows_of("f32,ftz=none");
    return tap_done();
}
