// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Rotary positions with YaRN frequencies over the reals. For d = 0 .. half-1:
//     f_d = theta^(d/half),  r_d = clamp((d - low) / (high - low), 0, 1),
//     inv_freq_d = r_d / (factor f_d) + (1 - r_d) / f_d,
//     low  = half ln(context / (2 pi beta_fast)) / ln(theta), high with beta_slow,
// low and high are rounded to whole numbers only if the model says truncate, and clamped to
// [0, 2 half); the concentration c = 1 + ln(factor)/10 multiplies the rotation of the pair
// (d, d + half) by the angle position inv_freq_d. Nothing is rounded to binary32, although engines
// do.
#include "proofs/truth/truth.h"

#include <math.h>

//> yarn.ramp
// half ln(context / (2 pi beta)) / ln(theta): the dimension that turns beta times in the context.
static void yarn_correction(arb_t out, const sinkproof_config *config, double beta, slong bits) {
    arb_t t;
    arb_init(t);
    arb_const_pi(out, bits);
    arb_mul_2exp_si(out, out, 1);
    sinkproof_truth_decimal(t, beta, bits);
    arb_mul(out, out, t, bits);
    arb_ui_div(out, config->rotation.original_context, out, bits);
    arb_log(out, out, bits);
    arb_mul_ui(out, out, config->head_dim / 2, bits);
    sinkproof_truth_decimal(t, config->rotation.theta, bits);
    arb_log(t, t, bits);
    arb_div(out, out, t, bits);
    arb_clear(t);
}

// r_d = clamp((d - low) / (high - low), 0, 1)
static void yarn_ramp(arb_t out, const sinkproof_truth_yarn *yarn, size_t d, slong bits) {
    arb_t width, bound;
    balls_init(width, bound);
    arb_sub(width, yarn->high, yarn->low, bits);
    arb_sub_ui(out, yarn->low, d, bits);
    arb_neg(out, out);
    arb_div(out, out, width, bits);
    arb_max(out, out, bound, bits); // bound = 0
    arb_one(bound);
    arb_min(out, out, bound, bits);
    balls_clear(width, bound);
}

//> rope.llama3
// The share that Llama 3 slows down: 1 - clamp((context w / 2 pi - slow) / (fast - slow), 0, 1), w
// the frequency as trained.
static void llama3_slowed(arb_t out, const sinkproof_config *config, const arb_t trained,
                          slong bits) {
    arb_t t, bound;
    balls_init(t, bound);
    arb_const_pi(t, bits);
    arb_mul_2exp_si(t, t, 1);
    arb_div(out, trained, t, bits);
    arb_mul_ui(out, out, config->rotation.original_context, bits);
    sinkproof_truth_decimal(t, config->rotation.beta_slow, bits);
    arb_sub(out, out, t, bits);
    sinkproof_truth_decimal(bound, config->rotation.beta_fast, bits);
    arb_sub(t, bound, t, bits);
    arb_div(out, out, t, bits);
    arb_zero(bound);
    arb_max(out, out, bound, bits);
    arb_one(bound);
    arb_min(out, out, bound, bits);
    arb_sub(out, bound, out, bits);
    balls_clear(t, bound);
}
//< rope.llama3

// inv_freq_d = (r_d / factor + 1 - r_d) theta^(-d/half)
static void yarn_frequency_ball(arb_t out, const sinkproof_config *config,
                                const sinkproof_truth_yarn *yarn, size_t d, slong bits) {
    arb_t r, t, trained;
    balls_init(r, t, trained);
    sinkproof_truth_decimal(trained, config->rotation.theta, bits);
    arb_log(trained, trained, bits);
    arb_mul_ui(trained, trained, d, bits);
    arb_div_ui(trained, trained, yarn->half, bits);
    arb_neg(trained, trained);
    arb_exp(trained, trained, bits);
    if (config->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        llama3_slowed(r, config, trained, bits);
    else
        yarn_ramp(r, yarn, d, bits);
    sinkproof_truth_decimal(t, config->rotation.factor, bits);
    arb_div(out, r, t, bits);
    arb_add_ui(out, out, 1, bits);
    arb_sub(out, out, r, bits);
    arb_mul(out, out, trained, bits);
    balls_clear(r, t, trained);
}
//< yarn.ramp

//> yarn.concentration
static void yarn_concentration_ball(arb_t out, const sinkproof_config *config, slong bits) {
    arb_one(out);
    if (!(config->rotation.factor > 1) || config->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        return;
    arb_t t;
    arb_init(t);
    sinkproof_truth_decimal(t, config->rotation.factor, bits);
    arb_log(t, t, bits);
    arb_div_ui(t, t, 10, bits);
    arb_add(out, out, t, bits);
    arb_clear(t);
}
//< yarn.concentration

// The ends of the ramp, clamped to the head; a ramp of no width gets 0.001, as published.
static void ramp_ends(sinkproof_truth_yarn *yarn, const sinkproof_config *config, slong bits) {
    yarn_correction(yarn->low, config, config->rotation.beta_fast, bits);
    yarn_correction(yarn->high, config, config->rotation.beta_slow, bits);
    //> yarn.truncate
    if (config->rotation.truncate) {
        arb_floor(yarn->low, yarn->low, bits);
        arb_ceil(yarn->high, yarn->high, bits);
    }
    //< yarn.truncate
    arb_t t;
    arb_init(t); // 0
    if (!arb_is_nonnegative(yarn->low)) arb_max(yarn->low, yarn->low, t, bits);
    arb_set_ui(t, config->head_dim - 1);
    if (!arb_le(yarn->high, t)) arb_min(yarn->high, yarn->high, t, bits);
    if (arb_is_exact(yarn->low) && arb_equal(yarn->low, yarn->high)) {
        sinkproof_truth_decimal(t, 0.001, bits);
        arb_add(yarn->high, yarn->high, t, bits);
    }
    arb_clear(t);
}

void sinkproof_truth_yarn_init(sinkproof_truth_yarn *yarn, const sinkproof_config *config,
                               slong bits) {
    yarn->half = config->head_dim / 2;
    yarn->inv_freq_d = _arb_vec_init((slong)yarn->half);
    balls_init(yarn->concentration, yarn->low, yarn->high);
    yarn_concentration_ball(yarn->concentration, config, bits);
    ramp_ends(yarn, config, bits);
    for (size_t d = 0; d < yarn->half; d++)
        yarn_frequency_ball(yarn->inv_freq_d + d, config, yarn, d, bits);
}

void sinkproof_truth_yarn_clear(sinkproof_truth_yarn *yarn) {
    _arb_vec_clear(yarn->inv_freq_d, (slong)yarn->half);
    balls_clear(yarn->concentration, yarn->low, yarn->high);
}

//> rope.rotate rope.orthogonal
// (x, y) -> (x cos - y sin, y cos + x sin), where cos and sin include the concentration.
static void rotate_pair(arb_t out_x, arb_t out_y, const arb_t x, const arb_t y, const arb_t cosine,
                        const arb_t sine, slong bits) {
    arb_t first;
    arb_init(first);
    arb_mul(first, x, cosine, bits);
    arb_submul(first, y, sine, bits);
    arb_mul(out_y, y, cosine, bits);
    arb_addmul(out_y, x, sine, bits);
    arb_swap(out_x, first);
    arb_clear(first);
}
//< rope.rotate rope.orthogonal

void sinkproof_truth_rope(arb_ptr out_nhd, arb_srcptr x_nhd, size_t n, size_t heads,
                          const int32_t *positions_n, const sinkproof_truth_yarn *yarn,
                          slong bits) {
    size_t half = yarn->half;
    arb_t angle, cosine, sine;
    balls_init(angle, cosine, sine);
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < half; d++) {
            arb_mul_si(angle, yarn->inv_freq_d + d, positions_n[i], bits);
            arb_sin_cos(sine, cosine, angle, bits);
            arb_mul(cosine, cosine, yarn->concentration, bits);
            arb_mul(sine, sine, yarn->concentration, bits);
            for (size_t h = 0; h < heads; h++) {
                size_t at = (i * heads + h) * 2 * half + d;
                rotate_pair(out_nhd + at, out_nhd + at + half, x_nhd + at, x_nhd + at + half,
                            cosine, sine, bits);
            }
        }
    balls_clear(angle, cosine, sine);
}

static void set_decimal(mpfr_t out, double value) {
    char text[40];
    truth_decimal_text(value, text);
    mpfr_set_str(out, text, 10, MPFR_RNDN);
}

static void mpfr_correction(mpfr_t out, const sinkproof_config *config, double beta) {
    mpfr_t t;
    mpfr_init2(t, mpfr_get_prec(out));
    mpfr_const_pi(out, MPFR_RNDN);
    mpfr_mul_ui(out, out, 2, MPFR_RNDN);
    set_decimal(t, beta);
    mpfr_mul(out, out, t, MPFR_RNDN);
    mpfr_ui_div(out, config->rotation.original_context, out, MPFR_RNDN);
    mpfr_log(out, out, MPFR_RNDN);
    mpfr_mul_ui(out, out, config->head_dim / 2, MPFR_RNDN);
    set_decimal(t, config->rotation.theta);
    mpfr_log(t, t, MPFR_RNDN);
    mpfr_div(out, out, t, MPFR_RNDN);
    mpfr_clear(t);
}

// The ends of the ramp.
static void mpfr_ramp_ends(mpfr_t low, mpfr_t high, const sinkproof_config *config) {
    mpfr_correction(low, config, config->rotation.beta_fast);
    mpfr_correction(high, config, config->rotation.beta_slow);
    if (config->rotation.truncate) {
        mpfr_floor(low, low);
        mpfr_ceil(high, high);
    }
    if (mpfr_sgn(low) < 0) mpfr_set_zero(low, 1);
    if (mpfr_cmp_ui(high, config->head_dim - 1) > 0)
        mpfr_set_ui(high, config->head_dim - 1, MPFR_RNDN);
    if (!mpfr_equal_p(low, high)) return;
    mpfr_t apart;
    mpfr_init2(apart, mpfr_get_prec(high));
    set_decimal(apart, 0.001);
    mpfr_add(high, high, apart, MPFR_RNDN);
    mpfr_clear(apart);
}

static void mpfr_concentration(mpfr_ptr out, const sinkproof_config *config, mpfr_t factor,
                               mpfr_prec_t bits) {
    mpfr_t t;
    mpfr_init2(t, bits);
    mpfr_log(t, factor, MPFR_RNDN);
    mpfr_div_ui(t, t, 10, MPFR_RNDN);
    mpfr_add_ui(out, t, 1, MPFR_RNDN);
    if (!(config->rotation.factor > 1) || config->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
        mpfr_set_ui(out, 1, MPFR_RNDN);
    mpfr_clear(t);
}

// ramp_d = 1 - (context w / 2 pi - slow) / (fast - slow), w = 1 / power.
static void mpfr_llama3_ramp(mpfr_t ramp_d, mpfr_t t, const sinkproof_config *config,
                             const mpfr_t power) {
    mpfr_t wide;
    mpfr_init2(wide, mpfr_get_prec(t));
    mpfr_const_pi(t, MPFR_RNDN);
    mpfr_mul_ui(t, t, 2, MPFR_RNDN);
    mpfr_mul(t, t, power, MPFR_RNDN);
    mpfr_ui_div(ramp_d, config->rotation.original_context, t, MPFR_RNDN);
    set_decimal(t, config->rotation.beta_slow);
    mpfr_sub(ramp_d, ramp_d, t, MPFR_RNDN);
    set_decimal(wide, config->rotation.beta_fast);
    mpfr_sub(t, wide, t, MPFR_RNDN);
    mpfr_div(ramp_d, ramp_d, t, MPFR_RNDN);
    mpfr_ui_sub(ramp_d, 1, ramp_d, MPFR_RNDN);
    mpfr_clear(wide);
}

void truth_mpfr_yarn(mpfr_ptr inv_freq_d, mpfr_ptr concentration, const sinkproof_config *config,
                     mpfr_prec_t bits) {
    size_t half = config->head_dim / 2;
    mpfr_t low, high, ramp_d, factor, power, t;
    mpfr_inits2(bits, low, high, ramp_d, factor, power, t, (mpfr_ptr)0);
    mpfr_ramp_ends(low, high, config);
    set_decimal(factor, config->rotation.factor);
    mpfr_concentration(concentration, config, factor, bits);
    for (size_t d = 0; d < half; d++) {
        set_decimal(power, config->rotation.theta); // theta^(d/half)
        mpfr_log(power, power, MPFR_RNDN);
        mpfr_mul_ui(power, power, d, MPFR_RNDN);
        mpfr_div_ui(power, power, half, MPFR_RNDN);
        mpfr_exp(power, power, MPFR_RNDN);
        mpfr_ui_sub(ramp_d, d, low, MPFR_RNDN);
        mpfr_sub(t, high, low, MPFR_RNDN);
        mpfr_div(ramp_d, ramp_d, t, MPFR_RNDN);
        if (config->rotation.kind == SINKPROOF_LLAMA3_ROTATION)
            mpfr_llama3_ramp(ramp_d, t, config, power);
        if (mpfr_cmp_ui(ramp_d, 0) < 0) mpfr_set_ui(ramp_d, 0, MPFR_RNDN);
        if (mpfr_cmp_ui(ramp_d, 1) > 0) mpfr_set_ui(ramp_d, 1, MPFR_RNDN);
        mpfr_div(t, ramp_d, factor, MPFR_RNDN);
        mpfr_ui_sub(ramp_d, 1, ramp_d, MPFR_RNDN);
        mpfr_add(t, t, ramp_d, MPFR_RNDN);
        mpfr_div(inv_freq_d + d, t, power, MPFR_RNDN);
    }
    mpfr_clears(low, high, ramp_d, factor, power, t, (mpfr_ptr)0);
}

void truth_mpfr_rope(mpfr_ptr out_d, mpfr_srcptr x_d, size_t half, int32_t position,
                     mpfr_srcptr inv_freq_d, mpfr_srcptr concentration, mpfr_prec_t bits) {
    mpfr_t angle, cosine, sine, first, second;
    mpfr_inits2(bits, angle, cosine, sine, first, second, (mpfr_ptr)0);
    for (size_t d = 0; d < half; d++) {
        mpfr_mul_si(angle, inv_freq_d + d, position, MPFR_RNDN);
        mpfr_sin_cos(sine, cosine, angle, MPFR_RNDN);
        mpfr_mul(cosine, cosine, concentration, MPFR_RNDN);
        mpfr_mul(sine, sine, concentration, MPFR_RNDN);
        // x cos - y sin and y cos + x sin, each with one rounding
        mpfr_fmms(first, x_d + d, cosine, x_d + half + d, sine, MPFR_RNDN);
        mpfr_fmma(second, x_d + half + d, cosine, x_d + d, sine, MPFR_RNDN);
        mpfr_set(out_d + d, first, MPFR_RNDN);
        mpfr_set(out_d + half + d, second, MPFR_RNDN);
    }
    mpfr_clears(angle, cosine, sine, first, second, (mpfr_ptr)0);
}
