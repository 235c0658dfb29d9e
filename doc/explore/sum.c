// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Sums are computed in binary64 and rounded: 53 bits are more than twice those of any format here
// and two, so this is the format's own addition. The terms are multiples of 2^-30 below 2^4, so the
// truth is exact.
#include "doc/explore/sum.h"

#include "base/splitmix.h"
#include "model/round.h"
#include "proofs/bounds/honest.h"

#include <math.h>
#include <string.h>

static const sinkproof_format formats[SUM_FORMATS] = {SINKPROOF_F32, SINKPROOF_F16, SINKPROOF_BF16};

typedef struct adder {
    sinkproof_format format;
    sum_mistake mistake;
    size_t steps;
    sum_step *step; // or NULL
} adder;

// The number of the format next to x whose size is not larger.
static double cut(sinkproof_format format, double x) {
    double near = sinkproof_round(format, x);
    if (fabs(near) <= fabs(x)) return near;
    double less = near - copysign(sinkproof_ulp(format, near) / 2, near); // below a power of two
    if (sinkproof_round(format, less) == less && fabs(less) <= fabs(x)) return less;
    return near - copysign(sinkproof_ulp(format, near), near);
}

// Two bits less than the format has: multiples of four ulps.
static double narrower(sinkproof_format format, double x) {
    double step = 4 * sinkproof_ulp(format, x);
    return nearbyint(x / step) * step;
}

static double add(adder *a, double left, double right) {
    double sum = left + right, kept = sinkproof_round(a->format, sum);
    if (a->mistake == MISTAKE_CUT) kept = cut(a->format, sum);
    if (a->mistake == MISTAKE_NARROWER) kept = sinkproof_round(a->format, narrower(a->format, sum));
    if (a->step != NULL)
        a->step[a->steps++] =
            (sum_step){.left = left, .right = right, .sum = kept, .error = kept - sum};
    return kept;
}

static double one_by_one(adder *a, size_t n, size_t stride, const double *x) {
    double sum = x[0];
    for (size_t k = stride; k < n; k += stride) sum = add(a, sum, x[k]);
    return sum;
}

static double pairwise(adder *a, size_t n, const double *x) {
    if (n == 1) return x[0];
    double left = pairwise(a, n / 2, x), right = pairwise(a, n - n / 2, x + n / 2);
    return add(a, left, right);
}

static void sort_by_size(size_t n, double *x, double sign) {
    for (size_t k = 1; k < n; k++)
        for (size_t i = k; i > 0 && sign * (fabs(x[i]) - fabs(x[i - 1])) > 0; i--) {
            double kept = x[i];
            x[i] = x[i - 1], x[i - 1] = kept;
        }
}

static double add_in(adder *a, sum_order order, size_t n, const double *term) {
    double x[SUM_TERMS + 1], lane[4];
    memcpy(x, term, n * sizeof *x);
    if (order == ORDER_BACKWARD)
        for (size_t k = 0; k < n; k++) x[k] = term[n - 1 - k];
    if (order == ORDER_LARGEST_FIRST) sort_by_size(n, x, 1);
    if (order == ORDER_SMALLEST_FIRST) sort_by_size(n, x, -1);
    if (order == ORDER_PAIRWISE) return pairwise(a, n, x);
    if (order != ORDER_LANES || n < 4) return one_by_one(a, n, 1, x);
    for (size_t k = 0; k < 4; k++) lane[k] = one_by_one(a, n - k, 4, x + k);
    return one_by_one(a, 4, 1, lane);
}

// The most additions that a term goes through.
static double depth_of(sum_order order, size_t n) {
    if (order == ORDER_PAIRWISE) return ceil(log2((double)n));
    if (order == ORDER_LANES && n >= 4) return (double)((n + 3) / 4 - 1) + 3;
    return (double)(n - 1);
}

static void shuffle(uint64_t *state, size_t n, double *x) {
    for (size_t k = n; k > 1; k--) {
        size_t other = sinkproof_draw_from_to(state, 0, k - 1);
        double kept = x[k - 1];
        x[k - 1] = x[other], x[other] = kept;
    }
}

void sum_compute(const sum_given *given, sum_result *result) {
    sinkproof_format format = formats[(size_t)given->format];
    sum_order order = (sum_order)given->order;
    sum_mistake mistake = (sum_mistake)given->mistake;
    size_t n = (size_t)given->terms;
    uint64_t state = sinkproof_draw_nth(30, (uint64_t)given->seed);
    double x[SUM_TERMS + 1];
    memset(result, 0, sizeof *result);
    for (size_t k = 0; k < n; k++) {
        double last = ((double)sinkproof_draw_from_to(&state, 0, 1 << 26) - 0x1p25) * 0x1p-30;
        x[k] = result->term[k] = sinkproof_round(format, given->term[k] + last);
        result->truth += x[k], result->size += fabs(x[k]);
    }
    double u = sinkproof_unit_roundoff(format);
    result->nearest = sinkproof_round(format, result->truth);
    result->ulp = sinkproof_ulp(format, result->truth);
    result->depth = depth_of(order, n);
    result->any = sinkproof_gamma((double)(n - 1), u) * result->size;
    result->this_order = sinkproof_gamma(result->depth, u) * result->size;
    for (int k = 0; k < ORDERS; k++)
        result->order[k] = add_in(&(adder){.format = format}, (sum_order)k, n, x);
    size_t added = mistake == MISTAKE_LOST ? n - 1 : mistake == MISTAKE_TWICE ? n + 1 : n;
    x[n] = x[n - 1]; // added twice
    adder a = {.format = format, .mistake = mistake, .step = result->step};
    result->got = add_in(&a, order, added, x);
    result->steps = (double)a.steps;
    for (size_t k = 0; k < SUM_SHUFFLES; k++) {
        shuffle(&state, n, x);
        result->shuffled[k] = one_by_one(&(adder){.format = format}, n, 1, x);
    }
}

void sum_draw(double format, double number, sum_given *given) {
    uint64_t state = sinkproof_draw_nth(43, (uint64_t)number);
    memset(given, 0, sizeof *given);
    given->format = format, given->seed = number;
    given->terms = (double)sinkproof_draw_from_to(&state, 2, SUM_TERMS);
    given->order = (double)sinkproof_draw_from_to(&state, 0, ORDERS - 1);
    given->mistake = (double)sinkproof_draw_from_to(&state, 0, MISTAKES - 1);
    double most = sinkproof_draw(&state) % 2 ? 8 : 0, least = -8 + most; // of both signs, or of one
    for (size_t k = 0; k < (size_t)given->terms; k++)
        given->term[k] = least + (double)sinkproof_draw_from_to(&state, 0, 128) / 16;
}

#ifdef __wasm__
// ---- the page's door
#define DOOR(name) __attribute__((export_name(#name)))
static sum_given given;
static sum_result result;
DOOR(sum_given) double *page_sum_given(void);
DOOR(sum_result) double *page_sum_result(void);
DOOR(sum_compute) void page_sum_compute(void);
DOOR(sum_draw) void page_sum_draw(double format, double number);

double *page_sum_given(void) {
    return (double *)&given;
}
double *page_sum_result(void) {
    return (double *)&result;
}
void page_sum_compute(void) {
    sum_compute(&given, &result);
}
void page_sum_draw(double format, double number) {
    sum_draw(format, number, &given);
}
#endif
