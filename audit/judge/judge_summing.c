// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Exponentials and sums as they may be meant, of numbers: what the judge's sets and the emulation
// of a diagnosis share.
#include "audit/judge/judge_summing.h"

#include <math.h>

#define LN2 0.6931471805599453

// 2^u for u in [0, 1): 1, u, ... of the polynomial's coefficients.
static double polynomial(const double *c, int degree, double u) {
    double y = c[degree];
    for (int k = degree - 1; k >= 0; k--) y = y * u + c[k];
    return y;
}

static double series_of_two(int degree, double u) {
    double term = 1, sum = 1;
    for (int k = 1; k <= degree; k++) term *= u * LN2 / k, sum += term;
    return sum;
}

double sinkproof_weighed(sinkproof_weighing weighing, double number, double z, double top) {
    // Dao et al., FlashAttention-4: the exponential on the units of multiplication
    static const double cubic[] = {1, 0.695146143436431884765625, 0.227564394474029541015625,
                                   0.077119089663028717041015625};
    double x = z - top, t = x / LN2;
    if (weighing != SINKPROOF_WEIGH_SERIES2 && weighing != SINKPROOF_WEIGH_SIGMOID &&
        weighing != SINKPROOF_WEIGH_RELU && !(x > -INFINITY))
        return 0;
    switch (weighing) {
    case SINKPROOF_WEIGH_LINEAR:
        if (!(number >= 0 && number < 1)) return NAN; // by a whole number it is a factor of all
        t -= number;
        return ldexp(1 + t - floor(t), (int)fmax(floor(t), -2000));
    case SINKPROOF_WEIGH_SERIES2:
        return 1 + z + z * z / 2;
    case SINKPROOF_WEIGH_SIGMOID:
        return 1 / (1 + exp(-z));
    case SINKPROOF_WEIGH_RELU:
        return fmax(z, 0);
    case SINKPROOF_WEIGH_POLYNOMIAL:
        return ldexp(series_of_two((int)number, t - floor(t)), (int)fmax(floor(t), -2000));
    case SINKPROOF_WEIGH_CUBIC:
        return ldexp(polynomial(cubic, 3, t - floor(t)), (int)fmax(floor(t), -2000));
    case SINKPROOF_WEIGH_POWER:
        return x > -number ? pow(1 + x / number, number) : 0;
    case SINKPROOF_WEIGH_CLAMPED:
        return exp(fmax(x, -number));
    case SINKPROOF_WEIGH_STEPS:
        return exp(nearbyint(x * number) / number);
    case SINKPROOF_WEIGH_STEPS_DOWN:
        return exp(floor(x * number) / number);
    case SINKPROOF_WEIGH_STEPS_TWO:
        return exp2(floor(t * number) / number);
    case SINKPROOF_WEIGH_SOFTMAX:
    case SINKPROOF_WEIGH_UNDIVIDED:
    case SINKPROOF_WEIGH_AGAIN:
    case SINKPROOF_WEIGH_TWICE:
        break;
    }
    return exp(x);
}

bool sinkproof_weighing_divides(sinkproof_weighing weighing) {
    return weighing != SINKPROOF_WEIGH_UNDIVIDED && weighing != SINKPROOF_WEIGH_SIGMOID;
}

double sinkproof_empty_count(const sinkproof_summing *s, double counted, size_t first, size_t end) {
    if (s->empty == SINKPROOF_EMPTY_COUNTED || s->unit == 0) return counted;
    size_t slots = s->from_seen ? end - first : end, over = slots % s->unit;
    if (s->empty == SINKPROOF_EMPTY_ROOM)
        return slots < s->unit ? counted * (double)(s->unit - slots) : 0;
    bool full = over == 0 && s->empty != SINKPROOF_EMPTY_TAIL;
    bool part = over > 0 && s->empty != SINKPROOF_EMPTY_NEXT;
    return full || part ? counted * (double)(s->unit - over) : 0;
}

void sinkproof_top_keys(const sinkproof_summing *s, size_t first, size_t n, size_t *from,
                        size_t *to) {
    *from = 0, *to = n;
    if (n == 0 || s->tile == 0) return;
    if (s->sink_top == SINKPROOF_TOP_FIRST) *to = s->tile - first % s->tile;
    if (*to > n) *to = n;
    size_t last = (first + n - 1) % s->tile + 1;
    if (s->sink_top == SINKPROOF_TOP_LAST && last < n) *from = n - last;
}

// One running sum over some of the keys: tile by tile, or those of one lane.
static double sum_keys(const sinkproof_summing *s, size_t first, size_t n, const double *e_j,
                       size_t lane, double sum) {
    size_t lanes = s->lanes > 0 ? s->lanes : 1, tile = s->tile > 0 ? s->tile : 1;
    double exact = 0;
    for (size_t i = 0; i < n; i++) {
        size_t j = s->backwards ? n - 1 - i : i, next = s->backwards ? j - 1 : j + 1;
        if ((first + j) % lanes != lane) continue;
        exact += s->terms_rounded ? sinkproof_round(s->format, e_j[j]) : e_j[j];
        if (i + 1 < n && (first + j) / tile == (first + next) / tile) continue;
        sum = sinkproof_round(s->format, sum + exact), exact = 0;
    }
    return sum;
}

double sinkproof_summed(const sinkproof_summing *s, size_t first, size_t n, const double *e_j,
                        double sink) {
    enum { LANES = 64 };
    double lane_l[LANES], own = s->terms_rounded ? sinkproof_round(s->format, sink) : sink, sum;
    size_t lanes = s->lanes > 0 && s->lanes <= LANES ? s->lanes : 1;
    for (size_t l = 0; l < lanes; l++) {
        double begin = l == 0 && s->sink_first ? sinkproof_round(s->format, own) : 0;
        lane_l[l] = sum_keys(s, first, n, e_j, l, begin);
    }
    for (size_t half = lanes / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane_l[l] = sinkproof_round(s->format, lane_l[l] + lane_l[l + half]);
    sum = lane_l[0];
    return s->sink_first ? sum : sinkproof_round(s->format, sum + own);
}
