// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exact dot products. A binary64 number is m 2^e with an odd integer m below 2^53, so a
// product's last bit has exponent e_a + e_b, and all products are multiples of 2^L, L the
// smallest of these. Multiples of 2^L below 2^(53+L) are binary64 numbers, hence sums of
// them that stay below are not rounded.
//
// The certificate certifies itself. Add up |a_k b_k| in binary64: while the true partial
// sum is below 2^(53+L) it is exact; at the first term where it is not, rounding is monotone
// and 2^(53+L) is a binary64 number, so the computed sum is not below it either, and it
// never falls again. Computed sum < 2^(53+L) therefore means true sum < 2^(53+L).
#include "proofs/truth/exact_dot.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

// x = mantissa 2^exponent with an odd mantissa; x is finite and not zero.
static int64_t odd_mantissa(double x, int *exponent) {
    uint64_t image;
    memcpy(&image, &x, sizeof image);
    int biased = (int)(image >> 52 & 0x7ff);
    uint64_t digits = image & 0xfffffffffffffu;
    if (biased != 0)
        digits |= UINT64_C(1) << 52;
    else
        biased = 1; // subnormal
    int zeros = __builtin_ctzll(digits);
    *exponent = biased - 1075 + zeros;
    int64_t mantissa = (int64_t)(digits >> zeros);
    return image >> 63 ? -mantissa : mantissa;
}

static bool all_finite(size_t n, const double *x_k) {
    for (size_t k = 0; k < n; k++)
        if (!isfinite(x_k[k])) return false;
    return true;
}

// The smallest exponent of a product's last bit; false when every product is zero.
static bool lowest_bit_exponent(size_t n, const double *a_k, const double *b_k, int *last) {
    bool any = false;
    for (size_t k = 0; k < n; k++) {
        if (a_k[k] == 0 || b_k[k] == 0) continue;
        int e_a, e_b;
        odd_mantissa(a_k[k], &e_a);
        odd_mantissa(b_k[k], &e_b);
        if (!any || e_a + e_b < *last) *last = e_a + e_b;
        any = true;
    }
    return any;
}

//> bound.dot-exact
bool sinkproof_dot_certified(size_t n, const double *a_k, const double *b_k, double *value) {
    int last;
    *value = 0;
    if (!all_finite(n, a_k) || !all_finite(n, b_k)) return false;
    if (!lowest_bit_exponent(n, a_k, b_k, &last)) return true; // only zeros
    if (last < -1074 || last > 970) return false; // 2^L or 2^(53+L) is no binary64 number
    double sum = 0, magnitude = 0;
    for (size_t k = 0; k < n; k++) {
        sum += a_k[k] * b_k[k];
        magnitude += fabs(a_k[k] * b_k[k]);
    }
    *value = sum;
    return magnitude < ldexp(1, 53 + last);
}
//< bound.dot-exact

void sinkproof_exact_dot_gmp(arf_t out, size_t n, const double *a_k, const double *b_k) {
    int last;
    if (!all_finite(n, a_k) || !all_finite(n, b_k)) {
        arf_nan(out);
        return;
    }
    if (!lowest_bit_exponent(n, a_k, b_k, &last)) {
        arf_zero(out);
        return;
    }
    mpz_t sum, product; // sum_k a_k b_k 2^-L, an integer
    mpz_init(sum);
    mpz_init(product);
    for (size_t k = 0; k < n; k++) {
        if (a_k[k] == 0 || b_k[k] == 0) continue;
        int e_a, e_b;
        mpz_set_si(product, odd_mantissa(a_k[k], &e_a));
        mpz_mul_si(product, product, odd_mantissa(b_k[k], &e_b));
        mpz_mul_2exp(product, product, (mp_bitcnt_t)(e_a + e_b - last));
        mpz_add(sum, sum, product);
    }
    arf_set_mpz(out, sum);
    arf_mul_2exp_si(out, out, last);
    mpz_clear(sum);
    mpz_clear(product);
}

bool sinkproof_exact_dot(arf_t out, size_t n, const double *a_k, const double *b_k) {
    double value;
    if (sinkproof_dot_certified(n, a_k, b_k, &value)) {
        arf_set_d(out, value);
        return true;
    }
    sinkproof_exact_dot_gmp(out, n, a_k, b_k);
    return false;
}
