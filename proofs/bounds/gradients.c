// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of gradients: a sum is measured against the sizes of its terms, not against itself.
#include "proofs/bounds/gradients.h"

//> grad.rounded
sinkproof_honest sinkproof_honest_gradient(double value, double size, double own, double roundings,
                                           double u) {
    double mine = sinkproof_gamma(own, 0x1p-53); // of value and size, as they were computed
    double true_size = sinkproof_mul_up(size, sinkproof_add_up(1, mine / (1 - mine)));
    double engine = sinkproof_gamma(roundings, u);
    double off = sinkproof_mul_up(sinkproof_add_up(engine, mine), true_size);
    return sinkproof_set_around(value, off, off, 0, 0);
}
//< grad.rounded

// x with its ends moved apart by `more`.
static sinkproof_honest widened(sinkproof_honest x, double more) {
    double off = sinkproof_add_up(sinkproof_radius(&x), more);
    return sinkproof_set_around(x.mid, off, off, 0, 0);
}

sinkproof_honest sinkproof_honest_delta(size_t head_dim, const double *do_d,
                                        const sinkproof_honest *o_d, double u) {
    double value = 0, size = 0, open = 0;
    for (size_t d = 0; d < head_dim; d++) {
        value += do_d[d] * o_d[d].mid;
        size = sinkproof_add_up(size, sinkproof_mul_up(fabs(do_d[d]), set_largest_size(o_d[d])));
        open = sinkproof_add_up(open, sinkproof_mul_up(fabs(do_d[d]), sinkproof_radius(&o_d[d])));
    }
    double roundings = (double)head_dim + 1; // a product, and the sums
    return widened(sinkproof_honest_gradient(value, size, roundings, roundings, u), open);
}

sinkproof_honest sinkproof_honest_sink_gradient(size_t n, const sinkproof_honest *alpha_s_i,
                                                const sinkproof_honest *delta_i, double u) {
    double value = 0, size = 0, open = 0;
    for (size_t i = 0; i < n; i++) {
        const sinkproof_honest *a = &alpha_s_i[i], *d = &delta_i[i];
        double most_a = set_largest_size(*a), most_d = set_largest_size(*d);
        value -= a->mid * d->mid;
        size = sinkproof_add_up(size, sinkproof_mul_up(most_a, most_d));
        // alpha D - alpha_0 D_0 = (alpha - alpha_0) D + alpha_0 (D - D_0)
        double part = sinkproof_add_up(sinkproof_mul_up(sinkproof_radius(a), most_d),
                                       sinkproof_mul_up(most_a, sinkproof_radius(d)));
        open = sinkproof_add_up(open, part);
    }
    double roundings = (double)n + 1;
    return widened(sinkproof_honest_gradient(value, size, roundings, roundings, u), open);
}
