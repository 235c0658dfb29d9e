// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// What `sinkproof sinks` measures with proofs/bounds/mixing.c: norms of whole rows, path sums
// against a sum over every path, storage in few bits against its definition, and the bound of a
// cache against its enclosure. Also: the bound by paths holds for attention weights that stay the
// same, and only for these.
#include "base/splitmix.h"
#include "proofs/bounds/mixing.h"
#include "proofs/bounds/worst.h"
#include "proofs/truth/truth.h"
#include "tests/shared/only.h"
#include "tests/shared/tap.h"

#include <math.h>

enum { SEED = 1, BITS = 128 };

static double uniform(uint64_t *state) { // in [-1, 1), of 20 bits
    return (double)(sinkproof_draw(state) >> 43) * 0x1p-20 - 1;
}

// ---- rows --------------------------------------------------------------------------------------

static void rows(void) {
    const double x[] = {3, -4, 12, 84, 0}, y[] = {2, -2, 10, 84, 0}, bad[] = {NAN, 0, 0, 0, 0};
    sinkproof_moved moved = sinkproof_row_distance(5, x, y), same = sinkproof_row_distance(5, x, x);
    ok(moved.off == 3 && moved.size == 85, "mix.perturb |x - y| = 3, |x| = 85: %g, %g", moved.off,
       moved.size);
    ok(same.off == 0 && same.size == 85, "mix.perturb equal rows are 0 apart");
    moved = sinkproof_row_distance(5, x, bad);
    ok(isnan(moved.off) && moved.size == 85, "mix.perturb a row that is no number is no distance");
}

// ---- paths -------------------------------------------------------------------------------------

enum { TOKENS = 6, LAYERS = 4 };
typedef double maps[LAYERS][TOKENS * TOKENS];

// Every path from token j up to row i of layer l, one after the other.
static double walk(maps a, size_t l, size_t i, size_t j) {
    if (l == 0) return i == j;
    double sum = walk(a, l - 1, i, j); // it stays where it is
    for (size_t k = 0; k <= i; k++) sum += a[l - 1][i * TOKENS + k] * walk(a, l - 1, k, j);
    return sum;
}

static void paths(void) {
    maps a;
    uint64_t state = SEED;
    size_t wrong = 0, compared = 0;
    for (size_t l = 0; l < LAYERS; l++) // of 4 bits: every sum is exact; NAN: not to be read
        for (size_t k = 0; k < TOKENS * TOKENS; k++)
            a[l][k] = k % TOKENS > k / TOKENS ? NAN : (double)(sinkproof_draw(&state) % 16) / 16;
    for (size_t j = 0; j < TOKENS; j++) {
        double p_i[TOKENS] = {0};
        p_i[j] = 1;
        for (size_t l = 0; l < LAYERS; l++) {
            sinkproof_path_sums(TOKENS, a[l], p_i);
            for (size_t i = 0; i < TOKENS; i++, compared++)
                wrong += !(p_i[i] == walk(a, l + 1, i, j));
        }
    }
    ok(wrong == 0, "mix.paths sums over all paths, walked: entries=%zu unequal=%zu", compared,
       wrong);
}

// One head over the states x_0, x_1 of one coordinate, its scores 8 x_1 x_j, its value the state.
static double row_1(double x_0, double x_1, double *weight) {
    double e_0 = exp(8 * x_1 * x_0), e_1 = exp(8 * x_1 * x_1);
    *weight = e_0 / (e_0 + e_1);
    return x_1 + *weight * x_0 + (1 - *weight) * x_1;
}
static void following_weights(void) {
    double weight, later;
    double before = row_1(0, 1, &weight), after = row_1(2, 1, &later);
    ok(fabs(after - before) > 1000 * weight * 2 * 0.5,
       "mix.paths refuted where the weights follow the states: moved %.4f, the path carries %.4f",
       after - before, 2 * weight);
}

// ---- few bits ----------------------------------------------------------------------------------

static void whole_numbers(void) {
    const double x[] = {127, 2.5, 3.5, -0.5, -1.5, 0}, want[] = {127, 2, 4, 0, -2, 0};
    const double four[] = {-14, 3, 5, 7}, want_four[] = {-14, 4, 4, 8}, zeros[3] = {0};
    double out[6];
    size_t wrong = sinkproof_quantise(8, 6, x, out) != 1;
    for (size_t i = 0; i < 6; i++) wrong += out[i] != want[i];
    ok(wrong == 0, "bound.quantized-cache 8 bits: a scale of 1, ties to even");
    wrong = sinkproof_quantise(4, 4, four, out) != 2;
    for (size_t i = 0; i < 4; i++) wrong += out[i] != want_four[i];
    ok(wrong == 0, "bound.quantized-cache 4 bits: a scale of 2, ties to even");
    wrong = sinkproof_quantise(8, 3, zeros, out) != 0;
    for (size_t i = 0; i < 3; i++) wrong += out[i] != 0;
    ok(wrong == 0, "bound.quantized-cache zeros are kept as zeros");
}

static void few_bits(int bits) {
    enum { COUNT = 64 };
    uint64_t state = SEED;
    double worst = 0;
    for (size_t k = 0; k < 200; k++) {
        double x[COUNT], out[COUNT];
        for (size_t i = 0; i < COUNT; i++) x[i] = ldexp(uniform(&state), (int)(k % 40) - 20);
        double most = sinkproof_quantise_most(bits, sinkproof_quantise(bits, COUNT, x, out));
        for (size_t i = 0; i < COUNT; i++) // exact: both have few bits, or are near each other
            worst = sinkproof_keep_worst(worst, fabs(x[i] - out[i]) / most);
    }
    ok(worst <= 1 && worst > 0.99, "bound.quantized-cache %d bits: worst=%.6f bound=1 seed=%d",
       bits, worst, SEED);
}

// All terms are positive: each of n is within 3 roundings of expm1 and products, and a sum adds n.
static void enclosed_bound(void) {
    enum { KEYS = 40 };
    uint64_t state = SEED;
    double worst = 0, unit = 0x1p-53, alpha[KEYS], delta[KEYS], eps[KEYS];
    arb_t values, moved, t, u;
    balls_init(values, moved, t, u);
    for (size_t k = 0; k < 50; k++) {
        double sink = fabs(uniform(&state)), most = ldexp(1 + fabs(uniform(&state)), (int)(k % 9));
        arb_zero(values);
        arb_zero(moved);
        for (size_t j = 0; j < KEYS; j++) {
            alpha[j] = fabs(uniform(&state)) / KEYS;
            delta[j] = j % 5 == 0 ? 0 : ldexp(fabs(uniform(&state)), -(int)(j % 20));
            eps[j] = j % 5 == 0 ? 0 : fabs(uniform(&state));
            arb_set_d(t, alpha[j]);
            arb_set_d(u, eps[j]);
            arb_addmul(values, t, u, BITS);
            arb_set_d(u, delta[j]);
            arb_expm1(u, u, BITS);
            arb_addmul(moved, t, u, BITS);
        }
        arb_set_d(t, sink);
        arb_sub_ui(t, t, 2, BITS);
        arb_neg(t, t);
        arb_set_d(u, most);
        arb_mul(t, t, u, BITS);
        arb_addmul(values, t, moved, BITS);
        arb_set_d(u, sinkproof_cache_bound(KEYS, alpha, delta, eps, sink, most));
        arb_sub(t, u, values, BITS);
        arb_div(t, t, values, BITS);
        arb_abs(t, t);
        double off = arf_get_d(arb_midref(t), ARF_RND_UP) + mag_get_d(arb_radref(t));
        worst = sinkproof_keep_worst(worst, off / ((KEYS + 8) * unit));
    }
    ok(worst <= 1, "bound.quantized-cache its evaluation: worst=%.3g bound=1 seed=%d", worst, SEED);
    balls_clear(values, moved, t, u);
}

// A row of two keys with values +most and -most: every pair of score errors up to delta stays
// within the row-wise bound, and the worst pair, at weights of e^delta to 1, reaches it.
static void row_bound(void) {
    uint64_t state = SEED;
    double worst = 0, reached = 0, beyond = 0;
    for (size_t k = 0; k < 20000; k++) {
        double delta[2] = {0, 0}, eps[2] = {0, 0}, most = 3;
        double size = ldexp(1 + fabs(uniform(&state)), (int)(k % 8) - 4);
        double s0 = k % 2 == 0 ? -size : 8 * uniform(&state); // the score of key 0 over key 1's
        double off0 = k % 2 == 0 ? size : size * uniform(&state);
        double off1 = k % 2 == 0 ? -size : size * uniform(&state);
        double before = 1 / (1 + exp(-s0)), after = 1 / (1 + exp(-(s0 + off0 - off1)));
        double alpha[2] = {after, 1 - after};
        delta[0] = fabs(off0);
        delta[1] = fabs(off1);
        double bound = sinkproof_cache_row_bound(2, alpha, delta, eps, most);
        double error = fabs(most * (2 * after - 1) - most * (2 * before - 1));
        worst = sinkproof_keep_worst(worst, error / (bound + 32 * 0x1p-53 * most));
        reached = fmax(reached, error / bound);
        beyond += error > 2 * most * tanh(size / 4); // half of the exponent would be false
        if (bound > 2 * most) worst = INFINITY;
    }
    ok(worst <= 1 && reached > 0.999,
       "bound.quantized-cache row-wise: worst=%.6f bound=1 reached=%.6f", worst, reached);
    ok(beyond > 0, "bound.quantized-cache refuted with half the exponent, row-wise: %.0f rows",
       beyond);
}

int main(int argc, char **argv) {
    (void)argc;
    only_ids = argv + 1;
    if (is_asked("mix.perturb")) rows();
    if (is_asked("mix.paths")) {
        paths();
        following_weights();
    }
    if (is_asked("bound.quantized-cache")) {
        whole_numbers();
        few_bits(8);
        few_bits(4);
        enclosed_bound();
        row_bound();
    }
    return tap_done();
}
