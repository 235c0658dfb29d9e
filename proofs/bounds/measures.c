// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// How far values are from the middles of their sets, for many elements at once. An element that is
// not plain is left to the functions for one.
#include "proofs/bounds/bounds.h"
#include "proofs/bounds/processors.h"

enum { MANY = SINKPROOF_MEASURED };

// The members that are measured, each an array for a loop of vectors.
typedef struct ends_apart {
    double lo[MANY], hi[MANY], likely_lo[MANY], likely_hi[MANY], mid[MANY], v[MANY];
} ends_apart;

static void take_ends(size_t n, const double *v_n, const sinkproof_honest *x_n, ends_apart *e) {
    for (size_t l = 0; l < MANY; l++) {
        size_t i = l < n ? l : n - 1;
        e->lo[l] = x_n[i].lo, e->hi[l] = x_n[i].hi, e->mid[l] = x_n[i].mid, e->v[l] = v_n[i];
        e->likely_lo[l] = x_n[i].likely_lo, e->likely_hi[l] = x_n[i].likely_hi;
    }
}

// sinkproof_add_up of ordinary numbers.
static inline double ordinary_sum_up(double a, double b) {
    double s = a + b;
    return step_by_ulps(s, honest_sum_error(a, b, s) > 0 ? 1 : 0);
}

// 0 if x is a number of the format: none of the bits that the format does not have.
static inline uint64_t bits_beyond(uint64_t beyond, double x) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    return pattern & beyond;
}

static inline double step_of(uint64_t below, double x) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    pattern = ((pattern >> 52 & 2047) - below) << 52;
    memcpy(&x, &pattern, sizeof x);
    return x;
}

FOR_EACH_PROCESSOR
static void measure(uint64_t beyond, uint64_t below, const ends_apart *e, sinkproof_measures *m) {
    for (size_t l = 0; l < MANY; l++) {
        double lo = e->lo[l], hi = e->hi[l], mid = e->mid[l], v = e->v[l];
        double likely_lo = e->likely_lo[l], likely_hi = e->likely_hi[l], size = fabs(mid);
        double up = ordinary_sum_up(hi, -mid), down = ordinary_sum_up(mid, -lo);
        double radius = up > down ? up : down, apart = fabs(v - mid);
        double above = likely_hi - mid, under = mid - likely_lo;
        double ulp = step_of(below, mid), share = apart / radius;
        uint64_t odd = bits_beyond(beyond, lo) | bits_beyond(beyond, hi) |
                       bits_beyond(beyond, likely_lo) | bits_beyond(beyond, likely_hi) |
                       bits_beyond(beyond, mid);
        // A number with a NaN beside it is odd too.
        odd |= v >= lo ? 0 : 1, odd |= v <= hi ? 0 : 1;
        odd |= v >= likely_lo ? 0 : 1, odd |= v <= likely_hi ? 0 : 1;
        odd |= size >= 0x1p-100 ? 0 : 1, odd |= size <= 0x1p100 ? 0 : 1;
        odd |= lo >= -0x1p100 ? 0 : 1, odd |= hi <= 0x1p100 ? 0 : 1;
        m->share[l] = apart == 0 ? 0 : share;
        m->width[l] = (above > under ? above : under) / ulp;
        m->gap[l] = apart / ulp;
        m->odd[l] = odd;
    }
}

void sinkproof_measure(sinkproof_format format, size_t n, const double *v_n,
                       const sinkproof_honest *x_n, sinkproof_measures *m) {
    bool f32 = format == SINKPROOF_F32;
    ends_apart e;
    if (!f32 && format != SINKPROOF_BF16) {
        for (size_t l = 0; l < n; l++) m->odd[l] = 1;
        return;
    }
    int cut = f32 ? 29 : 45; // bits of binary64 that the format does not have
    take_ends(n, v_n, x_n, &e);
    measure(((uint64_t)1 << cut) - 1, (uint64_t)(52 - cut), &e, m);
}
