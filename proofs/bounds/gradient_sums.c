// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Honest sets of gradients as sums of products: what a policy declares, the sums, and the weights
// of attention as a kernel recomputes them from a stored log-sum-exp.
//
// A radius is computed in binary64 by at most 16 operations on numbers that are not negative, or by
// a sum of such: it is raised by more than they can round.
#include "proofs/bounds/gradient_sums.h"

enum { OWN = 16 };

static double raised(double off, double terms) {
    return off * (1 + 2 * sinkproof_gamma(terms + OWN, 0x1p-53));
}

sinkproof_near sinkproof_near_of(sinkproof_honest set) {
    return (sinkproof_near){set.mid, sinkproof_radius(&set)};
}

sinkproof_honest sinkproof_near_set(sinkproof_near x) {
    return sinkproof_set_around(x.mid, x.off, x.off, 0, 0);
}

sinkproof_near sinkproof_near_hull(sinkproof_near x, sinkproof_near y) {
    double off = raised(fabs(y.mid - x.mid) + y.off, 0);
    return (sinkproof_near){x.mid, off > x.off || off != off ? off : x.off};
}

// ---- what a policy declares ------------------------------------------------------------------

static bool is_plain(sinkproof_format format) {
    return format == SINKPROOF_REAL || format == SINKPROOF_F64 || format == SINKPROOF_F32 ||
           format == SINKPROOF_F16 || format == SINKPROOF_BF16 || format == SINKPROOF_TF32 ||
           format == SINKPROOF_TF32_EVEN || format == SINKPROOF_TF32_CUT;
}

// A running sum: of a narrow format, of a matrix unit, or of parts that are rounded.
static bool take_sum(sinkproof_gradient_arithmetic *a, sinkproof_rounding at) {
    bool parts = at.format == SINKPROOF_RANKS || at.format == SINKPROOF_BLOCKS;
    sinkproof_format format = parts ? at.part : at.format;
    double u = at.format == SINKPROOF_TENSOR_CORE ? ldexp(1, 1 - at.bits)
                                                  : sinkproof_unit_roundoff(format);
    if (at.format != SINKPROOF_TENSOR_CORE && !is_plain(format)) return false;
    if (at.format == SINKPROOF_TENSOR_CORE || parts) a->each = 2;
    a->u = larger_double(a->u, u);
    a->least = larger_double(a->least, sinkproof_format_underflow(format));
    return true;
}

static bool take_store(sinkproof_gradient_arithmetic *a, const sinkproof_policy *policy,
                       sinkproof_rounding at) {
    double u = sinkproof_unit_roundoff(at.format);
    if (!is_plain(at.format) || at.scale != SINKPROOF_SCALE_NONE) return false;
    if (u <= sinkproof_unit_roundoff(policy->inside)) return true;
    if (u > a->narrow_u) a->narrow = at.format;
    a->narrow_u = larger_double(a->narrow_u, u);
    double least = larger_double(sinkproof_format_underflow(at.format), 0x1p-126);
    a->narrow_least = larger_double(a->narrow_least, least);
    return true;
}

bool sinkproof_gradient_arithmetic_of(const sinkproof_policy *policy,
                                      sinkproof_gradient_arithmetic *a, sinkproof_point *where) {
    const sinkproof_rounding *at = policy->at;
    bool f64 = policy->inside == SINKPROOF_F64;
    *a = (sinkproof_gradient_arithmetic){.u = sinkproof_unit_roundoff(policy->inside),
                                         .least = f64 ? 0x1p-1022 : 0x1p-126,
                                         .each = 1,
                                         .narrow = SINKPROOF_REAL,
                                         .log_ulp = policy->ulp[SINKPROOF_LOG],
                                         .exp_ulp = policy->ulp[SINKPROOF_EXP],
                                         .exp_growth = policy->exp_growth,
                                         .rsqrt_ulp = policy->ulp[SINKPROOF_RSQRT],
                                         .quotient_ulp = policy->ulp[SINKPROOF_DIV] +
                                                         policy->ulp[SINKPROOF_RCP] + 1};
    for (int p = 0; p < AT_POINTS; p++) {
        *where = (sinkproof_point)p;
        if (at[p].format == SINKPROOF_REAL && at[p].bits == 0) continue;
        // How experts are added up, and parts of the keys, has no counterpart going back.
        bool of_parts = p == AT_M11_SUM || p == AT_M11_PART || p == AT_A11_PART;
        if (of_parts && !is_plain(at[p].format)) continue;
        if (sinkproof_point_is_running_sum(*where) ? !take_sum(a, at[p])
                                                   : !take_store(a, policy, at[p]))
            return false;
    }
    bool narrow = a->narrow != SINKPROOF_REAL;
    bool held = at[AT_A9].format != SINKPROOF_REAL;
    a->stored_between = narrow && held;
    a->weights_kept =
        held && !at[AT_A9].optional &&
        sinkproof_unit_roundoff(at[AT_A9].format) > sinkproof_unit_roundoff(policy->inside);
    a->through_maximum =
        at[AT_A9_MAX].format != SINKPROOF_REAL || !narrow || at[AT_A9].format == policy->inside;
    return true;
}

// ---- sums ------------------------------------------------------------------------------------

//> grad.rounded
sinkproof_near sinkproof_gradient_sum(const sinkproof_gradient_arithmetic *a,
                                      const sinkproof_gradient_terms *t, double terms,
                                      double roundings, double narrow) {
    double k = a->each * terms + roundings;
    double mine = sinkproof_gamma(terms + 4, 0x1p-53), engine = sinkproof_gamma(k, a->u);
    double stored = narrow > 0 ? sinkproof_gamma(narrow, a->narrow_u) : 0;
    double grown = (1 + engine) * (1 + stored);
    double off = (grown - 1 + engine * 0x1p-50 + mine) * t->size + grown * t->open;
    off += k * grown * a->least + narrow * terms * grown * a->narrow_least;
    if (t->size == 0 && t->open == 0) off = 0; // nothing is added up
    return (sinkproof_near){t->value, raised(off, terms)};
}
//< grad.rounded

sinkproof_near sinkproof_gradient_dot(const sinkproof_gradient_arithmetic *a, size_t n,
                                      const sinkproof_near *x, size_t x_stride,
                                      const sinkproof_near *y, size_t y_stride, double roundings,
                                      double narrow) {
    sinkproof_gradient_terms t = {0, 0, 0};
    for (size_t k = 0; k < n; k++) sinkproof_gradient_add(&t, x[k * x_stride], y[k * y_stride]);
    return sinkproof_gradient_sum(a, &t, (double)n, roundings, narrow);
}

sinkproof_near sinkproof_near_narrowed(const sinkproof_gradient_arithmetic *a, sinkproof_near x) {
    if (a->narrow == SINKPROOF_REAL) return x;
    if (x.off == 0 && fabs(x.mid) >= 0x1p-126 && sinkproof_round(a->narrow, x.mid) == x.mid)
        return x;
    if (x.off == 0 && x.mid == 0) return x;
    double off = x.off + a->narrow_u * sinkproof_near_size(x) + a->narrow_least;
    return (sinkproof_near){x.mid, raised(off, 0)};
}

sinkproof_near sinkproof_near_scaled(sinkproof_near x, double by) {
    double mid = x.mid * by, off = x.off * fabs(by) + 0x1p-52 * fabs(mid);
    if (off == 0) return (sinkproof_near){mid, 0};
    return (sinkproof_near){mid, raised(off, 0) + 0x1p-1073};
}

// ---- weights from a log-sum-exp --------------------------------------------------------------

// The sum of n + 1 exponentials, each off by its own error and by that of its score; a logarithm;
// the maximum added again; and one more rounding where the result is held in base 2.
sinkproof_near sinkproof_near_lse(const sinkproof_gradient_arithmetic *a, size_t n,
                                  const sinkproof_near *z_j, double b) {
    double m = b, sum = 0, open = 0, span = 0;
    for (size_t j = 0; j < n; j++) m = larger_double(m, z_j[j].mid);
    if (b > -INFINITY) sum = exp(b - m), span = m - b;
    for (size_t j = 0; j < n; j++) {
        sum += exp(z_j[j].mid - m);
        open = larger_double(open, z_j[j].off);
        // Terms below e^-44 of the largest change no float32 sum by more than their number.
        if (z_j[j].mid > m - 44) span = larger_double(span, m - z_j[j].mid);
    }
    if (span > 44) span = 44;
    double lse = m + log(sum);
    double relative =
        sinkproof_gamma((double)n + 4 + 4 * a->exp_ulp + 4 * a->exp_growth * span, a->u);
    double off =
        open + relative + 4 * a->u * span + (2 * a->log_ulp + 4) * a->u * (fabs(log(sum)) + 1);
    off += 6 * a->u * (fabs(lse) + fabs(m)) + (double)n * 0x1p-60;
    return (sinkproof_near){lse, raised(off, (double)n)};
}

sinkproof_near sinkproof_near_weight(const sinkproof_gradient_arithmetic *a, sinkproof_near z,
                                     sinkproof_near lse) {
    double t = z.mid - lse.mid, p = exp(t), error = 0;
    error = z.off + lse.off + 8 * a->u * (fabs(z.mid) + fabs(lse.mid) + fabs(t));
    error += 2 * a->u * (a->exp_ulp + a->exp_growth * fabs(t) + 1) + 0x1p-50;
    return (sinkproof_near){p, raised(p * expm1(error) + a->least, 0)};
}
