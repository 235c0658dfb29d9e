// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rows that are alike, computed again: the key from its definition (chosen columns, phases, signs,
// cells) in integers, so that no sum rounds, and the factors of the classes row by row. Cases: rows
// with few elements or none, numbers of columns just at a power of two, norms without a bound.
#include "tests/shared/stated.h"

static const uint64_t SEED = 20261123;

// ---- the key -----------------------------------------------------------------------------------

enum { SUMS = 32, MOST = 300 };

static uint64_t times(uint64_t x, int shift, uint64_t odd) {
    return (x ^ x >> shift) * odd;
}

static uint64_t scrambled(uint64_t x) {
    x = times(times(x, 31, UINT64_C(0x9e3779b97f4a7c15)), 29, UINT64_C(0xbf58476d1ce4e5b9));
    return x ^ x >> 32;
}

// 2^52 times the phase: the size of |8 m - 6| - 1, m in [1/2, 1) the significand, with x's sign.
static int64_t phase_of(double x) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    int64_t one = INT64_C(1) << 52, m = (int64_t)(pattern & ((uint64_t)one - 1)); // 2 m - 1
    int64_t size = llabs(4 * m - 2 * one) - one;
    return x < 0 ? -llabs(size) : llabs(size);
}

static int64_t fl(real x) {
    return (int64_t)floorl(x);
}

// The key of the elements that are numbers and not zero.
static uint64_t key_of(size_t n, const sinkproof_honest *x) {
    size_t elements = 0, octaves = 0, used = 0;
    for (size_t i = 0; i < n; i++) elements += isfinite(x[i].mid) && x[i].mid != 0;
    while (elements > (size_t)64 << octaves) octaves++;
    real sums[SUMS] = {0};
    for (size_t i = 0; i < n; i++) {
        uint64_t word = scrambled(i + 1), chosen = word >> 32 & ((UINT64_C(1) << octaves) - 1);
        if (!isfinite(x[i].mid) || x[i].mid == 0 || chosen != 0) continue;
        used++;
        for (int q = 0; q < SUMS; q++)
            sums[q] += (real)phase_of(x[i].mid) * (word >> q & 1 ? 1 : -1);
    }
    size_t few = used == 0 ? 1 : used > SUMS ? SUMS : used, bits = SUMS / few + (SUMS % few > 0);
    real cell = sqrtl((real)used / 3) * 4 / (real)(UINT64_C(1) << bits);
    uint64_t key = few;
    for (int q = 0; q < SUMS && used > 0; q++)
        key = scrambled(key ^ (uint64_t)fl(sums[q] * 0x1p-52L / cell));
    return key;
}

static void keys(void) {
    static const size_t lengths[] = {0,   1,   2,   3,   4,   5,   7,   8,   15,  16,
                                     17,  31,  32,  33,  63,  64,  65,  66,  100, 127,
                                     128, 129, 130, 192, 193, 255, 256, 257, 299};
    uint64_t state = SEED;
    size_t wrong = 0, compared = 0, same = 0;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        for (int i = 0; i < 24; i++) {
            size_t n = lengths[l];
            sinkproof_honest x[MOST + 1];
            uint64_t last = 0;
            for (size_t k = 0; k < n; k++) {
                double c = draw_gauss(&state) * ldexp(1, (int)draw_below(&state, 9));
                if (i % 4 == 3 && draw_below(&state, 5) == 0)
                    c = (const double[]){0, INFINITY, NAN}[draw_below(&state, 3)];
                if (i % 8 == 2) c = draw_dyadic(&state); // ends and middles of octaves
                if (i == 6) c = 0;
                x[k] = sinkproof_exact_set(c);
            }
            for (int beyond = 0; beyond < 2; beyond++) { // what stands behind the row is not read
                x[n] = sinkproof_exact_set(beyond ? 1.3 : -0x1p-3);
                uint64_t key = alike_row_key(n, x);
                wrong += key != key_of(n, x), compared++;
                same += beyond && key == last, last = key;
            }
        }
    }
    ok(wrong == 0 && 2 * same == compared,
       "stat.equal-rows the key as stated worst=%zu bound=0 of=%zu", wrong, compared);
}

// ---- classes -----------------------------------------------------------------------------------

enum { ROWS = 9 };

// Sums over classes of squared sums, over the sum of squares: whole numbers, which nothing rounds.
static double raised(size_t n, const sinkproof_row *rows, int which) {
    real classes = 0, plain = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            const sinkproof_row *a = &rows[i], *b = &rows[k];
            if (a->key != b->key) continue;
            real product = which == 0   ? (real)a->model * b->model
                           : which == 1 ? (real)a->seen * b->seen
                                        : (real)a->weight * b->weight;
            classes += product, plain += i == k ? product : 0;
        }
    }
    return plain == 0 ? 1 : (double)(classes / plain);
}

static size_t largest_of(size_t n, const sinkproof_row *rows) {
    size_t largest = 1;
    for (size_t i = 0; i < n; i++) {
        size_t members = 0;
        for (size_t k = 0; k < n; k++) members += rows[k].key == rows[i].key;
        if (members > largest) largest = members;
    }
    return largest;
}

// A norm, some of them 0; those of row sets of kind 1 add up to less than 1.
static float norm(uint64_t *state, int kind) {
    float whole = draw_below(state, 4) == 0 ? 0 : (float)draw_below(state, 32);
    return kind == 1 ? whole * 0x1p-9f : whole;
}

// Freed memory that an allocation of n rows may be given again holds the same key behind them.
static void leave_behind(size_t n, uint64_t key) {
    size_t size = n * sizeof(sinkproof_row) + sizeof key;
    unsigned char *volatile bytes = malloc(size);
    must(bytes != NULL);
    for (size_t i = 0; i < sizeof key; i++)
        ((volatile unsigned char *)bytes)[n * sizeof(sinkproof_row) + i] =
            (unsigned char)(key >> 8 * i);
    free(bytes);
}

static void classes(void) {
    uint64_t state = SEED + 1;
    size_t other = 0, several = 0;
    double worst = 0;
    for (int i = 0; i < 2000; i++) {
        size_t n = draw_below(&state, ROWS + 1), kinds = 1 + draw_below(&state, 7);
        sinkproof_row rows[ROWS];
        uint64_t top = 0;
        for (size_t r = 0; r < n; r++) {
            rows[r] = (sinkproof_row){.key = draw_below(&state, kinds) << (i % 2 ? 60 : 0)};
            rows[r].model = norm(&state, i % 3), rows[r].seen = norm(&state, i % 3);
            rows[r].weight = norm(&state, i % 3);
            if (i % 5 == 0) rows[r].seen = 0;
            if (rows[r].key > top) top = rows[r].key;
        }
        leave_behind(n, top);
        sinkproof_alike a;
        must(sinkproof_rows_alike(n, rows, &a));
        other += a.largest != (double)largest_of(n, rows), several += a.largest > 1;
        const double found[] = {a.model, a.seen, a.weight};
        for (int w = 0; w < 3; w++) // one division
            worst = sinkproof_keep_worst(worst, fabs(found[w] / raised(n, rows, w) - 1));
    }
    ok(other == 0 && worst <= 0x1p-52 && several > 100,
       "stat.equal-rows what classes raise the sums by worst=%.3g bound=%.3g, largest class "
       "other=%zu",
       worst, 0x1p-52, other);
}

static void few(void) {
    sinkproof_alike a;
    must(sinkproof_rows_alike(0, NULL, &a));
    bool none = a.largest == 1 && a.model == 1 && a.seen == 1 && a.weight == 1;
    sinkproof_row rows[2] = {{1, 3, 4, 5}, {2, 1, 2, 3}};
    must(sinkproof_rows_alike(2, rows, &a));
    ok(none && a.largest == 1 && a.model == 1 && a.seen == 1 && a.weight == 1,
       "stat.equal-rows no two rows are alike: nothing is raised");
    // (3 + 1)^2 / (9 + 1), (4 + 4)^2 / (16 + 16), no weight
    rows[0] = (sinkproof_row){7, 3, 4, 0}, rows[1] = (sinkproof_row){7, 1, 4, 0};
    must(sinkproof_rows_alike(2, rows, &a));
    ok(a.largest == 2 && a.model == 1.6 && a.seen == 2 && a.weight == 1,
       "stat.equal-rows two rows that are alike: model=%g seen=%g weight=%g", a.model, a.seen,
       a.weight);
    rows[0].model = INFINITY, rows[0].seen = NAN, rows[0].weight = 0x1p-80f;
    must(sinkproof_rows_alike(2, rows, &a));
    ok(a.largest == 2 && a.model == 1 && a.seen == 1 && a.weight == 1,
       "stat.equal-rows norms without a bound raise nothing: %g, %g, %g", a.model, a.seen,
       a.weight);
}

int main(void) {
    keys();
    classes();
    few();
    return tap_done();
}
