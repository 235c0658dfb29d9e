// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The largest differences of x sigmoid(alpha x) from GELU, and of sigmoid(alpha x) from the normal
// distribution function (swiglu.gelu-fit), found again in long double: a sample tells where the
// maximum is, and a ternary search how large. A difference is flat at its maximum, so its size is
// known up to the roundings of long double, although its place is not.
#include "proofs/truth/truth.h"
#include "tests/shared/tap.h"

#include <math.h>

enum { BITS = 64 };

// A dozen roundings to 64 bits, of numbers below 4: the ball's own and those of long double. What
// the last intervals add, 2^-33 long on each side of their middle, is a flat top's: below 2^-64.
static const double ROUNDINGS = 0x1p-58;

typedef struct line { // x -> sign x^w (Phi(x) - sigmoid(alpha x))
    long double alpha;
    int w, sign;
} line;

static long double at(const line *f, long double x) {
    long double d = erfcl(-x / sqrtl(2)) / 2 - 1 / (1 + expl(-f->alpha * x));
    return f->sign * (f->w == 1 ? x * d : d);
}

static long double largest(const line *f) {
    const long double step = 0x1p-8L;
    long double top = 0;
    for (long double x = step; x <= 8; x += step)
        if (at(f, x) > at(f, top)) top = x;
    long double from = fmaxl(0, top - step), to = top + step;
    for (int k = 0; k < 64; k++) { // (2/3)^64 is below 2^-37
        long double third = (to - from) / 3;
        if (at(f, from + third) < at(f, to - third))
            from += third;
        else
            to -= third;
    }
    return at(f, (from + to) / 2);
}

// The ball holds the largest difference, and is no wider than its roundings.
static void side(const arb_t ball, const line *f, const char *name) {
    long double own = largest(f);
    double middle = arf_get_d(arb_midref(ball), ARF_RND_NEAR), radius = mag_get_d(arb_radref(ball));
    double gap = fabs((double)(own - middle)), allowed = radius + ROUNDINGS + 0x1p-53 * middle;
    ok(gap <= allowed && radius <= ROUNDINGS,
       "swiglu.gelu-fit w=%d alpha=%.3Lf %s: %.15Lf as found a second time, off by worst=%.3g "
       "bound=%.3g",
       f->w, f->alpha, name, own, gap, allowed);
}

int main(void) {
    static const double alphas[] = {1.6, 1.702, 1.773, 2};
    arb_t alpha, above, below;
    balls_init(alpha, above, below);
    for (int k = 0; k < 8; k++) {
        line f = {alphas[k % 4], k / 4, 1};
        arb_set_d(alpha, alphas[k % 4]);
        sinkproof_truth_gelu_fit(above, below, alpha, f.w, BITS);
        side(above, &f, "above");
        f.sign = -1;
        side(below, &f, "below");
    }
    balls_clear(alpha, above, below);
    flint_cleanup();
    mpfr_free_cache();
    return tap_done();
}
