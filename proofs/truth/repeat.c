// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The rows of one repeated token, in balls.
#include "proofs/truth/repeat.h"

#include <stdbool.h>

//> repeat.relative
void repeat_first(arb_ptr first_t, arb_srcptr g_d, size_t n, slong bits) {
    arb_t e, sum;
    balls_init(e, sum);
    for (size_t d = 0; d < n; d++) {
        arb_exp(e, g_d + d, bits);
        arb_add(sum, sum, e, bits);
        arb_div(first_t + d, e, sum, bits);
    }
    balls_clear(e, sum);
}
//< repeat.relative

//> repeat.nope
void repeat_mean(arb_t mean, arb_srcptr first_t, size_t n, slong bits) {
    arb_zero(mean);
    for (size_t t = 0; t < n; t++) arb_add(mean, mean, first_t + t, bits);
    arb_div_ui(mean, mean, n, bits);
}

void repeat_even_mean(arb_t mean, size_t n, slong bits) {
    arb_t share;
    arb_init(share);
    arb_zero(mean);
    for (size_t t = 1; t <= n; t++) {
        arb_set_ui(share, 1);
        arb_div_ui(share, share, t, bits);
        arb_add(mean, mean, share, bits);
    }
    arb_div_ui(mean, mean, n, bits);
    arb_clear(share);
}
//< repeat.nope

//> repeat.alibi
void repeat_alibi(arb_ptr g_d, size_t n, const arb_t slope, slong bits) {
    for (size_t d = 0; d < n; d++) {
        arb_mul_ui(g_d + d, slope, d, bits);
        arb_neg(g_d + d, g_d + d);
    }
}

// Numerator and denominator by e^x - 1, so that no digits are lost where the slope is small.
void repeat_alibi_closed(arb_t a, size_t t, const arb_t slope, slong bits) {
    arb_t x, all;
    balls_init(x, all);
    arb_mul_si(x, slope, -(slong)t, bits);
    arb_expm1(all, x, bits);
    arb_neg(x, slope);
    arb_expm1(a, x, bits);
    arb_div(a, a, all, bits);
    arb_mul_ui(x, x, t - 1, bits);
    arb_exp(x, x, bits);
    arb_mul(a, a, x, bits);
    balls_clear(x, all);
}
//< repeat.alibi

// The k-th logarithmic bucket begins at half (far / half)^(k / half): d reaches it when d^half >=
// half^half (far / half)^k, that is, d^half half^k >= half^half far^k.
static bool distance_reaches_bucket(size_t d, size_t k, size_t half, size_t far) {
    fmpz_t left, right, power;
    fmpz_init(left);
    fmpz_init(right);
    fmpz_init(power);
    fmpz_ui_pow_ui(left, d, half);
    fmpz_ui_pow_ui(power, half, k);
    fmpz_mul(left, left, power);
    fmpz_ui_pow_ui(right, half, half);
    fmpz_ui_pow_ui(power, far, k);
    fmpz_mul(right, right, power);
    bool at_least = fmpz_cmp(left, right) >= 0;
    fmpz_clear(left);
    fmpz_clear(right);
    fmpz_clear(power);
    return at_least;
}

size_t repeat_t5_bucket(size_t distance, size_t buckets, size_t far) {
    size_t half = buckets / 2, bucket = distance;
    if (distance < half) return distance;
    for (bucket = half;
         bucket + 1 < buckets && distance_reaches_bucket(distance, bucket + 1 - half, half, far);)
        bucket++;
    return bucket;
}

void repeat_buckets(arb_ptr g_d, size_t n, size_t buckets, size_t far) {
    for (size_t d = 0; d < n; d++) arb_set_ui(g_d + d, repeat_t5_bucket(d, buckets, far));
}

//> repeat.rope
// For pair p of the coordinates: the coefficients of its cosine and sine, and its frequency.
static void rotary_pair(arb_ptr cos_sin_of, size_t p, size_t half, arb_srcptr q_c, arb_srcptr k_c,
                        double base, slong bits) {
    arb_t exponent;
    arb_init(exponent);
    arb_mul(cos_sin_of, q_c + p, k_c + p, bits);
    arb_addmul(cos_sin_of, q_c + p + half, k_c + p + half, bits);
    arb_mul(cos_sin_of + 1, q_c + p, k_c + p + half, bits);
    arb_submul(cos_sin_of + 1, q_c + p + half, k_c + p, bits);
    arb_set_d(cos_sin_of + 2, base);
    arb_set_si(exponent, -(slong)p);
    arb_div_ui(exponent, exponent, half, bits);
    arb_pow(cos_sin_of + 2, cos_sin_of + 2, exponent, bits);
    arb_clear(exponent);
}
// g(d) = sum_p (a_p cos d w_p + b_p sin d w_p) / sqrt(2 half)
void repeat_rotary(arb_ptr g_d, size_t n, size_t half, arb_srcptr q_c, arb_srcptr k_c, double base,
                   slong bits) {
    arb_ptr of = _arb_vec_init(6); // a_p, b_p, w_p; the angle, its sine and cosine
    _arb_vec_zero(g_d, (slong)n);
    for (size_t p = 0; p < half; p++) {
        rotary_pair(of, p, half, q_c, k_c, base, bits);
        for (size_t d = 0; d < n; d++) {
            arb_mul_ui(of + 3, of + 2, d, bits);
            arb_sin_cos(of + 4, of + 5, of + 3, bits);
            arb_addmul(g_d + d, of, of + 5, bits);
            arb_addmul(g_d + d, of + 1, of + 4, bits);
        }
    }
    arb_sqrt_ui(of, 2 * half, bits);
    for (size_t d = 0; d < n; d++) arb_div(g_d + d, g_d + d, of, bits);
    _arb_vec_clear(of, 6);
}

static void vector_length(arb_t out, arb_srcptr x_c, size_t c, slong bits) {
    arb_dot(out, NULL, 0, x_c, 1, x_c, 1, (slong)c, bits);
    arb_sqrt(out, out, bits);
}
void repeat_xi(arb_t xi, arb_srcptr q_c, arb_srcptr k_c, size_t c, slong bits) {
    arb_t t;
    arb_init(t);
    vector_length(xi, q_c, c, bits);
    vector_length(t, k_c, c, bits);
    arb_mul(xi, xi, t, bits);
    arb_sqrt_ui(t, c, bits);
    arb_div(xi, xi, t, bits);
    arb_clear(t);
}
void repeat_bound(arb_ptr bound_t, size_t n, const arb_t xi, slong bits) {
    arb_t e, all;
    balls_init(e, all);
    arb_mul_2exp_si(e, xi, 1);
    arb_exp(e, e, bits);
    for (size_t d = 0; d < n; d++) {
        arb_add_ui(all, e, d, bits);
        arb_div(bound_t + d, e, all, bits);
    }
    balls_clear(e, all);
}
//< repeat.rope
