// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// Shared by the tests of the bounds: float32 engines that are honest in many ways (any order of a
// sum, FMA or not, functions with the whole error that the policy declares), and a tally of where
// their results lie in the honest set.
#ifndef SINKPROOF_BOUNDS_ENGINE_H
#define SINKPROOF_BOUNDS_ENGINE_H

#include "proofs/bounds/bounds.h"
#include "tests/shared/tap.h"
#include "tests/shared/truth_random.h"

#include <math.h>
#include <string.h>

// The smallest k with P(Binomial(trials, p) >= k) < 1e-9: more alarms than that are not chance.
static inline size_t most_alarms(size_t trials, double p) {
    double tail = 1, term = pow(1 - p, (double)trials);
    for (size_t k = 0; k < trials; k++) {
        tail -= term;
        if (tail < 1e-9) return k + 1;
        term *= (double)(trials - k) / (double)(k + 1) * p / (1 - p);
    }
    return trials;
}

// Whether the middle of an enclosure lies in a set.
static inline bool set_holds(const sinkproof_honest *x, const arb_t truth) {
    arf_t lo, hi;
    arf_init(lo), arf_init(hi);
    arf_set_d(lo, x->lo), arf_set_d(hi, x->hi);
    bool inside = arf_cmp(arb_midref(truth), lo) >= 0 && arf_cmp(arb_midref(truth), hi) <= 0;
    arf_clear(lo), arf_clear(hi);
    return inside;
}

// ---- tally: a share is the distance from mid as a fraction of that side of the set -------------

typedef struct tally {
    size_t checked, outside, unlikely, several;
    double worst, worst_value;
    sinkproof_honest worst_set;
    double floor; // the shares of smaller values are ignored (only whether they are inside)
} tally;

static inline double share_of(const sinkproof_honest *x, double v) {
    if (v == x->mid) return 0;
    double room = v > x->mid ? x->hi - x->mid : x->mid - x->lo;
    return fabs(v - x->mid) / room; // NaN for a NaN, infinite without room
}

static inline void meet(tally *t, const sinkproof_honest *x, double v) {
    bool inside = v >= x->lo && v <= x->hi;
    t->checked++;
    t->outside += !inside;
    t->unlikely += !(v >= x->likely_lo && v <= x->likely_hi);
    t->several += x->lo != x->hi;
    double share = x->lo == x->hi && inside ? 0 : share_of(x, v);
    if (inside && fabs(x->mid) < t->floor) return;
    if (!(share <= t->worst) && !(t->worst != t->worst))
        t->worst = share, t->worst_value = v, t->worst_set = *x;
}

static inline bool inside_ok(const tally *t, const char *id, const char *what) {
    bool fine =
        ok(t->checked > 0 && t->outside == 0,
           "%s %s worst=%.4g bound=1 outside=%zu of=%zu several=%.3g unlikely=%zu", id, what,
           t->worst, t->outside, t->checked, (double)t->several / (double)t->checked, t->unlikely);
    if (!fine)
        note("value %a, set [%a, %a], mid %a", t->worst_value, t->worst_set.lo, t->worst_set.hi,
             t->worst_set.mid);
    return fine;
}

static inline sinkproof_policy policy_named(const char *name) {
    sinkproof_policy policy;
    sinkproof_error error;
    if (!sinkproof_policy_parse(name, &policy, &error)) abort();
    return policy;
}

static const double STANDARD_RATE = 1e-9; // false alarms per tensor, the judge's own

// ---- draws -------------------------------------------------------------------------------------

static inline double draw_unit(uint64_t *state) { // [0, 1)
    return (double)(draw(state) >> 11) * 0x1p-53;
}

static inline double draw_gauss(uint64_t *state) {
    double u = draw_unit(state) + 0x1p-60, v = draw_unit(state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static inline double draw_from(uint64_t *state, sinkproof_format format, double spread) {
    return sinkproof_round(format, spread * draw_gauss(state));
}

// How an engine's functions err: at random around zero, or all by the declared error in one
// direction.
typedef enum leaning { LEAN_NEAREST, LEAN_RANDOM, LEAN_UP, LEAN_DOWN, LEANS } leaning;

// A float32 within `ulps` ulp of the truth: nearest, random, the largest or the smallest.
static inline float within_ulps(uint64_t *state, double truth, double ulps, leaning lean) {
    if (truth == 0 || !isfinite(truth) || lean == LEAN_NEAREST) return (float)truth;
    double reach = ulps * sinkproof_ulp(SINKPROOF_F32, truth);
    double target = lean == LEAN_UP     ? truth + reach
                    : lean == LEAN_DOWN ? truth - reach
                                        : truth + reach * (2 * draw_unit(state) - 1);
    float y = (float)target;
    if ((double)y > truth + reach) y = nextafterf(y, -INFINITY);
    if ((double)y < truth - reach) y = nextafterf(y, INFINITY);
    return y;
}

// ---- sums of n products in float32 -----------------------------------------------------------

typedef enum summation {
    FORWARD,
    BACKWARD,
    PAIRWISE,
    LANES_8,
    LANES_16,
    BLOCKS_32,
    RANDOM_ORDER,
    RANDOM_TREE,
    ORDERS
} summation;

enum { MOST_TERMS = 4097 }; // 4096 keys and a sink

static float step(float sum, float a, float b, bool fused) {
    return fused ? fmaf(a, b, sum) : sum + a * b;
}

static float pairwise(const float *p, size_t n) {
    if (n == 1) return p[0];
    return pairwise(p, n / 2) + pairwise(p + n / 2, n - n / 2);
}

static float lanes(size_t width, size_t n, const float *a, const float *b, bool fused) {
    float sum_l[32] = {0};
    for (size_t k = 0; k < n; k++) sum_l[k % width] = step(sum_l[k % width], a[k], b[k], fused);
    for (; width > 1; width /= 2)
        for (size_t l = 0; l < width / 2; l++) sum_l[l] += sum_l[l + width / 2];
    return sum_l[0];
}

// Blocks of 32 are summed separately, then added: as in a blocked product.
static float blocks(size_t n, const float *a, const float *b, bool fused) {
    float sum = 0;
    for (size_t k = 0; k < n; k += 32) {
        float part = 0;
        for (size_t i = k; i < n && i < k + 32; i++) part = step(part, a[i], b[i], fused);
        sum = k == 0 ? part : sum + part;
    }
    return sum;
}

// Adds two random partial sums until one is left.
static float random_tree(uint64_t *state, float *p, size_t n) {
    for (; n > 1; n--) {
        size_t i = draw_below(state, n), j = draw_below(state, n - 1);
        if (j >= i) j++;
        p[i] += p[j];
        p[j] = p[n - 1];
    }
    return p[0];
}

static float random_order(uint64_t *state, size_t n, const float *a, const float *b, bool fused) {
    static size_t at[MOST_TERMS];
    float sum = 0;
    for (size_t k = 0; k < n; k++) at[k] = k;
    for (size_t k = 0; k < n; k++) {
        size_t j = k + draw_below(state, n - k), swap = at[k];
        at[k] = at[j], at[j] = swap;
        sum = step(sum, a[at[k]], b[at[k]], fused);
    }
    return sum;
}

// sum_k a_k b_k. `bias` (may be NULL) is added last, or first when bias_first.
static inline float engine_dot(uint64_t *state, summation order, bool fused, size_t n,
                               const float *a, const float *b, const float *bias, bool bias_first) {
    static float p[MOST_TERMS + 1];
    float start = bias != NULL && bias_first ? *bias : 0, sum = start;
    size_t terms = n;
    if (order == PAIRWISE || order == RANDOM_TREE) {
        for (size_t k = 0; k < n; k++) p[k] = a[k] * b[k];
        if (bias != NULL && bias_first) p[terms++] = *bias;
        sum = order == PAIRWISE ? pairwise(p, terms) : random_tree(state, p, terms);
        start = 0;
    } else if (order == FORWARD) {
        for (size_t k = 0; k < n; k++) sum = step(sum, a[k], b[k], fused);
        start = 0;
    } else if (order == BACKWARD) {
        for (size_t k = n; k-- > 0;) sum = step(sum, a[k], b[k], fused);
        start = 0;
    } else if (order == RANDOM_ORDER) {
        sum = random_order(state, n, a, b, fused);
    } else if (order == BLOCKS_32) {
        sum = blocks(n, a, b, fused);
    } else {
        sum = lanes(order == LANES_8 ? 8 : 16, n, a, b, fused);
    }
    if (start != 0) sum += start;
    return bias != NULL && !bias_first ? sum + *bias : sum;
}

// sum_k p_k in any order.
static inline float engine_sum(uint64_t *state, summation order, size_t n, const float *p) {
    static float one[MOST_TERMS];
    for (size_t k = 0; k < n; k++) one[k] = 1;
    return engine_dot(state, order, false, n, p, one, NULL, false);
}

#endif
