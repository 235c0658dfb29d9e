// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Frequencies, angles and the table of a rotation (bound.rope), computed again from the formulas of
// their bound: ends of the ramp outside the head, the width of a frequency over the reals, steps
// that are rounded, and what the concentration adds. 0.01 CPU seconds.
#include "proofs/bounds/rope.h"
#include "tests/shared/sets.h"

enum { MOST = 64 };
static const real TWO_PI = 6.283185307179586476925287L;

typedef struct yarn {
    size_t head_dim, context;
    double fast, slow, theta, factor;
    bool truncate;
} yarn;

static const yarn shapes[] = {
    {64, 4096, 32, 1, 150000, 32, false},
    {64, 4096, 32, 1, 150000, 32, true},
    {16, 64, 32, 1, 500, 1.5, false},
    {16, 64, 32, 1, 500, 1.5, true},
    {8, 4096, 64, 0x1p-40, 10000, 4, true},
    {8, 4096, 326, 3.6, 16, 4, false},
    {8, 4096, 326, 7.2, 16, 0.5, false},
    {16, 6, 32, 1, 150000, 8, true},
    {8, 134217728, 1, 0x1p-20, 10000, 2, true}, // no width: 7 and 7.001
    {8, 134217728, 1, 0x1p-20, 10000, 0.5, true},
    {12, 4096, 32, 1, 1000, 3, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static sinkproof_config config_of(const yarn *y) {
    sinkproof_config config;
    if (!sinkproof_config_named("gpt-oss-20b", &config)) abort();
    config.head_dim = y->head_dim, config.rotation.original_context = y->context;
    config.rotation.beta_fast = y->fast, config.rotation.beta_slow = y->slow;
    config.rotation.theta = y->theta, config.rotation.factor = y->factor;
    config.rotation.truncate = y->truncate;
    return config;
}

static real correction(const yarn *y, double beta) {
    real turns = (real)y->context / (TWO_PI * beta);
    return (real)y->head_dim / 2 * logl(turns) / logl(y->theta);
}

typedef struct ends {
    real low, high;
} ends;

static ends ends_of(const yarn *y) {
    ends e = {correction(y, y->fast), correction(y, y->slow)};
    if (y->truncate) e = (ends){floorl(e.low), ceill(e.high)};
    e = (ends){fmaxl(e.low, 0), fminl(e.high, (real)y->head_dim - 1)};
    if (e.low == e.high) e.high += 0.001;
    return e;
}

static void ramps(void) {
    distance d = {0};
    sinkproof_policy policy = real_policy("definition");
    sinkproof_setting s = setting(&policy);
    for (size_t k = 0; k < SHAPES; k++) {
        sinkproof_config config = config_of(&shapes[k]);
        ends e = ends_of(&shapes[k]);
        double low, high;
        yarn_ramp_ends(&s, &config, &low, &high);
        near(&d, low, e.low, 64, 8), near(&d, high, e.high, 64, 8);
    }
    report(&d, "bound.rope yarn.truncate", "ends of the ramp", 0);
}

// theta^(-2i/d) of the share that stays and of the rest, divided by the factor.
static real frequency(const yarn *y, size_t i) {
    ends e = ends_of(y);
    real ramp = fminl(fmaxl(((real)i - e.low) / (e.high - e.low), 0), 1);
    return (ramp / y->factor + 1 - ramp) * powl(y->theta, -2 * (real)i / (real)y->head_dim);
}

static real width(const yarn *y, size_t i) {
    ends e = ends_of(y);
    real share = 0x1p-50L * (1 + e.high) / (e.high - e.low);
    return frequency(y, i) * 0x1p-47L + share * fabsl(1 - 1 / (real)y->factor) *
                                            powl(y->theta, -2 * (real)i / (real)y->head_dim);
}

static sinkproof_policy policy_of(sinkproof_format freq, sinkproof_format angle, bool optional) {
    sinkproof_policy policy = real_policy("definition");
    policy.at[AT_A4_FREQ].format = freq;
    policy.at[AT_A4_ANGLE].format = angle;
    policy.at[AT_A4_FREQ].optional = optional;
    policy.at[AT_A4_ANGLE].optional = optional;
    return policy;
}

static sinkproof_honest angle_of(const sinkproof_policy *policy, const yarn *y, double position,
                                 size_t i) {
    sinkproof_setting s = setting(policy);
    sinkproof_config config = config_of(y);
    return honest_product_angle(&s, &config, position, i);
}

// Over the reals: the middle, and both ends as far from it as stated, to the roundings of an end.
static void real_angles(void) {
    distance mid = {0}, wide = {0};
    sinkproof_policy policy = policy_of(SINKPROOF_REAL, SINKPROOF_REAL, false);
    for (size_t k = 0; k < SHAPES; k++)
        for (size_t i = 0; i < shapes[k].head_dim / 2; i++)
            for (double position = 1; position < 9; position *= 4) {
                sinkproof_honest a = angle_of(&policy, &shapes[k], position, i);
                real f = position * frequency(&shapes[k], i), w = position * width(&shapes[k], i);
                // pow, the ramp's ends and what moves a share: all counted in the width.
                near(&mid, a.mid, f, w * 0x1p53L, 1);
                near(&wide, a.hi - a.mid, w, a.mid, 3), near(&wide, a.mid - a.lo, w, a.mid, 3);
                near(&wide, a.likely_hi, a.hi, 0, 1), near(&wide, a.likely_lo, a.lo, 0, 1);
            }
    report(&mid, "bound.rope", "angles over the reals", 0);
    report(&wide, "bound.rope", "their widths", 0);
}

// ---- rounded steps ------------------------------------------------------------------------------

// Each step rounded to the format, from a power.
static double stepped(sinkproof_format f, const yarn *y, double power, size_t i) {
#define R(x) sinkproof_round(f, (double)(x))
    ends e = ends_of(y);
    double low = (double)e.low, high = (double)e.high;
    double ramp = fmin(fmax(R(R((double)i - R(low)) / R(high - low)), 0), 1), stays = R(1 - ramp);
    double divided = R(1 / R(R(y->factor) * power));
    return R(R(divided * R(1 - stays)) + R(R(1 / power) * stays));
#undef R
}

// The three frequencies of a rounded policy, and of one that may round, and their angles.
static void rounded_angles(void) {
    static const sinkproof_format formats[] = {SINKPROOF_BF16, SINKPROOF_F16, SINKPROOF_F32};
    size_t apart = 0, asked = 0;
    sinkproof_policy exact = policy_of(SINKPROOF_REAL, SINKPROOF_REAL, false);
    for (size_t k = 0; k < SHAPES; k++)
        for (size_t f = 0; f < 3; f++)
            for (int optional = 0; optional < 2; optional++)
                for (size_t i = 0; i < shapes[k].head_dim / 2; i++, asked++) {
                    const yarn *y = &shapes[k];
                    sinkproof_format freq = formats[f], angle = formats[(f + 1) % 3];
                    sinkproof_policy policy = policy_of(freq, angle, optional);
                    double base = sinkproof_round(freq, y->theta);
                    double share = sinkproof_round(freq, 2 * (double)i / (double)y->head_dim);
                    double power = pow(base, share), off = i == 0 ? 0 : 0x1p-23;
                    off *= policy.ulp[SINKPROOF_POW];
                    double mid = stepped(freq, y, sinkproof_round(freq, power), i);
                    double lo = stepped(freq, y, sinkproof_round(freq, power * (1 + off)), i);
                    double hi = stepped(freq, y, sinkproof_round(freq, power * (1 - off)), i);
                    sinkproof_honest real_one = angle_of(&exact, y, 1, i);
                    if (optional) lo = fmin(lo, real_one.lo), hi = fmax(hi, real_one.hi);
                    double position = 77, a_lo = sinkproof_round(angle, position * lo);
                    double a_hi = sinkproof_round(angle, position * hi);
                    if (optional)
                        a_lo = fmin(a_lo, position * lo), a_hi = fmax(a_hi, position * hi);
                    sinkproof_honest a = angle_of(&policy, y, position, i);
                    apart += a.mid != sinkproof_round(angle, position * mid);
                    apart += a.lo != a_lo || a.likely_lo != a_lo;
                    apart += a.hi != a_hi || a.likely_hi != a_hi;
                }
    ok(apart == 0 && asked > 0, "bound.rope angles by rounded steps: %zu pairs worst=%zu bound=0",
       asked, apart);
}

// ---- the table ----------------------------------------------------------------------------------

static sinkproof_honest wave(const sinkproof_setting *s, double value, double slope, double width,
                             double concentration) {
    double error = width * (fabs(slope) + width) + 0x1p-50;
    sinkproof_honest w = {add_down(value, -error),
                          sinkproof_add_up(value, error),
                          add_down(value, -error),
                          sinkproof_add_up(value, error),
                          value,
                          0,
                          0,
                          width > 0 ? error : 0,
                          0};
    w = sinkproof_honest_declared(w, s->policy->ulp[SINKPROOF_SINCOS] * 0x1p-23, 0);
    if (concentration != 1) {
        sinkproof_honest factor = sinkproof_exact_set(concentration);
        w = sinkproof_honest_mul(w, sinkproof_honest_at(s, AT_A4_CONC, factor));
        w = sinkproof_honest_roundings(s, w, 2);
    }
    return sinkproof_honest_at(s, AT_A4_COS, w);
}

static void tables(void) {
    static const sinkproof_format formats[] = {SINKPROOF_REAL, SINKPROOF_BF16, SINKPROOF_F32};
    size_t apart = 0, asked = 0;
    for (size_t k = 0; k < SHAPES; k++)
        for (size_t f = 0; f < 9; f++) {
            sinkproof_policy policy = policy_of(formats[f / 3], formats[f / 3], f % 2);
            policy.at[AT_A4_CONC].format = formats[f % 3];
            policy.inside = SINKPROOF_F32;
            if (f % 4 == 3) policy.ulp[SINKPROOF_POW] = 1024; // wide angles
            sinkproof_setting s = setting(&policy);
            sinkproof_config config = config_of(&shapes[k]);
            sinkproof_honest c_p[MOST / 2], s_p[MOST / 2], plain_c[MOST / 2], plain_s[MOST / 2];
            sinkproof_honest_rope_table(&s, &config, 5, c_p, s_p);
            sinkproof_honest_rope_plain(&s, &config, 5, plain_c, plain_s);
            double factor = shapes[k].factor, times = factor > 1 ? 0.1 * log(factor) + 1 : 1;
            for (size_t p = 0; p < shapes[k].head_dim / 2; p++, asked++) {
                sinkproof_honest a = honest_product_angle(&s, &config, 5, p);
                double w = fmax(a.hi - a.mid, a.mid - a.lo) * (1 + 0x1p-50);
                if (f % 2 || f / 3 == 0) w += fabs(a.mid) * 0x1p-52;
                sinkproof_honest stated[4] = {wave(&s, cos(a.mid), sin(a.mid), w, times),
                                              wave(&s, sin(a.mid), cos(a.mid), w, times),
                                              wave(&s, cos(a.mid), sin(a.mid), w, 1),
                                              wave(&s, sin(a.mid), cos(a.mid), w, 1)};
                apart += !same(&c_p[p], &stated[0]) + !same(&s_p[p], &stated[1]) +
                         !same(&plain_c[p], &stated[2]) + !same(&plain_s[p], &stated[3]);
            }
        }
    ok(apart == 0 && asked > 0,
       "bound.rope tables with and without concentration: %zu pairs "
       "worst=%zu bound=0",
       asked, apart);
}

int main(void) {
    ramps();
    real_angles();
    rounded_angles();
    tables();
    return tap_done();
}
