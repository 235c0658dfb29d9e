// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rotary positions, plain, with YaRN or as Llama 3 scales them (A4, doc/05-rope.md). Coordinates d
// and d + head_dim / 2 of a head form a pair that turns by position times frequency; slow pairs
// turn `factor` times slower than they were trained to (interpolation), fast pairs as trained
// (extrapolation), a ramp between. Cosine and sine carry the concentration, so q.k grows by its
// square.
#include "ref/stages.h"

#include <math.h>

//> yarn.concentration
double sinkproof_yarn_concentration(const sinkproof_config *config) {
    bool carries = config->rotation.factor > 1 && config->rotation.kind == SINKPROOF_YARN;
    return carries ? 0.1 * log(config->rotation.factor) + 1.0 : 1.0;
}
//< yarn.concentration

// The pair that turns `rotations` times within the original context, as a real number.
static double pair_turning_times(const sinkproof_config *config, double rotations) {
    const double two_pi = 6.283185307179586;
    double turns = (double)config->rotation.original_context / (rotations * two_pi);
    return (double)config->head_dim * log(turns) / (2 * log(config->rotation.theta));
}

// GPT-OSS keeps the ends of the ramp fractional; truncation (the default elsewhere) widens it to
// whole pairs and changes the frequencies in between by up to 76 %.
void sinkproof_yarn_range(const sinkproof_config *config, bool truncate, double *low,
                          double *high) {
    *low = pair_turning_times(config, config->rotation.beta_fast);
    *high = pair_turning_times(config, config->rotation.beta_slow);
    //> yarn.truncate
    if (truncate) {
        *low = floor(*low);
        *high = ceil(*high);
    }
    //< yarn.truncate
    *low = fmax(*low, 0);
    *high = fmin(*high, (double)(config->head_dim - 1));
    if (*low == *high) *high += 0.001; // as published: no division by zero
}

// Llama 3's share of a frequency as trained grows with the number of turns in the original context.
static double llama3_frequency(sinkproof_format format, const sinkproof_rotation *r,
                               double trained) {
    const double two_pi = 6.283185307179586;
#define R(x) sinkproof_round(format, (x))
    //> rope.llama3
    double wavelength = R(R(two_pi) / trained);
    double turns = R((double)r->original_context / wavelength);
    double keep = R(R(turns - R(r->beta_slow)) / R(r->beta_fast - r->beta_slow));
    keep = fmin(fmax(keep, 0), 1);
    double slowed = R(R(R(1 - keep) * trained) / R(r->factor));
    return R(slowed + R(keep * trained));
    //< rope.llama3
#undef R
}

// One frequency. If the policy rounds A4.freq, every step of the published computation is rounded,
// in its order; otherwise this is the formula over the reals.
static double yarn_frequency(const sinkproof_policy *policy, const sinkproof_config *config,
                             double low, double high, size_t d) {
    const sinkproof_format format = policy->at[AT_A4_FREQ].format;
#define R(x) sinkproof_round(format, (x))
    double exponent = R(2 * (double)d / (double)config->head_dim);
    double period = R(pow(R(config->rotation.theta), exponent)); // theta^(2 d / head_dim)
    if (config->rotation.kind == SINKPROOF_PLAIN_ROTATION) return R(1.0 / period);
    if (config->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        return llama3_frequency(format, &config->rotation, R(1.0 / period));
    //> yarn.ramp
    double interpolated = R(1.0 / R(R(config->rotation.factor) * period));
    double extrapolated = R(1.0 / period);
    double ramp = R(R((double)d - R(low)) / R(high - low));
    ramp = fmin(fmax(ramp, 0), 1);
    double keep = R(1 - ramp); // share of the frequency as trained
    return R(R(interpolated * R(1 - keep)) + R(extrapolated * keep));
    //< yarn.ramp
#undef R
}

void sinkproof_yarn_frequencies(const sinkproof_policy *policy, const sinkproof_config *config,
                                double *freq_d) {
    double low, high;
    sinkproof_yarn_range(config, config->rotation.truncate || policy->yarn_truncate, &low, &high);
    for (size_t d = 0; d < config->head_dim / 2; d++)
        freq_d[d] = yarn_frequency(policy, config, low, high, d);
}

void sinkproof_rope_table(const sinkproof_policy *policy, const sinkproof_config *config,
                          const double *freq_d, size_t first, size_t n, double *cos_nd,
                          double *sin_nd) {
    size_t half = config->head_dim / 2;
    double concentration = round_at(policy, AT_A4_CONC, sinkproof_yarn_concentration(config));
    for (size_t t = 0; t < n; t++)
        for (size_t d = 0; d < half; d++) {
            double position = (double)(first + t);
            double angle = round_at(policy, AT_A4_ANGLE, position * freq_d[d]);
            cos_nd[t * half + d] = round_at(policy, AT_A4_COS, cos(angle) * concentration);
            sin_nd[t * half + d] = round_at(policy, AT_A4_COS, sin(angle) * concentration);
        }
}

void sinkproof_rope(const sinkproof_policy *policy, size_t n, size_t n_heads, size_t head_dim,
                    const double *cos_nd, const double *sin_nd, double *x_nhd) {
    size_t half = head_dim / 2;
#define PROD(x) round_at(policy, AT_A4_PROD, (x))
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < n_heads; h++)
            for (size_t d = 0; d < half; d++) {
                double *x1 = x_nhd + (t * n_heads + h) * head_dim + d, *x2 = x1 + half;
                double c = cos_nd[t * half + d], s = sin_nd[t * half + d];
                //> rope.rotate rope.orthogonal
                double o1 = PROD(*x1 * c) - PROD(*x2 * s);
                double o2 = PROD(*x2 * c) + PROD(*x1 * s);
                *x1 = round_at(policy, AT_A4, o1);
                *x2 = round_at(policy, AT_A4, o2);
                //< rope.rotate rope.orthogonal
            }
#undef PROD
}
