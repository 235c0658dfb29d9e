// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
#include "audit/judge/judge_change.h"

#include <math.h>

static double largest_size(size_t n, const double *x) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) > largest) largest = fabs(x[i]);
    return largest;
}

// ---- roundings

static double largest_code(const sinkproof_change *c) {
    return c->levels > 0 ? c->levels : sinkproof_format_largest(c->format);
}

// t rounded to a format, toward zero: of two numbers as far from t as the nearest one, or of those
// that are nearer to zero by a part of a step.
static double cut_to_format(sinkproof_format format, double t) {
    double nearest = sinkproof_round(format, t), step = fabs(nearest) * 0x1p-12;
    for (double by = step; fabs(nearest) > fabs(t) && by > 0 && by < fabs(nearest); by *= 2)
        nearest = sinkproof_round(format, t - copysign(by, t));
    return fabs(nearest) > fabs(t) ? 0 : nearest;
}

static double code_of(const sinkproof_change *c, double t) {
    if (c->levels > 0) {
        double whole = c->ties == SINKPROOF_TIES_AWAY   ? round(t)
                       : c->ties == SINKPROOF_TIES_DOWN ? copysign(ceil(fabs(t) - 0.5), t)
                       : c->ties == SINKPROOF_CUT       ? trunc(t)
                                                        : nearbyint(t);
        return fmin(fmax(whole, -c->levels), c->levels);
    }
    if (c->ties == SINKPROOF_CUT) return cut_to_format(c->format, t);
    double even = sinkproof_round(c->format, t), other = 2 * t - even;
    if (c->ties == SINKPROOF_TIES_TO_EVEN || other == even) return even;
    bool tie = sinkproof_round(c->format, other) == other;
    if (!tie) return even;
    return (fabs(other) > fabs(even)) == (c->ties == SINKPROOF_TIES_AWAY) ? other : even;
}

// The quotient is float32's, as engines compute it: its rounding decides near ties.
static void round_numbers(const sinkproof_change *c, double scale, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) x[i] = code_of(c, (double)(float)(x[i] / scale)) * scale;
}

// The scale of numbers of the largest size amax. A power of two puts amax below twice the largest
// power of two among the codes, as MXFP4 and MXFP8 do.
static double scale_of(const sinkproof_change *c, double amax) {
    double largest = largest_code(c);
    if (c->scale == SINKPROOF_UNSCALED || amax == 0) return 1;
    if (c->scale == SINKPROOF_SCALED_BY_POWER) return ldexp(1, ilogb(amax) - ilogb(largest));
    double power = log2(amax / largest);
    if (c->scale == SINKPROOF_SCALED_BY_POWER_UP) return exp2(ceil(power));
    if (c->scale == SINKPROOF_SCALED_BY_POWER_NEAREST) return exp2(nearbyint(power));
    if (c->scale == SINKPROOF_SCALED_BY_POWER_DOWN) return exp2(floor(power));
    return sinkproof_round(SINKPROOF_F32, amax / largest);
}

static void round_row(const sinkproof_change *c, double amax, size_t n, const double *like,
                      double *x) {
    bool blocks = c->scale >= SINKPROOF_SCALED_BY_BLOCK;
    size_t each = blocks && c->block < n ? c->block : n;
    for (size_t first = 0; first < n; first += each) {
        size_t some = n - first < each ? n - first : each;
        bool tensor = c->scale == SINKPROOF_SCALED_BY_TENSOR;
        double scale = scale_of(c, tensor ? amax : largest_size(some, like + first));
        round_numbers(c, scale, some, x + first);
    }
}

// ---- rows

static void code_row(const sinkproof_change *c, size_t n, const double *like, double *x) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) low = fmin(low, like[i]), high = fmax(high, like[i]);
    double step = sinkproof_round(SINKPROOF_F32, (high - low) / c->levels);
    for (size_t i = 0; i < n && step > 0; i++) {
        double code = nearbyint((double)(float)((x[i] - low) / step));
        x[i] = (fmin(fmax(code, 0), c->levels) - c->b) * step + c->a * low;
    }
}

static void overscale_row(const sinkproof_change *c, size_t n, const double *like, double *x) {
    double scale = sinkproof_round(SINKPROOF_F32, largest_size(n, like) / largest_code(c));
    if (scale == 0) return;
    round_numbers(c, scale, n, x);
    for (size_t i = 0; i < n; i++) x[i] *= pow(scale, c->a - 1);
}

typedef struct row_numbers {
    double sum, size, squares, largest, exponentials;
} row_numbers;

static row_numbers numbers_of(size_t n, const double *x) {
    row_numbers r = {.largest = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        r.sum += x[i], r.squares += x[i] * x[i];
        r.size = fmax(r.size, fabs(x[i])), r.largest = fmax(r.largest, x[i]);
    }
    for (size_t i = 0; i < n; i++) r.exponentials += exp(x[i] - r.largest);
    return r;
}

static double change_in_row(const sinkproof_change *c, const row_numbers *r, size_t n, double x) {
    double log_sum = r->largest + log(r->exponentials);
    switch (c->kind) {
    case SINKPROOF_CHANGE_OVER_SUM:
        return r->sum != 0 ? x / sinkproof_round(c->format, r->sum) : x;
    case SINKPROOF_CHANGE_OVER_LARGEST:
        return x / r->size;
    case SINKPROOF_CHANGE_OVER_LENGTH:
        return x / sqrt(r->squares);
    case SINKPROOF_CHANGE_OVER_RMS:
        return x / sqrt(r->squares / (double)n + fmax(c->a, 0));
    case SINKPROOF_CHANGE_SOFTMAX:
        return exp(x - log_sum);
    case SINKPROOF_CHANGE_LOG_SOFTMAX:
        return x - log_sum;
    case SINKPROOF_CHANGE_CENTRED:
        return x - r->sum / (double)n;
    case SINKPROOF_CHANGE_SHIFTED:
        return x + sinkproof_round(c->format, c->a * r->size);
    default:
        return x;
    }
}

size_t sinkproof_code_index(double value) {
    static const double codes[SINKPROOF_CODES / 2] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    size_t i = 0;
    while (i + 1 < SINKPROOF_CODES / 2 && codes[i] < fabs(value)) i++;
    return signbit(value) ? SINKPROOF_CODES / 2 + i : i;
}

static double change_alone(const sinkproof_change *c, double x) {
    switch (c->kind) {
    case SINKPROOF_CHANGE_CLAMP:
        return fmin(fmax(x, c->a), c->b);
    case SINKPROOF_CHANGE_CAP:
        return c->a * tanh(x / c->a);
    case SINKPROOF_CHANGE_SIZE:
        return fabs(x);
    case SINKPROOF_CHANGE_SQUARE:
        return x * x;
    case SINKPROOF_CHANGE_SIGMOID:
        return 1 / (1 + exp(-x));
    case SINKPROOF_CHANGE_TABLE:
        return c->table[sinkproof_code_index(x)];
    default:
        return x;
    }
}

void sinkproof_change_row(const sinkproof_change *c, double amax, size_t n, const double *like,
                          double *x) {
    if (c->kind == SINKPROOF_UNCHANGED) return;
    if (c->kind == SINKPROOF_CHANGE_ROUND) {
        round_row(c, amax, n, like, x);
        return;
    }
    if (c->kind == SINKPROOF_CHANGE_CODED) {
        code_row(c, n, like, x);
        return;
    }
    if (c->kind == SINKPROOF_CHANGE_OVERSCALED) {
        overscale_row(c, n, like, x);
        return;
    }
    bool rows = sinkproof_change_is_of_rows(c);
    row_numbers r = {0};
    if (rows) r = numbers_of(n, like);
    for (size_t i = 0; i < n; i++)
        x[i] = rows ? change_in_row(c, &r, n, x[i]) : change_alone(c, x[i]);
}
