// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// One repeated token: the terms that are added to the scores overwrite what the array held before,
// at distance 0 too; rotary scores against a query that is rotated, not against the expanded
// formula; and the bound of rotary scores. 0.01 CPU seconds.
#include "proofs/truth/repeat.h"
#include "tests/shared/tap.h"

enum { N = 9, HALF = 4, BITS = 128 };

static void fill(arb_ptr g_d) {
    for (int d = 0; d < N; d++) arb_set_ui(g_d + d, 7);
}

static void alibi(void) {
    arb_ptr g = _arb_vec_init(N);
    arb_t slope, expected;
    balls_init(slope, expected);
    int apart = 0;
    for (int k = 0; k < 4; k++) {
        arb_set_ui(slope, 3);
        arb_mul_2exp_si(slope, slope, -k);
        fill(g);
        repeat_alibi(g, N, slope, BITS);
        for (int d = 0; d < N; d++) {
            arb_mul_si(expected, slope, -d, BITS);
            apart += !arb_equal(g + d, expected);
        }
    }
    ok(apart == 0, "repeat.alibi -d slope, whatever stood there: %d distances worst=%d bound=0",
       4 * N, apart);
    balls_clear(slope, expected);
    _arb_vec_clear(g, N);
}

// The score of a query d positions after its key: pair p of the query turned by d base^(-p / half).
static void turned(arb_t score, int d, arb_srcptr q_c, arb_srcptr k_c, ulong base) {
    arb_t angle, sine, cosine, x;
    balls_init(angle, sine, cosine, x);
    arb_zero(score);
    for (int p = 0; p < HALF; p++) {
        arb_set_ui(angle, base);
        arb_root_ui(angle, angle, HALF, BITS);
        arb_pow_ui(angle, angle, (ulong)p, BITS);
        arb_inv(angle, angle, BITS);
        arb_mul_ui(angle, angle, (ulong)d, BITS);
        arb_sin_cos(sine, cosine, angle, BITS);
        arb_mul(x, q_c + p, cosine, BITS);
        arb_submul(x, q_c + p + HALF, sine, BITS);
        arb_addmul(score, x, k_c + p, BITS);
        arb_mul(x, q_c + p + HALF, cosine, BITS);
        arb_addmul(x, q_c + p, sine, BITS);
        arb_addmul(score, x, k_c + p + HALF, BITS);
    }
    arb_set_ui(x, 2 * HALF);
    arb_rsqrt(x, x, BITS);
    arb_mul(score, score, x, BITS);
    balls_clear(angle, sine, cosine, x);
}

// Two numbers that are known to 2^-100.
static int apart_of(const arb_t x, const arb_t y) {
    return !arb_overlaps(x, y) || arb_rel_accuracy_bits(x) < 100 || arb_rel_accuracy_bits(y) < 100;
}

static void rotary(void) {
    arb_ptr g = _arb_vec_init(N), q = _arb_vec_init(2 * HALF), k = _arb_vec_init(2 * HALF);
    arb_t expected;
    arb_init(expected);
    int apart = 0;
    for (int which = 0; which < 3; which++) {
        for (int c = 0; c < 2 * HALF; c++) {
            arb_set_si(q + c, (5 * c + 3 * which + 2) % 17 - 8);
            arb_set_si(k + c, (7 * c + 4 * which) % 17 - 8);
        }
        fill(g);
        repeat_rotary(g, N, HALF, q, k, 10000, BITS);
        for (int d = 0; d < N; d++) {
            turned(expected, d, q, k, 10000);
            apart += apart_of(g + d, expected);
        }
    }
    ok(apart == 0, "repeat.rope the turned query's score at %d distances: worst=%d bound=0", 3 * N,
       apart);
    arb_clear(expected);
    _arb_vec_clear(g, N);
    _arb_vec_clear(q, 2 * HALF);
    _arb_vec_clear(k, 2 * HALF);
}

// 1 / (1 + (t - 1) e^(-2 xi)), of the first row too, where one key has all.
static void bound(void) {
    arb_ptr b = _arb_vec_init(N);
    arb_t xi, expected;
    balls_init(xi, expected);
    int apart = 0;
    for (int k = 0; k < 4; k++) {
        arb_set_si(xi, k);
        arb_mul_2exp_si(xi, xi, -1);
        fill(b);
        repeat_bound(b, N, xi, BITS);
        for (int t = 1; t <= N; t++) {
            arb_set_si(expected, -k);
            arb_exp(expected, expected, BITS);
            arb_mul_si(expected, expected, t - 1, BITS);
            arb_add_ui(expected, expected, 1, BITS);
            arb_inv(expected, expected, BITS);
            apart += apart_of(b + t - 1, expected);
        }
    }
    ok(apart == 0, "repeat.rope the bound of %d rows: worst=%d bound=0", 4 * N, apart);
    balls_clear(xi, expected);
    _arb_vec_clear(b, N);
}

int main(void) {
    alibi();
    rotary();
    bound();
    return tap_done();
}
