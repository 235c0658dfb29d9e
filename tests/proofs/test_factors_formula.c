// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Factors in binary32 that bound numbers from above, computed again: the scale, from a row's
// largest size; the least size that is not 0; each factor, which is at least its number and exceeds
// it by at most three roundings of binary32 and 2^-22; and rows that have no factors. Every place
// in rows of every length around 16.
#include "tests/shared/formulas.h"

#include "proofs/bounds/factors.h"

static const uint64_t SEED = 20261126;
static const char IDS[] = "sink.key-bias bound.linear";
enum { MOST = 40 };

typedef struct found {
    size_t rows, scales, leasts, low;
    double above; // the largest factor over its number
} found;

static bool factors_of(size_t k, const double *x_k, binary_factors *f) {
    must(factors_allocate(1, k, f));
    return factors_fill_row(f, 0, x_k);
}

static void keep(double *above, double share) {
    if (!(share <= *above) && *above == *above) *above = share;
}

// What is lost below binary32's smallest normal number, linear.c adds.
static void meet_factor(found *all, float factor, real stated) {
    if (!(stated >= 0x1p-126L)) return;
    all->low += !(factor >= stated);
    keep(&all->above, (double)(factor / stated));
}

static void meet_row(found *all, size_t k, const double *x_k) {
    binary_factors f;
    double largest = 0, least = INFINITY;
    for (size_t i = 0; i < k; i++) {
        double size = fabs(x_k[i]);
        if (size > largest) largest = size;
        if (size > 0 && size < least) least = size;
    }
    all->rows++;
    if (!factors_of(k, x_k, &f)) {
        all->scales++;
        factors_free(&f);
        return;
    }
    // The power of two above the largest, so that every part is below 1.
    double scale = 0x1p-399;
    while (scale <= largest) scale *= 2;
    all->scales += f.scale[0] != scale;
    all->leasts += f.least != least;
    for (size_t i = 0; i < k; i++) {
        real part = fabsl((real)x_k[i]) / scale;
        all->low += part == 0 && (f.size[i] != 0 || f.square[i] != 0);
        meet_factor(all, f.size[i], part), meet_factor(all, f.square[i], part * part);
    }
    factors_free(&f);
}

static void fill(uint64_t *state, size_t k, double *x_k) {
    for (size_t i = 0; i < k; i++) x_k[i] = draw_gauss(state);
}

static void rows(void) {
    uint64_t state = SEED;
    found all = {0};
    double x_k[MOST];
    for (size_t k = 1; k <= MOST; k++)
        for (size_t at = 0; at < k; at++) {
            fill(&state, k, x_k);
            meet_row(&all, k, x_k);
            x_k[at] = -1000, x_k[(at + 5) % k] = k > 5 ? -0x1p-30 : x_k[(at + 5) % k];
            meet_row(&all, k, x_k);
            x_k[at] = 0;
            meet_row(&all, k, x_k);
        }
    double zeros[MOST] = {0}, powers[3] = {1, 0.5, 2}, tiny[2] = {0x1p-401, -0x1p-402};
    double edges[2] = {0x1p-400, 0}, above[1] = {0x1p-399}, large[2] = {-0x1.fffffffffffffp399, 1};
    meet_row(&all, MOST, zeros), meet_row(&all, 0, zeros), meet_row(&all, 3, powers);
    meet_row(&all, 2, tiny), meet_row(&all, 2, edges), meet_row(&all, 1, above),
        meet_row(&all, 2, large);
    ok(all.rows > 0 && all.scales == 0, "%s scales of rows as stated worst=%zu bound=0 rows=%zu",
       IDS, all.scales, all.rows);
    ok(all.leasts == 0, "%s the least size that is not 0 worst=%zu bound=0", IDS, all.leasts);
    ok(all.low == 0, "%s factors below their numbers worst=%zu bound=0", IDS, all.low);
    real grown = (1 + 0x1p-24L) * (1 + 0x1p-24L) * (1 + 0x1p-22L);
    ok(all.above > 1 && all.above <= (double)grown * (1 + 0x1p-52),
       "%s factors over their numbers worst=%.9f bound=%.9f", IDS, all.above, (double)grown);
}

// A number that has no factor, at every place; after it the least of the rows is what it was.
static void without(void) {
    static const double none[] = {INFINITY, -INFINITY, NAN, 0x1p400, -0x1p400};
    double x_k[MOST];
    size_t made = 0, asked = 0;
    uint64_t state = SEED + 1;
    for (size_t k = 1; k <= MOST; k += 3)
        for (size_t at = 0; at < k; at++)
            for (size_t i = 0; i < sizeof none / sizeof none[0]; i++, asked++) {
                binary_factors f;
                fill(&state, k, x_k);
                x_k[at] = none[i];
                made += factors_of(k, x_k, &f);
                made += f.least != INFINITY;
                factors_free(&f);
                made += f.size != NULL || f.square != NULL || f.scale != NULL;
            }
    ok(asked > 0 && made == 0, "%s rows without factors worst=%zu bound=0 of=%zu", IDS, made,
       asked);
}

// Rows of one matrix stand apart, and share the least.
static void matrix(void) {
    static const double x_rk[3][2] = {{3, -4}, {0.25, 0}, {-1, 0.5}};
    binary_factors f;
    must(factors_allocate(3, 2, &f));
    size_t wrong = f.rows != 3 || f.cols != 2 || f.least != INFINITY;
    for (size_t r = 3; r-- > 0;) wrong += !factors_fill_row(&f, r, x_rk[r]);
    static const double scale[3] = {8, 0.5, 2};
    for (size_t r = 0; r < 3; r++) {
        wrong += f.scale[r] != scale[r];
        for (size_t k = 0; k < 2; k++) {
            float part = (float)(fabs(x_rk[r][k]) / scale[r]), up = 1 + 0x1p-22f;
            wrong += f.size[2 * r + k] != part * up || f.square[2 * r + k] != part * part * up;
        }
    }
    wrong += f.least != 0.25;
    factors_free(&f);
    ok(wrong == 0, "%s rows of a matrix worst=%zu bound=0", IDS, wrong);
}

int main(void) {
    rows();
    without();
    matrix();
    return tap_done();
}
