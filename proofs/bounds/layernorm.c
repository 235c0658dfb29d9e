// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of LayerNorm (bound.layernorm), derived in doc/30-gpt2.md. It covers the ways in
// which engines compute the two moments, in any order of summation: the mean as a sum, as a running
// mean (Welford), or merged from parts in pairs; the variance from deviations from that mean, as
// Welford's running sum, merged from parts, or as the mean of the squares minus the square of the
// mean. It also covers every way to write (x - m) r scale + shift: with the mean apart, or inside a
// common shift.
//
// For d numbers x let S = sum |x|, Q = sum x^2, and M the sum of squared deviations. With
// N = d + 4 L^2 + 160, L = log2 d rounded up, an honest mean is off by at most gamma_N S / d.
// Merges add at most 2 gamma_N sqrt(Q) to the root of M; mean square minus squared mean is off by
// gamma_N (1 + gamma_N) (Q + 3 S |m|) / d. N is larger than needed by at least ten, which covers
// the second-order terms as long as N u is below 2^-8; beyond that, nothing is known.
//
// No likely set is claimed: the errors of mean and root may lean, and their full size is allowed.
#include "proofs/bounds/bounds.h"

//> bound.layernorm
// Sums over a row. mean: the emulation's mean; apart: how far the mean over the reals may be from
// it; off: how far an honest mean may be from it. sum, least, most: the emulation's sum of squared
// deviations, and the least and largest possible one. sizes, squares, gamma: S, Q, gamma_N.
typedef struct moments {
    double mean, apart, off;
    double sum, least, most;
    double sizes, squares, gamma;
} moments;

static double refined_gamma(size_t d, double u) {
    double log = ceil(log2((double)d)), n = (double)d + 4 * log * log + 160;
    return n * u <= 0x1p-8 ? sinkproof_gamma(n, u) : INFINITY;
}

static moments row_moments(const sinkproof_setting *s, size_t d, const sinkproof_honest *x_d) {
    moments m = {.gamma = refined_gamma(d, s->u)};
    double n = (double)d, here = sinkproof_gamma(2 * n + 8, 0x1p-53), radii = 0;
    for (size_t i = 0; i < d; i++) {
        double big = fmax(fabs(x_d[i].lo), fabs(x_d[i].hi));
        m.mean += x_d[i].mid, m.sizes += big, m.squares += big * big;
        radii += sinkproof_radius(&x_d[i]);
    }
    m.mean /= n, m.sizes *= 1 + here, m.squares *= 1 + here;
    m.apart = (radii * (1 + here) + here * m.sizes) / n;
    m.off = m.apart + m.gamma * m.sizes / n + 4 * setting_underflow(s) * n;
    for (size_t i = 0; i < d; i++) {
        double mid = x_d[i].mid - m.mean;
        double lo = x_d[i].lo - m.mean - m.apart, hi = x_d[i].hi - m.mean + m.apart;
        double small = lo > 0 ? lo : hi < 0 ? -hi : 0, big = fmax(-lo, hi);
        m.sum += mid * mid, m.least += small * small, m.most += big * big;
    }
    m.least *= 1 - here, m.most *= 1 + here;
    return m;
}

// 1 / sqrt(M / d + eps).
static sinkproof_honest inverse_deviation(const sinkproof_setting *s, double n, double eps,
                                          const moments *m) {
    double u4 = sinkproof_gamma(4, s->u) + 0x1p-48; // the division, epsilon, and this evaluation
    double lost = 8 * n * n * setting_underflow(s);
    double more = 2 * m->gamma * sqrt(m->squares) + sqrt(lost);
    double apart =
        m->gamma * (1 + m->gamma) * (m->squares + 3 * m->sizes * (fabs(m->mean) + m->apart)) + lost;
    double low = fmax(sqrt(m->least) - more, 0), high = sqrt(m->most) + more;
    double least = fmin(low * low * (1 - m->gamma), m->least - apart) * (1 - 0x1p-50);
    double most = fmax(high * high * (1 + m->gamma), m->most + apart) * (1 + 0x1p-50);
    double below = (least < 0 ? least * (1 + u4) : least * (1 - u4)) / n + eps * (1 - u4);
    double above = (most / n + eps) * (1 + u4), root = 1 / sqrt(m->sum / n + eps);
    bool known = below > 0 && m->most + m->squares <= setting_largest(s);
    double lo = known ? 1 / sqrt(above) * (1 - 0x1p-50) : 0;
    double hi = known ? 1 / sqrt(below) * (1 + 0x1p-50) : INFINITY;
    sinkproof_honest set = {lo, hi, lo, hi, root, 0, 0, fmax(root - lo, hi - root), 0};
    return sinkproof_honest_declared(set, s->policy->ulp[SINKPROOF_RSQRT] * 2 * s->u, 0);
}

// (x - m) r. The radius also covers the forms x r - m r and (x minus a common part) r: six
// roundings of each part.
static sinkproof_honest normalised_set(const sinkproof_setting *s, const moments *m,
                                       sinkproof_honest x, sinkproof_honest r) {
    sinkproof_honest mean = sinkproof_set_around(m->mean, m->off, m->off, 0, m->off);
    sinkproof_honest y = sinkproof_honest_mul(sinkproof_honest_sub(x, mean), r);
    double parts = fmax(fabs(x.lo), fabs(x.hi)) + fabs(m->mean) + m->off;
    double lost = sinkproof_gamma(6, s->u) * parts + 6 * setting_underflow(s);
    y = sinkproof_honest_declared(y, 0, lost * r.hi * (1 + 0x1p-50));
    double radius = sinkproof_radius(&y);
    y.likely_lo = y.lo, y.likely_hi = y.hi; // the whole error may be systematic
    y.bias = radius, y.var = y.spread = y.order = 0;
    return y;
}

// Multiplied by the scale, plus the shift: rounded twice or once, or with the scale multiplied into
// r first.
static sinkproof_honest scaled_shifted_set(const sinkproof_setting *s, sinkproof_honest y,
                                           double scale, double shift) {
    sinkproof_honest z = sinkproof_honest_mul(y, sinkproof_exact_set(scale));
    double size = fmax(fabs(z.lo), fabs(z.hi)) + fabs(shift);
    double lost = sinkproof_gamma(4, s->u) * size + 4 * setting_underflow(s);
    z = sinkproof_honest_add(honest_flushed(s, z), sinkproof_exact_set(shift));
    z = sinkproof_honest_declared(z, 0, lost);
    // so that such elements weigh little where the whole error is systematic
    z.var = z.spread = lost * lost;
    z.likely_lo = z.lo, z.likely_hi = z.hi;
    return z;
}

void sinkproof_honest_layernorm(const sinkproof_setting *s, sinkproof_point point,
                                const sinkproof_norm *norm, const double *shift_d,
                                const sinkproof_honest *x_d, sinkproof_honest *y_d) {
    sinkproof_rounding before = s->policy->at[sinkproof_point_before_weight(point)];
    moments m = row_moments(s, norm->d, x_d);
    sinkproof_honest r = inverse_deviation(s, (double)norm->d, norm->eps, &m);
    for (size_t i = 0; i < norm->d; i++) {
        sinkproof_honest y = normalised_set(s, &m, honest_flushed(s, x_d[i]), r);
        if (before.format != SINKPROOF_REAL)
            y = sinkproof_honest_at(s, sinkproof_point_before_weight(point), y);
        y = scaled_shifted_set(s, y, norm->scale_d[i], shift_d[i]);
        y_d[i] = sinkproof_honest_at(s, point, y);
    }
}
//< bound.layernorm
