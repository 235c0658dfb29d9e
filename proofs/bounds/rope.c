// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The honest set of the rotation (bound.rope).
//
// A policy that rounds the frequencies fixes each step of the published computation after the power
// theta^(2p/d), whose declared error is the only freedom; a policy that does not computes the real
// formula. An angle is a product with a whole number, so an error of the frequency grows with the
// position: |d cos| <= |d angle| (|sin| + |d angle|). These errors are the same in every head and
// in every run: they count as systematic.
#include "proofs/bounds/rope.h"

static double round_frequency(const sinkproof_setting *s, double x) {
    return round_at(s->policy, AT_A4_FREQ, x);
}

// The ends of the YaRN ramp in dimensions (yarn.truncate).
void yarn_ramp_ends(const sinkproof_setting *s, const sinkproof_config *c, double *low,
                    double *high) {
    const double pi = 3.14159265358979323846;
    double half = (double)c->head_dim / 2, context = (double)c->rotation.original_context;
    *low = half * log(context / (c->rotation.beta_fast * 2 * pi)) / log(c->rotation.theta);
    *high = half * log(context / (c->rotation.beta_slow * 2 * pi)) / log(c->rotation.theta);
    if (c->rotation.truncate || s->policy->yarn_truncate) *low = floor(*low), *high = ceil(*high);
    *low = fmax(*low, 0), *high = fmin(*high, (double)c->head_dim - 1);
    if (*low == *high) *high += 0.001; // as published: no division by zero
}

// Inverse frequency from a power p = theta^(2i/d), each step rounded to `format`.
static double pair_frequency(sinkproof_format format, const sinkproof_config *c, double low,
                             double high, size_t i, double power) {
#define R(x) sinkproof_round(format, (x))
    if (c->rotation.kind == SINKPROOF_PLAIN_ROTATION) return R(1 / power);
    double ramp = R(R((double)i - R(low)) / R(high - low));
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    double keep = R(1 - ramp);
    double scaled = R(1 / R(R(c->rotation.factor) * power)), plain = R(1 / power);
    return R(R(scaled * R(1 - keep)) + R(plain * keep));
#undef R
}

// The frequency of the real formula. The errors of this evaluation: pow within 2^-48, a few
// operations, and the ends of the ramp, whose logarithms are accurate to 2^-51 and which change the
// share by at most 2^-50 (1 + high) / (high - low).
static sinkproof_honest real_frequency(const sinkproof_config *c, double low, double high,
                                       size_t i) {
    double power = pow(c->rotation.theta, 2 * (double)i / (double)c->head_dim);
    double f = pair_frequency(SINKPROOF_REAL, c, low, high, i, power);
    double share = 0x1p-50 * (1 + high) / (high - low);
    double error = f * 0x1p-47 + share * fabs(1 - 1 / c->rotation.factor) / power;
    return sinkproof_set_around(f, error, error, 0, 0);
}

//> rope.llama3
// Llama 3's frequency w ((1 - k) / s + k), k = (C w / 2 pi - slow) / (fast - slow) between 0 and 1,
// in any order of its operations. w has a relative error e; C w / 2 pi has four roundings more, and
// k, its sum with 1 and the products a few of their own: `rest` of each.
static sinkproof_honest llama3_frequency_set(const sinkproof_setting *s, const sinkproof_config *c,
                                             size_t i) {
    const double two_pi = 6.283185307179586, pow_here = 0x1p-48;
    const sinkproof_rotation *r = &c->rotation;
    bool rounds = s->policy->at[AT_A4_FREQ].format != SINKPROOF_REAL;
    double u = rounds ? sinkproof_unit_roundoff(s->policy->at[AT_A4_FREQ].format) : 0;
    double exponent = 2 * (double)i / (double)c->head_dim;
    double w = pow(r->theta, -exponent), turns = (double)r->original_context * w / two_pi;
    // theta and the exponent are rounded, which a power of theta raises; pow; its reciprocal
    double e = u * (2 * exponent * (1 + log(r->theta)) + 2) + pow_here;
    if (i > 0 && rounds) e += s->policy->ulp[SINKPROOF_POW] * 2 * s->u;
    double rest = 4 * u + 0x1p-50, width = r->beta_fast - r->beta_slow;
    double keep = fmin(fmax((turns - r->beta_slow) / width, 0), 1);
    double off = (turns * (e + rest) + r->beta_slow * rest) / width + rest;
    // what is beyond the ends by more than that is at an end exactly
    if (turns < r->beta_slow - width * off || turns > r->beta_fast + width * off) off = 0;
    double f = w * ((1 - keep) / r->factor + keep), error = f * (e + 2 * rest);
    error =
        (error + w * off * (1 - 1 / r->factor)) * (1 + 4 * (e + off + rest)); // products of them
    return sinkproof_set_around(f, error, error, 0, 0);
}
//< rope.llama3

// The set of the inverse frequency of pair i: mid and its two ends. If the policy lets an engine
// keep more precision, it is the hull of the stepped and the real frequency.
static sinkproof_honest frequency_set(const sinkproof_setting *s, const sinkproof_config *c,
                                      size_t i) {
    double low, high;
    if (c->rotation.kind == SINKPROOF_LLAMA3_ROTATION) return llama3_frequency_set(s, c, i);
    yarn_ramp_ends(s, c, &low, &high);
    sinkproof_rounding at = s->policy->at[AT_A4_FREQ];
    sinkproof_honest real = real_frequency(c, low, high, i), f = real;
    if (at.format != SINKPROOF_REAL) {
        double power = pow(round_frequency(s, c->rotation.theta),
                           round_frequency(s, 2 * (double)i / (double)c->head_dim));
        double declared = i == 0 ? 0 : s->policy->ulp[SINKPROOF_POW] * 2 * s->u;
        f.mid = pair_frequency(at.format, c, low, high, i, round_frequency(s, power));
        f.lo =
            pair_frequency(at.format, c, low, high, i, round_frequency(s, power * (1 + declared)));
        f.hi =
            pair_frequency(at.format, c, low, high, i, round_frequency(s, power * (1 - declared)));
        if (at.optional) f.lo = fmin(f.lo, real.lo), f.hi = fmax(f.hi, real.hi);
    }
    f.likely_lo = f.lo, f.likely_hi = f.hi;
    return f;
}

// Position times frequency, rounded or not: mid and its two ends.
sinkproof_honest honest_product_angle(const sinkproof_setting *s, const sinkproof_config *c,
                                      double position, size_t i) {
    sinkproof_honest f = frequency_set(s, c, i);
    sinkproof_rounding at = s->policy->at[AT_A4_ANGLE];
    double angle = round_at(s->policy, AT_A4_ANGLE, position * f.mid);
    double lo = round_at(s->policy, AT_A4_ANGLE, position * f.lo);
    double hi = round_at(s->policy, AT_A4_ANGLE, position * f.hi);
    if (at.optional) lo = fmin(lo, position * f.lo), hi = fmax(hi, position * f.hi);
    return (sinkproof_honest){.lo = lo, .hi = hi, .likely_lo = lo, .likely_hi = hi, .mid = angle};
}

// value = cos or sin of the angle, slope = the other; |error of the angle| <= width.
static sinkproof_honest cosine_or_sine_set(const sinkproof_setting *s, double value, double slope,
                                           double width, double concentration) {
    const double libm = 0x1p-50; // several times this evaluation's own error
    double error = width * (fabs(slope) + width) + libm;
    sinkproof_honest w = sinkproof_set_around(value, error, error, 0, width > 0 ? error : 0);
    w = sinkproof_honest_declared(w, s->policy->ulp[SINKPROOF_SINCOS] * 2 * s->u, 0);
    if (concentration != 1) {
        sinkproof_honest factor = sinkproof_exact_set(concentration);
        factor = sinkproof_honest_at(s, AT_A4_CONC, factor);
        w = sinkproof_honest_roundings(s, sinkproof_honest_mul(w, factor), 2);
    }
    return sinkproof_honest_at(s, AT_A4_COS, w);
}

//> bound.rope
static void fill_turn_table(const sinkproof_setting *s, const sinkproof_config *config,
                            double position, double concentration, sinkproof_honest *c_p,
                            sinkproof_honest *s_p) {
    sinkproof_rounding at = s->policy->at[AT_A4_ANGLE];
    for (size_t p = 0; p < config->head_dim / 2; p++) {
        sinkproof_honest a = honest_angle(s, config, position, p);
        double width = fmax(a.hi - a.mid, a.mid - a.lo) * (1 + 0x1p-50);
        if (at.optional || at.format == SINKPROOF_REAL) width += fabs(a.mid) * 0x1p-52;
        c_p[p] = cosine_or_sine_set(s, cos(a.mid), sin(a.mid), width, concentration);
        s_p[p] = cosine_or_sine_set(s, sin(a.mid), cos(a.mid), width, concentration);
    }
}

double yarn_concentration_set(const sinkproof_config *config) {
    bool carries = config->rotation.factor > 1 && config->rotation.kind == SINKPROOF_YARN;
    return carries ? 0.1 * log(config->rotation.factor) + 1 : 1;
}

void sinkproof_honest_rope_table(const sinkproof_setting *s, const sinkproof_config *config,
                                 double position, sinkproof_honest *c_p, sinkproof_honest *s_p) {
    fill_turn_table(s, config, position, yarn_concentration_set(config), c_p, s_p);
}

void sinkproof_honest_rope_plain(const sinkproof_setting *s, const sinkproof_config *config,
                                 double position, sinkproof_honest *c_p, sinkproof_honest *s_p) {
    fill_turn_table(s, config, position, 1, c_p, s_p);
}

static sinkproof_honest rotation_product(const sinkproof_setting *s, sinkproof_honest x,
                                         sinkproof_honest w) {
    x = honest_flushed(s, x), w = honest_flushed(s, w);
    return sinkproof_honest_at(s, AT_A4_PROD,
                               sinkproof_honest_inside(s, sinkproof_honest_mul(x, w)));
}

void sinkproof_honest_rotate(const sinkproof_setting *s, size_t head_dim,
                             const sinkproof_honest *x_d, const sinkproof_honest *c_p,
                             const sinkproof_honest *s_p, sinkproof_honest *y_d) {
    size_t half = head_dim / 2;
    for (size_t p = 0; p < half; p++) {
        sinkproof_honest a = x_d[p], b = x_d[p + half];
        sinkproof_honest first =
            sinkproof_honest_sub(rotation_product(s, a, c_p[p]), rotation_product(s, b, s_p[p]));
        sinkproof_honest second =
            sinkproof_honest_add(rotation_product(s, b, c_p[p]), rotation_product(s, a, s_p[p]));
        y_d[p] = sinkproof_honest_at(s, AT_A4, sinkproof_honest_inside(s, first));
        y_d[p + half] = sinkproof_honest_at(s, AT_A4, sinkproof_honest_inside(s, second));
    }
}
//< bound.rope
