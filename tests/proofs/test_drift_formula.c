// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Drift, computed again in long double from the book's formulas: the sums of each bin, the classes
// of alike rows, gain, limit and power, up to the roundings of binary64.
#include "tests/shared/stated.h"

static const uint64_t SEED = 20260117;
enum { MOST = 12, DRAWS = 400 };

enum { ROWS = 8, BINS = DRIFT_BINS };
typedef struct bin {
    real sum, weight, model, seen, bias, squares;
    bool jumps;
} bin;

// Does element x of a row belong to bin b? The row's largest is `largest`, its place `where`.
static bool belongs(int b, double c, double largest, double where) {
    if (b < 2) return true; // all, as a factor and as an offset
    if (b >= 10) return (int)(where * 4) == b - 10;
    int octaves = ilogb(largest) - ilogb(c), size = octaves < 2   ? 0
                                                    : octaves < 4 ? 1
                                                    : octaves < 7 ? 2
                                                                  : 3;
    return b - 2 == size + (c > 0 ? 4 : 0);
}

static void drift_row(bin *bins, size_t n, const double *v, const sinkproof_honest *x,
                      double common, double where) {
    double largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(x[i].mid));
    for (int b = 0; b < BINS; b++) {
        real sum = 0, weight = 0, shared = 0;
        for (size_t i = 0; i < n; i++) {
            double c = x[i].mid;
            if (c == 0 || x[i].spread == 0 || !belongs(b, c, largest, where)) continue;
            real g = b == 1 ? 1 : c, d = (real)v[i] - c, w = g * g / x[i].spread;
            real reach = likely_radius(&x[i]);
            sum += d * g / x[i].spread, weight += w, shared += g * c / x[i].spread;
            bins[b].bias += x[i].bias * fabsl(g) / x[i].spread;
            bins[b].jumps |=
                common == 0 || reach * reach > 64 * ((real)x[i].spread + (real)common * c * c);
            if (common > 0) continue;
            bins[b].seen += powl(d * g / x[i].spread, 2), bins[b].squares += w * w;
        }
        bins[b].sum += sum, bins[b].weight += weight,
            bins[b].model += weight + common * shared * shared;
        if (common > 0) bins[b].seen += sum * sum, bins[b].squares += weight * weight;
    }
}

// What classes of alike rows raise the sums by: rows[i] is what row i adds to the bin of all, its
// norm squared; the classes' norms add up within a class. *largest: the rows of the largest class.
static real raised(const uint64_t *keys, const real *rows, int *largest) {
    real plain = 0, classes = 0;
    for (int i = 0; i < ROWS; i++) {
        real norm = 0;
        int members = 0;
        bool first = true;
        for (int k = 0; k < ROWS; k++) {
            if (keys[k] != keys[i]) continue;
            first = first && k >= i, norm += sqrtl(rows[k]), members += rows[k] > 0;
        }
        plain += rows[i], classes += first ? norm * norm : 0;
        if (members > *largest) *largest = members;
    }
    return plain > 0 ? classes / plain : 1;
}

static void drift(void) {
    uint64_t state = SEED + 4;
    distance d = {0};
    size_t other = 0, seen = 0, classes = 0;
    for (int i = 0; i < DRAWS; i++) {
        sinkproof_drift found = {0};
        bin bins[BINS] = {0};
        size_t n = 1 + draw_below(&state, 4 * MOST);
        double tilt = i % 4 == 0 ? 0.25 : 0, rate = i % 3 ? 1e-9 : 0.5;
        uint64_t keys[ROWS];
        real model_i[ROWS], seen_i[ROWS], squares_i[ROWS];
        sinkproof_honest x[4 * MOST];
        for (int row = 0; row < ROWS; row++) {
            double v[4 * MOST], where = row / (double)ROWS,
                                common = i % 2 ? ldexp(1, -16 - i % 5) : 0;
            for (size_t k = 0; k < n && (i % 6 > 0 || row % 3 == 0); k++) {
                double c = ldexp(draw_dyadic(&state), -(int)draw_below(&state, 9));
                double e = fabs(c) * 0x1p-8, wide = i % 5 == 1 ? 16 : 2;
                if (i % 5 == 3) wide = sqrt(64.5 * (1 + common * 0x1p16)); // just a rare step
                x[k] = sinkproof_set_around(c, 20 * e, wide * e, e * e, i % 7 == 0 ? e / 8 : 0);
                if (draw_below(&state, 10) == 0) x[k] = sinkproof_exact_set(k % 2 ? 0 : c);
            }
            for (size_t k = 0; k < n; k++) {
                double c = x[k].mid, e = fabs(c) * 0x1p-8;
                v[k] = c + e * (2 * draw_unit(&state) - 1 + tilt * (c > 0 ? 1 : -1));
            }
            bin was = bins[0];
            sinkproof_drift_row(&found, n, v, x, common, where);
            drift_row(bins, n, v, x, common, where);
            keys[row] = alike_row_key(n, x);
            model_i[row] = bins[0].model - was.model, seen_i[row] = bins[0].seen - was.seen;
            squares_i[row] = bins[0].squares - was.squares;
        }
        int largest = 1;
        real more_model = raised(keys, model_i, &largest),
             more_seen = raised(keys, seen_i, &largest);
        real more_squares = raised(keys, squares_i, &largest);
        classes += largest > 1;
        sinkproof_drift_result r;
        must(sinkproof_drift_judge(&found, rate, &r));
        real odds = logl(2 * BINS / (real)rate), worst = -1, left = 0, gain = 0, limit = INFINITY,
             least = INFINITY;
        int which = -1;
        for (int b = 0; b < BINS; b++) {
            const drift_bin *f = &found.bins[b];
            const real w = bins[b].weight, terms = 8 * (real)(ROWS * n) + 40;
            near(&d, f->weight, w, w, terms), near(&d, f->bias, bins[b].bias, bins[b].bias, terms);
            near(&d, f->model, bins[b].model, bins[b].model, terms);
            near(&d, f->seen, bins[b].seen, bins[b].seen, 4 * terms);
            near(&d, f->squares, bins[b].squares, bins[b].squares, terms);
            other += f->jumps != bins[b].jumps;
            if (!(w > 0)) continue;
            real model = bins[b].model * (b == 0 ? more_model : largest);
            real seen_b = bins[b].seen * (b == 0 ? more_seen : largest);
            if (bins[b].jumps) model = fmaxl(model, seen_b);
            real bound = (sqrtl(2 * odds * model) + bins[b].bias) / bins[b].weight;
            real share =
                2 * odds * bins[b].squares * more_squares / (bins[b].weight * bins[b].weight);
            real rest = bins[b].jumps ? 1 - share : 1;
            if (b == 0) least = rest > 0 ? bound / sqrtl(rest) : INFINITY, left = rest;
            if (!(fabsl(bins[b].sum / bins[b].weight) / bound > worst)) continue;
            gain = bins[b].sum / bins[b].weight, limit = bound, which = b;
            worst = fabsl(gain) / bound;
        }
        real k = 8 * (real)(ROWS * n) + 40 +
                 (largest > 1 ? 0x1p29 : 0); // a row's norm is kept as a float
        other += r.alike != largest;
        other += r.bin != which, seen += isfinite((double)least);
        if (r.bin != which) continue;
        near(&d, r.limit, limit, limit, k), near(&d, r.gain, gain, fabsl(gain) + limit, k);
        // 1 - share cancels; the power is compared where half of it is left.
        if (left >= 0.5) near(&d, r.smallest, least, least, 4 * k);
        other += isfinite(r.smallest) != isfinite((double)least);
        sinkproof_drift_free(&found);
    }
    report(&d, "stat.drift stat.equal-rows", "gain, limit and power", SEED);
    ok(other == 0 && seen > 0 && classes > 0,
       "stat.drift stat.equal-rows the worst bin is named worst=%zu bound=0 of=%d with power=%zu, "
       "with rows alike=%zu",
       other, DRAWS, seen, classes);
    sinkproof_drift none = {0};
    sinkproof_drift_result r;
    must(sinkproof_drift_judge(&none, 1e-9, &r));
    ok(r.bin == -1 && r.gain == 0 && r.limit == INFINITY && r.smallest == INFINITY,
       "stat.drift nothing free, nothing to say");
}

int main(void) {
    drift();
    return tap_done();
}
