// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How closely 1.702 fits: the largest differences of x sigmoid(alpha x) from GELU, and of
// sigmoid(alpha x) from the normal distribution function, enclosed over the whole line and reached
// by a dense sample; and the constants that make these differences smallest.
#include "proofs/bounds/worst.h"
#include "proofs/truth/truth.h"
#include "tests/shared/tap.h"

#include <math.h>
#include <stdlib.h>

enum { BITS = 64 };

typedef struct fit {
    arb_t above, below, error; // error: the larger of both
} fit;

static void fit_init(fit *f, const char *alpha, int w) {
    arb_t a;
    balls_init(a, f->above, f->below, f->error);
    arb_set_str(a, alpha, BITS);
    sinkproof_truth_gelu_fit(f->above, f->below, a, w, BITS);
    arb_max(f->error, f->above, f->below, BITS);
    arb_clear(a);
}
static void fit_clear(fit *f) {
    balls_clear(f->above, f->below, f->error);
}

static double middle(const arb_t x) {
    return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

// x^w (Phi(x) - sigmoid(alpha x)) in long double.
static long double difference_at(long double x, long double alpha, int w) {
    long double d = erfcl(-x / sqrtl(2)) / 2 - 1 / (1 + expl(-alpha * x));
    return w == 1 ? x * d : d;
}

// d' = phi - alpha sigmoid' is below 1/2 in size: both are positive, phi <= 0.4, alpha / 4 < 0.45.
// And (x d)' = d + x d' is below 3/4: d is below 1/2, x phi <= phi(1) < 1/4, y sigmoid'(y) < 1/4.
// So a sample of step h misses a supremum by h / 2 at most; it passes it by its own roundings
// alone, a dozen of numbers below 16 in long double: 2^-56.
static void sample_meets(const char *alpha, int w) {
    const long double step = 0x1p-14L;
    long double above = 0, below = 0, a = strtold(alpha, NULL);
    for (long k = 0; k <= 10L << 14; k++) {
        long double d = difference_at(k * step, a, w);
        above = keep_worst_long(above, d);
        below = keep_worst_long(below, -d);
    }
    fit f;
    fit_init(&f, alpha, w);
    long double gap =
        keep_worst_long(fabsl(above - middle(f.above)), fabsl(below - middle(f.below)));
    bool over = above > middle(f.above) + 0x1p-56L || below > middle(f.below) + 0x1p-56L;
    ok(!over && gap <= step / 2,
       "swiglu.gelu-fit w=%d alpha=%s: a sample of step 2^-14 meets both suprema, short by "
       "worst=%.3Lg bound=%.3Lg",
       w, alpha, gap, step / 2);
    fit_clear(&f);
}

static void enclosed(const char *alpha, int w) {
    fit f;
    fit_init(&f, alpha, w);
    double radius = sinkproof_truth_radius_log2(f.error);
    ok(radius <= -BITS / 2, // intervals of 2^-32 and less are left: see gelu_fit.c
       "swiglu.gelu-fit w=%d alpha=%s largest difference %.12f, over %.12f under %.12f, radius "
       "worst=2^%.1f bound=2^%d",
       w, alpha, middle(f.error), middle(f.above), middle(f.below), radius, -BITS / 2);
    fit_clear(&f);
}

// Of the multiples of 1/1000, `best` has the smallest largest difference: `above` falls and `below`
// rises with alpha, so what its two neighbours cannot do no other can.
static void best_of_thousandths(const char *less, const char *best, const char *more, int w) {
    fit a, b, c;
    fit_init(&a, less, w);
    fit_init(&b, best, w);
    fit_init(&c, more, w);
    bool smallest = arb_lt(b.error, a.error) && arb_lt(b.error, c.error);
    bool crossing = arb_gt(a.above, a.below) && arb_lt(c.above, c.below);
    ok(smallest && crossing,
       "swiglu.gelu-fit w=%d: of all multiples of 1/1000 %s is best: %.9f, %s gives %.9f, %s %.9f",
       w, best, middle(b.error), less, middle(a.error), more, middle(c.error));
    fit_clear(&a);
    fit_clear(&b);
    fit_clear(&c);
}

// The best constant and its error, to as many digits as are told apart.
static void best(int w, const char *from, const char *to, const char *error_from,
                 const char *error_to) {
    arb_t alpha, error, low, high;
    balls_init(alpha, error, low, high);
    truth_gelu_fit_best(alpha, error, w, BITS);
    arb_set_str(low, from, BITS);
    arb_set_str(high, to, BITS);
    bool inside = arb_gt(alpha, low) && arb_lt(alpha, high);
    arb_set_str(low, error_from, BITS);
    arb_set_str(high, error_to, BITS);
    inside = inside && arb_gt(error, low) && arb_lt(error, high);
    ok(inside, "swiglu.gelu-fit w=%d: best at alpha=%.10f, off by %.12f, enclosed in (%s, %s)", w,
       middle(alpha), middle(error), from, to);
    balls_clear(alpha, error, low, high);
}

// 1.702 is not GELU's own best constant: a thousandth of the line tells.
static void not_gelus_best(void) {
    fit used, better;
    fit_init(&used, "1.702", 1);
    fit_init(&better, "1.773", 1);
    arb_t ratio;
    arb_init(ratio);
    arb_div(ratio, used.error, better.error, BITS);
    ok(arb_gt(used.error, better.error),
       "swiglu.gelu-fit 1.702 errs on GELU by %.6f, 1.773 by %.6f: %.3f times as much",
       middle(used.error), middle(better.error), middle(ratio));
    arb_clear(ratio);
    fit_clear(&used);
    fit_clear(&better);
}

int main(void) {
    for (int w = 0; w < 2; w++) {
        enclosed("1.702", w);
        sample_meets("1.702", w);
        sample_meets("1.773", w);
    }
    best_of_thousandths("1.701", "1.702", "1.703", 0);
    best_of_thousandths("1.772", "1.773", "1.774", 1);
    best(0, "1.7017449", "1.7017450", "0.0094573", "0.0094574");
    best(1, "1.7729339", "1.7729340", "0.0139222", "0.0139223");
    not_gelus_best();
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
