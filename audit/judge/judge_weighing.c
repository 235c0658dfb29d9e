// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of attention by another function than the softmax, or over another sum; and keys that
// are left out by their scores.
#include "audit/judge/judge_internal.h"

#include <math.h>
#include <stdlib.h>

// ---- keys that are left out

void leave_out_scores(const sinkproof_attending *m, size_t n, const sinkproof_honest *z_j,
                      const size_t *part_j, double *times_j) {
    size_t top = SIZE_MAX, last = 0, kept = 0;
    for (size_t j = 0; j < n; j++) {
        if (times_j[j] == 0) continue;
        if (top == SIZE_MAX || z_j[j].mid > z_j[top].mid) top = j;
        last = part_j[j];
    }
    if (top == SIZE_MAX) return;
    double highest = z_j[top].mid;
    for (size_t j = 0; j < n; j++) {
        bool far = m->score_within > 0 && highest - z_j[j].mid > m->score_within;
        bool other = !sinkproof_part_is_kept(m->parts_kept, part_j[j], part_j[top], last);
        if (far || other) times_j[j] = 0;
    }
    // the largest of what is left, one after another
    for (; m->scores_kept > 0 && kept < m->scores_kept; kept++) {
        top = SIZE_MAX;
        for (size_t j = 0; j < n; j++)
            if (times_j[j] > 0 && (top == SIZE_MAX || z_j[j].mid > z_j[top].mid)) top = j;
        if (top != SIZE_MAX) times_j[top] = -times_j[top];
    }
    for (size_t j = 0; m->scores_kept > 0 && j < n; j++) times_j[j] = fmax(-times_j[j], 0);
}

// ---- other functions

static sinkproof_honest largest_of(sinkproof_honest x, sinkproof_honest y) {
    x.lo = fmax(x.lo, y.lo), x.hi = fmax(x.hi, y.hi), x.mid = fmax(x.mid, y.mid);
    x.likely_lo = fmax(x.likely_lo, y.likely_lo), x.likely_hi = fmax(x.likely_hi, y.likely_hi);
    return x;
}

// The function at a score, over the hull of the ends of z and top. The functions bend once at most
// within a set: the square of its width is what they may go beyond its ends.
static sinkproof_honest set_weighed(const sinkproof_setting *s, const sinkproof_attending *m,
                                    sinkproof_honest z, sinkproof_honest top) {
    sinkproof_weighing weighing = m->weighing;
    double number = m->summing.number;
    double mid = sinkproof_weighed(weighing, number, z.mid, top.mid), lo = mid, hi = mid;
    const double ends[4][2] = {{z.lo, top.lo}, {z.lo, top.hi}, {z.hi, top.lo}, {z.hi, top.hi}};
    bool is_top = z.mid == top.mid && z.lo == top.lo && z.hi == top.hi; // then x is exactly 0
    for (int e = 0; e < (is_top ? 1 : 4); e++) {
        double y = sinkproof_weighed(weighing, number, ends[e][0], ends[e][1]);
        lo = fmin(lo, y), hi = fmax(hi, y);
    }
    double width = is_top ? 0 : z.hi - z.lo + top.hi - top.lo,
           error = fmax(hi - mid, mid - lo) + width * width;
    if (!(error < INFINITY)) error = 0;
    sinkproof_honest y = sinkproof_set_around(mid, error, error, 0, error);
    // the exponent and the line in one number of 32 bits
    if (weighing == SINKPROOF_WEIGH_LINEAR && number != 0)
        y = sinkproof_honest_declared(y, number * m->times_error + 0x1p-17, 0);
    return sinkproof_honest_declared(y, 8 * s->u * (fabs(z.mid - top.mid) + 1), 0);
}

// The same behind the rounding of the logits whose maximum is subtracted, where it is of these.
static sinkproof_honest set_weighed_below(const sinkproof_setting *s, const sinkproof_attending *m,
                                          sinkproof_honest z, sinkproof_honest top) {
    bool below = m->weighing != SINKPROOF_WEIGH_SERIES2 && m->weighing != SINKPROOF_WEIGH_SIGMOID &&
                 m->weighing != SINKPROOF_WEIGH_RELU;
    if (!below || s->policy->at[AT_A9_MAX].format == SINKPROOF_REAL)
        return set_weighed(s, m, z, top);
    bool is_top = z.mid == top.mid && z.lo == top.lo && z.hi == top.hi;
    sinkproof_honest x = is_top ? sinkproof_exact_set(0) : sinkproof_honest_sub(z, top);
    return set_weighed(s, m, sinkproof_honest_at(s, AT_A9_MAX, x), sinkproof_exact_set(0));
}

static bool weights_of_function(const sinkproof_attending *m, const sinkproof_setting *s,
                                const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j) {
    sinkproof_honest top = b;
    for (size_t e = 0; e < keys->n; e++) top = largest_of(top, keys->z_j[e]);
    sinkproof_honest sum = a_j[keys->n] = set_weighed_below(s, m, b, top);
    for (size_t e = 0; e < keys->n; e++) {
        a_j[e] = set_weighed_below(s, m, keys->z_j[e], top);
        sum = sinkproof_honest_add(sum, a_j[e]);
    }
    sum = sinkproof_honest_roundings(s, sum, (double)keys->n + 1);
    bool divided = sinkproof_weighing_divides(m->weighing) && sum.lo > 0;
    sinkproof_honest by = divided ? set_inverse(sum) : sinkproof_exact_set(1);
    if (m->weighing == SINKPROOF_WEIGH_TWICE) by = sinkproof_honest_mul(by, by);
    for (size_t e = 0; e <= keys->n; e++)
        if (divided) a_j[e] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[e], by), 2);
    return true;
}

// The softmax of the weights and of the sink's.
static bool weights_again(const sinkproof_setting *s, const keys_read *keys, sinkproof_honest b,
                          sinkproof_honest *a_j, double *common) {
    size_t n = keys->n;
    sinkproof_honest *z = malloc((n + 1) * sizeof *z);
    bool fine = z != NULL && sinkproof_honest_softmax(s, AT_A9, n, keys->z_j, b, z, common) &&
                sinkproof_honest_softmax(s, AT_A9, n, z, z[n], a_j, common);
    free(z);
    return fine;
}

// A larger sum: alpha / (1 + c alpha_top), c in units of the largest exponential, or as keys whose
// score is 0.
static bool weights_over_more(const sinkproof_attending *m, const sinkproof_setting *s,
                              const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                              double *common) {
    size_t n = keys->n, top = n;
    if (!sinkproof_honest_softmax(s, AT_A9, n, keys->z_j, b, a_j, common)) return false;
    for (size_t e = 0; e < n; e++)
        if (keys->z_j[e].mid > (top == n ? b : keys->z_j[top]).mid) top = e;
    sinkproof_honest high = top == n ? b : keys->z_j[top], more = a_j[top];
    if (m->zero_keys != 0) {
        sinkproof_honest below =
            set_weighed(s, &sinkproof_attending_as_defined, sinkproof_exact_set(0), high);
        more = sinkproof_honest_mul(more, below);
    }
    double empty = sinkproof_empty_count(&m->summing, m->zero_keys, keys->first, keys->end);
    double count = m->zero_keys != 0 ? empty : m->sum_plus;
    more = sinkproof_honest_mul(more, sinkproof_exact_set(count));
    if (m->times_error > 0) more = sinkproof_honest_declared(more, m->times_error, 0);
    sinkproof_honest sum = sinkproof_honest_add(sinkproof_exact_set(1), more);
    if (!(sum.lo > 0)) return true;
    sinkproof_honest by = set_inverse(sum);
    if (m->zeros_in_sink) a_j[n] = sinkproof_honest_add(a_j[n], more);
    for (size_t e = 0; e <= n; e++)
        a_j[e] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[e], by), 4);
    return true;
}

// The exponentials over a sum that is rounded term by term. What is rounded grows with each term:
// the ends of the terms give the ends of the sum.
static bool weights_over_rounded(const sinkproof_attending *m, const sinkproof_setting *s,
                                 const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j) {
    size_t n = keys->n;
    double *e = malloc(3 * (n + 1) * sizeof *e), sum[3];
    sinkproof_honest top = b;
    if (e == NULL) return false;
    for (size_t j = 0; j < n; j++) top = largest_of(top, keys->z_j[j]);
    for (size_t j = 0; j <= n; j++) {
        a_j[j] = set_weighed(s, &sinkproof_attending_as_defined, j < n ? keys->z_j[j] : b, top);
        e[j] = a_j[j].mid, e[n + 1 + j] = fmax(a_j[j].lo, 0), e[2 * (n + 1) + j] = a_j[j].hi;
    }
    for (size_t end = 0; end < 3; end++)
        sum[end] =
            sinkproof_summed(&m->summing, keys->first, n, e + end * (n + 1), e[end * (n + 1) + n]);
    free(e);
    double error = fmax(sum[2] - sum[0], sum[0] - sum[1]);
    if (!(sum[1] > 0)) return true;
    sinkproof_honest by = set_inverse(sinkproof_set_around(sum[0], error, error, 0, error));
    for (size_t j = 0; j <= n; j++)
        a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], by), 2);
    return true;
}

bool weights_otherwise(const sinkproof_attending *m, const sinkproof_setting *s,
                       const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                       double *common) {
    open_setting open;
    open_rounding(&open, s, AT_A9);
    bool rounded = m->summing.format != SINKPROOF_REAL;
    bool fine = rounded ? weights_over_rounded(m, &open.s, keys, b, a_j)
                : m->weighing == SINKPROOF_WEIGH_SOFTMAX
                    ? weights_over_more(m, &open.s, keys, b, a_j, common)
                : m->weighing == SINKPROOF_WEIGH_AGAIN
                    ? weights_again(&open.s, keys, b, a_j, common)
                    : weights_of_function(m, &open.s, keys, b, a_j);
    for (size_t e = 0; fine && e <= keys->n; e++) a_j[e] = sinkproof_honest_at(s, AT_A9, a_j[e]);
    *common = 0;
    return fine;
}
