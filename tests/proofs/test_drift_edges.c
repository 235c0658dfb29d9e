// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drift (stat.drift) at the edges of its formula: which elements have freedom at all, rare steps
// just at their threshold, the smallest and largest size and place of a row, bins with almost no
// weight, classes of rows in the bin of all elements and in the others, and bins that are equal.
// The numbers are powers of two, so the sums of a row are exact.
#include "tests/shared/stated.h"

enum { BINS = DRIFT_BINS, OFFSET = 1, LARGE = 6, FIRST_QUARTER = 10 };

// An element with a variance and nothing else open.
static sinkproof_honest element(double mid, double likely, double spread) {
    return sinkproof_set_around(mid, 4 * likely, likely, spread, 0);
}

static sinkproof_drift of_row(size_t n, const double *v, const sinkproof_honest *x, double common,
                              double place) {
    sinkproof_drift drift = {0};
    sinkproof_drift_row(&drift, n, v, x, common, place);
    return drift;
}

// ---- rows --------------------------------------------------------------------------------------

// Elements of variances below and above 1 count; without one, and with an infinite one, not.
static void what_is_free(void) {
    const double spreads[] = {0x1p-40, 0.5, 1, 2, 0x1p40, 0, INFINITY, -1};
    size_t wrong = 0;
    for (int i = 0; i < 8; i++) {
        bool open = i < 5;
        sinkproof_honest x = element(4, 1, spreads[i]);
        double v = 4.5;
        sinkproof_drift drift = of_row(1, &v, &x, 0, 0);
        const drift_bin *all = &drift.bins[0], *offset = &drift.bins[OFFSET];
        wrong += all->elements != open || offset->elements != open || drift.n_rows != open;
        wrong += all->weight != (open ? 16 / spreads[i] : 0) || all->jumps != open;
        wrong += offset->weight != (open ? 1 / spreads[i] : 0);
        wrong += all->sum != (open ? 2 / spreads[i] : 0) || all->model != all->weight;
        sinkproof_drift_free(&drift);
    }
    ok(wrong == 0,
       "stat.drift variances of any size count, none and infinite ones do not "
       "worst=%zu bound=0",
       wrong);
}

// Nothing is asked of an element whose error may lean without end, nor of a row whose shared
// variance is no number, as that of infinities is.
static void without_end(void) {
    const double commons[] = {NAN, INFINITY, 0};
    size_t wrong = 0;
    for (int i = 0; i < 3; i++) {
        sinkproof_honest x = element(4, 1, 1);
        double v = 4.5;
        if (i == 2) x.bias = INFINITY;
        sinkproof_drift drift = of_row(1, &v, &x, commons[i], 0);
        wrong += drift.bins[0].elements != 0 || drift.n_rows != 0 || drift.spread[0].mean != 0;
        sinkproof_drift_free(&drift);
    }
    ok(wrong == 0, "stat.drift nothing is asked of errors without an end worst=%zu bound=0", wrong);
}

// 8 deviations of an element and its row are 64 variances: beyond, a step is rare.
static void rare_steps(void) {
    size_t wrong = 0;
    for (int i = 0; i < 3; i++) {
        double likely = 0x1p-4 * (i == 0 ? 1 : i == 1 ? 1 - 0x1p-20 : 1 + 0x1p-20);
        sinkproof_honest x = element(1, likely, 3 * 0x1p-16); // with its row 2^-14
        double v = 1;
        sinkproof_drift drift = of_row(1, &v, &x, 0x1p-16, 0);
        wrong += drift.bins[0].jumps != (i == 2);
        sinkproof_drift_free(&drift);
    }
    ok(wrong == 0, "stat.drift just at 64 variances no step is rare worst=%zu bound=0", wrong);
}

// The largest of a row is the largest of its numbers; what stands behind it is not read.
static void sizes(void) {
    size_t wrong = 0;
    for (int beyond = 0; beyond < 2; beyond++) {
        sinkproof_honest x[3] = {element(16, 1, 1), element(1, 1, 1),
                                 sinkproof_exact_set(beyond ? INFINITY : 0x1p30)};
        const double v[3] = {16, 1, 0};
        sinkproof_drift drift = of_row(2, v, x, 0, 0);
        wrong += drift.bins[LARGE].elements != 1 || drift.bins[LARGE].weight != 256;
        wrong += drift.bins[LARGE + 2].elements != 1 || drift.bins[LARGE + 2].weight != 1;
        wrong += drift.bins[0].elements != 2;
        sinkproof_drift_free(&drift);
    }
    ok(wrong == 0, "stat.drift a row's size is that of its own numbers worst=%zu bound=0", wrong);
}

static void places(void) {
    const double place[] = {-0.5, 0, 0.25, 0.75, 1, 1.5, NAN};
    const int want[] = {0, 0, 1, 3, 3, 3, 0};
    size_t wrong = 0;
    for (int i = 0; i < 7; i++) {
        sinkproof_honest x = element(1, 1, 1);
        double v = 1.5;
        sinkproof_drift drift = of_row(1, &v, &x, 0, place[i]);
        for (int q = 0; q < SPREAD_QUARTERS; q++) {
            wrong += drift.bins[FIRST_QUARTER + q].elements != (q == want[i]);
            wrong += drift.spread[q].mean != (q == want[i]);
        }
        sinkproof_drift_free(&drift);
    }
    ok(wrong == 0, "stat.drift places before the first row and behind the last worst=%zu bound=0",
       wrong);
}

// Many rows, and blocks of them, in the order in which they came.
static void many_rows(void) {
    enum { ROWS = 1000 };
    sinkproof_drift whole = {0}, blocks = {0};
    size_t wrong = 0;
    for (int i = 0, first = 0; i < ROWS; first = i) {
        sinkproof_drift block = {0};
        for (; i < ROWS && i < first + 1 + first / 3; i++) {
            double c = 1 + i * 0x1p-10, v = c + 0.5;
            sinkproof_honest x = element(c, 1, 1);
            sinkproof_drift_row(&whole, 1, &v, &x, 0, i / (double)ROWS);
            sinkproof_drift_row(&block, 1, &v, &x, 0, i / (double)ROWS);
        }
        sinkproof_drift_merge(&blocks, &block);
        sinkproof_drift_free(&block);
    }
    wrong += whole.n_rows != ROWS || blocks.n_rows != ROWS || whole.failed || blocks.failed;
    for (size_t i = 0; wrong == 0 && i < ROWS; i++) {
        sinkproof_honest x = element(1 + (double)i * 0x1p-10, 1, 1);
        wrong += whole.rows[i].key != alike_row_key(1, &x);
        wrong += blocks.rows[i].key != whole.rows[i].key;
        wrong += whole.rows[i].model != (float)(1 + (double)i * 0x1p-10);
        wrong += whole.rows[i].seen != (float)(0.5 * (1 + (double)i * 0x1p-10));
        double weight = pow(1 + (double)i * 0x1p-10, 2);
        wrong += whole.rows[i].weight != (float)weight;
    }
    sinkproof_drift all = {0}; // and all of them at once
    sinkproof_drift_merge(&all, &whole);
    wrong += all.n_rows != ROWS || all.room < ROWS || whole.room < ROWS || blocks.room < ROWS;
    wrong += wrong == 0 && memcmp(all.rows, whole.rows, ROWS * sizeof *all.rows) != 0;
    ok(wrong == 0, "stat.drift %d rows and their blocks are kept worst=%zu bound=0", ROWS, wrong);
    sinkproof_drift_free(&whole), sinkproof_drift_free(&blocks), sinkproof_drift_free(&all);
    ok(whole.n_rows == 0 && whole.room == 0 && whole.rows == NULL && whole.bins[0].elements == 0,
       "stat.drift nothing is left");
}

// ---- judgement ---------------------------------------------------------------------------------

static sinkproof_drift_result judged(const drift_bin *bins, size_t n, sinkproof_row *rows,
                                     double rate) {
    sinkproof_drift drift = {.n_rows = n, .room = n, .rows = rows};
    memcpy(drift.bins, bins, sizeof drift.bins);
    sinkproof_drift_result r;
    must(sinkproof_drift_judge(&drift, rate, &r));
    return r;
}

// One bin at a time, of classes of 3 and 1 rows: the factors of the bin of all are the classes',
// those of the others the largest class's.
static void classes_in_bins(void) {
    // 7^2 + 2^2 over 3^2 + 2 + 2 times 2^2; 8^2 + 6^2 over 4^2 + 2 times 2^2 + 6^2; 4^2 over 4^2
    sinkproof_row rows[] = {{1, 3, 4, 4}, {1, 2, 2, 0}, {1, 2, 2, 0}, {2, 2, 6, 0}};
    const real model = 53 / 21.0L, seen = 100 / 60.0L;
    distance d = {0};
    size_t wrong = 0;
    for (int i = 0; i < 8 * BINS; i++) {
        int b = i / 8;
        bool jumps = i & 1, larger = i >> 1 & 1;
        double rate = i >> 2 & 1 ? 1e-9 : 0.5;
        drift_bin bins[BINS] = {{0}};
        bins[b] = (drift_bin){.sum = -80,
                              .weight = 640,
                              .model = larger ? 3 : 300,
                              .seen = larger ? 450 : 5,
                              .bias = 2,
                              .squares = 40,
                              .jumps = jumps,
                              .elements = 5};
        sinkproof_drift_result r = judged(bins, 4, rows, rate);
        real v = bins[b].model * (b == 0 ? model : 3), s = bins[b].seen * (b == 0 ? seen : 3);
        real odds = logl(2 * BINS) - logl(rate);
        if (jumps && s > v) v = s;
        real limit = (sqrtl(2 * odds * v) + 2) / 640;
        near(&d, r.limit, limit, limit, 16);
        wrong += r.bin != b || r.gain != -0.125 || r.alike != 3;
        real least = limit / sqrtl(jumps ? 1 - 2 * odds * 40 / (640 * 640.0L) : 1);
        if (b == 0) near(&d, r.smallest, least, least, 24);
        wrong += b > 0 && r.smallest != INFINITY;
    }
    report(&d, "stat.drift stat.equal-rows", "limits of one bin", 0);
    ok(wrong == 0, "stat.drift one bin is the one that is named worst=%zu bound=0", wrong);
}

static void equal_bins(void) {
    size_t wrong = 0;
    drift_bin bins[BINS] = {{0}};
    const drift_bin some = {.sum = 1, .weight = 4, .model = 4, .elements = 1};
    bins[3] = bins[5] = bins[9] = some;
    wrong += judged(bins, 0, NULL, 0.5).bin != 3;
    bins[0] = some, bins[0].sum = 0; // without an error: a gain, of 0
    memset(bins + 1, 0, sizeof bins - sizeof *bins);
    sinkproof_drift_result r = judged(bins, 0, NULL, 0.5);
    wrong += r.bin != 0 || r.gain != 0 || !isfinite(r.limit) || r.smallest != r.limit;
    bins[0].weight = 0x1p-20, bins[0].sum = 1; // a weight below 1 is one
    r = judged(bins, 0, NULL, 0.5);
    wrong += r.bin != 0 || r.gain != 0x1p20;
    bins[0].weight = 0; // and none is none
    r = judged(bins, 0, NULL, 0.5);
    wrong += r.bin != -1 || r.gain != 0 || r.limit != INFINITY || r.smallest != INFINITY;
    ok(wrong == 0, "stat.drift equal bins, no error, weights below 1 and none worst=%zu bound=0",
       wrong);
}

// 2 L units of one weight hide any factor.
static void no_power(void) {
    size_t wrong = 0;
    for (int i = 0; i < 2; i++) {
        drift_bin bins[BINS] = {{.sum = 1, .weight = 8, .model = 1, .seen = 1}};
        bins[0].jumps = true, bins[0].elements = 8, bins[0].squares = i ? 64 : 0x1p-4;
        sinkproof_drift_result r = judged(bins, 0, NULL, 0.5);
        wrong += isfinite(r.smallest) == (i == 1) || !isfinite(r.limit);
    }
    ok(wrong == 0, "stat.drift a few units have no power worst=%zu bound=0", wrong);
}

int main(void) {
    what_is_free();
    without_end();
    rare_steps();
    sizes();
    places();
    many_rows();
    classes_in_bins();
    equal_bins();
    no_power();
    return tap_done();
}
