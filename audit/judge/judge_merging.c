// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 the sinkproof authors
//
// The weights of keys in parts whose outputs are merged as they may be meant; and weights that are
// left out.
#include "audit/judge/judge_internal.h"
#include "proofs/bounds/scaled.h"

#include <math.h>
#include <stdlib.h>

// ---- merged parts

// A part of the keys, [first, first + n) of those that are read.
typedef struct keys_part {
    size_t first, n;
    bool sink_divides, sink_in_lse;
} keys_part;

static keys_part part_of_keys(const sinkproof_attending *m, const keys_read *keys, size_t part) {
    keys_part p = {.sink_divides = sinkproof_in_part(m->merging.sink_divides, part, keys->parts),
                   .sink_in_lse = sinkproof_in_part(m->merging.sink_in_lse, part, keys->parts)};
    while (p.first < keys->n && keys->part_j[p.first] < part) p.first++;
    while (p.first + p.n < keys->n && keys->part_j[p.first + p.n] == part) p.n++;
    return p;
}

// The natural logarithm of a set of positive numbers, and this machine's error of it.
static sinkproof_honest set_logarithm(sinkproof_honest x) {
    double worst = fmax(log(x.hi) - log(x.mid), log(x.mid) - (x.lo > 0 ? log(x.lo) : -INFINITY));
    double likely = fmax(log(x.likely_hi) - log(x.mid),
                         log(x.mid) - (x.likely_lo > 0 ? log(x.likely_lo) : -INFINITY));
    double libm = 0x1p-50 * (fabs(log(x.mid)) + 1);
    return sinkproof_set_around(log(x.mid), worst + libm, likely + libm, x.var / (x.mid * x.mid),
                                0);
}

// The log-sum-exp of a part, with its sink or without: the largest score less the logarithm of its
// own weight. a_j: room for the weights of the part.
static bool part_log_sum(const sinkproof_setting *s, const keys_read *keys, const keys_part *p,
                         sinkproof_honest b, sinkproof_honest *a_j, sinkproof_honest *lse) {
    const sinkproof_honest *z_j = keys->z_j + p->first;
    double unused;
    size_t top = 0;
    if (!p->sink_in_lse) b = sinkproof_exact_set(-INFINITY);
    if (!sinkproof_honest_softmax(s, AT_A9, p->n, z_j, b, a_j, &unused)) return false;
    for (size_t j = 0; j < p->n; j++)
        if (z_j[j].mid > z_j[top].mid) top = j;
    *lse = sinkproof_honest_sub(z_j[top], set_logarithm(a_j[top]));
    *lse = sinkproof_honest_declared(*lse, 4 * s->u, 4 * s->u);
    *lse = sinkproof_honest_at(s, AT_A9_LSE, *lse);
    return true;
}

// The largest of the scores of a part.
static sinkproof_honest part_top(const keys_read *keys, const keys_part *p) {
    sinkproof_honest top = keys->z_j[p->first];
    for (size_t j = p->first + 1; j < p->first + p->n; j++) {
        const sinkproof_honest *z = &keys->z_j[j];
        top.lo = fmax(top.lo, z->lo), top.hi = fmax(top.hi, z->hi), top.mid = fmax(top.mid, z->mid);
        top.likely_lo = fmax(top.likely_lo, z->likely_lo);
        top.likely_hi = fmax(top.likely_hi, z->likely_hi);
    }
    return top;
}

static sinkproof_honest set_exponential(const sinkproof_setting *s, sinkproof_honest x) {
    double mid = exp(x.mid), worst = fmax(exp(x.hi) - mid, mid - exp(x.lo));
    double likely = fmax(exp(x.likely_hi) - mid, mid - exp(x.likely_lo));
    // of all keys of a part alike: what it is off by is no chance of each element
    sinkproof_honest y = sinkproof_set_around(mid, worst, likely, x.var * mid * mid, worst);
    return sinkproof_honest_declared(y, 4 * s->u * (fabs(x.mid) + 1), 0);
}

// by_p: the exponential of what the maximum of all, with the sink's logit, is larger than the one
// that a part has.
static void find_rescaling(const sinkproof_attending *m, const sinkproof_setting *s,
                           const keys_read *keys, sinkproof_honest b, sinkproof_honest *by_p) {
    sinkproof_honest all = b, running = b;
    for (size_t p = 0; p < keys->parts; p++) {
        keys_part part = part_of_keys(m, keys, p);
        sinkproof_honest top = part_top(keys, &part);
        bool begins = (p == 0 && !m->merging.begun) || !m->merging.running;
        running = begins || top.mid > running.mid ? top : running;
        by_p[p] = running;
        if (top.mid > all.mid) all = top;
    }
    for (size_t p = 0; p < keys->parts; p++)
        by_p[p] = by_p[p].mid == all.mid ? sinkproof_exact_set(1)
                                         : set_exponential(s, sinkproof_honest_sub(all, by_p[p]));
}

// The exponential of what the maximum of all is larger than the sink's logit.
static sinkproof_honest sink_unscaled(const sinkproof_setting *s, const keys_read *keys,
                                      sinkproof_honest b) {
    sinkproof_honest all = b;
    for (size_t e = 0; e < keys->n; e++)
        if (keys->z_j[e].mid > all.mid) all = keys->z_j[e];
    return all.mid == b.mid ? sinkproof_exact_set(1)
                            : set_exponential(s, sinkproof_honest_sub(all, b));
}

// Weights whose parts are not rescaled to one maximum: alpha_j by_p / (sum_k alpha_k by_p +
// alpha_sink), or only one of the two by_p.
static bool weights_unscaled(const sinkproof_attending *m, const sinkproof_setting *s,
                             const keys_read *keys, sinkproof_honest b, sinkproof_honest *by_p,
                             sinkproof_honest *a_j, double *common) {
    open_setting open;
    open_rounding(&open, s, AT_A9);
    if (!sinkproof_honest_softmax(&open.s, AT_A9, keys->n, keys->z_j, b, a_j, common)) return false;
    find_rescaling(m, s, keys, b, by_p);
    sinkproof_honest sum = a_j[keys->n];
    if (m->merging.begun && (m->merging.unscaled & SINKPROOF_MERGE_SUMS) != 0)
        sum = sinkproof_honest_mul(sum, sink_unscaled(s, keys, b));
    for (size_t j = 0; j < keys->n; j++) {
        sinkproof_honest more = sinkproof_honest_mul(a_j[j], by_p[keys->part_j[j]]);
        sum = sinkproof_honest_add(sum, m->merging.unscaled & SINKPROOF_MERGE_SUMS ? more : a_j[j]);
        if (m->merging.unscaled & SINKPROOF_MERGE_OUTPUTS) a_j[j] = more;
    }
    sinkproof_honest over = set_inverse(sinkproof_honest_roundings(s, sum, (double)keys->n + 2));
    for (size_t j = 0; j <= keys->n; j++) {
        a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], over), 3);
        a_j[j] = sinkproof_honest_at(s, AT_A9, a_j[j]);
    }
    *common = 0;
    return true;
}

// The weights of a mean in which parts without keys count, or that the sink gates afterwards.
static bool weigh_mean(const sinkproof_attending *m, const sinkproof_setting *s,
                       const keys_read *keys, sinkproof_honest b, sinkproof_honest *room_j,
                       sinkproof_honest *a_j) {
    sinkproof_honest by = sinkproof_exact_set(1);
    double unused;
    size_t parts = sinkproof_attending_parts(m, keys->parts, keys->end, keys->all);
    if (parts != keys->parts)
        by = sinkproof_honest_mul(sinkproof_exact_set((double)keys->parts),
                                  set_inverse(sinkproof_exact_set((double)parts)));
    if (m->merging.gated) {
        if (!sinkproof_honest_softmax(s, AT_A9, keys->n, keys->z_j, b, room_j, &unused))
            return false;
        // a gate of the log-sum-exp has its roundings and those of the difference with the sink
        sinkproof_honest sink = room_j[keys->n];
        double lse = sink.mid > 0 && sink.mid < 1 ? b.mid + log((1 - sink.mid) / sink.mid) : 0;
        double off = 8 * s->u * (fabs(lse) + fabs(b.mid) + 1);
        // what the sink leaves, by the keys where it leaves little
        sinkproof_honest left = sinkproof_honest_sub(sinkproof_exact_set(1), sink);
        for (size_t j = 0; sink.mid > 0.5 && j < keys->n; j++)
            left = j == 0 ? room_j[0] : sinkproof_honest_add(left, room_j[j]);
        by = sinkproof_honest_mul(by, left);
        by = sinkproof_honest_declared(by, fmin(sink.hi * off, 1), 0);
    }
    for (size_t j = 0; j < keys->n; j++)
        a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], by), 3);
    return true;
}

// a_j: the weights of keys in parts that are merged by wrong log-sum-exps. The sink's own weight is
// shown by no such engine.
bool weights_merged(const sinkproof_attending *m, const sinkproof_setting *s, const keys_read *keys,
                    sinkproof_honest b, sinkproof_honest *a_j, double *common) {
    const sinkproof_merging *how = &m->merging;
    const sinkproof_honest none = sinkproof_exact_set(-INFINITY);
    sinkproof_honest *l_p = calloc(2 * keys->parts + keys->n + 2, sizeof *l_p);
    sinkproof_honest *w_p = l_p + keys->parts, *room_j = w_p + keys->parts + 1;
    open_setting open;
    bool fine = l_p != NULL;
    open_rounding(&open, s, AT_A9);
    if (fine && how->unscaled != 0) {
        fine = weights_unscaled(m, s, keys, b, l_p, a_j, common);
        free(l_p);
        return fine;
    }
    for (size_t p = 0; fine && p < keys->parts; p++) {
        keys_part part = part_of_keys(m, keys, p);
        fine = part_log_sum(&open.s, keys, &part, b, a_j, &l_p[p]);
        l_p[p] = sinkproof_honest_mul(l_p[p], sinkproof_exact_set(how->exponent));
        l_p[p] = sinkproof_honest_declared(l_p[p], 2 * s->u, 0);
    }
    sinkproof_honest beside = how->sink_beside ? b : none;
    if (how->sink_beside && how->sink_too)
        beside = sinkproof_honest_declared(
            sinkproof_honest_mul(b, sinkproof_exact_set(how->exponent)), 2 * s->u, 0);
    fine = fine && sinkproof_honest_softmax(&open.s, AT_A9, keys->parts, l_p, beside, w_p, common);
    for (size_t p = 0; fine && p < keys->parts; p++) {
        keys_part part = part_of_keys(m, keys, p);
        fine = sinkproof_honest_softmax(&open.s, AT_A9, part.n, keys->z_j + part.first,
                                        part.sink_divides ? b : none, a_j + part.first, common);
        size_t of = how->reversed ? keys->parts - 1 - p : p;
        for (size_t j = part.first; j < part.first + part.n; j++) {
            a_j[j] = sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], w_p[of]), 3);
            a_j[j] = sinkproof_honest_at(s, AT_A9, a_j[j]);
        }
    }
    if (how->mean != SINKPROOF_MEAN_SEEN || how->gated)
        fine = fine && weigh_mean(m, &open.s, keys, b, room_j, a_j);
    if (fine) a_j[keys->n] = how->sink_beside ? w_p[keys->parts] : sinkproof_exact_set(0);
    *common = 0;
    free(l_p);
    return fine;
}

// ---- weights that are left out

static int descending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

// Leaves out all but the largest: those that may be among them are there or not.
static bool keep_largest(size_t kept, size_t n, sinkproof_honest *a_j) {
    double *lo_j = malloc(2 * n * sizeof *lo_j), *hi_j = lo_j + n;
    if (lo_j == NULL) return false;
    for (size_t j = 0; j < n; j++) lo_j[j] = a_j[j].lo, hi_j[j] = a_j[j].hi;
    qsort(lo_j, n, sizeof *lo_j, descending);
    qsort(hi_j, n, sizeof *hi_j, descending);
    double sure = hi_j[kept], gone = lo_j[kept - 1]; // larger than all others; smaller than enough
    free(lo_j);
    for (size_t j = 0; j < n; j++)
        if (a_j[j].hi < gone)
            a_j[j] = sinkproof_exact_set(0);
        else if (!(a_j[j].lo > sure))
            a_j[j] = sinkproof_honest_hull(a_j[j], sinkproof_exact_set(0));
    return true;
}

bool meant_kept_weights(const sinkproof_attending *m, const sinkproof_setting *s, size_t n,
                        sinkproof_honest *a_j) {
    const sinkproof_rounding how = {.format = m->read.format, .scale = m->read.scale};
    if (m->weights_kept > 0 && m->weights_kept < n && !keep_largest(m->weights_kept, n, a_j))
        return false;
    if ((m->read.of & SINKPROOF_READ_WEIGHTS) != 0 &&
        !sinkproof_honest_scaled(s, AT_A11_WEIGHTS, how, 1, 1, n, a_j))
        return false;
    for (size_t j = 0; j < n; j++) {
        double low = m->weight_low;
        if (a_j[j].hi < low * (1 - m->times_error))
            a_j[j] = sinkproof_exact_set(0);
        else if (a_j[j].lo < low * (1 + m->times_error))
            a_j[j] = sinkproof_honest_hull(a_j[j], sinkproof_exact_set(0));
        if (m->weight_high < 1)
            a_j[j] =
                set_hull(sinkproof_honest_clamp(a_j[j], 0, m->weight_high * (1 - m->times_error)),
                         sinkproof_honest_clamp(a_j[j], 0, m->weight_high * (1 + m->times_error)));
    }
    if (!m->weights_over) return true;
    sinkproof_honest sum = sinkproof_exact_set(0);
    for (size_t j = 0; j < n; j++) sum = sinkproof_honest_add(sum, a_j[j]);
    if (!(sum.lo > 0)) return true;
    sum = sinkproof_honest_roundings(s, sum, (double)n);
    sum = set_hull(sum, sinkproof_honest_at(s, AT_A9, sum)); // it may be stored like the weights
    sinkproof_honest by = set_inverse(sum);
    for (size_t j = 0; j < n; j++)
        a_j[j] = sinkproof_honest_at(
            s, AT_A9, sinkproof_honest_roundings(s, sinkproof_honest_mul(a_j[j], by), 2));
    return true;
}
