// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The lean of a sum, computed again in long double from all its terms at once, spacing by spacing.
// The code itself goes term by term and rounds by adding and subtracting a large constant.
#include "tests/shared/formulas.h"

static const uint64_t SEED = 20261125;

// From the terms at once: at spacing h 2^-b, the sum of what rounding each to it changes, ties
// apart, beyond three deviations of centred roundings.
static real stated_lean(size_t n, const double *term_k, double sum, double u) {
    real largest = 0, h = ldexpl(2 * (real)u, ilogb(sum));
    size_t terms = 0;
    for (size_t k = 0; k < n; k++) terms += term_k[k] > 0;
    for (int b = 0; b < HONEST_SPACINGS; b++, h /= 2) {
        real error = 0, ties = 0;
        for (size_t k = 0; k < n; k++) {
            real apart = term_k[k] > 0 ? h * rintl(term_k[k] / h) - term_k[k] : 0;
            if (2 * fabsl(apart) == h)
                ties++;
            else
                error += apart;
        }
        real lean = fabsl(error) + (ties / 2 - 3 * sqrtl((real)terms / 12)) * h;
        if (lean > largest) largest = lean;
    }
    return largest;
}

static void leans(void) {
    enum { MOST = 300 };
    static double term_k[MOST];
    static const double units[] = {0x1p-24, 0x1p-11, 0x1p-8, 0x1p-29};
    uint64_t state = SEED;
    distance d = {0};
    size_t seen = 0;
    for (int i = 0; i < 400; i++) {
        size_t n = 1 + draw_below(&state, MOST);
        double u = units[i % 4], sum = 0, equal = 1 + draw_unit(&state);
        for (size_t k = 0; k < n; k++) {
            double any = draw_unit(&state);
            if (k % 17 == 3) any = -any; // no such term is asked
            term_k[k] = i % 5 == 0   ? equal
                        : i % 5 == 1 ? any * any * 0x1p-20
                        : i % 5 == 2 ? (double)(1 + draw_below(&state, 64)) * u // with ties
                                     : any;
            sum += term_k[k] > 0 ? term_k[k] : 0;
        }
        error_lean lean = lean_of_rounded_sum(sum, u);
        for (size_t k = 0; k < n; k++) lean_add(&lean, term_k[k]);
        real stated = stated_lean(n, term_k, sum, u);
        seen += stated > 0;
        // Each ratio and its error are exact; n of them are added, the noise rounds four times.
        near(&d, lean_result(&lean), stated,
             stated + 4 * sqrt((double)n) * lean.spacing + (real)n * lean.spacing, (double)n + 8);
    }
    report(&d, "bound.softmax-sink bound.rmsnorm", "the lean of a sum", SEED);
    ok(seen > 100, "bound.softmax-sink bound.rmsnorm sums lean: %zu of 400", seen);
}

static double lean_at(double sum, double u, double term, size_t n) {
    error_lean lean = lean_of_rounded_sum(sum, u);
    for (size_t k = 0; k < n; k++) lean_add(&lean, term);
    return lean_result(&lean);
}

// 1,000 terms of three eighths of the spacing are lost at it; half of them make as much at half of
// it, and so on. Nothing is asked where there is no sum, beyond 2^900, or of binary64.
static void leans_known(void) {
    real noise = 3 * sqrtl(1000.0L / 12);
    double lost = lean_at(1, 0x1p-24, 0.375 * 0x1p-23, 1000);
    double tied = lean_at(1, 0x1p-24, 0.5 * 0x1p-23, 1000);
    ok(lost == (double)((375 - noise) * 0x1p-23L),
       "bound.softmax-sink equal terms that are lost lean by all of them: %.17g of %.17g", lost,
       (double)((375 - noise) * 0x1p-23L));
    ok(tied == (double)((500 - noise) * 0x1p-23L),
       "bound.softmax-sink a tie leans by half a step: %.17g of %.17g", tied,
       (double)((500 - noise) * 0x1p-23L));
    double below = nextafter(0x1p900, 0), unit = nextafter(0x1p-30, 1);
    error_lean none[] = {lean_of_rounded_sum(0x1p900, 0x1p-24), lean_of_rounded_sum(1, 0x1p-30),
                         lean_of_rounded_sum(0, 0x1p-24), lean_of_rounded_sum(-1, 0x1p-24),
                         lean_of_rounded_sum(NAN, 0x1p-24)};
    size_t asked = 0;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        lean_add(&none[i], 1);
        asked += none[i].spacing != 0 || none[i].terms != 0 || lean_result(&none[i]) != 0;
    }
    ok(asked == 0 && lean_of_rounded_sum(below, 0x1p-24).spacing == 0x1p876 &&
           lean_of_rounded_sum(1, unit).spacing == 2 * unit && lean_at(1, 0x1p-24, NAN, 9) == 0 &&
           lean_at(1, 0x1p-24, 0, 9) == 0,
       "bound.softmax-sink sums of which no lean is asked: %zu of 5", asked);
}

int main(void) {
    leans();
    leans_known();
    return tap_done();
}
