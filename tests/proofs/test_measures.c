// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Distances of many values from the middles of their sets are those that the functions for one set
// give, bit for bit; and an element is odd where it is not likely, not in the format, or not a
// number of usual size.
#include "tests/shared/bounds_engine.h"

enum { ROWS = 3000, MANY = SINKPROOF_MEASURED };

static sinkproof_honest draw_set(uint64_t *state, sinkproof_format format) {
    double x = draw_gauss(state), width = fabs(x) * ldexp(1, -(int)(draw(state) % 30));
    if (draw(state) % 50 == 0) x = ldexp(x, (int)(draw(state) % 300) - 150), width = fabs(x) / 8;
    if (draw(state) % 50 == 0) x = 0;
    if (draw(state) % 50 == 0) return sinkproof_unknown_set(x);
    sinkproof_honest set = sinkproof_set_around(x, width, width / 2, width * width, 0);
    return draw(state) % 20 == 0 ? set : sinkproof_honest_rounded(format, set);
}

static double draw_value(uint64_t *state, const sinkproof_honest *x) {
    static const double edges[] = {NAN, INFINITY, -INFINITY, 0, 1e300};
    uint64_t kind = draw(state) % 100;
    if (kind < 5) return edges[kind];
    if (kind < 10) return kind % 2 == 0 ? x->hi : x->lo;
    if (kind < 15) return kind % 2 == 0 ? x->likely_hi : x->likely_lo;
    if (kind < 30) return x->mid;
    return x->likely_lo + (x->likely_hi - x->likely_lo) * (1.2 * draw_unit(state) - 0.1);
}

static bool is_odd(sinkproof_format format, double v, const sinkproof_honest *x) {
    sinkproof_honest stored = sinkproof_honest_rounded(format, *x);
    double size = fabs(x->mid), most = fmax(-x->lo, x->hi);
    return !(v >= x->lo && v <= x->hi && v >= x->likely_lo && v <= x->likely_hi) ||
           memcmp(&stored, x, sizeof stored) != 0 || !(size >= 0x1p-100 && size <= 0x1p100) ||
           !(most <= 0x1p100);
}

static void measured(sinkproof_format format, const char *name) {
    uint64_t state = 20261129;
    size_t apart = 0, odd = 0, marked = 0, all = 0;
    for (int row = 0; row < ROWS; row++) {
        size_t n = 1 + draw_below(&state, MANY);
        sinkproof_honest x[MANY];
        double v[MANY];
        sinkproof_measures m;
        for (size_t i = 0; i < n; i++)
            x[i] = draw_set(&state, format), v[i] = draw_value(&state, &x[i]);
        sinkproof_measure(format, n, v, x, &m);
        for (size_t i = 0; i < n; i++) {
            double ulp = sinkproof_ulp(format, x[i].mid), off = fabs(v[i] - x[i].mid);
            double share = off == 0 ? 0 : off / sinkproof_radius(&x[i]);
            all++, odd += m.odd[i] != 0;
            marked += (m.odd[i] != 0) != is_odd(format, v[i], &x[i]);
            if (m.odd[i] != 0) continue;
            apart += m.share[i] != share || m.gap[i] != off / ulp ||
                     m.width[i] != sinkproof_likely_distance(&x[i]) / ulp;
        }
    }
    ok(apart == 0 && marked == 0 && odd < all / 2,
       "%s: of %zu elements %zu have other distances, %zu are odd, %zu wrongly or not", name, all,
       apart, odd, marked);
}

int main(void) {
    sinkproof_honest x[1] = {sinkproof_exact_set(1)};
    double v[1] = {1};
    sinkproof_measures m;
    measured(SINKPROOF_F32, "float32");
    measured(SINKPROOF_BF16, "bfloat16");
    sinkproof_measure(SINKPROOF_F64, 1, v, x, &m);
    ok(m.odd[0] != 0, "an element of another format is odd");
    return tap_done();
}
