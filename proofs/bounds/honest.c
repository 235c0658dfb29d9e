// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Interval arithmetic on honest sets: directed rounding, monotone rounding points.
#include "proofs/bounds/abreast.h"

sinkproof_setting sinkproof_setting_for(const sinkproof_policy *policy, size_t elements,
                                        double rate) {
    double u = sinkproof_unit_roundoff(policy->inside);
    double n = elements > 0 ? (double)elements : 1;
    return (sinkproof_setting){.policy = policy, .u = u, .odds = log(2 * n / rate)};
}

//> bound.dot
double sinkproof_gamma(double n, double u) {
    double nu = sinkproof_next_up(n * u);
    return nu < 1 ? sinkproof_next_up(sinkproof_next_up(nu / step_down(1 - nu))) : INFINITY;
}
//< bound.dot

//> bound.overflow
double setting_largest(const sinkproof_setting *s) {
    return sinkproof_format_largest(s->policy->inside);
}
//< bound.overflow

static double smaller_number(double x, double y) {
    return x < y ? x : y;
}
static double larger_number(double x, double y) {
    return x > y ? x : y;
}

// A product with an unbounded set is unbounded, whatever 0 times infinity may be. Only the products
// that become the ends are rounded outward, and only if they are inexact.
void product_ends(double xl, double xh, double yl, double yh, double *lo, double *hi) {
    *lo = -INFINITY, *hi = INFINITY;
    if (!(xl > -INFINITY && xh < INFINITY && yl > -INFINITY && yh < INFINITY)) return;
    if (xl == xh && yl == yh) {
        *lo = sinkproof_mul_down(xl, yl);
        *hi = sinkproof_mul_up(xl, yl);
        return;
    }
    // One of the factors is known: two products.
    if (xl == xh || yl == yh) {
        double p = xl * yl, q = xh * yh;
        bool p_low = !(q < p), q_low = !(p < q), p_high = !(q > p), q_high = !(p > q);
        *lo = p_low ? sinkproof_mul_down(xl, yl) : INFINITY;
        if (q_low) *lo = smaller_number(*lo, sinkproof_mul_down(xh, yh));
        *hi = p_high ? sinkproof_mul_up(xl, yl) : -INFINITY;
        if (q_high) *hi = larger_number(*hi, sinkproof_mul_up(xh, yh));
        return;
    }
    const double x[4] = {xl, xl, xh, xh}, y[4] = {yl, yh, yl, yh};
    const double p[4] = {xl * yl, xl * yh, xh * yl, xh * yh};
    double low = smaller_number(smaller_number(p[0], p[1]), smaller_number(p[2], p[3]));
    double high = larger_number(larger_number(p[0], p[1]), larger_number(p[2], p[3]));
    *lo = INFINITY, *hi = -INFINITY;
    for (int e = 0; e < 4; e++) {
        if (p[e] == low) *lo = smaller_number(*lo, sinkproof_mul_down(x[e], y[e]));
        if (p[e] == high) *hi = larger_number(*hi, sinkproof_mul_up(x[e], y[e]));
    }
}

// a b b, where a may be infinite: a product with 0 is 0.
static double times_square(double a, double b) {
    return a == 0 || b == 0 ? 0 : a * b * b;
}

sinkproof_honest sinkproof_honest_mul(sinkproof_honest x, sinkproof_honest y) {
    sinkproof_honest p;
    product_ends(x.lo, x.hi, y.lo, y.hi, &p.lo, &p.hi);
    product_ends(x.likely_lo, x.likely_hi, y.likely_lo, y.likely_hi, &p.likely_lo, &p.likely_hi);
    p.mid = x.mid * y.mid;
    p.var = p.spread = x.var * y.mid * y.mid + y.var * x.mid * x.mid + x.var * y.var;
    double x_any = x.var + x.order, y_any = y.var + y.order;
    double both = x_any == 0 || y_any == 0 ? 0 : x_any * y_any;
    p.order = times_square(x_any, y.mid) + times_square(y_any, x.mid) + both - p.var;
    p.bias = x.bias * fabs(y.mid) + y.bias * fabs(x.mid) + x.bias * y.bias;
    return p;
}

static double clamp(double x, double lo, double hi) {
    return x < lo ? lo : x > hi ? hi : x;
}

sinkproof_honest sinkproof_honest_clamp(sinkproof_honest x, double lo, double hi) {
    if (sinkproof_is_unknown(&x)) return x; // NaN may pass the clamp
    bool cut = x.hi <= lo || x.lo >= hi;    // beyond the clamp: constant, no freedom
    return (sinkproof_honest){
        clamp(x.lo, lo, hi),        clamp(x.hi, lo, hi),  clamp(x.likely_lo, lo, hi),
        clamp(x.likely_hi, lo, hi), clamp(x.mid, lo, hi), cut ? 0 : x.var,
        cut ? 0 : x.spread,         cut ? 0 : x.bias,     cut ? 0 : x.order};
}

sinkproof_honest sinkproof_honest_hull(sinkproof_honest x, sinkproof_honest y) {
    x.lo = fmin(x.lo, y.lo), x.hi = fmax(x.hi, y.hi);
    x.likely_lo = fmin(x.likely_lo, y.likely_lo), x.likely_hi = fmax(x.likely_hi, y.likely_hi);
    x.var = x.spread = fmax(x.var, y.var) + (x.mid - y.mid) * (x.mid - y.mid);
    x.bias = fmax(x.bias, y.bias), x.order = fmax(x.order, y.order);
    return x;
}

sinkproof_honest sinkproof_honest_choice(sinkproof_honest x, sinkproof_honest y) {
    double apart = fabs(x.mid - y.mid);
    x = sinkproof_honest_hull(x, y);
    x.bias += apart;
    return x;
}

//> bound.operands
// The least and the greatest number that x may become. In TF32 a tie goes either way, as the number
// just below x or above it does. What overflows to NaN is unknown: an infinite end.
static double rounded_down(sinkproof_format format, double x) {
    double rounded = honest_round_number(format, format == SINKPROOF_TF32 ? step_down(x) : x);
    return rounded != rounded && x == x ? -INFINITY : rounded;
}
static double rounded_up(sinkproof_format format, double x) {
    return -rounded_down(format, -x);
}

static void round_ends(sinkproof_format format, double *lo, double *hi) {
    if (format < SINKPROOF_FORMATS) {
        *lo = honest_round_number(format, *lo), *hi = honest_round_number(format, *hi);
        return;
    }
    if (*lo == -INFINITY && *hi == INFINITY) return; // NaN stays, even where infinities saturate
    *lo = rounded_down(format, *lo), *hi = rounded_up(format, *hi);
    bool unknown = format == SINKPROOF_E4M3_NAN && (*lo == -INFINITY || *hi == INFINITY);
    if (unknown) *lo = -INFINITY, *hi = INFINITY;
}
//< bound.operands

// The hull of an interval and its image under rounding to `format`.
static void hull_ends(sinkproof_format format, double *lo, double *hi) {
    double low = *lo, high = *hi;
    round_ends(format, &low, &high);
    *lo = smaller_number(*lo, low), *hi = larger_number(*hi, high);
}

// The functions below change a set in place: copying all its members would cost more than the work.
static void round_optionally(sinkproof_format format, sinkproof_honest *x) {
    hull_ends(format, &x->lo, &x->hi);
    hull_ends(format, &x->likely_lo, &x->likely_hi);
}

// The smallest size in a set.
static double set_least_size(const sinkproof_honest *x) {
    return x->lo > 0 ? x->lo : x->hi < 0 ? -x->hi : 0;
}

//> bound.ftz
double flushed_below(const sinkproof_setting *s) {
    if (!s->policy->ftz) return 0;
    return sinkproof_unit_roundoff(s->policy->inside) >= 0x1p-24 ? 0x1p-126 : 0x1p-1022;
}

double setting_underflow(const sinkproof_setting *s) {
    return fmax(sinkproof_format_underflow(s->policy->inside), flushed_below(s));
}

double underflow_bound(const sinkproof_setting *s, double n, double gamma) {
    double once = setting_underflow(s);
    return n > 0 && once > 0 ? sinkproof_mul_up(sinkproof_mul_up(n, once), 1 + gamma) : 0;
}

void flush_small(const sinkproof_setting *s, sinkproof_honest *x) {
    if (is_beyond(x, 0x1p-126)) return;
    double tiny = flushed_below(s);
    if (!(set_least_size(x) < tiny) || (x->lo == 0 && x->hi == 0)) return;
    x->lo = fmin(x->lo, 0), x->hi = fmax(x->hi, 0);
    x->likely_lo = fmin(x->likely_lo, 0), x->likely_hi = fmax(x->likely_hi, 0);
    if (!(fabs(x->mid) < tiny)) return;
    x->bias += fabs(x->mid); // it is lost every time
    x->var += x->mid * x->mid;
    x->spread = x->var;
}

// A sum of two operands, each of which may be read as zero: up to twice the smallest normal number
// is lost. From 2^26 times that number on, this loss is below half a unit of the sum, so the
// rounding of the sum covers it.
static void flush_sum(const sinkproof_setting *s, sinkproof_honest *x) {
    if (is_beyond(x, 0x1p-100)) return;
    double tiny = flushed_below(s), lost = 2 * tiny;
    if (!(set_least_size(x) < 0x1p26 * tiny) || (x->lo == 0 && x->hi == 0)) return;
    x->lo = add_down(x->lo, -lost), x->hi = sinkproof_add_up(x->hi, lost);
    x->likely_lo = add_down(x->likely_lo, -lost);
    x->likely_hi = sinkproof_add_up(x->likely_hi, lost);
    x->bias += lost;
    x->var += lost * lost;
    x->spread = x->var;
}
//< bound.ftz

void sinkproof_honest_round_inside(const sinkproof_setting *s, sinkproof_honest *x) {
    double ulp = sinkproof_fast_ulp(s->policy->inside, x->mid);
    if (x->var > 0 || honest_round_number(s->policy->inside, x->mid) != x->mid)
        x->var += ulp * ulp / 12;
    x->spread = x->var;
    round_optionally(s->policy->inside, x);
    flush_sum(s, x);
}

// After a fixed rounding the value is one of the format's: two honest engines differ by whole
// steps. If their unrounded difference has variance v and the position within the step is
// uniform, the expected squared step is E|d| ulp <= 0.8 sqrt(v) ulp while v is small, and
// v + ulp^2 / 2 bounds it otherwise.
// A bias flips steps too, with probability bias / ulp: its mean stays the bias, its scatter is new.
static double variance_after_rounding(double var, double bias, double ulp) {
    double flips = smaller_number(bias * ulp, ulp * ulp / 4);
    return var == 0 ? flips : var + smaller_number(0.8 * sqrt(var) * ulp, ulp * ulp / 2) + flips;
}

// A step whose square is this many variances is rare; spread.c then asks nothing.
static const double RARE = 256;

// The variance of x that is left if x is rounded or not, for both kinds of orders.
static void scatter_after_rounding(double ulp, sinkproof_honest *x) {
    if (x->var == 0 && x->order == 0 && x->bias == 0 && ulp < INFINITY) { // nothing is left
        x->spread = 0;
        return;
    }
    double any = x->var + x->order;
    x->spread = variance_after_rounding(x->var, x->bias, ulp);
    x->order = variance_after_rounding(any, x->bias, ulp) - x->spread;
}

// An optional rounding is a choice that an engine makes once: where a value serves many elements
// (a cosine, say) its error, up to half a step, is the same in all of them, hence systematic.
static void leave_rounding_open(sinkproof_format format, sinkproof_honest *x) {
    double ulp = sinkproof_fast_ulp(format, x->mid), near = honest_round_number(format, x->mid);
    // Half a step, or what lies beyond the format's range.
    if (x->lo != x->hi || near != x->mid) x->bias += fmax(ulp / 2, fabs(near - x->mid));
    scatter_after_rounding(ulp, x);
    x->var = x->spread;
    round_optionally(format, x);
}

// Among sets as wide as x, the share whose ends round to different numbers. The other sets have no
// freedom left, so that these have all of it: they get a set's average divided by the share.
static double share_that_rounds_apart(const sinkproof_honest *x, double ulp) {
    double width = x->hi - x->lo;
    return width < ulp ? width / ulp : 1;
}

static void round_set(sinkproof_format format, sinkproof_honest *x) {
    double mid = honest_round_number(format, x->mid), lo = x->lo, hi = x->hi;
    double likely_lo = x->likely_lo, likely_hi = x->likely_hi;
    round_ends(format, &lo, &hi), round_ends(format, &likely_lo, &likely_hi);
    if (mid != mid) mid = x->mid; // beyond the largest number: nothing is known
    if (mid == x->mid && lo == x->lo && hi == x->hi && likely_lo == x->likely_lo &&
        likely_hi == x->likely_hi)
        return; // rounded before
    double ulp = sinkproof_fast_ulp(format, x->mid), often = share_that_rounds_apart(x, ulp);
    scatter_after_rounding(ulp, x);
    if (!(ulp * ulp <= RARE * (x->spread + x->order))) x->order = INFINITY;
    x->var = lo == hi ? 0 : x->spread / often;
    x->bias = lo == hi ? 0 : x->bias / often;
    x->mid = mid, x->lo = lo, x->hi = hi, x->likely_lo = likely_lo, x->likely_hi = likely_hi;
}

sinkproof_honest sinkproof_honest_rounded(sinkproof_format format, sinkproof_honest x) {
    round_set(format, &x);
    return x;
}

void sinkproof_honest_round_at(const sinkproof_setting *s, sinkproof_rounding at,
                               sinkproof_honest *x) {
    if (at.optional)
        leave_rounding_open(at.format, x);
    else
        round_set(at.format, x);
    flush_small(s, x);
}

static void finish_one(const sinkproof_setting *s, sinkproof_rounding at, sinkproof_honest *x) {
    sinkproof_honest_round_inside(s, x);
    if (at.format != SINKPROOF_REAL) sinkproof_honest_round_at(s, at, x);
}

enum { FEW_SETS = 8 }; // a vector

void sinkproof_honest_finish(const sinkproof_setting *s, sinkproof_point point, size_t n,
                             sinkproof_honest *x_i) {
    sinkproof_rounding at = s->policy->at[point];
    const sets_abreast *abreast = sets_abreast_here();
    bool many = abreast != NULL && n >= FEW_SETS && s->policy->inside == SINKPROOF_F32 &&
                rounds_abreast(at);
    bool odd_n[ABREAST];
    for (size_t i = 0; i < n; i += ABREAST) {
        size_t some = n - i < ABREAST ? n - i : ABREAST;
        if (many) abreast->finish(at, some, x_i + i, odd_n);
        for (size_t l = 0; l < some; l++)
            if (!many || odd_n[l]) finish_one(s, at, &x_i[i + l]);
    }
}

void sinkproof_honest_store(sinkproof_format format, size_t n, sinkproof_honest *x_i) {
    for (size_t i = 0; i < n; i++) round_set(format, &x_i[i]);
}

//> bound.dot-likely
rounding_widths widths_of_roundings(const sinkproof_setting *s, double n) {
    double worst = sinkproof_gamma(n, s->u);
    return (rounding_widths){.worst = worst,
                             .likely = fmin(worst, sqrt(2 * s->odds * n) * s->u * (1 + worst)),
                             .under = underflow_bound(s, n, worst),
                             .variance = n * s->u * s->u};
}

sinkproof_honest sinkproof_honest_roundings(const sinkproof_setting *s, sinkproof_honest x,
                                            double n) {
    if (s->u == 0 || (x.lo == 0 && x.hi == 0)) return x;
    rounding_widths w = widths_of_roundings(s, n);
    double reach = fmax(fabs(x.lo), fabs(x.hi));
    double likely_reach = fmax(fabs(x.likely_lo), fabs(x.likely_hi));
    double wide = sinkproof_add_up(sinkproof_mul_up(reach, w.worst), w.under);
    double narrow = sinkproof_add_up(sinkproof_mul_up(likely_reach, w.likely), w.under);
    x.lo = add_down(x.lo, -wide);
    x.hi = sinkproof_add_up(x.hi, wide);
    x.likely_lo = add_down(x.likely_lo, -narrow);
    x.likely_hi = sinkproof_add_up(x.likely_hi, narrow);
    x.var += w.variance * x.mid * x.mid / 3;
    x.spread = x.var;
    return x;
}
//< bound.dot-likely

sinkproof_honest sinkproof_honest_declared(sinkproof_honest x, double relative, double absolute) {
    double reach = larger_double(fabs(x.lo), fabs(x.hi));
    if (!(reach < INFINITY)) return x; // unbounded before or after
    double error = sinkproof_add_up(sinkproof_mul_up(reach, relative), absolute);
    x.lo = add_down(x.lo, -error);
    x.hi = sinkproof_add_up(x.hi, error);
    x.likely_lo = add_down(x.likely_lo, -error);
    x.likely_hi = sinkproof_add_up(x.likely_hi, error);
    x.bias += error;
    return x;
}

// The last spacing of a sum: 2 u 2^e with 2^e <= sum < 2^(e+1). Binary64 engines are not asked.
error_lean lean_of_rounded_sum(double sum, double u) {
    bool asked = sum > 0 && sum < 0x1p900 && u > 0x1p-30;
    return (error_lean){.spacing = asked ? ldexp(2 * u, ilogb(sum)) : 0};
}

void lean_add(error_lean *lean, double term) {
    if (!(lean->spacing > 0) || !(term > 0)) return;
    const double magic = 0x1.8p52; // adding and subtracting it rounds to a whole number
    double ratio = term / lean->spacing;
    lean->terms++;
    for (int b = 0; b < HONEST_SPACINGS; b++, ratio *= 2) {
        double error = ((ratio + magic) - magic) - ratio;
        lean->errors[b] += fabs(error) < 0.5 ? error : 0;
        lean->ties[b] += fabs(error) == 0.5;
    }
}

double lean_result(const error_lean *lean) {
    double largest = 0, noise = 3 * sqrt((double)lean->terms / 12), h = lean->spacing;
    for (int b = 0; b < HONEST_SPACINGS; b++, h /= 2)
        largest = fmax(largest, (fabs(lean->errors[b]) + lean->ties[b] / 2 - noise) * h);
    return largest;
}
