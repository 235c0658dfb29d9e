// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "proofs/truth/slices.h"

#include "base/processor.h"
#include "proofs/truth/slices_lanes.h"

#include <math.h>
#include <string.h>

_Static_assert(GMP_NUMB_BITS == 64, "limbs have 64 bits");

// ---- weights

size_t slice_lanes_all(const slice_lanes **of) {
    size_t n = 0;
    of[n++] = &slice_lanes_plain;
#if defined __x86_64__ // elsewhere the two are not compiled
    if (sinkproof_processor_runs_avx2()) of[n++] = &slice_lanes_avx2;
    if (sinkproof_processor_runs_avx512()) of[n++] = &slice_lanes_avx512;
#endif
    return n;
}

const slice_lanes *slice_lanes_here(void) {
    const slice_lanes *of[SLICE_LANES_MOST];
    return of[slice_lanes_all(of) - 1];
}

double slice_sum_of_sizes(const double *w_c, size_t cols) {
    return slice_lanes_here()->sum_of_sizes(w_c, cols);
}

slice_outcome slice_take(double *rest_c, double *sizes, size_t cols, int room, double *h_c,
                         int *exponent, slice_found *found) {
    return slice_lanes_here()->take(rest_c, sizes, cols, room, h_c, exponent, found);
}

slice_outcome slice_bound(const double *w_c, double sizes, size_t cols, int room, double *up_c,
                          int *exponent, const slice_radii *radii) {
    return slice_lanes_here()->bound(w_c, sizes, cols, room, up_c, exponent, radii);
}

int slice_digit_bits_most(size_t cols) {
    int wide = 0;
    while (wide < 40 && (size_t)1 << wide < cols) wide++;
    int most = 54 - wide - 2; // 2^(54 - s) is at least four times the number of columns
    return most < DIGIT_BITS_MOST ? most : DIGIT_BITS_MOST;
}

// ---- activations

static const slong far = (slong)1 << 40; // exponents beyond it are refused, or cut off

// |x| < 2^top, at least -far; false if it is beyond far.
static bool top_of(slong *top, const fmpz *exponent) {
    *top = COEFF_IS_MPZ(*exponent) ? fmpz_sgn(exponent) * far : *exponent;
    if (*top < -far) *top = -far;
    return *top < far;
}

static slong larger(slong a, slong b) {
    return a > b ? a : b;
}

static slong smaller(slong a, slong b) {
    return a < b ? a : b;
}

slice_point slice_fixed_point(arb_srcptr x_c, size_t cols, slong bits) {
    slice_point p = {.low = far};
    slong top = -2 * far, radius_top = -2 * far, e;
    for (size_t c = 0; c < cols; c++) {
        arf_srcptr middle = arb_midref(x_c + c);
        mag_srcptr radius = arb_radref(x_c + c);
        if (!arb_is_finite(x_c + c)) p.refused = true;
        if (p.refused) return p;
        if (!arf_is_special(middle)) {
            p.refused = !top_of(&e, ARF_EXPREF(middle));
            top = larger(top, e);
            // what is below 2^-far is truncated to 0
            p.low = smaller(p.low, e == -far ? -far - 1 : e - arf_bits(middle));
        }
        if (!mag_is_special(radius)) {
            p.refused = p.refused || !top_of(&e, MAG_EXPREF(radius));
            radius_top = larger(radius_top, e);
        }
    }
    if (p.refused) return p;
    if (top > -2 * far) {
        slong whole = p.low;
        p.low = larger(p.low, larger(larger(top - bits, radius_top) - SLICED_GUARD_BITS, -far));
        p.size = larger(0, top - p.low);
        if (p.low > whole) radius_top = larger(radius_top, p.low + 1) + 1; // a radius and a unit
    }
    p.ball = radius_top > -2 * far;
    p.radius_low = radius_top - (RADIUS_BITS - 1);
    return p;
}

size_t slice_digits(const slice_point *point, int s) {
    // Balanced digits reach 2^(s digits - 1) less 2^(s (digits - 1)): two bits more than the size
    return point->size == 0 ? 0 : (size_t)((point->size + 1) / s + 1);
}

// Bits at ... at + count - 1 of a number of n limbs; all others are 0. count <= 64.
static uint64_t bits_at(mp_srcptr limb_k, slong n, slong at, int count) {
    if (at < 0) return at + count <= 0 ? 0 : bits_at(limb_k, n, 0, (int)(at + count)) << -at;
    slong k = at / 64;
    int within = (int)(at % 64);
    if (k >= n) return 0;
    uint64_t value = limb_k[k] >> within;
    if (within + count > 64 && k + 1 < n) value |= limb_k[k + 1] << (64 - within);
    return count == 64 ? value : value & ((UINT64_C(1) << count) - 1);
}

// The radius and, if the midpoint was truncated, one unit, in units of 2^radius_low; rounded up.
static double radius_units(const slice_point *point, mag_srcptr radius, bool truncated) {
    mag_t sum;
    mag_init(sum);
    if (truncated) mag_set_ui_2exp_si(sum, 1, point->low);
    mag_add(sum, sum, radius);
    uint64_t units = 0;
    slong top;
    if (!mag_is_zero(sum)) {
        (void)top_of(&top, MAG_EXPREF(sum)); // its mantissa has MAG_BITS bits
        slong down = MAG_BITS - (top - point->radius_low);
        uint64_t mantissa = MAG_MAN(sum);
        units = down >= MAG_BITS ? 1 : (mantissa + (UINT64_C(1) << down) - 1) >> down;
    }
    mag_clear(sum);
    return (double)units;
}

void slice_number(const slice_point *point, arb_srcptr x, int s, double *digit_j, size_t digits,
                  double *radius) {
    arf_srcptr middle = arb_midref(x);
    bool truncated = false;
    memset(digit_j, 0, digits * sizeof *digit_j);
    if (!arf_is_special(middle)) {
        mp_srcptr limb_k;
        mp_size_t n;
        slong top;
        ARF_GET_MPN_READONLY(limb_k, n, middle); // a fraction in [1/2, 1) times 2^top
        (void)top_of(&top, ARF_EXPREF(middle));
        truncated = top == -far || top - arf_bits(middle) < point->low;
        slong at = 64 * n - (top - point->low); // the bit that weighs one unit
        const int64_t base = (int64_t)1 << s;
        const double sign = ARF_SGNBIT(middle) ? -1 : 1;
        int64_t carry = 0;
        for (size_t j = 0; top > -far && j < digits && at < 64 * n; j++, at += s) {
            int64_t digit = (int64_t)bits_at(limb_k, n, at, s) + carry;
            carry = digit >= base / 2;
            digit_j[j] = sign * (double)(digit - carry * base);
            if (at + s >= 64 * n && carry) digit_j[j + 1] = sign;
        }
    }
    *radius = radius_units(point, arb_radref(x), truncated);
}

size_t slice_limbs(size_t digits, int s) {
    return digits * (size_t)s / 64 + 3;
}

// Each sum leaves its low s bits as a digit in [0, 2^s) and carries the rest into the next: the
// integer in two's complement.
void slice_join(arf_t out, const double *sum_j, size_t digits, int s, mp_ptr limb_k) {
    const size_t n = slice_limbs(digits, s);
    const int64_t mask = ((int64_t)1 << s) - 1;
    int64_t carry = 0;
    uint64_t word = 0; // the limb that is being filled, and its bits so far
    size_t k = 0;
    int filled = 0;
    for (size_t j = 0; j < digits; j++) {
        int64_t sum = (int64_t)sum_j[j] + carry;
        uint64_t digit = (uint64_t)(sum & mask);
        carry = (sum - (int64_t)digit) >> s; // exact
        word |= digit << filled;
        filled += s;
        if (filled < 64) continue;
        limb_k[k++] = word;
        filled -= 64;
        word = filled == 0 ? 0 : digit >> (s - filled);
    }
    const uint64_t sign = carry < 0 ? UINT64_MAX : 0, rest = (uint64_t)carry;
    limb_k[k++] = word | rest << filled;
    limb_k[k++] = filled == 0 ? sign : rest >> (64 - filled) | sign << filled;
    while (k < n) limb_k[k++] = sign;
    if (sign != 0) mpn_neg(limb_k, limb_k, (mp_size_t)n);
    while (k > 0 && limb_k[k - 1] == 0) k--;
    if (k == 0)
        arf_zero(out);
    else
        arf_set_mpn(out, limb_k, (mp_size_t)k, sign != 0);
}
