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
    size_t part = m->parts_kept == SINKPROOF_KEPT_HIGHEST ? part_j[top]
                  : m->parts_kept == SINKPROOF_KEPT_FIRST ? 0
                                                          : last;
    for (size_t j = 0; j < n; j++) {
        bool far = m->score_within > 0 && highest - z_j[j].mid > m->score_within;
        bool other = m->parts_kept != SINKPROOF_KEPT_ALL && part_j[j] != part;
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
static sinkproof_honest set_weighed(const sinkproof_setting *s, sinkproof_weighing weighing,
                                    sinkproof_honest z, sinkproof_honest top) {
    double mid = sinkproof_weighed(weighing, z.mid, top.mid), lo = mid, hi = mid;
    const double ends[4][2] = {{z.lo, top.lo}, {z.lo, top.hi}, {z.hi, top.lo}, {z.hi, top.hi}};
    for (int e = 0; e < 4; e++) {
        double y = sinkproof_weighed(weighing, ends[e][0], ends[e][1]);
        lo = fmin(lo, y), hi = fmax(hi, y);
    }
    double width = z.hi - z.lo + top.hi - top.lo, error = fmax(hi - mid, mid - lo) + width * width;
    if (!(error < INFINITY)) error = 0;
    sinkproof_honest y = sinkproof_set_around(mid, error, error, 0, error);
    return sinkproof_honest_declared(y, 8 * s->u * (fabs(z.mid - top.mid) + 1), 0);
}

static bool weights_of_function(const sinkproof_attending *m, const sinkproof_setting *s,
                                const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j) {
    sinkproof_honest top = b;
    for (size_t e = 0; e < keys->n; e++) top = largest_of(top, keys->z_j[e]);
    sinkproof_honest sum = a_j[keys->n] = set_weighed(s, m->weighing, b, top);
    for (size_t e = 0; e < keys->n; e++) {
        a_j[e] = set_weighed(s, m->weighing, keys->z_j[e], top);
        sum = sinkproof_honest_add(sum, a_j[e]);
    }
    sum = sinkproof_honest_roundings(s, sum, (double)keys->n + 1);
    bool divided = sinkproof_weighing_divides(m->weighing) && sum.lo > 0;
    sinkproof_honest by = divided ? set_inverse(sum) : sinkproof_exact_set(1);
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
            set_weighed(s, SINKPROOF_WEIGH_UNDIVIDED, sinkproof_exact_set(0), high);
        more = sinkproof_honest_mul(more, below);
    }
    double count = m->zero_keys != 0 ? m->zero_keys : m->sum_plus;
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

bool weights_otherwise(const sinkproof_attending *m, const sinkproof_setting *s,
                       const keys_read *keys, sinkproof_honest b, sinkproof_honest *a_j,
                       double *common) {
    open_setting open;
    open_rounding(&open, s, AT_A9);
    bool fine =
        m->weighing == SINKPROOF_WEIGH_SOFTMAX ? weights_over_more(m, &open.s, keys, b, a_j, common)
        : m->weighing == SINKPROOF_WEIGH_AGAIN ? weights_again(&open.s, keys, b, a_j, common)
                                               : weights_of_function(m, &open.s, keys, b, a_j);
    for (size_t e = 0; fine && e <= keys->n; e++) a_j[e] = sinkproof_honest_at(s, AT_A9, a_j[e]);
    *common = 0;
    return fine;
}
