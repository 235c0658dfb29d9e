// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of gradients: a sum is measured against the sizes of its terms, not against itself.
#include "proofs/bounds/gradients.h"

// The smallest normal number of a format: what underflows may be flushed to zero.
static double smallest(double u) {
    return u >= 0x1p-24 ? 0x1p-126 : 0x1p-1022;
}

//> grad.rounded
sinkproof_honest sinkproof_honest_gradient(double value, double size, double own, double roundings,
                                           double u) {
    double mine = sinkproof_gamma(own, 0x1p-53); // of value and size, as they were computed
    double true_size = sinkproof_mul_up(size, sinkproof_add_up(1, 2 * mine));
    double engine = sinkproof_gamma(roundings, u);
    double off = sinkproof_mul_up(sinkproof_add_up(engine, mine), true_size);
    double lost = sinkproof_mul_up(sinkproof_mul_up(roundings, smallest(u)), 1 + engine);
    off = sinkproof_add_up(off, lost);
    return sinkproof_set_around(value, off, off, 0, 0);
}
//< grad.rounded

// x with its ends moved apart by `more`.
static sinkproof_honest widened(sinkproof_honest x, double more) {
    double off = sinkproof_add_up(sinkproof_radius(&x), more);
    return sinkproof_set_around(x.mid, off, off, 0, 0);
}

sinkproof_honest sinkproof_honest_gradient_sum(size_t n, const sinkproof_honest *x, size_t x_stride,
                                               const sinkproof_honest *y, size_t y_stride,
                                               double u) {
    double value = 0, size = 0, open = 0;
    for (size_t k = 0; k < n; k++) {
        const sinkproof_honest *a = x + k * x_stride, *b = y + k * y_stride;
        double most_a = set_largest_size(*a), most_b = set_largest_size(*b);
        value += a->mid * b->mid;
        size = sinkproof_add_up(size, sinkproof_mul_up(most_a, most_b));
        // a b - a_0 b_0 = (a - a_0) b + a_0 (b - b_0)
        double part = sinkproof_add_up(sinkproof_mul_up(sinkproof_radius(a), most_b),
                                       sinkproof_mul_up(most_a, sinkproof_radius(b)));
        // A subnormal number may be read as 0.
        if (most_a < smallest(u) || most_b < smallest(u))
            part = sinkproof_add_up(part, sinkproof_mul_up(most_a, most_b));
        open = sinkproof_add_up(open, part);
    }
    double roundings = (double)n + 1; // a product, and the sums
    return widened(sinkproof_honest_gradient(value, size, roundings, roundings, u), open);
}

sinkproof_honest honest_score_gradient(sinkproof_honest alpha, sinkproof_honest dalpha,
                                       sinkproof_honest delta, double u) {
    // In one of two ways: a difference and a product, or two products and a difference.
    double most = sinkproof_add_up(set_largest_size(dalpha), set_largest_size(delta));
    double size = sinkproof_mul_up(set_largest_size(alpha), most);
    sinkproof_honest exact = sinkproof_honest_mul(alpha, sinkproof_honest_sub(dalpha, delta));
    // What underflows: the difference, times alpha; the two products; the result.
    double lost = sinkproof_mul_up(4 + 2 * set_largest_size(alpha), smallest(u));
    if (set_largest_size(alpha) < smallest(u)) lost = sinkproof_add_up(lost, size); // read as 0
    double off = sinkproof_add_up(sinkproof_mul_up(sinkproof_gamma(2, u), size), lost);
    sinkproof_honest set =
        sinkproof_set_around(alpha.mid * (dalpha.mid - delta.mid), off, off, 0, 0);
    double more = sinkproof_add_up(exact.hi, -exact.mid);
    more = larger_double(more, sinkproof_add_up(exact.mid, -exact.lo));
    return widened(set, sinkproof_add_up(more, sinkproof_mul_up(0x1p-51, size)));
}

sinkproof_honest sinkproof_honest_sink_gradient(size_t n, const sinkproof_honest *alpha_s_i,
                                                const sinkproof_honest *delta_i, double u) {
    sinkproof_honest sum = sinkproof_honest_gradient_sum(n, alpha_s_i, 1, delta_i, 1, u);
    return (sinkproof_honest){-sum.hi, -sum.lo,    -sum.likely_hi, -sum.likely_lo, -sum.mid,
                              sum.var, sum.spread, sum.bias,       sum.order};
}
