// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Other forms of the rotation: angles by repeated products of the position with one ratio
// (bound.form-running-angle), and the concentration multiplied into the vector before it is turned
// (bound.form-scaled-first).
#include "proofs/bounds/rope.h"

//> bound.form-running-angle
// n s^i as an engine computes it, n, n s, (n s) s, ..., each product rounded: a rounding is
// monotone, so the ends come from the least and the largest ratio.
static double running_product(sinkproof_format format, double position, double ratio, size_t i) {
    double product = position;
    for (size_t k = 0; k < i; k++) product = sinkproof_round(format, product * ratio);
    return product;
}

// The ratio s = theta^(-2/d) errs by what is declared of pow; its exponent is rounded too.
static sinkproof_honest angle_by_running_product(const sinkproof_setting *s,
                                                 const sinkproof_config *c, double position,
                                                 size_t i) {
    sinkproof_format format = s->policy->inside;
    double exponent = sinkproof_round(format, 2 / (double)c->head_dim);
    double ratio = pow(c->rotation.theta, -exponent);
    double declared = s->policy->ulp[SINKPROOF_POW] * 2 * s->u + 0x1p-50;
    double least = sinkproof_round(format, ratio * (1 - declared));
    double largest = sinkproof_round(format, ratio * (1 + declared));
    double lo = running_product(format, position, least, i);
    double hi = running_product(format, position, largest, i);
    double mid = running_product(format, position, sinkproof_round(format, ratio), i);
    // the error of this evaluation
    double here = format == SINKPROOF_F64 ? hi * (double)(i + 1) * 0x1p-52 : 0;
    return (sinkproof_honest){.lo = lo - here,
                              .hi = hi + here,
                              .likely_lo = lo - here,
                              .likely_hi = hi + here,
                              .mid = mid};
}

// The share of a pair's angle that keeps its trained frequency; each step rounds.
static double trained_share(const sinkproof_setting *s, const sinkproof_config *c, size_t i) {
#define R(x) sinkproof_round(s->policy->inside, (x))
    double low, high;
    yarn_ramp_ends(s, c, &low, &high);
    double ramp = R(R((double)i - R(low)) / R(high - low));
    return R(1 - fmin(fmax(ramp, 0), 1));
#undef R
}

// The ramp is applied to the angle: f a (1 - k) + a k, f = 1 / factor, with FMA or without.
static sinkproof_honest ramped_angle(const sinkproof_setting *s, const sinkproof_config *c,
                                     size_t i, sinkproof_honest a) {
    if (c->rotation.kind == SINKPROOF_PLAIN_ROTATION) return sinkproof_honest_at(s, AT_A4_ANGLE, a);
    double keep = trained_share(s, c, i),
           f = sinkproof_round(s->policy->inside, 1 / c->rotation.factor);
    sinkproof_honest slow = sinkproof_honest_mul(a, sinkproof_exact_set(f));
    slow = sinkproof_honest_inside(s, slow);
    double rest = sinkproof_round(s->policy->inside, 1 - keep);
    slow = sinkproof_honest_inside(s, sinkproof_honest_mul(slow, sinkproof_exact_set(rest)));
    sinkproof_honest fast =
        sinkproof_honest_inside(s, sinkproof_honest_mul(a, sinkproof_exact_set(keep)));
    return sinkproof_honest_at(s, AT_A4_ANGLE, sinkproof_honest_add(slow, fast));
}
//< bound.form-running-angle

sinkproof_honest honest_angle(const sinkproof_setting *s, const sinkproof_config *config,
                              double position, size_t i) {
    const sinkproof_formed stage = SINKPROOF_FORM_OF_A4_FREQ;
    sinkproof_honest by_power = honest_product_angle(s, config, position, i);
    if (!sinkproof_policy_admits(s->policy, stage, SINKPROOF_A4_FREQ_RUNNING)) return by_power;
    if (config->rotation.kind == SINKPROOF_LLAMA3_ROTATION) // engines scale these in other ways
        return (sinkproof_honest){.lo = -INFINITY,
                                  .hi = INFINITY,
                                  .likely_lo = -INFINITY,
                                  .likely_hi = INFINITY,
                                  .mid = by_power.mid};
    sinkproof_honest by_product =
        ramped_angle(s, config, i, angle_by_running_product(s, config, position, i));
    if (!sinkproof_policy_admits(s->policy, stage, SINKPROOF_FORM_DEFINITION)) return by_product;
    return sinkproof_honest_hull(by_power, by_product);
}

//> bound.form-scaled-first
// The concentration rounds, then the product with it, then A4.scaled. The table stays without the
// concentration.
static void rotate_scaled_first(const sinkproof_setting *s, const sinkproof_config *config,
                                const sinkproof_honest *x_d, sinkproof_honest *y_d) {
    sinkproof_honest c = sinkproof_exact_set(yarn_concentration_set(config));
    c = sinkproof_honest_at(s, AT_A4_CONC, c);
    for (size_t d = 0; d < config->head_dim; d++) {
        sinkproof_honest x = honest_flushed(s, x_d[d]);
        y_d[d] = c.lo == 1 && c.hi == 1
                     ? x
                     : sinkproof_honest_roundings(s, sinkproof_honest_mul(x, c), 2);
        y_d[d] = sinkproof_honest_at(s, AT_A4_SCALED, y_d[d]);
    }
}

void sinkproof_honest_turn(const sinkproof_setting *s, const sinkproof_config *config,
                           const sinkproof_turns *turns, const sinkproof_honest *x_d,
                           sinkproof_honest *work_d, sinkproof_honest *y_d) {
    size_t head_dim = config->head_dim;
    if (turns->c_p != NULL) sinkproof_honest_rotate(s, head_dim, x_d, turns->c_p, turns->s_p, y_d);
    if (turns->plain_c_p == NULL) return;
    sinkproof_honest *scaled_d = work_d, *turned_d = work_d + head_dim;
    rotate_scaled_first(s, config, x_d, scaled_d);
    sinkproof_honest_rotate(s, head_dim, scaled_d, turns->plain_c_p, turns->plain_s_p, turned_d);
    for (size_t d = 0; d < head_dim; d++)
        y_d[d] = turns->c_p != NULL ? sinkproof_honest_choice(y_d[d], turned_d[d]) : turned_d[d];
}
//< bound.form-scaled-first
